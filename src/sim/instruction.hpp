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
    case Instruction::none:
      break;
  }
  return "";
}

}  // namespace tegula::sim
