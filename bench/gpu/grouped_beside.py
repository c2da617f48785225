#!/usr/bin/env python3
"""tegula's block-scaled and grouped GEMMs beside their peers in one process:
grouped_beside.py BUILD [--record FILE] [--rounds N] [--parts dense contiguous masked k bf16] [--candidates] [--deep-gemm LIBRARY]

fp8 e4m3 with scales of 1x128 by 128x128, bf16 out, at DeepGEMM's list; groups of rows (contiguous, masked) in fp8 and bf16; groups of k
in fp8, added to f32. The rows of masked groups are drawn DRAWS times, each from 0.7 to 1.3 of the mean that the choice is told, as in
DeepGEMM's tests; the time is all draws' together. The peers are DeepGEMM, where --deep-gemm names a library of its kernels (deep_gemm_peer.py), PyTorch's
torch._grouped_mm (bf16) and torch._scaled_mm with one scale a tensor (less work, less accurate) where this PyTorch has them. Each result is
first held against f32 products of the operands that the scales stand for, by DeepGEMM's criterion, diff < 0.001, the output poisoned
before. Launches of ours and of the peers alternate, each timed by events after the L2 cache was flushed. Copies of the operands and results
lie in several places; the mean of the places' medians is shown, and the ratio to DeepGEMM, or without it to the fastest peer.
--candidates times each of tegula's configurations, too.
"""

import argparse
import ctypes
import math
import random

import torch

from deep_gemm_peer import DeepGemm
from measurement import EntryPoints, append, stamp
from places import Places
from timing import Timer

NK = [(2112, 7168), (576, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048)]
CONTIGUOUS = [(4, 8192, 4096, 7168), (4, 8192, 7168, 2048), (8, 4096, 4096, 7168), (8, 4096, 7168, 2048), (32, 256, 4096, 7168), (32, 256, 7168, 2048)]
MASKED = [(1, 1024, 4096, 7168), (2, 512, 4096, 7168), (4, 256, 4096, 7168), (1, 1024, 7168, 2048), (4, 256, 7168, 2048), (32, 64, 4096, 7168)]
BY_K = [(4, 4096, 7168, 8192), (4, 7168, 2048, 8192), (8, 4096, 7168, 4096), (8, 7168, 2048, 4096)]
BLOCK = 128
DRAWS = 6
NONE, CONTIGUOUS_GROUPS, MASKED_GROUPS, K_GROUPS = range(4)  # of Grouping
ROWS_BY_BLOCKS, ROWS_BY_ROWS = 1, 2  # of Scales


