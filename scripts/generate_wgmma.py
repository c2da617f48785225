#!/usr/bin/env python3
"""The assembler statements of wgmma.mma_async, one for each number and kind of accumulator registers.

    generate_wgmma.py HEADER [--check]

Writes HEADER (include/tegula/arch/wgmma_operands.hpp): the operand list of an assembler statement cannot be computed by a template.
With --check nothing is written, and the exit status is 1 where HEADER differs from what would be.
"""

import argparse
import pathlib
import sys

HEAD = """\
// Written by scripts/generate_wgmma.py.
#pragma once

#include <cstdint>

#include "tegula/macros.hpp"

#if TEGULA_GPU

namespace tegula::detail {

/// The assembler statements of wgmma.mma_async with Count accumulator registers of type D.
/// Text::Name follows "wgmma.mma_async.sync.aligned." and Text::Tail the predicate scale-d; the
/// assembler pastes both in.
template <class D, int Count> struct WgmmaStatement;

// clang-format off
// TEGULA_WGMMA_D<COUNT>(C): the registers d[0] ... as operands of constraint C.
// TEGULA_WGMMA_P<COUNT>: their places in the text. TEGULA_WGMMA: the places P0 to P7 are those of
// the operands that follow.
"""

STATEMENTS = """\
#define TEGULA_WGMMA(D, C, COUNT, P0, P1, P2, P3, P4, P5, P6, P7)                                      \\
  template <> struct WgmmaStatement<D, COUNT> {                                                        \\
    template <class Text>                                                                              \\
    TEGULA_DEVICE static void issue(D (&d)[COUNT], std::uint64_t a, std::uint64_t b, int scale_d) {    \\
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %" P2 ", 0; wgmma.mma_async.sync.aligned.%" P3      \\
                   " {" TEGULA_WGMMA_P##COUNT "}, %" P0 ", %" P1 ", p%" P4 "; }"                       \\
                   : TEGULA_WGMMA_D##COUNT(C)                                                          \\
                   : "l"(a), "l"(b), "r"(scale_d), "C"(Text::Name::value), "C"(Text::Tail::value));                  \\
    }                                                                                                  \\
    template <class Text>                                                                              \\
    TEGULA_DEVICE static void issue(D (&d)[COUNT], std::uint32_t const (&a)[4], std::uint64_t b,       \\
                                    int scale_d) {                                                     \\
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %" P5 ", 0; wgmma.mma_async.sync.aligned.%" P6      \\
                   " {" TEGULA_WGMMA_P##COUNT "}, {%" P0 ", %" P1 ", %" P2 ", %" P3 "}, %" P4          \\
                   ", p%" P7 "; }"                                                                     \\
                   : TEGULA_WGMMA_D##COUNT(C)                                                          \\
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(scale_d),                 \\
                     "C"(Text::Name::value), "C"(Text::Tail::value));                                                \\
    }                                                                                                  \\
    TEGULA_DEVICE static void pin(D (&d)[COUNT]) { asm volatile("" : TEGULA_WGMMA_D##COUNT(C)::"memory"); } \\
  };
"""

TAIL = """\

#undef TEGULA_WGMMA
// clang-format on

}  // namespace tegula::detail

#endif
"""

WHOLE = set(range(4, 129, 4))  # N / 2: floats, or 32-bit integers
HALVES = set(range(2, 65, 2))  # N / 4: pairs of halves


def header():
    lines = []
    counts = sorted(WHOLE | HALVES)
    for before, count in zip([0] + counts, counts):
        new = range(before, count)
        registers = [f"TEGULA_WGMMA_D{before}(C)"] if before else []
        registers += [f"C(d[{i}])" for i in new]
        lines.append(f"#define TEGULA_WGMMA_D{count}(C) {', '.join(registers)}")
        places = ", ".join(f"%{i}" for i in new)
        lines.append(f"#define TEGULA_WGMMA_P{count} " + (f'TEGULA_WGMMA_P{before} ", {places}"' if before else f'"{places}"'))
    statements = []
    for kind, constraint, kinds_counts in (("float", "+f", WHOLE), ("std::uint32_t", "+r", WHOLE | HALVES)):
        for count in sorted(kinds_counts):
            places = ", ".join(f'"{count + i}"' for i in range(8))
            statements.append(f'TEGULA_WGMMA({kind}, "{constraint}", {count}, {places})')
    undefine = [f"#undef TEGULA_WGMMA_{letter}{count}" for count in counts for letter in "DP"]
    return HEAD + "\n".join(lines) + "\n\n" + STATEMENTS + "\n" + "\n".join(statements) + "\n\n" + "\n".join(undefine) + TAIL


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("header", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    args = parser.parse_args()
    if not args.check:
        args.header.write_text(header(), encoding="utf-8")
        return 0
    if args.header.read_text(encoding="utf-8") == header():
        return 0
    print(f"{args.header} is not what scripts/generate_wgmma.py writes: run it again")
    return 1


if __name__ == "__main__":
    sys.exit(main())
