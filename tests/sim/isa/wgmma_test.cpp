// wgmma on the simulated machine: operands of every kind, at every schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "run_kernel.hpp"
#include "wgmma_data.hpp"

namespace tegula {
namespace {

/// A problem of small integers, whose sums every accumulator holds exactly, and its solution by definition.
template <class Kernel> struct Integers {
  static constexpr MmaSpec op = Kernel::op;
  static constexpr int k = Kernel::K * Kernel::steps;

  Integers(std::uint32_t seed, bool scale_d) : scale_d(scale_d) {
    Draws draws(seed);
    auto const draw = [&](std::vector<int>& values, std::size_t count, int least, int most) {
      values.resize(count);
      for (int& value : values) value = draws.between(least, most);
    };
    auto const least = [](bool second) { return operand_type(op, second) == DType::u8 ? 0 : -3; };
    draw(a, std::size_t{64} * k, least(false), 3);
    draw(b, static_cast<std::size_t>(op.n) * k, least(true), 3);
    draw(d, static_cast<std::size_t>(64 * op.n), -100, 100);
    if (op.variant == MmaVariant::saturate) {
      for (int& value : d)
        value = draws.between(0, 1) == 0 ? std::numeric_limits<int>::max() - draws.between(0, 60)
                                         : std::numeric_limits<int>::min() + draws.between(0, 60);
    }
  }

  std::vector<std::uint32_t> input() const {
    return wgmma_input<Kernel>(
        scale_d,
        [&](bool second, int mn, int at) {
          std::vector<int> const& values = second ? b : a;
          return element_of(operand_type(op, second), values[static_cast<std::size_t>(mn * k + at)]);
        },
        [&](int row, int column) { return accumulator(d[static_cast<std::size_t>(row * op.n + column)]); });
  }

  /// Step by step along k, as the instructions go: that is where saturation clamps.
  std::int64_t solution(int row, int column) const {
    std::int64_t sum = scale_d ? d[static_cast<std::size_t>(row * op.n + column)] : 0;
    for (int step = 0; step < Kernel::steps; ++step) {
      std::int64_t products = 0;
      for (int i = step * Kernel::K; i < (step + 1) * Kernel::K; ++i)
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
    std::vector<std::uint32_t> out(Kernel::out_words);
    int row = 0, column = 0;
    for (int thread = 0; thread < 128; ++thread) {
      std::uint32_t* const registers = out.data() + Kernel::registers * thread;
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

  static std::uint32_t accumulator(std::int64_t value) {
    return op.d == DType::s32 ? static_cast<std::uint32_t>(value) : element_of(op.d, static_cast<int>(value));
  }

  std::vector<int> a;  // (64, k), row-major
  std::vector<int> b;  // (n, k), row-major
  std::vector<int> d;  // (64, n), row-major
  bool scale_d;
};

TEST(Wgmma, MultipliesOperandsOfEveryKind) {
  std::uint32_t seed = 1;
  for_each_wgmma_kernel([&]<class Kernel>(Kernel) {
    for (bool const scale_d : {false, true}) {
      Integers<Kernel> const problem(seed++, scale_d);
      sim::Machine machine;
      EXPECT_EQ(run_kernel<Kernel>(machine, problem.input()), problem.output()) << sim::type_name<Kernel>();
    }
  });
}

TEST(Wgmma, EveryKernelGivesTheSameUnderEverySchedule) {
  std::uint32_t seed = 1;
  for_each_wgmma_kernel([&]<class Kernel>(Kernel) {
    auto const in = wild_input<Kernel>(seed++);
    sim::Machine plain;
    auto const expected = run_kernel<Kernel>(plain, in);
    for (auto const completion : {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
      for (auto const interleaving :
           {sim::Interleaving::one_warp_ahead, sim::Interleaving::round_robin, sim::Interleaving::random}) {
        sim::Machine machine({.completion = completion, .interleaving = interleaving, .seed = seed});
        EXPECT_EQ(run_kernel<Kernel>(machine, in), expected) << sim::type_name<Kernel>();
      }
    }
  });
}

TEST(Wgmma, CountsItsMultiplyAddsAndTheBytesItReads) {
  using Kernel = wgmma_kernels::KMajor<wgmma_kernels::Plain<DType::bf16, DType::bf16, 128>, false>;
  sim::Machine machine;
  sim::Report report;
  run_kernel<Kernel>(machine, wild_input<Kernel>(1), &report);
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
