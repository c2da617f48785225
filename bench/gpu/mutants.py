#!/usr/bin/env python3
"""Mutants of the kernels on a GPU: what a plain run shows of each, and what compute-sanitizer finds.

    mutants.py build LIST [--out FOLDER]     here, with nvcc: a cubin for each mutant of the list that tests/checker/mutate wrote
    mutants.py run FOLDER RESULTS            on the GPU machine, without nvcc: within --budget seconds; goes on where RESULTS ends
    mutants.py table FOLDER RESULTS          keeps them in bench/results/gpu_mutants.jsonl; writes the tables in docs/checker.md
    mutants.py page --list LIST              writes these anew, with what the checker finds by now

A mutant counts as found by a plain run if a launch gives a wrong result, hangs or fails; by a tool, if the tool reports what it does not
report of the unmutated kernel.
"""

import argparse
import collections
import concurrent.futures
import datetime
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

import mutants_reports
import mutants_table

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INCLUDE = tuple(f"-I{ROOT / folder}" for folder in ("include", "tests/checker", "tests/support"))
FOLDER = ROOT / ".tune/mutants"
CUDA = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
SEED = 4
CHECKS = ("plain", *mutants_reports.TOOLS)
RESULT_OF_CODE = {0: "right", 2: "wrong", 3: "hang", 4: "failed"}

# Seconds.
PLAIN_LAUNCH = 2.0  # until a launch counts as hung
START = 10.0  # that a process may take besides: the parent kills it then
LEAST_TOOL_LAUNCH = 4.0
MOST_TOOL_LAUNCH = 12.0
CONTROL_LIMIT = 60.0
DEADLOCK_MS = 1500  # until racecheck takes a wait for a deadlock; it looks for none by default
LAUNCHES = 200
KEPT_OUTPUT = 2000  # characters of a tool's

# --- build
# --------------------------------------------------------------------------------------------------


def sample(mutants, most):
    """At most `most` mutants, evenly by kernel and operation: of each in turn one more, chosen by a fixed seed."""
    groups = collections.defaultdict(list)
    for mutant in sorted(mutants, key=lambda mutant: mutant["id"]):
        groups[mutant["kernel"], mutant["operation"]].append(mutant)
    shuffled = random.Random(SEED)
    for group in groups.values():
        shuffled.shuffle(group)
    order = []
    while any(groups.values()):
        order += [group.pop() for group in groups.values() if group]
    return order[:most]


# An operation that no kernel has. A mutant of it leaves the kernel as it is, but for the marks:
# that a translation unit has any, and one in this line, moves an instruction here and there.
NOWHERE = "mbarrier_complete_tx"
UNMUTATED = {"id": "unmutated", "file": "none", "line": 0, "operation": NOWHERE, "mutation": "removed"}


