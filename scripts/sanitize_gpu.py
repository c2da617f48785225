#!/usr/bin/env python3
"""compute-sanitizer over the kernel tests, on the GPU: sanitize_gpu.py BUILD

Runs each kernel's tests under memcheck, racecheck and synccheck, each of which exits with 1 when it finds anything. Tests that run on the
simulated machine alone are left out. Prints one line a run and the output of those that failed; exits 1 if any did.
"""

import os
import pathlib
import subprocess
import sys
import time

TOOLS = ("memcheck", "racecheck", "synccheck")
TESTS = ("tests/kernel/attention_sm80_test", "tests/kernel/gemm_sm80_test")
SIMULATED_ONLY = "-*EverySchedule:*NoBankConflicts"
SECONDS_PER_RUN = 540


def sanitize(tool, executable):
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "1", executable, "--gtest_brief=1", f"--gtest_filter={SIMULATED_ONLY}"]
    start = time.monotonic()
    try:
        environment = os.environ | {"TEGULA_TEST_DEVICE": "cuda"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_PER_RUN, check=False, env=environment)
        output = done.stdout + done.stderr
        clean = done.returncode == 0 and "[  PASSED  ]" in output
    except subprocess.TimeoutExpired:
        clean, output = False, f"not finished after {SECONDS_PER_RUN} s"
    passed = [line for line in output.splitlines() if "PASSED" in line]
    print(f"{'clean' if clean else 'FAILED':6} {tool:9} {executable.name} ({time.monotonic() - start:.0f} s) {' '.join(passed)}", flush=True)
    if not clean:
        print(output[-6000:])
    return clean


def main():
    executables = [pathlib.Path(sys.argv[1]) / test for test in TESTS]
    missing = [str(executable) for executable in executables if not executable.is_file()]
    if missing:
        sys.exit(f"sanitize_gpu: not built: {', '.join(missing)}")
    results = [sanitize(tool, executable) for executable in executables for tool in TOOLS]
    print(f"{sum(results)} runs clean, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
