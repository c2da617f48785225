#pragma once

#include <cstdint>

namespace tegula::sim {

/// The instructions that the machine counts and meets at.
enum class Instruction : std::uint8_t {
  ld_shared,
  st_shared,
  ld_global,
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

/// The name in PTX.
constexpr char const* ptx_name(Instruction instruction) {
  switch (instruction) {
    case Instruction::ld_shared:
      return "ld.shared";
    case Instruction::st_shared:
      return "st.shared";
    case Instruction::ld_global:
      return "ld.global";
    case Instruction::st_global:
      return "st.global";
    case Instruction::atom:
      return "atom";
    case Instruction::cp_async:
      return "cp.async";
    case Instruction::cp_async_commit_group:
      return "cp.async.commit_group";
    case Instruction::cp_async_wait_group:
      return "cp.async.wait_group";
    case Instruction::ldmatrix:
      return "ldmatrix";
    case Instruction::mma_sync:
      return "mma.sync";
    case Instruction::shfl_sync:
      return "shfl.sync";
    case Instruction::vote_sync:
      return "vote.sync";
    case Instruction::redux_sync:
      return "redux.sync";
    case Instruction::bar_warp_sync:
      return "bar.warp.sync";
    case Instruction::bar_sync:
      return "bar.sync";
    case Instruction::bar_arrive:
      return "bar.arrive";
    case Instruction::fence:
      return "fence";
    case Instruction::ld_shared_cluster:
      return "ld.shared::cluster";
    case Instruction::st_shared_cluster:
      return "st.shared::cluster";
    case Instruction::st_async:
      return "st.async";
    case Instruction::cluster_arrive:
      return "barrier.cluster.arrive";
    case Instruction::cluster_wait:
      return "barrier.cluster.wait";
    case Instruction::mbarrier_init:
      return "mbarrier.init";
    case Instruction::mbarrier_inval:
      return "mbarrier.inval";
    case Instruction::mbarrier_arrive:
      return "mbarrier.arrive";
    case Instruction::mbarrier_arrive_expect_tx:
      return "mbarrier.arrive.expect_tx";
    case Instruction::mbarrier_expect_tx:
      return "mbarrier.expect_tx";
    case Instruction::mbarrier_complete_tx:
      return "mbarrier.complete_tx";
    case Instruction::mbarrier_test_wait:
      return "mbarrier.test_wait";
    case Instruction::mbarrier_try_wait:
      return "mbarrier.try_wait";
    case Instruction::fence_mbarrier_init:
      return "fence.mbarrier_init";
    case Instruction::fence_proxy_async:
      return "fence.proxy.async";
    case Instruction::cp_async_bulk:
      return "cp.async.bulk";
    case Instruction::cp_async_bulk_tensor:
      return "cp.async.bulk.tensor";
    case Instruction::cp_reduce_async_bulk_tensor:
      return "cp.reduce.async.bulk.tensor";
    case Instruction::cp_async_bulk_prefetch_tensor:
      return "cp.async.bulk.prefetch.tensor";
    case Instruction::prefetch_tensormap:
      return "prefetch.tensormap";
    case Instruction::cp_async_bulk_commit_group:
      return "cp.async.bulk.commit_group";
    case Instruction::cp_async_bulk_wait_group:
      return "cp.async.bulk.wait_group";
    case Instruction::wgmma_mma_async:
      return "wgmma.mma_async";
    case Instruction::wgmma_fence:
      return "wgmma.fence";
    case Instruction::wgmma_commit_group:
      return "wgmma.commit_group";
    case Instruction::wgmma_wait_group:
      return "wgmma.wait_group";
    case Instruction::setmaxnreg:
      return "setmaxnreg";
    case Instruction::elect_sync:
      return "elect.sync";
    case Instruction::stmatrix:
      return "stmatrix";
    case Instruction::griddepcontrol_wait:
      return "griddepcontrol.wait";
    case Instruction::griddepcontrol_launch_dependents:
      return "griddepcontrol.launch_dependents";
    case Instruction::none:
      break;
  }
  return "";
}

}  // namespace tegula::sim
