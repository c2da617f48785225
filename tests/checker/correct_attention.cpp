#include <optional>

#include "attention_problem.hpp"
#include "correct_kernels.hpp"
#include "serving_problem.hpp"

namespace tegula::detail {
namespace {

/// Few rows of grouped heads that do not divide a tile's, or more than a tile has; keys in pages
/// and in parts, that end within a block; a sequence without queries, and one without keys.
template <class Family, class Config>
CorrectKernel serving_kernel(Family family, Arch arch, Config const& c, int number) {
  bool const small = block_m(c) == kAttentionConsumerRows;
  std::optional<DType> out;  // none: as the type has it
  if constexpr (requires { c.out; }) out = c.out;
  ServingProblem const p{.dtype = c.dtype,
                         .out = out,
                         .head_dim = c.head_dim,
                         .head_dim_v = c.head_dim_v,
                         .heads = 3,
                         .kv_heads = 1,
                         .queries = {small ? 2 : block_m(c) / 4, 0, 1},
                         .keys = {c.stages * c.block_n + 9, 5, 0},
                         .packed_q = true,
                         .appended = {2, 0, 1},
                         .packed_new = true,
                         .page_size = small ? 32 : 128,
                         .causal = true,
                         .splits = arch == Arch::sm90 ? 2 : 1};
  return {family.name, to_string(c), [p, arch, number](sim::Options const& options) {
            return outcome_of([&](Outcome& outcome) {
              sim::Options few = options;
              few.multiprocessors = 3;
              Machine const machine = Machine::simulated(arch, few);
              ServingResult const result = run(machine, p, ServingTables(p), number);
              outcome.output = bytes_of(result.lse);
              outcome.output.insert(outcome.output.end(), result.o.begin(), result.o.end());
              outcome.report = *machine.last_report();
            });
          }};
}

}  // namespace

void add_attention_sm90(std::vector<CorrectKernel>& all) {
  for (int i = 0; i < static_cast<int>(configurations(attention_sm90).size()); ++i) {
    AttentionSm90Config const& c = configuration(attention_sm90, i);
    if (c.serving) {
      all.push_back(serving_kernel(attention_sm90, Arch::sm90, c, i));
      continue;
    }
    // CTAs that take several tiles in turn; the last tile has few rows, and some of its consumers
    // none; blocks of keys go more than once round the stages. Tiles of one head's rows; or of
    // three heads', two packed heads of two tiles each, where one row of a consumer is nobody's.
    bool const packs = i / 2 % 2 != 0;
    int const ctas = packs ? 2 : 3;
    AttentionProblem const p{.dtype = c.dtype,
                             .head_dim = c.head_dim,
                             .head_dim_v = c.head_dim_v,
                             .heads = packs ? 6 : 2,
                             .kv_heads = 2,
                             .seq_q = packs ? 21 * c.consumers + 5 : block_m(c) + 70,
                             .seq_k = c.stages * c.block_n + 9,
                             .causal = i % 2 == 0,
                             .precise = precise_of(c),
                             .exponential = c.exponential};
    all.push_back({"attention_sm90", to_string(c), [p, i, ctas](sim::Options const& options) {
                     return outcome_of([&](Outcome& outcome) {
                       sim::Options few = options;
                       few.multiprocessors = ctas;
                       Machine const machine = Machine::simulated(Arch::sm90, few);
                       AttentionResult const result = run_on(attention_sm90, machine, p, i);
                       outcome.output = bytes_of(result.lse);
                       outcome.output.insert(outcome.output.end(), result.o.begin(),
                                             result.o.end());
                       outcome.report = *machine.last_report();
                     });
                   }});
  }
}

void add_attention_sm100(std::vector<CorrectKernel>& all) {
  for (int i = 0; i < static_cast<int>(configurations(attention_sm100).size()); ++i) {
    AttentionSm100Config const& c = configuration(attention_sm100, i);
    if (c.serving) {
      all.push_back(serving_kernel(attention_sm100, Arch::sm100, c, i));
      continue;
    }
    // One CTA computes two pairs of tiles, of which the last has few rows and its other tile none;
    // blocks of keys go more than once round the stages.
    AttentionProblem const p{.dtype = c.dtype,
                             .out = c.out,
                             .head_dim = c.head_dim,
                             .head_dim_v = c.head_dim_v,
                             .seq_q = block_m(c) + 7,
                             .seq_k = c.stages * c.block_n + 9,
                             .causal = i % 2 == 0,
                             .exponential = c.exponential};
    all.push_back({"attention_sm100", to_string(c), [p, i](sim::Options const& options) {
                     return outcome_of([&](Outcome& outcome) {
                       sim::Options one = options;
                       one.multiprocessors = 1;
                       Machine const machine = Machine::simulated(Arch::sm100, one);
                       AttentionResult const result = run_on(attention_sm100, machine, p, i);
                       outcome.output = bytes_of(result.lse);
                       outcome.output.insert(outcome.output.end(), result.o.begin(),
                                             result.o.end());
                       outcome.report = *machine.last_report();
                     });
                   }});
  }
}

void add_attention(std::vector<CorrectKernel>& all) {
  for (int i = 0; i < static_cast<int>(configurations(attention_sm80).size()); ++i) {
    AttentionConfig const& c = configuration(attention_sm80, i);
    // Two CTAs, the second with few rows; blocks of keys enough to go once round the stages, and a
    // part of one.
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
                       outcome.output.insert(outcome.output.end(), result.o.begin(),
                                             result.o.end());
                       outcome.report = *machine.last_report();
                     });
                   }});
  }
}

}  // namespace tegula::detail
