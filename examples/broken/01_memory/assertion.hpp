#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// trap ends the launch; a kernel's own assertions are made of it.
///
/// A tile that is asked for beyond the last one is the caller's mistake, said loudly.
///
/// PTX ISA: trap.
struct assertion : Kernel<32> {
  static constexpr Dim3 grid = {5, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    int const tiles = p.repaired ? 5 : 4;
    if (block_idx().x >= tiles) trap();
    st_global(p.out + 32 * block_idx().x + lane_id(), 0.0f);
  }
};

// Report:
//   01_memory/assertion.hpp:17: kernel assertion, CTA (4, 0, 0), warp 0, lane 0: trap: the kernel
//     executed trap

}  // namespace tegula::broken
