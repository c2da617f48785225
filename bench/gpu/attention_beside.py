#!/usr/bin/env python3
"""tegula's attention beside its peers in one process:
attention_beside.py BUILD [--type bf16|e4m3] [--fast-sums] [--config N] [--fa3 LIBRARY] [--record FILE] [--rounds N] [--random N --seed S] [--decode]

Forward, bf16 or e4m3, at the shapes of FlashAttention's papers (16384 tokens, heads * head_dim =
2048; from 16384 keys on one sequence), head dims 64, 128 and 256, without a mask and causal; or,
with --random, problems like those of models, drawn by the seed: batch, heads and heads of keys, 64
to 32768 queries and keys, odd ones included. The peers are PyTorch's cuDNN and FlashAttention-2
back ends and, where LIBRARY is given, FlashAttention-3: a shared library with fa3_fwd(head_dim, q,
k, v, o, lse, batch, heads, kv_heads, seq_q, seq_k, causal, counter, stream) over its kernels, built
elsewhere. With --type e4m3 the peers are tegula's own bf16 and, where LIBRARY has it,
FlashAttention-3 by fa3_fwd_e4m3, which takes q_descale, k_descale and v_descale, pointers to one
factor each, after lse. --fast-sums has the tensor core add up O, as FlashAttention-3 does; --config
N, with --head-dims, times a configuration that is not chosen. Each result is first held against a
peer's, after its output was poisoned. Launches alternate, each timed
by events after the L2 cache was flushed; medians are shown, and the ratio to the fastest peer.

With --decode: one query of 64 heads over keys of 8, head dim 128, 8192 to 131072 keys, batches of
1 to 64, K and V contiguous and in shuffled pages; and sequences of unlike lengths in pages. The
figure is GB/s of K and V, beside what a copy of as many bytes reads and writes in the same run, and
beside PyTorch's scaled_dot_product_attention where it computes the problem.
"""

import argparse
import ctypes
import math
import random
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from measurement import EntryPoints, append, stamp
from timing import Timer

