// scaled_gemm_sm100 (mxf8, mxf4, nvf4) against float64 from the quantised operands, on the
// simulated machine alone: every configuration, ragged sizes, several schedules, every order,
// mutants; and what it refuses.

#include <gmock/gmock.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "explore_kernel.hpp"
#include "gemm_sm100_problem.hpp"
#include "refusal.hpp"
#include "sm100_checks.hpp"

namespace tegula {
namespace {

/// What an operand's elements and scales stand for.
struct Quantized {
  DType type;
  BlockScale how;
  int k, ld;
  QuantizedBlocks bytes;

  double element(int row, int i) const {
    return reference::element(bytes.elements.data(), type, row * ld + i);
  }
  double scale(int row, int i) const {
    return reference::element(bytes.scales.data(), how.type,
                              block_scale_offset(row, i / how.block, scale_pieces_k(k, how.block)));
  }
};
Quantized quantized(DType type, BlockScale how, int rows, int k, int ld,
                    std::vector<float> const& values) {
  return {type, how, k, ld, quantize_blocks(type, how, rows, k, ld, values.data())};
}

// Within what a format can say: half a step of its elements, or of ue4m3 the scale's rounding too.
TEST(QuantizeBlocks, KeepsValuesWithinHalfAStep) {
  struct Format {
    DType type;
    BlockScale how;
    double relative, absolute;  // half a step: of a normal element, and of a subnormal one
  };
  for (Format const& f :
       {Format{DType::e4m3, kMxScale, 0x1p-4, 0x1p-10},
        Format{DType::e5m2, kMxScale, 0x1p-3, 0x1p-17}, Format{DType::e2m1, kMxScale, 0x1p-2, 0.25},
        Format{DType::e2m3, kMxScale, 0x1p-4, 0x1p-4},
        Format{DType::e3m2, kMxScale, 0x1p-3, 0x1p-5},
        Format{DType::e2m1, kNvScale, 0x1p-2, 0.25}}) {
    constexpr int rows = 130, k = 80, ld = 96;
    std::vector<float> values;
    for (int i = 0; i < rows * k; ++i)
      values.push_back(std::sin(static_cast<float>(i * i)) * std::exp2(static_cast<float>(i % 9)));
    Quantized const x = quantized(f.type, f.how, rows, k, ld, values);
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < k; ++i) {
        double const value = values[static_cast<std::size_t>(row * k + i)];
        double const scale = x.scale(row, i);
        // ue4m3 is at most 1/16 below what would bring the largest magnitude to 6: it is cut there.
        double const cut = f.how == kNvScale ? 1.0 / 16 : 0;
        EXPECT_LE(
            std::abs(x.element(row, i) * scale - value),
            std::max(f.relative * std::abs(value), f.absolute * scale) + cut * std::abs(value))
            << to_string(f.type) << ", row " << row << ", element " << i;
      }
    }
  }
}

TEST(QuantizeBlocks, ShowsNansAndKeepsZeros) {
  std::vector<float> values(64);
  values[40] = HUGE_VALF;
  Quantized const mx = quantized(DType::e4m3, kMxScale, 1, 64, 64, values);
  EXPECT_EQ(mx.scale(0, 0), 0x1p-127);
  EXPECT_EQ(mx.element(0, 31), 0);
  EXPECT_TRUE(std::isnan(mx.scale(0, 32)));
  Quantized const nv = quantized(DType::e2m1, kNvScale, 1, 64, 64, values);
  EXPECT_EQ(nv.scale(0, 0), 0);
  EXPECT_TRUE(std::isnan(nv.scale(0, 32)));
}

TEST(QuantizeBlocks, RefusesFormatsThatThereAreNot) {
  float const one = 1;
  auto const refusal = [&](DType type, BlockScale how, std::int64_t ld) {
    try {
      quantize_blocks(type, how, 1, 1, ld, &one);
    } catch (argument_error const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal(DType::e4m3, kNvScale, 2).find("the elements are e4m3 with a scale of ue4m3"),
            std::string::npos);
  EXPECT_NE(refusal(DType::bf16, kMxScale, 2).find("they must be"), std::string::npos);
  EXPECT_NE(refusal(DType::e2m1, kMxScale, 1).find("a multiple of 2"), std::string::npos);
  EXPECT_EQ(refusal(DType::e2m1, kMxScale, 2), "");
}

/// Magnitudes within a factor of 2^spread of each other, or so.
std::function<float(std::mt19937_64&)> spread_by(float spread) {
  return [spread](std::mt19937_64& random) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    return uniform(random) * std::exp2(spread * uniform(random));
  };
}

