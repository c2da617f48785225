#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/tma.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula::examples {

/// C = A B^T by TMA and wgmma: bf16 A (M, K) and B (N, K), K contiguous, f32 C (M, N), row-major;
/// any M, N and K. One thread has TMA fill a ring of stages, and all threads, that one too,
/// multiply what is there. (CuTe's tutorial: wgmma_tma_sm90.)
struct GemmTma {
  struct Params {
    TensorMap a, b;
    float* c;
    int m, n, k;
    std::int64_t ldc;
  };
  using T = bfloat16;
  using Out = float;

  static constexpr int block_m = 128, block_n = 128, block_k = 64, stages = 3;
  static constexpr int warps = 8, threads = 32 * warps, min_ctas_per_sm = 2;
  static constexpr int a_contiguous = 1, b_contiguous = 1, c_contiguous = 1;

  // Two warpgroups, each 64 x 128 of C, in instructions of 64 x 128 x 16.
  using Mma = TiledMma<TiledMmaSpec{warpgroup_mma(DType::bf16, DType::bf16, DType::f32, block_n),
                                    block_m, block_n, 2, 1}>;
  static constexpr OperandTile tile_a{16, block_m, block_k, a_contiguous, stages};
  static constexpr OperandTile tile_b{16, block_n, block_k, b_contiguous, stages};
  using TileA = SharedTile<T, tile_a>;
  using TileB = SharedTile<T, tile_b>;
  // A stage's boxes; the tensor maps are made for them.
  static constexpr TmaBoxes boxes_a = tma_boxes(tile_a), boxes_b = tma_boxes(tile_b);
  using CopyA = TmaCopy<boxes_a>;
  using CopyB = TmaCopy<boxes_b>;
  using Ring = TmaPipeline<stages, warps>;

  struct SharedStorage {
    TileA a;
    TileB b;
    Ring::Storage ring;
    template <class F> void name_buffers(F&& name) {
      name("A", a), name("B", b), name("full", ring.full), name("empty", ring.empty);
    }
  };

  static constexpr Dim3 grid(Params const& p) {
    return {ceil_div(p.m, block_m), ceil_div(p.n, block_n), 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    Dim3 const cta = block_idx();

    auto const mA = tma_tensor<1, 0>(p.a);                           // (M, K), of coordinates
    auto const mB = tma_tensor<1, 0>(p.b);                           // (N, K), of coordinates
    auto const mC = matrix<1>(p.c, p.ldc, p.m, p.n);                 // (M, N)
    auto const gA = local_tile<block_m, block_k>(mA, cta.x, _);      // (block_m, block_k, k_tiles)
    auto const gB = local_tile<block_n, block_k>(mB, cta.y, _);      // (block_n, block_k, k_tiles)
    auto const gC = local_tile<block_m, block_n>(mC, cta.x, cta.y);  // (block_m, block_n)
    auto const sA = tensor(smem.a);                                  // (block_m, block_k, stages)
    auto const sB = tensor(smem.b);                                  // (block_n, block_k, stages)
    auto const tCsA = Mma{thread}.partition_a(sA);  // (MMA_M, MMA_K, stages), of descriptors
    auto const tCsB = Mma{thread}.partition_b(sB);  // (MMA_N, MMA_K, stages), of descriptors
    auto const tCgC = Mma{thread}.partition_c(gC);  // (MMA, MMA_M, MMA_N)
    Mma::Accumulator tCrC;                          // (MMA, MMA_M, MMA_N)

    Ring const ring{smem.ring};
    if (thread == 0) {
      ring.init();
      fence_mbarrier_init();
    }
    cta::sync();  // the ring's barriers are known to all, and to TMA

    int const k_tiles = ceil_div(p.k, block_k);
    Ring::State write, read;
    auto const load = [&](int k_tile) {
      if (thread == 0 && k_tile < k_tiles) {
        // nobody reads the stage
        SharedAddr const full = ring.acquire(write, CopyA::bytes + CopyB::bytes);
        copy(CopyA{}, gA(_, _, k_tile), sA(_, _, write.stage), full);
        copy(CopyB{}, gB(_, _, k_tile), sB(_, _, write.stage), full);
        write.next();
      }
      warp::sync();  // all lanes of the warp are back: wgmma takes them together
    };

    for (int k_tile = 0; k_tile < stages; ++k_tile) load(k_tile);
    int previous = 0;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      ring.wait(read);  // TMA's bytes of this tile are there
      wgmma_fence();    // tCrC's registers, before the first wgmma that uses them
      gemm(Mma{}, tCsA(_, _, read.stage), tCsB(_, _, read.stage), tCrC, k_tile > 0);
      wgmma_commit_group();
      // the tile before this one is multiplied: its stage can be filled again
      wgmma_wait_group<1>();
      if (k_tile > 0) {
        ring.release(previous);
        load(k_tile - 1 + stages);
      }
      previous = read.stage;
      read.next();
    }
    wgmma_wait_group<0>();  // until here tCrC belongs to the tensor core
    wgmma_pin(tCrC.data);
    copy(tCrC, tCgC);
  }
};

}  // namespace tegula::examples
