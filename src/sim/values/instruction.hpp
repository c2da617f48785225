#pragma once

#include <cstddef>
#include <cstdint>

namespace tegula::sim {

/// The instructions that the machine counts and meets at.
enum class Instruction : std::uint8_t {
  ld_shared,
  st_shared,
  ld_global,
  ld_global_nc,
  st_global,
  atom,
  cp_async,
  cp_async_commit_group,
  cp_async_wait_group,
  ldmatrix,
  mma_sync,
  shfl_sync,
  vote_sync,
  redux_sync,
  bar_warp_sync,
  bar_sync,
  bar_arrive,
  fence,
  ld_shared_cluster,
  st_shared_cluster,
  st_async,
  cluster_arrive,
  cluster_wait,
  mbarrier_init,
  mbarrier_inval,
  mbarrier_arrive,
  mbarrier_arrive_expect_tx,
  mbarrier_expect_tx,
  mbarrier_complete_tx,
  mbarrier_test_wait,
  mbarrier_try_wait,
  fence_mbarrier_init,
  fence_proxy_async,
  cp_async_bulk,
  cp_async_bulk_tensor,
  cp_reduce_async_bulk_tensor,
  cp_async_bulk_prefetch_tensor,
  prefetch_tensormap,
  cp_async_bulk_commit_group,
  cp_async_bulk_wait_group,
  wgmma_mma_async,
  wgmma_fence,
  wgmma_commit_group,
  wgmma_wait_group,
  setmaxnreg,
  elect_sync,
  stmatrix,
  griddepcontrol_wait,
  griddepcontrol_launch_dependents,
  none,
};

/// Through which proxy an instruction accesses shared memory: what others must do to see it.
enum class Proxy : std::uint8_t { generic, async };

/// What an instruction takes by the model of time: an issue slot, an access to memory, or the tensor cores.
enum class Charge : std::uint8_t { issue, access, tensor };

/// What the machine and its observers know of an instruction by its name.
struct InstructionRow {
  Instruction instruction;
  char const* name;      ///< in PTX
  bool aligned = false;  ///< all 32 lanes execute the same one, on the same source line (PTX: .aligned)
  Proxy proxy = Proxy::generic;  ///< visibility
  Charge charge = Charge::issue;
};

/// A row an instruction, in the order of the enumerators.
inline constexpr InstructionRow kInstructions[] = {
    {.instruction = Instruction::ld_shared, .name = "ld.shared", .charge = Charge::access},
    {.instruction = Instruction::st_shared, .name = "st.shared", .charge = Charge::access},
    {.instruction = Instruction::ld_global, .name = "ld.global", .charge = Charge::access},
    {.instruction = Instruction::ld_global_nc, .name = "ld.global.nc", .charge = Charge::access},
    {.instruction = Instruction::st_global, .name = "st.global", .charge = Charge::access},
    {.instruction = Instruction::atom, .name = "atom", .charge = Charge::access},
    {.instruction = Instruction::cp_async, .name = "cp.async"},
    {.instruction = Instruction::cp_async_commit_group, .name = "cp.async.commit_group"},
    {.instruction = Instruction::cp_async_wait_group, .name = "cp.async.wait_group"},
    {.instruction = Instruction::ldmatrix, .name = "ldmatrix", .aligned = true},
    {.instruction = Instruction::mma_sync, .name = "mma.sync", .aligned = true, .charge = Charge::tensor},
    {.instruction = Instruction::shfl_sync, .name = "shfl.sync"},
    {.instruction = Instruction::vote_sync, .name = "vote.sync"},
    {.instruction = Instruction::redux_sync, .name = "redux.sync"},
    {.instruction = Instruction::bar_warp_sync, .name = "bar.warp.sync"},
    {.instruction = Instruction::bar_sync, .name = "bar.sync", .aligned = true},
    {.instruction = Instruction::bar_arrive, .name = "bar.arrive", .aligned = true},
    {.instruction = Instruction::fence, .name = "fence"},
    {.instruction = Instruction::ld_shared_cluster, .name = "ld.shared::cluster", .charge = Charge::access},
    {.instruction = Instruction::st_shared_cluster, .name = "st.shared::cluster", .charge = Charge::access},
    {.instruction = Instruction::st_async,
     .name = "st.async",
     .proxy = Proxy::async,
     .charge = Charge::access},
    {.instruction = Instruction::cluster_arrive, .name = "barrier.cluster.arrive", .aligned = true},
    {.instruction = Instruction::cluster_wait, .name = "barrier.cluster.wait", .aligned = true},
    {.instruction = Instruction::mbarrier_init, .name = "mbarrier.init"},
    {.instruction = Instruction::mbarrier_inval, .name = "mbarrier.inval"},
    {.instruction = Instruction::mbarrier_arrive, .name = "mbarrier.arrive"},
    {.instruction = Instruction::mbarrier_arrive_expect_tx, .name = "mbarrier.arrive.expect_tx"},
    {.instruction = Instruction::mbarrier_expect_tx, .name = "mbarrier.expect_tx"},
    {.instruction = Instruction::mbarrier_complete_tx, .name = "mbarrier.complete_tx"},
    {.instruction = Instruction::mbarrier_test_wait, .name = "mbarrier.test_wait"},
    {.instruction = Instruction::mbarrier_try_wait, .name = "mbarrier.try_wait"},
    {.instruction = Instruction::fence_mbarrier_init, .name = "fence.mbarrier_init"},
    {.instruction = Instruction::fence_proxy_async, .name = "fence.proxy.async"},
    {.instruction = Instruction::cp_async_bulk, .name = "cp.async.bulk", .proxy = Proxy::async},
    {.instruction = Instruction::cp_async_bulk_tensor, .name = "cp.async.bulk.tensor", .proxy = Proxy::async},
    {.instruction = Instruction::cp_reduce_async_bulk_tensor,
     .name = "cp.reduce.async.bulk.tensor",
     .proxy = Proxy::async},
    {.instruction = Instruction::cp_async_bulk_prefetch_tensor, .name = "cp.async.bulk.prefetch.tensor"},
    {.instruction = Instruction::prefetch_tensormap, .name = "prefetch.tensormap"},
    {.instruction = Instruction::cp_async_bulk_commit_group, .name = "cp.async.bulk.commit_group"},
    {.instruction = Instruction::cp_async_bulk_wait_group, .name = "cp.async.bulk.wait_group"},
    {.instruction = Instruction::wgmma_mma_async,
     .name = "wgmma.mma_async",
     .aligned = true,
     .proxy = Proxy::async,
     .charge = Charge::tensor},
    {.instruction = Instruction::wgmma_fence, .name = "wgmma.fence", .aligned = true},
    {.instruction = Instruction::wgmma_commit_group, .name = "wgmma.commit_group", .aligned = true},
    {.instruction = Instruction::wgmma_wait_group, .name = "wgmma.wait_group", .aligned = true},
    {.instruction = Instruction::setmaxnreg, .name = "setmaxnreg", .aligned = true},
    {.instruction = Instruction::elect_sync, .name = "elect.sync"},
    {.instruction = Instruction::stmatrix, .name = "stmatrix", .aligned = true, .charge = Charge::access},
    {.instruction = Instruction::griddepcontrol_wait, .name = "griddepcontrol.wait"},
    {.instruction = Instruction::griddepcontrol_launch_dependents,
     .name = "griddepcontrol.launch_dependents"},
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

constexpr char const* ptx_name(Instruction instruction) { return row_of(instruction).name; }

}  // namespace tegula::sim
