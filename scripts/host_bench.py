#!/usr/bin/env python3
"""Runs the host benchmarks of a build: host_bench.py BUILD

Every executable in BUILD/benchmarks is a Google Benchmark program, or prints JSON lines {"benchmark", "case", "value", "unit"}. Each
measurement is shown, and appended with date, commit and processor to bench/results/host.jsonl.
"""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results/host.jsonl"


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.machine()


def git_commit():
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def records_of(program):
    """What one program measured, as records. Of a Google Benchmark program its rate counters, or else its time."""
    environment = os.environ | {"BENCHMARK_FORMAT": "json"}
    done = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True, env=environment)
    if '"benchmarks":' not in done.stdout:
        return [json.loads(line) for line in done.stdout.splitlines()]
    records = []
    for run in json.loads(done.stdout)["benchmarks"]:
        rates = {name.replace("items_per_second", "calls/s"): rate for name, rate in run.items() if name.endswith(("/s", "per_second"))}
        for unit, value in (rates or {run["time_unit"]: run["real_time"]}).items():
            if value:
                case = run.get("label") or run["name"].replace("/check:0", ", checker off").replace("/check:1", "")
                records.append({"benchmark": program.name, "case": case, "value": value, "unit": unit})
    return records


def main():
    folder = pathlib.Path(sys.argv[1]).resolve() / "benchmarks"
    programs = sorted(file for file in folder.iterdir() if os.access(file, os.X_OK) and file.is_file())
    if not programs:
        sys.exit(f"host_bench: {folder} holds no program")
    stamp = {"date": datetime.date.today().isoformat(), "commit": git_commit(), "processor": processor()}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with open(RESULTS, "a", encoding="utf-8") as results:
        for program in programs:
            for record in records_of(program):
                print(f"{record['benchmark']:16} {record['case']:48} {record['value']:12.4g} {record['unit']}")
                results.write(json.dumps(stamp | {"command": f"benchmarks/{program.name}"} | record) + "\n")


if __name__ == "__main__":
    main()
