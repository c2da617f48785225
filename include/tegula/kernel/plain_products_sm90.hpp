#pragma once

#include "tegula/arch/wgmma.hpp"
#include "tegula/kernel/grouped_gemm_sm90_config.hpp"
#include "tegula/pipeline/group_tiles.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula {

/// The main loop of a consumer warpgroup of GroupedGemmSm90 (Kernel) without scales. The tensor
/// core works on one stage while the next is waited for.
template <class Kernel> class PlainProductsSm90 {
  using Storage = typename Kernel::SharedStorage;
  using Ring = typename Kernel::Ring;
  using Steps = typename Kernel::Steps;
  using Mma = typename Kernel::Mma;
  using Accumulator = typename Kernel::Accumulator;
  static constexpr int waves = Kernel::waves, wave_m = Kernel::wave_m, block_k = Kernel::block_k;

 public:
  TEGULA_DEVICE PlainProductsSm90(GroupedGemmSm90Params const& params, Storage& storage,
                                  Ring const& ring, int thread)
      : p_(params), smem_(storage), ring_(ring), thread_(thread) {}

  struct Scales {};
  TEGULA_DEVICE Scales scales_of(GroupTile const&, int, Steps, auto const& /*state*/) const {
    return {};
  }

  /// tCrC = A B^T over the steps, a stage of the ring each; left as it is where there is none.
  TEGULA_DEVICE void add_to(Accumulator (&tCrC)[waves], typename Ring::State& state,
                            GroupTile const& tile, int, Steps steps, Scales) const {
    Mma const mma{thread_};
    int previous = 0;
#pragma unroll 1
    for (int step = steps.first; step < steps.last; ++step) {
      ring_.wait(state);
      if (Kernel::ends_early(p_, tile, step))
        Kernel::clear_beyond(smem_, state.stage, tile, step, thread_);
      wgmma_fence();  // the registers of tCrC, before the first wgmma that uses them
      auto const tCsB = mma.partition_b(tensor(smem_.b))(_, _, state.stage);
#pragma unroll
      for (int wave = 0; wave < waves; ++wave) {
        auto const sA = part<wave_m, block_k>(domain_offset(tensor(smem_.a), wave * wave_m, 0, 0));
        gemm(mma, mma.partition_a(sA)(_, _, state.stage), tCsB, tCrC[wave], step > steps.first);
      }
      wgmma_commit_group();
      wgmma_wait_group<1>();  // nobody in this warp reads the stage before this one any more
      if (step > steps.first) ring_.release(previous);
      previous = state.stage;
      state.next();
    }
    wgmma_wait_group<0>();
#pragma unroll
    for (int wave = 0; wave < waves; ++wave) wgmma_pin(tCrC[wave]);
    if (steps.count() > 0) ring_.release(previous);
  }

 private:
  GroupedGemmSm90Params const& p_;
  Storage& smem_;
  Ring const& ring_;
  int thread_;
};

}  // namespace tegula
