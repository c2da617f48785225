#!/usr/bin/env python3
"""A file that must not compile, and what the compiler must say about it.

    check_refusal.py FILE --compiler COMPILER --include FOLDER [--lines N]

FILE states the words expected in comments `// prints: WORDS`, in any order. Passes when the compiler refuses the file and all the words
stand in the first N lines (15) that it prints. With `// compiles` instead, passes when the compiler accepts the file.
"""

import argparse
import pathlib
import re
import subprocess
import sys


def compile_only(compiler, file, include):
    """Exit status and output of a compile that leaves nothing behind."""
    command = [compiler, "-std=c++20", f"-I{include}"]
    if pathlib.Path(compiler).name == "nvcc":
        command += ["-gencode", "arch=compute_90a,code=sm_90a", "-x", "cu", "-c", "-o", "/dev/null", str(file)]
    else:
        command += ["-fsyntax-only", "-x", "c++", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr + done.stdout


def faults(file, status, output, lines):
    text = file.read_text(encoding="utf-8")
    words = re.findall(r"^// prints: (.+)$", text, re.MULTILINE)
    if re.search(r"^// compiles$", text, re.MULTILINE):
        return [f"should compile, and the compiler exits with {status}"] if status else []
    if not words:
        return ["states no `// prints:` words"]
    if status == 0:
        return ["compiles, and should be refused"]
    head = "\n".join(output.splitlines()[:lines])
    return [f"the first {lines} lines do not print: {word}" for word in words if word not in head]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--lines", type=int, default=15)
    parser.add_argument("--include", required=True, help="where headers are found")
    args = parser.parse_args()
    status, output = compile_only(args.compiler, args.file, args.include)
    wrong = faults(args.file, status, output, args.lines)
    for fault in wrong:
        print(f"{args.file.name}: {fault}")
    if wrong:
        print("--- the compiler's output\n" + "\n".join(output.splitlines()[:60]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
