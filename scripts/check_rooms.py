#!/usr/bin/env python3
"""Holds the rooms of src/sim to one direction of imports: check_rooms.py [ROOT]

A folder of src/sim is a room. IMPORTS says which other rooms its files may include; a room stands above all that it imports, so
that there is no circle. Files are included by their path from src/sim ("machine/cta.hpp"). EXCEPTIONS has the imports that point
the wrong way today, each with its reason: a new one is a fault, and so is an entry that nothing needs any more. The folders of
tests/sim are named after the rooms whose files they test. Prints the exceptions and a line for each fault, and exits 1 if there is
any.
"""

import pathlib
import re
import sys

IMPORTS = {
    "values": [],  # instructions by name, places, boxes, schedules
    "arithmetic": [],  # what tensor cores and special-function units compute
    "report": ["values"],  # findings, reports and traces as text
    # clusters, CTAs, threads, memories, what is in flight: executes and emits events
    "machine": ["values", "report"],
    "mutation": ["values", "machine"],  # executes a kernel with a statement changed
    # a file an instruction family
    "isa": ["values", "report", "arithmetic", "machine", "mutation"],
    "profile": ["values", "report", "machine"],  # observers: counters, timeline
    # observers: races, copies, coverage, limits
    "checker": ["values", "report", "machine", "profile"],
    "explore": ["values", "report", "machine"],  # observer: all orders of a small kernel
    # puts them together
    "launch": ["values", "report", "machine", "mutation", "profile", "checker", "explore"],
}

# (file, what it includes): why.
EXCEPTIONS = {}

SHARED_BY_TESTS = {"support"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def faults_of_order():
    placed = set()
    for room, below in IMPORTS.items():
        for other in below:
            if other not in placed:
                yield f"room {room} imports {other}, which does not stand below it"
        placed.add(room)


def faults_of_file(root, path, used):
    room = path.split("/")[0]
    if room not in IMPORTS or "/" not in path:
        yield "lies in no room"
        return
    for target in INCLUDE.findall((root / path).read_text(encoding="utf-8")):
        if target.startswith("tegula/"):
            continue
        other = target.split("/")[0]
        if not (root / target).is_file():
            yield f'includes "{target}": files are included by their path from src/sim'
        elif other != room and other not in IMPORTS[room]:
            if (path, target) in EXCEPTIONS:
                used.add((path, target))
            else:
                yield f"includes {target}: {room}/ does not import {other}/"


def main():
    top = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    root = top / "src" / "sim"
    files = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.[ch]pp"))
    faults = list(faults_of_order())
    used = set()
    for path in files:
        faults += [f"src/sim/{path}: {fault}" for fault in faults_of_file(root, path, used)]
    for entry in EXCEPTIONS:
        if entry in used:
            print(f"exception: {entry[0]} includes {entry[1]}: {EXCEPTIONS[entry]}")
        else:
            faults.append(f"the exception {entry[0]}, {entry[1]} is needed no longer")
    for folder in sorted(p.name for p in (top / "tests" / "sim").iterdir() if p.is_dir()):
        if folder not in IMPORTS and folder not in SHARED_BY_TESTS:
            faults.append(f"tests/sim/{folder} is named after no room")
    for fault in faults:
        print(fault)
    print(f"{len(files)} files, {len(used)} exceptions, {len(faults)} faults")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
