#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// All lanes of a warp execute mma, ldmatrix and stmatrix together.
///
/// A bound on rows, which differs from lane to lane, around an instruction of the whole warp.
///
/// PTX ISA: mma: .aligned.
struct mma_in_a_branch : Kernel<32> {
  static constexpr MmaSpec mma = warp_mma(DType::f16, DType::f32, 16);

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    std::uint32_t const a[4] = {}, b[2] = {};
    float c[4] = {};
    bool const inside = lane_id() / 4 < 6;
    if (p.repaired || inside) mma_sync<mma>(c, a, b, c);
    if (inside) st_global(p.out + lane_id(), c[0]);
  }
};

// Report:
//   03_warps/mma_in_a_branch.hpp:19: kernel mma_in_a_branch, CTA (0, 0, 0), warp 0, lane 0:
//     divergence: mma.sync needs all lanes of the warp, but lane 24 exited while lanes 0-23 wait
//     there

}  // namespace tegula::broken
