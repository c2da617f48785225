// The attention kernel against float64: every configuration, ragged sizes, strides, grouped heads,
// adversarial values; without bank conflicts.

#include <algorithm>
#include <iterator>

#include "attention_problem.hpp"

namespace tegula {
namespace {

/// Each configuration of the table, at a problem that reaches over the edge of its tiles.
class EverySm80Attention : public testing::TestWithParam<int> {};

TEST_P(EverySm80Attention, IsCorrectOverTheEdgesOfItsTiles) {
  AttentionConfig const c = configuration(attention_sm80, GetParam());
  Machine const machine = test_machine();
  expect_correct(attention_sm80, machine,
                 {.dtype = c.dtype,
                  .head_dim = c.head_dim,
                  .seq_q = c.block_m + 5,
                  .seq_k = 2 * c.block_n + 9,
                  .causal = c.causal,
                  .exponential = c.exponential},
                 GetParam());
}

INSTANTIATE_TEST_SUITE_P(Table, EverySm80Attention,
                         testing::Range(0, static_cast<int>(configurations(attention_sm80).size())),
                         [](auto const& info) {
                           std::string name = to_string(configuration(attention_sm80, info.param));
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return std::to_string(info.param) + "_" + name;
                         });

/// The smallest head dimension that this build has a kernel of.
int smallest_head_dim(DType dtype, bool causal) {
  int smallest = attention_head_dims[std::size(attention_head_dims) - 1];
  for (AttentionConfig const& c : configurations(attention_sm80))
    if (c.dtype == dtype && c.causal == causal && c.exponential == Exponential::ex2_approx)
      smallest = std::min(smallest, c.head_dim);
  return smallest;
}

TEST(AttentionSm80, IsCorrectAtUglySizes) {
  Machine const machine = test_machine();
  for (bool const causal : {false, true}) {
    int const head_dim = smallest_head_dim(DType::bf16, causal);
    for (int const seq_q : {1, 2, 17, 127, 128, 129}) {
      for (int const seq_k : {1, 7, 63, 64, 65, 131}) {
        expect_correct(attention_sm80, machine,
                       {.head_dim = head_dim, .seq_q = seq_q, .seq_k = seq_k, .causal = causal});
      }
    }
  }
}

TEST(AttentionSm80, SharesKeysAmongGroupedHeads) {
  Machine const machine = test_machine();
  for (int const kv_heads : {1, 2, 6}) {
    for (bool const head_major : {false, true}) {
      expect_correct(attention_sm80, machine,
                     {.dtype = DType::f16,
                      .head_dim = smallest_head_dim(DType::f16, true),
                      .batch = 2,
                      .heads = 6,
                      .kv_heads = kv_heads,
                      .seq_q = 33,
                      .seq_k = 70,
                      .causal = true,
                      .head_major = head_major,
                      .padding = 8});
    }
  }
}

TEST(AttentionSm80, GivesZeroAndMinusInfinityToRowsThatSeeNoKey) {
  Machine const machine = test_machine();
  AttentionProblem const p{.head_dim = 64, .seq_q = 150, .seq_k = 3, .causal = true};
  AttentionResult const r = expect_correct(attention_sm80, machine, p);
  for (int i = 0; i < p.seq_q - p.seq_k; ++i) {
    EXPECT_EQ(r.lse[static_cast<std::size_t>(i)], -__builtin_inff());
    for (int d = 0; d < p.head_dim; ++d)
      EXPECT_EQ(reference::element(r.o.data(), p.dtype, i * p.head_dim + d), 0.0);
  }
}

TEST(AttentionSm80, KeepsWhatIsNotFinite) {
  expect_not_finite_values_kept(attention_sm80, test_machine(), {});
}

TEST(AttentionSm80, SurvivesAdversarialValues) {
  Machine const machine = test_machine();
  auto const equal = [](std::mt19937_64&) { return 0.5f; };
  auto const huge = [](std::mt19937_64& random) { return 100.0f * normal(random); };
  auto const tiny = [](std::mt19937_64& random) { return 0x1p-22f * normal(random); };
  int kernels = 0;
  for (AttentionConfig const& c : configurations(attention_sm80)) {
    if (c.head_dim != 64 || c.causal) continue;
    ++kernels;
    auto const with = [&](auto q, auto k, auto v) {
      AttentionProblem p{.dtype = c.dtype,
                         .head_dim = 64,
                         .seq_q = 40,
                         .seq_k = 150,
                         .exponential = c.exponential};
      p.q = q, p.k = k, p.v = v;
      return p;
    };
    expect_correct(attention_sm80, machine, with(equal, equal, normal));
    expect_correct(attention_sm80, machine, with(huge, huge, normal));
    expect_correct(attention_sm80, machine, with(tiny, tiny, tiny));
    expect_correct(attention_sm80, machine, with(normal, normal, adversarial));
    expect_correct(attention_sm80, machine, with(adversarial, normal, normal));
    expect_correct(attention_sm80, machine, with(normal, adversarial, normal));
  }
  EXPECT_GE(kernels, 2) << "f16 and bf16";
}

TEST(AttentionSm80, HasNoBankConflicts) {
  for (int const head_dim : {32, 64, 96, 128, 256}) {
    Machine const machine = Machine::simulated(Arch::sm80);
    run_on(attention_sm80, machine, {.head_dim = head_dim, .seq_q = 128, .seq_k = 128});
    EXPECT_EQ(machine.last_report()->total.bank_conflicts, 0) << "head_dim " << head_dim << "\n"
                                                              << machine.last_report()->text();
  }
}

TEST(AttentionSm80, DeclaresTheSectorsThatItNeeds) {
  for (auto const& [head_dim, rows] : {std::pair(32, 8), {64, 4}, {96, 8}, {128, 4}, {256, 4}}) {
    // Rows of the second head begin in the middle of a sector.
    AttentionProblem p{
        .head_dim = head_dim, .heads = 2, .kv_heads = 2, .seq_q = 40, .seq_k = 40, .padding = 8};
    auto const run_with = [&](int excess_sectors) {
      sim::Options options;
      options.limits.excess_sectors = excess_sectors;
      run_on(attention_sm80, Machine::simulated(Arch::sm80, options), p);
    };
    EXPECT_NO_THROW(run_with(-1)) << head_dim << ": what the kernel declares";
    EXPECT_THROW(run_with(rows - 1), sim::CheckError) << head_dim;
    p.padding = 0;
    EXPECT_NO_THROW(run_with(0)) << head_dim << ", aligned";
  }
}

}  // namespace
}  // namespace tegula
