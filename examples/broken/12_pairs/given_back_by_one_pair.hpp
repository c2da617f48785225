#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A stage that several pairs read is given back by the commits of all of them.
///
/// CTA 0 loads rows of B for two pairs, and again when the products of its own pair have read them;
/// those of the other pair may still be reading.
///
/// PTX ISA: tcgen05.commit, .multicast::cluster.
struct given_back_by_one_pair : TwoPairsKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    clear_others(smem);
    TensorAddr const base = TensorCoreKernel::begin(smem, p.repaired ? 2 : 1);
    SharedAddr const done = shared_address(&smem.done), full = shared_address(&smem.full),
                     empty = shared_address(&smem.empty);
    int const rank = cluster_cta_rank();
    if (thread_idx() == 0 && rank % 2 == 0) {
      for (int round = 0; round < 2; ++round) {
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        if (rank == 0) {
          mbarrier_wait_parity(empty, round ^ 1);
          load(p, smem, even_ctas);
        }
        mbarrier_wait_parity(full, round);
        multiply(smem, base);
        if (rank == 0 || p.repaired) tcgen05_commit_multicast<2>(empty, 0b0001);
      }
      if (rank == 0) mbarrier_wait_parity(empty, 1);
      tcgen05_commit_multicast<2>(done, static_cast<std::uint16_t>(both << rank));
    }
    mbarrier_wait_parity(done, 0);
    end(base);
  }
};

// Report:
//   12_pairs/given_back_by_one_pair.hpp:25: kernel given_back_by_one_pair, CTA (0, 0, 0), warp 0,
//     lane 0: async_overwrite: cp.async.bulk.tensor writes row 0, column 0 of B of CTA 2 of the
//     cluster while a tcgen05.mma that reads it is in flight that warp 0 lane 0 of CTA 2 of the
//     cluster issued (broken/tensor_memory_kernel.hpp:73): a tcgen05_commit after it by that
//     thread, and a wait for its mbarrier, would order them; where the tcgen05.mma is to read what
//     is written, a barrier between the two would

}  // namespace tegula::broken
