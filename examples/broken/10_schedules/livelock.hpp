#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A thread that polls for a change that nobody makes polls for ever.
///
/// Thread 32 waits for a flag. Thread 0 raises it after a barrier, at which it waits for warp 1.
struct livelock : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (p.repaired && thread_idx() == 0) atom_exch(p.flags, 1u);
    if (thread_idx() == 32) {
      while (atom_add(p.flags, 0u) == 0) {
      }
    }
    cta::sync();
    if (!p.repaired && thread_idx() == 0) atom_exch(p.flags, 1u);
  }
};

// Report:
//   10_schedules/livelock.hpp:17: kernel livelock, CTA (0, 0, 0): deadlock: every thread that runs
//     reads the same memory again and again, and nobody changes it; warp 0 waits at barrier 0
//     (10_schedules/livelock.hpp:17), where 32 of 64 threads have arrived; lanes 1-31 of warp 1
//     wait at bar.sync (10_schedules/livelock.hpp:17) for lane 0; lane 0 of warp 1 reads at
//     10_schedules/livelock.hpp:14: byte 0 of flags, which atom of warp 1 lane 0
//     (10_schedules/livelock.hpp:14) has changed last

}  // namespace tegula::broken
