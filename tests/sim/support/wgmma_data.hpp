#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "tegula/numeric/dtype.hpp"
#include "word_kernels.hpp"

/// Operands for the kernels of wgmma_kernels.hpp: what they read.
namespace tegula {

/// Numbers that look random, the same every time.
class Draws {
 public:
  explicit Draws(std::uint32_t seed) : state_(seed * 2654435761u + 1) {}
  std::uint32_t word() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;  // Knuth's MMIX
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  int between(int least, int most) {
    return least + static_cast<int>(word() % static_cast<std::uint32_t>(most - least + 1));
  }

 private:
  std::uint64_t state_;
};

/// The element type of A, or of B.
constexpr DType operand_type(MmaSpec const& op, bool second) { return second ? op.b : op.a; }

/// A small integer as the bits of an element.
inline std::uint32_t element_of(DType type, int value) {
  float const x = static_cast<float>(value);
  switch (type) {
    case DType::bf16:
      return to_bfloat16(x).bits;
    case DType::f16:
      return to_half(x).bits;
    case DType::e4m3:
      return to_float_e4m3(x).bits;
    case DType::e5m2:
      return to_float_e5m2(x).bits;
    case DType::s8:
    case DType::u8:
      return static_cast<std::uint8_t>(value);
    default:
      return std::bit_cast<std::uint32_t>(x);
  }
}

/// The bits of an element of a wide range of magnitudes, finite.
inline std::uint32_t wild_element(DType type, Draws& draws) {
  std::uint32_t const bits = draws.word();
  switch (type) {
    case DType::bf16:
      return (bits & 0x807f) | static_cast<std::uint32_t>(draws.between(112, 140)) << 7;
    case DType::f16:
      return (bits & 0x83ff) | static_cast<std::uint32_t>(draws.between(0, 24)) << 10;
    case DType::e4m3:
      return (bits & 0x7f) == 0x7f ? 0 : bits & 0xff;
    case DType::e5m2:
      return (bits & 0x7c) == 0x7c ? 0 : bits & 0xff;
    case DType::tf32:
      return (bits & 0x807fffff) | static_cast<std::uint32_t>(draws.between(112, 140)) << 23;
    default:
      return bits & 0xff;
  }
}

/// The place in D, (64, n), of what a thread holds: the i-th element of its registers.
inline void place_in_d(int thread, int i, int& row, int& column) {
  row = thread / 32 * 16 + thread % 32 / 4 + 8 * (i / 2 % 2);
  column = 8 * (i / 4) + 2 * (thread % 4) + i % 2;
}

/// The row and k of what a thread holds of A in registers: the i-th element, of `bits` bits.
inline void place_in_a(int thread, int i, int bits, int& row, int& k) {
  int const each = 32 / bits;  // elements of a register
  int const q = i / each;
  row = thread / 32 * 16 + thread % 32 / 4 + 8 * (q % 2);
  k = thread % 4 * each + i % each + 4 * each * (q / 2);
}

/// The bits of an element of A, or of B (`second`), at (mn, k); and of an accumulator at
/// (row, column).
using WgmmaElement = std::function<std::uint32_t(bool second, int mn, int k)>;
using WgmmaAccumulator = std::function<std::uint32_t(int row, int column)>;

/// The kernel's input of these operands.
inline std::vector<std::uint32_t> wgmma_input(WgmmaKernel const& kernel, bool scale_d,
                                              WgmmaElement const& element,
                                              WgmmaAccumulator const& accumulator) {
  int const bits = element_bits(kernel.op);
  int const bytes = bits / 8;
  bool const halves = kernel.op.d == DType::f16;
  std::vector<std::uint32_t> in(static_cast<std::size_t>(kernel.in_words), 0x3c3c3c3cu);
  in[0] = scale_d ? 1 : 0;
  auto const fill = [&](int at, SwizzledLayout const& tile, int mn0, int extent, bool second) {
    auto* const image = reinterpret_cast<std::uint8_t*>(in.data() + at);
    for (int mn = 0; mn < extent; ++mn) {
      for (int k = 0; k < kernel.k(); ++k) {
        std::int64_t const place =
            tile.rank() == 3 ? tile(mn0 + mn, k, kernel.stage) : tile(mn0 + mn, k);
        std::uint32_t const value = element(second, mn, k);
        std::memcpy(image + bytes * place, &value, static_cast<std::size_t>(bytes));
      }
    }
  };
  fill(kernel.a_at, kernel.tile_a, kernel.m0, kWgmmaM, false);
  fill(kernel.b_at, kernel.tile_b, kernel.n0, kernel.op.n, true);
  int row = 0, column = 0;
  for (int thread = 0; thread < 128; ++thread) {
    std::uint32_t* const d = in.data() + kernel.d_at + kernel.registers * thread;
    for (int i = 0; i < kernel.op.n / 2; ++i) {
      place_in_d(thread, i, row, column);
      std::uint32_t const value = accumulator(row, column);
      if (!halves) {
        d[i] = value;
      } else {
        d[i / 2] = i % 2 == 0 ? value : d[i / 2] | value << 16;
      }
    }
    if (!kernel.a_in_registers) continue;
    for (int step = 0; step < kernel.steps; ++step) {
      std::uint32_t* const a =
          in.data() + kernel.a_registers_at + 4 * (kernel.steps * thread + step);
      for (int i = 0; i < 128 / bits; ++i) {
        place_in_a(thread, i, bits, row, column);
        std::uint32_t const value = element(false, row, kernel.op.k * step + column);
        std::memcpy(reinterpret_cast<std::uint8_t*>(a) + bytes * i, &value,
                    static_cast<std::size_t>(bytes));
      }
    }
  }
  return in;
}

/// Elements and accumulators of a wide range of magnitudes, for comparing machines bit by bit.
/// Accumulators that are not to be read are NaNs.
inline std::vector<std::uint32_t> wild_input(WgmmaKernel const& kernel, std::uint32_t seed) {
  Draws draws(seed);
  bool const scale_d = seed % 2 == 0;
  DType const d = kernel.op.d;
  return wgmma_input(
      kernel, scale_d,
      [&](bool second, int, int) { return wild_element(operand_type(kernel.op, second), draws); },
      [&](int, int) {
        if (d == DType::s32) return draws.word();
        bool const halves = d == DType::f16;
        if (!scale_d) return halves ? 0xffffu : 0xffffffffu;
        return wild_element(halves ? DType::f16 : DType::tf32, draws);
      });
}

}  // namespace tegula
