#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// The lanes of a warp access neighbouring words of global memory, which moves in sectors
/// of 32 bytes.
///
/// Each lane copies a row of its own: a warp's access touches 32 sectors for 128 bytes, where 4
/// would do. How many beyond the least are too many, the kernel declares.
struct uncoalesced : Kernel<32> {
  static constexpr sim::Limits limits = {.excess_sectors = 0};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    for (int i = 0; i < 32; ++i) {
      int const at = p.repaired ? 32 * i + lane_id() : 32 * lane_id() + i;
      st_global(p.out + at, ld_global<float>(p.in + at));
    }
  }
};

// Report:
//   01_memory/uncoalesced.hpp:18: kernel uncoalesced, CTA (0, 0, 0), warp 0, lane 0: uncoalesced:
//     ld.global of 4 bytes by 32 lanes touches 32 sectors of global memory, 28 more than its bytes
//     need, where 0 more are declared: lane 0 is at byte 0 of in, lane 1 at byte 128 of in (32
//     times in all)
//   01_memory/uncoalesced.hpp:18: kernel uncoalesced, CTA (0, 0, 0), warp 0, lane 0: uncoalesced:
//     st.global of 4 bytes by 32 lanes touches 32 sectors of global memory, 28 more than its bytes
//     need, where 0 more are declared: lane 0 is at byte 0 of out, lane 1 at byte 128 of out (32
//     times in all)

}  // namespace tegula::broken
