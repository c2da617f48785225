#include "gemm_warp_specialized.hpp"

#include "support/gemm_problem.hpp"
#include "support/simulated.hpp"

using namespace tegula::examples;

int main() {
  return test_on_simulated_machine<GemmProblem, GemmWarpSpecialized, GemmShape>(
      {{128, 256, 320}, {133, 72, 72}, {40, 264, 13}});
}
