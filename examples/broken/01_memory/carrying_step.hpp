#pragma once

#include "../kernel.hpp"
#include "tegula/layout/literal.hpp"

namespace tegula::broken {

/// An element lies where the layout of its tile says.
///
/// TileAccess takes a step of two rows as an XOR with a constant and an addition, which is right as long as
/// the step carries into no bit that the swizzle looks at. Warp 1 begins in row 2, and 2 + 2 carries: it
/// writes row 4 as if it were not swizzled.
struct carrying_step : Kernel<64> {
  using Tile = SharedTile<float, SwizzledLayout{Swizzle(5, 0, 5), row_major(32, 32)}>;
  static constexpr Layout by_row = "(32,2):(1@1,1@0)"_layout;  // thread -> (row, column)
  struct SharedStorage {
    Tile tile;
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const first = p.repaired ? 4 : 1;
    TileAccess<Tile, by_row> const mine(smem.tile, thread_idx(), first);
    for (int step = 0; step < 4; step += 2) st_shared(mine(step, 0), 1.0f);
  }
};

// Report:
//   01_memory/carrying_step.hpp:24: kernel carrying_step, CTA (0, 0, 0), warp 1, lane 0: wrong_layout: row 4,
//     column 0 of tile is byte 528 of tile by its layout, Sw<5,0,5> o (32,32):(32,1), but the accessor made
//     at 01_memory/carrying_step.hpp:23 computes byte 512 of tile (32 times in all)

}  // namespace tegula::broken
