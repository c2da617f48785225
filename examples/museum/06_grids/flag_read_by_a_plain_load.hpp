#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A flag that another CTA sets is read by an atomic or an acquiring load; a plain one observes
/// nothing.
///
/// vLLM's all-reduce told the other GPUs by flags in memory, declared `volatile`. People reported
/// garbage and hangs, and the threads argued whether `volatile` orders anything: by the memory
/// model of CUDA it does not. Stores of flags of one byte, each by another GPU, were a race of
/// their own. Here two CTAs stand for two GPUs.
///
/// Mend: poll by an atomic, then fence.
/// Seen in: vLLM, https://github.com/vllm-project/vllm/pull/2760
/// Seen in: vLLM, https://github.com/vllm-project/vllm/pull/8558
/// compute-sanitizer: no: global memory
/// ConSan: no: global memory
/// CUTLASS: not documented
struct flag_read_by_a_plain_load : Kernel<32> {
  static constexpr Dim3 grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      st_global(p.out, 1.0f);
      fence_acq_rel<Scope::gpu>();
      atom_exch(p.flags, 1u);
      return;
    }
    auto const flag = [&] {
      return p.repaired ? atom_add(p.flags, 0u) : ld_global<std::uint32_t>(p.flags);
    };
    while (flag() == 0) {
    }
    fence_acq_rel<Scope::gpu>();
    st_global(p.out + 1, ld_global<float>(p.out) + 1);
  }
};

// Report:
//   06_grids/flag_read_by_a_plain_load.hpp:33: kernel flag_read_by_a_plain_load, CTA (1, 0, 0),
//     warp 0, lane 0: data_race: ld.global reads byte 0 of flags, which atom of CTA (0, 0, 0), warp
//     0, lane 0 changes (06_grids/flag_read_by_a_plain_load.hpp:29), with nothing between the two
//     CTAs that orders them: a fence_acq_rel<Scope::gpu> and then an atomic by the first, an atomic
//     that sees that one's and then such a fence by the second, or two launches, would order them
//   06_grids/flag_read_by_a_plain_load.hpp:38: kernel flag_read_by_a_plain_load, CTA (1, 0, 0),
//     warp 0, lane 0: data_race: ld.global reads byte 0 of out, which st.global of CTA (0, 0, 0),
//     warp 0, lane 0 writes (06_grids/flag_read_by_a_plain_load.hpp:27), with nothing between the
//     two CTAs that orders them: a fence_acq_rel<Scope::gpu> and then an atomic by the first, an
//     atomic that sees that one's and then such a fence by the second, or two launches, would order
//     them

}  // namespace tegula::museum
