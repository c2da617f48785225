#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A thread that polls for a change that nobody makes polls for ever.
///
/// Warp 1 waits for a flag that warp 0 raises, after the barrier at which it waits for warp 1.
struct livelock : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (warp_id() == 1) {
      while (!p.repaired && ld_global<std::uint32_t>(p.flags) == 0) {
      }
    }
    cta::sync();
    if (thread_idx() == 0) st_global(p.flags, 1u);
  }
};

// Report:
//   10_schedules/livelock.hpp:16: kernel livelock, CTA (0, 0, 0): deadlock: every thread that runs reads the
//     same memory again and again, and nobody changes it; warp 0 waits at barrier 0
//     (10_schedules/livelock.hpp:16), where 32 of 64 threads have arrived; lanes 0-31 of warp 1 read at
//     10_schedules/livelock.hpp:13

}  // namespace tegula::broken
