#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// What another CTA has stored, and TMA is to load, takes the flag, a fence, and a fence of the
/// proxies.
///
/// DeepEP's receiver polls a flag by ordinary loads, and then fetches the tokens by TMA. The flag
/// orders the generic proxy. TMA reads global memory through the asynchronous one, and may find
/// what was there before. The maintainers measured and reasoned that their hardware does not do
/// that where the data come from another GPU; the memory model does not promise it.
///
/// Mend: a `fence.proxy.async` after the flag has been seen.
/// Seen in: DeepEP, https://github.com/deepseek-ai/DeepEP/pull/632
/// compute-sanitizer: no: global memory
/// ConSan: no: global memory
/// CUTLASS: not documented
struct flag_before_a_tma_load : Kernel<32> {
  static constexpr Dim3 grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    if (block_idx().x == 0) {
      for (int row = 0; row < 8; ++row) st_global(p.out + 64 * row + lane_id(), 1.0f);
      warp::sync();
      if (lane_id() == 0) {
        fence_acq_rel<Scope::gpu>();
        atom_exch(p.flags, 1u);
      }
      return;
    }
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0) {
      while (atom_add(p.flags, 0u) == 0) {
      }
      fence_acq_rel<Scope::gpu>();
      if (p.repaired) fence_proxy_async();
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0), p.out_map, TmaCoordinate{0, 0}, full);
    }
    mbarrier_wait_parity(full, 0);
    st_global(p.out + 512 + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   03_tma/flag_before_a_tma_load.hpp:41: kernel flag_before_a_tma_load, CTA (1, 0, 0), warp 0,
//     lane 0: proxy_race: cp.async.bulk.tensor reads byte 0 of out, which st.global of CTA (0, 0,
//     0), warp 0 writes (03_tma/flag_before_a_tma_load.hpp:25) through the generic proxy, with no
//     fence.proxy.async after that: a fence_proxy_async by the first after the write and before its
//     fence and atomic, or by the second after its atomic and fence, would order them (8 times in
//     all)

}  // namespace tegula::museum
