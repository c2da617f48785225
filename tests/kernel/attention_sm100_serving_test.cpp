// attention_sm100 for sequences of their own lengths, paged keys, packed heads and appended keys.
// Against float64, under the checker; what lies between the sequences holds NaN.

#include "attention_mutants.hpp"
#include "serving_problem.hpp"

namespace tegula {
namespace {

/// Sequences that end within a tile and within a block of keys, one without queries, one without
/// keys, one with rows for both tiles.
ServingProblem ragged(AttentionSm100Config const& c) {
  return {.dtype = c.dtype,
          .out = c.out,
          .head_dim = c.head_dim,
          .head_dim_v = c.head_dim_v,
          .heads = 3,
          .kv_heads = 1,
          .queries = {90, 0, 5},
          .keys = {c.stages * c.block_n + 9, 70, 0},
          .packed_q = true,
          .packed_k = true,
          .causal = true};
}

TEST(AttentionSm100Serving, EveryConfigurationIsCorrect) {
  int number = 0, serving = 0;
  for (AttentionSm100Config const& c : configurations(attention_sm100)) {
    if (c.serving) {
      ++serving;
      SCOPED_TRACE(to_string(c));
      expect_correct(blackwell(), ragged(c), number);
    }
    ++number;
  }
  EXPECT_GT(serving, 0);
}

TEST(AttentionSm100Serving, ComputesSequencesOfTheirOwnLengths) {
  expect_own_lengths_correct(blackwell({.multiprocessors = 3}), {.heads = 2, .kv_heads = 2});
}

// 128 rows of a tile are 42 positions of three heads, and two that belong to nobody.
TEST(AttentionSm100Serving, PacksHeads) {
  for (int const queries : {1, 50})
    expect_correct(blackwell(), {.heads = 6,
                                 .kv_heads = 2,
                                 .queries = {queries, queries},
                                 .keys = {150, 40},
                                 .causal = true});
}

TEST(AttentionSm100Serving, FindsKeysInPages) {
  for (int const page_size : {16, 128, 384})
    expect_correct(blackwell(), {.heads = 4,
                                 .kv_heads = 2,
                                 .queries = {3, 3, 3},
                                 .keys = {400, 17, 384},
                                 .page_size = page_size,
                                 .causal = true});
}

TEST(AttentionSm100Serving, AppendsNewKeys) {
  for (DType const dtype : {DType::bf16, DType::e4m3})
    expect_correct(blackwell(), {.dtype = dtype,
                                 .heads = 2,
                                 .queries = {20, 1, 40},
                                 .keys = {100, 63, 0},
                                 .packed_q = true,
                                 .appended = {20, 1, 40},
                                 .packed_new = true,
                                 .page_size = 16,
                                 .causal = true});
}

TEST(AttentionSm100Serving, CapsScoresTakesSinksAndPadsHeadDims) {
  for (auto const& [dim, dim_v] : {std::pair{64, 64}, {40, 24}, {128, 72}})
    expect_correct(blackwell(), {.head_dim = dim,
                                 .head_dim_v = dim_v,
                                 .heads = 2,
                                 .queries = {70, 3},
                                 .keys = {150, 2},
                                 .packed_q = true,
                                 .causal = true,
                                 .softcap = 5.0f,
                                 .sink = {3.0f, -__builtin_inff()}});
}

// Two steps of each ring in a CTA of its own, and of one for all, at several schedules.
TEST(AttentionSm100Serving, IsTheSameAtEverySchedule) {
  using sim::Completion, sim::Interleaving;
  ServingProblem const p{.heads = 2,
                         .queries = {140, 0, 9},
                         .keys = {300, 10, 131},
                         .packed_q = true,
                         .packed_k = true,
                         .causal = true};
  ServingTables const tables(p);
  ServingResult const first = run(blackwell(), p, tables);
  std::uint64_t seed = 0;
  for (auto const& [completion, interleaving] :
       {std::pair{Completion::first, Interleaving::round_robin},
        {Completion::last, Interleaving::one_warp_behind},
        {Completion::random, Interleaving::random},
        {Completion::random, Interleaving::random}}) {
    ServingResult const again = run(blackwell({.completion = completion,
                                               .interleaving = interleaving,
                                               .seed = ++seed,
                                               .multiprocessors = static_cast<int>(seed)}),
                                    p, tables);
    EXPECT_EQ(first.o, again.o);
    EXPECT_EQ(first.lse, again.lse);
  }
}

// What orders the roles is needed: as AttentionSm100's test of the same name, which says which
// fence is implied. Rows of Q that belong to nobody, and more blocks than stages.
TEST(AttentionSm100Serving, EveryRemovedFenceWaitArrivalAndCommitIsFound) {
  ServingProblem const p{.heads = 3,
                         .queries = {90, 9, 50},
                         .keys = {650, 0, 300},
                         .packed_q = true,
                         .packed_k = true,
                         .causal = true};
  ServingTables const tables(p);
  Survivors const mutants = survivors_of(
      [&](sim::Options options, sim::Report* report) {
        options.multiprocessors = 1;
        Machine const machine = blackwell(options);
        ServingResult const result = run(machine, p, tables);
        if (report != nullptr) *report = *machine.last_report();
        return std::pair(result.o, result.lse);
      },
      4);
  for (Operation const survivor : mutants.survivors) EXPECT_EQ(survivor, Operation::tcgen05_fence);
  EXPECT_LE(mutants.survivors.size(), 1u);
  EXPECT_GE(mutants.count, thorough_or(40, 8));
}

}  // namespace
}  // namespace tegula
