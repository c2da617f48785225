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

/// Transposes 4 x 4 registers over four lanes, each `Apart` from the next: register i of the j-th
/// becomes register j of the i-th. Those of a quad are 1 apart.
template <int Apart = 1>
TEGULA_DEVICE void transpose_quad(std::uint32_t (&word)[4],
                                  SourceLocation where = SourceLocation::current()) {
#pragma unroll
  for (int distance = 1; distance <= 2; distance *= 2) {
    bool const upper = (lane_id() & (Apart * distance)) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & distance) != 0) continue;
      std::uint32_t& low = word[i];
      std::uint32_t& high = word[i + distance];
      std::uint32_t const other =
          warp::shfl_xor(upper ? low : high, Apart * distance, warp::kAllLanes, where);
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

/// Stores a warp's accumulators to columns, which are contiguous: element (i, j) to to[i + ld j],
/// rounded to T, 16 bytes a lane. A lane has two neighbours of each eight columns, in rows of which
/// two and two are 8 apart (mma.sync, wgmma); `to` is where the first element of the warp's lies.
/// Rows from `rows` on and columns from `columns` on are left alone. All lanes take part.
///
/// Preconditions: `rows` and `ld` are multiples of 8, and `to` of 16 bytes.
template <class T, class M>
TEGULA_DEVICE void store_columns(Fragment<float, M> const& values, T* to, std::int64_t ld, int rows,
                                 int columns, SourceLocation where = SourceLocation::current()) {
  constexpr int blocks = count_along<M, 1> / 2;  // of eight columns, as many as a lane has pairs
  static_assert(sizeof(T) == 2 && count_along<M, 0> % 2 == 0);
  int const lane = lane_id(), of_four = lane / 8;
  bool const odd = lane / 4 % 2 != 0;
#pragma unroll
  for (int r = 0; r < count_along<M, 0>; r += 2) {
#pragma unroll
    for (int first = 0; first < blocks; first += 2) {
      // Of two blocks of columns the upper and the lower eight rows: two rows of one column, which
      // are neighbours in memory, in a register.
      RegisterBits<16> x{};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int const block = first + i / 2, row = r + i % 2;
        if (block >= blocks) continue;
        float const left = row_column(values, row, 2 * block, where),
                    right = row_column(values, row, 2 * block + 1, where);
        float const other = warp::shfl_xor(odd ? left : right, 4, warp::kAllLanes, where);
        x.word[i] = odd ? pack_pair<T>(other, right) : pack_pair<T>(left, other);
      }
      // Eight rows of one column in a lane.
      detail::transpose_quad<8>(x.word, where);
      int const block = first + of_four / 2;
      int const row = step_along<0>(M{}, r) + of_four % 2 * 8;
      int const column = 8 * block + lane % 4 * 2 + (odd ? 1 : 0);
      if (block < blocks && row < rows && column < columns)
        st_global(to + column * ld + row, x, where);
    }
  }
}

}  // namespace tegula
