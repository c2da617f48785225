#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/axpby.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/gemm.hpp"

namespace tegula::examples {

/// sgemm_threads.hpp with a tiled copy and a tiled MMA: vectors of four by cp.async, one tile
/// ahead. A (M, K), B (N, K) and C (M, N) are column-major; M and N are multiples of 4, K is any.
/// (CuTe's tutorial: sgemm_2.)
struct SgemmTiled {
  struct Params {
    int m, n, k;
    float const *a, *b;
    float* c;
    std::int64_t lda, ldb, ldc;
    float alpha, beta;
  };
  using T = float;
  using Out = float;

  static constexpr int block_m = 128, block_n = 128, block_k = 16, stages = 2;
  static constexpr int threads = 256, min_ctas_per_sm = 2;
  static constexpr int a_contiguous = 0, b_contiguous = 0, c_contiguous = 0;

  // 32 x 8 threads, each four neighbours along m (n), repeated along k.
  static constexpr TiledCopySpec four_each =
      make_tiled_copy("(32,8):(1,32)"_layout, shape(4, 1), block_m, block_k);
  using CopyA = TiledCopy<four_each, float>;
  using CopyB = TiledCopy<four_each, float>;
  // 16 x 16 threads, each every 16th row and column.
  using Mma =
      TiledMma<TiledMmaSpec{scalar_fma(DType::f32), block_m, block_n, 16, 16, Share::raked}>;
  static_assert(Mma::threads == threads);

  using TileA = SharedTile<float, col_major(block_m, block_k, stages)>;
  using TileB = SharedTile<float, col_major(block_n, block_k, stages)>;
  struct SharedStorage {
    TileA a;
    TileB b;
    template <class F> void name_buffers(F&& name) { name("A", a), name("B", b); }
  };
  static_assert(conflicts_of_threads<TileA, typename CopyA::Threads, 16> == 0, "copies of A and B");
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  static constexpr Dim3 grid(Params const& p) {
    return {ceil_div(p.m, block_m), ceil_div(p.n, block_n), 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    Dim3 const cta = block_idx();

    auto const mA = whole_vectors(matrix<0>(p.a, p.lda, p.m, p.k));  // (M, K)
    auto const mB = whole_vectors(matrix<0>(p.b, p.ldb, p.n, p.k));  // (N, K)
    auto const mC = matrix<0>(p.c, p.ldc, p.m, p.n);                 // (M, N)
    auto const gA = local_tile<block_m, block_k>(mA, cta.x, _);      // (block_m, block_k, k_tiles)
    auto const gB = local_tile<block_n, block_k>(mB, cta.y, _);      // (block_n, block_k, k_tiles)
    auto const gC = local_tile<block_m, block_n>(mC, cta.x, cta.y);  // (block_m, block_n)
    auto const sA = tensor(smem.a);                                  // (block_m, block_k, stages)
    auto const sB = tensor(smem.b);                                  // (block_n, block_k, stages)
    auto const tCsA = Mma{thread}.partition_a(sA);                   // (1, MMA_M, MMA_K, stages)
    auto const tCsB = Mma{thread}.partition_b(sB);                   // (1, MMA_N, MMA_K, stages)
    auto const tCgC = Mma{thread}.partition_c(gC);                   // (1, MMA_M, MMA_N)
    static_assert(conflicts_of_part<decltype(tCsA)> == 0 && conflicts_of_part<decltype(tCsB)> == 0);

    Mma::Accumulator tCrC;  // (1, MMA_M, MMA_N)
    clear(tCrC);
    auto const load = [&](int k_tile, int stage) {
      // zeros where the tile reaches beyond A
      copy(CopyA{thread}, gA(_, _, k_tile), sA(_, _, stage));
      copy(CopyB{thread}, gB(_, _, k_tile), sB(_, _, stage));
      cp_async_commit_group();
    };
    int const k_tiles = ceil_div(p.k, block_k);
    load(0, 0);
    for (int k_tile = 0, stage = 0; k_tile < k_tiles; ++k_tile, stage = next_stage<stages>(stage)) {
      // This thread's copies of the tile have landed; after the barrier everybody's have, and
      // nobody still reads the other stage.
      cp_async_wait_group<0>();
      cta::sync();
      if (k_tile + 1 < k_tiles) load(k_tile + 1, next_stage<stages>(stage));
      gemm(Mma{}, tCsA(_, _, _, stage), tCsB(_, _, _, stage), tCrC);
    }
    axpby(p.alpha, tCrC, p.beta, tCgC);
  }
};

}  // namespace tegula::examples
