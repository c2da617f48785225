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
#define TEGULA_WGMMA_D2(C) C(d[0]), C(d[1])
#define TEGULA_WGMMA_P2 "%0, %1"
#define TEGULA_WGMMA_D4(C) TEGULA_WGMMA_D2(C), C(d[2]), C(d[3])
#define TEGULA_WGMMA_P4 TEGULA_WGMMA_P2 ", %2, %3"
#define TEGULA_WGMMA_D6(C) TEGULA_WGMMA_D4(C), C(d[4]), C(d[5])
#define TEGULA_WGMMA_P6 TEGULA_WGMMA_P4 ", %4, %5"
#define TEGULA_WGMMA_D8(C) TEGULA_WGMMA_D6(C), C(d[6]), C(d[7])
#define TEGULA_WGMMA_P8 TEGULA_WGMMA_P6 ", %6, %7"
#define TEGULA_WGMMA_D10(C) TEGULA_WGMMA_D8(C), C(d[8]), C(d[9])
#define TEGULA_WGMMA_P10 TEGULA_WGMMA_P8 ", %8, %9"
#define TEGULA_WGMMA_D12(C) TEGULA_WGMMA_D10(C), C(d[10]), C(d[11])
#define TEGULA_WGMMA_P12 TEGULA_WGMMA_P10 ", %10, %11"
#define TEGULA_WGMMA_D14(C) TEGULA_WGMMA_D12(C), C(d[12]), C(d[13])
#define TEGULA_WGMMA_P14 TEGULA_WGMMA_P12 ", %12, %13"
#define TEGULA_WGMMA_D16(C) TEGULA_WGMMA_D14(C), C(d[14]), C(d[15])
#define TEGULA_WGMMA_P16 TEGULA_WGMMA_P14 ", %14, %15"
#define TEGULA_WGMMA_D18(C) TEGULA_WGMMA_D16(C), C(d[16]), C(d[17])
#define TEGULA_WGMMA_P18 TEGULA_WGMMA_P16 ", %16, %17"
#define TEGULA_WGMMA_D20(C) TEGULA_WGMMA_D18(C), C(d[18]), C(d[19])
#define TEGULA_WGMMA_P20 TEGULA_WGMMA_P18 ", %18, %19"
#define TEGULA_WGMMA_D22(C) TEGULA_WGMMA_D20(C), C(d[20]), C(d[21])
#define TEGULA_WGMMA_P22 TEGULA_WGMMA_P20 ", %20, %21"
#define TEGULA_WGMMA_D24(C) TEGULA_WGMMA_D22(C), C(d[22]), C(d[23])
#define TEGULA_WGMMA_P24 TEGULA_WGMMA_P22 ", %22, %23"
#define TEGULA_WGMMA_D26(C) TEGULA_WGMMA_D24(C), C(d[24]), C(d[25])
#define TEGULA_WGMMA_P26 TEGULA_WGMMA_P24 ", %24, %25"
#define TEGULA_WGMMA_D28(C) TEGULA_WGMMA_D26(C), C(d[26]), C(d[27])
#define TEGULA_WGMMA_P28 TEGULA_WGMMA_P26 ", %26, %27"
#define TEGULA_WGMMA_D30(C) TEGULA_WGMMA_D28(C), C(d[28]), C(d[29])
#define TEGULA_WGMMA_P30 TEGULA_WGMMA_P28 ", %28, %29"
#define TEGULA_WGMMA_D32(C) TEGULA_WGMMA_D30(C), C(d[30]), C(d[31])
#define TEGULA_WGMMA_P32 TEGULA_WGMMA_P30 ", %30, %31"
#define TEGULA_WGMMA_D34(C) TEGULA_WGMMA_D32(C), C(d[32]), C(d[33])
#define TEGULA_WGMMA_P34 TEGULA_WGMMA_P32 ", %32, %33"
#define TEGULA_WGMMA_D36(C) TEGULA_WGMMA_D34(C), C(d[34]), C(d[35])
#define TEGULA_WGMMA_P36 TEGULA_WGMMA_P34 ", %34, %35"
#define TEGULA_WGMMA_D38(C) TEGULA_WGMMA_D36(C), C(d[36]), C(d[37])
#define TEGULA_WGMMA_P38 TEGULA_WGMMA_P36 ", %36, %37"
#define TEGULA_WGMMA_D40(C) TEGULA_WGMMA_D38(C), C(d[38]), C(d[39])
#define TEGULA_WGMMA_P40 TEGULA_WGMMA_P38 ", %38, %39"
#define TEGULA_WGMMA_D42(C) TEGULA_WGMMA_D40(C), C(d[40]), C(d[41])
#define TEGULA_WGMMA_P42 TEGULA_WGMMA_P40 ", %40, %41"
#define TEGULA_WGMMA_D44(C) TEGULA_WGMMA_D42(C), C(d[42]), C(d[43])
#define TEGULA_WGMMA_P44 TEGULA_WGMMA_P42 ", %42, %43"
#define TEGULA_WGMMA_D46(C) TEGULA_WGMMA_D44(C), C(d[44]), C(d[45])
#define TEGULA_WGMMA_P46 TEGULA_WGMMA_P44 ", %44, %45"
#define TEGULA_WGMMA_D48(C) TEGULA_WGMMA_D46(C), C(d[46]), C(d[47])
#define TEGULA_WGMMA_P48 TEGULA_WGMMA_P46 ", %46, %47"
#define TEGULA_WGMMA_D50(C) TEGULA_WGMMA_D48(C), C(d[48]), C(d[49])
#define TEGULA_WGMMA_P50 TEGULA_WGMMA_P48 ", %48, %49"
#define TEGULA_WGMMA_D52(C) TEGULA_WGMMA_D50(C), C(d[50]), C(d[51])
#define TEGULA_WGMMA_P52 TEGULA_WGMMA_P50 ", %50, %51"
#define TEGULA_WGMMA_D54(C) TEGULA_WGMMA_D52(C), C(d[52]), C(d[53])
#define TEGULA_WGMMA_P54 TEGULA_WGMMA_P52 ", %52, %53"
#define TEGULA_WGMMA_D56(C) TEGULA_WGMMA_D54(C), C(d[54]), C(d[55])
#define TEGULA_WGMMA_P56 TEGULA_WGMMA_P54 ", %54, %55"
#define TEGULA_WGMMA_D58(C) TEGULA_WGMMA_D56(C), C(d[56]), C(d[57])
#define TEGULA_WGMMA_P58 TEGULA_WGMMA_P56 ", %56, %57"
#define TEGULA_WGMMA_D60(C) TEGULA_WGMMA_D58(C), C(d[58]), C(d[59])
#define TEGULA_WGMMA_P60 TEGULA_WGMMA_P58 ", %58, %59"
#define TEGULA_WGMMA_D62(C) TEGULA_WGMMA_D60(C), C(d[60]), C(d[61])
#define TEGULA_WGMMA_P62 TEGULA_WGMMA_P60 ", %60, %61"
#define TEGULA_WGMMA_D64(C) TEGULA_WGMMA_D62(C), C(d[62]), C(d[63])
#define TEGULA_WGMMA_P64 TEGULA_WGMMA_P62 ", %62, %63"
#define TEGULA_WGMMA_D68(C) TEGULA_WGMMA_D64(C), C(d[64]), C(d[65]), C(d[66]), C(d[67])
#define TEGULA_WGMMA_P68 TEGULA_WGMMA_P64 ", %64, %65, %66, %67"
#define TEGULA_WGMMA_D72(C) TEGULA_WGMMA_D68(C), C(d[68]), C(d[69]), C(d[70]), C(d[71])
#define TEGULA_WGMMA_P72 TEGULA_WGMMA_P68 ", %68, %69, %70, %71"
#define TEGULA_WGMMA_D76(C) TEGULA_WGMMA_D72(C), C(d[72]), C(d[73]), C(d[74]), C(d[75])
#define TEGULA_WGMMA_P76 TEGULA_WGMMA_P72 ", %72, %73, %74, %75"
#define TEGULA_WGMMA_D80(C) TEGULA_WGMMA_D76(C), C(d[76]), C(d[77]), C(d[78]), C(d[79])
#define TEGULA_WGMMA_P80 TEGULA_WGMMA_P76 ", %76, %77, %78, %79"
#define TEGULA_WGMMA_D84(C) TEGULA_WGMMA_D80(C), C(d[80]), C(d[81]), C(d[82]), C(d[83])
#define TEGULA_WGMMA_P84 TEGULA_WGMMA_P80 ", %80, %81, %82, %83"
#define TEGULA_WGMMA_D88(C) TEGULA_WGMMA_D84(C), C(d[84]), C(d[85]), C(d[86]), C(d[87])
#define TEGULA_WGMMA_P88 TEGULA_WGMMA_P84 ", %84, %85, %86, %87"
#define TEGULA_WGMMA_D92(C) TEGULA_WGMMA_D88(C), C(d[88]), C(d[89]), C(d[90]), C(d[91])
#define TEGULA_WGMMA_P92 TEGULA_WGMMA_P88 ", %88, %89, %90, %91"
#define TEGULA_WGMMA_D96(C) TEGULA_WGMMA_D92(C), C(d[92]), C(d[93]), C(d[94]), C(d[95])
#define TEGULA_WGMMA_P96 TEGULA_WGMMA_P92 ", %92, %93, %94, %95"
#define TEGULA_WGMMA_D100(C) TEGULA_WGMMA_D96(C), C(d[96]), C(d[97]), C(d[98]), C(d[99])
#define TEGULA_WGMMA_P100 TEGULA_WGMMA_P96 ", %96, %97, %98, %99"
#define TEGULA_WGMMA_D104(C) TEGULA_WGMMA_D100(C), C(d[100]), C(d[101]), C(d[102]), C(d[103])
#define TEGULA_WGMMA_P104 TEGULA_WGMMA_P100 ", %100, %101, %102, %103"
#define TEGULA_WGMMA_D108(C) TEGULA_WGMMA_D104(C), C(d[104]), C(d[105]), C(d[106]), C(d[107])
#define TEGULA_WGMMA_P108 TEGULA_WGMMA_P104 ", %104, %105, %106, %107"
#define TEGULA_WGMMA_D112(C) TEGULA_WGMMA_D108(C), C(d[108]), C(d[109]), C(d[110]), C(d[111])
#define TEGULA_WGMMA_P112 TEGULA_WGMMA_P108 ", %108, %109, %110, %111"
#define TEGULA_WGMMA_D116(C) TEGULA_WGMMA_D112(C), C(d[112]), C(d[113]), C(d[114]), C(d[115])
#define TEGULA_WGMMA_P116 TEGULA_WGMMA_P112 ", %112, %113, %114, %115"
#define TEGULA_WGMMA_D120(C) TEGULA_WGMMA_D116(C), C(d[116]), C(d[117]), C(d[118]), C(d[119])
#define TEGULA_WGMMA_P120 TEGULA_WGMMA_P116 ", %116, %117, %118, %119"
#define TEGULA_WGMMA_D124(C) TEGULA_WGMMA_D120(C), C(d[120]), C(d[121]), C(d[122]), C(d[123])
#define TEGULA_WGMMA_P124 TEGULA_WGMMA_P120 ", %120, %121, %122, %123"
#define TEGULA_WGMMA_D128(C) TEGULA_WGMMA_D124(C), C(d[124]), C(d[125]), C(d[126]), C(d[127])
#define TEGULA_WGMMA_P128 TEGULA_WGMMA_P124 ", %124, %125, %126, %127"

