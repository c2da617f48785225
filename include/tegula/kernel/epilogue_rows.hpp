#pragma once

#include <cstdint>

#include "tegula/arch/global.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/kernel/grouped_gemm_sm90_config.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/row_store.hpp"
#include "tegula/tensor/vector.hpp"

/// The end of a grouped GEMM: accumulators to rows of D in global memory, straight from registers.
/// TMA would store whole tiles, and with them rows of the next group.
namespace tegula {

/// One thread's rows of a tile of D, whose first element is row `m`, column `n` of a group's D. Mma
/// is the tiled MMA whose accumulators they are, `thread` its thread.
template <class Out, class Mma> class RowEpilogue {
 public:
  TEGULA_DEVICE RowEpilogue(GroupedGemmOutput const& out, int group, int thread)
      : out_(out),
        d_(static_cast<Out*>(out.d) + group * out.d_group_stride),
        c_(static_cast<Out const*>(out.c) + (out.c == nullptr ? 0 : group * out.c_group_stride)),
        origin_(Mma{thread}.origin_c()) {}

  /// D = values + C for the rows before `m_end` and the columns of D. All lanes of a warp take
  /// part.
  template <class M>
  TEGULA_DEVICE void store(Fragment<float, M>& values, int m, int m_end, int n) const {
#pragma unroll
    for (int r = 0; r < count_along<M, 0>; ++r) {
      int const row = m + origin_[0] + step_along<0>(M{}, r);
      bool const inside = row < edge(m_end);
      if (out_.c != nullptr) {
        add_c(values, r, row, n, inside);
        warp::sync();  // all lanes have read the row: C may be D, which other lanes store
      }
      if constexpr (sizeof(Out) == 2 && count_along<M, 1> % 8 == 0) {  // 32 columns a quad
        if (out_.vectors) {
          store_row(values, r, d_ + row * out_.ldd + n, edge(out_.n) - n, inside);
          continue;
        }
      }
      store_pairs(values, r, row, n, inside);
    }
  }

 private:
  using Pair = Vector<Out, 2>;

  /// values(r, .) += C. A lane has pairs of columns, which lie in C as they do in D.
  template <class M>
  TEGULA_DEVICE void add_c(Fragment<float, M>& values, int r, int row, int n, bool inside) const {
    Out const* const c = c_ + row * out_.ldc;
#pragma unroll
    for (int i = 0; i < count_along<M, 1>; i += 2) {
      int const column = n + origin_[1] + step_along<1>(M{}, i);
      Pair pair{};
      if (inside && out_.vectors && column < edge(out_.n)) {
        pair = ld_global<Pair>(c + column);
      } else if (inside && !out_.vectors) {
        if (column < edge(out_.n)) pair.data[0] = ld_global<Out>(c + column);
        if (column + 1 < edge(out_.n)) pair.data[1] = ld_global<Out>(c + column + 1);
      }
      row_column(values, r, i) += to_float(pair.data[0]);
      row_column(values, r, i + 1) += to_float(pair.data[1]);
    }
  }

  template <class M>
  TEGULA_DEVICE void store_pairs(Fragment<float, M> const& values, int r, int row, int n,
                                 bool inside) const {
    if (!inside) return;
    Out* const d = d_ + row * out_.ldd;
#pragma unroll
    for (int i = 0; i < count_along<M, 1>; i += 2) {
      int const column = n + origin_[1] + step_along<1>(M{}, i);
      Pair const pair = {{rounded_to(wgmma_value(row_column(values, r, i))),
                          rounded_to(wgmma_value(row_column(values, r, i + 1)))}};
      if (out_.vectors) {
        if (column < edge(out_.n)) st_global(d + column, pair);
      } else {
        if (column < edge(out_.n)) st_global(d + column, pair.data[0]);
        if (column + 1 < edge(out_.n)) st_global(d + column + 1, pair.data[1]);
      }
    }
  }

  TEGULA_DEVICE static Out rounded_to(float x) {
    if constexpr (sizeof(Out) == 4) {
      return x;
    } else {
      return unpack<Out>(pack_pair<Out>(x, 0.0f), 0);
    }
  }

  GroupedGemmOutput const& out_;
  Out* d_;
  Out const* c_;
  Coordinate<2> origin_;
};

}  // namespace tegula
