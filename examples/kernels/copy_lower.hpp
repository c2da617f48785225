#pragma once

#include "tegula/arch/special_registers.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/tensor/copy.hpp"

namespace tegula::examples {

/// D = the lower triangle of S, in pieces of four: f32 matrices (M, N), row-major, N a multiple
/// of 4. Vectors that begin above the diagonal are not read; zeros are written in their place.
/// (CuTe's tutorial: tiled_copy, with copy_if.)
struct CopyLower {
  struct Params {
    int m, n;
    float const* s;
    float* d;
    std::int64_t lds, ldd;
  };
  static constexpr bool transposes = false;
  static constexpr int vector = 4;

  static constexpr int block_m = 64, block_n = 128;
  static constexpr int threads = 256, min_ctas_per_sm = 4;
  // 8 x 32 threads, each four neighbours of a row, 16 bytes; repeated down the tile.
  using Copy =
      TiledCopy<make_tiled_copy("(8,32):(32,1)"_layout, shape(1, vector), block_m, block_n), float>;
  struct SharedStorage {};

  static constexpr bool wanted(int row, int column) { return column / vector * vector <= row; }

  static constexpr Dim3 grid(Params const& p) {
    return {ceil_div(p.n, block_n), ceil_div(p.m, block_m), 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    Copy const by{thread_idx()};
    Dim3 const cta = block_idx();

    auto const mS = whole_vectors(matrix<1>(p.s, p.lds, p.m, p.n));  // (M, N)
    auto const mD = whole_vectors(matrix<1>(p.d, p.ldd, p.m, p.n));  // (M, N)
    auto const gS = local_tile<block_m, block_n>(mS, cta.y, cta.x);  // (block_m, block_n)
    auto const gD = local_tile<block_m, block_n>(mD, cta.y, cta.x);  // (block_m, block_n)
    auto tSrS = make_fragment_like(by.partition(gS));                // (vector, 8, 1)

    // The predicate is asked of the coordinate in S of a vector's first element; beyond S nothing
    // is read.
    auto const lower = [](Coordinate<2> const& at) { return at[1] <= at[0]; };
    copy_if(by, lower, gS, tSrS);
    copy(by, tSrS, gD);
  }
};

}  // namespace tegula::examples
