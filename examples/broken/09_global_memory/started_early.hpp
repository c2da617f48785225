#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A kernel that may start before the launch before it has finished waits for that one's memory.
///
/// With programmatic_dependent_launch the kernel may start before the last one has ended. Thread 0
/// waits for the grids before this one, and nothing tells the other threads.
///
/// PTX ISA: griddepcontrol.
struct started_early : Kernel<64> {
  static constexpr bool programmatic_dependent_launch = true;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() == 0) griddepcontrol_wait();
    if (p.repaired) cta::sync();
    float const x = ld_global<float>(p.in + thread_idx());
    st_global(p.out + thread_idx(), 2 * x);
  }
};

// Report:
//   09_global_memory/started_early.hpp:19: kernel started_early, CTA (0, 0, 0), warp 0, lane 1:
//     data_race: ld.global reads byte 4 of in, which the launch before this one may still write: a
//     griddepcontrol_wait by this thread, or by one that a barrier or an mbarrier orders before it,
//     would order them (63 times in all)
//   09_global_memory/started_early.hpp:20: kernel started_early, CTA (0, 0, 0), warp 0, lane 1:
//     data_race: st.global writes byte 4 of out, which the launch before this one may still read or
//     write: a griddepcontrol_wait by this thread, or by one that a barrier or an mbarrier orders
//     before it, would order them (63 times in all)

}  // namespace tegula::broken
