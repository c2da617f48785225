"""Runs the GPU's tests without pytest: python3 python/tests/gpu/run.py [WORD...]

With words, only the tests whose names have one of them. Prints a line a test, and at the end how many passed, were
skipped and failed; exits 1 if one failed. A file that cannot be imported is one that failed.
"""

from __future__ import annotations

import collections
import importlib
import pathlib
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

FOLDER = pathlib.Path(__file__).resolve().parent


def outcome_of(name: str, call: Callable[[], Any]) -> str:
    """Calls it, and prints the outcome, its time and its name."""
    from support import Skipped

    began = time.perf_counter()
    outcome = "ok"
    try:
        call()
    except Skipped as reason:
        outcome = "skipped"
        print(reason)
    except Exception:
        outcome = "FAILED"
        traceback.print_exc(file=sys.stdout)
    print(f"{outcome:8}{time.perf_counter() - began:7.2f} s  {name}", flush=True)
    return outcome


def main(words: list[str]) -> int:
    sys.path.insert(0, str(FOLDER))
    outcomes: collections.Counter[str] = collections.Counter()
    for file in sorted(path.stem for path in FOLDER.glob("test_*.py")):
        imported = outcome_of(f"{file}, imported", lambda: importlib.import_module(file))
        if imported != "ok":
            outcomes[imported] += 1
            continue
        for name, test in list(vars(sys.modules[file]).items()):
            if name.startswith("test_") and (not words or any(word in name for word in words)):
                outcomes[outcome_of(f"{file}.{name}", test)] += 1
    print(f"{outcomes['ok']} passed, {outcomes['skipped']} skipped, {outcomes['FAILED']} failed")
    return 1 if outcomes["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
