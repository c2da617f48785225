// wgmma on the simulated machine: operands of every kind, at every schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "wgmma_data.hpp"

namespace tegula {
namespace {

/// A problem of small integers, whose sums every accumulator holds exactly, and its solution
/// by definition.
struct Integers {
  Integers(WgmmaKernel const& kernel, std::uint32_t seed, bool scale_d)
      : kernel(kernel), op(kernel.op), k(kernel.k()), scale_d(scale_d) {
    Draws draws(seed);
    auto const draw = [&](std::vector<int>& values, std::size_t count, int least, int most) {
      values.resize(count);
      for (int& value : values) value = draws.between(least, most);
    };
    auto const least = [&](bool second) { return operand_type(op, second) == DType::u8 ? 0 : -3; };
    draw(a, static_cast<std::size_t>(64 * k), least(false), 3);
    draw(b, static_cast<std::size_t>(op.n * k), least(true), 3);
    draw(d, static_cast<std::size_t>(64 * op.n), -100, 100);
    if (op.variant == MmaVariant::saturate) {
      for (int& value : d)
        value = draws.between(0, 1) == 0 ? std::numeric_limits<int>::max() - draws.between(0, 60)
                                         : std::numeric_limits<int>::min() + draws.between(0, 60);
    }
  }

  std::vector<std::uint32_t> input() const {
    return wgmma_input(
        kernel, scale_d,
        [&](bool second, int mn, int at) {
          std::vector<int> const& values = second ? b : a;
          return element_of(operand_type(op, second),
                            values[static_cast<std::size_t>(mn * k + at)]);
        },
        [&](int row, int column) {
          return accumulator(d[static_cast<std::size_t>(row * op.n + column)]);
        });
  }

  /// Step by step along k, as the instructions go: that is where saturation clamps.
  std::int64_t solution(int row, int column) const {
    std::int64_t sum = scale_d ? d[static_cast<std::size_t>(row * op.n + column)] : 0;
    for (int step = 0; step < kernel.steps; ++step) {
      std::int64_t products = 0;
      for (int i = step * op.k; i < (step + 1) * op.k; ++i)
        products += std::int64_t{a[static_cast<std::size_t>(row * k + i)]} *
                    b[static_cast<std::size_t>(column * k + i)];
      sum += op.negate_a != op.negate_b ? -products : products;
      if (op.variant == MmaVariant::saturate)
        sum = std::clamp(sum, std::int64_t{std::numeric_limits<int>::min()},
                         std::int64_t{std::numeric_limits<int>::max()});
    }
    return sum;
  }

  std::vector<std::uint32_t> output() const {
    std::vector<std::uint32_t> out(static_cast<std::size_t>(kernel.out_words));
    int row = 0, column = 0;
    for (int thread = 0; thread < 128; ++thread) {
      std::uint32_t* const registers = out.data() + kernel.registers * thread;
      for (int i = 0; i < op.n / 2; ++i) {
        place_in_d(thread, i, row, column);
        std::uint32_t const value = accumulator(solution(row, column));
        if (op.d == DType::f16) {
          registers[i / 2] |= value << 16 * (i % 2);
        } else {
          registers[i] = value;
        }
      }
    }
    return out;
  }

  std::uint32_t accumulator(std::int64_t value) const {
    return op.d == DType::s32 ? static_cast<std::uint32_t>(value)
                              : element_of(op.d, static_cast<int>(value));
  }

  WgmmaKernel const& kernel;
  MmaSpec op;
  int k;
  std::vector<int> a;  // (64, k), row-major
  std::vector<int> b;  // (n, k), row-major
  std::vector<int> d;  // (64, n), row-major
  bool scale_d;
};

TEST(Wgmma, MultipliesOperandsOfEveryKind) {
  std::uint32_t seed = 1;
  for (WgmmaKernel const& kernel : all_wgmma_kernels()) {
    for (bool const scale_d : {false, true}) {
      Integers const problem(kernel, seed++, scale_d);
      sim::Machine machine;
      EXPECT_EQ(kernel.run(machine, problem.input(), nullptr), problem.output()) << kernel.name;
    }
  }
}

TEST(Wgmma, EveryKernelGivesTheSameUnderEverySchedule) {
  std::uint32_t seed = 1;
  for (WgmmaKernel const& kernel : all_wgmma_kernels()) {
    auto const in = wild_input(kernel, seed++);
    sim::Machine plain;
    auto const expected = kernel.run(plain, in, nullptr);
    for (auto const completion :
         {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
      for (auto const interleaving : {sim::Interleaving::one_warp_ahead,
                                      sim::Interleaving::round_robin, sim::Interleaving::random}) {
        sim::Machine machine(
            {.completion = completion, .interleaving = interleaving, .seed = seed});
        EXPECT_EQ(kernel.run(machine, in, nullptr), expected) << kernel.name;
      }
    }
  }
}

TEST(Wgmma, CountsItsMultiplyAddsAndTheBytesItReads) {
  auto const& all = all_wgmma_kernels();
  auto const kernel = std::find_if(all.begin(), all.end(), [](WgmmaKernel const& k) {
    return !k.a_in_registers && k.k() == 32 &&
           k.op == warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 128);
  });
  ASSERT_NE(kernel, all.end());
  sim::Machine machine;
  sim::Report report;
  kernel->run(machine, wild_input(*kernel, 1), &report);
  std::int64_t multiply_adds = 0, bytes = 0;
  for (sim::LineCounters const& line : report.lines) {
    if (line.instruction != "wgmma.mma_async") continue;
    multiply_adds += line.fused_multiply_adds;
    bytes += line.shared_bytes;
  }
  EXPECT_EQ(multiply_adds, 64 * 128 * 32);
  EXPECT_EQ(bytes, (64 + 128) * 64);
}

}  // namespace
}  // namespace tegula
