#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What the threads of a CTA wrote, TMA reads for another after a fence between the proxies.
///
/// Flag and fences order the store before the load for threads. TMA reads global memory through the
/// asynchronous proxy.
///
/// PTX ISA: "Proxies"; fence.proxy.async.
struct loaded_without_fence : Kernel<32> {
  static constexpr Dim3 grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      for (int i = 0; i < 4; ++i) st_global(p.out + i, 1.0f);
      fence_acq_rel<Scope::gpu>();
      atom_add(p.flags, 1u);
      return;
    }
    while (atom_add(p.flags, 0u) == 0) {
    }
    fence_acq_rel<Scope::gpu>();
    if (p.repaired) fence_proxy_async();
    SharedAddr const full = shared_address(&smem.full[0]);
    mbarrier_arrive_expect_tx(full, 16);
    bulk_load(at(smem, 0, 0), p.out, 16, full);
    mbarrier_wait_parity(full, 0);
    st_global(p.out + 32, ld_shared<float>(at(smem, 0, 0)));
  }
};

// Report:
//   09_global_memory/loaded_without_fence.hpp:31: kernel loaded_without_fence, CTA (1, 0, 0), warp
//     0, lane 0: proxy_race: cp.async.bulk reads byte 0 of out, which st.global of CTA (0, 0, 0),
//     warp 0, lane 0 writes (09_global_memory/loaded_without_fence.hpp:20) through the generic
//     proxy, with no fence.proxy.async after that: a fence_proxy_async by the first after the write
//     and before its fence and atomic, or by the second after its atomic and fence, would order
//     them

}  // namespace tegula::broken
