#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A product without a word of the collector buffer of A discards what it holds.
///
/// A is kept for the last product, and one in between, which says nothing, lets it go.
///
/// PTX ISA: tcgen05.mma, .collector_usage.
struct collector_discarded : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    if (thread_idx() == 0) {
      std::uint64_t const a = matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.a));
      std::uint64_t const b = matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.b));
      tcgen05_mma_collected<op, Collector::fill>(base, a, b, false);
      if (p.repaired)
        tcgen05_mma_collected<op, Collector::use>(base, a, b, true);
      else
        tcgen05_mma<op>(base, a, b, true);
      tcgen05_mma_collected<op, Collector::last_use>(base, a, b, true);
      commit_and_wait(smem, 0);
    }
    end(base);
  }
};

// Report:
//   11_tensor_memory/collector_discarded.hpp:23: kernel collector_discarded, CTA (0, 0, 0), warp 0,
//     lane 0: invalid_operand: tcgen05.mma that uses a collector buffer of A, which no product
//     before it has filled, or one has had discarded

}  // namespace tegula::broken
