// One case's kernel, mutated as TEGULA_MUTANT_* say (sim/mutable_values.hpp); mutants.py compiles
// it to a cubin for each mutant. TEGULA_MUTANT_CASE is the case's index.

#include "mutated_instructions.hpp"
// The kernels come after what mutates their instructions.
#include "mutation_cases.hpp"

namespace tegula::mutants {

struct Kernel : KernelOf<TEGULA_MUTANT_CASE> {};

extern "C" __global__ void __launch_bounds__(Kernel::threads, Kernel::min_ctas_per_sm)
    mutant(__grid_constant__ Kernel::Params const params) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Kernel{}(params, *reinterpret_cast<Kernel::SharedStorage*>(shared));
}

}  // namespace tegula::mutants
