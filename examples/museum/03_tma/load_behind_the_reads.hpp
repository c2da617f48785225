#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// By the letter, a TMA load over what threads have read needs a fence between the proxies.
///
/// DeepEP's combine kernel reads a stage by `ld.shared`, waits at an mbarrier, and loads the stage
/// again by TMA. On NVL72 systems results differed from run to run; a `fence.proxy.async` between
/// the wait and the load repaired it. The PTX ISA asks for that fence. Nearly every published
/// pipeline relies on the barrier alone, and so does tegula by default: this one is found where
/// `Options::strict` asks for the letter.
///
/// Mend: a `fence.proxy.async` before the load.
/// Seen in: DeepEP, https://github.com/deepseek-ai/DeepEP/pull/642
/// Seen in: DeepEP, the report: https://github.com/deepseek-ai/DeepEP/pull/632
/// compute-sanitizer: no: proxies
/// ConSan: yes: proxies
/// CUTLASS: not documented
struct load_behind_the_reads : Kernel<64> {
  static sim::Options options() { return {.strict = {.proxies = true}, .count = false}; }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 32);
    SharedAddr const full = shared_address(&smem.full[0]), empty = shared_address(&smem.empty[0]);
    for (int round = 0; round < 2; ++round) {
      if (thread_idx() == 0) {
        mbarrier_wait_parity(empty, round ^ 1);
        if (p.repaired) fence_proxy_async_shared();
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{32 * round, 0}, full);
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(full, round);
        st_global(p.out + 32 * round + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
        mbarrier_arrive(empty);
      }
    }
  }
};

// Report:
//   03_tma/load_behind_the_reads.hpp:32: kernel load_behind_the_reads, CTA (0, 0, 0), warp 0, lane
//     0: proxy_race: cp.async.bulk.tensor writes row 0, column 3 of stage 0 of tile, which warp 1
//     lane 3 read by ld.shared (03_tma/load_behind_the_reads.hpp:35) without a fence.proxy.async
//     after that: a fence_proxy_async_shared by every thread that reads it, after that, or by warp
//     0 lane 0 before the cp.async.bulk.tensor, would order them

}  // namespace tegula::museum
