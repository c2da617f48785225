#pragma once

#include "tegula/arch/dim3.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Cluster launch control (sm_100): a cluster that runs takes over the work of one that has not
/// started. PTX ISA, clusterlaunchcontrol. A kernel that uses it says
/// `static constexpr bool cluster_launch_control = true;`, and has a CTA for each piece of work.
namespace tegula {

/// The answer to a request, as it lies in shared memory: opaque.
struct alignas(16) ClusterLaunchResponse {
  unsigned char bytes[16];
};

/// Asks to cancel the launch of some cluster that has not started. The answer, 16 bytes at a
/// multiple of 16, is written to the CTA's shared memory by the async proxy, and its bytes are
/// counted as arrived at the mbarrier. By one thread; not after one whose answer was that there is
/// none: that is undefined.
TEGULA_DEVICE void clusterlaunchcontrol_try_cancel(
    SharedAddr response, SharedAddr mbarrier,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], "
      "[%1];" ::"r"(response),
      "r"(mbarrier)
      : "memory");
#else
  sim::clusterlaunchcontrol_try_cancel(response, mbarrier, false, where);
#endif
}

/// The same for the whole cluster (sm_100a): one answer, which is written to the same place in each
/// of its CTAs, and counted at the mbarrier at the same place there.
TEGULA_DEVICE void clusterlaunchcontrol_try_cancel_multicast(
    SharedAddr response, SharedAddr mbarrier,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
      ".multicast::cluster::all.b128 [%0], [%1];" ::"r"(response),
      "r"(mbarrier)
      : "memory");
#else
  sim::clusterlaunchcontrol_try_cancel(response, mbarrier, true, where);
#endif
}

/// What an answer says.
struct CancelledCluster {
  bool cancelled = false;  ///< else there is none to cancel, and this cluster ends
  Dim3 first_cta;          ///< of the cluster that will not start: its work is this one's
};

/// Reads an answer that has arrived. Before the next request for the same place, all who read it
/// execute fence_proxy_async_shared() and tell who asks.
TEGULA_DEVICE CancelledCluster clusterlaunchcontrol_query_cancel(
    SharedAddr response, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  CancelledCluster answer;
#if TEGULA_GPU
  int cancelled;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      ".reg .b128 answer;\n\t"
      "ld.shared.b128 answer, [%4];\n\t"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer;\n\t"
      "selp.s32 %0, 1, 0, p;\n\t"
      "mov.b32 %1, 0;\n\tmov.b32 %2, 0;\n\tmov.b32 %3, 0;\n\t"
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%1, %2, %3, _}, answer;\n\t"
      "}"
      : "=r"(cancelled), "=r"(answer.first_cta.x), "=r"(answer.first_cta.y),
        "=r"(answer.first_cta.z)
      : "r"(response)
      : "memory");
  answer.cancelled = cancelled != 0;
#else
  answer.cancelled = sim::clusterlaunchcontrol_query_cancel(response, answer.first_cta, where);
#endif
  return answer;
}

}  // namespace tegula
