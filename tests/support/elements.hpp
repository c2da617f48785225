#pragma once

#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "tegula/numeric/dtype.hpp"
#include "tegula/numeric/rounded_bits.hpp"

/// Values of every type, and bytes that show where a kernel wrote.
namespace tegula {

/// `count` elements of `type`, of 8, 16 or 32 bits, each drawn by `draw(random)`.
template <class Draw>
std::vector<std::uint8_t> random_elements(DType type, std::int64_t count, std::uint64_t seed,
                                          Draw draw) {
  std::mt19937_64 random(seed);
  auto const width = static_cast<std::size_t>(bits(type) / 8);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count) * width);
  for (std::size_t i = 0; i < bytes.size(); i += width) {
    std::uint32_t const element = rounded_bits(type, draw(random));
    std::memcpy(&bytes[i], &element, width);
  }
  return bytes;
}

/// Nearly normal, with mean 0 and variance 1: the sum of four even distributions.
/// An exact one takes ten times as long.
inline float normal(std::mt19937_64& random) {
  std::uint64_t const bits = random();
  std::uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += bits >> 16 * i & 0xffff;
  return (static_cast<float>(sum) - 2 * 65535.0f) * (1.7320508f / 65535);
}

/// Values of one head's `keys` keys of `size` values each. All are negative, and their magnitude
/// grows from 0 at the first key to `most` at the last. With equal, positive queries no score is
/// positive, and scores grow from the last key to the first, as blocks of keys are walked.
struct FallingKeys {
  float most;
  int size, keys;
  int count = 0;  // of values before
  float operator()(std::mt19937_64&) {
    return -most * static_cast<float>(count++ / size + 1) / static_cast<float>(keys);
  }
};

/// A value that provokes: zeros of both signs, subnormals, the largest magnitudes, infinities and
/// NaN among ordinary ones.
inline float adversarial(std::mt19937_64& random) {
  switch (random() % 24) {
    case 0:
      return 0.0f;
    case 1:
      return -0.0f;
    case 2:
      return 0x1p-20f;
    case 3:
      return -0x1p-24f;
    case 4:
      return 0x1p-130f;
    case 5:
      return 60000.0f;
    case 6:
      return -60000.0f;
    case 7:
      return random() % 8 == 0 ? __builtin_inff() : 1.0f;
    case 8:
      return random() % 8 == 0 ? __builtin_nanf("") : -1.0f;
    default:
      return normal(random);
  }
}

/// A number, and one time in 512 what is given.
inline auto sometimes(float what) {
  return [what](std::mt19937_64& random) {
    bool const now = random() % 512 == 0;
    float const number = normal(random);
    return now ? what : number;
  };
}

/// What every byte of an output is before a kernel runs.
inline constexpr std::uint8_t kPoison = 0xa5;

/// `extent` elements of `type`, rounded up to whole lines of `line_bytes`.
inline std::int64_t whole_lines(std::int64_t extent, DType type, int line_bytes) {
  std::int64_t const line = 8 * line_bytes / std::gcd(8 * line_bytes, bits(type));
  return (extent + line - 1) / line * line;
}

}  // namespace tegula
