"""What compute-sanitizer printed, as reports that can be told apart."""

import re

TOOLS = ("memcheck", "racecheck", "synccheck")

NO_REPORT = re.compile(r"COMPUTE-SANITIZER|Target (application|process)|Saved host backtrace|\d+ errors? w(as|ere) (not printed|skipped)")
SUMMARY = re.compile(r"(?:ERROR|RACECHECK|LEAK) SUMMARY: (\d+)")
PLACE = re.compile(r"\bin (\S+?):(\d+)")
BROKEN = ("Internal Sanitizer", "Internal error", "Could not connect", "before first instrumented", "Failed to", "Unable to find", "unrecognised option")


def short_path(path):
    """A source file without the folder that this checkout happens to be in."""
    return re.split(r"(?:^|/)(?:include|bench/gpu)/", path)[-1]


def blocks(output):
    """Each heading with the indented lines under it, without the marks."""
    found = []
    for line in output.splitlines():
        if not line.startswith("========="):
            continue
        text = line.removeprefix("=========")
        if text.startswith("  ") and found:
            found[-1].append(text.strip())
        elif text.strip():
            found.append([text.strip()])
    return found


def report_of(block):
    """A report's text without what differs from run to run (addresses, counts), and its places: [text, file:line...]."""
    heading = block[0].partition(" at ")[0]
    heading = re.sub(r"0x[0-9a-fA-F]+", "", heading)
    heading = re.sub(r"\[\d+ hazards?\]", "", heading)
    heading = re.sub(r"\s+", " ", heading).strip(" .")
    details = [block[0], *(line for line in block[1:] if not line.startswith(("Host Frame", "Saved host")))]
    places = list(dict.fromkeys(f"{short_path(file)}:{line}" for detail in details for file, line in PLACE.findall(detail)))
    return [heading, *places]


def parse(output):
    """(reports, broken): the different reports of a run, and whether the tool itself failed.

    A summary that counts errors where no report could be read is a report of its own.
    """
    reports, counted = [], 0
    for block in blocks(output):
        summary = SUMMARY.search(block[0])
        if summary:
            counted = int(summary.group(1))
        elif not NO_REPORT.match(block[0]) and not any(sign in block[0] for sign in BROKEN):
            report = report_of(block)
            if report not in reports:
                reports.append(report)
    if counted and not reports:
        reports.append(["errors that were counted and not shown"])
    lines = [line for line in output.splitlines() if not line.startswith('{"result"')]
    return reports, any(sign in line for line in lines for sign in BROKEN)


def new_reports(reports, of_unmutated):
    """Those that the unmutated kernel's run did not give."""
    known = {tuple(report) for report in of_unmutated}
    return [report for report in reports if tuple(report) not in known]
