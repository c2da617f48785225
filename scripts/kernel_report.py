#!/usr/bin/env python3
"""What every CUDA kernel of a build uses, and whether that is as it must be.

    kernel_report.py BUILD [--check] [--json]

Reads the notes that nvcc_report.py left beside the objects under BUILD. --check fails (exit status 1, one line a fault) when a kernel
has a stack frame, a spill or a call that was not inlined, or when a tensor-core kernel (its name says so: REQUIRED) lacks the
instructions it is built from.
"""

import argparse
import glob
import json
import os
import sys

LIMITS = {"stack": "a stack frame", "spill_stores": "spill stores", "spill_loads": "spill loads"}
REQUIRED = {  # what a kernel is built from, by what its name says; of several between bars, one
    "sm80": ("mma", "ldmatrix", "bar_sync"),
    "gemm_sm90": ("wgmma", "tma_load", "tma_store|st_global_v4"),  # transposed, D leaves from registers
    "grouped_gemm_sm90": ("wgmma", "tma_load"),
    "attention_sm90": ("wgmma", "tma_load"),
    "attention_sm100": ("tcgen05_mma", "tma_load"),
    "gemm_sm100": ("tcgen05_mma", "tma_load", "tma_store"),
    "grouped_gemm_sm100": ("tcgen05_mma", "tma_load"),
    "scaled_gemm_sm100": ("tcgen05_mma_scaled", "tcgen05_cp", "tma_load", "tma_store"),
}
REGISTERS = 65536  # of a multiprocessor


def read_kernels(build):
    """Every kernel noted under `build`, sorted by name, with the object it is in."""
    rows = []
    for path in glob.glob(os.path.join(build, "**", "*.report.json"), recursive=True):
        with open(path, encoding="utf-8") as file:
            note = json.load(file)
        for mangled, kernel in note["kernels"].items():
            kernel.setdefault("name", mangled)
            kernel["object"] = os.path.relpath(path, build).removesuffix(".report.json")
            rows.append(kernel)
    return sorted(rows, key=lambda kernel: kernel["name"])


def faults(kernel):
    """What is wrong with one kernel, as phrases."""
    found = [f"{kernel[key]} bytes of {what}" for key, what in LIMITS.items() if kernel.get(key)]
    for key in ("registers", "stack"):
        if kernel.get(key) is None:
            found.append(f"ptxas reported no {key}")
    if kernel.get("wgmma_remarks"):
        found.append(f"ptxas waits for wgmma where the kernel does not ({', '.join(sorted(set(kernel['wgmma_remarks'])))})")
    counts = kernel.get("instructions")
    if counts is None:
        return found + ["no PTX was seen"]
    if counts["call"]:
        found.append(f"{counts['call']} calls that were not inlined")
    family = max((word for word in REQUIRED if word in kernel["name"]), key=len, default=None)
    if family is not None:
        found += [f"no {names.replace('|', ' or ')} instruction" for names in REQUIRED[family] if not any(counts[name] for name in names.split("|"))]
    if "sm90" in kernel["name"] and not counts["setmaxnreg"] and kernel["registers"] is not None:
        # A kernel at the limit of an even share is one whose consumers want more: its producer
        # gives them of its own.
        threads = kernel["threads"] or 0
        if threads > 256 and kernel["registers"] >= REGISTERS // threads // 8 * 8:
            found.append("no setmaxnreg instruction")
    return found


def print_table(kernels):
    counted = ("mma", "ldmatrix", "cp_async", "bar_sync", "wgmma", "tcgen05_mma", "tma_load", "tma_store", "setmaxnreg")
    print(f"{'registers':>9} {'spills':>6} {'stack':>5} {' '.join(counted)}  kernel")
    for kernel in kernels:
        counts = kernel.get("instructions", {})
        columns = " ".join(f"{counts.get(name, 0):>{len(name)}}" for name in counted)
        print(f"{kernel.get('registers') or 0:>9} {kernel.get('spill_stores') or 0:>6} {kernel.get('stack') or 0:>5} {columns}  {kernel['name']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a build folder configured with TEGULA_CUDA")
    parser.add_argument("--check", action="store_true", help="fail where a kernel is not as it must be")
    parser.add_argument("--json", action="store_true", help="one JSON object a kernel instead of a table")
    args = parser.parse_args()

    kernels = read_kernels(args.build)
    if args.json:
        for kernel in kernels:
            print(json.dumps(kernel))
    else:
        print_table(kernels)
    if not args.check:
        return 0
    if not kernels:
        print(f"kernel_report: no kernel was compiled under {args.build}", file=sys.stderr)
        return 1
    wrong = [(kernel["name"], fault) for kernel in kernels for fault in faults(kernel)]
    for name, fault in wrong:
        print(f"kernel_report: {name}: {fault}", file=sys.stderr)
    print(f"{len(kernels)} kernels, {len({name for name, _ in wrong})} at fault")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