def compile_cubin(case, mutant, path):
    """Compiles the mutant of a case; returns what ptxas said of it."""
    command = ["nice", str(CUDA / "bin/nvcc"), "-cubin", "-arch=sm_90a", "-std=c++20", "-O3", "-fmad=false", "-lineinfo"]
    command += [*INCLUDE, f"-DTEGULA_MUTANT_CASE={case}", "-o", str(path), str(ROOT / "bench/gpu/mutants_kernel.cu")]
    command += [f'-DTEGULA_MUTANT_FILE="{mutant["file"]}"', f"-DTEGULA_MUTANT_LINE={mutant['line']}"]
    command += [f"-DTEGULA_MUTANT_OPERATION={mutant['operation']}", f"-DTEGULA_MUTANT_KIND={mutant['mutation']}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"mutants: case {case}, {mutant['id']}, does not compile:\n{done.stderr[:2000]}")
    return sorted({line.partition("(C")[2].partition(")")[0] for line in done.stderr.splitlines() if "(C75" in line})


def compile_runner(path):
    command = ["nice", "g++", "-std=c++20", "-O1", "-w", "-ffunction-sections", "-DFMT_HEADER_ONLY", "-static-libstdc++", "-static-libgcc"]
    command += [*INCLUDE, "-isystem", str(CUDA / "include"), str(ROOT / "bench/gpu/mutants_runner.cpp")]
    device = ROOT / "src/device"
    sources = ("reference.cpp", "reference_attention.cpp", "reference_gemm.cpp", "reference_sums.cpp", "arguments.cpp")
    sources += ("families/attention_sm80.cpp", "families/gemm_sm80.cpp", "cuda/tensor_map.cpp")
    command += [f"-I{device}", *(str(device / file) for file in sources)]
    command += ["-Wl,--gc-sections", f"-L{CUDA / 'lib64'}", "-lcudart_static", "-ldl", "-lrt", "-lpthread", "-o", str(path)]
    subprocess.run(command, check=True)


def code_of(cubin):
    """The machine code and constants of a cubin, without line tables and symbols: equal if a mutation changed nothing."""
    return hashlib.sha256(b"".join(section for name, section in elf_sections(cubin) if name.startswith((".text", ".nv.constant")))).hexdigest()


def elf_sections(data):
    """(name, bytes) of each section of a 64-bit little-endian ELF file (System V ABI, chapter 4)."""
    table, size, count, names = (int.from_bytes(data[at : at + width], "little") for at, width in ((40, 8), (58, 2), (60, 2), (62, 2)))

    def header(index):
        at = table + index * size
        return [int.from_bytes(data[at + offset : at + offset + width], "little") for offset, width in ((0, 4), (24, 8), (32, 8), (4, 4))]

    strings = header(names)[1]
    for index in range(count):
        name, offset, length, kind = header(index)
        text = data[strings + name :].partition(b"\0")[0].decode()
        yield text, b"" if kind == 8 else data[offset : offset + length]  # 8: no bytes in the file


def original_of(mutant):
    """What the machine code of a mutant is compared with: the same but for the operation."""
    return tuple(mutant[key] for key in ("case", "file", "line", "mutation"))


def build(arguments):
    arguments.out.mkdir(parents=True, exist_ok=True)
    compile_runner(arguments.out / "mutants_runner")
    cases = subprocess.run([arguments.out / "mutants_runner", "--list"], capture_output=True, text=True, check=True).stdout.split()
    mutants = mutants_table.read_list(arguments.list)
    chosen = sample(mutants, arguments.most)
    unknown = sorted({mutant["case"] for mutant in chosen} - set(cases))
    if unknown:
        raise SystemExit(f"mutants: the list is older than mutation_cases.hpp, which has no case {', '.join(unknown)}: write it again")
    began = time.monotonic()
    originals = {original_of(mutant): mutant | {"operation": NOWHERE} for mutant in chosen}
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        scratch = pathlib.Path(scratch)

        def compiled(name, case, mutant):
            said = compile_cubin(cases.index(case), mutant, scratch / name)
            return code_of((scratch / name).read_bytes()), said

        controls = [(f"case_{index}.cubin", case, UNMUTATED) for index, case in enumerate(cases)]
        to_run = [(f"{number}.cubin", mutant["case"], mutant) for number, mutant in enumerate(chosen)]
        to_compare = [(f"original_{number}.cubin", original["case"], original) for number, original in enumerate(originals.values())]
        results = list(pool.map(lambda file: compiled(*file), controls + to_run + to_compare))
        with zipfile.ZipFile(arguments.out / "cubins.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, _, _ in controls + to_run:
                archive.write(scratch / name, name)
    of_originals = dict(zip(originals, results[len(controls) + len(to_run) :], strict=True))
    for mutant, (name, _, _), (code, said) in zip(chosen, to_run, results[len(controls) :]):
        original_code, original_said = of_originals[original_of(mutant)]
        mutant["cubin"] = name
        mutant["same_code"] = code == original_code
        mutant["ptxas_added"] = [word for word in said if word not in original_said]
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    manifest = {"commit": commit.stdout.strip() or "unknown", "cases": cases, "of": len(mutants), "mutants": chosen}
    (arguments.out / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    size = sum(file.stat().st_size for file in arguments.out.iterdir())
    same = sum(mutant["same_code"] for mutant in chosen)
    print(f"{len(chosen)} of {len(mutants)} mutants in {time.monotonic() - began:.0f} s, {size / 2**20:.1f} MB; the machine code of {same} is the unmutated kernel's")


# --- run
# --------------------------------------------------------------------------------------------------


class Process:
    """A program in a session of its own, so that all of it can be ended."""

    def __init__(self, command, limit):
        began = time.monotonic()
        # A file: no pipe that a killed program's child keeps open.
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
            self.code = self._wait(child, limit)
            self.killed = self.code is None
            self.stuck = False
            if self.killed:
                os.killpg(child.pid, signal.SIGKILL)
                self.stuck = self._wait(child, 10) is None
            output.seek(0)
            self.output = output.read()
        self.seconds = round(time.monotonic() - began, 2)

    @staticmethod
    def _wait(child, limit):
        try:
            return child.wait(limit)
        except subprocess.TimeoutExpired:
            return None

    def answer(self):
        """The runner's JSON line; where there is none, what became of the process."""
        for line in self.output.splitlines():
            if line.startswith('{"result"'):
                return json.loads(line)
        if self.killed:
            return {"result": "hang", "error": "ended from outside"}
        return {"result": "not run", "error": " ".join(self.output.split())[-300:]}


class Bench:
    """Runs mutants until the budget is spent. Results are lines of a file, one for each mutant and check."""

    def __init__(self, folder, results, arguments, scratch):
        self.manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self.runner = scratch / "mutants_runner"
        self.runner.write_bytes((folder / "mutants_runner").read_bytes())
        self.runner.chmod(0o755)
        with zipfile.ZipFile(folder / "cubins.zip") as archive:
            archive.extractall(scratch)
        self.scratch, self.results = scratch, results
        self.jobs, self.sanitizer = arguments.jobs, arguments.sanitizer
        self.end = time.monotonic() + arguments.budget
        self.lock = threading.Lock()
        self.ports = itertools.count()
        self.done = self._read_results()
        self.controls = {}
        self.stuck = 0
        self.skipped = 0

    def _read_results(self):
        if not self.results.exists():
            return {}
        records = [json.loads(line) for line in self.results.read_text(encoding="utf-8").splitlines()]
        return {(record["mutant"], record["check"]): record for record in records if record.get("result", "not run") != "not run"}

    def record(self, record):
        with self.lock:
            self.done[record["mutant"], record["check"]] = record
            self.append(record)

    def append(self, line):
        with open(self.results, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def command(self, case, cubin, *words):
        return [str(self.runner), case, str(self.scratch / cubin), str(self.scratch / f"{case}.expected"), *words]

    def tool_command(self, tool, case, cubin, seconds):
        port = 20000 + 16 * (next(self.ports) % 1000)  # of its own: several run side by side
        options = ["--tool", tool, "--check-exit-code", "no", "--show-backtrace", "device", "--port", str(port)]
        if tool == "racecheck":
            options += ["--racecheck-num-workers", "1", "--racecheck-deadlock-timeout", str(DEADLOCK_MS)]
        return [self.sanitizer, *options, *self.command(case, cubin, "--tight", "--launches", "1", "--seconds", str(seconds))]

    def unmutated(self, case):
        return f"case_{self.manifest['cases'].index(case)}.cubin"

    def launch_unmutated(self, case):
        return Process(self.command(case, self.unmutated(case), "--launches", str(LAUNCHES), "--seconds", "20"), CONTROL_LIMIT)

    def control(self, case):
        """The unmutated kernel: right by float64 and under every tool; keeps what the tools say of it and how long they take."""
        cubin = self.unmutated(case)
        plain = Process(self.command(case, cubin, "--write", "--seconds", "20"), CONTROL_LIMIT)
        answer = plain.answer()
        if answer["result"] == "right":
            plain = self.launch_unmutated(case)
            answer = plain.answer()
        self.record({"mutant": case + mutants_table.UNMUTATED, "case": case, "check": "plain", **answer, "seconds": plain.seconds})
        if answer["result"] != "right":
            print(f"{case}, unmutated: {answer['result']}: {answer.get('error', '')}", flush=True)
            return
        self.controls[case, "plain"] = {"seconds": plain.seconds}
        for tool in mutants_reports.TOOLS:
            run = Process(self.tool_command(tool, case, cubin, 20), CONTROL_LIMIT)
            answer = run.answer()
            reports, broken = mutants_reports.parse(run.output)
            works = answer["result"] == "right" and not broken
            record = {"mutant": case + mutants_table.UNMUTATED, "case": case, "check": tool, **answer, "reports": reports, "seconds": run.seconds}
            if reports or not works:
                record["output"] = run.output[:KEPT_OUTPUT]
            if not works:
                record["result"] = "not run"
                print(f"{case}, unmutated, {tool}: {answer['result']}: {' '.join(run.output.split())[-400:]}", flush=True)
            self.record(record)
            if works:
                self.controls[case, tool] = {"reports": reports, "seconds": run.seconds}

    def launch_limit(self, case, check):
        if check == "plain":
            return PLAIN_LAUNCH
        return min(MOST_TOOL_LAUNCH, max(LEAST_TOOL_LAUNCH, 2 * self.controls[case, check]["seconds"]))

    def check(self, mutant, check):
        """One check of one mutant, unless it is done, cannot be or has no time left."""
        case = mutant["case"]
        if (mutant["id"], check) in self.done or (case, check) not in self.controls or self.stuck >= self.jobs // 2:
            return
        seconds = self.launch_limit(case, check)
        if time.monotonic() + seconds + START > self.end:
            with self.lock:
                self.skipped += 1
            return
        if check == "plain":
            command = self.command(case, mutant["cubin"], "--launches", str(LAUNCHES), "--seconds", str(seconds))
        else:
            command = self.tool_command(check, case, mutant["cubin"], seconds)
        run = Process(command, seconds + START)
        with self.lock:
            self.stuck += run.stuck
        record = {"mutant": mutant["id"], "case": case, "check": check, **run.answer(), "seconds": run.seconds}
        if check == "plain":
            record["found"] = record["result"] in ("wrong", "hang", "failed")
        else:
            reports, broken = mutants_reports.parse(run.output)
            new = mutants_reports.new_reports(reports, self.controls[case, check]["reports"])
            record |= {"found": bool(new), "reports": new[:4]}
            if broken:
                record["result"] = "not run"
            if broken or reports:
                record["output"] = run.output[:KEPT_OUTPUT]
        self.record(record)

    def each(self, tasks):
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(lambda task: self.check(*task), tasks))
        case = next(iter(self.controls))[0]
        answer = self.launch_unmutated(case).answer()
        if answer["result"] != "right":
            raise SystemExit(f"mutants: after these runs the GPU is not well: {case}, unmutated, is {answer['result']}; do not trust what was recorded last")

    def hangs(self, mutant):
        return self.done.get((mutant["id"], "plain"), {}).get("result") == "hang"

    def run(self):
        mutants = [mutant for mutant in self.manifest["mutants"] if not mutant["same_code"]]
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(self.control, self.manifest["cases"]))
        if not self.controls:
            raise SystemExit("mutants: no unmutated kernel runs here")
        limits = ", ".join(f"{case} {check} {control['seconds']:.1f}" for (case, check), control in self.controls.items())
        print(f"seconds of the unmutated kernels: {limits}", flush=True)
        self.each([(mutant, "plain") for mutant in mutants])
        self.say("plain runs")
        # Those that end first: they take a second or two each, the others until they are ended.
        for hang in (False, True):
            of_kind = [mutant for mutant in mutants if self.hangs(mutant) == hang]
            self.each([(mutant, tool) for mutant in of_kind for tool in ("racecheck", "synccheck", "memcheck")])
            self.say("under tools, those that " + ("hang" if hang else "end"))
        return mutants

    def say(self, what):
        counts = {check: collections.Counter() for check in CHECKS}
        for (mutant, check), record in self.done.items():
            if not mutant.endswith(mutants_table.UNMUTATED):
                counts[check]["found" if record.get("found") else record["result"]] += 1
        left = self.end - time.monotonic()
        print(f"{what}: {left:.0f} s left, {self.skipped} left out for want of time, {self.stuck} processes would not end")
        for check, count in counts.items():
            print(f"  {check:10}" + ", ".join(f"{name} {number}" for name, number in sorted(count.items())), flush=True)


def machine(sanitizer):
    """What the results were taken on."""
    smi = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, driver = subprocess.run(smi, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
    version = subprocess.run([sanitizer, "--version"], capture_output=True, text=True, check=True).stdout
    number = re.search(r"\d+\.\d+\.\d+", version)
    return {"date": datetime.date.today().isoformat(), "gpu": name, "driver": driver, "sanitizer": number.group() if number else "unknown"}


def run(arguments):
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(arguments.folder, arguments.results, arguments, pathlib.Path(scratch))
        bench.append({"machine": machine(arguments.sanitizer)})
        bench.run()


# --- command line
# --------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    builder = commands.add_parser("build")
    builder.add_argument("list", type=pathlib.Path)
    builder.add_argument("--out", type=pathlib.Path, default=FOLDER)
    builder.add_argument("--most", type=int, default=220, help="mutants; a longer list is sampled evenly by kernel and operation")
    builder.add_argument("--jobs", type=int, default=2)
    builder.set_defaults(action=build)
    runner = commands.add_parser("run")
    runner.add_argument("folder", type=pathlib.Path)
    runner.add_argument("results", type=pathlib.Path)
    runner.add_argument("--budget", type=float, default=480, help="seconds")
    runner.add_argument("--jobs", type=int, default=12, help="processes side by side on the GPU")
    runner.add_argument("--sanitizer", default="compute-sanitizer")
    runner.set_defaults(action=run)
    tabler = commands.add_parser("table")
    tabler.add_argument("folder", type=pathlib.Path)
    tabler.add_argument("results", type=pathlib.Path)
    tabler.set_defaults(action=mutants_table.table)
    pager = commands.add_parser("page")
    pager.set_defaults(action=mutants_table.page)
    for command in (tabler, pager):
        command.add_argument("--list", type=pathlib.Path, help="a newer list, for what the checker finds by now")
        command.add_argument("--record", type=pathlib.Path, default=mutants_table.RESULTS)
        command.add_argument("--page", type=pathlib.Path, default=mutants_table.PAGE)
    arguments = parser.parse_args()
    arguments.action(arguments)


if __name__ == "__main__":
    sys.exit(main())
