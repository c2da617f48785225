#pragma once

#include "tegula/arch/tma.hpp"
#include "tegula/tensor/held.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/tma.hpp"
#include "tegula/tensor/tma_box.hpp"

/// Rows of a matrix that are gathered and scattered, four at a time.
namespace tegula {

/// Four rows of a tile (mn, k) that lie anywhere in a matrix: the tile's rows 4 * `group` to
/// 4 * group + 3 are rows row[0] to row[3] of the tensor. Of its boxes S (tma_boxes of the tile) a
/// map has one row: a map of rank 2, rows beyond the matrix or before it are zeros. sm_100a (PTX
/// ISA, cp.async.bulk.tensor, .tile::gather4 and .tile::scatter4).
template <TmaBoxes S> struct TmaFourRows {
  static_assert(S.contiguous == 1 && S.peers == 1 && S.box_mn % 4 == 0,
                "TmaFourRows: k is contiguous, the rows are a multiple of 4 and one CTA's");
  static constexpr int bytes = S.bytes / S.box_mn * 4;  ///< that a group brings

  int group;
  int row[4];
};

namespace detail {
/// Calls f(shared address, rows) for each box of four rows.
template <TmaBoxes S, int K, int N, class G, class Tile, int Moved, class H, class F>
TEGULA_DEVICE void for_each_four_rows(
    TmaFourRows<S> const& by, Tensor<Tma<K, N>, G> const& global,
    Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& shared, F f,
    SourceLocation where) {
  static_assert(G::rank == 2 && H::rank == 2,
                "copy: a tile has modes mn and k; slice the step and the stage");
  static_assert(mode_size<mode_at<1, G>> == S.box_k * S.boxes_k,
                "copy: the tile of the tensor is not as wide as the TMA copy's");
  static_assert(BoxesFit<S, Tile>::value);
  check_order<S, G>(static_cast<Tma<K, N> const*>(nullptr));
  hold_thread<S.box_mn / 4>("a copy of groups of four rows", by.group, where);
#if !TEGULA_GPU
  hold_map<S, 8 * sizeof(typename Tile::Element), G>(global.space, S.box_mn - 1, 0, where);
#endif
  // Rows of a block follow each other: the swizzle is TMA's, of the addresses.
  constexpr int row_bytes = S.bytes / (S.box_mn * S.boxes_k);
#pragma unroll
  for (int k = 0; k < S.boxes_k; ++k) {
    TmaCoordinate<2> const from = global.at(where, 0, k * S.box_k);
    TmaRows rows{from.x[0], {}};
#pragma unroll
    for (int i = 0; i < 4; ++i) rows.row[i] = from.x[1] + by.row[i];
    f(shared.at(where, 0, k * S.box_k) + static_cast<SharedAddr>(4 * row_bytes * by.group), rows);
  }
}
}  // namespace detail

/// Starts the TMA loads of four rows of a tile, by one thread; rows count from the tensor's first
/// one. `full` is the mbarrier that counts the bytes.
template <TmaBoxes S, int K, int N, class G, class Tile, int Moved, class H>
TEGULA_DEVICE void copy(TmaFourRows<S> const& by, Tensor<Tma<K, N>, G> const& from,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& to,
                        SharedAddr full, SourceLocation where = SourceLocation::current()) {
  detail::for_each_four_rows(
      by, from, to,
      [&](SharedAddr place, TmaRows const& rows) {
        tma_gather4(place, *from.space.map, rows, full, where);
      },
      where);
}
/// Starts the TMA stores of four rows of a tile, by one thread, as part of its current bulk group.
template <TmaBoxes S, int K, int N, class G, class Tile, int Moved, class H>
TEGULA_DEVICE void copy(TmaFourRows<S> const& by,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
                        Tensor<Tma<K, N>, G> const& to,
                        SourceLocation where = SourceLocation::current()) {
  detail::for_each_four_rows(
      by, to, from,
      [&](SharedAddr place, TmaRows const& rows) {
        tma_scatter4(*to.space.map, rows, place, where);
      },
      where);
}

}  // namespace tegula
