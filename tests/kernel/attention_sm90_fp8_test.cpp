// The Hopper attention kernel on operands of e4m3 against float64: factors, masks, ragged sizes,
// strides, grouped heads, padded head dims, adversarial values; and how much of its error is that
// of rounding P.

#include <cmath>

#include "attention_problem.hpp"

namespace tegula {
namespace {

AttentionProblem e4m3(AttentionProblem p) {
  p.dtype = DType::e4m3;
  return p;
}

TEST(AttentionSm90Fp8, IsCorrectAtUglySizes) {
  Machine const machine = test_machine();
  for (bool const causal : {false, true}) {
    for (int const seq_q : {1, 63, 130, 193}) {
      for (int const seq_k : {1, 15, 17, 159, 161, 321})
        expect_correct(attention_sm90, machine,
                       e4m3({.head_dim = 128, .seq_q = seq_q, .seq_k = seq_k, .causal = causal}));
    }
  }
}

TEST(AttentionSm90Fp8, IsCorrectWithTheTensorCoresSums) {
  Machine const machine = test_machine();
  for (bool const causal : {false, true}) {
    for (int const seq_k : {1, 223, 225, 449})
      expect_correct(attention_sm90, machine,
                     e4m3({.head_dim = 128,
                           .heads = 2,
                           .kv_heads = 1,
                           .seq_q = 150,
                           .seq_k = seq_k,
                           .causal = causal,
                           .softcap = causal ? 5.0f : 0.0f,
                           .precise = false}));
  }
}

TEST(AttentionSm90Fp8, StoresEitherType) {
  for (DType const out : {DType::f16, DType::bf16})
    expect_correct(attention_sm90, test_machine(),
                   e4m3({.out = out, .head_dim = 128, .seq_q = 70, .seq_k = 300}));
}

TEST(AttentionSm90Fp8, MultipliesWithFactorsOfTensorsAndOfHeads) {
  Machine const machine = test_machine();
  AttentionProblem p =
      e4m3({.batch = 2, .heads = 4, .kv_heads = 2, .seq_q = 70, .seq_k = 200, .causal = true});
  p.q_descale = {0.5f}, p.k_descale = {3.0f}, p.v_descale = {0x1p-10f};
  expect_correct(attention_sm90, machine, p);
  p.q_descale = {}, p.k_descale = {};
  expect_correct(attention_sm90, machine, p);
  p.q_descale = {0.5f, 1.0f, 0.25f, 2.0f}, p.k_descale = {1.0f, 0.1f, 2.0f, 0.3f},
  p.v_descale = {1.0f, 0x1p10f, 0.0f, -3.0f};
  expect_correct(attention_sm90, machine, p);
  p.softcap = 2.0f;
  expect_correct(attention_sm90, machine, p);
}

TEST(AttentionSm90Fp8, HasTheMasksSoftcapAndSinksOf16Bits) {
  Machine const machine = test_machine();
  for (auto const& [left, right] : {std::pair{0, 0}, {100, 0}, {60, 70}, {0, 100}}) {
    for (auto const& [seq_q, seq_k] : {std::pair{300, 300}, {40, 400}, {300, 60}})
      expect_correct(attention_sm90, machine,
                     e4m3({.head_dim = 128,
                           .seq_q = seq_q,
                           .seq_k = seq_k,
                           .window_left = left,
                           .window_right = right}));
  }
  expect_correct(attention_sm90, machine,
                 e4m3({.heads = 3,
                       .seq_q = 70,
                       .seq_k = 200,
                       .causal = true,
                       .softcap = 1.0f,
                       .sink = {0.0f, 1000.0f, -__builtin_inff()}}));
}

TEST(AttentionSm90Fp8, SharesKeysAndTakesAnyOrderOfAxes) {
  Machine const machine = test_machine();
  for (int const kv_heads : {1, 2}) {
    for (bool const head_major : {false, true})
      expect_correct(attention_sm90, machine,
                     e4m3({.batch = 2,
                           .heads = 4,
                           .kv_heads = kv_heads,
                           .seq_q = 33,
                           .seq_k = 170,
                           .head_major = head_major,
                           .padding = 16}));
  }
}

TEST(AttentionSm90Fp8, WalksMoreBlocksThanThereAreCtas) {
  sim::Options options;
  options.multiprocessors = 3;
  for (bool const causal : {false, true})
    expect_correct(attention_sm90, Machine::simulated(Arch::sm90, options),
                   e4m3({.head_dim = 128,
                         .batch = 2,
                         .heads = 2,
                         .seq_q = 400,
                         .seq_k = 600,
                         .causal = causal}));
}

TEST(AttentionSm90Fp8, PadsHeadDims) {
  Machine const machine = test_machine();
  for (auto const& [dim, dim_v] : {std::pair{16, 16}, {48, 64}, {80, 112}, {144, 160}, {192, 128}})
    expect_correct(attention_sm90, machine,
                   e4m3({.head_dim = dim, .head_dim_v = dim_v, .seq_q = 70, .seq_k = 90}));
}

TEST(AttentionSm90Fp8, GivesZeroAndMinusInfinityToRowsThatSeeNoKey) {
  AttentionProblem const p = e4m3({.head_dim = 64, .seq_q = 450, .seq_k = 3, .causal = true});
  AttentionResult const r = expect_correct(attention_sm90, test_machine(), p);
  EXPECT_EQ(r.lse[0], -__builtin_inff());
  EXPECT_EQ(reference::element(r.o.data(), DType::bf16, 0), 0.0);
}

TEST(AttentionSm90Fp8, SurvivesAdversarialValues) {
  Machine const machine = test_machine();
  auto const equal = [](std::mt19937_64&) { return 0.5f; };
  auto const huge = [](std::mt19937_64& random) { return 100.0f * normal(random); };
  auto const tiny = [](std::mt19937_64& random) { return 0x1p-8f * normal(random); };
  AttentionProblem const base = e4m3({.head_dim = 128, .seq_q = 40, .seq_k = 300});
  auto with = [&](auto q, auto k, auto v) {
    AttentionProblem p = base;
    p.q = q, p.k = k, p.v = v;
    return p;
  };
  expect_correct(attention_sm90, machine, with(equal, equal, normal));
  expect_correct(attention_sm90, machine, with(equal, equal, equal));
  expect_correct(attention_sm90, machine, with(huge, huge, normal));
  expect_correct(attention_sm90, machine, with(tiny, tiny, tiny));
  expect_correct(attention_sm90, machine, with(normal, normal, adversarial));
  expect_correct(attention_sm90, machine, with(adversarial, normal, normal));
  expect_correct(attention_sm90, machine, with(normal, adversarial, normal));
}

TEST(AttentionSm90Fp8, FollowsMaximaThatAreNegative) {
  Machine const machine = test_machine();
  for (bool const precise : {false, true}) {
    for (float const most : {2.0f, 1.0f, 0.05f}) {
      AttentionProblem p = e4m3({.head_dim = 128, .seq_q = 3, .seq_k = 700, .precise = precise});
      p.q = p.v = [](std::mt19937_64&) { return 1.0f; };  // O is 1: a lost P shows
      p.k = FallingKeys{most, p.head_dim, p.seq_k};
      expect_correct(attention_sm90, machine, p);
    }
  }
}

TEST(AttentionSm90Fp8, IsTheSameFromRunToRunAndAtEverySchedule) {
  AttentionProblem const p = e4m3(
      {.head_dim = 128, .heads = 2, .kv_heads = 1, .seq_q = 200, .seq_k = 700, .causal = true});
  AttentionResult const first = run(test_machine(), p);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    sim::Options options;
    options.seed = seed;
    AttentionResult const again = run(Machine::simulated(Arch::sm90, options), p);
    EXPECT_EQ(first.o, again.o);
    EXPECT_EQ(first.lse, again.lse);
  }
}

/// The root of the mean square of what makes O of a head differ from the exact one.
double rms(std::vector<double> const& o, std::vector<double> const& exact) {
  double sum = 0;
  for (std::size_t i = 0; i < o.size(); ++i) sum += (o[i] - exact[i]) * (o[i] - exact[i]);
  return std::sqrt(sum / static_cast<double>(o.size()));
}

/// The error of O in units of that which the roundings alone have that the format asks for: of P,
/// relative to its row's maximum, and of O.
double error_beside_roundings(AttentionProblem const& p) {
  AttentionResult const r = run_on(attention_sm90, test_machine(), p);
  reference::Attention const reference = reference::attention(r.host, rows_of(p));
  expect_near(p, r, reference);
  std::vector<double> const& exact = reference.o.value;
  auto const at = [&](std::vector<std::uint8_t> const& x, int row, int d) {
    return reference::element(x.data(), DType::e4m3, row * p.head_dim + d);
  };
  std::vector<double> ours, rounded;
  for (int i = 0; i < p.seq_q; ++i) {
    std::vector<double> s(static_cast<std::size_t>(p.seq_k)),
        o(static_cast<std::size_t>(p.head_dim));
    double largest = -1e30, sum = 0;
    for (int j = 0; j < p.seq_k; ++j) {
      double& score = s[static_cast<std::size_t>(j)];
      for (int d = 0; d < p.head_dim; ++d) score += at(r.q, i, d) * at(r.k, j, d);
      largest = std::max(largest, score /= std::sqrt(p.head_dim));
    }
    for (int j = 0; j < p.seq_k; ++j) {
      double const weight = 256 * std::exp(s[static_cast<std::size_t>(j)] - largest);
      double const narrow = to_float(to_float_e4m3(static_cast<float>(weight)));
      sum += weight;
      for (int d = 0; d < p.head_dim; ++d) o[static_cast<std::size_t>(d)] += narrow * at(r.v, j, d);
    }
    for (int d = 0; d < p.head_dim; ++d) {
      double const quotient = o[static_cast<std::size_t>(d)] / sum;
      rounded.push_back(to_float(to_bfloat16(static_cast<float>(quotient))));
      ours.push_back(reference::element(r.o.data(), DType::bf16, i * p.head_dim + d));
    }
  }
  return rms(ours, exact) / rms(rounded, exact);
}

// FlashAttention's criterion: at most twice the error of the same computation that has only the
// roundings which the format asks for.
TEST(AttentionSm90Fp8, ErrsAtMostTwiceAsMuchAsRoundingDoes) {
  AttentionProblem p = e4m3({.head_dim = 128, .seq_q = 64, .seq_k = 1000});
  for (bool const precise : {false, true}) {
    p.precise = precise;
    EXPECT_LE(error_beside_roundings(p), 2);
  }
}

// Values with a mean, whose sums grow with the keys: 13 bits lose some of them, f32 does not.
TEST(AttentionSm90Fp8, KeepsTheMeanOfManyValuesUnlessSumsAreFast) {
  AttentionProblem p = e4m3({.head_dim = 128, .seq_q = 16, .seq_k = 4000});
  p.v = [](std::mt19937_64& random) { return 0.5f + 0.25f * normal(random); };
  EXPECT_LE(error_beside_roundings(p), 2);
  p.precise = false;
  EXPECT_GT(error_beside_roundings(p), 4);
}

}  // namespace
}  // namespace tegula
