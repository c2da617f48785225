#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/axpby.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/gemm.hpp"

namespace tegula::examples {

/// C = alpha A B^T + beta C in f32, for any M, N and K: who copies and computes what is said by
/// layouts of threads alone. A (M, K), B (N, K) and C (M, N) are column-major. (CuTe's
/// tutorial: sgemm_1.)
struct SgemmThreads {
  struct Params {
    int m, n, k;
    float const *a, *b;
    float* c;
    std::int64_t lda, ldb, ldc;
    float alpha, beta;
  };

  static constexpr int block_m = 128, block_n = 128, block_k = 8;
  static constexpr int threads = 256, min_ctas_per_sm = 2;
  using T = float;
  using Out = float;
  static constexpr int a_contiguous = 0, b_contiguous = 0, c_contiguous = 0;

  static constexpr Layout tA = "(32,8):(1,32)"_layout;   // (m, k) -> thread that copies
  static constexpr Layout tB = "(32,8):(1,32)"_layout;   // (n, k) -> thread that copies
  static constexpr Layout tC = "(16,16):(1,16)"_layout;  // (m, n) -> thread that computes

  using TileA = SharedTile<float, col_major(block_m, block_k)>;
  using TileB = SharedTile<float, col_major(block_n, block_k)>;
  struct SharedStorage {
    TileA a;
    TileB b;
    template <class F> void name_buffers(F&& name) { name("A", a), name("B", b); }
  };
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  static constexpr Dim3 grid(Params const& p) {
    return {ceil_div(p.m, block_m), ceil_div(p.n, block_n), 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    Dim3 const cta = block_idx();

    auto const mA = matrix<0>(p.a, p.lda, p.m, p.k);                 // (M, K)
    auto const mB = matrix<0>(p.b, p.ldb, p.n, p.k);                 // (N, K)
    auto const mC = matrix<0>(p.c, p.ldc, p.m, p.n);                 // (M, N)
    auto const gA = local_tile<block_m, block_k>(mA, cta.x, _);      // (block_m, block_k, k_tiles)
    auto const gB = local_tile<block_n, block_k>(mB, cta.y, _);      // (block_n, block_k, k_tiles)
    auto const gC = local_tile<block_m, block_n>(mC, cta.x, cta.y);  // (block_m, block_n)
    auto const sA = tensor(smem.a);                                  // (block_m, block_k)
    auto const sB = tensor(smem.b);                                  // (block_n, block_k)

    auto const tAgA = local_partition<tA>(gA, thread);  // (4, 1, k_tiles)
    auto const tAsA = local_partition<tA>(sA, thread);  // (4, 1)
    auto const tBgB = local_partition<tB>(gB, thread);  // (4, 1, k_tiles)
    auto const tBsB = local_partition<tB>(sB, thread);  // (4, 1)

    auto const tCsA = local_partition<tC, 0, X>(sA, thread);  // (8, block_k), by the rows of tC
    auto const tCsB = local_partition<tC, 1, X>(sB, thread);  // (8, block_k), by the columns of tC
    auto const tCgC = local_partition<tC>(gC, thread);        // (8, 8)
    auto tCrC = make_fragment_like(tCgC);                     // (8, 8)
    static_assert(conflicts_of_part<decltype(tAsA)> == 0 && conflicts_of_part<decltype(tCsA)> == 0);
    static_assert(conflicts_of_part<decltype(tBsB)> == 0 && conflicts_of_part<decltype(tCsB)> == 0);

    clear(tCrC);
    int const k_tiles = ceil_div(p.k, block_k);
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      copy(tAgA(_, _, k_tile), tAsA);  // zeros where the tile reaches beyond A
      copy(tBgB(_, _, k_tile), tBsB);
      cta::sync();  // everybody's copies are there for all to read
      gemm(tCsA, tCsB, tCrC);
      cta::sync();  // nobody still reads what the next step overwrites
    }
    axpby(p.alpha, tCrC, p.beta, tCgC);
  }
};

}  // namespace tegula::examples