#define TEGULA_WGMMA(D, C, COUNT, P0, P1, P2, P3, P4, P5, P6, P7)                                      \
  template <> struct WgmmaStatement<D, COUNT> {                                                        \
    template <class Text>                                                                              \
    TEGULA_DEVICE static void issue(D (&d)[COUNT], std::uint64_t a, std::uint64_t b, int scale_d) {    \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %" P2 ", 0; wgmma.mma_async.sync.aligned.%" P3      \
                   " {" TEGULA_WGMMA_P##COUNT "}, %" P0 ", %" P1 ", p%" P4 "; }"                       \
                   : TEGULA_WGMMA_D##COUNT(C)                                                          \
                   : "l"(a), "l"(b), "r"(scale_d), "C"(Text::Name::value), "C"(Text::Tail::value));                  \
    }                                                                                                  \
    template <class Text>                                                                              \
    TEGULA_DEVICE static void issue(D (&d)[COUNT], std::uint32_t const (&a)[4], std::uint64_t b,       \
                                    int scale_d) {                                                     \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %" P5 ", 0; wgmma.mma_async.sync.aligned.%" P6      \
                   " {" TEGULA_WGMMA_P##COUNT "}, {%" P0 ", %" P1 ", %" P2 ", %" P3 "}, %" P4          \
                   ", p%" P7 "; }"                                                                     \
                   : TEGULA_WGMMA_D##COUNT(C)                                                          \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(scale_d),                 \
                     "C"(Text::Name::value), "C"(Text::Tail::value));                                                \
    }                                                                                                  \
    TEGULA_DEVICE static void pin(D (&d)[COUNT]) { asm volatile("" : TEGULA_WGMMA_D##COUNT(C)::"memory"); } \
  };

TEGULA_WGMMA(float, "+f", 4, "4", "5", "6", "7", "8", "9", "10", "11")
TEGULA_WGMMA(float, "+f", 8, "8", "9", "10", "11", "12", "13", "14", "15")
TEGULA_WGMMA(float, "+f", 12, "12", "13", "14", "15", "16", "17", "18", "19")
TEGULA_WGMMA(float, "+f", 16, "16", "17", "18", "19", "20", "21", "22", "23")
TEGULA_WGMMA(float, "+f", 20, "20", "21", "22", "23", "24", "25", "26", "27")
TEGULA_WGMMA(float, "+f", 24, "24", "25", "26", "27", "28", "29", "30", "31")
TEGULA_WGMMA(float, "+f", 28, "28", "29", "30", "31", "32", "33", "34", "35")
TEGULA_WGMMA(float, "+f", 32, "32", "33", "34", "35", "36", "37", "38", "39")
TEGULA_WGMMA(float, "+f", 36, "36", "37", "38", "39", "40", "41", "42", "43")
TEGULA_WGMMA(float, "+f", 40, "40", "41", "42", "43", "44", "45", "46", "47")
TEGULA_WGMMA(float, "+f", 44, "44", "45", "46", "47", "48", "49", "50", "51")
TEGULA_WGMMA(float, "+f", 48, "48", "49", "50", "51", "52", "53", "54", "55")
TEGULA_WGMMA(float, "+f", 52, "52", "53", "54", "55", "56", "57", "58", "59")
TEGULA_WGMMA(float, "+f", 56, "56", "57", "58", "59", "60", "61", "62", "63")
TEGULA_WGMMA(float, "+f", 60, "60", "61", "62", "63", "64", "65", "66", "67")
TEGULA_WGMMA(float, "+f", 64, "64", "65", "66", "67", "68", "69", "70", "71")
TEGULA_WGMMA(float, "+f", 68, "68", "69", "70", "71", "72", "73", "74", "75")
TEGULA_WGMMA(float, "+f", 72, "72", "73", "74", "75", "76", "77", "78", "79")
TEGULA_WGMMA(float, "+f", 76, "76", "77", "78", "79", "80", "81", "82", "83")
TEGULA_WGMMA(float, "+f", 80, "80", "81", "82", "83", "84", "85", "86", "87")
TEGULA_WGMMA(float, "+f", 84, "84", "85", "86", "87", "88", "89", "90", "91")
TEGULA_WGMMA(float, "+f", 88, "88", "89", "90", "91", "92", "93", "94", "95")
TEGULA_WGMMA(float, "+f", 92, "92", "93", "94", "95", "96", "97", "98", "99")
TEGULA_WGMMA(float, "+f", 96, "96", "97", "98", "99", "100", "101", "102", "103")
TEGULA_WGMMA(float, "+f", 100, "100", "101", "102", "103", "104", "105", "106", "107")
TEGULA_WGMMA(float, "+f", 104, "104", "105", "106", "107", "108", "109", "110", "111")
TEGULA_WGMMA(float, "+f", 108, "108", "109", "110", "111", "112", "113", "114", "115")
TEGULA_WGMMA(float, "+f", 112, "112", "113", "114", "115", "116", "117", "118", "119")
TEGULA_WGMMA(float, "+f", 116, "116", "117", "118", "119", "120", "121", "122", "123")
TEGULA_WGMMA(float, "+f", 120, "120", "121", "122", "123", "124", "125", "126", "127")
TEGULA_WGMMA(float, "+f", 124, "124", "125", "126", "127", "128", "129", "130", "131")
TEGULA_WGMMA(float, "+f", 128, "128", "129", "130", "131", "132", "133", "134", "135")
TEGULA_WGMMA(std::uint32_t, "+r", 2, "2", "3", "4", "5", "6", "7", "8", "9")
TEGULA_WGMMA(std::uint32_t, "+r", 4, "4", "5", "6", "7", "8", "9", "10", "11")
TEGULA_WGMMA(std::uint32_t, "+r", 6, "6", "7", "8", "9", "10", "11", "12", "13")
TEGULA_WGMMA(std::uint32_t, "+r", 8, "8", "9", "10", "11", "12", "13", "14", "15")
TEGULA_WGMMA(std::uint32_t, "+r", 10, "10", "11", "12", "13", "14", "15", "16", "17")
TEGULA_WGMMA(std::uint32_t, "+r", 12, "12", "13", "14", "15", "16", "17", "18", "19")
TEGULA_WGMMA(std::uint32_t, "+r", 14, "14", "15", "16", "17", "18", "19", "20", "21")
TEGULA_WGMMA(std::uint32_t, "+r", 16, "16", "17", "18", "19", "20", "21", "22", "23")
TEGULA_WGMMA(std::uint32_t, "+r", 18, "18", "19", "20", "21", "22", "23", "24", "25")
TEGULA_WGMMA(std::uint32_t, "+r", 20, "20", "21", "22", "23", "24", "25", "26", "27")
TEGULA_WGMMA(std::uint32_t, "+r", 22, "22", "23", "24", "25", "26", "27", "28", "29")
TEGULA_WGMMA(std::uint32_t, "+r", 24, "24", "25", "26", "27", "28", "29", "30", "31")
TEGULA_WGMMA(std::uint32_t, "+r", 26, "26", "27", "28", "29", "30", "31", "32", "33")
TEGULA_WGMMA(std::uint32_t, "+r", 28, "28", "29", "30", "31", "32", "33", "34", "35")
TEGULA_WGMMA(std::uint32_t, "+r", 30, "30", "31", "32", "33", "34", "35", "36", "37")
TEGULA_WGMMA(std::uint32_t, "+r", 32, "32", "33", "34", "35", "36", "37", "38", "39")
TEGULA_WGMMA(std::uint32_t, "+r", 34, "34", "35", "36", "37", "38", "39", "40", "41")
TEGULA_WGMMA(std::uint32_t, "+r", 36, "36", "37", "38", "39", "40", "41", "42", "43")
TEGULA_WGMMA(std::uint32_t, "+r", 38, "38", "39", "40", "41", "42", "43", "44", "45")
TEGULA_WGMMA(std::uint32_t, "+r", 40, "40", "41", "42", "43", "44", "45", "46", "47")
TEGULA_WGMMA(std::uint32_t, "+r", 42, "42", "43", "44", "45", "46", "47", "48", "49")
TEGULA_WGMMA(std::uint32_t, "+r", 44, "44", "45", "46", "47", "48", "49", "50", "51")
TEGULA_WGMMA(std::uint32_t, "+r", 46, "46", "47", "48", "49", "50", "51", "52", "53")
TEGULA_WGMMA(std::uint32_t, "+r", 48, "48", "49", "50", "51", "52", "53", "54", "55")
TEGULA_WGMMA(std::uint32_t, "+r", 50, "50", "51", "52", "53", "54", "55", "56", "57")
TEGULA_WGMMA(std::uint32_t, "+r", 52, "52", "53", "54", "55", "56", "57", "58", "59")
TEGULA_WGMMA(std::uint32_t, "+r", 54, "54", "55", "56", "57", "58", "59", "60", "61")
TEGULA_WGMMA(std::uint32_t, "+r", 56, "56", "57", "58", "59", "60", "61", "62", "63")
TEGULA_WGMMA(std::uint32_t, "+r", 58, "58", "59", "60", "61", "62", "63", "64", "65")
TEGULA_WGMMA(std::uint32_t, "+r", 60, "60", "61", "62", "63", "64", "65", "66", "67")
TEGULA_WGMMA(std::uint32_t, "+r", 62, "62", "63", "64", "65", "66", "67", "68", "69")
TEGULA_WGMMA(std::uint32_t, "+r", 64, "64", "65", "66", "67", "68", "69", "70", "71")
TEGULA_WGMMA(std::uint32_t, "+r", 68, "68", "69", "70", "71", "72", "73", "74", "75")
TEGULA_WGMMA(std::uint32_t, "+r", 72, "72", "73", "74", "75", "76", "77", "78", "79")
TEGULA_WGMMA(std::uint32_t, "+r", 76, "76", "77", "78", "79", "80", "81", "82", "83")
TEGULA_WGMMA(std::uint32_t, "+r", 80, "80", "81", "82", "83", "84", "85", "86", "87")
TEGULA_WGMMA(std::uint32_t, "+r", 84, "84", "85", "86", "87", "88", "89", "90", "91")
TEGULA_WGMMA(std::uint32_t, "+r", 88, "88", "89", "90", "91", "92", "93", "94", "95")
TEGULA_WGMMA(std::uint32_t, "+r", 92, "92", "93", "94", "95", "96", "97", "98", "99")
TEGULA_WGMMA(std::uint32_t, "+r", 96, "96", "97", "98", "99", "100", "101", "102", "103")
TEGULA_WGMMA(std::uint32_t, "+r", 100, "100", "101", "102", "103", "104", "105", "106", "107")
TEGULA_WGMMA(std::uint32_t, "+r", 104, "104", "105", "106", "107", "108", "109", "110", "111")
TEGULA_WGMMA(std::uint32_t, "+r", 108, "108", "109", "110", "111", "112", "113", "114", "115")
TEGULA_WGMMA(std::uint32_t, "+r", 112, "112", "113", "114", "115", "116", "117", "118", "119")
TEGULA_WGMMA(std::uint32_t, "+r", 116, "116", "117", "118", "119", "120", "121", "122", "123")
TEGULA_WGMMA(std::uint32_t, "+r", 120, "120", "121", "122", "123", "124", "125", "126", "127")
TEGULA_WGMMA(std::uint32_t, "+r", 124, "124", "125", "126", "127", "128", "129", "130", "131")
TEGULA_WGMMA(std::uint32_t, "+r", 128, "128", "129", "130", "131", "132", "133", "134", "135")

#undef TEGULA_WGMMA_D2
#undef TEGULA_WGMMA_P2
#undef TEGULA_WGMMA_D4
#undef TEGULA_WGMMA_P4
#undef TEGULA_WGMMA_D6
#undef TEGULA_WGMMA_P6
#undef TEGULA_WGMMA_D8
#undef TEGULA_WGMMA_P8
#undef TEGULA_WGMMA_D10
#undef TEGULA_WGMMA_P10
#undef TEGULA_WGMMA_D12
#undef TEGULA_WGMMA_P12
#undef TEGULA_WGMMA_D14
#undef TEGULA_WGMMA_P14
#undef TEGULA_WGMMA_D16
#undef TEGULA_WGMMA_P16
#undef TEGULA_WGMMA_D18
#undef TEGULA_WGMMA_P18
#undef TEGULA_WGMMA_D20
#undef TEGULA_WGMMA_P20
#undef TEGULA_WGMMA_D22
#undef TEGULA_WGMMA_P22
#undef TEGULA_WGMMA_D24
#undef TEGULA_WGMMA_P24
#undef TEGULA_WGMMA_D26
#undef TEGULA_WGMMA_P26
#undef TEGULA_WGMMA_D28
#undef TEGULA_WGMMA_P28
#undef TEGULA_WGMMA_D30
#undef TEGULA_WGMMA_P30
#undef TEGULA_WGMMA_D32
#undef TEGULA_WGMMA_P32
#undef TEGULA_WGMMA_D34
#undef TEGULA_WGMMA_P34
#undef TEGULA_WGMMA_D36
#undef TEGULA_WGMMA_P36
#undef TEGULA_WGMMA_D38
#undef TEGULA_WGMMA_P38
#undef TEGULA_WGMMA_D40
#undef TEGULA_WGMMA_P40
#undef TEGULA_WGMMA_D42
#undef TEGULA_WGMMA_P42
#undef TEGULA_WGMMA_D44
#undef TEGULA_WGMMA_P44
#undef TEGULA_WGMMA_D46
#undef TEGULA_WGMMA_P46
#undef TEGULA_WGMMA_D48
#undef TEGULA_WGMMA_P48
#undef TEGULA_WGMMA_D50
#undef TEGULA_WGMMA_P50
#undef TEGULA_WGMMA_D52
#undef TEGULA_WGMMA_P52
#undef TEGULA_WGMMA_D54
#undef TEGULA_WGMMA_P54
#undef TEGULA_WGMMA_D56
#undef TEGULA_WGMMA_P56
#undef TEGULA_WGMMA_D58
#undef TEGULA_WGMMA_P58
#undef TEGULA_WGMMA_D60
#undef TEGULA_WGMMA_P60
#undef TEGULA_WGMMA_D62
#undef TEGULA_WGMMA_P62
#undef TEGULA_WGMMA_D64
#undef TEGULA_WGMMA_P64
#undef TEGULA_WGMMA_D68
#undef TEGULA_WGMMA_P68
#undef TEGULA_WGMMA_D72
#undef TEGULA_WGMMA_P72
#undef TEGULA_WGMMA_D76
#undef TEGULA_WGMMA_P76
#undef TEGULA_WGMMA_D80
#undef TEGULA_WGMMA_P80
#undef TEGULA_WGMMA_D84
#undef TEGULA_WGMMA_P84
#undef TEGULA_WGMMA_D88
#undef TEGULA_WGMMA_P88
#undef TEGULA_WGMMA_D92
#undef TEGULA_WGMMA_P92
#undef TEGULA_WGMMA_D96
#undef TEGULA_WGMMA_P96
#undef TEGULA_WGMMA_D100
#undef TEGULA_WGMMA_P100
#undef TEGULA_WGMMA_D104
#undef TEGULA_WGMMA_P104
#undef TEGULA_WGMMA_D108
#undef TEGULA_WGMMA_P108
#undef TEGULA_WGMMA_D112
#undef TEGULA_WGMMA_P112
#undef TEGULA_WGMMA_D116
#undef TEGULA_WGMMA_P116
#undef TEGULA_WGMMA_D120
#undef TEGULA_WGMMA_P120
#undef TEGULA_WGMMA_D124
#undef TEGULA_WGMMA_P124
#undef TEGULA_WGMMA_D128
#undef TEGULA_WGMMA_P128
#undef TEGULA_WGMMA
// clang-format on

}  // namespace tegula::detail

#endif
