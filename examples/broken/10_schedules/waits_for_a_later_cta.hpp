#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A CTA may wait for an earlier one, and not for a later one, which may start only when it
/// has finished.
///
/// CTA 0 waits for what CTA 1 raises. On an empty GPU both are there, and it works.
///
/// PTX ISA: "Grid of Cooperative Thread Arrays": CTAs run in no order, in parallel or one
/// after another.
struct waits_for_a_later_cta : Kernel<32> {
  static constexpr Dim3 grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    int const waits = p.repaired ? 1 : 0;
    if (block_idx().x == waits) {
      while (atom_add(p.flags, 0u) == 0) {
      }
    } else {
      atom_exch(p.flags, 1u);
    }
  }
};

// Report:
//   10_schedules/waits_for_a_later_cta.hpp:21: kernel waits_for_a_later_cta, CTA (0, 0, 0):
//     deadlock: every thread that runs reads the same memory again and again, and nobody changes
//     it; lane 0 of warp 0 reads at 10_schedules/waits_for_a_later_cta.hpp:21: byte 0 of flags,
//     which atom of warp 0 lane 0 (10_schedules/waits_for_a_later_cta.hpp:21) has changed last; CTA
//     (1, 0, 0), which may not have started yet, does so by atom
//     (10_schedules/waits_for_a_later_cta.hpp:24): `static constexpr bool cooperative = true;` in
//     the kernel has all of its CTAs resident at once, or the launch refused

}  // namespace tegula::broken
