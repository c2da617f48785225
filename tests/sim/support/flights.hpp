#pragma once

#include <cstdint>

#include "broken_kernel.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"

namespace tegula {

/// Base of kernels with copies in flight: two warps, tiles of 32 words, and two mbarriers each way.
struct Flights : Broken {
  static constexpr int threads = 64;
  struct SharedStorage {
    alignas(128) std::uint32_t tile[4][32];
    Mbarrier full[4];
    Mbarrier empty[4];
    template <class F> void name_buffers(F&& name) {
      name("tile", tile);
      name("full", full);
      name("empty", empty);
    }
  };
  static constexpr int tile_bytes = 128;
  static SharedAddr tile(SharedStorage const& smem, int i) {
    return shared_address(&smem.tile[i][0]);
  }
  static SharedAddr full(SharedStorage const& smem, int i) { return shared_address(&smem.full[i]); }
  static SharedAddr empty(SharedStorage const& smem, int i) {
    return shared_address(&smem.empty[i]);
  }

  /// One thread makes mbarrier `full[i]` for one arrival; all threads see it afterwards.
  static void make_full(SharedStorage const& smem, int i) {
    if (thread_idx() == 0) {
      mbarrier_init(full(smem, i), 1);
      fence_mbarrier_init();
    }
    cta::sync();
  }
  /// This thread loads tile `i` from `src`, and expects its bytes.
  static void load(SharedStorage const& smem, int i, char const* src,
                   SourceLocation where = SourceLocation::current()) {
    mbarrier_arrive_expect_tx(full(smem, i), tile_bytes, where);
    bulk_load(tile(smem, i), src, tile_bytes, full(smem, i), where);
  }
};

}  // namespace tegula
