#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "tegula/numeric/dtype.hpp"

/// What the examples' problems have in common: random data, and results held to float64 within
/// a bound.
namespace tegula::examples {

/// The unit roundoff of f32.
inline constexpr double kU = 0x1p-24;
/// What is left where nobody writes: a NaN in every floating-point type.
inline constexpr std::uint8_t kPoison = 0xff;

template <class T> inline constexpr double unit_roundoff = kU;
template <> inline constexpr double unit_roundoff<half> = 0x1p-11;
template <> inline constexpr double unit_roundoff<bfloat16> = 0x1p-8;

/// Numbers of magnitude 1 at most; the same for the same seed.
template <class T> std::vector<T> random_numbers(std::int64_t count, std::uint64_t seed) {
  std::mt19937 generator(static_cast<std::uint32_t>(seed));
  std::vector<T> result(static_cast<std::size_t>(count));
  for (T& x : result)
    x = from_float<T>(static_cast<float>(static_cast<int>(generator() >> 15) - 65536) * 0x1p-16f);
  return result;
}

template <class T> bool is_poison(T const& value) {
  std::uint8_t bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  return std::all_of(bytes, bytes + sizeof(T), [](std::uint8_t byte) { return byte == kPoison; });
}
template <class T> T poison() {
  T value;
  std::memset(static_cast<void*>(&value), kPoison, sizeof(T));
  return value;
}

/// The largest error of a result, in units of its bound: at most 1, or the problem throws.
class Errors {
 public:
  explicit Errors(std::string of) : of_(std::move(of)) {}
  void hold(double result, double value, double bound, std::string const& element) {
    double const error = std::abs(result - value);
    if (!(error <= bound))
      throw std::runtime_error(of_ + ": " + element + " is " + std::to_string(result) + ", not " +
                               std::to_string(value) + " within " + std::to_string(bound));
    if (bound > 0) worst_ = std::max(worst_, error / bound);
  }
  double worst() const { return worst_; }

 private:
  std::string of_;
  double worst_ = 0;
};

/// How far the sum of `products` products may be from exact, relative to the sum of their
/// magnitudes, by fma or by the tensor core, whose steps of 8 products err by at most 11 u
/// each: docs/arithmetic.md.
inline double accumulation_error(double products) {
  double const r = 11 * kU * std::ceil(products / 8);
  return r / (1 - r);
}

/// At most `most` of the numbers 0 to count - 1, spread evenly, the first and the last among them.
inline std::vector<int> some_of(int count, int most) {
  std::vector<int> result;
  int const picked = std::min(count, most);
  for (int i = 0; i < picked; ++i)
    result.push_back(picked == 1 ? 0
                                 : static_cast<int>(std::int64_t{i} * (count - 1) / (picked - 1)));
  return result;
}

}  // namespace tegula::examples
