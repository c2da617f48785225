// Written by scripts/generate_tcgen05.py.
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
#define TEGULA_TCGEN05_R1(C) C(r[0])
#define TEGULA_TCGEN05_P1 "%0"
#define TEGULA_TCGEN05_R2(C) TEGULA_TCGEN05_R1(C), C(r[1])
#define TEGULA_TCGEN05_P2 TEGULA_TCGEN05_P1 ", %1"
#define TEGULA_TCGEN05_R4(C) TEGULA_TCGEN05_R2(C), C(r[2]), C(r[3])
#define TEGULA_TCGEN05_P4 TEGULA_TCGEN05_P2 ", %2, %3"
#define TEGULA_TCGEN05_R8(C) TEGULA_TCGEN05_R4(C), C(r[4]), C(r[5]), C(r[6]), C(r[7])
#define TEGULA_TCGEN05_P8 TEGULA_TCGEN05_P4 ", %4, %5, %6, %7"
#define TEGULA_TCGEN05_R16(C) TEGULA_TCGEN05_R8(C), C(r[8]), C(r[9]), C(r[10]), C(r[11]), C(r[12]), C(r[13]), C(r[14]), C(r[15])
#define TEGULA_TCGEN05_P16 TEGULA_TCGEN05_P8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define TEGULA_TCGEN05_R32(C) TEGULA_TCGEN05_R16(C), C(r[16]), C(r[17]), C(r[18]), C(r[19]), C(r[20]), C(r[21]), C(r[22]), C(r[23]), C(r[24]), C(r[25]), C(r[26]), C(r[27]), C(r[28]), C(r[29]), C(r[30]), C(r[31])
#define TEGULA_TCGEN05_P32 TEGULA_TCGEN05_P16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TEGULA_TCGEN05_R64(C) TEGULA_TCGEN05_R32(C), C(r[32]), C(r[33]), C(r[34]), C(r[35]), C(r[36]), C(r[37]), C(r[38]), C(r[39]), C(r[40]), C(r[41]), C(r[42]), C(r[43]), C(r[44]), C(r[45]), C(r[46]), C(r[47]), C(r[48]), C(r[49]), C(r[50]), C(r[51]), C(r[52]), C(r[53]), C(r[54]), C(r[55]), C(r[56]), C(r[57]), C(r[58]), C(r[59]), C(r[60]), C(r[61]), C(r[62]), C(r[63])
#define TEGULA_TCGEN05_P64 TEGULA_TCGEN05_P32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TEGULA_TCGEN05_R128(C) TEGULA_TCGEN05_R64(C), C(r[64]), C(r[65]), C(r[66]), C(r[67]), C(r[68]), C(r[69]), C(r[70]), C(r[71]), C(r[72]), C(r[73]), C(r[74]), C(r[75]), C(r[76]), C(r[77]), C(r[78]), C(r[79]), C(r[80]), C(r[81]), C(r[82]), C(r[83]), C(r[84]), C(r[85]), C(r[86]), C(r[87]), C(r[88]), C(r[89]), C(r[90]), C(r[91]), C(r[92]), C(r[93]), C(r[94]), C(r[95]), C(r[96]), C(r[97]), C(r[98]), C(r[99]), C(r[100]), C(r[101]), C(r[102]), C(r[103]), C(r[104]), C(r[105]), C(r[106]), C(r[107]), C(r[108]), C(r[109]), C(r[110]), C(r[111]), C(r[112]), C(r[113]), C(r[114]), C(r[115]), C(r[116]), C(r[117]), C(r[118]), C(r[119]), C(r[120]), C(r[121]), C(r[122]), C(r[123]), C(r[124]), C(r[125]), C(r[126]), C(r[127])
#define TEGULA_TCGEN05_P128 TEGULA_TCGEN05_P64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define TEGULA_TCGEN05(COUNT, ADDRESS, SHAPE, SPLIT)                                                  \
  template <> struct Tcgen05Statement<COUNT> {                                                        \
    template <class Shape, class Split>                                                                \
    TEGULA_DEVICE static void load(std::uint32_t (&r)[COUNT], std::uint32_t a) {                       \
      asm volatile("tcgen05.ld.sync.aligned%" SHAPE ".b32 {" TEGULA_TCGEN05_P##COUNT "}, [%" ADDRESS "]%" SPLIT ";" \
                   : TEGULA_TCGEN05_R##COUNT("=r") : "r"(a), "C"(Shape::value), "C"(Split::value));    \
    }                                                                                                  \
    template <class Shape, class Split>                                                                \
    TEGULA_DEVICE static void store(std::uint32_t const (&r)[COUNT], std::uint32_t a) {                \
      asm volatile("tcgen05.st.sync.aligned%" SHAPE ".b32 [%" ADDRESS "]%" SPLIT ", {" TEGULA_TCGEN05_P##COUNT "};" \
                   :: TEGULA_TCGEN05_R##COUNT("r"), "r"(a), "C"(Shape::value), "C"(Split::value) : "memory"); \
    }                                                                                                  \
    TEGULA_DEVICE static void pin(std::uint32_t (&r)[COUNT]) {                                         \
      asm volatile("" : TEGULA_TCGEN05_R##COUNT("+r")::"memory");                                      \
    }                                                                                                  \
  };

TEGULA_TCGEN05(1, "1", "2", "3")
TEGULA_TCGEN05(2, "2", "3", "4")
TEGULA_TCGEN05(4, "4", "5", "6")
TEGULA_TCGEN05(8, "8", "9", "10")
TEGULA_TCGEN05(16, "16", "17", "18")
TEGULA_TCGEN05(32, "32", "33", "34")
TEGULA_TCGEN05(64, "64", "65", "66")
TEGULA_TCGEN05(128, "128", "129", "130")

#undef TEGULA_TCGEN05_R1
#undef TEGULA_TCGEN05_P1
#undef TEGULA_TCGEN05_R2
#undef TEGULA_TCGEN05_P2
#undef TEGULA_TCGEN05_R4
#undef TEGULA_TCGEN05_P4
#undef TEGULA_TCGEN05_R8
#undef TEGULA_TCGEN05_P8
#undef TEGULA_TCGEN05_R16
#undef TEGULA_TCGEN05_P16
#undef TEGULA_TCGEN05_R32
#undef TEGULA_TCGEN05_P32
#undef TEGULA_TCGEN05_R64
#undef TEGULA_TCGEN05_P64
#undef TEGULA_TCGEN05_R128
#undef TEGULA_TCGEN05_P128
#undef TEGULA_TCGEN05
// clang-format on

}  // namespace tegula::detail

#endif
