#!/usr/bin/env python3
"""Where the time of the largest GEMM goes, by Nsight Compute: profile_gemm.py BUILD [--record FILE] [--shape MxNxK] [--types bf16 fp8]

Profiles one launch of tegula's kernel (gemm_beside_cublas.py --once) at the clocks that the GPU chooses, and records as JSON lines what of
the cycles the tensor pipe is busy, the other throughputs, and for each stall reason the warps that wait for it whenever an instruction is
issued. Does nothing where there is no ncu or it may not read the counters.
"""

import argparse
import csv
import pathlib
import re
import shutil
import subprocess
import sys

from measurement import append, stamp

SECTIONS = ["SpeedOfLight", "WarpStateStats", "SchedulerStats", "LaunchStats", "Occupancy"]
METRICS = {  # of ncu, and what the page calls them
    "gpu__time_duration.sum": "duration",
    "sm__cycles_elapsed.avg.per_second": "clock of the multiprocessors",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": "tensor pipe active, of all cycles",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "throughput of the multiprocessors, of the peak",
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "throughput of L1 and shared memory, of the peak",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "throughput of L2, of the peak",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "throughput of DRAM, of the peak",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "cycles in which a scheduler issues",
    "launch__registers_per_thread": "registers a thread at launch",
    "launch__occupancy_limit_shared_mem": "CTAs a multiprocessor that shared memory allows",
}
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the folder of a CUDA build")
    parser.add_argument("--record", help="append JSON lines to this file")
    parser.add_argument("--shape", default="16384x16384x16384")
    parser.add_argument("--types", nargs="*", default=["bf16"])
    return parser.parse_args()


def profile(build, shape, kind):
    """ncu's raw page: metric -> (value, unit); empty, with the reason said, where there is none."""
    program = pathlib.Path(__file__).with_name("gemm_beside_cublas.py")
    command = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--kernel-name", "regex:gemm_sm90", "--launch-count", "1"]
    command += [part for section in SECTIONS for part in ("--section", section)]
    command += ["--metrics", ",".join(METRICS), sys.executable, str(program), str(build), "--once", shape, "--types", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode != 0 or len(lines) < 3:
        print(f"ncu profiled nothing (exit status {done.returncode}):\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return {}
    names, units, values = list(csv.reader(lines))[:3]
    return {name: (value, unit) for name, unit, value in zip(names, units, values)}


def records_of(raw):
    def record(kind, name, metric):
        text, unit = raw[metric]
        return {"kind": kind, "case": name, "metric": metric, "value": float(text.replace(",", "")), "unit": unit}

    records = [record("throughput", name, metric) for metric, name in METRICS.items() if raw.get(metric, ("", ""))[0] not in ("", "n/a")]
    for metric in raw:
        match = STALL.fullmatch(metric)
        if match and not match[1].endswith("_not_issued"):
            records.append(record("stall", match[1].replace("_", " "), metric))
    return records


def main():
    options = arguments()
    if shutil.which("ncu") is None:
        print("no ncu here: no profile")
        return
    run = stamp("./run gpu bench")
    for kind in options.types:
        what = {"benchmark": f"gemm_sm90 {kind} profile", "problem": options.shape.replace("x", " x ")}
        records = [run | what | record for record in records_of(profile(options.build, options.shape, kind))]
        for record in records:
            print(f"{record['benchmark']:22} {record['kind']:10} {record['case']:52} {record['value']:10.2f} {record['unit']}")
        if options.record and records:
            append(options.record, records)


if __name__ == "__main__":
    main()
