#pragma once

#include <cstdint>

#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/tcgen05_scaled_descriptor.hpp"
#include "tegula/arch/tensor_memory_address.hpp"
#include "tegula/atom/scaled_mma_spec.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// tcgen05.mma with block scales (sm_100a): PTX ISA, "Block Scaling for tcgen05.mma".
namespace tegula {

/// Columns of tensor memory that the scales of so many rows of A, or of B, take.
TEGULA_HOST_DEVICE constexpr int scale_columns(int rows) { return (rows + 31) / 32; }
/// Where the scales of a row lie, from their address on: in one lane of each quarter, for each
/// quarter of the tensor core reads its own copy; from byte ScaleIds on.
TEGULA_HOST_DEVICE constexpr int scale_lane(int quarter, int row) {
  return 32 * quarter + row % 32;
}
TEGULA_HOST_DEVICE constexpr int scale_column(int row) { return row / 32; }

namespace detail {
template <ScaledMmaSpec S> inline constexpr bool is_scaled_mma = check(S);
#if TEGULA_GPU
template <ScaledMmaKind K, int Scales> struct ScaledMmaText;
template <> struct ScaledMmaText<ScaledMmaKind::mxf8f6f4, 1> {
  static constexpr char text[] = "mxf8f6f4.block_scale.scale_vec::1X";
};
template <> struct ScaledMmaText<ScaledMmaKind::mxf4, 2> {
  static constexpr char text[] = "mxf4.block_scale.scale_vec::2X";
};
template <> struct ScaledMmaText<ScaledMmaKind::mxf4nvf4, 2> {
  static constexpr char text[] = "mxf4nvf4.block_scale.scale_vec::2X";
};
template <> struct ScaledMmaText<ScaledMmaKind::mxf4nvf4, 4> {
  static constexpr char text[] = "mxf4nvf4.block_scale.scale_vec::4X";
};
#endif
}  // namespace detail

namespace detail {
/// One with A in shared memory, by its descriptor, or in tensor memory, by its address.
template <ScaledMmaSpec S, Collector C, class OperandA>
TEGULA_DEVICE void start_scaled_mma(TensorAddr d, OperandA a, std::uint64_t b_descriptor,
                                    TensorAddr scale_a, TensorAddr scale_b, ScaleIds ids,
                                    bool accumulate, [[maybe_unused]] SourceLocation where) {
  static_assert(is_scaled_mma<S>);
  std::uint32_t const instruction = tcgen05_scaled_descriptor(S, ids);
#if TEGULA_GPU
  using Collects = CollectorText<false, C, 0>;
  if constexpr (S.a_in_tensor_memory) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::%8.kind::%7%9 [%0], [%1], %2, %3, [%5], [%6], p; }" ::
            "r"(d),
        "r"(a), "l"(b_descriptor), "r"(instruction), "r"(static_cast<std::uint32_t>(accumulate)),
        "r"(scale_a), "r"(scale_b), "C"(ScaledMmaText<S.kind, scales(S)>::text), "n"(S.ctas),
        "C"(Collects::value)
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::%8.kind::%7%9 [%0], %1, %2, %3, [%5], [%6], p; }" ::
            "r"(d),
        "l"(a), "l"(b_descriptor), "r"(instruction), "r"(static_cast<std::uint32_t>(accumulate)),
        "r"(scale_a), "r"(scale_b), "C"(ScaledMmaText<S.kind, scales(S)>::text), "n"(S.ctas),
        "C"(Collects::value)
        : "memory");
  }
#else
  sim::tcgen05_mma_scaled(S.kind, S.a_in_tensor_memory ? MmaOperands::ts : MmaOperands::ss, S.block,
                          S.ctas, C, d, a, b_descriptor, instruction, scale_a, scale_b, accumulate,
                          where);
#endif
}
}  // namespace detail

/// D(m, n) = sum of A scale_a B scale_b + (accumulate ? D : 0), as tcgen05_mma: D in tensor memory,
/// row i in lane i; A and B in shared memory by matrix descriptors; two e2m1 to a byte. The scales
/// lie in tensor memory from lane 0 of scale_a and scale_b on, in all four quarters of the lanes
/// (scale_lane, scale_column). Ordered as tcgen05_mma, and after tcgen05_cp of the same thread. Of
/// a pair each CTA has half of A's rows and of B's, and D's rows that are A's; it has the scales of
/// its rows of A, and of all of B. With a pair's m of 128 lanes 64 to 127 have the upper half of
/// D's columns, and the scales of B's rows that belong to it, counted from the first of them; lanes
/// 0 to 63 have those of the lower half. `C`: what becomes of the collector buffer of A, as
/// tcgen05_mma_collected has it; scales are read from tensor memory each time.
template <ScaledMmaSpec S, Collector C = Collector::discard>
TEGULA_DEVICE void tcgen05_mma_scaled(
    TensorAddr d, std::uint64_t a_descriptor, std::uint64_t b_descriptor, TensorAddr scale_a,
    TensorAddr scale_b, ScaleIds ids, bool accumulate,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(!S.a_in_tensor_memory,
                "tcgen05_mma_scaled: the spec is of none with A in shared memory");
  detail::start_scaled_mma<S, C>(d, a_descriptor, b_descriptor, scale_a, scale_b, ids, accumulate,
                                 where);
}

/// The same with A in tensor memory: row i in lane i, its K elements packed into eight columns, two
/// e2m1 to a byte; with a pair's m of 128 lanes 64 to 127 have a copy of lanes 0 to 63.
template <ScaledMmaSpec S, Collector C = Collector::discard>
TEGULA_DEVICE void tcgen05_mma_scaled_ts(
    TensorAddr d, TensorAddr a, std::uint64_t b_descriptor, TensorAddr scale_a, TensorAddr scale_b,
    ScaleIds ids, bool accumulate,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.a_in_tensor_memory,
                "tcgen05_mma_scaled_ts: the spec is of none with A in tensor memory");
  detail::start_scaled_mma<S, C>(d, a, b_descriptor, scale_a, scale_b, ids, accumulate, where);
}

}  // namespace tegula
