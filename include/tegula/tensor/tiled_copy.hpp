#pragma once

#include <cstdint>

#include "tegula/arch/cache_hint.hpp"
#include "tegula/atom/coverage.hpp"
#include "tegula/layout/algebra.hpp"
#include "tegula/tensor/coordinates.hpp"
#include "tegula/tensor/held.hpp"
#include "tegula/tensor/partition.hpp"

/// Tiled copies: which thread moves which elements of a tile.
namespace tegula {

/// A layout of coordinates of few leaves, as a short template argument.
struct CoordinateLeaves {
  static constexpr int most = 6;
  struct Leaf {
    int axis = 0, extent = 0, step = 0;
    friend constexpr bool operator==(Leaf const&, Leaf const&) = default;
  };
  int count = 0;
  Leaf leaf[most] = {};

  constexpr CoordinateLeaves() = default;
  constexpr CoordinateLeaves(int count, Leaf const (&leaves)[most]) : count(count) {
    for (int i = 0; i < most; ++i) leaf[i] = leaves[i];
  }
  constexpr CoordinateLeaves(Layout const& layout) {
    for (int i = 0; i < layout.count; ++i) {
      if (layout.extents[i] == 1) continue;
      if (count == most)
        refuse("TiledCopy", "the threads' or the steps' map has more than six leaves", layout);
      leaf[count++] = {layout.axes[i] == 0 ? 0 : layout.axes[i] - 1,
                       static_cast<int>(layout.extents[i]), static_cast<int>(layout.strides[i])};
    }
  }
  constexpr Layout layout() const {
    Layout result;
    for (int i = 0; i < count; ++i)
      result.append_leaf(leaf[i].extent, Stride{leaf[i].step, leaf[i].axis});
    if (count == 0) result.append_leaf(1, {0});
    detail::wrap(result);
    return make_layout(result);
  }
  friend constexpr bool operator==(CoordinateLeaves const&, CoordinateLeaves const&) = default;
};

/// Who copies what of a tile of m x n elements: thread -> the coordinate of its first vector,
/// steps along m and along n -> how far on, and a vector of so many neighbours along axis
/// `contiguous` that one instruction moves. Made by share_rows() or make_tiled_copy(); a short
/// template argument.
struct TiledCopySpec {
  int m = 0, n = 0;
  int vector = 1;
  int contiguous = 1;
  CoordinateLeaves threads;
  CoordinateLeaves steps_m;
  CoordinateLeaves steps_n;

