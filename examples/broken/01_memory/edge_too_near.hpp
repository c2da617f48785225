#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A launch writes every element of its output.
///
/// The test that stops the last CTA's threads at the end of the tensor stops one too many. Nothing
/// that is accessed is wrong: what is missing is found because the kernel says what it covers.
struct edge_too_near : Kernel<96> {
  static constexpr Dim3 grid = {11, 1, 1};

  static std::vector<sim::GlobalTensor> tensors(Params const& p) {
    return {sim::global_tensor("out", p.out, row_major(16, 64), {"row", "column"},
                               sim::Coverage::written)};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    int const i = threads * block_idx().x + thread_idx();
    int const end = p.repaired ? 1024 : 1023;
    if (i < end) st_global(p.out + i, 2 * ld_global<float>(p.in + i));
  }
};

// Report:
//   kernel edge_too_near: unwritten_output: nobody writes row 15, column 63 of out, one of 1024
//     elements: the launch is to write them all; row 15, column 62, beside it, st.global of CTA
//     (10, 0, 0), warp 1 writes (01_memory/edge_too_near.hpp:22)

}  // namespace tegula::broken
