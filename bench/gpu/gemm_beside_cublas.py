#!/usr/bin/env python3
"""tegula's GEMM beside cuBLAS in one process.

    gemm_beside_cublas.py BUILD [--record FILE] [--rounds N] [--types bf16 fp8] [--largest-m M] [--random N --seed S] [--weigh WORTH --weighed FILE]

D = A B^T, A (m, k) and B (n, k) with contiguous rows, random normal values; bf16 in and out, and fp8 e4m3 in (one scale a tensor) and bf16
out. The peers are PyTorch (torch.matmul, torch._scaled_mm with fast accumulation) and cublasLt, the fastest of all algorithms that its
heuristics propose; likewise tegula's default choice, and the fastest of its own candidates. Each result is first held against the product
in float64, the output poisoned before; a peer's wrong one does not count. Launches of ours and of the peers alternate, each timed by
events after the L2 cache was flushed. Where in memory A, B and D lie makes up to 15 % in short launches: copies of them lie in several
places, and the mean of the places' medians is shown. The ratio is to the faster peer. To 16 rows, where memory bounds the time, the
bytes a second of ours and of the faster peer are also held against those of a large copy, with an L2 whose lines need not be written back.

--random N draws N shapes of models' layers by a seed instead of the list. --weigh WORTH also times every configuration whose predicted time
is at most WORTH times the least, says how the predictions and the choice did, and appends the times to --weighed, as
scripts/fit_gemm_times.py takes them.
"""

import argparse
import ctypes
import functools
import math
import random
import statistics

import torch

from cublaslt import CublasLt, CublasLtError
from measurement import EntryPoints, append, stamp
from places import Places, size
from random_gemms import random_gemms
from timing import Timer

