#!/usr/bin/env python3
"""Holds the C interface's library to its header: check_shared_library.py LIBRARY HEADER

The library exports every function that the header declares and, under the version TEGULA_SIM, the simulated machine's, which kernels
compiled by its users call. It exports no other symbol, and needs no library but the C library's own and
those of CUDA's driver. Prints one line a fault and exits 1 if there is any.
"""

import re
import subprocess
import sys

SIMULATED = re.compile(r"_ZNK?6tegula3sim.*@@TEGULA_SIM")
MAY_BE_NEEDED = re.compile(r"(libc|libm|libdl|librt|libpthread|ld-linux[-_a-z0-9]*)\.so\.\d+")


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout.splitlines()
    # Versions of symbols are absolute symbols.
    symbols = [line.split()[-1] for line in lines if " A " not in line]
    return {symbol.split("@")[0] for symbol in symbols if not SIMULATED.fullmatch(symbol)}


def needed(library):
    text = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def main():
    library, header = sys.argv[1:]
    with open(header, encoding="utf-8") as file:
        code = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    declared = set(re.findall(r"\b(tegula_\w+)\(", code))
    symbols = exported(library)
    faults = [f"{name} is declared in {header} and not exported" for name in sorted(declared - symbols)]
    faults += [f"{name} is exported and not declared in {header}" for name in sorted(symbols - declared)]
    faults += [f"{name} is needed" for name in needed(library) if not MAY_BE_NEEDED.fullmatch(name)]
    for fault in faults:
        print(f"{library}: {fault}")
    sys.exit(1 if faults or not declared else 0)


if __name__ == "__main__":
    main()
