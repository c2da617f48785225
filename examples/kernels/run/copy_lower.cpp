#include "copy_lower.hpp"

#include "support/copy_problem.hpp"
#include "support/simulated.hpp"

using namespace tegula::examples;

int main() {
  return test_on_simulated_machine<CopyProblem, CopyLower, MatrixShape>(
      {{64, 128}, {67, 132}, {200, 36}});
}
