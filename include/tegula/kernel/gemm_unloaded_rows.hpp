#pragma once

#include "tegula/arch/fence.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/tensor/shared.hpp"

/// Operands of fewer rows than a tile has.
///
/// TMA writes zeros for the rows of a box that lie beyond the tensor, and takes longer for such a
/// row than for one that it fetches: on an H200 a GEMM of 6 rows took 94 us where one of 128 took
/// 56, by the same tile of 128 rows. So where a single tile covers an operand, and has many more
/// rows, its boxes have only the operand's. The kernel writes zeros into the others itself, once.
namespace tegula {

/// Zeros in the last `rows` rows of a ring's stages, (mn, k, stage). By `threads` threads, of which
/// this is number `thread`.
template <TmaBoxes Boxes, int Stages, class S>
TEGULA_DEVICE void clear_last_rows(int rows, S const& stages, int thread, int threads,
                                   SourceLocation where = SourceLocation::current()) {
  constexpr int whole = Boxes.box_mn * Boxes.boxes_mn;
  constexpr int pieces = Boxes.bytes / whole / 16;  // of a row of a stage
  constexpr int piece = Boxes.box_k * Boxes.boxes_k / pieces;
  for (int i = thread; i < rows * pieces; i += threads) {
#pragma unroll 1
    for (int stage = 0; stage < Stages; ++stage)
      st_shared(stages.at(where, whole - rows + i / pieces, i % pieces * piece, stage),
                RegisterBits<16>{}, where);
  }
}

/// What gemm_sm90's loads leave of its stages.
template <GemmSm90Config C> struct UnloadedRows {
  // Constants, for device code calls no constexpr function of the host.
  static constexpr TmaBoxes boxes_a = a_fetch(C), boxes_b = b_fetch(C);
  static constexpr bool cut_a = can_be_cut(boxes_a), cut_b = can_be_cut(boxes_b);
  static constexpr int threads = kWarpgroupSize * consumers(C), ring = stages(C);

  /// Bytes that a step's loads bring.
  TEGULA_DEVICE static int bytes(GemmSm90Problem const& p) {
    return boxes_a.bytes + boxes_b.bytes - p.unloaded_a * (boxes_a.bytes / C.block_m) -
           p.unloaded_b * (boxes_b.bytes / C.block_n);
  }
  TEGULA_DEVICE static bool any(GemmSm90Problem const& p) {
    return p.unloaded_a > 0 || p.unloaded_b > 0;
  }
  /// Zeros there, by the consumers, before a barrier of the CTA that the first load comes after.
  template <class A, class B>
  TEGULA_DEVICE static void clear(GemmSm90Problem const& p, A const& stages_a, B const& stages_b,
                                  SourceLocation where = SourceLocation::current()) {
    int const thread = thread_idx_here() - kWarpgroupSize;
    if constexpr (cut_a)
      clear_last_rows<boxes_a, ring>(p.unloaded_a, stages_a, thread, threads, where);
    if constexpr (cut_b)
      clear_last_rows<boxes_b, ring>(p.unloaded_b, stages_b, thread, threads, where);
    fence_proxy_async_shared(where);  // before the tensor core reads them
  }
};

}  // namespace tegula