NK_OF_FEW_ROWS = [(7168, 2048), (2112, 7168), (32768, 512), (4096, 7168), (24576, 1536), (7168, 16384)]
SHAPES = [(m, n, k) for m in (64, 128) for n, k in NK_OF_FEW_ROWS] + [
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 7168, 2048),
    (4096, 2112, 7168),
    (4096, 4096, 4096),
    (4096, 32768, 512),
    (4096, 4096, 7168),
    (4096, 24576, 1536),
    (4096, 4096, 14336),
    (4096, 14336, 4096),
    (4096, 7168, 16384),
    (8192, 8192, 8192),
    (8192, 28672, 8192),
    (16384, 16384, 16384),
]
TYPES = {"bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
TUNING_PLACES, TUNING_ROUNDS = 3, 3  # launches of each candidate in each place
DECODING_ROWS = 16  # with so many, memory bounds the time: bytes a second are shown, too
COPY_ROUNDS = 7
COPIED_BYTES = 1 << 30  # read and written in all: so many that what stays in L2 does not count
MULTIPLES = {"bf16": 8, "fp8": 16}  # of n and k that the peers take
TYPE_CODES = {"bf16": 0, "fp8": 1}  # of entry_points.cpp
TYPE_NAMES = {"bf16": "bf16", "fp8": "e4m3"}  # of scripts/fit_gemm_times.py


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the folder of a CUDA build")
    parser.add_argument("--record", help="append JSON lines to this file")
    parser.add_argument("--rounds", type=int, default=25, help="timed launches of each, in all places; of short ones 4 times as many (default 25)")
    parser.add_argument("--types", nargs="*", choices=TYPES, default=list(TYPES))
    parser.add_argument("--largest-m", type=int, default=1 << 30, help="leave out the shapes of more rows")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N shapes drawn by --seed, not the list")
    parser.add_argument("--seed", type=int, default=0, help="of the shapes and the values (default 0)")
    parser.add_argument("--weigh", type=float, default=0, metavar="WORTH", help="time every configuration predicted to take up to WORTH times the least")
    parser.add_argument("--weighed", metavar="FILE", help="append what --weigh finds to this file, as JSON lines")
    return parser.parse_args()


class Problem:
    """Operands of one shape and type, and what computes their product."""

    def __init__(self, entry, kind, m, n, k):
        self.entry, self.kind, self.shape = entry, kind, (m, n, k)
        self.a, self.b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16).to(TYPES[kind]) for rows in (m, n))
        # Scales that keep the product near 1, as a quantised layer's do; with bf16 there are none.
        self.scales = [torch.full((1,), k**-0.25, device="cuda") for _ in range(2)] if kind == "fp8" else [None, None]
        self.out = self.poisoned()
        self.places = Places([self.a, self.b, self.out])

    def tuning_seconds(self, timer, functions):
        return self.places.seconds(timer, functions, TUNING_ROUNDS, most=TUNING_PLACES)

    def poisoned(self):
        m, n, _ = self.shape
        return torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)

    def ours(self):
        self.entry("tegula_bench_gemm", TYPE_CODES[self.kind], self.a, self.b, *self.scales, self.out, *self.shape)

    def configuration(self):
        return self.entry.text("tegula_bench_gemm_configuration", TYPE_CODES[self.kind], *self.shape)

    def tuned(self, timer):
        """The fastest of tegula's own candidates, as CublasLt.best is of cublasLt's: a function, its name, and of how many."""
        code = TYPE_CODES[self.kind]
        count = self.entry.number("tegula_bench_gemm_candidates", code, *self.shape)

        def candidate(number):
            return lambda: self.entry("tegula_bench_gemm_candidate", code, number, self.a, self.b, *self.scales, self.out, *self.shape)

        functions = [candidate(number) for number in range(count)]
        seconds = self.tuning_seconds(timer, functions)
        fastest = min(range(count), key=seconds.__getitem__)
        return functions[fastest], self.entry.text("tegula_bench_gemm_candidate_name", code, fastest, *self.shape), count

    def weighed(self, timer, worth):
        """Every configuration that might be chosen: its name, predicted microseconds by part (total first), and measured ones. The
        choice comes first."""
        code, costs = TYPE_CODES[self.kind], (ctypes.c_double * 7)()
        count = self.entry.number("tegula_bench_gemm_weigh", code, *self.shape, ctypes.c_double(worth))
        found, functions = [], []
        for number in range(count):
            name = self.entry.text("tegula_bench_gemm_candidate_name", code, number, *self.shape)
            self.entry.number("tegula_bench_gemm_candidate_cost", code, number, *self.shape, costs)
            functions.append(
                lambda number=number: self.entry(
                    "tegula_bench_gemm_candidate", code, number, self.a, self.b, *self.scales, self.out, *self.shape
                )
            )
            self.out.fill_(float("nan"))
            functions[-1]()
            self.check(name, self.out)
            numbers = self.entry.text("tegula_bench_gemm_candidate_numbers", code, number, *self.shape)
            found.append({"name": name, "numbers": numbers, "predicted": list(costs)})
        for candidate, seconds in zip(found, self.tuning_seconds(timer, functions)):
            candidate["measured"] = seconds * 1e6
        return found

    def pytorch(self):
        if self.kind == "bf16":
            return torch.matmul(self.a, self.b.t())
        scale_a, scale_b = self.scales
        return torch._scaled_mm(self.a, self.b.t(), scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=True)

    @functools.cached_property
    def expected(self):
        """The product in float64. No peer's result is trusted: cuBLAS's is wrong at 2 x 216 x 13448 in bf16 (decision 182)."""
        product = self.a.double() @ self.b.double().t()
        return product if self.kind == "bf16" else product * (self.scales[0] * self.scales[1]).double()

    def fault(self, result):
        """What is wrong with a result, or None: it is further from the product than rounding explains, by half an ulp of bf16 and by what
        the tensor cores truncate. These keep 25 fractional bits of a sum over 16 values of k, 13 of one over 32 in fp8; partial sums are
        within four standard deviations, of sqrt(k) times the scales."""
        _, _, k = self.shape
        truncated = 4 * k / 32 * 2.0**-13 if self.kind == "fp8" else 4 * k / 16 * 2.0**-25
        deviation = math.sqrt(k) * (1 if self.kind == "bf16" else k**-0.5)
        excess = ((result.double() - self.expected).abs() - 2.0**-8 * self.expected.abs()).max().item()
        return None if excess <= deviation * (2.0**-10 + truncated) else f"off by {excess:.3g} more than rounding"

    @property
    def bytes(self):
        """Of the operands and the result."""
        return sum(map(size, (self.a, self.b, self.out)))

    def check(self, what, result):
        if (fault := self.fault(result)) is not None:
            raise SystemExit(f"gemm {self.kind} {self.shape}: {what} is {fault}")


