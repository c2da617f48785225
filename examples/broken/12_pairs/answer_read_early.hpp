#pragma once

#include "../kernel.hpp"
#include "tegula/arch/cluster_launch_control.hpp"

namespace tegula::broken {

/// The answer to a request for a cluster is there when its mbarrier says so.
///
/// It is read at once.
///
/// PTX ISA: clusterlaunchcontrol.try_cancel.
struct answer_read_early : Kernel<32> {
  static constexpr bool cluster_launch_control = true;
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
    mbarrier_arrive_expect_tx(answered, 16);
    clusterlaunchcontrol_try_cancel(answer, answered);
    if (p.repaired) mbarrier_wait_parity(answered, 0);
    clusterlaunchcontrol_query_cancel(answer);
    mbarrier_wait_parity(answered, 0);
  }
};

// Report:
//   12_pairs/answer_read_early.hpp:34: kernel answer_read_early, CTA (0, 0, 0), warp 0, lane 0:
//     async_read_early: clusterlaunchcontrol.query_cancel reads element 0 of answer while a
//     clusterlaunchcontrol.try_cancel into it is in flight that warp 0 lane 0 issued
//     (12_pairs/answer_read_early.hpp:32): a wait for element 0 of answered, on which it completes,
//     would order them
//   12_pairs/answer_read_early.hpp:34: kernel answer_read_early, CTA (0, 0, 0), warp 0, lane 0:
//     invalid_operand: clusterlaunchcontrol.query_cancel of element 0 of answer, which is no answer
//     of a clusterlaunchcontrol.try_cancel

}  // namespace tegula::broken
