"""The list of mutants as tests/checker/mutate (`./run mutate`) writes it, and the table of who finds how many of them."""

import collections
import json
import pathlib

import mutants_reports

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "bench/results/gpu_mutants.jsonl"
PAGE = ROOT / "docs/checker.md"
BEGIN, END = "<!-- gpu-mutants:begin -->", "<!-- gpu-mutants:end -->"
KERNELS = ("gemm_sm80", "gemm_sm90", "attention_sm80")
SIMULATED_ONLY = "delayed"
KEPT = ("kernel", "case", "file", "line", "source", "operation", "mutation", "simulated", "same_code", "ptxas_added")
UNMUTATED = ":unmutated"  # ends the name of a control


def kernel_of(case):
    """A case's name begins with its kernel's; None where it is no kernel's (a pipeline's test)."""
    return next((kernel for kernel in KERNELS if case.startswith(kernel)), None)


def read_list(path):
    """The mutants of the list that a GPU can have, each statement's in one case: the first in which the checker flags it, if it does in any."""
    chosen = {}
    for entry in json.loads(pathlib.Path(path).read_text(encoding="utf-8")):
        if entry["kind"] == SIMULATED_ONLY or kernel_of(entry["case"]) is None:
            continue
        flagged = entry["result"] == "flagged"
        mutant = {"id": entry["id"], "kernel": kernel_of(entry["case"]), "mutation": entry["kind"]}
        mutant |= {key: entry[key] for key in ("case", "file", "line", "source", "operation")}
        mutant["simulated"] = {"flagged": flagged, "result": entry["result"], "found": entry["found"][:1], "equivalent": entry["equivalent"]}
        statement = tuple(mutant[key] for key in ("kernel", "file", "line", "operation", "mutation"))
        if statement not in chosen or (flagged and not chosen[statement]["simulated"]["flagged"]):
            chosen[statement] = mutant
    return list(chosen.values())


def by_source(mutants):
    """The mutants by what they do to which text, and which one of equal texts: the same after lines were added elsewhere."""
    found = {}
    for mutant in sorted(mutants, key=lambda mutant: mutant["line"]):
        key = tuple(mutant[key] for key in ("kernel", "file", "source", "operation", "mutation"))
        same = sum(other[:-1] == key for other in found)
        found[*key, same] = mutant
    return found


def refreshed(mutants, newer):
    """The mutants with what a newer list says of their simulated runs. Refuses a list that lacks one."""
    of_newer = by_source(newer)
    missing = [key for key in by_source(mutants) if key not in of_newer]
    if missing:
        raise SystemExit(f"mutants: {len(missing)} mutants are not in the newer list, the first is {' '.join(map(str, missing[0]))}: build and run them again")
    return [mutant | {"simulated": of_newer[key]["simulated"]} for key, mutant in by_source(mutants).items()]


def merged(manifest, raw):
    """One record a mutant: what the list says of it, and what each check came to (null: not run). Before them one of each unmutated case."""
    by_mutant = collections.defaultdict(dict)
    for record in raw:
        by_mutant[record["mutant"]][record["check"]] = record
    checks = ("plain", *mutants_reports.TOOLS)
    controls = [{"case": case, "mutation": None} | {check: outcome(by_mutant[case + UNMUTATED].get(check)) for check in checks} for case in manifest["cases"]]
    return controls + [
        {key: mutant[key] for key in KEPT} | {check: outcome(by_mutant[mutant["id"]].get(check)) for check in checks} for mutant in manifest["mutants"]
    ]


def outcome(record):
    if record is None or record["result"] == "not run":
        return None
    kept = {key: record[key] for key in ("result", "found", "launches", "wrong", "error", "reports") if record.get(key) not in (None, "", [])}
    return kept | {"found": record.get("found", False)}


# --- the table
# --------------------------------------------------------------------------------------------------


def found_by_a_tool(record):
    return any(record[tool] and record[tool]["found"] for tool in mutants_reports.TOOLS)


def only_deadlock(outcome_of_tool):
    return outcome_of_tool["found"] and all("deadlock" in report[0].lower() for report in outcome_of_tool["reports"])


def found_on_gpu(record):
    return found_by_a_tool(record) or bool(record["plain"] and record["plain"]["found"])


def counted(records):
    """What the columns of a row count."""
    plain = collections.Counter(record["plain"]["result"] for record in records)
    simulated = collections.Counter(record["simulated"]["result"] for record in records)
    row = [len(records), simulated["flagged"], simulated["wrong"]]
    row += [plain[result] for result in ("wrong", "hang", "failed")]
    row += [sum(record[tool]["found"] for record in records) for tool in mutants_reports.TOOLS]
    row.insert(-1, sum(only_deadlock(record["racecheck"]) for record in records))
    return [*row, sum(map(found_by_a_tool, records)), sum(not found_on_gpu(record) for record in records)]


def table_by(records, key, title):
    groups = collections.defaultdict(list)
    for record in records:
        groups[record[key]].append(record)
    header = [title, "mutants", "tegula's checker", "only wrong there", "plain: wrong", "plain: hangs", "plain: fails"]
    header += ["memcheck", "racecheck", "of these only as a deadlock", "synccheck", "any tool", "nothing on the GPU"]
    rows = [[f"`{name}`", *counted(group)] for name, group in sorted(groups.items())] + [["all", *counted(records)]]
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def name_of(record):
    return f"`{record['case']}`, {record['file']}:{record['line']} `{record['source']}`, {record['operation']} {record['mutation']}"


