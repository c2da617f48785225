#pragma once

#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/sim/mutable_values.hpp"

namespace tegula {

/// One warp's own loads by TMA, one at a time, each waited for.
///
///     loaded: a barrier of one arrival; from the load that lane 0 issues, to all lanes of the
///             warp: the bytes are there
class EpilogueLoad {
 public:
  /// By all lanes: calls `issue`, which loads `bytes` to where nobody reads, in one of them, and
  /// waits for the bytes.
  template <class Issue>
  TEGULA_DEVICE void load(SharedAddr loaded, int bytes, Issue issue,
                          SourceLocation where = SourceLocation::current()) {
    if (warp::elect_one(where)) {
      mbarrier_arrive_expect_tx(loaded, bytes, where);
      issue();
    }
    mbarrier_wait_parity(loaded, parity_, where);
    parity_ = parity_after(parity_, 1, where);
  }

 private:
  int parity_ = 0;
};

}  // namespace tegula
