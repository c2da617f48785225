#pragma once

#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"

namespace tegula {

/// Zeros in a tile of shared memory, (rows, columns), from column `first` on: by one warp, or by
/// warp `warp` of `warps`, all of its lanes. A GEMM of groups of k clears so what lies behind a
/// group's end, for it may be no number. Whoever lets an asynchronous proxy read it executes
/// fence_proxy_async_shared and a barrier after it.
template <class Element, class Tile>
TEGULA_DEVICE void clear_columns(Tile const& tile, int rows, int columns, int first, int warp = 0,
                                 int warps = 1) {
#pragma unroll 1
  for (int row = warp; row < rows; row += warps) {
#pragma unroll 1
    for (int from = 0; from < columns; from += kWarpSize) {
      int const column = from + lane_id();
      if (column >= first) tile(row, column) = Element{};
      warp::sync();  // one store of all lanes
    }
  }
}

}  // namespace tegula
