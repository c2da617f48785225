#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/tma.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula::examples {

/// C = A B^T, persistent and warp-specialised: bf16 A (M, K), B (N, K) and C (M, N), rows
/// contiguous; N is a multiple of 8 (TMA clips rows of C at 16 bytes), M and K are any. One thread
/// has TMA fill a ring of stages; two warpgroups multiply what is there, each 64 rows of a tile of
/// C, and store it by TMA while the ring fills for the next tile.
struct GemmWarpSpecialized {
  struct Params {
    TensorMap a, b, c;
    int m, n, k;
  };
  using T = bfloat16;
  using Out = bfloat16;

  static constexpr int block_m = 128, block_n = 256, block_k = 64, stages = 3;
  static constexpr int consumers = 2, threads = 128 * (1 + consumers), min_ctas_per_sm = 1;
  static constexpr int a_contiguous = 1, b_contiguous = 1, c_contiguous = 1;

  // A consumer's instruction of 64 x 256 x 16.
  using Mma = TiledMma<TiledMmaSpec{warpgroup_mma(DType::bf16, DType::bf16, DType::f32, block_n)}>;
  static constexpr OperandTile tile_a{16, block_m, block_k, a_contiguous, stages};
  static constexpr OperandTile tile_b{16, block_n, block_k, b_contiguous, stages};
  static constexpr OperandTile tile_c{16, 64, block_n, c_contiguous, consumers};
  using TileC = SharedTile<Out, tile_c>;
  static constexpr TmaBoxes boxes_a = tma_boxes(tile_a);  // of a stage; and so on
  static constexpr TmaBoxes boxes_b = tma_boxes(tile_b);
  static constexpr TmaBoxes boxes_c = tma_boxes(tile_c);
  static constexpr int stage_bytes = boxes_a.bytes + boxes_b.bytes;
  using Ring = TmaPipeline<stages, 4 * consumers>;
  struct SharedStorage {
    SharedTile<T, tile_a> a;
    SharedTile<T, tile_b> b;
    TileC c;
    Ring::Storage ring;
    template <class F> void name_buffers(F&& name) { name("A", a), name("B", b), name("C", c); }
  };
  static_assert(conflicts_of_threads<TileC, Mma::ThreadsC, 4> == 0, "stores of C");
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  TEGULA_HOST_DEVICE static constexpr int tiles_m(Params const& p) {
    return ceil_div(p.m, block_m);
  }
  TEGULA_HOST_DEVICE static constexpr int tiles(Params const& p) {
    return tiles_m(p) * ceil_div(p.n, block_n);
  }
  // SMs
  static constexpr Dim3 grid(Params const& p) { return {tiles(p) < 132 ? tiles(p) : 132, 1, 1}; }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    Ring const ring{smem.ring};
    if (thread_idx() == 0) ring.init(), fence_mbarrier_init();
    cta::sync();  // the ring's barriers are known to all, and to TMA
    // (M, K) and (N, K), of coordinates
    auto const mA = tma_tensor<1, 0>(p.a), mB = tma_tensor<1, 0>(p.b);
    auto const mC = tma_tensor<1, 0>(p.c);  // (M, N), of coordinates
    auto const sA = tensor(smem.a);         // (block_m, block_k, stages)
    auto const sB = tensor(smem.b);         // (block_n, block_k, stages)
    int const k_tiles = ceil_div(p.k, block_k);
    Ring::State state;
    // the producer: every step of K of every tile, into the next stage of the ring
    if (thread_idx() < 128) {
      setmaxnreg_dec<40>();
      if (thread_idx() > 0) return;
      for (int tile = block_idx().x; tile < tiles(p); tile += grid_dim().x) {
        // (block_m, block_k, k_tiles) and (block_n, block_k, k_tiles)
        auto const gA = local_tile<block_m, block_k>(mA, tile % tiles_m(p), _);
        auto const gB = local_tile<block_n, block_k>(mB, tile / tiles_m(p), _);
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile, state.next()) {
          // nobody reads the stage any more
          SharedAddr const full = ring.acquire(state, stage_bytes);
          copy(TmaCopy<boxes_a>{}, gA(_, _, k_tile), sA(_, _, state.stage), full);
          copy(TmaCopy<boxes_b>{}, gB(_, _, k_tile), sB(_, _, state.stage), full);
        }
      }
      return;
    }
    setmaxnreg_inc<232>();
    int const consumer = thread_idx() / 128 - 1, thread = thread_idx() % 128;
    auto const sC = tensor(smem.c)(_, _, consumer);             // (64, block_n)
    auto const s64 = local_tile<64, block_k>(sA, consumer, 0);  // (64, block_k, stages)
    auto const tCsA = Mma{thread}.partition_a(s64);             // (1, MMA_K, stages)
    auto const tCsB = Mma{thread}.partition_b(sB);              // (1, MMA_K, stages)
    auto const tCsC = Mma{thread}.partition_c(sC);              // (MMA, 1, 1)
    Mma::Accumulator tCrC;                                      // (MMA, 1, 1)
    for (int tile = block_idx().x; tile < tiles(p); tile += grid_dim().x) {
      int previous = 0;
      for (int k_tile = 0; k_tile < k_tiles; ++k_tile, state.next()) {
        ring.wait(state);  // TMA's bytes of this step are there
        wgmma_fence();     // tCrC's registers, before the first wgmma that uses them
        gemm(Mma{}, tCsA(_, _, state.stage), tCsB(_, _, state.stage), tCrC, k_tile > 0);
        wgmma_commit_group();
        wgmma_wait_group<1>();  // the step before this one is done with its stage
        if (k_tile > 0) ring.release(previous);
        previous = state.stage;
      }
      wgmma_wait_group<0>();  // until here tCrC belongs to the tensor core
      wgmma_pin(tCrC.data);
      ring.release(previous);
      if (thread == 0) bulk_wait_group_read<0>();  // TMA has read the tile before out of sC;
      cta::bar_sync(1 + consumer, 128);            // the warpgroup may write it
      copy(convert<Out>(tCrC), tCsC);
      fence_proxy_async_shared();        // each thread's writes, for TMA to see,
      cta::bar_sync(1 + consumer, 128);  // when all of them are there
      if (thread == 0) {
        int const m64 = consumers * (tile % tiles_m(p)) + consumer;
        copy(TmaCopy<boxes_c>{}, sC, local_tile<64, block_n>(mC, m64, tile / tiles_m(p)));
        bulk_commit_group();
      }
    }
    if (thread == 0) bulk_wait_group_read<0>();  // shared memory lives until TMA has read it
  }
};

}  // namespace tegula::examples
