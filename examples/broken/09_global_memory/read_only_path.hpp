#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What is read through the read-only path, nobody writes in the same launch.
///
/// ld.global.nc may be served by a cache that no barrier and no fence touches. So what orders other
/// loads does not order this one.
///
/// PTX ISA: ld.global.nc.
struct read_only_path : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    st_global(p.out + thread_idx(), 1.0f);
    cta::sync();
    float const* const other = p.out + 63 - thread_idx();
    float const x = p.repaired ? ld_global<float>(other) : ld_global_nc<float>(other);
    st_global(p.out + 64 + thread_idx(), x);
  }
};

// Report:
//   09_global_memory/read_only_path.hpp:18: kernel read_only_path, CTA (0, 0, 0), warp 1, lane 31:
//     data_race: ld.global.nc reads byte 0 of out, which st.global of warp 0 lane 0 writes
//     (09_global_memory/read_only_path.hpp:15): the read-only path need not see what the launch
//     writes: an ld_global in the place of the ld_global_nc, and a cta::sync between the two, would
//     order them (64 times in all)

}  // namespace tegula::broken