TOKENS = 16384
FAST_SUMS = -2  # of entry_points.cpp
WIDTH = 2048
# of queries, and of keys, in models
HEADS = [(32, 32), (32, 8), (64, 8), (16, 16), (40, 8), (28, 4), (12, 12), (24, 2), (8, 1)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the folder of a CUDA build")
    parser.add_argument("--fa3", help="a shared library of FlashAttention-3's kernels")
    parser.add_argument("--type", choices=["bf16", "e4m3"], default="bf16", help="of Q, K and V (default bf16)")
    parser.add_argument("--config", type=int, default=-1, help="with e4m3: a configuration of attention_sm90 instead of the chosen one")
    parser.add_argument("--fast-sums", action="store_true", help="with e4m3: sums in the tensor core's accumulators, not in f32")
    parser.add_argument("--record", help="append JSON lines to this file")
    parser.add_argument("--rounds", type=int, default=11, help="timed launches of each (default 11)")
    parser.add_argument("--head-dims", type=int, nargs="*", default=[64, 128, 256])
    parser.add_argument("--random", type=int, metavar="N", help="so many random problems instead of the list")
    parser.add_argument("--decode", action="store_true", help="one query of grouped heads over many keys, as when tokens are generated")
    parser.add_argument("--page-sizes", type=int, nargs="*", default=[16, 64, 256], help="of --decode (default 16, 64, 256)")
    parser.add_argument("--seed", type=int, default=0, help="of the random problems (default 0)")
    return parser.parse_args()


def listed(head_dims):
    for head_dim in head_dims:
        for causal in (False, True):
            for exponent in range(9, 16):
                seq = 1 << exponent
                heads = WIDTH // head_dim
                yield max(1, TOKENS // seq), heads, heads, seq, seq, head_dim, causal


def drawn(count, seed, head_dims):
    generator = random.Random(seed)
    for _ in range(count):
        heads, kv_heads = generator.choice(HEADS)
        seq = round(math.exp(generator.uniform(math.log(64), math.log(32768))))
        if generator.random() < 0.5:
            seq = max(64, seq // 64 * 64)
        most = max(1, (1 << 17) // seq)  # tokens in all
        yield generator.randint(1, min(most, 32)), heads, kv_heads, seq, seq, generator.choice(head_dims), generator.random() < 0.5


class Problem:
    """Of bf16."""

    def __init__(self, entry, fa3, batch, heads, kv_heads, seq_q, seq_k, head_dim, causal):
        def tensor(seq, count):
            return torch.randn(batch, seq, count, head_dim, device="cuda", dtype=torch.bfloat16)

        self.q, self.k, self.v = tensor(seq_q, heads), tensor(seq_k, kv_heads), tensor(seq_k, kv_heads)
        self.out = torch.full_like(self.q, float("nan"))
        self.entry, self.fa3, self.causal = entry, fa3, causal
        self.sizes = (batch, heads, kv_heads, seq_q, seq_k, head_dim)
        # With a mask: pairs of a query and a key that it sees, for as many of one as of the other.
        self.flops = 4 * batch * heads * seq_q * seq_k * head_dim * (0.5 if causal else 1)

    def ours(self):
        self.entry("tegula_bench_attention", self.q, self.k, self.v, self.out, *self.sizes, int(self.causal))

    def pytorch(self, backend):
        def launch():
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    *(x.transpose(1, 2) for x in (self.q, self.k, self.v)), is_causal=self.causal, enable_gqa=self.q.shape[2] != self.k.shape[2]
                )

        return launch

    def flash_attention_3(self):
        batch, heads, kv_heads, seq_q, seq_k, head_dim = self.sizes
        out, lse = torch.empty_like(self.q), torch.empty(batch, heads, seq_q, device="cuda")
        counter = torch.zeros(64, dtype=torch.int32, device="cuda")

        def launch():
            pointers = [ctypes.c_void_p(x.data_ptr()) for x in (self.q, self.k, self.v, out, lse)]
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            failed = self.fa3.fa3_fwd(
                head_dim, *pointers, batch, heads, kv_heads, seq_q, seq_k, int(self.causal), ctypes.c_void_p(counter.data_ptr()), stream
            )
            if failed:
                raise RuntimeError(f"fa3_fwd returns {failed}")
            return out.transpose(1, 2)

        return launch

    def candidates(self):
        candidates = {
            "cuDNN": self.pytorch(SDPBackend.CUDNN_ATTENTION),
            "FlashAttention-2": self.pytorch(SDPBackend.FLASH_ATTENTION),
        }
        if self.fa3 is not None:
            candidates["FlashAttention-3"] = self.flash_attention_3()
        return candidates

    def peers(self):
        """Those that compute the problem, by name."""
        found = {}
        for name, launch in self.candidates().items():
            try:
                launch()
                torch.cuda.synchronize()
                found[name] = launch
            except RuntimeError:
                pass
        return found


class Fp8Problem(Problem):
    """Of e4m3: values of about 1, with a factor for each operand, as a model's quantised tensors have."""

    FACTORS = (0.5, 0.25, 2.0)

    def __init__(self, entry, fa3, *sizes, config):
        super().__init__(entry, fa3, *sizes)
        self.config = config
        self.factors = [torch.tensor([factor], device="cuda") for factor in self.FACTORS]
        self.narrow = [(x.float() / f).clamp(-448, 448).to(torch.float8_e4m3fn) for x, f in zip((self.q, self.k, self.v), self.FACTORS)]
        # bf16 holds what e4m3 does: the peers compute the same problem.
        self.q, self.k, self.v = ((x.float() * f).to(torch.bfloat16) for x, f in zip(self.narrow, self.FACTORS))

    def ours(self):
        self.entry("tegula_bench_attention_e4m3", *self.narrow, *self.factors, self.out, *self.sizes, int(self.causal), self.config)

    def ours_in_bf16(self):
        out = torch.empty_like(self.q)

        def launch():
            self.entry("tegula_bench_attention", self.q, self.k, self.v, out, *self.sizes, int(self.causal))
            return out.transpose(1, 2)

        return launch

    def flash_attention_3(self):
        batch, heads, kv_heads, seq_q, seq_k, head_dim = self.sizes
        out, lse = torch.empty_like(self.q), torch.empty(batch, heads, seq_q, device="cuda")
        counter = torch.zeros(64, dtype=torch.int32, device="cuda")

        def launch():
            pointers = [ctypes.c_void_p(x.data_ptr()) for x in (*self.narrow, out, lse, *self.factors)]
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            failed = self.fa3.fa3_fwd_e4m3(
                head_dim, *pointers, batch, heads, kv_heads, seq_q, seq_k, int(self.causal), ctypes.c_void_p(counter.data_ptr()), stream
            )
            if failed:
                raise RuntimeError(f"fa3_fwd_e4m3 returns {failed}")
            return out.transpose(1, 2)

        return launch

    def candidates(self):
        candidates = {"bf16": self.ours_in_bf16()}
        if self.fa3 is not None and hasattr(self.fa3, "fa3_fwd_e4m3"):
            candidates["FlashAttention-3"] = self.flash_attention_3()
        return candidates


def error_of(problem, expected, e4m3):
    """How far the result is from a peer's, and how far it may be: of e4m3 as the root of the mean square, in units of the result's."""
    difference = problem.out.float() - expected
    if not e4m3:
        return difference.abs().max().item(), 0.05
    # P is rounded to 4 bits: errors of at most 6 %, and about 2 % in the mean; the sums' 13 bits add to that where there are many keys.
    return (difference.square().mean() / expected.square().mean()).sqrt().item(), 0.1


DECODED = [(batch, seq) for seq in (8192, 32768, 131072) for batch in (1, 4, 16, 64) if batch * seq <= 1 << 21]
DECODE_HEADS, DECODE_KV_HEADS, DECODE_DIM = 64, 8, 128


class Decoding:
    """One query for each sequence over K and V, (batch, seq, heads, dim), or in pages of (pages, page_size, heads, dim)."""

    def __init__(self, entry, batch, seq, page_size=0, lengths=None):
        self.entry, self.batch, self.seq, self.page_size, self.lengths = entry, batch, seq, page_size, lengths
        self.q = torch.randn(batch, 1, DECODE_HEADS, DECODE_DIM, device="cuda", dtype=torch.bfloat16)
        self.k, self.v = (torch.randn(batch, seq, DECODE_KV_HEADS, DECODE_DIM, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        self.out = torch.full_like(self.q, float("nan"))
        self.used = None if lengths is None else torch.tensor(lengths, device="cuda", dtype=torch.int32)
        self.pages, self.table, self.k_pages, self.v_pages = 0, None, self.k, self.v
        if page_size:
            self.pages = batch * seq // page_size
            order = torch.randperm(self.pages, device="cuda")
            self.table = order.to(torch.int32).view(batch, seq // page_size)
            self.k_pages, self.v_pages = (self.shuffled(x, order) for x in (self.k, self.v))
        sizes = (batch, DECODE_HEADS, DECODE_KV_HEADS, 1, seq, DECODE_DIM)
        wanted = entry.number("tegula_bench_attention_workspace", *sizes, int(lengths is not None), self.pages, page_size)
        self.workspace = torch.empty(max(wanted, 16), dtype=torch.uint8, device="cuda")
        self.arguments = (ctypes.c_longlong(wanted), *sizes, self.pages, page_size)
        tokens = batch * seq if lengths is None else sum(lengths)
        self.bytes = 2 * tokens * DECODE_KV_HEADS * DECODE_DIM * 2

    def shuffled(self, x, order):
        pages = x.view(self.pages, self.page_size, DECODE_KV_HEADS, DECODE_DIM)
        moved = torch.empty_like(pages)
        moved[order] = pages
        return moved

    def ours(self):
        def address(x):
            return ctypes.c_void_p(0 if x is None else x.data_ptr())

        operands = (self.q, self.k_pages, self.v_pages, self.out)
        self.entry("tegula_bench_attention_decode", *operands, address(self.used), address(self.table), self.workspace, *self.arguments)

    def pytorch(self):
        return torch.nn.functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (self.q, self.k, self.v)), enable_gqa=True)

    def expected(self):
        """In f32, sequence by sequence."""
        rows = []
        for b in range(self.batch):
            keys = self.seq if self.lengths is None else self.lengths[b]
            q = self.q[b, 0].float().view(DECODE_KV_HEADS, -1, DECODE_DIM)
            k, v = (x[b, :keys].float().transpose(0, 1) for x in (self.k, self.v))
            weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(DECODE_DIM), dim=-1)
            rows.append((weights @ v).view(1, DECODE_HEADS, DECODE_DIM))
        return torch.stack(rows)


def decode(options, entry, timer, run):
    """Measures decoding; the records."""
    records, generator = [], random.Random(options.seed)
    problems = [(batch, seq, page_size, None) for batch, seq in DECODED for page_size in (0, *options.page_sizes)]
    for page_size in options.page_sizes:
        lengths = [max(1, round(math.exp(generator.uniform(math.log(64), math.log(32768))))) for _ in range(32)]
        problems.append((32, 32768, page_size, lengths))
    for batch, seq, page_size, lengths in problems:
        problem = Decoding(entry, batch, seq, page_size, lengths)
        keys = f"S {seq}" if lengths is None else f"S to {seq}, {sum(lengths)} in all"
        case = f"{batch} x {keys}, " + (f"pages of {page_size}" if page_size else "contiguous")
        problem.ours()
        expected = problem.expected()
        error = ((problem.out.float() - expected).abs().max() / expected.abs().max()).item()
        del expected
        if not error < 0.02:
            raise SystemExit(f"decoding, {case}: differs by {error} of the largest element")
        # A copy reads and writes as many bytes in all as K and V have.
        source = torch.empty(problem.bytes // 2, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        functions = [problem.ours, lambda source=source, target=target: target.copy_(source)]
        if lengths is None and not page_size:
            functions.append(problem.pytorch)
        ours, copied, *theirs = (problem.bytes / s / 1e9 for s in timer.medians(functions, options.rounds, warm_ups=2))
        peer = f"  PyTorch {theirs[0]:5.0f}" if theirs else ""
        print(f"{case:48} {ours:5.0f} GB/s  copy {copied:5.0f}{peer}  of the copy's {ours / copied:.3f}", flush=True)
        records.append(
            run
            | {"benchmark": "attention_sm90 decoding", "case": case, "value": ours, "unit": "GB/s", "peer": "copy", "peer_value": copied}
            | ({"peers": {"PyTorch": theirs[0]}} if theirs else {})
        )
        del problem, source, target, functions
    return records


def main():
    options = arguments()
    e4m3 = options.type == "e4m3"
    torch.manual_seed(options.seed)
    entry = EntryPoints(options.build)
    fa3 = ctypes.CDLL(options.fa3) if options.fa3 else None
    timer, run, records, ratios = Timer(), stamp("./run gpu bench"), [], {}
    if options.decode:
        records = decode(options, entry, timer, run)
        if options.record:
            append(options.record, records)
        return
    problems = drawn(options.random, options.seed, options.head_dims) if options.random else listed(options.head_dims)
    sums = " fast sums" if options.fast_sums else ""
    benchmark = "attention_sm90" + (" e4m3" + sums + (" beside FlashAttention-3" if options.fa3 else "") if e4m3 else "")
    for sizes in problems:
        problem = Fp8Problem(entry, fa3, *sizes, config=FAST_SUMS if options.fast_sums else options.config) if e4m3 else Problem(entry, fa3, *sizes)
        batch, heads, kv_heads, seq_q, _, head_dim, causal = sizes
        group = f"D {head_dim}{', causal' if causal else ''}"
        case = f"{group}, S {seq_q}" + (f", {batch} x {heads}/{kv_heads} heads" if options.random else "")
        peers = problem.peers()
        problem.ours()
        expected = next(iter(peers.values()))().transpose(1, 2).float()
        error, most = error_of(problem, expected, e4m3)
        del expected
        if not error < most:
            raise SystemExit(f"attention, {case}: differs from {next(iter(peers))} by {error}")
        seconds = timer.medians([problem.ours, *peers.values()], options.rounds, warm_ups=2)
        ours, *theirs = (problem.flops / s / 1e12 for s in seconds)
        by_peer = dict(zip(peers, theirs))
        best = max(by_peer, key=by_peer.get)
        ratios.setdefault("random" if options.random else group, []).append(ours / by_peer[best])
        shown = "  ".join(f"{name} {value:4.0f}" for name, value in by_peer.items())
        print(f"{case:40} {ours:5.0f} TFLOP/s  {shown}  ratio {ours / by_peer[best]:.3f}", flush=True)
        records.append(
            run
            | {"benchmark": benchmark + (" random" if options.random else ""), "case": case, "value": ours, "unit": "TFLOP/s"}
            | {"peer": best, "peer_value": by_peer[best], "peers": by_peer}
        )
    for group, values in ratios.items():
        print(f"{group}: geometric mean of the ratios {math.exp(statistics.fmean(map(math.log, values))):.3f}, least {min(values):.3f}")
    if options.record:
        append(options.record, records)


if __name__ == "__main__":
    main()
