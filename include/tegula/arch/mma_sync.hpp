#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/mma_op.hpp"
#include "tegula/arch/where.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Warp-wide matrix multiply-add on the tensor cores: PTX ISA, mma.sync.aligned.m16n8kK.row.col (sm_80). All
/// 32 lanes execute it together.
namespace tegula {

/// The registers that one lane holds of each operand.
template <MmaOp Op> struct MmaRegisters {
  using Accumulator = std::conditional_t<
      accumulator(Op) == MmaAccumulator::f32, float,
      std::conditional_t<accumulator(Op) == MmaAccumulator::s32, std::int32_t, std::uint32_t>>;
  using A = std::uint32_t[a_registers(Op)];
  using B = std::uint32_t[b_registers(Op)];
  using C = Accumulator[c_registers(Op)];
};

/// D(16, 8) = A(16, K) * B(K, 8) + C(16, 8). d and c may be the same registers. Who holds which element:
/// atom/, or PTX ISA, "Matrix fragments for mma.m16n8kK".
template <MmaOp Op>
TEGULA_DEVICE void mma_sync(typename MmaRegisters<Op>::C& d, typename MmaRegisters<Op>::A const& a,
                            typename MmaRegisters<Op>::B const& b, typename MmaRegisters<Op>::C const& c,
                            [[maybe_unused]] Where where = Where::here()) {
#if TEGULA_GPU
// The text of an assembler statement is a literal, so the instruction's name is pasted into one of three
// operand lists.
#define TEGULA_MMA_K8(NAME, REG)                                                                \
  asm volatile("mma.sync.aligned." NAME " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" \
               : "=" REG(d[0]), "=" REG(d[1]), "=" REG(d[2]), "=" REG(d[3])                     \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]), REG(c[0]), REG(c[1]), REG(c[2]), REG(c[3]))
#define TEGULA_MMA_K16(NAME, REG)                                                                        \
  asm volatile("mma.sync.aligned." NAME                                                                  \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                    \
               : "=" REG(d[0]), "=" REG(d[1]), "=" REG(d[2]), "=" REG(d[3])                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), REG(c[0]), REG(c[1]), \
                 REG(c[2]), REG(c[3]))
  using enum MmaOp;
  if constexpr (Op == m16n8k8_f32_f16_f16_f32) {
    TEGULA_MMA_K8("m16n8k8.row.col.f32.f16.f16.f32", "f");
  } else if constexpr (Op == m16n8k16_f32_f16_f16_f32) {
    TEGULA_MMA_K16("m16n8k16.row.col.f32.f16.f16.f32", "f");
  } else if constexpr (Op == m16n8k8_f32_bf16_bf16_f32) {
    TEGULA_MMA_K8("m16n8k8.row.col.f32.bf16.bf16.f32", "f");
  } else if constexpr (Op == m16n8k16_f32_bf16_bf16_f32) {
    TEGULA_MMA_K16("m16n8k16.row.col.f32.bf16.bf16.f32", "f");
  } else if constexpr (Op == m16n8k4_f32_tf32_tf32_f32) {
    TEGULA_MMA_K8("m16n8k4.row.col.f32.tf32.tf32.f32", "f");
  } else if constexpr (Op == m16n8k8_f32_tf32_tf32_f32) {
    TEGULA_MMA_K16("m16n8k8.row.col.f32.tf32.tf32.f32", "f");
  } else if constexpr (Op == m16n8k8_f16_f16_f16_f16) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%5, %6};"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]));
  } else if constexpr (Op == m16n8k16_f16_f16_f16_f16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};"
        : "=r"(d[0]), "=r"(d[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]));
  } else if constexpr (Op == m16n8k16_s32_s8_s8_s32) {
    TEGULA_MMA_K8("m16n8k16.row.col.s32.s8.s8.s32", "r");
  } else if constexpr (Op == m16n8k16_s32_s8_u8_s32) {
    TEGULA_MMA_K8("m16n8k16.row.col.s32.s8.u8.s32", "r");
  } else if constexpr (Op == m16n8k16_s32_u8_s8_s32) {
    TEGULA_MMA_K8("m16n8k16.row.col.s32.u8.s8.s32", "r");
  } else if constexpr (Op == m16n8k16_s32_u8_u8_s32) {
    TEGULA_MMA_K8("m16n8k16.row.col.s32.u8.u8.s32", "r");
  } else if constexpr (Op == m16n8k32_s32_s8_s8_s32) {
    TEGULA_MMA_K16("m16n8k32.row.col.s32.s8.s8.s32", "r");
  } else if constexpr (Op == m16n8k32_s32_s8_u8_s32) {
    TEGULA_MMA_K16("m16n8k32.row.col.s32.s8.u8.s32", "r");
  } else if constexpr (Op == m16n8k32_s32_u8_s8_s32) {
    TEGULA_MMA_K16("m16n8k32.row.col.s32.u8.s8.s32", "r");
  } else if constexpr (Op == m16n8k32_s32_u8_u8_s32) {
    TEGULA_MMA_K16("m16n8k32.row.col.s32.u8.u8.s32", "r");
  } else if constexpr (Op == m16n8k16_s32_s8_s8_s32_satfinite) {
    TEGULA_MMA_K8("m16n8k16.row.col.satfinite.s32.s8.s8.s32", "r");
  } else if constexpr (Op == m16n8k16_s32_s8_u8_s32_satfinite) {
    TEGULA_MMA_K8("m16n8k16.row.col.satfinite.s32.s8.u8.s32", "r");
  } else if constexpr (Op == m16n8k16_s32_u8_s8_s32_satfinite) {
    TEGULA_MMA_K8("m16n8k16.row.col.satfinite.s32.u8.s8.s32", "r");
  } else if constexpr (Op == m16n8k16_s32_u8_u8_s32_satfinite) {
    TEGULA_MMA_K8("m16n8k16.row.col.satfinite.s32.u8.u8.s32", "r");
  } else if constexpr (Op == m16n8k32_s32_s8_s8_s32_satfinite) {
    TEGULA_MMA_K16("m16n8k32.row.col.satfinite.s32.s8.s8.s32", "r");
  } else if constexpr (Op == m16n8k32_s32_s8_u8_s32_satfinite) {
    TEGULA_MMA_K16("m16n8k32.row.col.satfinite.s32.s8.u8.s32", "r");
  } else if constexpr (Op == m16n8k32_s32_u8_s8_s32_satfinite) {
    TEGULA_MMA_K16("m16n8k32.row.col.satfinite.s32.u8.s8.s32", "r");
  } else {
    static_assert(Op == m16n8k32_s32_u8_u8_s32_satfinite);
    TEGULA_MMA_K16("m16n8k32.row.col.satfinite.s32.u8.u8.s32", "r");
  }
#undef TEGULA_MMA_K8
#undef TEGULA_MMA_K16
#else
  sim::mma_sync(Op, d, a, b, c, where);
#endif
}

}  // namespace tegula
