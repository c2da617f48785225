#pragma once

#include "kernel.hpp"

namespace tegula::broken {

/// Base of the kernels that use wgmma: `Warpgroups` warpgroups, operands A of 64 x 64 and B of 16
/// x 64 bf16.
template <int Warpgroups = 1> struct WarpgroupKernel : Kernel<128 * Warpgroups> {
  static constexpr MmaSpec op = warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 16);
  using TileA = SharedTile<std::uint16_t, swizzled_operand(16, 64, 64, 1)>;
  using TileB = SharedTile<std::uint16_t, swizzled_operand(16, 16, 64, 1)>;
  struct SharedStorage {
    TileA a;
    TileB b;
    Mbarrier full;
    Mbarrier empty;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("full", full);
      name("empty", empty);
    }
  };

  /// Clears a tile, by all threads.
  template <class T> TEGULA_DEVICE static void clear(T const& tile) {
    constexpr int words = sizeof(T) / 4;
    for (int i = thread_idx(); i < words; i += 128 * Warpgroups)
      st_shared(shared_address(tile.data) + static_cast<SharedAddr>(4 * i), std::uint32_t{0});
  }
  /// Clears both operands, so that wgmma may read them.
  TEGULA_DEVICE static void fill(SharedStorage const& smem) {
    clear(smem.a);
    clear(smem.b);
    fence_proxy_async_shared();
    cta::sync();
  }
};

}  // namespace tegula::broken
