#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Those that hand over and those that take meet at the same one of the sixteen barriers.
///
/// The producer arrives at barrier 1, the consumer waits at barrier 2.
///
/// PTX ISA: bar.arrive.
struct wrong_barrier : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const handed_over = 1, taken = p.repaired ? 1 : 2;
    if (warp_id() == 0) {
      st_shared(at(smem, 0, lane_id()), ld_global<float>(p.in + lane_id()));
      cta::bar_arrive(handed_over, 64);
    } else {
      cta::bar_sync(taken, 64);
      st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
    }
  }
};

// Report:
//   02_barriers/wrong_barrier.hpp:19: kernel wrong_barrier, CTA (0, 0, 0): deadlock: warp 1 waits
//     at barrier 2 (02_barriers/wrong_barrier.hpp:19), where 32 of 64 threads have arrived; warp 0
//     exited

}  // namespace tegula::broken
