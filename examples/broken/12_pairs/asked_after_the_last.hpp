#pragma once

#include "../kernel.hpp"
#include "tegula/arch/cluster_launch_control.hpp"

namespace tegula::broken {

/// A CTA that has seen that there is no cluster to cancel does not ask again.
///
/// It asks once more than there are answers.
///
/// PTX ISA: clusterlaunchcontrol.try_cancel.
struct asked_after_the_last : Kernel<32> {
  static constexpr bool cluster_launch_control = true;
  static constexpr Dim3 grid = {6, 1, 1};
  static sim::Options options() { return {.generation = sim::Generation::sm100, .count = false}; }
  struct SharedStorage {
    ClusterLaunchResponse answer;
    Mbarrier answered;
    template <class F> void name_buffers(F&& name) {
      name("answer", answer);
      name("answered", answered);
    }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    if (lane_id() != 0) return;
    SharedAddr const answer = shared_address(&smem.answer),
                     answered = shared_address(&smem.answered);
    mbarrier_init(answered, 1);
    fence_mbarrier_init();
    for (int n = 0, more = 1; more > 0; ++n) {
      mbarrier_arrive_expect_tx(answered, 16);
      clusterlaunchcontrol_try_cancel(answer, answered);
      mbarrier_wait_parity(answered, n & 1);
      if (!clusterlaunchcontrol_query_cancel(answer).cancelled) more -= p.repaired || n > 8 ? 1 : 0;
      fence_proxy_async_shared();  // the answer is read before the next one is written
    }
  }
};

// Report:
//   12_pairs/asked_after_the_last.hpp:34: kernel asked_after_the_last, CTA (0, 0, 0), warp 0, lane
//     0: invalid_operand: clusterlaunchcontrol.try_cancel after the CTA has seen that there is no
//     cluster to cancel (12_pairs/asked_after_the_last.hpp:36): what it does is undefined (34 times
//     in all)

}  // namespace tegula::broken
