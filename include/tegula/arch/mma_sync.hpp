#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/mma_registers.hpp"
#include "tegula/arch/mma_text.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Warp-wide matrix multiply-add on the tensor cores: PTX ISA, mma.sync.aligned.mMn8kK.row.col
/// (sm_80 to sm_90). All 32 lanes execute it together.
namespace tegula {

#if TEGULA_GPU
namespace detail {

// The operand lists of an assembler statement are literals: by the registers of D (C has as many),
// of A and of B, and the constraints of theirs. The text behind "mma.sync.aligned." is the last
// operand.
#define TEGULA_OUT_2(X, REG) "=" REG(X[0]), "=" REG(X[1])
#define TEGULA_OUT_4(X, REG) TEGULA_OUT_2(X, REG), "=" REG(X[2]), "=" REG(X[3])
#define TEGULA_IN_1(X, REG) REG(X[0])
#define TEGULA_IN_2(X, REG) TEGULA_IN_1(X, REG), REG(X[1])
#define TEGULA_IN_4(X, REG) TEGULA_IN_2(X, REG), REG(X[2]), REG(X[3])
#define TEGULA_IN_8(X, REG) TEGULA_IN_4(X, REG), REG(X[4]), REG(X[5]), REG(X[6]), REG(X[7])
#define TEGULA_MMA(SUM, SUM_REG, OPERAND, OPERAND_REG, D, A, B, TEXT)                      \
  template <class Text>                                                                    \
  TEGULA_DEVICE void mma_statement(SUM(&d)[D], OPERAND const(&a)[A], OPERAND const(&b)[B], \
                                   SUM const(&c)[D]) {                                     \
    asm volatile("mma.sync.aligned." TEXT                                                  \
                 : TEGULA_OUT_##D(d, SUM_REG)                                              \
                 : TEGULA_IN_##A(a, OPERAND_REG), TEGULA_IN_##B(b, OPERAND_REG),           \
                   TEGULA_IN_##D(c, SUM_REG), "C"(Text::value));                           \
  }
#define TEGULA_MMA_211 "%6 {%0, %1}, {%2}, {%3}, {%4, %5};"
#define TEGULA_MMA_221 "%7 {%0, %1}, {%2, %3}, {%4}, {%5, %6};"
#define TEGULA_MMA_242 "%10 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};"
#define TEGULA_MMA_421 "%11 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
#define TEGULA_MMA_442 "%14 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
#define TEGULA_MMA_484                                                         \
  "%20 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, " \
  "%15}, {%16, %17, %18, %19};"
TEGULA_MMA(float, "f", std::uint32_t, "r", 4, 2, 1, TEGULA_MMA_421)
TEGULA_MMA(float, "f", std::uint32_t, "r", 4, 4, 2, TEGULA_MMA_442)
TEGULA_MMA(std::uint32_t, "r", std::uint32_t, "r", 2, 2, 1, TEGULA_MMA_221)
TEGULA_MMA(std::uint32_t, "r", std::uint32_t, "r", 2, 4, 2, TEGULA_MMA_242)
TEGULA_MMA(std::int32_t, "r", std::uint32_t, "r", 2, 1, 1, TEGULA_MMA_211)
TEGULA_MMA(std::int32_t, "r", std::uint32_t, "r", 4, 2, 1, TEGULA_MMA_421)
TEGULA_MMA(std::int32_t, "r", std::uint32_t, "r", 4, 4, 2, TEGULA_MMA_442)
TEGULA_MMA(double, "d", double, "d", 2, 1, 1, TEGULA_MMA_211)
TEGULA_MMA(double, "d", double, "d", 4, 2, 1, TEGULA_MMA_421)
TEGULA_MMA(double, "d", double, "d", 4, 4, 2, TEGULA_MMA_442)
TEGULA_MMA(double, "d", double, "d", 4, 8, 4, TEGULA_MMA_484)
#undef TEGULA_OUT_2
#undef TEGULA_OUT_4
#undef TEGULA_IN_1
#undef TEGULA_IN_2
#undef TEGULA_IN_4
#undef TEGULA_IN_8
#undef TEGULA_MMA
#undef TEGULA_MMA_211
#undef TEGULA_MMA_221
#undef TEGULA_MMA_242
#undef TEGULA_MMA_421
#undef TEGULA_MMA_442
#undef TEGULA_MMA_484

}  // namespace detail
#endif

/// D(M, 8) = A(M, K) * B(K, 8) + C(M, 8). d and c may be the same registers. Who holds which
/// element: atom/, or PTX ISA, "Matrix fragments for mma.m16n8kK". Of e4m3 and e5m2 an sm_90 and an
/// sm_100 have no tensor core of mma.sync: ptxas widens them to f16 (docs/arithmetic.md).
template <MmaSpec S>
TEGULA_DEVICE void mma_sync(typename MmaRegisters<S>::D& d, typename MmaRegisters<S>::A const& a,
                            typename MmaRegisters<S>::B const& b,
                            typename MmaRegisters<S>::C const& c,
                            [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.operands == MmaOperands::warp, "mma_sync: the spec is that of no mma.sync");
#if TEGULA_GPU
  detail::mma_statement<typename detail::MmaTexts<S>::Name>(d, a, b, c);
#else
  static constexpr sim::WarpMma op(S);
  sim::mma_sync(op, d, a, b, c, where);
#endif
}

}  // namespace tegula
