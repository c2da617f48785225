#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula::examples {

/// One tile, C (64, 128) = A (64, 64) B (128, 64)^T, by one warpgroup on Hopper's tensor cores:
/// bf16 A and B, K contiguous; f32 C, row-major. What wgmma needs and nothing else.
struct WgmmaTile {
  struct Params {
    bfloat16 const *a, *b;
    float* c;
    std::int64_t lda, ldb, ldc;
  };
  using T = bfloat16;
  using Out = float;

  static constexpr int block_m = 64, block_n = 128, block_k = 64;
  static constexpr int threads = 128, min_ctas_per_sm = 1;
  static constexpr int a_contiguous = 1, b_contiguous = 1, c_contiguous = 1;

  // An instruction of 64 x 128 x 16, whose operands are both in shared memory.
  using Mma = TiledMma<TiledMmaSpec{warpgroup_mma(DType::bf16, DType::bf16, DType::f32, block_n)}>;
  using CopyA =
      TiledCopy<share_rows({.threads = threads, .m = block_m, .n = block_k, .vector = 8}), T>;
  using CopyB =
      TiledCopy<share_rows({.threads = threads, .m = block_n, .n = block_k, .vector = 8}), T>;

  // Rows of 128 bytes with TMA's swizzle of 128 bytes: a layout that wgmma reads.
  using TileA = SharedTile<T, OperandTile{16, block_m, block_k, a_contiguous}>;
  using TileB = SharedTile<T, OperandTile{16, block_n, block_k, b_contiguous}>;
  struct SharedStorage {
    TileA a;
    TileB b;
    template <class F> void name_buffers(F&& name) { name("A", a), name("B", b); }
  };
  static_assert(conflicts_of_threads<TileA, CopyA::Threads, 16> == 0, "copies of A and B");
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  static constexpr Dim3 grid(Params const&) { return {1, 1, 1}; }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();

    auto const mA = matrix<1>(p.a, p.lda, block_m, block_k);  // (block_m, block_k)
    auto const mB = matrix<1>(p.b, p.ldb, block_n, block_k);  // (block_n, block_k)
    auto const mC = matrix<1>(p.c, p.ldc, block_m, block_n);  // (block_m, block_n)
    auto const gA = local_tile<block_m, block_k>(mA, 0, 0);   // (block_m, block_k)
    auto const gB = local_tile<block_n, block_k>(mB, 0, 0);   // (block_n, block_k)
    auto const gC = local_tile<block_m, block_n>(mC, 0, 0);   // (block_m, block_n)
    auto const sA = tensor(smem.a);                           // (block_m, block_k)
    auto const sB = tensor(smem.b);                           // (block_n, block_k)
    auto const tCsA = Mma{thread}.partition_a(sA);            // (1, MMA_K), of matrix descriptors
    auto const tCsB = Mma{thread}.partition_b(sB);            // (1, MMA_K), of matrix descriptors
    auto const tCgC = Mma{thread}.partition_c(gC);            // (MMA, 1, 1)
    Mma::Accumulator tCrC;                                    // (MMA, 1, 1)

    copy(CopyA{thread}, whole(gA), sA);
    copy(CopyB{thread}, whole(gB), sB);
    cp_async_wait_all();         // this thread's copies have landed,
    fence_proxy_async_shared();  // and the tensor core, which reads by another proxy, may see them;
    cta::sync();                 // so it is with every thread's

    wgmma_fence();  // tCrC's registers, before the first wgmma that uses them
    gemm(Mma{}, tCsA, tCsB, tCrC, false);
    wgmma_commit_group();
    wgmma_wait_group<0>();  // until here tCrC belongs to the tensor core
    wgmma_pin(tCrC.data);

    copy(tCrC, tCgC);
  }
};

}  // namespace tegula::examples
