#pragma once

#include <cstdint>

#include "tegula/macros.hpp"

/// Mutation testing of kernels: the statements that can be mutated, and how. A *mutant* is (file,
/// line, operation, mutation): all executions of that statement. Which mutations an instruction
/// admits, the machine knows; which a value does, sim/mutable_values.hpp.
namespace tegula {

/// What kind of statement can be mutated. The first group are instructions, the second values that
/// kernels and pipelines compute. TEGULA_MUTANT_OPERATION and reports name them as here.
enum class Operation : std::uint8_t {
  bar_sync,
  bar_arrive,
  warp_sync,
  cluster_arrive,
  cluster_wait,
  mbarrier_init,
  fence_mbarrier_init,
  mbarrier_arrive,
  mbarrier_arrive_cluster,
  mbarrier_arrive_expect_tx,
  mbarrier_expect_tx,
  mbarrier_complete_tx,
  mbarrier_wait,
  cp_async_mbarrier_arrive,
  ld_acquire,
  st_release,
  st_relaxed,
  atom,
  red,
  fence,
  fence_proxy_async,
  cp_async_commit_group,
  cp_async_wait_group,
  bulk_commit_group,
  bulk_wait_group,
  bulk_wait_group_read,
  wgmma_fence,
  wgmma_commit_group,
  wgmma_wait_group,
  tcgen05_wait,
  tcgen05_fence,
  tcgen05_cp,
  tcgen05_shift,
  tcgen05_commit,
  multicast_mask,
  setmaxnreg_inc,
  setmaxnreg_dec,
  griddepcontrol_wait,
  griddepcontrol_launch_dependents,

  initial_phase,    ///< the parity that a walk through a ring, or a turn, begins with
  phase,            ///< its change from one round to the next
  stage_increment,  ///< the step to the next buffer of a ring
  predicate,        ///< of a store to, or a load from, a ragged edge
  swizzle,          ///< of the addresses of one access to a tile
  zero_fill,        ///< of what cp.async copies from outside the operand
};

/// What is done to a statement. Those that it admits are a set of bits.
enum class Mutation : std::uint8_t {
  none = 0,
  removed = 1,  ///< not executed; a predicate: always true
  /// the same with less order: relaxed for release or acquire, a narrower scope, a warp's barrier
  /// for the CTA's, .read for a whole wait
  weakened = 2,
  delayed = 4,  ///< executed after the thread's next instruction; on the simulated machine only
  /// its number one unit less: a count of arrivals, groups, steps; 16 bytes; 8 registers; a CTA of
  /// a mask; 32 threads
  less = 8,
  more = 16,     ///< one unit more
  flipped = 32,  ///< its parity inverted
};

TEGULA_HOST_DEVICE constexpr Mutation operator|(Mutation a, Mutation b) {
  return static_cast<Mutation>(static_cast<int>(a) | static_cast<int>(b));
}
TEGULA_HOST_DEVICE constexpr Mutation operator&(Mutation a, Mutation b) {
  return static_cast<Mutation>(static_cast<int>(a) & static_cast<int>(b));
}
TEGULA_HOST_DEVICE constexpr Mutation operator~(Mutation a) {
  return static_cast<Mutation>(~static_cast<int>(a) & 63);
}
/// Whether the set holds the mutation.
TEGULA_HOST_DEVICE constexpr bool admits(Mutation set, Mutation mutation) {
  return (static_cast<int>(set) & static_cast<int>(mutation)) != 0;
}

/// A number of a statement, with the mutations less and more.
TEGULA_HOST_DEVICE constexpr int counted(int number, Mutation mutation, int unit = 1) {
  return mutation == Mutation::more   ? number + unit
         : mutation == Mutation::less ? number - unit
                                      : number;
}

namespace detail {
inline constexpr char const* kOperations[] = {"bar_sync",
                                              "bar_arrive",
                                              "warp_sync",
                                              "cluster_arrive",
                                              "cluster_wait",
                                              "mbarrier_init",
                                              "fence_mbarrier_init",
                                              "mbarrier_arrive",
                                              "mbarrier_arrive_cluster",
                                              "mbarrier_arrive_expect_tx",
                                              "mbarrier_expect_tx",
                                              "mbarrier_complete_tx",
                                              "mbarrier_wait",
                                              "cp_async_mbarrier_arrive",
                                              "ld_acquire",
                                              "st_release",
                                              "st_relaxed",
                                              "atom",
                                              "red",
                                              "fence",
                                              "fence_proxy_async",
                                              "cp_async_commit_group",
                                              "cp_async_wait_group",
                                              "bulk_commit_group",
                                              "bulk_wait_group",
                                              "bulk_wait_group_read",
                                              "wgmma_fence",
                                              "wgmma_commit_group",
                                              "wgmma_wait_group",
                                              "tcgen05_wait",
                                              "tcgen05_fence",
                                              "tcgen05_cp",
                                              "tcgen05_shift",
                                              "tcgen05_commit",
                                              "multicast_mask",
                                              "setmaxnreg_inc",
                                              "setmaxnreg_dec",
                                              "griddepcontrol_wait",
                                              "griddepcontrol_launch_dependents",
                                              "initial_phase",
                                              "phase",
                                              "stage_increment",
                                              "predicate",
                                              "swizzle",
                                              "zero_fill"};
static_assert(sizeof(kOperations) / sizeof(kOperations[0]) ==
              static_cast<int>(Operation::zero_fill) + 1);
}  // namespace detail

constexpr char const* to_string(Operation operation) {
  return detail::kOperations[static_cast<int>(operation)];
}
constexpr char const* to_string(Mutation mutation) {
  switch (mutation) {
    case Mutation::removed:
      return "removed";
    case Mutation::weakened:
      return "weakened";
    case Mutation::delayed:
      return "delayed";
    case Mutation::less:
      return "less";
    case Mutation::more:
      return "more";
    case Mutation::flipped:
      return "flipped";
    default:
      return "none";
  }
}

}  // namespace tegula
