#include "transpose.hpp"

#include "support/copy_problem.hpp"
#include "support/simulated.hpp"

using namespace tegula::examples;

int main() {
  return test_on_simulated_machine<CopyProblem, TransposeSwizzled, MatrixShape>(
      {{128, 64}, {67, 131}, {1, 200}});
}
