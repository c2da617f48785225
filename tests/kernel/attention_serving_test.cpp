// attention_sm90 as inference servers use it: few queries of grouped heads with the keys in several
// parts, sequences of their own lengths, paged keys. Against float64, under the checker; what lies
// between the sequences holds NaN.

#include "serving_problem.hpp"

namespace tegula {
namespace {

/// Each serving configuration of this build, over the edges of its tiles, in parts.
TEST(AttentionServing, EveryConfigurationIsCorrect) {
  Machine const machine = test_machine();
  int number = 0, serving = 0;
  for (AttentionSm90Config const& c : configurations(attention_sm90)) {
    if (c.serving) {
      ++serving;
      SCOPED_TRACE(to_string(c));
      for (bool const causal : {false, true})
        expect_correct(machine,
                       {.dtype = c.dtype,
                        .head_dim = c.head_dim,
                        .head_dim_v = c.head_dim_v,
                        .heads = 6,
                        .kv_heads = 2,
                        .queries = {37, 0, 5},
                        .keys = {2 * c.block_n + 9, 70, c.block_n},
                        .packed_q = true,
                        .page_size = 16,
                        .causal = causal,
                        .splits = 2},
                       number);
    }
    ++number;
  }
  EXPECT_GT(serving, 0);
}

TEST(AttentionServing, AppendsNewKeysToACache) {
  Machine const machine = test_machine();
  for (int const page_size : {0, 16, 64}) {
    SCOPED_TRACE(page_size);
    // One new key each, as when tokens are generated; in parts.
    expect_correct(machine, {.heads = 8,
                             .kv_heads = 2,
                             .queries = {1, 1, 1},
                             .keys = {150, 63, 0},
                             .appended = {1, 1, 1},
                             .page_size = page_size,
                             .splits = 2});
    // Numbers of their own, some of them none; over the edges of pages.
    expect_correct(machine, {.head_dim = 128,
                             .heads = 4,
                             .kv_heads = 2,
                             .queries = {20, 1, 40, 3},
                             .keys = {100, 63, 0, 130},
                             .packed_q = true,
                             .appended = {20, 1, 40, 0},
                             .packed_new = true,
                             .page_size = page_size,
                             .causal = true});
  }
}

// Of the first sequence's four new keys two lie beyond seq_k.
TEST(AttentionServing, AppendsWhatThereIsRoomFor) {
  expect_correct(
      test_machine(),
      {.queries = {4, 4}, .keys = {100, 60}, .appended = {4, 4}, .causal = true, .spare_keys = -2});
}

// V is the first 512 columns of K.
TEST(AttentionServing, DecodesLatentAttention) {
  Machine const machine = test_machine();
  ServingProblem const latent{.head_dim = 576, .head_dim_v = 512, .kv_heads = 1};
  for (auto const& [heads, page_size, splits] : {std::tuple{16, 0, 2}, {64, 64, 1}, {128, 64, 2}}) {
    SCOPED_TRACE(heads);
    ServingProblem p = latent;
    p.heads = heads, p.page_size = page_size, p.splits = splits;
    p.queries = {1, 1}, p.keys = {200, 61};
    expect_correct(machine, p);
  }
  // Two queries, as speculative decoding has them; new keys; a sequence that has no others.
  ServingProblem p = latent;
  p.heads = 64, p.page_size = 64, p.causal = true;
  p.queries = {2, 2}, p.keys = {126, 0}, p.appended = {2, 2};
  expect_correct(machine, p);
  p.softcap = 5.0f, p.sink.assign(64, 0.5f), p.splits = 2;
  expect_correct(machine, p);
}

TEST(AttentionServing, PacksHeads) {
  Machine const machine = test_machine();
  for (auto const& [heads, kv_heads] :
       {std::pair{8, 1}, {8, 2}, {64, 1}, {7, 1}, {12, 4}, {71, 1}, {5, 5}}) {
    for (int const queries : {1, 3}) {
      for (bool const causal : {false, true})
        expect_correct(machine, {.heads = heads,
                                 .kv_heads = kv_heads,
                                 .queries = {queries, queries},
                                 .keys = {150, 200},
                                 .causal = causal});
    }
  }
}

TEST(AttentionServing, ComputesKeysInParts) {
  Machine const machine = test_machine();
  for (bool const causal : {false, true})
    expect_correct(machine, {.heads = 8,
                             .kv_heads = 2,
                             .queries = {5, 5},
                             .keys = {515, 515},
                             .one_length = true,
                             .causal = causal,
                             .splits = 3});
  for (int const splits : {1, 2, 3, 40}) {
    for (int const keys : {1, 128, 129, 700}) {
      ServingResult const r = expect_correct(
          machine, {.heads = 4, .kv_heads = 2, .queries = {2}, .keys = {keys}, .splits = splits});
      EXPECT_EQ(r.parts, splits > 1 && keys > 128 ? 2 : 1);
    }
  }
  expect_correct(machine, {.heads = 4,
                           .kv_heads = 2,
                           .queries = {2, 2, 2},
                           .keys = {700, 3, 260},
                           .causal = true,
                           .splits = 5});
}

TEST(AttentionServing, ComputesMasksSoftcapsAndSinksInParts) {
  Machine const machine = test_machine();
  for (auto const& [left, right] : {std::pair{0, 0}, {200, 0}, {10, 300}, {140, 20}})
    expect_correct(machine, {.heads = 4,
                             .kv_heads = 2,
                             .queries = {3, 3},
                             .keys = {600, 250},
                             .window_left = left,
                             .window_right = right,
                             .splits = 4});
  std::vector<float> const sinks = {0.0f, 3.0f, 1000.0f, -__builtin_inff()};
  expect_correct(machine, {.heads = 4,
                           .kv_heads = 2,
                           .queries = {3, 3},
                           .keys = {600, 2},
                           .causal = true,
                           .softcap = 5.0f,
                           .sink = sinks,
                           .splits = 4});
}

TEST(AttentionServing, ComputesSequencesOfTheirOwnLengths) {
  expect_own_lengths_correct(test_machine(), {.heads = 4, .kv_heads = 2});
}

TEST(AttentionServing, FindsKeysInPages) {
  Machine const machine = test_machine();
  for (int const page_size : {16, 32, 64, 128, 256, 384}) {
    for (bool const packed_q : {false, true})
      expect_correct(machine, {.heads = 8,
                               .kv_heads = 2,
                               .queries = {2, 2, 2},
                               .keys = {500, 17, 384},
                               .packed_q = packed_q,
                               .page_size = page_size,
                               .causal = true,
                               .splits = 2});
  }
}

TEST(AttentionServing, PadsHeadDims) {
  Machine const machine = test_machine();
  for (auto const& [dim, dim_v] : {std::pair{8, 8}, {40, 64}, {64, 24}, {96, 96}, {128, 64}})
    expect_correct(machine, {.head_dim = dim,
                             .head_dim_v = dim_v,
                             .heads = 4,
                             .kv_heads = 1,
                             .queries = {2},
                             .keys = {300},
                             .splits = 2});
}

TEST(AttentionServing, GivesZeroAndMinusInfinityToRowsThatSeeNoKey) {
  ServingProblem const p{.heads = 2, .queries = {4, 4}, .keys = {0, 2}, .causal = true};
  ServingResult const r = expect_correct(test_machine(), p);
  for (std::size_t row : {0u, 3u, 7u, 8u, 9u, 12u}) EXPECT_EQ(r.lse[row], -__builtin_inff());
  for (int d = 0; d < 4 * 2 * p.head_dim; ++d)
    EXPECT_EQ(reference::element(r.o.data(), p.dtype, d), 0.0);
}

TEST(AttentionServing, CutsLengthsToTheLargest) {
  ServingProblem const p{.heads = 2, .queries = {2, 2}, .keys = {130, 140}, .splits = 2};
  Machine const machine = test_machine();
  ServingTables tables(p);
  ServingResult const r = run(machine, p, tables);
  tables.seqused_k = {130, 1 << 30};
  EXPECT_EQ(run(machine, p, tables).o, r.o);
}

// The next sequence's keys are not its own, whatever seqused_k says.
TEST(AttentionServing, CutsLengthsToThePackedSequence) {
  ServingProblem const p{
      .heads = 2, .queries = {2, 2, 2}, .keys = {130, 20, 140}, .packed_k = true, .splits = 2};
  Machine const machine = test_machine();
  ServingTables tables(p);
  ServingResult const r = run(machine, p, tables);
  tables.seqused_k = {140, 1 << 30, 140};
  EXPECT_EQ(run(machine, p, tables).o, r.o);
}

TEST(AttentionServing, FindsAPageThatThereIsNot) {
  ServingProblem const p{.queries = {1}, .keys = {100}, .page_size = 16};
  Machine const machine = Machine::simulated(Arch::sm90);
  for (std::int32_t const page : {-1, 1000}) {
    ServingTables tables(p);
    tables.uploaded_table = tables.page_table;
    tables.uploaded_table[3] = page;
    EXPECT_THROW(run(machine, p, tables), sim::CheckError);
  }
}

TEST(AttentionServing, IsTheSameFromRunToRunAndAtEverySchedule) {
  ServingProblem const p{.heads = 8,
                         .kv_heads = 2,
                         .queries = {3, 1, 9},
                         .keys = {500, 10, 300},
                         .packed_q = true,
                         .page_size = 32,
                         .causal = true,
                         .splits = 4};
  ServingTables const tables(p);
  ServingResult const first = run(test_machine(), p, tables);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    sim::Options options;
    options.seed = seed;
    options.multiprocessors = static_cast<int>(2 + seed);
    ServingProblem other = p;  // as many parts, whatever the number of multiprocessors
    ServingResult const again = run(Machine::simulated(Arch::sm90, options), other, tables);
    EXPECT_EQ(first.o, again.o);
    EXPECT_EQ(first.lse, again.lse);
  }
}

}  // namespace
}  // namespace tegula
