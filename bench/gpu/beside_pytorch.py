#!/usr/bin/env python3
"""tegula's sm_80 kernels beside PyTorch's in one process: beside_pytorch.py BUILD [--record FILE] [--rounds N]

Attention at the shapes of FlashAttention's papers (16384 tokens, heads * head_dim = 2048, bf16) beside PyTorch's FlashAttention-2 back end,
the sm_80 GEMM (bf16, K-major operands) beside PyTorch's matmul (cuBLAS); and first the ceiling of mma.sync, measured on registers. Random
data; each result is first held against the peer's, after its output was poisoned. Launches of ours and of the peer alternate, each timed by
events after the L2 cache was flushed; medians are shown.
"""

import argparse
import json
import math
import statistics
import subprocess

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from measurement import EntryPoints, append, stamp
from timing import Timer

TOKENS = 16384
WIDTH = 2048
GEMMS = [(2048, 2048, 2048), (4096, 4096, 4096), (4096, 7168, 2048), (4096, 4096, 14336), (8192, 8192, 8192)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the folder of a CUDA build")
    parser.add_argument("--record", help="append JSON lines to this file")
    parser.add_argument("--rounds", type=int, default=15, help="timed launches of each (default 15)")
    parser.add_argument("--head-dims", type=int, nargs="*", default=[64, 128, 256])
    return parser.parse_args()


class Bench:
    def __init__(self, options):
        self.entry = EntryPoints(options.build)
        self.rounds = options.rounds
        self.timer = Timer()
        self.stamp = stamp("./run gpu bench")
        self.records = []

    def ceiling(self, program):
        for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
            record = json.loads(line)
            print(f"{record['benchmark']:16} {record['case']:28} {record['value']:7.0f} TFLOP/s")
            self.records.append(self.stamp | record)

    def compare(self, benchmark, case, peer, flops, ours, theirs):
        mine, other = (flops / t / 1e12 for t in self.timer.medians([ours, theirs], self.rounds))
        print(f"{benchmark:16} {case:28} {mine:7.0f} {peer} {other:7.0f} TFLOP/s  ratio {mine / other:.3f}", flush=True)
        self.records.append(
            self.stamp | {"benchmark": benchmark, "case": case, "value": mine, "unit": "TFLOP/s", "peer": peer, "peer_value": other}
        )

    def attention(self, head_dim, seq, causal):
        batch, heads = TOKENS // seq, WIDTH // head_dim
        q, k, v = (torch.randn(batch, seq, heads, head_dim, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        out = torch.full_like(q, float("nan"))

        def ours():
            self.entry("tegula_bench_attention_sm80", q, k, v, out, batch, heads, seq, head_dim, int(causal))

        def theirs():
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=causal)

        ours()
        error = (out.float() - theirs().transpose(1, 2).float()).abs().max().item()
        if not error < 0.05:
            raise SystemExit(f"attention head_dim {head_dim}, seq {seq}, causal {causal}: differs from PyTorch's by {error}")
        flops = 4 * batch * heads * seq * seq * head_dim * (0.5 if causal else 1)
        case = f"D {head_dim}, {'causal, ' if causal else ''}S {seq}"
        self.compare("attention_sm80", case, "FlashAttention-2", flops, ours, theirs)

    def gemm(self, m, n, k):
        a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
        out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)

        def ours():
            self.entry("tegula_bench_gemm_sm80", a, b, out, m, n, k)

        def theirs():
            return torch.matmul(a, b.t())

        ours()
        expected = theirs().float()
        error = ((out.float() - expected).abs().max() / expected.abs().max()).item()
        if not error < 0.01:
            raise SystemExit(f"gemm {m}x{n}x{k}: differs from PyTorch's by {error}")
        self.compare("gemm_sm80", f"{m} x {n} x {k}", "cuBLAS (wgmma)", 2 * m * n * k, ours, theirs)


def main():
    options = arguments()
    bench = Bench(options)
    bench.ceiling(f"{options.build}/bench/mma_ceiling")
    for m, n, k in GEMMS:
        bench.gemm(m, n, k)
    for causal in (False, True):
        for head_dim in options.head_dims:
            for exponent in range(9, 15):
                bench.attention(head_dim, 1 << exponent, causal)
    by_dim = {}
    for record in bench.records:
        if record["benchmark"] == "attention_sm80":
            by_dim.setdefault(record["case"].split(",")[0], []).append(record["value"] / record["peer_value"])
    for dim, ratios in by_dim.items():
        print(f"attention {dim}: geometric mean of the ratios {math.exp(statistics.fmean(map(math.log, ratios))):.3f}")
    if options.record:
        append(options.record, bench.records)


if __name__ == "__main__":
    main()
