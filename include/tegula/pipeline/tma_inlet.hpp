#pragma once

#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/mutant.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/warp.hpp"

namespace tegula {

/// One warp's own loads by TMA, one at a time, each waited for.
///
///     loaded: a barrier of one arrival; from the load that lane 0 issues, to all lanes of the warp: the
///     bytes are there
class TmaInlet {
 public:
  /// By all lanes: fetches the map's box of `bytes` at `c` to `to`, which nobody uses, and waits for it.
  template <int Rank>
  TEGULA_DEVICE void load(SharedAddr loaded, TensorMap const& map, TmaCoordinate<Rank> c, SharedAddr to,
                          int bytes, Where where = Where::here()) {
    if (warp::elect_one(where)) {
      mbarrier_arrive_expect_tx(loaded, bytes, where);
      tma_load(to, map, c, loaded, where);
    }
    mbarrier_wait_parity(loaded, parity_, where);
    if (mutation(where, Operation::phase, Mutation::removed) != Mutation::removed) parity_ ^= 1;
  }

 private:
  int parity_ = 0;
};

}  // namespace tegula
