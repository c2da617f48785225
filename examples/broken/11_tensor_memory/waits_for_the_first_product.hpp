#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// The second commit at an mbarrier completes its second phase.
///
/// The wait names the first again, which is complete: the second product is loaded while it is
/// computed.
///
/// PTX ISA: tcgen05.commit; mbarrier.test_wait, phaseParity.
struct waits_for_the_first_product : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    for (int i = 0; i < 2; ++i) {
      if (thread_idx() == 0) {
        multiply(smem, base);
        tcgen05_commit(done);
      }
      mbarrier_wait_parity(done, p.repaired ? i : 0);
      tcgen05_fence_after_thread_sync();
      float r[1];
      tcgen05_ld<TensorShape::lanes32_bits32, 1>(r, own(base));
      tcgen05_wait_ld();
      st_global(p.out + 128 * i + thread_idx(), r[0]);
      tcgen05_fence_before_thread_sync();
      cta::sync();
      tcgen05_fence_after_thread_sync();
    }
    end(base);
  }
};

// Report:
//   broken/tensor_memory_kernel.hpp:73: kernel waits_for_the_first_product, CTA (0, 0, 0), warp 0,
//     lane 0: data_race: tcgen05.mma writes lane 32, column 0 of tmem, which warp 1 read by
//     tcgen05.ld (11_tensor_memory/waits_for_the_first_product.hpp:25), and nothing orders the two:
//     a barrier, or an arrival on an mbarrier and a wait for it, between the two, and the tcgen05
//     fences around it would order them
//   11_tensor_memory/waits_for_the_first_product.hpp:25: kernel waits_for_the_first_product, CTA
//     (0, 0, 0), warp 0: async_read_early: tcgen05.ld reads lane 0, column 0 of tmem while a
//     tcgen05.mma that writes it is in flight that warp 0 lane 0 issued
//     (broken/tensor_memory_kernel.hpp:73): a wait for phase 1 of element 0 of done, of parity 1,
//     at which the tcgen05_commit after it (11_tensor_memory/waits_for_the_first_product.hpp:20)
//     arrives, would order them
//   broken/tensor_memory_kernel.hpp:79: kernel waits_for_the_first_product, CTA (0, 0, 0), warp 0:
//     data_race: tcgen05.dealloc of columns 0 to 31 of tensor memory, while a tcgen05.mma of them
//     is in flight (broken/tensor_memory_kernel.hpp:73): a wait for phase 1 of element 0 of done,
//     of parity 1, at which the tcgen05_commit after it
//     (11_tensor_memory/waits_for_the_first_product.hpp:20) arrives, would order them
//   broken/tensor_memory_kernel.hpp:73: kernel waits_for_the_first_product, CTA (0, 0, 0), warp 0,
//     lane 0: exited_cta: the CTA exits while a tcgen05.mma out of its shared memory, from row 0,
//     column 0 of B on, has not been waited for: a wait for phase 1 of element 0 of done, of parity
//     1, at which the tcgen05_commit after it (11_tensor_memory/waits_for_the_first_product.hpp:20)
//     arrives, would order them

}  // namespace tegula::broken
