#include "attention_problem.hpp"
#include "correct_kernels.hpp"

namespace tegula::detail {

void add_attention(std::vector<CorrectKernel>& all) {
  for (int i = 0; i < static_cast<int>(configurations(attention_sm80).size()); ++i) {
    AttentionConfig const& c = configuration(attention_sm80, i);
    // Two CTAs, the second with few rows; blocks of keys enough to go once round the stages, and a part of
    // one.
    AttentionProblem const p{.dtype = c.dtype,
                             .head_dim = c.head_dim,
                             .seq_q = c.block_m + 5,
                             .seq_k = c.stages * c.block_n + 9,
                             .causal = c.causal,
                             .exponential = c.exponential};
    all.push_back({"attention_sm80", to_string(c), [p, i](sim::Options const& options) {
                     return outcome_of([&](Outcome& outcome) {
                       Machine const machine = Machine::simulated(Arch::sm90, options);
                       AttentionResult const result = run_on(attention_sm80, machine, p, i);
                       outcome.output = bytes_of(result.lse);
                       outcome.output.insert(outcome.output.end(), result.o.begin(), result.o.end());
                       outcome.report = *machine.last_report();
                     });
                   }});
  }
}

}  // namespace tegula::detail
