"""Runs the GPU's tests without pytest: python3 python/tests/gpu/run.py [WORD...]

With words, only the tests whose names have one of them. Prints a line a test; exits 1 if one failed.
"""

from __future__ import annotations

import importlib
import pathlib
import sys
import time
import traceback

FOLDER = pathlib.Path(__file__).resolve().parent


def main(words: list[str]) -> int:
    sys.path.insert(0, str(FOLDER))
    failed = 0
    for module in (importlib.import_module(path.stem) for path in sorted(FOLDER.glob("test_*.py"))):
        for name, test in list(vars(module).items()):
            if not name.startswith("test_") or (words and not any(word in name for word in words)):
                continue
            began = time.perf_counter()
            try:
                test()
                outcome = "ok"
            except Exception:
                traceback.print_exc()
                outcome = "FAILED"
                failed += 1
            print(f"{outcome:7} {time.perf_counter() - began:7.2f} s  {module.__name__}.{name}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
