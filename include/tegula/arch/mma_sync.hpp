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

/// Warp-wide matrix multiply-add on the tensor cores: PTX ISA, mma.sync.aligned.m16n8kK.row.col
/// (sm_80). All 32 lanes execute it together.
namespace tegula {

#if TEGULA_GPU
namespace detail {

// The operand lists of an assembler statement are literals: by the registers of D and C, and of A
// (B has half as many). The last operand is the text behind "mma.sync.aligned.".
#define TEGULA_MMA_D4(REG) "=" REG(d[0]), "=" REG(d[1]), "=" REG(d[2]), "=" REG(d[3])
#define TEGULA_MMA_C4(REG) REG(c[0]), REG(c[1]), REG(c[2]), REG(c[3]), "C"(Text::value)
#define TEGULA_MMA_STATEMENTS(D, REG)                                                              \
  template <class Text>                                                                            \
  TEGULA_DEVICE void mma_statement(D(&d)[4], std::uint32_t const(&a)[2],                           \
                                   std::uint32_t const(&b)[1], D const(&c)[4]) {                   \
    asm volatile("mma.sync.aligned.%11 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"       \
                 : TEGULA_MMA_D4(REG)                                                              \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), TEGULA_MMA_C4(REG));                           \
  }                                                                                                \
  template <class Text>                                                                            \
  TEGULA_DEVICE void mma_statement(D(&d)[4], std::uint32_t const(&a)[4],                           \
                                   std::uint32_t const(&b)[2], D const(&c)[4]) {                   \
    asm volatile(                                                                                  \
        "mma.sync.aligned.%14 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" \
        : TEGULA_MMA_D4(REG)                                                                       \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), TEGULA_MMA_C4(REG));   \
  }
TEGULA_MMA_STATEMENTS(float, "f")
TEGULA_MMA_STATEMENTS(std::int32_t, "r")
#undef TEGULA_MMA_STATEMENTS
#undef TEGULA_MMA_C4
#undef TEGULA_MMA_D4

template <class Text>
TEGULA_DEVICE void mma_statement(std::uint32_t (&d)[2], std::uint32_t const (&a)[2],
                                 std::uint32_t const (&b)[1], std::uint32_t const (&c)[2]) {
  asm volatile("mma.sync.aligned.%7 {%0, %1}, {%2, %3}, {%4}, {%5, %6};"
               : "=r"(d[0]), "=r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "C"(Text::value));
}
template <class Text>
TEGULA_DEVICE void mma_statement(std::uint32_t (&d)[2], std::uint32_t const (&a)[4],
                                 std::uint32_t const (&b)[2], std::uint32_t const (&c)[2]) {
  asm volatile("mma.sync.aligned.%10 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};"
               : "=r"(d[0]), "=r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]),
                 "r"(c[1]), "C"(Text::value));
}

}  // namespace detail
#endif

/// D(16, 8) = A(16, K) * B(K, 8) + C(16, 8). d and c may be the same registers. Who holds which
/// element: atom/, or PTX ISA, "Matrix fragments for mma.m16n8kK".
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
