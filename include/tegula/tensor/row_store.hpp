#pragma once

#include <cstdint>

#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/pack.hpp"

/// Accumulators to rows of global memory without a way through shared memory.
namespace tegula {

namespace detail {

/// Transposes 4 x 4 registers over the lanes of a quad: register i of lane j becomes register j of
/// lane i.
TEGULA_DEVICE void transpose_quad(std::uint32_t (&word)[4],
                                  SourceLocation where = SourceLocation::current()) {
#pragma unroll
  for (int distance = 1; distance <= 2; distance *= 2) {
    bool const upper = (lane_id() & distance) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & distance) != 0) continue;
      std::uint32_t& low = word[i];
      std::uint32_t& high = word[i + distance];
      std::uint32_t const other =
          warp::shfl_xor(upper ? low : high, distance, warp::kAllLanes, where);
      (upper ? low : high) = other;
    }
  }
}

}  // namespace detail

/// Stores one row of each quad's accumulators (those of mma.sync and wgmma: a lane has two
/// neighbours of each eight columns), rounded to T, 16 bytes a lane and 64 a quad: number `row` of
/// the rows that a lane has, to `to`, the first element of that row. Columns from `columns` on, and
/// rows of lanes whose `inside` is false, are left alone. All lanes of a warp take part.
///
/// Preconditions: the fragment begins at the quad's first column; its columns are a multiple of 32;
/// `columns` is a multiple of 8, and `to` of 16 bytes.
template <class T, class M>
TEGULA_DEVICE void store_row(Fragment<float, M> const& values, int row, T* to, int columns,
                             bool inside, SourceLocation where = SourceLocation::current()) {
  constexpr int blocks = count_along<M, 1> / 2;  // of eight columns, as many as a lane has pairs
  static_assert(sizeof(T) == 2 && blocks % 4 == 0,
                "store_row: a quad stores 32 columns of 16 bits");
  int const lane = lane_id() % 4;
#pragma unroll
  for (int first = 0; first < blocks; first += 4) {
    RegisterBits<16> r;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      r.word[i] = pack_pair<T>(row_column(values, row, 2 * (first + i), where),
                               row_column(values, row, 2 * (first + i) + 1, where));
    detail::transpose_quad(r.word, where);
    int const column = 8 * (first + lane);
    if (inside && column < columns) st_global(to + column, r, where);
  }
}

}  // namespace tegula
