#!/usr/bin/env python3
"""Compiles every kernel of a build by NVRTC: compile_kernels.py TEGULA [NAME...]

TEGULA is the command. Kernels whose names begin with a NAME, or all, are compiled into a cache of
their own: those of sm_100 for sm_100a, others for sm_90a. Prints what each took, and exits 1 where
one spills more than a few registers (docs/decisions.md, 72). Exits 77, which CTest reads as
skipped, where there is no NVRTC.
"""

import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
MOST_SPILLED_BYTES = 256  # stored and loaded by a thread


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
            for kernel in answer([tegula, "compile", name, "--arch", "sm_100a" if "sm100" in name else "sm_90a"], environment)
        ]
    for kernel in made:
        print(f"{kernel['seconds']:7.2f} s {kernel['registers']:4} registers {kernel['spilled_bytes']:5} spilled  {kernel['name']}")
    spilled = [kernel["spilled_bytes"] for kernel in made]
    print(f"{len(made)} kernels, {sum(n > 0 for n in spilled)} spill; {cache['compiler']}")
    sys.exit(1 if not made or max(spilled) > MOST_SPILLED_BYTES else 0)


if __name__ == "__main__":
    main()
