#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A tcgen05_mma reads its operands from shared memory until its commit has arrived.
///
/// A thread writes over B while the product is in flight.
///
/// PTX ISA: tcgen05.commit.
struct operand_overwritten : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0) {
      multiply(smem, base);
      tcgen05_commit(done);
      if (p.repaired) mbarrier_wait_parity(done, 0);
      st_shared(shared_address(smem.b.data), std::uint32_t{1});
    }
    mbarrier_wait_parity(done, 0);
    end(base);
  }
};

// Report:
//   11_tensor_memory/operand_overwritten.hpp:20: kernel operand_overwritten, CTA (0, 0, 0), warp 0,
//     lane 0: async_overwrite: st.shared writes row 0, column 0 of B while a tcgen05.mma that reads
//     it is in flight that warp 0 lane 0 issued (broken/tensor_memory_kernel.hpp:73): a wait for
//     phase 0 of element 0 of done, of parity 0, at which the tcgen05_commit after it
//     (11_tensor_memory/operand_overwritten.hpp:18) arrives, would order them

}  // namespace tegula::broken
