#pragma once

#include "tegula/arch/fence.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/pipeline/pipeline_state.hpp"

namespace tegula {

/// A ring of `Buffers` shared-memory buffers handed from the lanes of a warp to TMA, which stores
/// them. One elected lane issues the stores.
///
/// For each buffer in turn: acquire(), write it, then store() with a function that issues the
/// warp's TMA stores.
template <int Buffers> class StorePipeline {
 public:
  /// The buffer to write, once TMA has read what was in it.
  TEGULA_DEVICE int acquire(SourceLocation where = SourceLocation::current()) {
    if (warp::elect_one(where)) bulk_wait_group_read<Buffers - 1>(where);
    warp::sync(warp::kAllLanes, where);  // that lane has seen the buffer read: all may write it
    return buffer_;
  }

  /// Hands the buffer over: what every lane wrote is visible to the stores that one issues.
  template <class Issue>
  TEGULA_DEVICE void store(Issue issue, SourceLocation where = SourceLocation::current()) {
    fence_proxy_async_shared(where);     // this lane's writes, before reads by the async proxy ...
    warp::sync(warp::kAllLanes, where);  // ... that one lane starts, for all
    if (warp::elect_one(where)) {
      issue();
      bulk_commit_group(where);
    }
    buffer_ = next_stage<Buffers>(buffer_, where);
  }

  /// Before the CTA ends: its shared memory lives until TMA has read it.
  TEGULA_DEVICE void drain(SourceLocation where = SourceLocation::current()) const {
    if (warp::elect_one(where)) bulk_wait_group_read<0>(where);
  }

 private:
  int buffer_ = 0;
};

}  // namespace tegula
