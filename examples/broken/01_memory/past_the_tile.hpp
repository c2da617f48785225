#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// An access to shared memory lies within SharedStorage.
///
/// Rows are padded by a word against bank conflicts where they are written, and not where they
/// are declared.
struct past_the_tile : Kernel<32> {
  struct SharedStorage {
    float tile[32][32];
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const pitch = p.repaired ? 32 : 33;
    for (int row = 0; row < 32; ++row) {
      SharedAddr const offset = static_cast<SharedAddr>(4 * (pitch * row + lane_id()));
      st_shared(shared_address(&smem.tile) + offset, ld_global<float>(p.in + 32 * row + lane_id()));
    }
  }
};

// Report:
//   01_memory/past_the_tile.hpp:21: kernel past_the_tile, CTA (0, 0, 0), warp 0, lane 1:
//     out_of_bounds: st.shared of 4 bytes at shared address 0x1400 lies outside of the CTA's 4096
//     bytes of shared memory, 0x400 to 0x1400 (31 times in all)

}  // namespace tegula::broken
