#pragma once

#include "tegula/arch/cluster.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/vector.hpp"

namespace tegula {

/// Adds up what `Ctas` CTAs of a cluster have summed of one tile, each over its share of K: every
/// CTA finishes a share of the tile's columns, as many as a thread of `Share`, a fragment, has
/// values of. A cluster may have `Tiles` such tiles; the CTA of rank t + Tiles s has share s of
/// tile t.
///
///     ready: from the warps of every CTA of the tile, to the threads of this CTA:
///            the memory of all their sums is free
///     given: from the st_async of every other CTA of the tile to the threads of this CTA:
///            their sums of this CTA's columns are there
///
/// Each thread reads what the threads of its own number wrote, so sums need no layout but
/// registers'. A CTA's sums of its own columns stay there: what goes from CTA to CTA sets the pace.
/// Threads are numbered from 0 to Threads - 1.
///
/// Either once in a launch, where the memory had another use before: meet, give, wait, reduce. Or
/// once for each of several tiles, numbered by `turn`, in memory of its own: but for the first
/// leave; wait_ready, give, wait, reduce.
template <class Sums, class Share, int Ctas, int Threads, int Tiles = 1> class ClusterReduction {
  static_assert(Sums::size == Ctas * Share::size,
                "each CTA finishes an equal share of the columns");
  static constexpr int vectors = Share::size / 4;  // of four values, an st_async each
  static constexpr int rows = Sums::template extent<1>;
  static constexpr int vectors_of_row = vectors / rows;
  static_assert(Share::template extent<1> == rows && vectors % rows == 0);

 public:
  /// (value, vector of four, thread, other CTA that it comes from)
  using Tile = SharedTile<float, layout(tuple(4, vectors, Threads, Ctas - 1),
                                        tuple(1, 4 * Threads, 4, 4 * Threads * vectors))>;
  struct Barriers {
    Mbarrier ready;
    Mbarrier given;
  };

  TEGULA_DEVICE ClusterReduction(Tile const& tile, Barriers const& barriers, int thread)
      : tile_(tile), barriers_(barriers), thread_(thread), rank_(cluster_cta_rank()) {}

  /// By one thread; then fence_mbarrier_init and a barrier of the cluster.
  TEGULA_DEVICE static void init(Barriers const& barriers,
                                 SourceLocation where = SourceLocation::current()) {
    mbarrier_init(shared_address(&barriers.ready), Ctas * Threads / 32, where);
    mbarrier_init(shared_address(&barriers.given), 1, where);
    mbarrier_arrive_expect_tx(shared_address(&barriers.given), sizeof(Tile), where);
  }

  /// All lanes of a warp, together: it uses no longer what lies in the tile's memory. Waits until
  /// no warp of the cluster does.
  TEGULA_DEVICE void meet(SourceLocation where = SourceLocation::current()) const {
    SharedAddr const ready = shared_address(&barriers_.ready, where);
    int const lane = lane_id();
    if (lane < Ctas) mbarrier_arrive_cluster(mapa(ready, rank_of(lane), where), where);
    mbarrier_wait_parity(ready, 0, where);
  }

  /// All lanes of a warp, together, after reduce() of the turn before: it has read those sums, and
  /// the next may come.
  TEGULA_DEVICE void leave(SourceLocation where = SourceLocation::current()) const {
    warp::sync(warp::kAllLanes, where);  // every lane has read its sums
    int const lane = lane_id();
    if (thread_ == 0)
      mbarrier_arrive_expect_tx(shared_address(&barriers_.given, where), sizeof(Tile), where);
    warp::sync(warp::kAllLanes,
               where);  // the barrier expects them, before any CTA is told that they may come
    if (lane < Ctas)
      mbarrier_arrive_cluster(mapa(shared_address(&barriers_.ready, where), rank_of(lane), where),
                              where);
  }

  /// Waits until every warp of the cluster has left the turn before.
  TEGULA_DEVICE void wait_ready(int turn, SourceLocation where = SourceLocation::current()) const {
    if (turn > 0)
      mbarrier_wait_parity(shared_address(&barriers_.ready, where), (turn - 1) % 2, where);
  }

  /// Sends each other CTA its share of this CTA's sums, after meet() or wait_ready().
  TEGULA_DEVICE void give(Sums const& sums,
                          SourceLocation where = SourceLocation::current()) const {
    SharedAddr const given = shared_address(&barriers_.given, where);
    int const share = rank_ / Tiles;
#pragma unroll
    for (int cta = 0; cta < Ctas; ++cta) {
      if (cta == share) continue;
      auto const own =
          tensor(tile_, where)(_, _, thread_, slot(share, cta), where);  // (4, vectors)
      auto const theirs = in_peer(own, rank_of(cta), where);
      SharedAddr const their_given = mapa(given, rank_of(cta), where);
#pragma unroll
      for (int i = 0; i < vectors; ++i) {
        int const first = first_of(cta, i);
        Vector<float, 4> const values = {{sums(first, where), sums(first + 1, where),
                                          sums(first + 2, where), sums(first + 3, where)}};
        st_async(theirs.at(where, 0, i), values, their_given, where);
      }
    }
  }

  /// Waits for the sums of the other CTAs.
  TEGULA_DEVICE void wait(int turn = 0, SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity(shared_address(&barriers_.given, where), turn % 2, where);
  }

  /// The sums of all CTAs, this one's among them, added in the order of K, of the columns that this
  /// CTA finishes.
  TEGULA_DEVICE Share reduce(Sums const& sums,
                             SourceLocation where = SourceLocation::current()) const {
    int const share = rank_ / Tiles;
    Share result;
    clear(result, where);
#pragma unroll
    for (int cta = 0; cta < Ctas; ++cta) {
      if (cta == share) {
#pragma unroll
        for (int i = 0; i < Share::size; ++i)
          result(i, where) += sums(first_of(cta, i / 4) + i % 4, where);
      } else {
        auto const part = tensor(tile_, where)(_, _, thread_, slot(cta, share), where);
#pragma unroll
        for (int i = 0; i < vectors; ++i) {
          auto const values = ld_shared<Vector<float, 4>>(part.at(where, 0, i), where);
#pragma unroll
          for (int j = 0; j < 4; ++j) result(4 * i + j, where) += values.data[j];
        }
      }
    }
    return result;
  }

 private:
  /// Where the sums of the CTA with share `from` lie in the CTA that finishes the columns `to`.
  TEGULA_DEVICE static constexpr int slot(int from, int to) { return from < to ? from : from - 1; }
  /// A thread's first value of a vector of a CTA's columns.
  TEGULA_DEVICE static constexpr int first_of(int cta, int vector) {
    return Sums::flat(4 * (cta * vectors_of_row + vector % vectors_of_row), vector / vectors_of_row,
                      0);
  }
  /// The rank of the CTA that has a share of this CTA's tile.
  TEGULA_DEVICE int rank_of(int share) const { return rank_ % Tiles + Tiles * share; }

  Tile const& tile_;
  Barriers const& barriers_;
  int thread_;
  int rank_;
};

}  // namespace tegula
