#!/usr/bin/env python3
"""Compile launcher of the CUDA targets: runs nvcc and notes what came of it.

    nvcc_report.py nvcc ARGS... -c x.cu -o x.cu.o

writes `x.cu.o.report.json` beside the object: seconds, processor seconds, peak memory of the largest process, and for every kernel in the file its
registers, stack frame, spills, static shared memory, launch bound of threads and the count of the PTX instructions of COUNTED. Anything that is no
compile of one file is passed on as it is. scripts/kernel_report.py reads the notes.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

COUNTED = {
    "mma": r"\bmma\.sync\.",
    "ldmatrix": r"\bldmatrix\.sync\.",
    "cp_async": r"\bcp\.async\.c[ag]\.",
    "bar_sync": r"\b(?:bar|barrier)(?:\.cta)?\.sync\b",
    "wgmma": r"\bwgmma\.mma_async\.",
    "tcgen05_mma": r"\btcgen05\.mma\.",
    "tcgen05_mma_scaled": r"\btcgen05\.mma\.\S*\.block_scale\b",
    "tcgen05_cp": r"\btcgen05\.cp\.",
    "tma_load": r"\bcp\.async\.bulk\.tensor\.\dd\.shared::cluster\.global\b",
    "tma_store": r"\bcp\.async\.bulk\.tensor\.\dd\.global\.shared::cta\b",
    "setmaxnreg": r"\bsetmaxnreg\.",
    "ex2": r"\bex2\.approx\.",
    "ld_global_v4": r"\bld\.global(?:\.nc)?(?:\.[\w:]+)*\.v4\.",
    "st_global_v4": r"\bst\.global(?:\.[\w:]+)*\.v4\.",
    "call": r"^\s*(?:@!?%\w+\s+)?call\b",
}


def end_of_function(text, position):
    """Where the first block in braces after `position` ends; blocks nest, as inline PTX has its own."""
    depth = 0
    for brace in re.finditer(r"[{}]", text[position:]):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return position + brace.end()
    return len(text)


def kernels_in_ptx(text):
    """Counts of COUNTED in each entry function of a PTX file and the threads of its launch bound, by mangled name."""
    found = {}
    for match in re.finditer(r"\.entry\s+(\S+?)\s*\(", text):
        body = text[match.end() : end_of_function(text, match.end())]
        bound = re.search(r"\.maxntid\s+(\d+)", body)
        found[match.group(1)] = {
            "threads": int(bound.group(1)) if bound else None,
            "instructions": {name: len(re.findall(pattern, body, re.MULTILINE)) for name, pattern in COUNTED.items()},
        }
    return found


def resources_in_log(log):
    """Registers, stack, spills, static shared memory and ptxas's remarks on wgmma of each entry function in the output of `ptxas -v`, by mangled name."""
    found = {}
    for part in log.split("Compiling entry function '")[1:]:
        name = part[: part.index("'")]
        numbers = {"registers": None, "stack": None, "spill_stores": None, "spill_loads": None, "shared": 0}
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        if frame:
            numbers["stack"], numbers["spill_stores"], numbers["spill_loads"] = map(int, frame.groups())
        for key, pattern in (("registers", r"Used (\d+) registers"), ("shared", r"(\d+) bytes smem")):
            match = re.search(pattern, part)
            if match:
                numbers[key] = int(match.group(1))
        found[name] = numbers
    # "(C7520) Potential Performance Loss: ... in the function 'NAME'": what ptxas changed about a
    # kernel's wgmma stands before or after its numbers.
    for remark, name in re.findall(r"\((C75\d\d)\).*? in (?:the )?function '([^']+)'", log):
        found.setdefault(name, {}).setdefault("wgmma_remarks", []).append(remark)
    return found


def demangle(names):
    if not names or not shutil.which("c++filt"):
        return list(names)
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else list(names)


def compile_and_note(command, output):
    with tempfile.TemporaryDirectory(prefix="nvcc_report_") as kept:
        start = time.monotonic()
        done = subprocess.run(
            command + ["-Xptxas", "-v", "--keep", "--keep-dir", kept], capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        quiet = [line for line in done.stderr.splitlines() if not is_resource_line(line)]
        sys.stdout.write(done.stdout)
        sys.stderr.write("".join(line + "\n" for line in quiet))
        if done.returncode != 0:
            return done.returncode
        kernels = resources_in_log(done.stderr)
        for name in os.listdir(kept):
            if name.endswith(".ptx"):
                with open(os.path.join(kept, name), encoding="utf-8") as file:
                    for kernel, seen in kernels_in_ptx(file.read()).items():
                        kernels.setdefault(kernel, {}).update(seen)
    for name, readable in zip(kernels, demangle(list(kernels))):
        kernels[name]["name"] = readable
    note = {
        "seconds": round(seconds, 2),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_kb": used.ru_maxrss,
        "kernels": kernels,
    }
    with open(output + ".report.json", "w", encoding="utf-8") as file:
        json.dump(note, file, indent=1)
    return 0


def is_resource_line(line):
    return line.startswith("ptxas info") or "bytes stack frame" in line or line.startswith("    ") and "bytes" in line


def main():
    command = sys.argv[1:]
    if "-c" not in command or "-o" not in command:
        return subprocess.run(command, check=False).returncode
    return compile_and_note(command, command[command.index("-o") + 1])


if __name__ == "__main__":
    sys.exit(main())
