#pragma once

#include <cstddef>
#include <cstdint>

#include "tegula/sim/mutation.hpp"

namespace tegula::sim {

/// The instructions that the machine counts and meets at.
enum class Instruction : std::uint8_t {
  ld_shared,
  st_shared,
  st_bulk,
  ld_global,
  ld_global_nc,
  st_global,
  atom,
  atom_shared,
  red,
  red_shared,
  ld_acquire,
  ld_relaxed,
  st_release,
  st_relaxed,
  cp_async,
  cp_async_commit_group,
  cp_async_wait_group,
  cp_async_mbarrier_arrive,
  ldmatrix,
  movmatrix,
  mma_sync,
  shfl_sync,
  vote_sync,
  match_sync,
  redux_sync,
  bar_warp_sync,
  bar_sync,
  barrier_sync,
  bar_arrive,
  bar_red,
  barrier_red,
  fence,
  nanosleep,
  ld_shared_cluster,
  st_shared_cluster,
  st_async,
  red_async,
  cluster_arrive,
  cluster_wait,
  mbarrier_init,
  mbarrier_inval,
  mbarrier_arrive,
  mbarrier_arrive_cluster,
  mbarrier_arrive_expect_tx,
  mbarrier_expect_tx,
  mbarrier_complete_tx,
  mbarrier_test_wait,
  mbarrier_try_wait,
  fence_mbarrier_init,
  fence_proxy_async,
  cp_async_bulk,
  cp_async_bulk_tensor,
  cp_reduce_async_bulk,
  cp_reduce_async_bulk_tensor,
  cp_async_bulk_prefetch_tensor,
  cp_async_bulk_prefetch,
  prefetch_tensormap,
  prefetch,
  applypriority,
  discard,
  cp_async_bulk_commit_group,
  cp_async_bulk_wait_group,
  cp_async_bulk_wait_group_read,
  wgmma_mma_async,
  wgmma_fence,
  wgmma_commit_group,
  wgmma_wait_group,
  tcgen05_alloc,
  tcgen05_dealloc,
  tcgen05_relinquish_alloc_permit,
  tcgen05_ld,
  tcgen05_st,
  tcgen05_wait_ld,
  tcgen05_wait_st,
  tcgen05_fence_before_thread_sync,
  tcgen05_fence_after_thread_sync,
  tcgen05_cp,
  tcgen05_shift,
  tcgen05_mma,
  tcgen05_commit,
  clusterlaunchcontrol_try_cancel,
  clusterlaunchcontrol_query_cancel,
  setmaxnreg_inc,
  setmaxnreg_dec,
  elect_sync,
  stmatrix,
  griddepcontrol_wait,
  griddepcontrol_launch_dependents,
  none,
};

/// Through which proxy an instruction accesses shared memory: what others must do to see it.
enum class Proxy : std::uint8_t { generic, async };

/// What an instruction takes by the model of time: an issue slot, an access to memory, or the
/// tensor cores.
enum class Charge : std::uint8_t { issue, access, tensor };

/// How mutation testing may change an instruction, and what it is called there; most instructions
/// order nothing, and are left as they are. Which of them the operands leave no room for, the
/// instruction says.
struct Mutations {
  Operation operation{};
  Mutation admitted = Mutation::none;
};

/// What the machine and its observers know of an instruction by its name.
struct InstructionRow {
  Instruction instruction;
  char const* name;  ///< in PTX
  /// all 32 lanes execute the same one, on the same source line (PTX: .aligned)
  bool aligned = false;
  Mutations mutations = {};
  Proxy proxy = Proxy::generic;  ///< visibility
  Charge charge = Charge::issue;
};

namespace detail {
inline constexpr Mutation kPlaced = Mutation::removed | Mutation::delayed;
inline constexpr Mutation kOrdered = kPlaced | Mutation::weakened;
inline constexpr Mutation kCounted = Mutation::less | Mutation::more;
}  // namespace detail

/// A row an instruction, in the order of the enumerators.
inline constexpr InstructionRow kInstructions[] = {
    {.instruction = Instruction::ld_shared, .name = "ld.shared", .charge = Charge::access},
    {.instruction = Instruction::st_shared, .name = "st.shared", .charge = Charge::access},
    {.instruction = Instruction::st_bulk, .name = "st.bulk", .charge = Charge::access},
    {.instruction = Instruction::ld_global, .name = "ld.global", .charge = Charge::access},
    {.instruction = Instruction::ld_global_nc, .name = "ld.global.nc", .charge = Charge::access},
    {.instruction = Instruction::st_global, .name = "st.global", .charge = Charge::access},
    {.instruction = Instruction::atom,
     .name = "atom",
     .mutations = {Operation::atom, Mutation::weakened},
     .charge = Charge::access},
    {.instruction = Instruction::atom_shared,
     .name = "atom.shared",
     .mutations = {Operation::atom, Mutation::weakened},
     .charge = Charge::access},
    {.instruction = Instruction::red,
     .name = "red",
     .mutations = {Operation::red, detail::kOrdered},
     .charge = Charge::access},
    {.instruction = Instruction::red_shared,
     .name = "red.shared",
     .mutations = {Operation::red, detail::kOrdered},
     .charge = Charge::access},
    {.instruction = Instruction::ld_acquire,
     .name = "ld.acquire",
     .mutations = {Operation::ld_acquire, Mutation::weakened},
     .charge = Charge::access},
    {.instruction = Instruction::ld_relaxed, .name = "ld.relaxed", .charge = Charge::access},
    {.instruction = Instruction::st_release,
     .name = "st.release",
     .mutations = {Operation::st_release, detail::kOrdered},
     .charge = Charge::access},
    {.instruction = Instruction::st_relaxed,
     .name = "st.relaxed",
     .mutations = {Operation::st_relaxed, detail::kPlaced},
     .charge = Charge::access},
    {.instruction = Instruction::cp_async, .name = "cp.async"},
    {.instruction = Instruction::cp_async_commit_group,
     .name = "cp.async.commit_group",
     .mutations = {Operation::cp_async_commit_group, detail::kPlaced}},
    {.instruction = Instruction::cp_async_wait_group,
     .name = "cp.async.wait_group",
     .mutations = {Operation::cp_async_wait_group, detail::kPlaced | detail::kCounted}},
    {.instruction = Instruction::cp_async_mbarrier_arrive,
     .name = "cp.async.mbarrier.arrive",
     .mutations = {Operation::cp_async_mbarrier_arrive, detail::kPlaced}},
    {.instruction = Instruction::ldmatrix, .name = "ldmatrix", .aligned = true},
    {.instruction = Instruction::movmatrix, .name = "movmatrix", .aligned = true},
    {.instruction = Instruction::mma_sync,
     .name = "mma.sync",
     .aligned = true,
     .charge = Charge::tensor},
    {.instruction = Instruction::shfl_sync, .name = "shfl.sync"},
    {.instruction = Instruction::vote_sync, .name = "vote.sync"},
    {.instruction = Instruction::match_sync, .name = "match.sync"},
    {.instruction = Instruction::redux_sync, .name = "redux.sync"},
    {.instruction = Instruction::bar_warp_sync,
     .name = "bar.warp.sync",
     .mutations = {Operation::warp_sync, detail::kPlaced}},
    {.instruction = Instruction::bar_sync,
     .name = "bar.sync",
     .aligned = true,
     .mutations = {Operation::bar_sync, detail::kOrdered | detail::kCounted}},
    {.instruction = Instruction::barrier_sync,
     .name = "barrier.cta.sync",
     .mutations = {Operation::bar_sync, detail::kOrdered | detail::kCounted}},
    {.instruction = Instruction::bar_arrive,
     .name = "bar.arrive",
     .aligned = true,
     .mutations = {Operation::bar_arrive, detail::kPlaced | detail::kCounted}},
    // Not delayed: the thread needs the result.
    {.instruction = Instruction::bar_red,
     .name = "bar.red",
     .aligned = true,
     .mutations = {Operation::bar_sync, Mutation::removed | Mutation::weakened | detail::kCounted}},
    {.instruction = Instruction::barrier_red,
     .name = "barrier.cta.red",
     .mutations = {Operation::bar_sync, Mutation::removed | Mutation::weakened | detail::kCounted}},
    {.instruction = Instruction::fence,
     .name = "fence",
     .mutations = {Operation::fence, detail::kOrdered}},
    {.instruction = Instruction::nanosleep, .name = "nanosleep"},
    {.instruction = Instruction::ld_shared_cluster,
     .name = "ld.shared::cluster",
     .charge = Charge::access},
    {.instruction = Instruction::st_shared_cluster,
     .name = "st.shared::cluster",
     .charge = Charge::access},
    {.instruction = Instruction::st_async,
     .name = "st.async",
     .proxy = Proxy::async,
     .charge = Charge::access},
    {.instruction = Instruction::red_async,
     .name = "red.async",
     .proxy = Proxy::async,
     .charge = Charge::access},
    {.instruction = Instruction::cluster_arrive,
     .name = "barrier.cluster.arrive",
     .aligned = true,
     .mutations = {Operation::cluster_arrive, detail::kOrdered}},
    {.instruction = Instruction::cluster_wait,
     .name = "barrier.cluster.wait",
     .aligned = true,
     .mutations = {Operation::cluster_wait, detail::kPlaced}},
    {.instruction = Instruction::mbarrier_init,
     .name = "mbarrier.init",
     .mutations = {Operation::mbarrier_init, detail::kPlaced | detail::kCounted}},
    {.instruction = Instruction::mbarrier_inval, .name = "mbarrier.inval"},
    {.instruction = Instruction::mbarrier_arrive,
     .name = "mbarrier.arrive",
     .mutations = {Operation::mbarrier_arrive, detail::kOrdered | detail::kCounted}},
    {.instruction = Instruction::mbarrier_arrive_cluster,
     .name = "mbarrier.arrive",
     .mutations = {Operation::mbarrier_arrive_cluster, detail::kOrdered | detail::kCounted}},
    {.instruction = Instruction::mbarrier_arrive_expect_tx,
     .name = "mbarrier.arrive.expect_tx",
     .mutations = {Operation::mbarrier_arrive_expect_tx, detail::kOrdered | detail::kCounted}},
    {.instruction = Instruction::mbarrier_expect_tx,
     .name = "mbarrier.expect_tx",
     .mutations = {Operation::mbarrier_expect_tx, detail::kPlaced | detail::kCounted}},
    {.instruction = Instruction::mbarrier_complete_tx,
     .name = "mbarrier.complete_tx",
     .mutations = {Operation::mbarrier_complete_tx, detail::kPlaced | detail::kCounted}},
    {.instruction = Instruction::mbarrier_test_wait,
     .name = "mbarrier.test_wait",
     .mutations = {Operation::mbarrier_wait, Mutation::removed | Mutation::flipped}},
    {.instruction = Instruction::mbarrier_try_wait,
     .name = "mbarrier.try_wait",
     .mutations = {Operation::mbarrier_wait, detail::kOrdered | Mutation::flipped}},
    {.instruction = Instruction::fence_mbarrier_init,
     .name = "fence.mbarrier_init",
     .mutations = {Operation::fence_mbarrier_init, detail::kPlaced}},
    {.instruction = Instruction::fence_proxy_async,
     .name = "fence.proxy.async",
     .mutations = {Operation::fence_proxy_async, detail::kPlaced}},
    {.instruction = Instruction::cp_async_bulk,
     .name = "cp.async.bulk",
     .mutations = {Operation::multicast_mask, Mutation::less},
     .proxy = Proxy::async},
    {.instruction = Instruction::cp_async_bulk_tensor,
     .name = "cp.async.bulk.tensor",
     .mutations = {Operation::multicast_mask, Mutation::less},
     .proxy = Proxy::async},
    {.instruction = Instruction::cp_reduce_async_bulk,
     .name = "cp.reduce.async.bulk",
     .proxy = Proxy::async},
    {.instruction = Instruction::cp_reduce_async_bulk_tensor,
     .name = "cp.reduce.async.bulk.tensor",
     .proxy = Proxy::async},
    {.instruction = Instruction::cp_async_bulk_prefetch_tensor,
     .name = "cp.async.bulk.prefetch.tensor"},
    {.instruction = Instruction::cp_async_bulk_prefetch, .name = "cp.async.bulk.prefetch"},
    {.instruction = Instruction::prefetch_tensormap, .name = "prefetch.tensormap"},
    {.instruction = Instruction::prefetch, .name = "prefetch"},
    {.instruction = Instruction::applypriority, .name = "applypriority"},
    {.instruction = Instruction::discard, .name = "discard.L2", .charge = Charge::access},
    {.instruction = Instruction::cp_async_bulk_commit_group,
     .name = "cp.async.bulk.commit_group",
     .mutations = {Operation::bulk_commit_group, detail::kPlaced}},
    {.instruction = Instruction::cp_async_bulk_wait_group,
     .name = "cp.async.bulk.wait_group",
     .mutations = {Operation::bulk_wait_group, detail::kOrdered | detail::kCounted}},
    {.instruction = Instruction::cp_async_bulk_wait_group_read,
     .name = "cp.async.bulk.wait_group.read",
     .mutations = {Operation::bulk_wait_group_read, detail::kPlaced | detail::kCounted}},
    {.instruction = Instruction::wgmma_mma_async,
     .name = "wgmma.mma_async",
     .aligned = true,
     .proxy = Proxy::async,
     .charge = Charge::tensor},
    {.instruction = Instruction::wgmma_fence,
     .name = "wgmma.fence",
     .aligned = true,
     .mutations = {Operation::wgmma_fence, detail::kPlaced}},
    {.instruction = Instruction::wgmma_commit_group,
     .name = "wgmma.commit_group",
     .aligned = true,
     .mutations = {Operation::wgmma_commit_group, detail::kPlaced}},
    {.instruction = Instruction::wgmma_wait_group,
     .name = "wgmma.wait_group",
     .aligned = true,
     .mutations = {Operation::wgmma_wait_group, detail::kPlaced | detail::kCounted}},
    {.instruction = Instruction::tcgen05_alloc, .name = "tcgen05.alloc", .aligned = true},
    {.instruction = Instruction::tcgen05_dealloc, .name = "tcgen05.dealloc", .aligned = true},
    {.instruction = Instruction::tcgen05_relinquish_alloc_permit,
     .name = "tcgen05.relinquish_alloc_permit",
     .aligned = true},
    {.instruction = Instruction::tcgen05_ld, .name = "tcgen05.ld", .aligned = true},
    {.instruction = Instruction::tcgen05_st, .name = "tcgen05.st", .aligned = true},
    {.instruction = Instruction::tcgen05_wait_ld,
     .name = "tcgen05.wait::ld",
     .aligned = true,
     .mutations = {Operation::tcgen05_wait, detail::kPlaced}},
    {.instruction = Instruction::tcgen05_wait_st,
     .name = "tcgen05.wait::st",
     .aligned = true,
     .mutations = {Operation::tcgen05_wait, detail::kPlaced}},
    {.instruction = Instruction::tcgen05_fence_before_thread_sync,
     .name = "tcgen05.fence::before_thread_sync",
     .mutations = {Operation::tcgen05_fence, detail::kPlaced}},
    {.instruction = Instruction::tcgen05_fence_after_thread_sync,
     .name = "tcgen05.fence::after_thread_sync",
     .mutations = {Operation::tcgen05_fence, detail::kPlaced}},
    {.instruction = Instruction::tcgen05_cp,
     .name = "tcgen05.cp",
     .mutations = {Operation::tcgen05_cp, detail::kPlaced},
     .proxy = Proxy::async,
     .charge = Charge::tensor},
    {.instruction = Instruction::tcgen05_shift,
     .name = "tcgen05.shift",
     .mutations = {Operation::tcgen05_shift, detail::kPlaced},
     .charge = Charge::tensor},
    {.instruction = Instruction::tcgen05_mma,
     .name = "tcgen05.mma",
     .proxy = Proxy::async,
     .charge = Charge::tensor},
    {.instruction = Instruction::tcgen05_commit,
     .name = "tcgen05.commit",
     .mutations = {Operation::tcgen05_commit, detail::kPlaced | Mutation::less}},
    {.instruction = Instruction::clusterlaunchcontrol_try_cancel,
     .name = "clusterlaunchcontrol.try_cancel",
     .proxy = Proxy::async},
    {.instruction = Instruction::clusterlaunchcontrol_query_cancel,
     .name = "clusterlaunchcontrol.query_cancel",
     .charge = Charge::access},
    {.instruction = Instruction::setmaxnreg_inc,
     .name = "setmaxnreg.inc",
     .aligned = true,
     .mutations = {Operation::setmaxnreg_inc, detail::kPlaced | detail::kCounted}},
    {.instruction = Instruction::setmaxnreg_dec,
     .name = "setmaxnreg.dec",
     .aligned = true,
     .mutations = {Operation::setmaxnreg_dec, detail::kPlaced | detail::kCounted}},
    {.instruction = Instruction::elect_sync, .name = "elect.sync"},
    {.instruction = Instruction::stmatrix,
     .name = "stmatrix",
     .aligned = true,
     .charge = Charge::access},
    {.instruction = Instruction::griddepcontrol_wait,
     .name = "griddepcontrol.wait",
     .mutations = {Operation::griddepcontrol_wait, detail::kPlaced}},
    {.instruction = Instruction::griddepcontrol_launch_dependents,
     .name = "griddepcontrol.launch_dependents",
     .mutations = {Operation::griddepcontrol_launch_dependents, detail::kPlaced}},
    {.instruction = Instruction::none, .name = ""},
};

constexpr InstructionRow const& row_of(Instruction instruction) {
  return kInstructions[static_cast<std::size_t>(instruction)];
}
static_assert([] {
  std::size_t number = 0;
  for (InstructionRow const& row : kInstructions) {
    if (static_cast<std::size_t>(row.instruction) != number++) return false;
  }
  return number == static_cast<std::size_t>(Instruction::none) + 1;
}());

/// Whether it accesses memory at a stroke, so that it may meet others that do: PTX ISA,
/// "strong" operations.
constexpr bool is_strong(Instruction instruction) {
  switch (instruction) {
    case Instruction::atom:
    case Instruction::atom_shared:
    case Instruction::red:
    case Instruction::red_shared:
    case Instruction::red_async:
    case Instruction::ld_acquire:
    case Instruction::ld_relaxed:
    case Instruction::st_release:
    case Instruction::st_relaxed:
      return true;
    default:
      return false;
  }
}
/// Of those, whether it reads what is there (a red, too), and whether it writes.
constexpr bool strong_reads(Instruction instruction) {
  return instruction != Instruction::st_release && instruction != Instruction::st_relaxed;
}
constexpr bool strong_writes(Instruction instruction) {
  return instruction != Instruction::ld_acquire && instruction != Instruction::ld_relaxed;
}
/// Whether its thread learns what was there.
constexpr bool strong_learns(Instruction instruction) {
  return strong_reads(instruction) && instruction != Instruction::red &&
         instruction != Instruction::red_shared && instruction != Instruction::red_async;
}

/// Whether what it writes to shared memory may meet what others write there so: strong accesses,
/// and reductions by the asynchronous proxy, each element of which is an atomic (PTX ISA,
/// cp.reduce.async.bulk).
constexpr bool meets_in_shared(Instruction instruction) {
  return is_strong(instruction) || instruction == Instruction::cp_reduce_async_bulk;
}

/// Whether a tcgen05.commit after it says when it is over.
constexpr bool is_committed(Instruction instruction) {
  return instruction == Instruction::tcgen05_mma || instruction == Instruction::tcgen05_cp ||
         instruction == Instruction::tcgen05_shift;
}
/// InFlight::shape of a tcgen05.cp of .4x256b; of others it is 0.
inline constexpr std::uint32_t kCopyOfFourRows = 1;
/// Whether the two, of one thread, are performed in their order: PTX ISA, "Pipelined tcgen05
/// Instructions".
constexpr bool is_pipelined(Instruction earlier, std::uint32_t earlier_shape, Instruction later,
                            std::uint32_t later_shape) {
  bool const after_shift = earlier == Instruction::tcgen05_shift;
  switch (later) {
    case Instruction::tcgen05_mma:
      return after_shift || earlier == Instruction::tcgen05_cp ||
             (earlier == later && earlier_shape == later_shape);
    case Instruction::tcgen05_shift:
      return earlier == Instruction::tcgen05_mma;
    default:
      return after_shift && later == Instruction::tcgen05_cp && later_shape == kCopyOfFourRows;
  }
}

constexpr char const* ptx_name(Instruction instruction) { return row_of(instruction).name; }

}  // namespace tegula::sim
