#include "sgemm_tiled.hpp"

#include "support/gemm_problem.hpp"
#include "support/simulated.hpp"

using namespace tegula::examples;

int main() {
  return test_on_simulated_machine<GemmProblem, SgemmTiled, GemmShape>(
      {{128, 128, 32}, {132, 68, 13, 0.5f, -2}, {4, 256, 1, 2}});
}
