#pragma once

#include <cstddef>
#include <cstdint>
#include <mma_cases.hpp>
#include <vector>

/// What the probe's files hold, for the probe that writes them and for those who read them.
namespace tegula::probe {

/// mma.bin: the registers of D (32 lanes of 4, lane-major) of the first cases of each set, subject
/// after subject and set after set.
constexpr int kept_cases(int subject, CaseSet set) {
  constexpr int kFloat[kCaseSets] = {192, 192, 192, 448, 448, 448, 256, 576};
  constexpr int kInteger[kCaseSets] = {16, 0, 16, 32, 0, 0, 0, 0};
  if (subject >= kRecordedMmaSubjects) return mma_subject(subject).d == DType::s32 ? 2 : 8;
  return (mma_subject(subject).d == DType::s32 ? kInteger : kFloat)[static_cast<int>(set)];
}

/// ex2_rcp_tanh.bin, rsqrt.bin and lg2.bin: results of the function for these arguments, as
/// binary32 bits. ex2: m / 2^23 for m in [0, 2^23). rcp, lg2: every float in [1, 2). rsqrt: every
/// float in [1, 4).
inline std::vector<std::uint32_t> ex2_arguments() {
  std::vector<std::uint32_t> values(std::size_t{1} << 23);
  for (std::size_t m = 0; m < values.size(); ++m) {
    values[m] = __builtin_bit_cast(std::uint32_t, static_cast<float>(m) * 0x1p-23f);
  }
  return values;
}

/// `count` bit patterns from `first` upward.
inline std::vector<std::uint32_t> consecutive(std::uint32_t first, std::size_t count) {
  std::vector<std::uint32_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<std::uint32_t>(i);
  return values;
}

/// Floats with uniformly drawn mantissa, exponent in [least, least + exponents), and sign
/// (if `negative`).
inline std::vector<std::uint32_t> random_floats(std::uint64_t seed, std::size_t count, int least,
                                                int exponents, bool negative) {
  Random random{seed};
  std::vector<std::uint32_t> values(count);
  for (std::uint32_t& value : values) {
    std::uint32_t const word = static_cast<std::uint32_t>(random.next());
    std::uint32_t const exponent =
        static_cast<std::uint32_t>(least + random.below(exponents) + 127);
    value = (negative ? word & 0x80000000u : 0) | (exponent << 23) | (word & 0x7fffffu);
  }
  return values;
}

/// FNV-1a over 32-bit words: one number that stands for many results.
struct Digest {
  std::uint64_t state = 0xcbf29ce484222325u;
  void add(std::uint32_t word) { state = (state ^ word) * 0x100000001b3u; }
};

}  // namespace tegula::probe
