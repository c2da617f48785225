// The Blackwell attention kernel against float64, on the simulated machine alone: every
// configuration, every mask, ragged sizes, strides, grouped heads, padded head dims, softcap and
// sinks, adversarial values; at several schedules; without bank conflicts.

#include <algorithm>
#include <array>
#include <tuple>

#include "attention_mutants.hpp"
#include "attention_problem.hpp"
#include "explore_kernel.hpp"

namespace tegula {
namespace {

class EverySm100Attention : public testing::TestWithParam<int> {};

// Two CTAs' tiles, of which the last has few rows; blocks of keys more than once round the stages.
TEST_P(EverySm100Attention, IsCorrectOverTheEdgesOfItsTiles) {
  AttentionSm100Config const& c = configuration(attention_sm100, GetParam());
  if (c.serving) GTEST_SKIP() << "attention_sm100_serving_test.cpp has it";
  SCOPED_TRACE(to_string(c));
  for (bool const causal : {false, true})
    expect_correct(attention_sm100, blackwell(),
                   {.dtype = c.dtype,
                    .out = c.out,
                    .head_dim = c.head_dim,
                    .head_dim_v = c.head_dim_v,
                    .seq_q = block_m(c) + 5,
                    .seq_k = c.stages * c.block_n + 9,
                    .causal = causal,
                    .exponential = c.exponential},
                   GetParam());
}

// Grouped heads through a window; and of causal ones, whose tiles are dealt out as they come.
TEST_P(EverySm100Attention, SharesKeysThroughAWindow) {
  AttentionSm100Config const& c = configuration(attention_sm100, GetParam());
  if (c.serving) GTEST_SKIP() << "attention_sm100_serving_test.cpp has it";
  SCOPED_TRACE(to_string(c));
  AttentionProblem p = {.dtype = c.dtype,
                        .out = c.out,
                        .head_dim = c.head_dim,
                        .head_dim_v = c.head_dim_v,
                        .batch = 2,
                        .heads = 4,
                        .kv_heads = 2,
                        .seq_q = 140,
                        .seq_k = 300,
                        .window_left = 100,
                        .window_right = 30,
                        .exponential = c.exponential};
  expect_correct(attention_sm100, blackwell(), p, GetParam());
  p.window_left = p.window_right = {}, p.causal = true;
  expect_correct(attention_sm100, blackwell({.multiprocessors = 3}), p, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Table, EverySm100Attention,
                         testing::Range(0,
                                        static_cast<int>(configurations(attention_sm100).size())));

TEST(AttentionSm100, IsCorrectAtUglySizes) {
  for (bool const causal : {false, true}) {
    for (int const seq_q : {1, 129, 257}) {
      for (int const seq_k : {1, 128})
        expect_correct(attention_sm100, blackwell(),
                       {.seq_q = seq_q, .seq_k = seq_k, .causal = causal});
    }
  }
}

TEST(AttentionSm100, SeesThroughWindows) {
  for (auto const& [left, right] : {std::pair{0, 0}, {100, 0}, {60, 70}}) {
    for (auto const& [seq_q, seq_k] : {std::pair{300, 300}, {40, 400}})
      expect_correct(attention_sm100, blackwell(),
                     {.seq_q = seq_q, .seq_k = seq_k, .window_left = left, .window_right = right});
  }
}

TEST(AttentionSm100, CapsScoresAndTakesSinks) {
  std::vector<float> const sinks = {0.0f, 3.0f, 1000.0f, -__builtin_inff()};
  for (float const softcap : {0.0f, 1.0f, 30.0f})
    expect_correct(attention_sm100, blackwell(),
                   {.heads = 4,
                    .kv_heads = 2,
                    .seq_q = 70,
                    .seq_k = 150,
                    .causal = true,
                    .softcap = softcap,
                    .sink = sinks});
}

TEST(AttentionSm100, SharesKeysAmongGroupedHeads) {
  for (bool const head_major : {false, true})
    expect_correct(attention_sm100, blackwell(),
                   {.batch = 2,
                    .heads = 6,
                    .kv_heads = 2,
                    .seq_q = 33,
                    .seq_k = 170,
                    .causal = head_major,
                    .head_major = head_major,
                    .padding = 8});
}

// The tiles of a causal mask are dealt out dynamically, and have different numbers of blocks.
TEST(AttentionSm100, WalksMoreTilesThanThereAreCtas) {
  for (bool const causal : {false, true})
    expect_correct(
        attention_sm100, blackwell({.multiprocessors = 2}),
        {.batch = 2, .heads = 3, .kv_heads = 1, .seq_q = 400, .seq_k = 300, .causal = causal});
}

TEST(AttentionSm100, PadsHeadDims) {
  for (auto const& [dim, dim_v] :
       {std::pair{8, 8}, {40, 64}, {64, 24}, {72, 72}, {128, 64}, {192, 128}, {136, 72}})
    expect_correct(attention_sm100, blackwell(),
                   {.head_dim = dim, .head_dim_v = dim_v, .seq_q = 70, .seq_k = 90});
}

// Of the first two tiles of Q, all rows see no key: nothing is multiplied.
TEST(AttentionSm100, GivesZeroAndMinusInfinityToRowsThatSeeNoKey) {
  AttentionProblem const p{.head_dim = 64, .seq_q = 450, .seq_k = 3, .causal = true};
  AttentionResult const r = expect_correct(attention_sm100, blackwell(), p);
  for (int i = 0; i < p.seq_q - p.seq_k; ++i) {
    EXPECT_EQ(r.lse[static_cast<std::size_t>(i)], -__builtin_inff());
    for (int d = 0; d < p.head_dim; ++d)
      EXPECT_EQ(reference::element(r.o.data(), p.dtype, i * p.head_dim + d), 0.0);
  }
}

TEST(AttentionSm100, SurvivesAdversarialValues) {
  auto const huge = [](std::mt19937_64& random) { return 100.0f * normal(random); };
  auto const tiny = [](std::mt19937_64& random) { return 0x1p-22f * normal(random); };
  for (DType const dtype : {DType::bf16, DType::f16}) {
    auto with = [&](auto q, auto k, auto v) {
      AttentionProblem p{.dtype = dtype, .seq_q = 40, .seq_k = 300};
      p.q = q, p.k = k, p.v = v;
      return p;
    };
    for (AttentionProblem const& p :
         {with(huge, huge, normal), with(tiny, tiny, tiny), with(normal, normal, adversarial),
          with(adversarial, normal, normal), with(normal, adversarial, normal)})
      expect_correct(attention_sm100, blackwell(), p);
  }
}

TEST(AttentionSm100, KeepsWhatIsNotFinite) {
  expect_not_finite_values_kept(attention_sm100, blackwell(), {});
}

// Maxima that grow from block to block, so that O is rescaled: clean, and the same bits, whenever
// operations land and whoever runs; P with columns of its own, and over S.
TEST(AttentionSm100, IsTheSameAtEverySchedule) {
  using sim::Completion, sim::Interleaving;
  for (int const head_dim : {64, 128}) {
    AttentionProblem p{.head_dim = head_dim, .seq_q = 200, .seq_k = 260, .causal = true};
    p.q = p.k = [](std::mt19937_64& random) { return 3.0f * normal(random); };
    AttentionResult const first = expect_correct(attention_sm100, blackwell(), p);
    std::uint64_t seed = 0;
    for (auto const& [completion, interleaving] :
         {std::pair{Completion::first, Interleaving::round_robin},
          {Completion::last, Interleaving::one_warp_behind},
          {Completion::random, Interleaving::random},
          {Completion::random, Interleaving::random}}) {
      sim::Options const options{
          .completion = completion, .interleaving = interleaving, .seed = ++seed};
      AttentionResult const again = run_on(attention_sm100, blackwell(options), p);
      EXPECT_EQ(first.o, again.o) << to_string(completion) << " " << to_string(interleaving);
      EXPECT_EQ(first.lse, again.lse);
    }
  }
}

// Blocks of keys that come round the stages: its every wait is for one thing.
TEST(AttentionSm100, HasOneOrder) {
  Machine const machine = blackwell();
  for (int const head_dim : {64, 128}) {
    AttentionProblem const p{.head_dim = head_dim, .seq_q = 200, .seq_k = 128 * 3};
    sim::Exploration const e =
        explore(machine, [&] { return run_on(attention_sm100, machine, p).o; });
    EXPECT_TRUE(e.complete && e.ok()) << e.text();
    EXPECT_EQ(e.orders, 1) << e.text();
    EXPECT_FALSE(e.accesses) << "no two accesses are left unordered";
  }
}
// Two CTAs draw three tiles of a causal mask from a counter, in whichever order they come.
TEST(AttentionSm100, TilesDrawnByTwoCtasAreRightInEveryOrder) {
  Machine const machine = blackwell({.multiprocessors = 2});
  AttentionProblem const p{
      .head_dim = 64, .heads = 3, .kv_heads = 1, .seq_q = 9, .seq_k = 9, .causal = true};
  sim::Exploration const e = explore(
      machine, [&] { return run_on(attention_sm100, machine, p).o; }, 200);
  EXPECT_TRUE(e.complete && e.ok()) << e.text();
  EXPECT_GT(e.orders, 1) << e.text();
}

// What orders the roles is needed: without it the checker finds something, or the result is wrong.
// One CTA, five pairs of tiles of which three see no keys, blocks of keys more than once round the
// stages. One statement is implied by another: the fence of who multiplies after its wait for P, by
// the one after its wait for O.
TEST(AttentionSm100, EveryRemovedFenceWaitArrivalAndCommitIsFound) {
  AttentionProblem p{.head_dim = 128, .seq_q = 1100, .seq_k = 384, .causal = true};
  p.q = p.k = [](std::mt19937_64& random) { return 3.0f * normal(random); };
  Survivors const mutants = survivors_of([&](sim::Options options, sim::Report* report) {
    options.multiprocessors = 1;
    Machine const machine = blackwell(options);
    AttentionResult const result = run_on(attention_sm100, machine, p);
    if (report != nullptr) *report = *machine.last_report();
    return std::pair(result.o, result.lse);
  });
  EXPECT_EQ(mutants.survivors, std::vector{Operation::tcgen05_fence});
  EXPECT_GE(mutants.count, 20);
}

TEST(AttentionSm100, IsChosenOnASimulatedBlackwell) {
  run_by(blackwell(), {.seq_q = 10, .seq_k = 10}, [&](AttentionArguments const& a) {
    Machine const machine = blackwell();
    EXPECT_EQ(choose_attention(a, machine.properties()).kernel, FamilyId(attention_sm100));
    AttentionArguments packed = a;
    int const lengths[] = {10};
    packed.seqused_k = lengths;
    AttentionChoice const choice = choose_attention(packed, machine.properties());
    EXPECT_EQ(choice.kernel, FamilyId(attention_sm100));
    EXPECT_TRUE(configuration(attention_sm100, choice.configuration).serving);
  });
}

sim::Trace traced(AttentionProblem const& p) {
  Machine const machine =
      blackwell({.trace = sim::TraceOptions{.timing = sim::timing_of(sim::Generation::sm100)}});
  run_on(attention_sm100, machine, p);
  return *machine.last_report()->trace;
}
double busy(sim::Trace const& trace, std::string const& track, sim::SpanKind kind, double from) {
  double sum = 0;
  for (sim::TraceSpan const& span : trace.spans)
    if (trace.tracks[static_cast<std::size_t>(span.track)].name == track && span.kind == kind)
      sum += std::max(0.0, span.end - std::max(from, span.begin));
  return sum;
}

// From the arrival of the first V to the last product but one, exponentials, correction and loads
// lie under the products: the tensor core, at 4096 multiply-adds a cycle, never waits. The last
// product waits for the last softmax.
TEST(AttentionSm100, KeepsTheTensorCoreBusy) {
  constexpr int blocks = 6;
  sim::Trace const trace = traced({.head_dim = 128, .seq_q = 256, .seq_k = 128 * blocks});
  double const each = 128.0 * 128 * 128 / 4096, products = 2 * 2 * blocks;
  EXPECT_NEAR(busy(trace, "tensor core", sim::SpanKind::tensor, 0), products * each, 1);
  std::vector<double> begins, ends;
  for (sim::TraceSpan const& span : trace.spans) {
    if (trace.tracks[static_cast<std::size_t>(span.track)].name != "tensor core") continue;
    begins.push_back(span.begin), ends.push_back(span.end);
  }
  std::sort(ends.begin(), ends.end());
  ASSERT_GE(ends.size(), 2u);
  double const last = ends[ends.size() - 2];
  double const from = last - (products - 3) * each;  // behind the first S of both tiles
  EXPECT_NEAR(busy(trace, "tensor core", sim::SpanKind::tensor, from) - each, last - from,
              0.01 * (last - from));
  for (char const* const role : {"softmax 0", "softmax 1"})
    EXPECT_GT(busy(trace, role, sim::SpanKind::exponentials, 0), blocks * 128 * 0.75 * 32 / 4)
        << role << ": three of four by ex2, a warp on each scheduler";
  for (char const* const role :
       {"load", "mma", "softmax 0", "softmax 1", "correction", "epilogue", "empty"})
    EXPECT_GT(busy(trace, role, sim::SpanKind::wait, 0), 0) << role;
}

/// The configuration of a type, at head dim 128, with so many of eight exponentials by polynomial.
int configuration_of(DType type, int polynomials) {
  auto const all = configurations(attention_sm100);
  auto const found = std::ranges::find_if(all, [&](AttentionSm100Config const& c) {
    return c.dtype == type && c.head_dim == 128 && c.polynomials == polynomials && !c.serving &&
           c.exponential == Exponential::ex2_approx;
  });
  return static_cast<int>(found - all.begin());
}

// The table of docs/blackwell_attention.md: what one more block of keys takes of the tensor core,
// of shared memory and of the special-function unit, for a tile of Q at head dim 128.
TEST(AttentionSm100, TakesOfTheUnitsWhatTheModelSays) {
  // f16 without polynomials, bf16 with two of eight: what a quick build has.
  for (auto const& [type, polynomials, exponentials] :
       {std::tuple(DType::f16, 0, 1024), {DType::bf16, 2, 768}}) {
    auto const of = [type = type, polynomials = polynomials](int blocks) {
      Machine const machine = blackwell();
      AttentionProblem const p{.dtype = type, .head_dim = 128, .seq_q = 256, .seq_k = 128 * blocks};
      run_on(attention_sm100, machine, p, configuration_of(type, polynomials));
      return *machine.last_report();
    };
    sim::Report const more = of(3), less = of(2);
    sim::LineCounters const products = more.instruction("tcgen05.mma"),
                            fewer = less.instruction("tcgen05.mma");
    // of a cycle
    constexpr int tiles = 2, multiply_adds = 4096, shared_bytes = 128, special_functions = 16;
    EXPECT_EQ((products.fused_multiply_adds - fewer.fused_multiply_adds) / tiles / multiply_adds,
              1024);
    EXPECT_EQ((products.shared_bytes - fewer.shared_bytes) / tiles / shared_bytes, 768);
    EXPECT_EQ((more.special_functions - less.special_functions) / tiles / special_functions,
              exponentials);
  }
}

}  // namespace
}  // namespace tegula
