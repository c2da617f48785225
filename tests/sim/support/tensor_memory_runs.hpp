#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "tegula/arch/dim3.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/numeric/rounded_bits.hpp"
#include "tegula/sim/launch.hpp"

/// Kernels of tensor memory as tests run them: words in, words out.
namespace tegula {

struct Words {
  std::uint32_t const* in;
  std::uint32_t* out;
};

inline sim::Options blackwell() { return {.generation = sim::Generation::sm100}; }

/// The words that a kernel leaves in `out`, and what was found.
struct Outcome {
  std::vector<std::uint32_t> out;
  sim::Report report;

  /// The first finding's sentence; empty where there is none.
  std::string first_finding() const {
    return report.ok() ? "" : sim::to_string(report.findings.front(), "");
  }
};
/// Runs a kernel; findings are thrown where the options say so.
template <class Kernel>
Outcome outcome(std::vector<std::uint32_t> const& in, std::size_t out_words,
                sim::Options const& options, Dim3 grid = {}) {
  sim::Machine machine(options);
  auto* const from = static_cast<std::uint32_t*>(machine.allocate(4 * in.size(), "in"));
  auto* const to = static_cast<std::uint32_t*>(machine.allocate(4 * out_words, "out"));
  machine.upload(from, in.data(), 4 * in.size());
  Outcome result{std::vector<std::uint32_t>(out_words),
                 sim::launch<Kernel>(machine, grid, Words{from, to})};
  machine.download(result.out.data(), to, 4 * out_words);
  return result;
}
/// The same, of a kernel that may be wrong: its findings are kept.
template <class Kernel>
Outcome observe(std::vector<std::uint32_t> const& in, std::size_t out_words,
                sim::Options options = blackwell(), Dim3 grid = {}) {
  options.throw_on_finding = false;
  return outcome<Kernel>(in, out_words, options, grid);
}
/// The words that a kernel leaves in `out`.
template <class Kernel>
std::vector<std::uint32_t> run(std::vector<std::uint32_t> const& in, std::size_t out_words,
                               sim::Options const& options, Dim3 grid = {}) {
  return outcome<Kernel>(in, out_words, options, grid).out;
}

constexpr Major major(bool mn) { return mn ? Major::mn : Major::k; }
template <int Bits>
using ElementBits =
    std::conditional_t<Bits == 8, std::uint8_t,
                       std::conditional_t<Bits == 16, std::uint16_t, std::uint32_t>>;

/// The bits of an integer as an element of any type.
inline std::uint32_t code_of(DType type, int value) {
  if (type == DType::s8 || type == DType::u8) return static_cast<std::uint8_t>(value);
  if (type == DType::s32) return static_cast<std::uint32_t>(value);
  return rounded_bits(type, static_cast<float>(value));
}

/// Integers, at most `most` from 0, whose sums are exact.
class SmallIntegers {
 public:
  std::vector<int> draw(int count, int most) {
    std::vector<int> values(static_cast<std::size_t>(count));
    for (int& x : values) {
      seed_ = seed_ * 1664525u + 1013904223u;
      x = static_cast<int>(seed_ >> 16) % (2 * most + 1) - most;
    }
    return values;
  }

 private:
  std::uint32_t seed_ = 1;
};

/// Appends integers as elements of an operand, a word for each that they take in shared memory: of
/// 6 or 4 bits 16 of them are the first of 16 bytes, bit after bit.
inline void append_operand(std::vector<std::uint32_t>& in, DType type,
                           std::vector<int> const& values) {
  if (bits(type) >= 8) {
    for (int const x : values) in.push_back(code_of(type, x));
    return;
  }
  for (std::size_t first = 0; first < values.size(); first += 16) {
    std::uint32_t bytes[16] = {};
    for (int i = 0; i < 16; ++i) {
      std::uint32_t const code = code_of(type, values[first + static_cast<std::size_t>(i)]);
      for (int bit = 0; bit < bits(type); ++bit) {
        int const at = bits(type) * i + bit;
        bytes[at / 8] |= (code >> bit & 1) << at % 8;
      }
    }
    in.insert(in.end(), bytes, bytes + 16);
  }
}

/// Of small integers, by a kernel of the spec `Kernel::op` in two steps along k, whose `in` says
/// whether it accumulates, and holds D, A (m, k) and B (n, k), a word an element. Accumulators of a
/// spec that saturates are near the limits; the first step divides them by 2^`scale_input_d`. What
/// the kernel keeps (`Kernel::keeps`) stays as it was.
template <class Kernel> void expect_products(Dim3 grid = {}, int scale_input_d = 0) {
  constexpr int m = Kernel::m, n = Kernel::n, k = Kernel::k;
  constexpr MmaSpec op = Kernel::op;
  constexpr bool saturates = op.variant == MmaVariant::saturate;
  using Limits = std::numeric_limits<std::int32_t>;
  SmallIntegers integers;
  std::vector<int> a = integers.draw(m * k, 3), b = integers.draw(n * k, 3),
                   d = integers.draw(m * n, 100);
  if (op.a == DType::u8)
    for (int& x : a) x = x < 0 ? 200 - x : x;
  if (op.b == DType::u8)
    for (int& x : b) x = x < 0 ? 200 - x : x;
  for (int& x : d) {
    if (saturates) x = x < 0 ? Limits::min() - x : Limits::max() - x;
    x *= 1 << scale_input_d;
  }
  std::uint32_t const mask = op.d == DType::f16 ? 0xffffu : ~0u;  // the column's other half
  for (bool const accumulate : {false, true}) {
    std::vector<std::uint32_t> in{accumulate ? 1u : 0u};
    for (int const x : d) in.push_back(code_of(op.d, x) | (~mask & 0xabcd0000u));
    append_operand(in, op.a, a);
    append_operand(in, op.b, b);
    for (auto const completion : {sim::Completion::last, sim::Completion::first}) {
      sim::Options options = blackwell();
      options.completion = completion;
      auto const out = run<Kernel>(in, static_cast<std::size_t>(m * n), options, grid);
      for (int row = 0; row < m; ++row) {
        for (int column = 0; column < n; ++column) {
          std::size_t const place = static_cast<std::size_t>(row * n + column);
          std::int64_t expected = accumulate ? d[place] >> scale_input_d : 0;
          for (int first = 0; first < k; first += op.k) {
            std::int64_t products = 0;
            for (int i = first; i < first + op.k; ++i)
              products += a[static_cast<std::size_t>(row * k + i)] *
                          b[static_cast<std::size_t>(column * k + i)];
            expected += op.negate_a != op.negate_b ? -products : products;
            if (saturates)
              expected = std::clamp<std::int64_t>(expected, Limits::min(), Limits::max());
          }
          if (Kernel::zeroes(column)) expected = accumulate ? d[place] >> scale_input_d : 0;
          if (Kernel::keeps(row, column)) expected = d[place];
          ASSERT_EQ(out[place] & mask, code_of(op.d, static_cast<int>(expected)))
              << "row " << row << ", column " << column;
        }
      }
    }
  }
}
}  // namespace tegula
