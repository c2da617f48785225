// The Blackwell attention kernel on operands of e4m3 against float64, on the simulated machine
// alone: ragged sizes, factors, masks, grouped heads, padded head dims, adversarial values; at
// several schedules.

#include <random>
#include <tuple>
#include <utility>

#include "attention_problem.hpp"

namespace tegula {
namespace {

AttentionProblem of_e4m3(AttentionProblem p) {
  p.dtype = DType::e4m3;
  return p;
}
/// Held against float64 on a simulated Blackwell.
AttentionResult expect_correct_e4m3(AttentionProblem const& p, sim::Options const& options = {}) {
  return expect_correct(attention_sm100, Machine::simulated(Arch::sm100, options), of_e4m3(p));
}

TEST(AttentionSm100Fp8, IsCorrectAtUglySizes) {
  for (bool const causal : {false, true})
    for (int const seq_q : {1, 130, 257})
      for (int const seq_k : {1, 129, 300})
        expect_correct_e4m3({.head_dim = 128, .seq_q = seq_q, .seq_k = seq_k, .causal = causal});
}

TEST(AttentionSm100Fp8, StoresEitherType) {
  for (DType const out : {DType::f16, DType::bf16})
    expect_correct_e4m3({.out = out, .head_dim = 64, .seq_q = 70, .seq_k = 300});
}

TEST(AttentionSm100Fp8, MultipliesWithFactorsOfTensorsAndOfHeads) {
  AttentionProblem p = {
      .batch = 2, .heads = 4, .kv_heads = 2, .seq_q = 70, .seq_k = 200, .causal = true};
  p.q_descale = {0.5f}, p.k_descale = {3.0f}, p.v_descale = {0x1p-10f};
  expect_correct_e4m3(p);
  p.q_descale = {0.5f, 1.0f, 0.25f, 2.0f}, p.k_descale = {1.0f, 0.1f, 2.0f, 0.3f},
  p.v_descale = {1.0f, 0x1p10f, 0.0f, -3.0f};
  expect_correct_e4m3(p);
  p.softcap = 2.0f;
  expect_correct_e4m3(p);
}

TEST(AttentionSm100Fp8, HasWindowsSoftcapsAndSinks) {
  for (auto const& [left, right] : {std::pair{100, 0}, {60, 70}})
    expect_correct_e4m3(
        {.head_dim = 128, .seq_q = 300, .seq_k = 300, .window_left = left, .window_right = right});
  expect_correct_e4m3({.heads = 3,
                       .seq_q = 70,
                       .seq_k = 200,
                       .causal = true,
                       .softcap = 1.0f,
                       .sink = {0.0f, 1000.0f, -__builtin_inff()}});
}

TEST(AttentionSm100Fp8, PadsHeadDims) {
  for (auto const& [dim, dim_v] : {std::pair{16, 16}, {48, 64}, {80, 112}})
    expect_correct_e4m3({.head_dim = dim, .head_dim_v = dim_v, .seq_q = 70, .seq_k = 90});
}

TEST(AttentionSm100Fp8, SurvivesAdversarialValues) {
  auto const equal = [](std::mt19937_64&) { return 0.5f; };
  auto const huge = [](std::mt19937_64& random) { return 100.0f * normal(random); };
  auto const tiny = [](std::mt19937_64& random) { return 0x1p-8f * normal(random); };
  auto const expect = [](auto q, auto k, auto v) {
    AttentionProblem p{.head_dim = 128, .seq_q = 40, .seq_k = 300};
    p.q = q, p.k = k, p.v = v;
    expect_correct_e4m3(p);
  };
  expect(equal, equal, normal);
  expect(huge, huge, normal);
  expect(tiny, tiny, tiny);
  expect(normal, normal, adversarial);
  expect(adversarial, normal, normal);
}

// Maxima that grow, so that O is rescaled; more than once round the stages.
TEST(AttentionSm100Fp8, IsTheSameAtEverySchedule) {
  using sim::Completion, sim::Interleaving;
  AttentionProblem p{.head_dim = 128, .seq_q = 200, .seq_k = 600, .causal = true};
  p.q = p.k = [](std::mt19937_64& random) { return 3.0f * normal(random); };
  AttentionResult const first = expect_correct_e4m3(p);
  for (auto const& [completion, interleaving, seed] :
       {std::tuple{Completion::first, Interleaving::round_robin, 1},
        {Completion::last, Interleaving::one_warp_behind, 2},
        {Completion::random, Interleaving::random, 3},
        {Completion::random, Interleaving::random, 4}}) {
    sim::Options const options{.completion = completion,
                               .interleaving = interleaving,
                               .seed = static_cast<std::uint64_t>(seed)};
    AttentionResult const again =
        run_on(attention_sm100, Machine::simulated(Arch::sm100, options), of_e4m3(p));
    EXPECT_EQ(first.o, again.o) << "seed " << seed;
    EXPECT_EQ(first.lse, again.lse) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tegula
