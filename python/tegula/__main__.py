"""`python -m tegula` is the command-line tool (docs/tool.md)."""

from __future__ import annotations

import os
import sys
from ctypes import c_char_p

from ._library import library


def main() -> int:
    """Runs the tool with this process's arguments; returns its exit status."""
    arguments = ["tegula", *sys.argv[1:]]
    argv = (c_char_p * (len(arguments) + 1))(*map(os.fsencode, arguments), None)
    return int(library.tegula_main(len(arguments), argv))


if __name__ == "__main__":
    sys.exit(main())