class Numbers(ctypes.Structure):  # of grouped_entry_points.cpp
    _fields_ = [(name, ctypes.c_int) for name in ("inputs", "scales", "grouping", "out_f32", "groups", "m", "n", "k", "expected_rows")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the folder of a CUDA build")
    parser.add_argument("--record", help="append JSON lines to this file")
    parser.add_argument("--rounds", type=int, default=15, help="timed launches of each, in all places; of short ones 4 times as many (default 15)")
    parser.add_argument("--parts", nargs="*", default=["dense", "contiguous", "masked", "k", "bf16"])
    parser.add_argument("--candidates", action="store_true", help="time each configuration, not only the chosen one")
    parser.add_argument("--deep-gemm", metavar="LIBRARY", help="a shared library of DeepGEMM's kernels")
    return parser.parse_args()


def quantised_rows(x):
    """fp8 values and scales (rows, blocks of k), one for 128 of a row."""
    rows, k = x.shape
    blocks = x.float().view(rows, k // BLOCK, BLOCK)
    scales = blocks.abs().amax(dim=2).clamp(1e-4) / 448.0
    return (blocks / scales[:, :, None]).to(torch.float8_e4m3fn).view(rows, k), scales


def quantised_blocks(x):
    """fp8 values and scales (blocks of rows, blocks of k), one for 128 x 128; the last block of rows may be smaller."""
    rows, k = x.shape
    padded = torch.zeros((rows + BLOCK - 1) // BLOCK * BLOCK, k, device=x.device)
    padded[:rows] = x
    blocks = padded.view(-1, BLOCK, k // BLOCK, BLOCK)
    scales = blocks.abs().amax(dim=(1, 3)).clamp(1e-4) / 448.0
    values = (blocks / scales[:, None, :, None]).to(torch.float8_e4m3fn).view_as(padded)
    return values[:rows].contiguous(), scales


def dequantised(values, scales, rows_of_scale):
    wide = scales.repeat_interleave(rows_of_scale, 0)[: values.shape[0]].repeat_interleave(BLOCK, 1)
    return values.float() * wide


def mn_major(scales):
    """(rows, blocks) -> (blocks, rows), the rows padded to a multiple of 4: as TMA wants them."""
    rows = scales.shape[0]
    out = torch.zeros(scales.shape[1], (rows + 3) // 4 * 4, device=scales.device)
    out[:, :rows] = scales.t()
    return out


def diff(x, y):
    """DeepGEMM's criterion: 1 - 2 <x, y> / (|x|^2 + |y|^2)."""
    x, y = x.double(), y.double()
    return (1 - 2 * (x * y).sum() / (x * x + y * y).sum()).item()


class Problem:
    """What one case has: numbers, operands, the expected result, and who else computes it."""

    def __init__(self, entry, name, numbers, a, b, d, scale_a=None, scale_b=None, ends=None, flops=0, expected=None, covered=None, c=None):
        self.entry, self.name, self.numbers, self.flops = entry, name, numbers, flops
        self.operands = (a, b, c, d, scale_a, scale_b, ends)
        self.d, self.expected, self.covered, self.peers, self.results = d, expected, covered, {}, {}
        self.tensors = list(self.operands)  # and the peers'
        self.draws = [lambda: None]  # functions that change the groups, and nothing else

    def beside(self, name, launch, tensors, result):
        """A peer, what it reads and writes, and the rows of its result that are expected."""
        self.peers[name], self.results[name] = launch, result
        self.tensors += tensors

    def places(self):
        """Of all operands and results, but not of what a draw changes: how many rows there are."""
        return Places([x for x in self.tensors if x is not None and x.dtype != torch.int32])

    def launch(self, configuration=-1):
        def run():
            pointers = [None if x is None else x for x in self.operands]
            self.entry("tegula_bench_grouped_gemm", configuration, ctypes.byref(self.numbers), *pointers)

        return run

    def configuration(self, number=-1):
        buffer = ctypes.create_string_buffer(1024)
        failed = self.entry.library.tegula_bench_grouped_gemm_name(number, ctypes.byref(self.numbers), buffer, len(buffer))
        return None if failed else buffer.value.decode()

    def check(self, configuration=-1):
        self.d.fill_(0.0 if self.operands[2] is self.d else float("nan"))
        self.launch(configuration)()
        ours = self.d if self.covered is None else self.d[self.covered]
        far = diff(ours, self.wanted())
        if not far < 0.001:
            raise SystemExit(f"{self.name}: diff {far} by {self.configuration(configuration)}")

    def wanted(self):
        return self.expected if self.covered is None else self.expected[self.covered]


def dense(entry, deep_gemm):
    for m in (64, 128, 4096):
        for n, k in NK:
            x, y = torch.randn(m, k, device="cuda"), torch.randn(n, k, device="cuda")
            (a, scale_a), (b, scale_b) = quantised_rows(x), quantised_blocks(y)
            expected = dequantised(a, scale_a, 1) @ dequantised(b, scale_b, BLOCK).t()
            d = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            numbers = Numbers(1, ROWS_BY_BLOCKS, NONE, 0, 1, m, n, k, m)
            problem = Problem(entry, f"dense {m} x {n} x {k}", numbers, a, b, d, mn_major(scale_a), scale_b, flops=2 * m * n * k, expected=expected)
            if deep_gemm is not None:
                out = torch.full_like(d, float("nan"))
                theirs = (a, mn_major(scale_a), b, scale_b, out)
                problem.beside("DeepGEMM", deep_gemm.launch(NONE, m, n, k, 1, *theirs), theirs, lambda out=out: out)
            one = torch.ones((), device="cuda")
            problem.peers["_scaled_mm (tensor)"] = lambda a=a, b=b, one=one: torch._scaled_mm(
                a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
            )
            yield problem


def rows_of_groups(groups, mean):
    """Sizes about the mean, none equal; as a list and running sums."""
    sizes = [max(1, int(mean * (0.7 + 0.6 * ((7 * g + 3) % groups) / max(1, groups - 1)))) if groups > 1 else mean for g in range(groups)]
    return sizes, torch.tensor(sizes, device="cuda").cumsum(0).int()


def padded_rows(sizes):
    """Where each group begins if all are padded to 128 rows, and of which group each row is (-1: none), for DeepGEMM."""
    index = []
    for group, size in enumerate(sizes):
        index += [group] * size + [-1] * (-size % BLOCK)
    return torch.tensor(index, device="cuda", dtype=torch.int32)


def contiguous(entry, deep_gemm):
    for groups, mean, n, k in CONTIGUOUS:
        sizes, ends = rows_of_groups(groups, mean)
        m = sum(sizes)
        x = torch.randn(m, k, device="cuda")
        a, scale_a = quantised_rows(x)
        weights = [quantised_blocks(torch.randn(n, k, device="cuda")) for _ in range(groups)]
        b, scale_b = torch.stack([w for w, _ in weights]), torch.stack([s for _, s in weights])
        wide = dequantised(a, scale_a, 1)
        parts = torch.split(wide, sizes)
        expected = torch.cat([part @ dequantised(*weight, BLOCK).t() for part, weight in zip(parts, weights)])
        d = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        numbers = Numbers(1, ROWS_BY_BLOCKS, CONTIGUOUS_GROUPS, 0, groups, m, n, k, mean)
        problem = Problem(
            entry, f"contiguous {groups} x {mean} x {n} x {k}", numbers, a, b, d, mn_major(scale_a), scale_b, ends, 2 * m * n * k, expected
        )
        if deep_gemm is not None:
            index = padded_rows(sizes)
            total = index.numel()
            padded, padded_scales = torch.zeros(total, k, device="cuda", dtype=a.dtype), torch.zeros(total, k // BLOCK, device="cuda")
            padded.view(torch.uint8)[index >= 0], padded_scales[index >= 0] = a.view(torch.uint8), scale_a
            out = torch.full((total, n), float("nan"), device="cuda", dtype=torch.bfloat16)
            theirs = (padded, mn_major(padded_scales), b, scale_b, out, index)
            problem.beside(
                "DeepGEMM", deep_gemm.launch(CONTIGUOUS_GROUPS, total, n, k, groups, *theirs), theirs, lambda out=out, index=index: out[index >= 0]
            )
        yield problem


def masked(entry, deep_gemm):
    draw = random.Random(0)
    for groups, most, n, k in MASKED:
        expected_rows = round(sum(max(1, most * (3 + g % 4) // 8) for g in range(groups)) / groups)  # DeepGEMM is told them, too
        draws = [[min(most, round(expected_rows * draw.uniform(0.7, 1.3))) for _ in range(groups)] for _ in range(DRAWS)]
        ends = torch.zeros(groups, device="cuda", dtype=torch.int32)
        a, scale_a = quantised_rows(torch.randn(groups * most, k, device="cuda"))
        weights = [quantised_blocks(torch.randn(n, k, device="cuda")) for _ in range(groups)]
        b, scale_b = torch.stack([w for w, _ in weights]), torch.stack([s for _, s in weights])
        wide = dequantised(a, scale_a, 1).view(groups, most, k)
        expected = torch.cat([wide[g] @ dequantised(*weights[g], BLOCK).t() for g in range(groups)])
        covered = torch.zeros(groups * most, device="cuda", dtype=torch.bool)
        d = torch.empty(groups * most, n, device="cuda", dtype=torch.bfloat16)
        numbers = Numbers(1, ROWS_BY_BLOCKS, MASKED_GROUPS, 0, groups, most, n, k, expected_rows)
        flops = 2 * sum(map(sum, draws)) * n * k
        problem = Problem(
            entry, f"masked {groups} x {most} x {n} x {k}", numbers, a, b, d, mn_major(scale_a), scale_b, ends, flops, expected, covered
        )

        def group(sizes, ends=ends, covered=covered, most=most):
            ends.copy_(torch.tensor(sizes, dtype=torch.int32))
            covered.copy_(torch.cat([torch.arange(most, device="cuda") < size for size in sizes]))

        problem.draws = [lambda sizes=sizes, group=group: group(sizes) for sizes in draws]
        problem.draws[0]()
        if deep_gemm is not None:
            scales = torch.stack([mn_major(s) for s in scale_a.view(groups, most, -1)])
            out = torch.full((groups * most, n), float("nan"), device="cuda", dtype=torch.bfloat16)
            theirs = (a, scales, b, scale_b, out, ends)
            problem.beside(
                "DeepGEMM",
                deep_gemm.launch(MASKED_GROUPS, most, n, k, groups, *theirs, expected_m=expected_rows),
                theirs,
                lambda out=out, covered=covered: out[covered],
            )
        yield problem


def by_k(entry, deep_gemm):
    for groups, m, n, mean in BY_K:
        sizes = [mean * (2 + g % 3) // 3 // BLOCK * BLOCK for g in range(groups)]
        ends = torch.tensor(sizes, device="cuda").cumsum(0).int()
        k = sum(sizes)
        (a, scale_a), (b, scale_b) = (quantised_rows(torch.randn(rows, k, device="cuda")) for rows in (m, n))
        x, y = dequantised(a, scale_a, 1), dequantised(b, scale_b, 1)
        expected = torch.stack([p @ q.t() for p, q in zip(torch.split(x, sizes, 1), torch.split(y, sizes, 1))])
        d = torch.zeros(groups, m, n, device="cuda")
        numbers = Numbers(1, ROWS_BY_ROWS, K_GROUPS, 1, groups, m, n, k, m)
        problem = Problem(
            entry, f"k {groups} x {m} x {n} x {mean}", numbers, a, b, d, mn_major(scale_a), mn_major(scale_b), ends, 2 * m * n * k, expected, c=d
        )
        if deep_gemm is not None:  # each group's columns by themselves
            theirs = [
                torch.cat([part.flatten() for part in torch.split(values.view(torch.uint8), sizes, 1)]).view(values.dtype) for values in (a, b)
            ]
            out, ks = torch.zeros_like(d), torch.tensor(sizes, device="cuda", dtype=torch.int32)
            theirs = (theirs[0], mn_major(scale_a), theirs[1], mn_major(scale_b), out, ks)
            problem.beside("DeepGEMM", deep_gemm.launch(K_GROUPS, m, n, k, groups, *theirs), theirs, lambda out=out: out)
        yield problem


def bf16(entry, deep_gemm):
    for groups, mean, n, k in CONTIGUOUS:
        sizes, ends = rows_of_groups(groups, mean)
        m = sum(sizes)
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(groups, n, k, device="cuda", dtype=torch.bfloat16)
        expected = torch.cat([part @ weight.t() for part, weight in zip(torch.split(a, sizes), b)])
        d = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        numbers = Numbers(0, 0, CONTIGUOUS_GROUPS, 0, groups, m, n, k, mean)
        problem = Problem(entry, f"bf16 {groups} x {mean} x {n} x {k}", numbers, a, b, d, ends=ends, flops=2 * m * n * k, expected=expected)
        if hasattr(torch, "_grouped_mm"):
            problem.peers["_grouped_mm"] = lambda a=a, b=b, ends=ends: torch._grouped_mm(a, b.transpose(1, 2), offs=ends)
        yield problem


def usable(problem):
    """The peers that compute the problem with this machine's libraries, and right."""
    found = {}
    for name, launch in problem.peers.items():
        try:
            launch()
            torch.cuda.synchronize()
            far = diff(problem.results[name](), problem.wanted()) if name in problem.results else 0
        except (RuntimeError, TypeError, AttributeError, AssertionError) as error:
            print(f"  {name} does not compute it: {(str(error).splitlines() or [''])[0][:100]}")
            continue
        if far < 0.001:
            found[name] = launch
        else:
            print(f"  {name} computes something else: diff {far}")
    return found


def measure(problem, timer, options):
    for draw in problem.draws:
        draw()
        problem.check()
    peers = usable(problem)
    chosen = problem.configuration()
    functions, names = [problem.launch(), *peers.values()], [chosen, *peers]
    if options.candidates:
        for number in range(problem.entry.number("tegula_bench_grouped_gemm_configurations")):
            if (name := problem.configuration(number)) is not None:
                problem.check(number)
                functions.append(problem.launch(number))
                names.append(name)
    places, seconds = problem.places(), [0.0] * len(functions)
    rounds = places.rounds_in_each(timer, functions[0], options.rounds)
    for draw in problem.draws:
        draw()
        seconds = [sum(both) for both in zip(seconds, places.seconds(timer, functions, rounds))]
    rates = [problem.flops / s / 1e12 for s in seconds]
    by_peer = dict(zip(names[1 : 1 + len(peers)], rates[1:]))
    best = by_peer.get("DeepGEMM", max(by_peer.values(), default=None))
    shown = "  ".join(f"{name} {value:5.0f}" for name, value in by_peer.items())
    print(f"{problem.name:34} {rates[0]:5.0f} TFLOP/s  {shown}" + (f"  ratio {rates[0] / best:.3f}" if best else "") + f"  {chosen}", flush=True)
    for name, rate in sorted(zip(names[1 + len(peers) :], rates[1 + len(peers) :]), key=lambda pair: -pair[1]):
        print(f"    {rate:5.0f}  {name}")
    return {
        "benchmark": "grouped_gemm_sm90",
        "case": problem.name,
        "value": rates[0],
        "unit": "TFLOP/s",
        "peers": by_peer,
        "ratio": rates[0] / best if best else None,
        "configuration": chosen,
    }


def main():
    options = arguments()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    entry, timer, run = EntryPoints(options.build), Timer(), stamp("./run gpu bench")
    parts = {"dense": dense, "contiguous": contiguous, "masked": masked, "k": by_k, "bf16": bf16}
    deep_gemm = DeepGemm(options.deep_gemm) if options.deep_gemm else None
    for part in options.parts:
        records = [run | measure(problem, timer, options) for problem in parts[part](entry, deep_gemm)]
        ratios = [record["ratio"] for record in records if record["ratio"]]
        if ratios:
            print(f"{part}: geometric mean of the ratios {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, least {min(ratios):.3f}")
        if options.record:
            append(options.record, records)


if __name__ == "__main__":
    main()
