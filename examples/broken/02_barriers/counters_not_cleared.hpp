#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// An atomic may meet other atomics, and nothing else.
///
/// One warp clears the counters, and both add to them. The atomics of the first warp, which come
/// after its stores, hide none of the stores from the second warp.
///
/// PTX ISA: memory consistency model, "Morally strong operations".
struct counters_not_cleared : Kernel<64> {
  struct SharedStorage {
    std::uint32_t counter[32];
    template <class F> void name_buffers(F&& name) { name("counter", counter); }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    if (warp_id() == 0) st_shared(shared_address(&smem.counter[lane_id()]), std::uint32_t{0});
    if (p.repaired) cta::sync();
    red_shared_add<Scope::cta>(shared_address(&smem.counter[thread_idx() % 7]), std::uint32_t{1});
  }
};

// Report:
//   02_barriers/counters_not_cleared.hpp:22: kernel counters_not_cleared, CTA (0, 0, 0), warp 1,
//     lane 0: data_race: red.shared writes element 4 of counter, which warp 0 lane 4 wrote by
//     st.shared (02_barriers/counters_not_cleared.hpp:20), and nothing orders the two: a cta::sync
//     between them, or an arrival on an mbarrier and a wait for it, would order them (57 times in
//     all)

}  // namespace tegula::broken
