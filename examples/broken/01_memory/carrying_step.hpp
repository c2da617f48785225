#pragma once

#include "../kernel.hpp"
#include "tegula/tensor/tiled_copy.hpp"

namespace tegula::broken {

/// An element lies where the layout of its tile says.
///
/// A part of a tile takes a step of two rows as an XOR with a constant and an addition. That is
/// proved for its threads, whose numbers begin with 0. Here warp 1 has numbers from 64 on, which a
/// copy of 64 threads would refuse, and a partition by its maps does not: they lead to row 2, from
/// where the step carries into a bit that the swizzle looks at.
struct carrying_step : Kernel<64> {
  using Tile = SharedTile<float, SwizzledLayout{Swizzle(5, 0, 5), row_major(32, 32)}>;
  using Copy =
      TiledCopy<make_tiled_copy(layout(shape(2, 32), stride(32, 1)), tuple(1, 1), 32, 32), float>;
  struct SharedStorage {
    Tile tile;
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = p.repaired ? thread_idx() : thread_idx() + 32;
    auto const mine = partition<Copy::Threads, Copy::Values, 2>(
        tensor(smem.tile), thread, SourceLocation::current());  // (1, steps of two rows, 1)
    for (int step = 0; step < 2; ++step) mine(0, step, 0) = 1.0f;
  }
};

// Report:
//   01_memory/carrying_step.hpp:27: kernel carrying_step, CTA (0, 0, 0), warp 1, lane 0:
//     wrong_layout: row 4, column 0 of tile is byte 528 of tile by its layout, Sw<5,0,5> o
//     (32,32):(32,1), but the accessor made at 01_memory/carrying_step.hpp:26 computes byte 512 of
//     tile (32 times in all)

}  // namespace tegula::broken
