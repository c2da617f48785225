#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/pipeline/pipeline_state.hpp"

namespace tegula {

/// A ring of `Buffers` shared-memory buffers handed from the lanes of a warp, or of `Warps` warps,
/// to TMA, which stores them. One elected lane issues the stores. TMA takes a store at a time: a
/// few large ones are out of the way sooner than many small ones.
///
/// For each buffer in turn: acquire(), write it, then store() with a function that issues the TMA
/// stores of all.
template <int Buffers, int Warps = 1> class StorePipeline {
 public:
  StorePipeline() requires(Warps == 1) = default;
  /// Several warps meet at that named barrier of the CTA. `warp`: the caller's among them. By all
  /// lanes of a warp, which the compiler then knows to agree on both.
  TEGULA_DEVICE StorePipeline(int barrier, int warp)
      : barrier_(warp::shfl(barrier, 0)), warp_(warp::shfl(warp, 0)) {}

  /// The buffer to write, once TMA has read what was in it.
  TEGULA_DEVICE int acquire(SourceLocation where = SourceLocation::current()) {
    if (is_issuer(where)) bulk_wait_group_read<Buffers - 1>(where);
    meet(where);  // that lane has seen the buffer read: all may write it
    return buffer_;
  }

  /// Hands the buffer over: what every lane wrote is visible to the stores that one issues.
  template <class Issue>
  TEGULA_DEVICE void store(Issue issue, SourceLocation where = SourceLocation::current()) {
    fence_proxy_async_shared(where);  // this lane's writes, before reads by the async proxy ...
    meet(where);                      // ... that one lane starts, for all
    if (is_issuer(where)) {
      issue();
      bulk_commit_group(where);
    }
    buffer_ = next_stage<Buffers>(buffer_, where);
  }

  /// Before the CTA ends: its shared memory lives until TMA has read it.
  TEGULA_DEVICE void drain(SourceLocation where = SourceLocation::current()) const {
    drain([] {}, where);
  }
  /// Likewise where the memory has another use then: the lane that has waited calls `then`.
  template <class Then>
  TEGULA_DEVICE void drain(Then then, SourceLocation where = SourceLocation::current()) const {
    if (is_issuer(where)) {
      bulk_wait_group_read<0>(where);
      then();
    }
  }

 private:
  TEGULA_DEVICE bool is_issuer(SourceLocation where) const {
    return warp_ == 0 && warp::elect_one(where);
  }
  TEGULA_DEVICE void meet(SourceLocation where) const {
    if constexpr (Warps == 1) {
      warp::sync(warp::kAllLanes, where);
    } else {
      cta::bar_sync(barrier_, kWarpSize * Warps, where);
    }
  }

  int barrier_ = 0, warp_ = 0;
  int buffer_ = 0;
};

}  // namespace tegula
