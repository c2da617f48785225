#pragma once

#include <cmath>
#include <cstdint>
#include <tegula/numeric/dtype.hpp>
#include <tegula/sim/arithmetic.hpp>

#include "mma_oracle.hpp"

/// Random operands and accumulators of tcgen05.mma.
namespace tegula::oracle {

/// Numbers whose low bits are of use.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>(state_ >> 16);
  }

 private:
  std::uint64_t state_;
};

/// How far apart exponents lie.
enum class Spread { near, far, widest };

/// Bytes of operands, those of 8-bit floats finite.
template <int Count>
void draw_rows(Random& random, DType type, std::uint8_t (&rows)[Count][sim::kWgmmaRowBytes]) {
  for (auto& row : rows) {
    for (std::uint8_t& byte : row) {
      do {
        byte = static_cast<std::uint8_t>(random.next());
      } while (bits(type) == 8 && !std::isfinite(value_of(type, byte)));
    }
  }
}

inline float draw_addend(Random& random, Spread spread) {
  int const reach = spread == Spread::near ? 6 : spread == Spread::far ? 30 : 126;
  int const exponent =
      static_cast<int>(random.next() % (2u * static_cast<unsigned>(reach) + 1)) - reach;
  float const fraction = static_cast<float>(random.next() & 0xffffffu) * 0x1p-24f;
  float const value = std::ldexp(0.5f + fraction, exponent);
  std::uint32_t const kind = random.next() % 8;
  return kind == 0 ? 0.0f : kind % 2 == 0 ? value : -value;
}

}  // namespace tegula::oracle
