#include "flash_attention.hpp"

#include "support/attention_problem.hpp"
#include "support/simulated.hpp"

using namespace tegula::examples;

int main() {
  return test_on_simulated_machine<AttentionProblem, FlashAttention, AttentionShape>(
      {{1, 128, false}, {2, 70, true}, {1, 135, false}});
}
