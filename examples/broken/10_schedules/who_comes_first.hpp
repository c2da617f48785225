#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What a kernel does may depend on the schedule: one is not enough.
///
/// The warp that draws the first ticket is to arrive, and only warp 0 ever does. Mostly it comes
/// first, and all is well. Here warp 0 is kept behind.
struct who_comes_first : Kernel<64> {
  static constexpr bool at_every_schedule = false;
  static sim::Options options() {
    return {.interleaving = sim::Interleaving::one_warp_behind, .seed = 0};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    std::uint32_t ticket = lane_id() == 0 ? atom_add(p.flags, 1u) : 0;
    ticket = warp::shfl(ticket, 0);
    bool const produces = p.repaired ? ticket == 0 : warp_id() == 0 && ticket == 0;
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0 && produces) mbarrier_arrive(full);
    if (ticket == 1) mbarrier_wait_parity(full, 0);
  }
};

// Report:
//   10_schedules/who_comes_first.hpp:24: kernel who_comes_first, CTA (0, 0, 0): deadlock: warp 0
//     waits at mbarrier element 0 of full (10_schedules/who_comes_first.hpp:24) for the phase of
//     parity 0, which lacks 1 of 1 arrival; warp 1 exited

}  // namespace tegula::broken
