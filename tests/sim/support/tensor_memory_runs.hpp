#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tegula/arch/dim3.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/sim/launch.hpp"

/// Kernels of tensor memory as tests run them: words in, words out.
namespace tegula {

struct Words {
  std::uint32_t const* in;
  std::uint32_t* out;
};

inline sim::Options blackwell() { return {.generation = sim::Generation::sm100}; }

/// The words that a kernel leaves in `out`.
template <class Kernel>
std::vector<std::uint32_t> run(std::vector<std::uint32_t> const& in, std::size_t out_words,
                               sim::Options const& options, Dim3 grid = {}) {
  sim::Machine machine(options);
  auto* const from = static_cast<std::uint32_t*>(machine.allocate(4 * in.size(), "in"));
  auto* const to = static_cast<std::uint32_t*>(machine.allocate(4 * out_words, "out"));
  machine.upload(from, in.data(), 4 * in.size());
  sim::launch<Kernel>(machine, grid, Words{from, to});
  std::vector<std::uint32_t> result(out_words);
  machine.download(result.data(), to, 4 * out_words);
  return result;
}

constexpr Major major(bool mn) { return mn ? Major::mn : Major::k; }
template <int Bits>
using ElementBits =
    std::conditional_t<Bits == 8, std::uint8_t,
                       std::conditional_t<Bits == 16, std::uint16_t, std::uint32_t>>;

inline std::uint32_t code_of(DType type, int value) {
  float const x = static_cast<float>(value);
  switch (type) {
    case DType::f16:
      return to_half(x).bits;
    case DType::bf16:
      return to_bfloat16(x).bits;
    case DType::e4m3:
      return to_float_e4m3(x).bits;
    case DType::e5m2:
      return to_float_e5m2(x).bits;
    default: {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &x, 4);
      return bits;
    }
  }
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

/// Of small integers, by a kernel whose `in` says whether it accumulates, and holds D, A (m, k) and
/// B (n, k), a word an element.
template <class Kernel> void expect_products(DType a_type, DType b_type, Dim3 grid = {}) {
  constexpr int m = Kernel::m, n = Kernel::n, k = Kernel::k;
  SmallIntegers integers;
  std::vector<int> const a = integers.draw(m * k, 3), b = integers.draw(n * k, 3),
                         d = integers.draw(m * n, 100);
  for (bool const accumulate : {false, true}) {
    std::vector<std::uint32_t> in{accumulate ? 1u : 0u};
    for (int const x : d) in.push_back(code_of(DType::f32, x));
    for (int const x : a) in.push_back(code_of(a_type, x));
    for (int const x : b) in.push_back(code_of(b_type, x));
    for (auto const completion : {sim::Completion::last, sim::Completion::first}) {
      sim::Options options = blackwell();
      options.completion = completion;
      auto const out = run<Kernel>(in, static_cast<std::size_t>(m * n), options, grid);
      for (int row = 0; row < m; ++row) {
        for (int column = 0; column < n; ++column) {
          int expected = accumulate ? d[static_cast<std::size_t>(row * n + column)] : 0;
          for (int i = 0; i < k; ++i)
            expected += a[static_cast<std::size_t>(row * k + i)] *
                        b[static_cast<std::size_t>(column * k + i)];
          ASSERT_EQ(out[static_cast<std::size_t>(row * n + column)], code_of(DType::f32, expected))
              << "row " << row << ", column " << column;
        }
      }
    }
  }
}
}  // namespace tegula
