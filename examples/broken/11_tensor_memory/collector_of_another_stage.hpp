#pragma once

#include "../stationary_kernel.hpp"

namespace tegula::broken {

/// A product that uses a collector buffer multiplies the operand that filled it.
///
/// B is kept, and written anew in shared memory, and the next product still says that it uses the
/// buffer.
///
/// PTX ISA: tcgen05.mma.ws, .collector_usage.
struct collector_of_another_stage : StationaryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0) {
      multiply<Collector::fill>(smem, base);
      tcgen05_commit(done);
      mbarrier_wait_parity(done, 0);
      st_shared(shared_address(smem.b.data), std::uint32_t{0});
      fence_proxy_async_shared();
      if (p.repaired)
        multiply<Collector::fill>(smem, base);
      else
        multiply<Collector::use>(smem, base);
      tcgen05_commit(done);
      mbarrier_wait_parity(done, 1);
    }
    end(base);
  }
};

// Report:
//   11_tensor_memory/collector_of_another_stage.hpp:26: kernel collector_of_another_stage, CTA (0,
//     0, 0), warp 0, lane 0: invalid_operand: tcgen05.mma that uses a collector buffer of B, which
//     holds another operand than memory has there

}  // namespace tegula::broken
