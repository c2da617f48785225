#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// The address of a vector access is a multiple of its size.
///
/// Sixteen bytes a lane, but a step of four from lane to lane: only each fourth lane is at a
/// multiple of 16.
///
/// PTX ISA: "Addresses as Operands".
struct misaligned : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = 0; row < 4; ++row) st_shared(at(smem, row, lane_id()), 1.0f);
    warp::sync();
    int const step = p.repaired ? 4 : 1;
    auto const four =
        ld_shared<Float4>(at(smem, 0, 0) + static_cast<SharedAddr>(4 * step * lane_id()));
    st_global(p.out + 4 * lane_id(), four);
  }
};

// Report:
//   01_memory/misaligned.hpp:19: kernel misaligned, CTA (0, 0, 0), warp 0, lane 31: misaligned:
//     ld.shared of 16 bytes at shared address 0x47c, 12 bytes past a multiple of 16: row 0, column
//     31 of stage 0 of tile (24 times in all)

}  // namespace tegula::broken
