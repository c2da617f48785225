#!/usr/bin/env python3
"""The assembler statements of tcgen05.ld and st, a list of operands for each number of registers.

    generate_tcgen05.py HEADER [--check]

HEADER is include/tegula/arch/tcgen05_operands.hpp.
"""

import pathlib
import sys

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128)
HEAD = """// Written by scripts/generate_tcgen05.py.
#pragma once

#include <cstdint>

#include "tegula/macros.hpp"

#if TEGULA_GPU

namespace tegula::detail {

/// The assembler statements of tcgen05.ld and st with Count registers. The compiler pastes in
/// Shape::value, the shape and the repetitions, ".32x32b.x4", and behind the address Split::value.
template <int Count> struct Tcgen05Statement;

// clang-format off
// TEGULA_TCGEN05_R<COUNT>(C): the registers as operands of constraint C; TEGULA_TCGEN05_P<COUNT>:
// their places in the text.
"""
BODY = """
#define TEGULA_TCGEN05(COUNT, ADDRESS, SHAPE, SPLIT)                                                  \\
  template <> struct Tcgen05Statement<COUNT> {                                                        \\
    template <class Shape, class Split>                                                                \\
    TEGULA_DEVICE static void load(std::uint32_t (&r)[COUNT], std::uint32_t a) {                       \\
      asm volatile("tcgen05.ld.sync.aligned%" SHAPE ".b32 {" TEGULA_TCGEN05_P##COUNT "}, [%" ADDRESS "]%" SPLIT ";" \\
                   : TEGULA_TCGEN05_R##COUNT("=r") : "r"(a), "C"(Shape::value), "C"(Split::value));    \\
    }                                                                                                  \\
    template <class Shape, class Split>                                                                \\
    TEGULA_DEVICE static void store(std::uint32_t const (&r)[COUNT], std::uint32_t a) {                \\
      asm volatile("tcgen05.st.sync.aligned%" SHAPE ".b32 [%" ADDRESS "]%" SPLIT ", {" TEGULA_TCGEN05_P##COUNT "};" \\
                   :: TEGULA_TCGEN05_R##COUNT("r"), "r"(a), "C"(Shape::value), "C"(Split::value) : "memory"); \\
    }                                                                                                  \\
    TEGULA_DEVICE static void pin(std::uint32_t (&r)[COUNT]) {                                         \\
      asm volatile("" : TEGULA_TCGEN05_R##COUNT("+r")::"memory");                                      \\
    }                                                                                                  \\
  };

"""


def text() -> str:
    lines = [HEAD]
    previous = 0
    for count in COUNTS:
        own = range(previous, count)
        registers = ", ".join(f"C(r[{i}])" for i in own)
        places = ", ".join(f"%{i}" for i in own)
        joined = f"TEGULA_TCGEN05_R{previous}(C), " if previous else ""
        text_before = f'TEGULA_TCGEN05_P{previous} ", ' if previous else '"'
        lines.append(f"#define TEGULA_TCGEN05_R{count}(C) {joined}{registers}\n")
        lines.append(f'#define TEGULA_TCGEN05_P{count} {text_before}{places}"\n')
        previous = count
    lines.append(BODY)
    lines += [f'TEGULA_TCGEN05({count}, "{count}", "{count + 1}", "{count + 2}")\n' for count in COUNTS]
    lines.append("\n")
    lines += [f"#undef TEGULA_TCGEN05_{kind}{count}\n" for count in COUNTS for kind in "RP"]
    lines.append("#undef TEGULA_TCGEN05\n// clang-format on\n\n}  // namespace tegula::detail\n\n#endif\n")
    return "".join(lines)


if __name__ == "__main__":
    header = pathlib.Path(sys.argv[1])
    if sys.argv[2:] == ["--check"]:
        sys.exit(0 if header.read_text() == text() else f"{header} is not what scripts/generate_tcgen05.py writes: run it again")
    header.write_text(text())