/// The number of the configuration of such operands and such a D, without an activation.
int configuration_of(DType a, DType out, BlockScale scale, int block_n = 128, int ctas = 1) {
  auto const all = configurations(scaled_gemm_sm100);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].a == a && all[i].b == a && all[i].out == out && all[i].scale == scale &&
        all[i].block_n == block_n && all[i].ctas == ctas && !all[i].activates)
      return static_cast<int>(i);
  return -1;
}
int mxf8() { return configuration_of(DType::e4m3, DType::bf16, kMxScale); }
int nvf4() { return configuration_of(DType::e2m1, DType::bf16, kNvScale); }
int pair() { return configuration_of(DType::e2m1, DType::bf16, kNvScale, 256, 2); }

GemmResult run_scaled(Machine const& machine, GemmProblem const& p, int number, int ctas) {
  return run_sm100(scaled_gemm_sm100, machine, p, number, ctas);
}

class EveryScaledConfiguration : public testing::TestWithParam<int> {};

// Over the edges of tiles, of stages and of pieces of scales; two tiles by a CTA go round the ring.
TEST_P(EveryScaledConfiguration, IsCorrectOverItsEdges) {
  ScaledGemmSm100Config const& c = configuration(scaled_gemm_sm100, GetParam());
  SCOPED_TRACE(to_string(c));
  // What TMA unpacks it takes by 128 elements.
  bool const unpacks = (bits(c.a) < 8 || bits(c.b) < 8) && !are_pairs(c.a, c.b);
  int const unit = unpacks ? 128 : 16 * packed(c.a), block = block_k(c);
  auto const whole = [&](int k) { return unpacks ? (k + unit - 1) / unit * unit : k; };
  struct Extents {
    int m, n, k;
    float spread;
  };
  Machine const machine = blackwell();
  for (auto const& [m, n, k, spread] :
       {Extents{c.ctas * 128 + 9, c.block_n + 8, block * (stages(c) / 2 + 1) + unit, 4},
        Extents{3, 131, block + 3 * unit + 2, 4}, Extents{130, 5, unit - 2, 12}}) {
    GemmProblem p = problem_for(c);
    p.m = m, p.n = n, p.k = whole(k);
    p.padding = unit;
    p.a = p.b = spread_by(spread);
    if (m > 128) p.alpha = 0.5f, p.beta = -2, p.bias = true, p.scale_a = 0.25f, p.scale_b = -3.0f;
    expect_near_exact(p, run_scaled(machine, p, GetParam(), 2));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, EveryScaledConfiguration,
    testing::Range(0, static_cast<int>(configurations(scaled_gemm_sm100).size())));

// By the entry point: elements of 4 bits beside those of 8, and of 6 bits.
TEST(ScaledGemmSm100, MultipliesElementsOfMixedTypes) {
  for (auto const& [a, b] : {std::pair{DType::e4m3, DType::e2m1}, {DType::e3m2, DType::e3m2}}) {
    GemmProblem p{.in = a, .in_b = b, .m = 150, .n = 40, .k = 384, .block_scale = kMxScale};
    p.aligned = true;
    Machine const machine = blackwell();
    expect_near_exact(p, run_by(machine, p, [&](GemmArguments const& g) { gemm(machine, g); }));
  }
}

// Matrices of a batch have scales of their own; one that serves all has one.
TEST(ScaledGemmSm100, ComputesBatches) {
  for (int const number : {mxf8(), nvf4()}) {
    ScaledGemmSm100Config const& c = configuration(scaled_gemm_sm100, number);
    GemmProblem p = problem_for(c);
    p.m = 130, p.n = 20, p.k = block_k(c) + 32, p.batch = 3;
    p.padding = 16 * packed(c.a);
    expect_near_exact(p, run_scaled(blackwell(), p, number, 2));
    p.one_b = true;
    expect_near_exact(p, run_scaled(blackwell(), p, number, 2));
  }
}

// One CTA computes three tiles.
TEST(ScaledGemmSm100, IsTheSameAtEverySchedule) {
  ScaledGemmSm100Config const& c = configuration(scaled_gemm_sm100, nvf4());
  GemmProblem p = problem_for(c);
  p.m = 2 * 128 + 5, p.n = 61, p.k = 2 * block_k(c) + 32;
  expect_near_exact(p, run_scaled(blackwell(), p, nvf4(), 1));
  expect_the_same_at_every_schedule(
      [&](Machine const& machine) { return run_scaled(machine, p, nvf4(), 1).d; }, 1);
}

// A pair computes two tiles of 256 x 256, with one tile's accumulators, and a batch.
TEST(ScaledGemmSm100, OfAPairIsTheSameAtEverySchedule) {
  ScaledGemmSm100Config const& c = configuration(scaled_gemm_sm100, pair());
  GemmProblem p = problem_for(c);
  p.m = 256 + 5, p.n = 200, p.k = block_k(c) + 32, p.batch = 2, p.padding = 32;
  auto const expected = run_scaled(blackwell(), p, pair(), 2);
  expect_near_exact(p, expected);
  using sim::Completion, sim::Interleaving;
  for (auto const& [completion, interleaving] :
       {std::pair{Completion::first, Interleaving::round_robin},
        {Completion::last, Interleaving::one_warp_behind},
        {Completion::random, Interleaving::random}}) {
    Machine const machine =
        blackwell({.completion = completion, .interleaving = interleaving, .seed = 5});
    EXPECT_EQ(run_scaled(machine, p, pair(), 2).d, expected.d)
        << to_string(completion) << ", " << to_string(interleaving);
  }
}

// Two steps of K by one CTA: every wait is for one thing, so there is one order.
TEST(ScaledGemmSm100, HasOneOrder) {
  ScaledGemmSm100Config const& c = configuration(scaled_gemm_sm100, mxf8());
  GemmProblem p = problem_for(c);
  p.m = 16, p.n = 64, p.k = 2 * block_k(c);
  Machine const machine = blackwell();
  sim::Exploration const e = explore(machine, [&] { return run_scaled(machine, p, mxf8(), 1).d; });
  EXPECT_TRUE(e.complete) << e.text();
  EXPECT_TRUE(e.ok()) << e.text();
  EXPECT_EQ(e.orders, 1) << e.text();
}

// What orders the scales is needed: without it the checker finds something, or the result is wrong.
TEST(ScaledGemmSm100, EveryRemovedCopyWaitAndCommitIsFound) {
  ScaledGemmSm100Config const& c = configuration(scaled_gemm_sm100, mxf8());
  GemmProblem p = problem_for(c);
  p.m = 3 * 128, p.n = 64, p.k = block_k(c) * (stages(c) + 1);
  expect_mutants_found([&](Machine const& machine) { return run_scaled(machine, p, mxf8(), 1).d; },
                       8, {Operation::tcgen05_cp});
}

// By the entry point: chosen, and no other kernel computes it.
TEST(ScaledGemmSm100, IsChosenForBlockScales) {
  Machine const machine = blackwell();
  GemmProblem p{.in = DType::e4m3, .m = 16, .n = 16, .k = 64, .block_scale = kMxScale};
  run_by(machine, p, [&](GemmArguments const& g) {
    check(g, 100);
    EXPECT_EQ(choose_gemm(g, machine.properties()).kernel, FamilyId(scaled_gemm_sm100));
    EXPECT_THROW(choose_gemm(g, machine.properties(), {.kernel = gemm_sm100}), argument_error);
    gemm(machine, g);
  });
}

// A description of the launch: elements of e2m1 are pairs.
TEST(ScaledGemmSm100, NamesWhatItReads) {
  Machine const machine = blackwell();
  GemmProblem p{.in = DType::e2m1, .m = 16, .n = 16, .k = 128, .block_scale = kNvScale};
  run_by(machine, p, [&](GemmArguments const& g) {
    GemmArguments unwritten = g;
    Buffer<std::uint8_t> const a(machine, 16 * 64, "unwritten");
    unwritten.a = a.data();
    auto const said = tegula::sentence<sim::CheckError>([&] { gemm(machine, unwritten); });
    EXPECT_THAT(said, testing::HasSubstr("row 0, pair 0"));
  });
}

// Each refusal names what is wrong, its value and what would be accepted.
TEST(ScaledGemmSm100, RefusesWhatIsNotBuilt) {
  auto const somewhere = [](std::uintptr_t i) { return reinterpret_cast<void*>(i << 44); };
  GemmArguments const good = {.in = DType::e2m1,
                              .b_major = Major::k,
                              .m = 100,
                              .n = 60,
                              .k = 64,
                              .a = somewhere(1),
                              .b = somewhere(2),
                              .d = somewhere(3),
                              .ldd = 64,
                              .block_scale = kNvScale,
                              .block_scale_a = somewhere(4),
                              .block_scale_b = somewhere(5)};
  ASSERT_NO_THROW(check(good, 100));
  auto const expect = [&](auto&& change, std::vector<std::string> const& parts,
                          int compute_capability = 100) {
    GemmArguments g = good;
    change(g);
    std::string const said =
        tegula::sentence<argument_error>([&] { check(g, compute_capability); });
    for (std::string const& part : parts) EXPECT_THAT(said, testing::HasSubstr(part));
  };
  expect([](auto&) {}, {"block_scale is ue4m3 for each 16", "sm_90", "sm_100 only"}, 90);
  expect(
      [](auto& g) {
        g.block_scale = {DType::ue8m0, 16};
      },
      {"block_scale is ue8m0 for each 16", "kMxScale (ue8m0 for each 32)"});
  expect([](auto& g) { g.block_scale = {}; }, {"in is e2m1", "kMxScale or kNvScale"});
  expect([](auto& g) { g.block_scale = {}, g.in = DType::e4m3; },
         {"block_scale_a is 0x", "null pointer"});
  expect([](auto& g) { g.in = DType::e4m3; }, {"in is e4m3, in_b is e4m3", "both must be e2m1"});
  expect([](auto& g) { g.block_scale = kMxScale, g.in_b = DType::e4m3; },
         {"k is 64 and a is e2m1, which TMA unpacks", "multiple of 128"});
  expect(
      [](auto& g) {
        g.block_scale = kMxScale, g.in = DType::e3m2, g.in_b = DType::e3m2;
        g.k = 128, g.lda = 192, g.ldb = 128;
      },
      {"lda is 192 elements of e3m2", "multiples of 32 bytes"});
  expect([](auto& g) { g.in = DType::e3m2; }, {"in is e3m2, in_b is e3m2", "both must be e2m1"});
  expect([](auto& g) { g.block_scale = {}, g.in = DType::e2m3; },
         {"in is e2m3 and there is no block_scale", "kMxScale"});
  expect([](auto& g) { g.block_scale = kMxScale, g.in = DType::bf16; }, {"in is bf16"});
  expect([](auto& g) { g.k = 63; }, {"k is 63", "even"});
  expect([](auto& g) { g.lda = 80; }, {"lda is 80 elements of 4 bits", "16 bytes"});
  expect([](auto& g) { g.a_major = Major::mn; }, {"a_major is Major::mn", "Major::k only"});
  expect([](auto& g) { g.block_scale_b = nullptr; }, {"block_scale_b is a null pointer"});
  expect([](auto& g) { g.block_scale_a = static_cast<char const*>(g.block_scale_a) + 8; },
         {"block_scale_a is", "16 bytes"});
  expect([](auto& g) { g.block_scale_a = g.d; }, {"d and block_scale_a are the same pointer"});
  // What passes the checks, and no configuration computes.
  GemmArguments to_f16 = good;
  to_f16.out = DType::f16;
  EXPECT_THAT(tegula::sentence<argument_error>(
                  [&] { choose_gemm(to_f16, properties_of(sim::Generation::sm100)); }),
              testing::HasSubstr("no configuration computes this problem"));
}

}  // namespace
}  // namespace tegula
