#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// The lanes of a warp read from different banks, or the same word: more takes another pass.
///
/// A transposition reads columns of rows of 32 words: all lanes want the same bank. In rows of 33
/// words they are in different ones. How many passes beyond the least are too many, the kernel
/// declares; else none are.
struct bank_conflicts : Kernel<32> {
  struct SharedStorage {
    float tile[32 * 33];
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const pitch = p.repaired ? 33 : 32;
    for (int row = 0; row < 32; ++row) {
      st_shared(shared_address(&smem.tile[pitch * row + lane_id()]),
                ld_global<float>(p.in + 32 * row + lane_id()));
    }
    warp::sync();
    for (int row = 0; row < 32; ++row) {
      st_global(p.out + 32 * row + lane_id(),
                ld_shared<float>(shared_address(&smem.tile[pitch * lane_id() + row])));
    }
  }
};

// Report:
//   01_memory/bank_conflicts.hpp:28: kernel bank_conflicts, CTA (0, 0, 0), warp 0, lane 0:
//     bank_conflicts: ld.shared of 4 bytes by 32 lanes takes 32 passes over the banks of shared
//     memory, 31 more than it needs, where 0 more are declared: lanes 0 and 1 ask bank 0 for
//     element 0 of tile and element 32 of tile (32 times in all)

}  // namespace tegula::broken
