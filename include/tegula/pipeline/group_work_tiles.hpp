#pragma once

#include "tegula/arch/cluster.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/pipeline/group_tiles.hpp"
#include "tegula/pipeline/work_tiles.hpp"

namespace tegula {

/// The tiles of groups that one role of a CTA computes: what WorkTileIterator is of one problem,
/// walked by all lanes of a warp together. `m` is a row of D among all groups' (of groups of k, of
/// the group's own D), `batch` the group.
template <WorkTileSpec S> class GroupWorkTiles {
  static_assert(S.cluster_n == 1 && S.narrow_n == 0 && S.ctas == S.cluster_m);

 public:
  int m, n, batch;  ///< the first element of the present tile, and its group

  TEGULA_DEVICE GroupWorkTiles(GroupTiles const& tiles, int clusters)
      : tiles_(tiles, static_cast<int>(block_idx().x / S.ctas), clusters) {
    find();
  }

  TEGULA_DEVICE bool done() const { return tiles_.done(); }
  /// The cluster's tile.
  TEGULA_DEVICE GroupTile const& tile() const { return tiles_.tile; }
  /// Goes on by one tile. Where the CTA's lies is known after find().
  TEGULA_DEVICE void next() { tiles_.next(); }
  TEGULA_DEVICE void find() {
    m = tile().m + (S.cluster_m > 1 ? cluster_cta_rank() * S.m : 0);
    n = tile().n * S.n;
    batch = tile().group;
  }

 private:
  GroupTileIterator<S.m * S.cluster_m> tiles_;
};

}  // namespace tegula
