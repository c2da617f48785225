#pragma once

#include <cstdint>

#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/clear_columns.hpp"
#include "tegula/kernel/gemm_sm100_config.hpp"
#include "tegula/pipeline/group_tiles.hpp"
#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/tensor.hpp"

namespace tegula {

/// The ends of groups of k in the stages of gemm_sm100. Behind a group's end a stage has another
/// group's columns, and their scales, which may be no numbers: between TMA and the tensor core a
/// warp writes zeros over them. Of a pair of CTAs each has its own half of the stage; its even CTA
/// knows when both have been loaded, and multiplies:
///
///     loaded:   from the even CTA's warp to the odd CTA's: the stage is full, in both
///     cleared:  from the odd CTA's warp to the even CTA's: nothing stands behind the end there
///
/// A stage is given back to its CTA's producer by a tcgen05_commit, which says nothing of what
/// threads wrote, and by an arrival: of the warp that has cleared it, or, where none has, of the
/// thread that multiplies.
template <GemmSm100Config C> class GroupEnds {
  static constexpr bool of_pair = C.ctas > 1, scaled = C.scale.block != 0;
  static constexpr int block_k = tegula::block_k(C), tile_k = tegula::tile_k(C);
  static constexpr int pieces = scale_pieces(C), scale_rows = scale_rows_b(C);

 public:
  struct Storage {
    Mbarrier loaded, cleared;
    template <class F> void name_buffers(F&& name) {
      name("end_loaded", loaded);
      name("end_cleared", cleared);
    }
  };

  TEGULA_DEVICE explicit GroupEnds(Storage const& storage)
      : loaded_(shared_address(&storage.loaded)), cleared_(shared_address(&storage.cleared)) {}

  /// By one thread; then fence_mbarrier_init and a barrier of the CTAs.
  TEGULA_DEVICE void init() const {
    if constexpr (of_pair) {
      mbarrier_init(loaded_, 1);
      mbarrier_init(cleared_, 1);
    }
  }

  /// Arrivals that give a stage back.
  TEGULA_DEVICE static int arrivals(GroupTiles const& tiles) {
    return tiles.grouping == Grouping::k ? 2 : 1;
  }
  /// Whether a step of a tile reads beyond the K of its group, what lies there being another's.
  TEGULA_DEVICE static bool is_in(GroupTiles const& tiles, GroupTile const& tile, int step) {
    return tiles.grouping == Grouping::k && tile.k + (step + 1) * block_k > tile.k_end &&
           tile.k_end < tiles.depth;
  }

  /// All lanes of the warp that multiplies: waits for the stage, and clears it, also in the odd CTA
  /// of a pair.
  template <class Smem, class Ring>
  TEGULA_DEVICE void clear(Smem& smem, Ring const& ring, typename Ring::State const& state,
                           GroupTile const& tile, int step) {
    warp::sync();  // who leads has waited for the stages before this one
    ring.wait(state);
    if constexpr (of_pair) {
      if (lane_id() == 0) mbarrier_arrive_cluster_release(mapa(loaded_, cluster_cta_rank() | 1));
    }
    clear_stage(smem, state.stage, tile, step);
    if constexpr (of_pair) {
      mbarrier_wait_parity<MemoryOrder::acquire, Scope::cluster>(cleared_, turn_.parity);
      turn_.next();
    }
    warp::sync();  // what all lanes wrote, before the products, which another lane starts
  }
  /// All lanes of the same warp of the odd CTA: clears the stage, which it gives back.
  template <class Smem, class Ring>
  TEGULA_DEVICE void clear_as_peer(Smem& smem, Ring const& ring, int stage, GroupTile const& tile,
                                   int step) {
    mbarrier_wait_parity<MemoryOrder::acquire, Scope::cluster>(loaded_, turn_.parity);
    turn_.next();
    clear_stage(smem, stage, tile, step);
    warp::sync();  // all lanes have written
    if (lane_id() != 0) return;
    mbarrier_arrive(ring.empty(stage));
    mbarrier_arrive_cluster_release(mapa(cleared_, cluster_cta_rank() & ~1));
  }
  /// Who multiplies, beside the commit: of a pair also the odd CTA's stage, unless that CTA has
  /// `cleared` it.
  TEGULA_DEVICE static void give_back(SharedAddr empty, bool cleared) {
    mbarrier_arrive(empty);
    if constexpr (of_pair) {
      if (!cleared) mbarrier_arrive_cluster(mapa(empty, cluster_cta_rank() | 1));
    }
  }

 private:
  /// Zeros behind the group's end in A, B and their scales, before what the tensor core reads.
  template <class Smem>
  TEGULA_DEVICE static void clear_stage(Smem& smem, int stage, GroupTile const& tile, int step) {
    int const kept = tile.k_end - tile.k - step * block_k, column = kept / (block_k / tile_k);
    clear_columns<typename Smem::ElementA>(tensor(smem.a)(_, _, stage), C.block_m, tile_k, column);
    clear_columns<typename Smem::ElementB>(tensor(smem.b)(_, _, stage), C.block_n / C.ctas, tile_k,
                                           column);
    if constexpr (scaled) {
      int const scales = ceil_div(kept, C.scale.block);
      clear_scales<1>(shared_address(smem.scale_a[stage]), scales);
      clear_scales<scale_rows>(shared_address(smem.scale_b[stage]), scales);
    }
    fence_proxy_async_shared();
  }
  /// Zeros in the pieces of `Times128` times 128 rows, but for the first `kept` scales of each row.
  template <int Times128> TEGULA_DEVICE static void clear_scales(SharedAddr at, int kept) {
    constexpr int words = kScalePieceBytes / 4;
#pragma unroll 1
    for (int piece = 0; piece < Times128 * pieces; ++piece) {
      int const left = kept - kScalePieceScales * (piece % pieces);
      if (left >= kScalePieceScales) continue;
      // A word has the scales of a row.
      std::uint32_t const mask = left <= 0 ? 0 : (1u << 8 * left) - 1;
#pragma unroll 1
      for (int word = lane_id(); word < words; word += kWarpSize) {
        SharedAddr const scales = at + static_cast<SharedAddr>(kScalePieceBytes * piece + 4 * word);
        st_shared(scales, ld_shared<std::uint32_t>(scales) & mask);
        warp::sync();  // one store of all lanes
      }
    }
  }

  SharedAddr loaded_, cleared_;
  PipelineState<1> turn_;
};

}  // namespace tegula
