#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/copy.hpp"

namespace tegula::examples {

/// D (N, M) = S (M, N) transposed, both row-major f32 of any extents. A tile passes through shared
/// memory: rows in, columns out, so that global memory is read and written along rows.
struct TransposeSwizzled {
  struct Params {
    int m, n;
    float const* s;
    float* d;
    std::int64_t lds, ldd;
  };

  static constexpr bool transposes = true;
  static constexpr int block = 64;
  static constexpr int threads = 256, min_ctas_per_sm = 4;
  // (row, column) -> thread: a warp has a row
  static constexpr Layout by_row = "(8,32):(32,1)"_layout;

  // The row's low five bits are XORed into the column's: neither the words of a row nor those of a
  // column meet a bank twice.
  static constexpr SwizzledLayout memory = {Swizzle{5, 0, 6}, 0, row_major(block, block)};
  using Tile = SharedTile<float, memory>;
  struct SharedStorage {
    Tile tile;
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  static constexpr Dim3 grid(Params const& p) {
    return {ceil_div(p.n, block), ceil_div(p.m, block), 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    Dim3 const cta = block_idx();

    auto const mS = matrix<1>(p.s, p.lds, p.m, p.n);             // (M, N)
    auto const mD = matrix<1>(p.d, p.ldd, p.n, p.m);             // (N, M)
    auto const gS = local_tile<block, block>(mS, cta.y, cta.x);  // (block, block)
    auto const gD = local_tile<block, block>(mD, cta.x, cta.y);  // (block, block)
    auto const sS = tensor(smem.tile);                           // (block, block), as S has it
    auto const sD = select<1, 0>(sS);                            // (block, block), as D has it

    auto const tSgS = local_partition<by_row>(gS, thread);  // (8, 2)
    auto const tSsS = local_partition<by_row>(sS, thread);  // (8, 2)
    auto const tDsD = local_partition<by_row>(sD, thread);  // (8, 2)
    auto const tDgD = local_partition<by_row>(gD, thread);  // (8, 2)
    static_assert(conflicts_of_part<decltype(tSsS)> == 0, "rows of S in");
    static_assert(conflicts_of_part<decltype(tDsD)> == 0, "columns of S out");

    copy(tSgS, tSsS);
    cta::sync();  // the tile is complete, for all to read
    copy(tDsD, tDgD);
  }
};

}  // namespace tegula::examples
