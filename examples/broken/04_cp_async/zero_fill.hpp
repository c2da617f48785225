#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// cp.async reads at most as many bytes as it copies, and fills the rest with zeros.
///
/// Bytes are wanted, and elements are counted: at the ragged edge the size is wrong, and far from
/// it, too.
///
/// PTX ISA: cp.async: src-size.
struct zero_fill : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const left = 30 - lane_id();  // elements, the lane's own first
    int const bytes = left <= 0 ? 0 : p.repaired ? 4 : left;
    cp_async_ca<4>(at(smem, 0, lane_id()), p.in + lane_id(), bytes);
    cp_async_commit_group();
    cp_async_wait_group<0>();
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   04_cp_async/zero_fill.hpp:17: kernel zero_fill, CTA (0, 0, 0), warp 0, lane 0: invalid_operand:
//     cp.async of 4 bytes is to read 30: it can read 0 to 4

}  // namespace tegula::broken