@functools.cache
def memory_bounds(timer):
    """The GB/s that a copy of COPIED_BYTES reads and writes, and the microseconds of a launch that does next to nothing. A copy of fewer bytes
    leaves much of what it writes in L2."""
    source = torch.empty(COPIED_BYTES // 2, dtype=torch.uint8, device="cuda")
    target, little = torch.empty_like(source), torch.empty(4, device="cuda")
    copied, launched = timer.medians([lambda: target.copy_(source), lambda: little.zero_()], COPY_ROUNDS, clean=True)
    return COPIED_BYTES / copied / 1e9, launched * 1e6


def measure(problem, timer, lt, rounds):
    """The record of a problem, or None where no peer computes it."""
    m, n, k = problem.shape
    problem.ours()
    problem.check("tegula's result", problem.out)
    scales = dict(zip(("scale_a", "scale_b"), problem.scales)) if problem.kind == "fp8" else {}
    theirs = problem.poisoned()
    peers, told = {}, {}
    try:
        best = lt.best(problem.a, problem.b, theirs, timer, is_right=lambda: problem.fault(theirs) is None, **scales)
        best.d = problem.out  # both write where the problem's result lies
        peers["cublasLt"], told = best, {"cublaslt_algorithm": best.description, "cublaslt_candidates": best.candidates}
    except CublasLtError as error:
        print(f"  {problem.kind} {m} x {n} x {k}: {error}")
    if (fault := problem.fault(problem.pytorch())) is None:
        peers["PyTorch"] = problem.pytorch
    else:
        print(f"  {problem.kind} {m} x {n} x {k}: PyTorch's result is {fault}, so its time does not count")
    if not peers:
        return None
    tuned, tuned_configuration, candidates = problem.tuned(timer)
    problem.out.fill_(float("nan"))
    tuned()
    problem.check("the tuned configuration's result", problem.out)
    rounds = problem.places.rounds_in_each(timer, problem.ours, rounds)
    seconds = problem.places.seconds(timer, [problem.ours, tuned, *peers.values()], rounds)
    if m <= DECODING_ROWS:
        seconds_clean = problem.places.seconds(timer, [problem.ours, *peers.values()], rounds, clean=True)
        ours, *theirs = (problem.bytes / t / 1e9 for t in seconds_clean)
        copied, told["launch_us"] = memory_bounds(timer)
        told["gb_per_s"] = {"tegula": ours, "peer": max(theirs), "copy": copied}
    mine, mine_tuned, *rates = (2 * m * n * k / t / 1e12 for t in seconds)
    by_peer = dict(zip(peers, rates))
    fastest = max(rates)
    record = {
        "benchmark": f"gemm_sm90 {problem.kind}",
        "case": f"{m} x {n} x {k}",
        "m": m,
        "value": mine,
        "unit": "TFLOP/s",
        "peers": by_peer,
        "ratio": mine / fastest,
        "configuration": problem.configuration(),
        "tuned": mine_tuned,
        "tuned_ratio": mine_tuned / fastest,
        "tuned_configuration": tuned_configuration,
        "candidates": candidates,
    } | told
    shown = "  ".join(f"{name} {rate:6.0f}" for name, rate in by_peer.items())
    print(
        f"{record['benchmark']:15} {record['case']:22} {mine:6.0f}  {shown} TFLOP/s"
        f"  ratio {record['ratio']:.3f}, tuned {record['tuned_ratio']:.3f}  {record['configuration']}"
        + (f"  of a copy's bandwidth {told['gb_per_s']['tegula'] / told['gb_per_s']['copy']:.3f}" if "gb_per_s" in told else ""),
        flush=True,
    )
    return record


def weigh(problem, timer, options, record):
    """Times the candidates, and says how far the prediction of the choice was off and what the choice loses to the best of them."""
    weighed = problem.weighed(timer, options.weigh)
    times = [candidate["measured"] for candidate in weighed]
    record["prediction_error"] = weighed[0]["predicted"][0] / times[0] - 1
    record["rank"], record["weighed"] = 1 + sum(t < times[0] for t in times), len(times)
    record["lost"] = times[0] / min(times) - 1
    if options.weighed:
        m, n, k = problem.shape
        multiprocessors, *others = problem.entry.values("tegula_bench_device", 4)
        properties = {"multiprocessors": int(multiprocessors)}
        properties |= {name: round(value, 3) for name, value in zip(("clock_ghz", "memory_tb_per_s", "l2_mb"), others)}
        launches = {
            "type": TYPE_NAMES[problem.kind],
            "m": m,
            "n": n,
            "k": k,
            "peer_us": round(2e-6 * m * n * k / max(record["peers"].values()), 2),
            "configurations": [candidate["numbers"] for candidate in weighed],
            "us": [round(time, 2) for time in times],
        }
        append(options.weighed, [{key: record[key] for key in ("date", "gpu")} | properties | launches])


def summary(kind, records):
    """Lines on the ratios to the faster peer, and on the choices where they were weighed."""
    for name, chosen in (
        ("M > 512", lambda m: m > 512), ("M from 17 to 512", lambda m: 17 <= m <= 512), ("M to 16", lambda m: m < 17), ("all", lambda m: True)
    ):  # fmt: skip
        group = [record for record in records if chosen(record["m"])]
        if not group:
            continue
        least = min(group, key=lambda record: record["ratio"])
        print(
            f"{kind}, {name}: {len(group)} shapes, geometric mean of the ratios {geometric_mean(group):.3f},"
            f" least {least['ratio']:.3f} ({least['case']}); tuned {geometric_mean(group, 'tuned_ratio'):.3f}"
        )
        if "rank" in group[0]:
            error, rank, lost = (statistics.median(abs(r[key]) for r in group) for key in ("prediction_error", "rank", "lost"))
            print(f"  choices: median error of the prediction {error:.1%}, median rank {rank:.0f}, lost to the best candidate {lost:.1%} in the median")


def geometric_mean(records, key="ratio"):
    return math.exp(sum(math.log(record[key]) for record in records) / len(records))


def main():
    options = arguments()
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    entry = EntryPoints(options.build)
    timer, lt, run = Timer(), CublasLt(), stamp("./run gpu bench")
    for kind in options.types:
        records = []
        for shape in random_gemms(options.random, options.seed, MULTIPLES[kind]) if options.random else SHAPES:
            if shape[0] <= options.largest_m:
                problem = Problem(entry, kind, *shape)
                if (measured := measure(problem, timer, lt, options.rounds)) is None:
                    continue
                records.append(run | measured)
                if options.random:
                    records[-1]["benchmark"] += " random"
                    records[-1]["seed"] = options.seed
                if options.weigh:
                    weigh(problem, timer, options, records[-1])
                if options.record:
                    append(options.record, records[-1:])
        if options.random or options.weigh:
            summary(kind, records)
            continue
        for name, chosen in (("M >= 1024", lambda m: m >= 1024), ("M of 64 and 128", lambda m: m < 1024)):
            group = [record for record in records if chosen(record["m"])]
            if group:
                least = min(group, key=lambda record: record["ratio"])
                print(
                    f"{kind}, {name}: geometric mean of the ratios {geometric_mean(group):.3f}, least {least['ratio']:.3f} ({least['case']});"
                    f" tuned {geometric_mean(group, 'tuned_ratio'):.3f}"
                )


if __name__ == "__main__":
    main()
