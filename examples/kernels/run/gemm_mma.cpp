#include "gemm_mma.hpp"

#include "support/gemm_problem.hpp"
#include "support/simulated.hpp"

using namespace tegula::examples;

int main() {
  return test_on_simulated_machine<GemmProblem, GemmMma, GemmShape>(
      {{128, 128, 256}, {133, 70, 72}, {5, 257, 8}});
}
