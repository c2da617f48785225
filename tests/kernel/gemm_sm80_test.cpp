// The GEMM kernel against float64: every configuration, ragged sizes, leading dimensions and
// alignments, epilogues, adversarial values; without bank conflicts.

#include <set>
#include <utility>

#include "gemm_problem.hpp"

namespace tegula {
namespace {

/// Each configuration of the table, at a problem that reaches over the edge of its tiles.
class EverySm80Configuration : public testing::TestWithParam<int> {};

TEST_P(EverySm80Configuration, IsCorrectOverTheEdgesOfItsTiles) {
  GemmConfig const c = configuration(gemm_sm80, GetParam());
  Machine const machine = test_machine();
  int const ragged = c.vector_bytes == 16 ? 8 : 3;
  GemmProblem const p{.in = c.in,
                      .out = c.out,
                      .a_major = c.a_major,
                      .b_major = c.b_major,
                      .m = c.block_m + ragged,
                      .n = c.block_n / 2 + ragged,
                      .k = c.block_k * c.stages + ragged,
                      .padding = ragged,
                      .alpha = 0.5f,
                      .beta = -2,
                      .bias = true,
                      .constraints = {.kernel = gemm_sm80, .configuration = GetParam()}};
  expect_correct(machine, p);
}

INSTANTIATE_TEST_SUITE_P(Table, EverySm80Configuration,
                         testing::Range(0, static_cast<int>(configurations(gemm_sm80).size())),
                         [](auto const& info) {
                           std::string name = to_string(configuration(gemm_sm80, info.param));
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return std::to_string(info.param) + "_" + name;
                         });

TEST(GemmSm80, IsCorrectAtUglySizes) {
  Machine const machine = test_machine();
  for (int const m : {1, 127, 129}) {
    for (int const n : {1, 13, 128}) {
      for (int const k : {1, 7, 31, 32, 33, 97}) expect_correct(machine, {.m = m, .n = n, .k = k});
    }
  }
  expect_correct(machine, {.m = 239, .n = 1, .k = 8});
  expect_correct(machine, {.m = 65, .n = 66, .k = 1024});
}

TEST(GemmSm80, TakesAnyAlignment) {
  Machine const machine = test_machine();
  for (int const padding : {0, 1, 2, 4, 8}) {
    for (int const offset : {0, 1, 8}) {
      expect_correct(machine,
                     {.m = 40, .n = 24, .k = 64, .padding = padding, .offset = offset, .beta = 1});
    }
  }
}

TEST(GemmSm80, AddsNothingThatWasNotAskedFor) {
  Machine const machine = test_machine();
  auto const nan = [](std::mt19937_64&) { return __builtin_nanf(""); };
  GemmProblem p{.in = DType::f16, .out = DType::f32, .m = 20, .n = 30, .k = 40};
  p.c = nan;  // beta is 0: C is not read
  expect_correct(machine, p);
  p.alpha = 0, p.beta = 3, p.c = normal;
  expect_correct(machine, p);
  for (DType const type : {DType::f16, DType::bf16})
    expect_correct(machine, {.in = type, .m = 20, .n = 30, .k = 40, .alpha = -1, .bias = true});
}

TEST(GemmSm80, SurvivesAdversarialValues) {
  Machine const machine = test_machine();
  std::set<std::pair<DType, DType>> types;
  for (GemmConfig const& c : configurations(gemm_sm80))
    if (c.vector_bytes == 16 && c.a_major == Major::k && c.b_major == Major::k)
      types.emplace(c.in, c.out);
  EXPECT_GE(types.size(), 3u);
  for (auto const& [in, out] : types) {
    GemmProblem p{.in = in, .out = out, .m = 70, .n = 50, .k = 80};
    p.a = adversarial;
    expect_correct(machine, p);
    p.b = [](std::mt19937_64& random) { return 0x1p-20f * normal(random); };
    expect_correct(machine, p);
  }
}

// Small integers make every sum exact, so the result must be too.
TEST(GemmSm80, IsExactOnSmallIntegers) {
  Machine const machine = test_machine();
  auto const integer = [](std::mt19937_64& random) {
    return static_cast<float>(static_cast<int>(random() % 9) - 4);
  };
  GemmProblem p{.in = DType::f16, .out = DType::f32, .m = 130, .n = 140, .k = 300};
  p.a = p.b = integer;
  GemmResult const r = run(machine, p);
  auto const exact = reference::gemm(r.host, reference::some_rows(p.m, p.m));
  for (std::int64_t i = 0; i < std::int64_t{p.m} * p.n; ++i) {
    ASSERT_EQ(reference::element(r.d.data(), p.out, i), exact.value[static_cast<std::size_t>(i)])
        << "element " << i;
  }
}

TEST(GemmSm80, HasNoBankConflicts) {
  int kernels = 0;
  for (int i = 0; i < static_cast<int>(configurations(gemm_sm80).size()); ++i) {
    GemmConfig const& c = configuration(gemm_sm80, i);
    if (c.in != DType::bf16 || c.vector_bytes != 16 || c.block_n != 128) continue;
    ++kernels;
    Machine const machine = Machine::simulated(Arch::sm80);
    run(machine, {.in = c.in,
                  .out = c.out,
                  .a_major = c.a_major,
                  .b_major = c.b_major,
                  .m = 128,
                  .n = 128,
                  .k = 128,
                  .constraints = {.kernel = gemm_sm80, .configuration = i}});
    EXPECT_EQ(machine.last_report()->total.bank_conflicts, 0) << machine.last_report()->text();
  }
  EXPECT_GE(kernels, 4) << "all majors";
}

}  // namespace
}  // namespace tegula
