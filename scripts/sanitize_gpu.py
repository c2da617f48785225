#!/usr/bin/env python3
"""compute-sanitizer over the tests labelled `sanitize`, on the GPU: sanitize_gpu.py BUILD

Runs every such test executable under memcheck, racecheck and synccheck, each of which exits with 1 when it finds anything. Prints one line
a run and the output of those that failed; exits 1 if any did.
"""

import json
import os
import subprocess
import sys
import time

TOOLS = ("memcheck", "racecheck", "synccheck")
SECONDS_PER_RUN = 540


def labelled_cases(build):
    """Test case names of the labelled CTest tests, by executable."""
    listing = subprocess.run(
        ["ctest", "--test-dir", build, "--label-regex", "sanitize", "--show-only=json-v1"], capture_output=True, text=True, check=True
    )
    cases = {}
    for test in json.loads(listing.stdout)["tests"]:
        executable, *arguments = test["command"]
        names = [word.partition("=")[2] for word in arguments if word.startswith("--gtest_filter=")]
        cases.setdefault(executable, []).extend(names)
    return cases


def sanitize(tool, executable, names):
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "1", executable, f"--gtest_filter={':'.join(names) or '*'}"]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_PER_RUN, check=False, env=os.environ | {"TEGULA_TEST_DEVICE": "cuda"})
        clean, output = done.returncode == 0, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        clean, output = False, f"not finished after {SECONDS_PER_RUN} s"
    print(f"{'clean' if clean else 'FAILED':6} {tool:9} {executable} ({len(names)} cases, {time.monotonic() - start:.0f} s)", flush=True)
    if not clean:
        print(output[-6000:])
    return clean


def main():
    cases = labelled_cases(sys.argv[1])
    if not cases:
        sys.exit("sanitize_gpu: no test is labelled `sanitize`")
    results = [sanitize(tool, executable, names) for executable, names in cases.items() for tool in TOOLS]
    print(f"{sum(results)} runs clean, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
