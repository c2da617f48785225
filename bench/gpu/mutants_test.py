#!/usr/bin/env python3
"""Tests of mutants.py and its parts, with a runner and a compute-sanitizer that play their parts: no GPU and no nvcc."""

import argparse
import contextlib
import io
import json
import pathlib
import stat
import sys
import tempfile
import time
import unittest
import unittest.mock
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutants  # noqa: E402
import mutants_reports  # noqa: E402
import mutants_table  # noqa: E402

RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at mutant+0x1b0 in /home/me/tegula/include/tegula/arch/shared.hpp:40
=========     and Read access at mutant+0x220 in /home/me/tegula/include/tegula/arch/ldmatrix.hpp:33 [124 hazards]
=========
{"result": "right", "launches": 1, "wrong": 0, "error": ""}
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
INVALID = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at mutant+0x120 in /home/me/tegula/include/tegula/arch/global.hpp:34
=========     by thread (0,0,0) in block (0,0,0)
=========     Access at 0x87654320 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main in file.cpp:3 [0x1]
=========
========= Invalid __global__ write of size 4 bytes
=========     at mutant+0x120 in /home/me/tegula/include/tegula/arch/global.hpp:34
=========     by thread (1,0,0) in block (0,0,0)
=========     Access at 0x87654324 is out of bounds
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call to cudaDeviceSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========
========= Target application returned an error
========= ERROR SUMMARY: 3 errors
"""
BARRIER = """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at mutant+0x330 in /home/me/tegula/include/tegula/arch/barrier.hpp:21
=========     by thread (32,0,0) in block (1,0,0)
=========
========= ERROR SUMMARY: 1 error
"""

# Of the programs that play a part: they start some hundred times, so without what they do not need.
PYTHON = f"#!{sys.executable} -IS\n"
RUNNER = PYTHON + """
import json, sys, time
case, cubin, expected, *words = sys.argv[1:]
play = json.load(open(cubin))
if "--write" in words:
    open(expected, "w").write("bytes")
assert open(expected).read() == "bytes"
result = play["plain"]
if result == "deaf":
    time.sleep(60)
if result == "hang":
    time.sleep(float(words[words.index("--seconds") + 1]))
code = {"right": 0, "wrong": 2, "hang": 3, "failed": 4}[result]
print(json.dumps({"result": result, "launches": 1}), flush=True)
sys.exit(code)
"""
SANITIZER = PYTHON + """
import json, subprocess, sys
words = sys.argv[1:]
options = {}
while words[0].startswith("--"):
    options[words[0]] = words[1]
    words = words[2:]
