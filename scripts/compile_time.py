#!/usr/bin/env python3
"""How long each kernel configuration takes to compile, and how much memory, against an empty kernel.

    compile_time.py BUILD [--sample N] [--runs R] [--noted] [--check] [--record FILE]

BUILD is a build folder configured with TEGULA_CUDA whose kernels have been compiled. Each file is compiled alone, with the very command of
the build, R times (2), each right after the empty kernel (bench/compile_time/empty_kernel.cu) with the same flags; likewise the layouts
benchmark. The best run's time counts, and the median of the ratios to the empty kernel, up to 7 of them where it is over the limit. Ratios
are of processor time, which a busy machine changes less than wall time; both are recorded.

--sample N  only the N configurations that took longest when BUILD was built
--noted     what the build noted of a configuration's compile counts as a run of it: it is compiled again only where that is over the limit
--check     fail when a configuration takes more than 8 times the empty kernel or 1 GB, or the layouts benchmark more than 1.5 times
--record    append JSON lines: date, commit, file, seconds, processor seconds, ratio, peak megabytes
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
EMPTY = ROOT / "bench/compile_time/empty_kernel.cu"
LAYOUTS = ROOT / "bench/compile_time/layouts_in_seven_kernels.cu"
CONFIGURATION_LIMIT = 8.0  # times the empty kernel's compile
LAYOUTS_LIMIT = 1.5
MEMORY_LIMIT_MB = 1024
# Of a file that is over its limit: a busy machine slows some of them.
MOST_RUNS = 7


def kernel_commands(build):
    """(file, command, what the build noted) of every CUDA file of the library that holds tensor-core kernels, slowest first.
    Not of tests and probes: several of their kernels may share a file."""
    with open(build / "compile_commands.json", encoding="utf-8") as file:
        entries = json.load(file)
    found = []
    for entry in entries:
        command = shlex.split(entry["command"])
        if not entry["file"].endswith(".cu") or "/src/device/" not in entry["file"] or "-o" not in command:
            continue
        note = build / (command[command.index("-o") + 1] + ".report.json")
        if not note.exists():
            continue
        with open(note, encoding="utf-8") as file:
            report = json.load(file)
        if any(kernel["instructions"]["mma"] or kernel["instructions"]["wgmma"] for kernel in report["kernels"].values()):
            # A note of an older build has no processor time; its wall time is no less.
            noted = (report["seconds"], report.get("processor_seconds", report["seconds"]), report["peak_kb"] / 1024)
            found.append((pathlib.Path(entry["file"]), command, noted))
    return sorted(found, key=lambda item: -item[2][0])


def command_for(command, file, output):
    """The build's command with another input and output, without the launcher and the dependency file."""
    start = next(index for index, word in enumerate(command) if pathlib.Path(word).name == "nvcc")
    words = iter(command[start:])
    kept = []
    for word in words:
        if word in ("-o", "-c", "-MF", "-MT", "-x"):
            next(words)
        elif word not in ("-MD", "-MMD"):
            kept.append(word)
    return kept + ["-x", "cu", "-c", str(file), "-o", output]


def measure(command, file):
    """One compile: wall seconds, processor seconds, peak megabytes of its largest process."""
    with tempfile.TemporaryDirectory(prefix="compile_time_") as folder:
        start = time.monotonic()
        process = subprocess.Popen(command_for(command, file, os.path.join(folder, "out.o")), cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
    if status != 0:
        sys.exit(f"compile_time: {file} does not compile")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def best(measurements):
    return tuple(min(column) for column in zip(*measurements))


class Timed:
    """A file's compiles, each beside one of the empty kernel right before it, so that what slows the machine slows both: as many as
    `runs`, and more while they are over the limit. Of a file whose build `noted` its compile, within the limit, none."""

    def __init__(self, command, file, limit, runs, empty, noted=None):
        self.file, self.limit = file, limit
        if noted and noted[1] <= limit * empty[1]:
            self.best, self.ratio = noted, noted[1] / empty[1]
            return
        own, ratios = [], []
        while len(own) < runs or (statistics.median(ratios) > limit and len(own) < MOST_RUNS):
            beside = measure(command, EMPTY)
            own.append(measure(command, file))
            ratios.append(own[-1][1] / beside[1])
        self.best, self.ratio = best(own), statistics.median(ratios)


def git_commit():
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--runs", type=int, default=2, metavar="R")
    parser.add_argument("--noted", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()

    build = args.build.resolve()
    configurations = kernel_commands(build)
    if not configurations:
        sys.exit(f"compile_time: {build} holds no compiled tensor-core kernel: build the target tegula_cuda_all first")
    flags = configurations[0][1]
    jobs = [(LAYOUTS, flags, LAYOUTS_LIMIT, None)]
    jobs += [(file, command, CONFIGURATION_LIMIT, noted if args.noted else None) for file, command, noted in configurations[: args.sample]]

    empty = best([measure(flags, EMPTY) for _ in range(args.runs + 1)])
    timed = [Timed(command, file, limit, args.runs, empty, noted) for file, command, limit, noted in jobs]
    print(f"{'seconds':>8} {'times':>6} {'limit':>6} {'MB':>6}  file")
    print(f"{empty[0]:8.2f} {1:6.1f} {'':>6} {empty[2]:6.0f}  {EMPTY.name}")
    wrong = 0
    records = [{"file": EMPTY.name, "seconds": empty[0], "processor_seconds": empty[1], "ratio": 1.0, "peak_mb": empty[2]}]
    for one in timed:
        (seconds, processor, peak), ratio, file, limit = one.best, one.ratio, one.file, one.limit
        over = ratio > limit or peak > MEMORY_LIMIT_MB
        wrong += over
        print(f"{seconds:8.2f} {ratio:6.1f} {limit:6.1f} {peak:6.0f}  {file.name}{'  OVER THE LIMIT' if over else ''}")
        records.append({"file": file.name, "seconds": seconds, "processor_seconds": processor, "ratio": ratio, "peak_mb": peak})
    if args.record:
        stamp = {"date": datetime.date.today().isoformat(), "commit": git_commit()}
        with open(args.record, "a", encoding="utf-8") as file:
            for record in records:
                rounded = {key: round(value, 2) if isinstance(value, float) else value for key, value in record.items()}
                file.write(json.dumps(stamp | rounded) + "\n")
    return 1 if args.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
