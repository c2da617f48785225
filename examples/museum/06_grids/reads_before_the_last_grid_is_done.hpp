#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A kernel that may start before the last one has ended waits for it before it reads what that one
/// wrote.
///
/// Programmatic dependent launch lets a kernel begin while the one before it runs.
/// `griddepcontrol.wait` is then the only order between the two. CUTLASS's grouped GEMMs for Hopper
/// did not have it; FlashInfer compiled it away by a missing flag; llama.cpp forgot it in one new
/// kernel. Each of them is right in a test that launches one kernel at a time.
///
/// Mend: `griddepcontrol.wait` before the first read.
/// Seen in: CUTLASS, https://github.com/NVIDIA/cutlass/issues/2760
/// Seen in: FlashInfer, https://github.com/flashinfer-ai/flashinfer/issues/2708
/// Seen in: llama.cpp, https://github.com/ggml-org/llama.cpp/pull/23690
/// compute-sanitizer: no: two launches
/// ConSan: no: global memory
/// CUTLASS: yes, where the dependence is declared
struct reads_before_the_last_grid_is_done : Kernel<32> {
  static constexpr bool programmatic_dependent_launch = true;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (p.repaired) griddepcontrol_wait();
    st_global(p.out + lane_id(), 2 * ld_global<float>(p.in + lane_id()));
  }
};

// Report:
//   06_grids/reads_before_the_last_grid_is_done.hpp:27: kernel reads_before_the_last_grid_is_done,
//     CTA (0, 0, 0), warp 0, lane 0: data_race: ld.global reads byte 0 of in, which the launch
//     before this one may still write: a griddepcontrol_wait by this thread, or by one that a
//     barrier or an mbarrier orders before it, would order them (32 times in all)
//   06_grids/reads_before_the_last_grid_is_done.hpp:27: kernel reads_before_the_last_grid_is_done,
//     CTA (0, 0, 0), warp 0, lane 0: data_race: st.global writes byte 0 of out, which the launch
//     before this one may still read or write: a griddepcontrol_wait by this thread, or by one that
//     a barrier or an mbarrier orders before it, would order them (32 times in all)

}  // namespace tegula::museum