tool, (runner, case, cubin) = options["--tool"], words[:3]
print("========= COMPUTE-SANITIZER", flush=True)
code = subprocess.run(words).returncode
print(json.load(open(cubin)).get(tool, ""), flush=True)
sys.exit(code)
"""


class Reports(unittest.TestCase):
    def test_a_race_by_its_two_places(self):
        reports, broken = mutants_reports.parse(RACE)
        self.assertEqual(reports, [["Error: Race reported between Write access", "tegula/arch/shared.hpp:40", "tegula/arch/ldmatrix.hpp:33"]])
        self.assertFalse(broken)

    def test_the_same_report_of_two_threads_is_one(self):
        reports, _ = mutants_reports.parse(INVALID)
        self.assertEqual([report[0][:13] for report in reports], ["Invalid __glo", "Program hit c"])
        self.assertEqual(reports[0][1:], ["tegula/arch/global.hpp:34"])

    def test_a_barrier(self):
        reports, _ = mutants_reports.parse(BARRIER)
        self.assertEqual(reports, [["Barrier error detected. Divergent thread(s) in block", "tegula/arch/barrier.hpp:21"]])

    def test_a_deadlock(self):
        text = "========= Deadlock detected in mutant\n=========     threads starting at (0,0,0) called by mutant+0x40 in mbarrier.hpp:241\n"
        reports, _ = mutants_reports.parse(text + "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n")
        self.assertEqual(reports, [["Deadlock detected in mutant", "mbarrier.hpp:241"]])

    def test_errors_that_are_not_printed(self):
        text = BARRIER.replace("========= ERROR", "========= 7 errors were not printed. Use --print-limit option to adjust the number\n========= ERROR")
        self.assertEqual(mutants_reports.parse(text), mutants_reports.parse(BARRIER))

    def test_nothing_found(self):
        self.assertEqual(mutants_reports.parse("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"), ([], False))

    def test_a_summary_of_errors_that_are_not_shown(self):
        self.assertEqual(len(mutants_reports.parse("========= ERROR SUMMARY: 2 errors\n")[0]), 1)

    def test_a_tool_that_failed(self):
        self.assertTrue(mutants_reports.parse("========= Internal Sanitizer Error\n")[1])

    def test_new_is_what_the_unmutated_kernel_does_not_give(self):
        race, invalid = mutants_reports.parse(RACE)[0], mutants_reports.parse(INVALID)[0]
        self.assertEqual(mutants_reports.new_reports(race + invalid, race), invalid)


class Runs(unittest.TestCase):
    """A bench with one case, whose cubins are what runner and tools are to play."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.sanitizer = self.folder / "sanitizer"
        for path, text in ((self.folder / "mutants_runner", RUNNER), (self.sanitizer, SANITIZER)):
            path.write_text(text, encoding="utf-8")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        self.results = self.folder / "results.jsonl"
        self.set_limits(PLAIN_LAUNCH=0.5, LEAST_TOOL_LAUNCH=0.5)

    def set_limits(self, **seconds):
        patch = unittest.mock.patch.multiple(mutants, **seconds)
        patch.start()
        self.addCleanup(patch.stop)

    def run_bench(self, plays, unmutated=None, budget=100.0):
        chosen = []
        with zipfile.ZipFile(self.folder / "cubins.zip", "w") as archive:
            archive.writestr("case_0.cubin", json.dumps(unmutated or {"plain": "right"}))
            for name, play in plays.items():
                archive.writestr(f"{name}.cubin", json.dumps(play))
                chosen.append({"id": name, "case": "gemm", "cubin": f"{name}.cubin", "same_code": play.get("same_code", False)})
        manifest = {"commit": "0", "cases": ["gemm"], "of": len(chosen), "mutants": chosen}
        (self.folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        arguments = argparse.Namespace(folder=self.folder, results=self.results, budget=budget, jobs=4, sanitizer=str(self.sanitizer))
        with unittest.mock.patch.object(mutants, "machine", return_value={"gpu": "none"}), contextlib.redirect_stdout(io.StringIO()):
            mutants.run(arguments)
        records = [json.loads(line) for line in self.results.read_text(encoding="utf-8").splitlines()]
        records = [record for record in records if "mutant" in record]
        return {(record["mutant"], record["check"]): record for record in records}

    def found(self, records, mutant):
        return [check for check in mutants.CHECKS if records.get((mutant, check), {}).get("found")]

    def test_who_finds_what(self):
        records = self.run_bench(
            {
                "silent": {"plain": "right"},
                "wrong": {"plain": "wrong"},
                "racy": {"plain": "right", "racecheck": RACE},
                "out": {"plain": "failed", "memcheck": INVALID},
                "divergent": {"plain": "right", "synccheck": BARRIER},
            }
        )
        found = {name: self.found(records, name) for name in ("silent", "wrong", "racy", "out", "divergent")}
        expected = {"silent": [], "wrong": ["plain"], "racy": ["racecheck"], "out": ["plain", "memcheck"], "divergent": ["synccheck"]}
        self.assertEqual(found, expected)

    def test_what_a_tool_says_of_the_unmutated_kernel_finds_no_mutant(self):
        records = self.run_bench({"same": {"plain": "right", "racecheck": RACE}}, {"plain": "right", "racecheck": RACE})
        self.assertEqual(self.found(records, "same"), [])
        self.assertEqual(len(records["gemm:unmutated", "racecheck"]["reports"]), 1)

    def test_a_hang_is_found_by_the_plain_run_and_reported_by_no_tool(self):
        records = self.run_bench({"hangs": {"plain": "hang"}})
        self.assertEqual(self.found(records, "hangs"), ["plain"])
        self.assertEqual(records["hangs", "racecheck"]["result"], "hang")

    def test_a_process_that_does_not_end_is_ended(self):
        self.set_limits(START=2.0)
        began = time.monotonic()
        records = self.run_bench({"deaf": {"plain": "deaf"}})
        self.assertEqual(records["deaf", "plain"]["result"], "hang")
        self.assertLess(time.monotonic() - began, 40)

    def test_goes_on_where_it_ended(self):
        self.run_bench({"first": {"plain": "wrong"}})
        lines = self.results.read_text(encoding="utf-8").splitlines()
        self.run_bench({"first": {"plain": "right"}, "second": {"plain": "wrong"}})
        added = [json.loads(line) for line in self.results.read_text(encoding="utf-8").splitlines()[len(lines) :]]
        self.assertEqual({record["mutant"] for record in added if "mutant" in record}, {"gemm:unmutated", "second"})

    def test_without_time_nothing_but_the_controls_runs(self):
        records = self.run_bench({"first": {"plain": "wrong"}}, budget=5.0)
        self.assertEqual({mutant for mutant, _ in records}, {"gemm:unmutated"})

    def test_a_mutant_of_the_same_machine_code_is_not_run(self):
        records = self.run_bench({"same": {"plain": "right", "same_code": True}, "other": {"plain": "right"}})
        self.assertEqual({mutant for mutant, _ in records}, {"gemm:unmutated", "other"})

    def test_an_unmutated_kernel_that_is_wrong_ends_it(self):
        with self.assertRaises(SystemExit):
            self.run_bench({"first": {"plain": "wrong"}}, {"plain": "wrong"})


class Lists(unittest.TestCase):
    def entry(self, case="gemm_sm80", line=1, operation="mbarrier_wait", kind="removed", result="flagged"):
        found = ["data_race", "deadlock"] if result == "flagged" else []
        name = f"{case}:kernel/gemm.hpp:{line}:{operation}:{kind}"
        of_list = {"id": name, "case": case, "file": "kernel/gemm.hpp", "line": line, "source": "wait();", "operation": operation}
        return of_list | {"kind": kind, "result": result, "wrong": False, "found": found, "equivalent": False}

    def read(self, *entries):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "list.json"
            path.write_text(json.dumps(entries), encoding="utf-8")
            return mutants_table.read_list(path)

    def test_one_case_of_a_statement_that_in_which_it_is_flagged(self):
        read = self.read(self.entry(result="survived"), self.entry("gemm_sm80_big"), self.entry("gemm_sm90", result="survived"))
        self.assertEqual([mutant["case"] for mutant in read], ["gemm_sm80_big", "gemm_sm90"])
        self.assertEqual(read[0]["simulated"], {"flagged": True, "result": "flagged", "found": ["data_race"], "equivalent": False})

    def test_a_newer_list_after_lines_were_added(self):
        old = self.read(self.entry(line=1, result="survived"), self.entry(line=2, result="survived"), self.entry(line=2, kind="weakened"))
        new = self.read(self.entry(line=5), self.entry(line=8, result="survived"), self.entry(line=8, kind="weakened"))
        flagged = {mutant["id"]: mutant["simulated"]["flagged"] for mutant in mutants_table.refreshed(old, new)}
        name = "gemm_sm80:kernel/gemm.hpp:{}:mbarrier_wait:{}"
        self.assertEqual(flagged, {name.format(1, "removed"): True, name.format(2, "removed"): False, name.format(2, "weakened"): True})
        self.assertRaises(SystemExit, mutants_table.refreshed, old, new[:2])

    def test_leaves_out_what_a_gpu_cannot_have(self):
        self.assertEqual(self.read(self.entry(kind="delayed"), self.entry("pipeline of a test")), [])

    def test_every_operation_of_every_kernel_before_a_second_of_any(self):
        keys = [(kernel, operation, line) for kernel in "ab" for operation in ("wait", "arrive", "fence") for line in range(7)]
        all_mutants = [{"id": f"{k}{o}{n}", "kernel": k, "operation": o} for k, o, n in keys]
        chosen = mutants.sample(all_mutants, 12)
        pairs = [(mutant["kernel"], mutant["operation"]) for mutant in chosen]
        self.assertEqual(len(set(pairs[:6])), 6)
        self.assertEqual(sorted(pairs), sorted(2 * pairs[:6]))
        self.assertEqual(chosen, mutants.sample(list(reversed(all_mutants)), 12))


def listed(name, **simulated):
    kernel, line = name.split(":")
    of_list = {"kernel": kernel, "case": "big", "file": "kernel/gemm.hpp", "line": int(line), "source": "wait();"}
    of_list |= {"operation": "mbarrier_wait", "mutation": "removed"}
    return {"id": name, **of_list, "same_code": False, "ptxas_added": [], "simulated": {"flagged": True, "result": "flagged", "found": ["deadlock"], "equivalent": False} | simulated}


class Table(unittest.TestCase):
    """Four mutants of two kernels: found by all, by nobody, not run to the end, equivalent."""

    def setUp(self):
        manifest = {"cases": ["big"], "mutants": [listed("a:1"), listed("a:2", flagged=False, result="wrong"), listed("b:3"), listed("b:4", flagged=False, result="survived", equivalent=True)]}
        plain = {"a:1": "hang", "a:2": "right", "b:3": "wrong", "b:4": "right"}
        raw = [{"mutant": name, "check": "plain", "result": result, "found": result != "right", "launches": 9} for name, result in plain.items()]
        for tool in mutants_reports.TOOLS:
            found = tool == "racecheck"
            raw.append({"mutant": "a:1", "check": tool, "result": "hang", "found": found, "reports": [["Race"]] if found else []})
            raw += [{"mutant": name, "check": tool, "result": "right", "found": False, "reports": []} for name in ("a:2", "b:4")]
        raw += [{"mutant": "big:unmutated", "check": tool, "result": "right", "reports": []} for tool in mutants_reports.TOOLS]
        stamp = {"gpu": "H100", "driver": "1", "sanitizer": "2", "date": "2026-01-01", "commit": "abc", "of": 7}
        self.records = [stamp | record for record in mutants_table.merged(manifest, raw)]

    def test_counts_those_that_were_run_to_the_end_and_are_faults(self):
        text = mutants_table.section(self.records)
        self.assertIn("| `a` | 2 | 1 | 1 | 0 | 1 | 0 | 0 | 1 | 0 | 0 | 1 | 1 |", text)
        self.assertIn("| all | 2 | 1 | 1 | 0 | 1 | 0 | 0 | 1 | 0 | 0 | 1 | 1 |", text)
        self.assertNotIn("| `b` |", text)
        self.assertIn("7 mutants are such that a GPU can have them; 4 of them", text)
        self.assertIn("Of the 4 others 3 were run to the end, each plain, up to 9 launches", text)

    def test_a_racecheck_that_only_saw_a_deadlock_is_counted_apart(self):
        self.records[1]["racecheck"]["reports"] = [["Deadlock detected in Cuda::barrier wait", "mbarrier.hpp:1"]]
        self.assertIn("| `a` | 2 | 1 | 1 | 0 | 1 | 0 | 0 | 1 | 1 | 0 | 1 | 1 |", mutants_table.section(self.records))

    def test_names_what_only_the_checker_found(self):
        self.assertNotIn("by nothing on the GPU", mutants_table.section(self.records))
        self.records[2]["simulated"] |= {"flagged": True, "result": "flagged", "found": ["data_race"]}
        self.assertIn("mbarrier_wait removed: `data_race`", mutants_table.section(self.records))

    def test_names_what_only_the_gpu_found(self):
        self.assertNotIn("nothing on the simulated machine", mutants_table.section(self.records))
        self.records[1]["simulated"] |= {"flagged": False, "result": "survived"}
        self.assertIn("`big`, kernel/gemm.hpp:1 `wait();`, mbarrier_wait removed: plain hang, racecheck: Race", mutants_table.section(self.records))

    def test_says_what_the_tools_report_of_the_unmutated_kernels(self):
        self.assertIn("Of the unmutated kernels the tools report nothing.", mutants_table.section(self.records))
        self.records[0]["racecheck"]["reports"] = [["Race"]]
        self.assertIn("report what is no fault (racecheck 1)", mutants_table.section(self.records))

    def test_goes_between_the_marks_of_the_page(self):
        with tempfile.TemporaryDirectory() as scratch:
            page = pathlib.Path(scratch) / "page.md"
            page.write_text(f"before\n\n{mutants_table.BEGIN}\nold\n{mutants_table.END}\n\nafter\n", encoding="utf-8")
            mutants_table.put_in_page(page, "new")
            mutants_table.put_in_page(page, "new")
            expected = f"before\n\n{mutants_table.BEGIN}\n\nnew\n\n{mutants_table.END}\n\nafter\n"
            self.assertEqual(page.read_text(encoding="utf-8"), expected)
            page.write_text("no marks", encoding="utf-8")
            self.assertRaises(SystemExit, mutants_table.put_in_page, page, "new")


if __name__ == "__main__":
    unittest.main()
