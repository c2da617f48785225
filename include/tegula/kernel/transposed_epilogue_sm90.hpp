#pragma once

#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/kernel/activate_fragment.hpp"
#include "tegula/kernel/epilogue_sm90_config.hpp"
#include "tegula/pipeline/store_pipeline.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/register_copy.hpp"
#include "tegula/tensor/tma.hpp"

namespace tegula {

/// The end of a Hopper GEMM whose D is contiguous along its rows' index m: the transpose of a
/// row-major D. What EpilogueSm90 does, without C and a bias.
///
/// A warpgroup works at 64 rows and at most 32 columns a time: a piece. It waits until TMA has read
/// what was in the piece's buffer, rounds, transposes on the way to the buffer by stmatrix, and has
/// TMA store the piece, 128 bytes of each column, while it goes on with the next.
template <EpilogueSm90Spec S> class TransposedEpilogueSm90 {
 public:
  using Params = EpilogueSm90Params;
  using Out = type_of<S.out>;
  static_assert(S.transposed && sizeof(Out) == 2, "stmatrix transposes elements of 16 bits");
  /// D on its way out: (64, store_n, buffers of all warpgroups).
  using Tile = SharedTile<Out, store_tile(S)>;
  struct Barriers {};

 private:
  static constexpr int piece_n = store_n(S);
  using Store = TmaCopy<store_boxes(S).whole>;
  /// Who holds what of a piece: as the accumulators of four warps' mma.sync, of which wgmma's are
  /// made.
  static constexpr TiledMmaSpec piece_mma = {warp_mma(DType::bf16, DType::f32, 16), 64, piece_n,
                                             /*groups_m=*/4};

 public:
  TEGULA_DEVICE TransposedEpilogueSm90(Params const& params, int, int, Tile const& tile,
                                       Barriers const&)
      : p_(params),
        tile_(tile),
        thread_(thread_idx_here() - S.first_thread),
        stores_(WarpgroupTeam{1 + thread_ / kWarpgroupSize}) {}

  TEGULA_DEVICE static void init(Barriers const&) {}
  /// Brings the tensor map near, by one thread.
  TEGULA_DEVICE static void prefetch_maps(Params const& p,
                                          SourceLocation where = SourceLocation::current()) {
    prefetch_tensor_map(p.d.whole, where);
  }

  /// Stores a warpgroup's tile of D whose first element is (m0, n0): accumulators (of wgmma, MMA_M,
  /// 1) for 64 rows each. Of a narrow tile, no columns beyond its edge.
  template <class M>
  TEGULA_DEVICE void store(Fragment<float, M>& tCrC, int m0, int n0, int batch, bool narrow) {
    static_assert(2 * mode_size<mode_at<0, M>> == S.n,
                  "epilogue: the accumulators are not of n columns");
    float scale = p_.alpha;
    if (p_.scale_a != nullptr) scale *= ld_global<float>(p_.scale_a);
    if (p_.scale_b != nullptr) scale *= ld_global<float>(p_.scale_b);
    auto const mD = tma_tensor<0, 1, 2>(p_.d.whole)(_, _, batch);  // (m, n)
#pragma unroll
    for (int m = 0; m < mode_size<mode_at<1, M>>; ++m) {
#pragma unroll
      for (int first = 0; first < S.n; first += piece_n) {
        if (narrow && first >= S.narrow_n) continue;
        auto const tCrD = part<piece_n / 2>(domain_offset(tCrC(_, m, 0), first / 2));
#pragma unroll
        for (int i = 0; i < piece_n / 2; ++i) tCrD(i) *= scale;
        if constexpr (S.activates) activate_all(p_.activation, tCrD);
        int const buffer = S.buffers * (thread_ / kWarpgroupSize) + stores_.acquire();
        auto const sD = tensor(tile_)(_, _, buffer);  // (64, piece_n)
        copy(rounded<Out>(tCrD),
             TransposedMatrixStore<piece_mma>{thread_ % kWarpgroupSize}.partition(sD));
        auto const gD = part<64, piece_n>(domain_offset(mD, m0 + 64 * m, n0 + first));
        stores_.store([&] { copy(Store{}, sD, gD); });
      }
    }
  }

  /// Before the CTA ends: its shared memory lives until TMA has read it.
  TEGULA_DEVICE void drain(SourceLocation where = SourceLocation::current()) const {
    stores_.drain(where);
  }

 private:
  Params const& p_;
  Tile const& tile_;
  int thread_;  // from 0 on
  WarpgroupStorePipeline<S.buffers> stores_;
};

}  // namespace tegula