  friend constexpr bool operator==(TiledCopySpec const&, TiledCopySpec const&) = default;
};

namespace detail {
constexpr TiledCopySpec checked_copy(TiledCopySpec const& s) {
  Layout const all = make_layout(s.threads.layout(), s.steps_m.layout(), s.steps_n.layout(),
                                 along(s.contiguous, s.vector, 1));
  if (!tegula::covers_once(all, tuple(s.m, s.n)))
    refuse("TiledCopy", "threads, steps and vectors must cover each element of the tile once", all,
           s.m, s.n);
  return s;
}
}  // namespace detail

/// What share_rows takes. `block`: consecutive threads take consecutive vectors along that many
/// elements of the contiguous axis, then the next row; 0: along all of it. With groups > 1, each
/// group of threads (a warp) has consecutive rows to itself.
struct RowShares {
  int threads = 0;
  int m = 0, n = 0;
  int vector = 1;
  int contiguous = 1;  ///< 0: m, 1: n
  int block = 0;
  int groups = 1;
};

/// A tile shared by rows of vectors, so that reads of global memory and writes of shared memory are
/// whole lines of 128 bytes where a block is that wide. Refused where threads, vectors and blocks
/// do not divide the tile.
constexpr TiledCopySpec share_rows(RowShares const& s) {
  int const along_row = s.contiguous == 1 ? s.n : s.m, rows = s.contiguous == 1 ? s.m : s.n;
  int const block = s.block == 0 ? along_row : s.block;
  if (s.contiguous != 0 && s.contiguous != 1)
    refuse("TiledCopy", "the contiguous axis is 0 (m) or 1 (n)", s.contiguous);
  if (s.threads < 1 || s.m < 1 || s.n < 1 || s.vector < 1 || s.groups < 1)
    refuse("TiledCopy", "threads, extents, vector and groups are at least 1", s.threads, s.m, s.n,
           s.vector, s.groups);
  if (along_row % block != 0 || block % s.vector != 0)
    refuse("TiledCopy", "vectors must divide a block, and blocks the contiguous extent", s.vector,
           block, along_row);
  int const pieces = block / s.vector;
  if (pieces * s.groups > s.threads)
    refuse("TiledCopy", "a row's block has more vectors than threads: .block narrows it", block,
           s.vector, s.threads, s.groups);
  if (s.threads % (pieces * s.groups) != 0)
    refuse("TiledCopy", "the vectors of a block times the groups must divide the threads", pieces,
           s.groups, s.threads);
  int const together = s.threads / (pieces * s.groups);  // rows of a group at a time
  if (rows % (together * s.groups) != 0)
    refuse("TiledCopy", "the rows copied at once must divide the tile's", together, s.groups, rows);
  int const across = 1 - s.contiguous;
  Layout const threads =
      make_layout(along(s.contiguous, pieces, s.vector), along(across, together, 1),
                  along(across, s.groups, rows / s.groups));
  Layout const down = along(across, rows / (together * s.groups), together);
  Layout const right = along(s.contiguous, along_row / block, block);
  return detail::checked_copy({.m = s.m,
                               .n = s.n,
                               .vector = s.vector,
                               .contiguous = s.contiguous,
                               .threads = threads,
                               .steps_m = s.contiguous == 1 ? down : right,
                               .steps_n = s.contiguous == 1 ? right : down});
}

/// The copy in which thread threads(i, j) moves the block of values(...) elements at its place,
/// over a tile of threads' shape times values' shape (CuTe: make_tiled_copy), repeated over m x n
/// where those are given. A thread's values must be neighbours along one axis.
constexpr TiledCopySpec make_tiled_copy(Layout const& threads, Tuple const& values, int m = 0,
                                        int n = 0) {
  if (threads.rank() != 2 || values.rank() != 2)
    refuse("TiledCopy", "threads and values have two modes, (m, n)", threads, values);
  int const value_m = static_cast<int>(values[0].size()),
            value_n = static_cast<int>(values[1].size());
  if (value_m != 1 && value_n != 1)
    refuse("TiledCopy", "a thread's values must be neighbours along one axis: one extent is 1",
           threads, values);
  Layout first = detail::first_of_thread(threads, tuple(0, 1));
  for (int i = 0; i < first.count; ++i) first.strides[i] *= first.axes[i] == 1 ? value_m : value_n;
  int const tile_m = static_cast<int>(threads[0].size()) * value_m,
            tile_n = static_cast<int>(threads[1].size()) * value_n;
  m = m == 0 ? tile_m : m, n = n == 0 ? tile_n : n;
  if (m % tile_m != 0 || n % tile_n != 0)
    refuse("TiledCopy", "threads times values must divide the tile", threads, values, m, n);
  return detail::checked_copy({.m = m,
                               .n = n,
                               .vector = value_m * value_n,
                               .contiguous = value_m > 1 ? 0 : 1,
                               .threads = first,
                               .steps_m = along(0, m / tile_m, tile_m),
                               .steps_n = along(1, n / tile_n, tile_n)});
}

/// A copy of tiles of T by threads of a CTA. `thread` counts from 0 within those, up to `threads`;
/// another number is a finding on the simulated machine. (CuTe: TiledCopy, and get_slice(thread) of
/// it.) Hint tells the caches how global memory is used; without one cp.async fetches whole lines
/// of 128 bytes into L2.
template <TiledCopySpec S, class T, CacheHint Hint = CacheHint{}> struct TiledCopy {
 private:
  struct ThreadSource {
    static constexpr Layout value = S.threads.layout();
  };
  struct ValueSource {
    static constexpr Layout value =
        make_layout(along(S.contiguous, S.vector, 1), S.steps_m.layout()[0], S.steps_n.layout()[0]);
  };

 public:
  static constexpr TiledCopySpec spec = S;
  static constexpr int vector = S.vector;
  static constexpr int bytes = S.vector * static_cast<int>(sizeof(T));
  using Threads = MapOf<ThreadSource>;
  using Values = MapOf<ValueSource>;
  static constexpr int threads = map_size<Threads>;

  int thread;

  /// The thread's part of a tile (m, n[, ...]): (of a vector, steps along m, along n[, ...]).
  /// (CuTe: partition_S, partition_D.)
  template <class Space, class M>
  TEGULA_DEVICE auto partition(Tensor<Space, M> const& tile,
                               SourceLocation where = SourceLocation::current()) const {
    static_assert(M::rank >= 2, "TiledCopy: a tile has modes m and n");
    static_assert(mode_size<mode_at<0, M>> == S.m || mode_size<mode_at<0, M>> == kUnbounded,
                  "TiledCopy: the tile must be as high as the copy's");
    static_assert(mode_size<mode_at<1, M>> == S.n || mode_size<mode_at<1, M>> == kUnbounded,
                  "TiledCopy: the tile must be as wide as the copy's");
    detail::hold_thread<threads>("a tiled copy", thread, where);
    return tegula::partition<Threads, Values, 2>(tile, thread, where);
  }
};

}  // namespace tegula
