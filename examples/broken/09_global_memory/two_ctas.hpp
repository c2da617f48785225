#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// CTAs run in no order: two that write one place race.
///
/// Each CTA adds its part of the sum by a load and a store. An atomic is what adds.
///
/// PTX ISA: "Conflict and Data-races".
struct two_ctas : Kernel<32> {
  static constexpr Dim3 grid = {4, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    std::uint32_t const part = warp::reduce_add(static_cast<std::uint32_t>(thread_idx()));
    if (lane_id() != 0) return;
    if (p.repaired) {
      red_add(p.flags, part);
    } else {
      st_global(p.flags, ld_global<std::uint32_t>(p.flags) + part);
    }
  }
};

// Report:
//   09_global_memory/two_ctas.hpp:21: kernel two_ctas, CTA (1, 0, 0), warp 0, lane 0: data_race:
//     st.global writes byte 0 of flags, which st.global of CTA (0, 0, 0), warp 0, lane 0 writes,
//     with nothing between the two CTAs that orders them: a fence_acq_rel<Scope::gpu> and then an
//     atomic by the first, an atomic that sees that one's and then such a fence by the second, or
//     two launches, would order them (6 times in all)

}  // namespace tegula::broken
