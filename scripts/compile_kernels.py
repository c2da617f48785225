#!/usr/bin/env python3
"""Compiles every kernel of a build by NVRTC: compile_kernels.py TEGULA [NAME...]

TEGULA is the command; kernels whose names begin with a NAME, or all, are compiled for sm_90a, into a cache of their own. Prints what each took, and exits 1
where one spills registers. Exits 77, which CTest reads as skipped, where there is no NVRTC.
"""

import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77


def answer(command, environment):
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def main():
    tegula, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TEGULA_CACHE": folder}
        info = answer([tegula, "info"], environment)
        cache = info["kernel_cache"]
        if "no_compiler" in cache:
            print(f"skipped: {cache['no_compiler']}")
            sys.exit(SKIPPED)
        made = [
            kernel
            for name in names or info["kernels"]
            for kernel in answer([tegula, "compile", name, "--arch", "sm_90a"], environment)
        ]
    for kernel in made:
        print(f"{kernel['seconds']:7.2f} s {kernel['registers']:4} registers {kernel['spilled_bytes']:5} spilled  {kernel['name']}")
    spilling = sum(kernel["spilled_bytes"] > 0 for kernel in made)
    print(f"{len(made)} kernels, {spilling} spill; {cache['compiler']}")
    sys.exit(1 if spilling or not made else 0)


if __name__ == "__main__":
    main()
