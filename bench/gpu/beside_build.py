#!/usr/bin/env python3
"""tegula beside another build of it in one process: beside_build.py BUILD OTHER --name NAME [--record FILE] [--rounds N] [--families F...]

BUILD and OTHER are folders of CUDA builds, OTHER usually of an earlier commit, NAME that commit. Every kernel family at the shapes of the
other benchmarks: attention_sm80 (16384 tokens, heads * head_dim = 2048, bf16), gemm_sm80 (bf16) and gemm_sm90 (bf16, fp8). The results must
be the same bits; launches of the two alternate, each timed by events after the L2 cache was flushed; the ratio is OTHER's median time over
BUILD's, so that more than 1 is faster than OTHER.

Compile both with -fno-gnu-unique (CMAKE_CXX_FLAGS): else the two libraries share the static variables of inline functions.
"""

import argparse
import math
import statistics

import torch

from beside_pytorch import GEMMS, TOKENS, WIDTH
from gemm_beside_cublas import SHAPES, Problem
from measurement import EntryPoints, append, stamp
from timing import Timer

FAMILIES = ("attention_sm80", "gemm_sm80", "gemm_sm90 bf16", "gemm_sm90 fp8")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the folder of a CUDA build")
    parser.add_argument("other", help="the folder of the CUDA build to compare with")
    parser.add_argument("--name", required=True, help="the other build's commit")
    parser.add_argument("--record", help="append JSON lines to this file")
    parser.add_argument("--rounds", type=int, default=21, help="timed launches of each (default 21)")
    parser.add_argument("--families", nargs="*", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--head-dims", type=int, nargs="*", default=[64, 128, 256])
    return parser.parse_args()


def attention_cases(entries, head_dims):
    for causal in (False, True):
        for head_dim in head_dims:
            for exponent in range(9, 15):
                seq = 1 << exponent
                batch, heads = TOKENS // seq, WIDTH // head_dim
                q, k, v = (torch.randn(batch, seq, heads, head_dim, device="cuda", dtype=torch.bfloat16) for _ in range(3))
                outs = [torch.full_like(q, float("nan")) for _ in entries]
                calls = [
                    lambda entry=entry, out=out: entry(entry.known("tegula_bench_attention_sm80", "tegula_bench_attention"), q, k, v, out, batch, heads, seq, head_dim, int(causal))
                    for entry, out in zip(entries, outs)
                ]
                yield f"D {head_dim}, {'causal, ' if causal else ''}S {seq}", calls, outs


def gemm_sm80_cases(entries, shapes):
    for m, n, k in shapes:
        a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
        outs = [torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16) for _ in entries]
        calls = [
            lambda entry=entry, out=out: entry("tegula_bench_gemm_sm80", a, b, out, m, n, k) for entry, out in zip(entries, outs)
        ]
        yield f"{m} x {n} x {k}", calls, outs


def gemm_sm90_cases(entries, kind, shapes):
    for shape in shapes:
        problems = [Problem(entry, kind, *shape) for entry in entries]
        for problem in problems[1:]:
            problem.a, problem.b, problem.scales = problems[0].a, problems[0].b, problems[0].scales
        yield " x ".join(map(str, shape)), [p.ours for p in problems], [p.out for p in problems]


def main():
    options = arguments()
    torch.manual_seed(0)
    entries = [EntryPoints(options.build), EntryPoints(options.other)]
    timer, run = Timer(), stamp("bench/gpu/beside_build.py")
    cases = {
        "attention_sm80": attention_cases(entries, options.head_dims),
        "gemm_sm80": gemm_sm80_cases(entries, GEMMS),
        "gemm_sm90 bf16": gemm_sm90_cases(entries, "bf16", SHAPES),
        "gemm_sm90 fp8": gemm_sm90_cases(entries, "fp8", SHAPES),
    }
    for family in options.families:
        records = []
        for case, calls, outs in cases[family]:
            for call in calls:
                call()
            torch.cuda.synchronize()
            if not torch.equal(outs[0].view(torch.int16), outs[1].view(torch.int16)):
                raise SystemExit(f"{family}, {case}: the two builds' results differ")
            mine, other = timer.medians(calls, options.rounds)
            records.append(
                run | {"benchmark": f"{family} beside {options.name}", "case": case, "value": other / mine, "unit": "ratio"}
                | {"microseconds": mine * 1e6, "other_microseconds": other * 1e6}
            )
            print(f"{family:15} {case:24} {mine * 1e6:9.1f} us, {options.name} {other * 1e6:9.1f} us  ratio {other / mine:.3f}", flush=True)
        mean = math.exp(statistics.fmean(math.log(r["value"]) for r in records))
        least = min(records, key=lambda r: r["value"])
        print(f"{family}: geometric mean {mean:.4f}, least {least['value']:.3f} ({least['case']}); all results the same bits", flush=True)
        if options.record:
            append(options.record, records)


if __name__ == "__main__":
    main()
