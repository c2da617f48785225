#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// A wgmma reads its A registers until its group has been waited for.
///
/// The next fragment of P goes into the registers of the last one, which may not have been read.
///
/// PTX ISA: wgmma.mma_async: "accessing the registers ... is undefined".
struct operand_registers_reused : WarpgroupKernel<> {
  static constexpr MmaSpec op =
      warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 16, Major::k, Major::k, MmaOperands::rs);

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    float d[8] = {};
    std::uint32_t a[4] = {};
    for (int step = 0; step < 2; ++step) {
      for (std::uint32_t& pair : a) pair = 0x3f803f80u + static_cast<std::uint32_t>(step);
      wgmma_fence();
      wgmma<op>(d, a, matrix_descriptor(local_tile<16, 16>(tensor(smem.b), 0, step)), true);
      wgmma_commit_group();
      if (p.repaired) wgmma_wait_group<0>();
    }
    wgmma_wait_group<0>();
    st_global(p.out + thread_idx(), d[0]);
  }
};

// Report:
//   07_wgmma/operand_registers_reused.hpp:23: kernel operand_registers_reused, CTA (0, 0, 0), warp
//     0, lane 0: register_race: register 0 of A was written while a wgmma.mma_async that reads it
//     was in flight: a wgmma_wait_group that covers it before the write would order them

}  // namespace tegula::broken
