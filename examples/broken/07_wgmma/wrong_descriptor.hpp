#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// A matrix descriptor points at the first of eight swizzled rows.
///
/// A step of three rows is added to the descriptor's address. The hardware swizzles by bits of the
/// address, and would read a permuted matrix.
///
/// PTX ISA: "Matrix Descriptor Format".
struct wrong_descriptor : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    float d[8] = {};
    std::uint64_t const rows = p.repaired ? 8 : 3;
    wgmma_fence();
    constexpr MmaSpec narrow = warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 8);
    auto& half = reinterpret_cast<float(&)[4]>(d[0]);
    wgmma<narrow>(half, matrix_descriptor(tensor(smem.a)),
                  matrix_descriptor(tensor(smem.b)) + (rows * 128 >> 4), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    st_global(p.out + thread_idx(), d[0]);
  }
};

// Report:
//   07_wgmma/wrong_descriptor.hpp:21: kernel wrong_descriptor, CTA (0, 0, 0), warp 1: misaligned:
//     the matrix descriptor of B, 0x4000004000000258: its start address 0x2580 is not in the first
//     of eight rows of 128 bytes

}  // namespace tegula::broken
