#!/usr/bin/env python3
"""What of the GPU's units the kernels of sm_90 use, and what their warps wait for, by Nsight Compute:
profile_kernels.py BUILD [--record FILE] [--families gemm attention attention-e4m3 grouped]

Profiles one launch of tegula's kernel for each problem, at the clocks that the GPU chooses, and records as JSON lines what of the cycles each
unit is busy, and for each stall reason the warps that wait for it whenever an instruction is issued. Does nothing where there is no ncu or
it may not read the counters. (--launch FAMILY launches that family's problems, one after another, and nothing else: it is what ncu runs.)
"""

import argparse
import csv
import functools
import re
import shutil
import subprocess
import sys

import torch

import attention_beside
import gemm_beside_cublas
import grouped_beside
from measurement import EntryPoints, append, stamp

SECTIONS = ["WarpStateStats", "LaunchStats"]
METRICS = {  # of ncu, and what the page calls them
    "gpu__time_duration.sum": "duration",
    "sm__cycles_elapsed.avg.per_second": "clock of the multiprocessors",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": "tensor cores",
    "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active": "special functions (XU)",
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active": "f32 multiply-adds (FMA)",
    "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active": "integers, comparisons, conversions (ALU)",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "cycles in which a scheduler issues",
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "L1 and shared memory",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "L2",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory",
    "launch__registers_per_thread": "registers a thread at launch",
}
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio")


def gemm_cases(entry):
    for kind in ("bf16", "fp8"):
        yield f"{kind}, 16384 x 16384 x 16384", gemm_beside_cublas.Problem(entry, kind, 16384, 16384, 16384).ours


def attention_cases(entry, make=attention_beside.Problem, head_dims=(64, 128, 256)):
    for head_dim in head_dims:
        for causal in (False, True):
            heads = attention_beside.WIDTH // head_dim
            problem = make(entry, None, 2, heads, heads, 8192, 8192, head_dim, causal)
            yield f"D {head_dim}{', causal' if causal else ''}", problem.ours


def e4m3_cases(entry):
    for sums, number in (("", -1), (", fast sums", attention_beside.FAST_SUMS)):
        make = functools.partial(attention_beside.Fp8Problem, config=number)
        for name, launch in attention_cases(entry, make, (128,)):
            yield name + sums, launch


def grouped_cases(entry):
    wanted = ("dense 4096 x 7168 x 16384", "dense 4096 x 7168 x 2048", "contiguous 8 x 4096 x 7168 x 2048", "k 4 x 7168 x 2048 x 8192")
    for part in (grouped_beside.dense, grouped_beside.contiguous, grouped_beside.by_k):
        for problem in part(entry, None):
            if problem.name in wanted:
                yield problem.name, problem.launch()


# The benchmark's name, and its problems.
FAMILIES = {
    "gemm": ("gemm_sm90 profile", gemm_cases),
    "attention": ("attention_sm90 profile", attention_cases),
    "attention-e4m3": ("attention_sm90 e4m3 profile", e4m3_cases),
    "grouped": ("grouped_gemm_sm90 profile", grouped_cases),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the folder of a CUDA build")
    parser.add_argument("--record", help="append JSON lines to this file")
    parser.add_argument("--families", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--launch", metavar="FAMILY", choices=FAMILIES, help="launch a family's problems, for ncu")
    return parser.parse_args()


def launch_all(build, family):
    """Each problem's launch, and a line with its name for the caller."""
    for name, launch in FAMILIES[family][1](EntryPoints(build)):
        torch.cuda.synchronize()
        launch()
        torch.cuda.synchronize()
        print(f"launched: {name}", flush=True)


def profile(build, family):
    """(problem, metric -> (value, unit)) of each launch; none, with the reason said, where ncu profiles nothing."""
    command = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--kernel-name", "regex:^(?:grouped_)?(?:gemm|attention)_sm90"]
    command += [part for section in SECTIONS for part in ("--section", section)]
    command += ["--metrics", ",".join(METRICS), sys.executable, __file__, str(build), "--launch", family]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    names = re.findall(r"^launched: (.*)$", done.stdout, re.MULTILINE)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode != 0 or not names or len(lines) != 2 + len(names):
        print(f"ncu profiled nothing (exit status {done.returncode}):\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return []
    metrics, units, *launches = csv.reader(lines)
    return [(name, {metric: (value, unit) for metric, unit, value in zip(metrics, units, values)}) for name, values in zip(names, launches)]


def records_of(problem, raw):
    def record(kind, name, metric):
        text, unit = raw[metric]
        return {"problem": problem, "kind": kind, "case": name, "metric": metric, "value": float(text.replace(",", "")), "unit": unit}

    records = [record("throughput", name, metric) for metric, name in METRICS.items() if raw.get(metric, ("", ""))[0] not in ("", "n/a")]
    for metric in raw:
        match = STALL.fullmatch(metric)
        if match and not match[1].endswith("_not_issued"):
            records.append(record("stall", match[1].replace("_", " "), metric))
    return records


def main():
    options = arguments()
    if options.launch:
        launch_all(options.build, options.launch)
        return
    if shutil.which("ncu") is None:
        print("no ncu here: no profile")
        return
    run = stamp("./run gpu bench")
    for family in options.families:
        what = {"benchmark": FAMILIES[family][0]}
        records = [run | what | record for problem, raw in profile(options.build, family) for record in records_of(problem, raw)]
        for record in records:
            print(f"{record['problem']:36} {record['kind']:10} {record['case']:44} {record['value']:10.2f} {record['unit']}")
        if options.record and records:
            append(options.record, records)


if __name__ == "__main__":
    main()
