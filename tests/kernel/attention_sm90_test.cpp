// The Hopper attention kernel against float64: every configuration, every mask, ragged sizes,
// strides, grouped heads, head dims that are padded, softcap and sinks, adversarial values; without
// bank conflicts.

#include "attention_problem.hpp"

namespace tegula {
namespace {

/// Each configuration of the table, at problems that reach over the edges of its tiles.
class EverySm90Attention : public testing::TestWithParam<int> {};

TEST_P(EverySm90Attention, IsCorrectOverTheEdgesOfItsTiles) {
  AttentionSm90Config const c = configuration(attention_sm90, GetParam());
  if (c.serving) GTEST_SKIP() << "attention_serving_test.cpp has it";
  Machine const machine = test_machine();
  for (bool const causal : {false, true}) {
    AttentionProblem const p{.dtype = c.dtype,
                             .head_dim = c.head_dim,
                             .head_dim_v = c.head_dim_v,
                             .seq_q = block_m(c) + 5,
                             .seq_k = 2 * c.block_n + 9,
                             .causal = causal,
                             .precise = precise_of(c),
                             .exponential = c.exponential};
    expect_correct(attention_sm90, machine, p, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EverySm90Attention,
                         testing::Range(0, static_cast<int>(configurations(attention_sm90).size())),
                         [](auto const& info) {
                           std::string name = to_string(configuration(attention_sm90, info.param));
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return std::to_string(info.param) + "_" + name;
                         });

TEST(AttentionSm90, IsCorrectAtUglySizes) {
  Machine const machine = test_machine();
  for (bool const causal : {false, true}) {
    for (int const seq_q : {1, 17, 64, 191, 193}) {
      for (int const seq_k : {1, 7, 127, 128, 129, 257}) {
        AttentionProblem const p{.seq_q = seq_q, .seq_k = seq_k, .causal = causal};
        expect_correct(attention_sm90, machine, p);
      }
    }
  }
}

TEST(AttentionSm90, SeesThroughWindows) {
  Machine const machine = test_machine();
  for (auto const& [left, right] :
       {std::pair{0, 0}, {1, 0}, {100, 0}, {0, 100}, {60, 70}, {200, 200}, {128, 127}}) {
    for (auto const& [seq_q, seq_k] : {std::pair{100, 100}, {300, 300}, {40, 400}, {300, 60}})
      expect_correct(attention_sm90, machine,
                     {.seq_q = seq_q, .seq_k = seq_k, .window_left = left, .window_right = right});
  }
  expect_correct(attention_sm90, machine,
                 {.seq_q = 200, .seq_k = 300, .causal = true, .window_left = 30});
}

TEST(AttentionSm90, CapsScores) {
  Machine const machine = test_machine();
  for (float const softcap : {0.5f, 1.0f, 30.0f}) {
    for (Exponential const e : {Exponential::ex2_approx, Exponential::polynomial})
      expect_correct(
          attention_sm90, machine,
          {.seq_q = 70, .seq_k = 200, .causal = true, .softcap = softcap, .exponential = e});
  }
}

TEST(AttentionSm90, TakesSinks) {
  Machine const machine = test_machine();
  std::vector<float> const sinks = {0.0f, 3.0f, -5.0f, 1000.0f, -1000.0f, -__builtin_inff()};
  for (int const seq_k : {150, 5}) {  // with 5 keys, most rows see none of them
    expect_correct(
        attention_sm90, machine,
        {.heads = 6, .kv_heads = 3, .seq_q = 70, .seq_k = seq_k, .causal = true, .sink = sinks});
  }
}

TEST(AttentionSm90, SharesKeysAmongGroupedHeads) {
  Machine const machine = test_machine();
  for (int const kv_heads : {1, 2, 6}) {
    for (bool const head_major : {false, true}) {
      for (bool const causal : {false, true})
        expect_correct(attention_sm90, machine,
                       {.batch = 2,
                        .heads = 6,
                        .kv_heads = kv_heads,
                        .seq_q = 33,
                        .seq_k = 170,
                        .causal = causal,
                        .head_major = head_major,
                        .padding = 8});
    }
  }
}

TEST(AttentionSm90, WalksMoreBlocksThanThereAreCtas) {
  sim::Options options;
  options.multiprocessors = 3;
  Machine const machine = Machine::simulated(Arch::sm90, options);
  for (bool const causal : {false, true})
    expect_correct(
        attention_sm90, machine,
        {.batch = 2, .heads = 3, .kv_heads = 1, .seq_q = 400, .seq_k = 300, .causal = causal});
}

TEST(AttentionSm90, PadsHeadDims) {
  Machine const machine = test_machine();
  for (auto const& [dim, dim_v] : {std::pair{8, 8},
                                   {32, 32},
                                   {40, 64},
                                   {64, 24},
                                   {72, 72},
                                   {128, 64},
                                   {192, 128},
                                   {200, 56},
                                   {256, 256}})
    expect_correct(attention_sm90, machine,
                   {.head_dim = dim, .head_dim_v = dim_v, .seq_q = 70, .seq_k = 90});
}

TEST(AttentionSm90, GivesZeroAndMinusInfinityToRowsThatSeeNoKey) {
  Machine const machine = test_machine();
  AttentionProblem const p{.head_dim = 64, .seq_q = 450, .seq_k = 3, .causal = true};
  AttentionResult const r = expect_correct(attention_sm90, machine, p);
  for (int i = 0; i < p.seq_q - p.seq_k; ++i) {
    EXPECT_EQ(r.lse[static_cast<std::size_t>(i)], -__builtin_inff());
    for (int d = 0; d < p.head_dim; ++d)
      EXPECT_EQ(reference::element(r.o.data(), p.dtype, i * p.head_dim + d), 0.0);
  }
}

TEST(AttentionSm90, SurvivesAdversarialValues) {
  Machine const machine = test_machine();
  auto const equal = [](std::mt19937_64&) { return 0.5f; };
  auto const huge = [](std::mt19937_64& random) { return 100.0f * normal(random); };
  auto const tiny = [](std::mt19937_64& random) { return 0x1p-22f * normal(random); };
  for (auto const& [dtype, e] : {std::pair{DType::bf16, Exponential::polynomial},
                                 {DType::f16, Exponential::ex2_approx},
                                 {DType::bf16, Exponential::ex2_approx}}) {
    AttentionProblem const base{.dtype = dtype, .seq_q = 40, .seq_k = 300, .exponential = e};
    auto with = [&](auto q, auto k, auto v) {
      AttentionProblem p = base;
      p.q = q, p.k = k, p.v = v;
      return p;
    };
    expect_correct(attention_sm90, machine, with(equal, equal, normal));
    expect_correct(attention_sm90, machine, with(huge, huge, normal));
    expect_correct(attention_sm90, machine, with(tiny, tiny, tiny));
    expect_correct(attention_sm90, machine, with(normal, normal, adversarial));
    expect_correct(attention_sm90, machine, with(adversarial, normal, normal));
    expect_correct(attention_sm90, machine, with(normal, adversarial, normal));
  }
}

TEST(AttentionSm90, KeepsWhatIsNotFinite) {
  for (Exponential const e : {Exponential::ex2_approx, Exponential::polynomial})
    expect_not_finite_values_kept(attention_sm90, test_machine(), {.exponential = e});
}

TEST(AttentionSm90, FollowsMaximaThatAreNegative) {
  Machine const machine = test_machine();
  for (Exponential const e : {Exponential::ex2_approx, Exponential::polynomial}) {
    for (float const most : {4.0f, 1.0f, 0.05f}) {
      AttentionProblem p{.head_dim = 128, .seq_q = 3, .seq_k = 700, .exponential = e};
      p.q = p.v = [](std::mt19937_64&) { return 1.0f; };  // O is 1: a lost P shows
      p.k = FallingKeys{most, p.head_dim, p.seq_k};
      expect_correct(attention_sm90, machine, p);
    }
  }
}

TEST(AttentionSm90, IsTheSameFromRunToRunAndAtEverySchedule) {
  AttentionProblem const p{.heads = 2, .kv_heads = 1, .seq_q = 200, .seq_k = 260, .causal = true};
  AttentionResult const first = run(test_machine(), p);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    sim::Options options;
    options.seed = seed;
    AttentionResult const again = run(Machine::simulated(Arch::sm90, options), p);
    EXPECT_EQ(first.o, again.o);
    EXPECT_EQ(first.lse, again.lse);
  }
}

}  // namespace
}  // namespace tegula