def listed(sentence, records, say):
    """The sentence with the number of records, and each of them; nothing of none."""
    return "\n".join([f"{sentence} ({len(records)}):", "", *(f"- {name_of(record)}: {say(record)}" for record in records)]) if records else ""


def on_gpu(record):
    plain = record["plain"]
    said = [f"plain {plain['result']}"] if plain["found"] else []
    return ", ".join(said + [f"{tool}: {record[tool]['reports'][0][0]}" for tool in mutants_reports.TOOLS if record[tool] and record[tool]["found"]])


def of_checker(record):
    return f"`{record['simulated']['found'][0]}`"


def of_controls(controls):
    """What the tools say of the kernels as they are."""
    reports = {tool: sum(len((record[tool] or {}).get("reports", [])) for record in controls) for tool in mutants_reports.TOOLS}
    if not any(reports.values()):
        return "Of the unmutated kernels the tools report nothing."
    said = ", ".join(f"{tool} {count}" for tool, count in reports.items() if count)
    return f"Of the unmutated kernels the tools report what is no fault ({said}); the same of a mutant does not count as found."


def section(records):
    """The generated part of docs/checker.md."""
    stamp, total = records[0], records[0]["of"]
    controls = [record for record in records if record["mutation"] is None]
    records = [record for record in records if record["mutation"] is not None]
    complete = [record for record in records if record["plain"] and all(record[tool] for tool in mutants_reports.TOOLS)]
    real = [record for record in complete if not record["simulated"]["equivalent"]]
    same = [record for record in records if record["same_code"]]
    weakened = sum(record["mutation"] == "weakened" for record in same)
    repaired = sum(bool(record["ptxas_added"]) for record in records)
    others = len(records) - len(same)
    launches = max((record["plain"].get("launches", 0) for record in complete), default=0)
    parts = [
        "### The same on a GPU",
        f"{stamp['gpu']}, driver {stamp['driver']}, compute-sanitizer {stamp['sanitizer']}, {stamp['date']}, commit {stamp['commit']}.",
        f"{total} mutants are such that a GPU can have them"
        + (f"; {len(records)} of them were compiled, taken evenly from each kernel and kind of statement" if len(records) < total else "")
        + f". {len(same)} compile to the unmutated kernel's machine code, where nothing can find them: {weakened} of these weaken an order that this GPU's "
        f"instructions keep anyway. (In {repaired} mutants, of other code or the same, ptxas itself puts the fence or the wait of a wgmma back.) "
        + (f"Of the {others} others {len(complete)} were" if len(complete) < others else f"The {others} others were all")
        + f" run to the end, each plain, up to {launches} launches of two problems in turn, and "
        "once under each tool, racecheck with its search for deadlocks, which is off by default. "
        + (f"{len(complete) - len(real)} of these are equivalent by the reviewed list; the tables are of the other {len(real)}. " if len(real) < len(complete) else "")
        + of_controls(controls),
        table_by(real, "kernel", "kernel"),
        table_by(real, "operation", "statement"),
        listed("Found by tegula's checker, and by nothing on the GPU", [r for r in real if r["simulated"]["flagged"] and not found_on_gpu(r)], of_checker),
        listed("Found on the GPU, and nothing on the simulated machine", [r for r in real if found_on_gpu(r) and r["simulated"]["result"] == "survived"], on_gpu),
        listed("Found by a tool, and only wrong on the simulated machine", [r for r in real if found_by_a_tool(r) and r["simulated"]["result"] == "wrong"], on_gpu),
        listed("Equivalent by the list, but found on the GPU", [r for r in complete if r["simulated"]["equivalent"] and found_on_gpu(r)], on_gpu),
    ]
    return "\n\n".join(part for part in parts if part)


def put_in_page(page, text):
    """Replaces what stands between the marks."""
    content = page.read_text(encoding="utf-8")
    if content.count(BEGIN) != 1 or content.count(END) != 1:
        raise SystemExit(f"mutants: {page} must hold the lines\n{BEGIN}\n{END}\nonce each: the table goes between them")
    before, rest = content.split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def read_records(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def table(arguments):
    """Keeps a run's results, and writes the page's section."""
    manifest = json.loads((arguments.folder / "manifest.json").read_text(encoding="utf-8"))
    lines = read_records(arguments.results)
    stamp = {"commit": manifest["commit"], "of": manifest["of"]} | [line["machine"] for line in lines if "machine" in line][-1]
    write(arguments.record, [stamp | record for record in merged(manifest, [line for line in lines if "machine" not in line])])
    page(arguments)


def page(arguments):
    """Writes the page's section from the kept results, which a newer list of mutants may bring up to date."""
    records = read_records(arguments.record)
    if arguments.list:
        controls = [record for record in records if record["mutation"] is None]
        records = controls + refreshed([record for record in records if record["mutation"] is not None], read_list(arguments.list))
        write(arguments.record, records)
    put_in_page(arguments.page, section(records))
    print(f"{arguments.record}: {len(records)} records; {arguments.page}")
