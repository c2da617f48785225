#!/usr/bin/env python3
"""compute-sanitizer over the kernel tests, on the GPU: sanitize_gpu.py BUILD [--seconds N] [--shards N] [--tools NAME...] [--tests NAME...]

Runs each kernel's tests under memcheck, racecheck and synccheck, each of which exits with 1 when it finds anything. Tests that run on the
simulated machine alone are left out. A kernel's cases are dealt to several processes (shards) that run at once, since references
are computed on the CPU. Prints one line a run and the output of the shards that failed; exits 1 if any did.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

TOOLS = ("memcheck", "racecheck", "synccheck")
# The suites of each kernel in kernel_test.
TESTS = {
    "attention_sm80": "*Sm80Attention*:AttentionSm80.*",
    "attention_sm90": "*Sm90Attention*:AttentionSm90*",
    "gemm_sm80": "*Sm80Configuration*:GemmSm80.*",
    "gemm_sm90": "*Sm90Configuration*:GemmSm90.*:*/EveryForm*:FormsOfTwoWidths.*",
}
SIMULATED_ONLY = "-*EverySchedule:*NoBankConflicts"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the folder of a CUDA build")
    parser.add_argument("--seconds", type=int, default=540, help="limit of a run of one kernel's tests under one tool (default 540)")
    parser.add_argument("--shards", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)), help="processes of a run")
    parser.add_argument("--tools", nargs="*", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--tests", nargs="*", choices=TESTS, default=list(TESTS))
    return parser.parse_args()


def run_shard(tool, executable, suites, shard, shards, seconds):
    """Whether the shard was clean, how many tests passed in it, and what it said."""
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "1", executable, "--gtest_brief=1", f"--gtest_filter={suites}{SIMULATED_ONLY}"]
    environment = os.environ | {"TEGULA_TEST_DEVICE": "cuda", "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return False, 0, f"not finished after {seconds} s"
    output = done.stdout + done.stderr
    passed = re.search(r"\[  PASSED  \] (\d+)", output)
    return done.returncode == 0 and passed is not None, int(passed[1]) if passed else 0, output


def sanitize(tool, executable, test, options):
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.shards) as pool:
        runs = [pool.submit(run_shard, tool, executable, TESTS[test], shard, options.shards, options.seconds) for shard in range(options.shards)]
        results = [run.result() for run in runs]
    clean = all(result[0] for result in results)
    tests = sum(result[1] for result in results)
    print(f"{'clean' if clean else 'FAILED':6} {tool:9} {test} ({time.monotonic() - start:.0f} s): {tests} tests passed", flush=True)
    for good, _, output in results:
        if not good:
            print(output[-6000:])
    return clean


def main():
    options = arguments()
    executable = options.build / "tests/kernel/kernel_test"
    if not executable.is_file():
        sys.exit(f"sanitize_gpu: not built: {executable}")
    results = [sanitize(tool, executable, test, options) for test in options.tests for tool in options.tools]
    print(f"{sum(results)} runs clean, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
