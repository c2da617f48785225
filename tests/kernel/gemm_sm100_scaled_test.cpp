// gemm_sm100 with block scales (mxf8, mxf4, nvf4) against float64 from the quantised operands, on
// the simulated machine alone: ragged sizes, several schedules, mutants.

#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "block_scaled_problem.hpp"
#include "tegula/sim/explore.hpp"

namespace tegula {
namespace {

constexpr GemmSm100Config config(DType a, DType b, DType out, BlockScale scale) {
  return {.a = a, .b = b, .out = out, .block_n = 128, .scale = scale};
}
constexpr GemmSm100Config kMxf8 = config(DType::e4m3, DType::e4m3, DType::bf16, kMxScale);
constexpr GemmSm100Config kMxf8Mixed = config(DType::e5m2, DType::e4m3, DType::f32, kMxScale);
constexpr GemmSm100Config kMxf4 = config(DType::e2m1, DType::e2m1, DType::bf16, kMxScale);
constexpr GemmSm100Config kNvf4 = config(DType::e2m1, DType::e2m1, DType::f32, kNvScale);

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
        Format{DType::e2m1, kNvScale, 0x1p-2, 0.25}}) {
    constexpr int rows = 130, k = 80, ld = 96;
    std::vector<float> values;
    for (int i = 0; i < rows * k; ++i)
      values.push_back(std::sin(static_cast<float>(i * i)) * std::exp2(static_cast<float>(i % 9)));
    BlockScaledOperand const x = quantize(f.type, f.how, rows, k, ld, values);
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
  BlockScaledOperand const mx = quantize(DType::e4m3, kMxScale, 1, 64, 64, values);
  EXPECT_EQ(mx.scale(0, 0), 0x1p-127);
  EXPECT_EQ(mx.element(0, 31), 0);
  EXPECT_TRUE(std::isnan(mx.scale(0, 32)));
  BlockScaledOperand const nv = quantize(DType::e2m1, kNvScale, 1, 64, 64, values);
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
  EXPECT_NE(refusal(DType::e2m1, kMxScale, 1).find("even"), std::string::npos);
  EXPECT_EQ(refusal(DType::e2m1, kMxScale, 2), "");
}

template <GemmSm100Config C> void expect_correct(int m, int n, int k, float spread = 4) {
  BlockScaledProblem const p{C, m, n, k, static_cast<std::uint32_t>(m + n + k), spread};
  BlockScaledData const data = data_of(p);
  BlockScaledResult const result = run_block_scaled<C>(p, data, {}, 2);
  EXPECT_TRUE(result.report.ok()) << result.report.text();
  expect_block_scaled(p, data, result.d);
}

// Over the edges of tiles, of stages and of pieces of scales; two tiles by a CTA go round the ring.
template <GemmSm100Config C> void expect_correct_at_edges() {
  int const unit = 16 * packed(C.a), block = block_k(C);
  expect_correct<C>(128 + 9, 128 + 8, block * (stages(C) / 2 + 1) + unit);
  expect_correct<C>(3, 131, block + 3 * unit);
  expect_correct<C>(130, 5, unit, 12);
}
TEST(GemmSm100Scaled, Mxf8IsCorrectOverItsEdges) { expect_correct_at_edges<kMxf8>(); }
TEST(GemmSm100Scaled, Mxf8OfTwoTypesIsCorrectOverItsEdges) {
  expect_correct_at_edges<kMxf8Mixed>();
}
TEST(GemmSm100Scaled, Mxf4IsCorrectOverItsEdges) { expect_correct_at_edges<kMxf4>(); }
TEST(GemmSm100Scaled, Nvf4IsCorrectOverItsEdges) { expect_correct_at_edges<kNvf4>(); }

// One CTA computes three tiles: clean, and the same bits, whenever operations land and whoever
// runs.
TEST(GemmSm100Scaled, IsTheSameAtEverySchedule) {
  constexpr GemmSm100Config C = kNvf4;
  BlockScaledProblem const p{C, 2 * 128 + 5, 61, 2 * block_k(C) + 32};
  BlockScaledData const data = data_of(p);
  auto const expected = run_block_scaled<C>(p, data, {}, 1);
  expect_block_scaled(p, data, expected.d);
  using sim::Completion, sim::Interleaving;
  for (auto const completion : {Completion::last, Completion::first, Completion::random}) {
    for (auto const interleaving :
         {Interleaving::round_robin, Interleaving::random, Interleaving::one_warp_behind}) {
      auto const result = run_block_scaled<C>(
          p, data, {.completion = completion, .interleaving = interleaving, .seed = 3}, 1);
      EXPECT_TRUE(result.report.ok()) << result.report.text();
      EXPECT_EQ(result.bits, expected.bits)
          << to_string(completion) << ", " << to_string(interleaving);
    }
  }
}

// Two steps of K by one CTA: every wait is for one thing, so there is one order.
TEST(GemmSm100Scaled, HasOneOrder) {
  constexpr GemmSm100Config C = kMxf8;
  BlockScaledProblem const p{C, 16, 64, 2 * block_k(C)};
  sim::Machine machine({.generation = sim::Generation::sm100});
  BlockScaledLaunch<C> launch(machine, p, data_of(p), 1);
  std::vector<unsigned char> bits;
  auto const result = [&] {
    std::vector<std::byte> bytes(bits.size());
    std::memcpy(bytes.data(), bits.data(), bits.size());
    return bytes;
  };
  sim::Exploration const e = sim::explore(machine, [&] { bits = launch.run().bits; },
                                          {.max_executions = 20, .result = result});
  EXPECT_TRUE(e.complete) << e.text();
  EXPECT_TRUE(e.ok()) << e.text();
  EXPECT_EQ(e.orders, 1) << e.text();
}

// What orders the scales is needed: without it the checker finds something, or the result is wrong.
TEST(GemmSm100Scaled, EveryRemovedCopyWaitAndCommitIsFound) {
  constexpr GemmSm100Config C = kMxf8;
  BlockScaledProblem const p{C, 3 * 128, 64, block_k(C) * (stages(C) + 1)};
  BlockScaledData const data = data_of(p);
  auto const expected = run_block_scaled<C>(p, data, {.list_marked = true}, 1);
  int mutants = 0;
  for (sim::MarkedStatement const& statement : expected.report.marked) {
    switch (statement.operation) {
      case Operation::tcgen05_cp:
      case Operation::tcgen05_wait:
      case Operation::tcgen05_fence:
      case Operation::tcgen05_commit:
      case Operation::mbarrier_wait:
        break;
      default:
        continue;
    }
    ++mutants;
    bool found = false;
    try {
      auto const result =
          run_block_scaled<C>(p, data,
                              {.mutant = sim::Mutant{statement.where.file, statement.where.line,
                                                     statement.operation, Mutation::removed}},
                              1);
      found = !result.report.ok() || result.bits != expected.bits;
    } catch (std::exception const&) {
      found = true;
    }
    EXPECT_TRUE(found) << statement.where.file << ":" << statement.where.line << ": "
                       << to_string(statement.operation);
  }
  EXPECT_GE(mutants, 8);
}

}  // namespace
}  // namespace tegula
