#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// Groups of warps that meet apart meet at barriers of different numbers.
///
/// The attention kernel for block-sparse masks in FlashInfer reduced within pairs of warps by a
/// named barrier. Its number collided with another barrier's. A barrier completes when as many
/// threads have arrived as the instruction says, whoever they are: once in some 25 requests the
/// wrong warps met, and a CTA hung. Here two pairs of warps exchange a row each.
///
/// Mend: a number for each pair.
/// Seen in: FlashInfer, https://github.com/flashinfer-ai/flashinfer/pull/4533
/// compute-sanitizer: racecheck
/// ConSan: inside a partition
/// CUTLASS: cannot be written: barriers are generated
struct one_id_for_two_barriers : Kernel<128> {
  static constexpr bool at_every_schedule = false;
  static sim::Options options() {
    return {.interleaving = sim::Interleaving::one_warp_behind, .seed = 0, .count = false};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const pair = warp_id() / 2;
    st_shared(at(smem, warp_id(), lane_id()), ld_global<float>(p.in + thread_idx()));
    cta::bar_sync(p.repaired ? 1 + pair : 1, 64);
    st_global(p.out + thread_idx(), ld_shared<float>(at(smem, warp_id() ^ 1, lane_id())));
  }
};

// Report:
//   01_threads/one_id_for_two_barriers.hpp:29: kernel one_id_for_two_barriers, CTA (0, 0, 0), warp
//     2, lane 31: uninitialized_read: ld.shared reads row 3, column 31 of stage 0 of tile, which
//     nobody has written (64 times in all)
//   01_threads/one_id_for_two_barriers.hpp:27: kernel one_id_for_two_barriers, CTA (0, 0, 0), warp
//     3, lane 0: data_race: st.shared writes row 3, column 0 of stage 0 of tile, which warp 2 lane
//     0 read by ld.shared (01_threads/one_id_for_two_barriers.hpp:29), and nothing orders the two:
//     a cta::sync between them, or an arrival on an mbarrier and a wait for it, would order them
//     (128 times in all)

}  // namespace tegula::museum
