#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A lane shuffles from lanes that its mask names.
///
/// A butterfly over the first eight lanes whose last step is one too far.
///
/// PTX ISA: shfl.sync.
struct wrong_mask : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() >= 8) return;
    int sum = lane_id();
    for (int step = 1; step <= (p.repaired ? 4 : 8); step *= 2)
      sum += warp::shfl_xor(sum, step, 0xffu);
    st_global(p.out + lane_id(), static_cast<float>(sum));
  }
};

// Report:
//   03_warps/wrong_mask.hpp:17: kernel wrong_mask, CTA (0, 0, 0), warp 0, lane 0: invalid_operand:
//     shfl.sync reads lane 8, which its mask 0x000000ff leaves out (8 times in all)

}  // namespace tegula::broken
