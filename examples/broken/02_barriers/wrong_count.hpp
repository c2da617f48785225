#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Everyone who uses a barrier names the same number of threads: those that arrive and those
/// that wait.
///
/// The producer counts itself and one consumer, the consumer one more.
///
/// PTX ISA: bar.
struct wrong_count : Kernel<96> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    if (warp_id() == 0) {
      st_shared(at(smem, 0, lane_id()), ld_global<float>(p.in + lane_id()));
      cta::bar_arrive(1, 64);
    } else if (warp_id() == 1) {
      cta::bar_sync(1, p.repaired ? 64 : 96);
      st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
    }
  }
};

// Report:
//   02_barriers/wrong_count.hpp:19: kernel wrong_count, CTA (0, 0, 0), warp 1: invalid_operand:
//     barrier 1 counts 96 threads here, but 64 at 02_barriers/wrong_count.hpp:17, where 32 have
//     arrived

}  // namespace tegula::broken
