#pragma once

#include <cstdint>

#include "tegula/arch/atomic.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/cp_async.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/grid_dependency.hpp"
#include "tegula/arch/ldmatrix.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/mma_sync.hpp"
#include "tegula/arch/reduction.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/trap.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"

/// What the kernels of this gallery have in common, so that each of them is its mistake and
/// little else.
namespace tegula::broken {

struct Params {
  float const* in;       ///< 1024 floats
  float* out;            ///< 1024 floats, which nobody has written
  std::uint32_t* flags;  ///< 64 words, all 0
  TensorMap in_map;   ///< `in` as 16 rows of 64 floats, in boxes of 8 rows of 32: a stage of `tile`
  TensorMap out_map;  ///< `out` likewise
  TensorMap swizzled_map;  ///< as in_map, with a swizzle of 128 bytes
  bool repaired;           ///< whether the kernel does what it should
};

/// A value of 16 bytes for vector accesses.
struct alignas(16) Float4 {
  float x[4];
};

inline constexpr int kBoxBytes = 8 * 32 * sizeof(float);

/// Base of the kernels: CTAs of `Threads` threads, one unless the kernel has a grid; a tile of two
/// stages, and a pair of mbarriers for each.
template <int Threads> struct Kernel {
  using Params = broken::Params;
  static constexpr int threads = Threads;
  using Tile =
      SharedTile<float, SwizzledLayout{Swizzle(), 0, layout(tuple(8, 32, 2), tuple(32, 1, 256))}>;
  struct SharedStorage {
    Tile tile;
    Mbarrier full[2];
    Mbarrier empty[2];
    template <class F> void name_buffers(F&& name) {
      name("tile", tile);
      name("full", full);
      name("empty", empty);
    }
  };

  /// The address of an element of the tile.
  TEGULA_DEVICE static SharedAddr at(SharedStorage const& smem, int row, int column,
                                     int stage = 0) {
    return shared_address(smem.tile.data + 256 * stage + 32 * row + column);
  }

  /// One thread initialises full[0] and full[1] for one arrival each, empty[0] and empty[1] for
  /// `readers`; everyone sees them afterwards.
  TEGULA_DEVICE static void init(SharedStorage const& smem, int readers = Threads) {
    if (thread_idx() == 0) {
      for (int stage = 0; stage < 2; ++stage) {
        mbarrier_init(shared_address(&smem.full[stage]), 1);
        mbarrier_init(shared_address(&smem.empty[stage]), readers);
      }
      fence_mbarrier_init();
    }
    cta::sync();
  }
};

}  // namespace tegula::broken
