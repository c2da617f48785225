#include "sgemm_threads.hpp"

#include "support/gemm_problem.hpp"
#include "support/simulated.hpp"

using namespace tegula::examples;

int main() {
  return test_on_simulated_machine<GemmProblem, SgemmThreads, GemmShape>(
      {{128, 128, 32}, {131, 70, 13, 0.5f, -2}, {5, 257, 1, 2}});
}
