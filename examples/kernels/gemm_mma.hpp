#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/gemm.hpp"

namespace tegula::examples {

/// C = A B^T on Ampere's tensor cores: bf16 A (M, K) and B (N, K), K contiguous; f32 C (M, N),
/// row-major. K is a multiple of 8, M and N are any. Tiles pass through a ring of stages that
/// cp.async fills. (CuTe's tutorial: sgemm_sm80.)
struct GemmMma {
  struct Params {
    int m, n, k;
    bfloat16 const *a, *b;
    float* c;
    std::int64_t lda, ldb, ldc;
  };
  using T = bfloat16;
  using Out = float;

  static constexpr int block_m = 128, block_n = 128, block_k = 64, stages = 3;
  static constexpr int threads = 128, min_ctas_per_sm = 2;
  static constexpr int a_contiguous = 1, b_contiguous = 1, c_contiguous = 1;

  // 2 x 2 warps, each 64 x 64 of C in instructions of 16 x 8 x 16.
  using Mma = TiledMma<TiledMmaSpec{warp_mma(DType::bf16, DType::f32, 16), block_m, block_n, 2, 2}>;
  // Rows of 64 elements are 128 bytes: eight threads copy one, 16 bytes each.
  using CopyA =
      TiledCopy<share_rows({.threads = threads, .m = block_m, .n = block_k, .vector = 8}), T>;
  using CopyB =
      TiledCopy<share_rows({.threads = threads, .m = block_n, .n = block_k, .vector = 8}), T>;

  using TileA = SharedTile<T, OperandTile{16, block_m, block_k, a_contiguous, stages}>;
  using TileB = SharedTile<T, OperandTile{16, block_n, block_k, b_contiguous, stages}>;
  struct SharedStorage {
    TileA a;
    TileB b;
    template <class F> void name_buffers(F&& name) { name("A", a), name("B", b); }
  };
  static_assert(Mma::conflicts_of<'a', TileA> == 0 && Mma::conflicts_of<'b', TileB> == 0,
                "ldmatrix");
  static_assert(conflicts_of_threads<TileA, CopyA::Threads, 16> == 0, "copies of A and B");
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  static constexpr Dim3 grid(Params const& p) {
    return {ceil_div(p.m, block_m), ceil_div(p.n, block_n), 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    Dim3 const cta = block_idx();

    auto const mA = whole_vectors(matrix<1>(p.a, p.lda, p.m, p.k));  // (M, K)
    auto const mB = whole_vectors(matrix<1>(p.b, p.ldb, p.n, p.k));  // (N, K)
    auto const mC = matrix<1>(p.c, p.ldc, p.m, p.n);                 // (M, N)
    auto const gA = local_tile<block_m, block_k>(mA, cta.x, _);      // (block_m, block_k, k_tiles)
    auto const gB = local_tile<block_n, block_k>(mB, cta.y, _);      // (block_n, block_k, k_tiles)
    auto const gC = local_tile<block_m, block_n>(mC, cta.x, cta.y);  // (block_m, block_n)
    auto const sA = tensor(smem.a);                                  // (block_m, block_k, stages)
    auto const sB = tensor(smem.b);                                  // (block_n, block_k, stages)
    auto const tCsA = Mma{thread}.partition_a(sA);                   // (loads of A, MMA_K, stages)
    auto const tCsB = Mma{thread}.partition_b(sB);                   // (loads of B, MMA_K, stages)
    auto const tCgC = Mma{thread}.partition_c(gC);                   // (MMA, MMA_M, MMA_N)
    Mma::Accumulator tCrC;                                           // (MMA, MMA_M, MMA_N)

    int const k_tiles = ceil_div(p.k, block_k);
    auto const load = [&](int k_tile, int stage) {
      if (k_tile < k_tiles) {
        // zeros where the tile reaches beyond A
        copy(CopyA{thread}, gA(_, _, k_tile), sA(_, _, stage));
        copy(CopyB{thread}, gB(_, _, k_tile), sB(_, _, stage));
      }
      // of nothing where there is no tile, so that the wait below counts right
      cp_async_commit_group();
    };

    clear(tCrC);
    for (int stage = 0; stage < stages - 1; ++stage) load(stage, stage);
    int read = 0, write = stages - 1;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      // This thread's copies of the tile have landed; after the barrier everybody's have, and
      // nobody still reads the stage of the tile before, which is written next.
      cp_async_wait_group<stages - 2>();
      cta::sync();
      load(k_tile + stages - 1, write);
      gemm<2>(Mma{}, tCsA(_, _, read), tCsB(_, _, read), tCrC);
      read = next_stage<stages>(read), write = next_stage<stages>(write);
    }
    copy(tCrC, tCgC);
  }
};

}  // namespace tegula::examples
