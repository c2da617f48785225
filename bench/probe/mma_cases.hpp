#pragma once

#include <cstdint>
#include <iterator>
#include <tegula/atom/mma_spec.hpp>
#include <tegula/numeric/dtype.hpp>

/// Operands for mma.sync that are a function of (subject, set, index) alone, so that results taken
/// on a GPU are replayed elsewhere from the results only.
namespace tegula::probe {

/// splitmix64 (Steele, Lea, Flood 2014).
struct Random {
  std::uint64_t state;
  constexpr std::uint64_t next() {
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  constexpr int below(int n) {
    return static_cast<int>((next() >> 32) * static_cast<std::uint64_t>(n) >> 32);
  }
  constexpr bool one_in(int n) { return below(n) == 0; }
};

/// The kinds of cases.
enum class CaseSet : int {
  kNarrow,        ///< exponents within 2 of each other, so that nearly every product counts
  kMiddle,        ///< exponents over 12 values
  kWide,          ///< every finite bit pattern
  kCancellation,  ///< products that cancel in pairs, accumulators that cancel sums
  kBoundary,      ///< zeros of both signs, subnormals, the greatest and least values, powers of two
  kTiny,          ///< sums around and below the least normal accumulator
  kHuge,          ///< sums around the greatest finite accumulator
  kSpecial,       ///< a few infinities and NaNs among the others
};
inline constexpr int kCaseSets = 8;

inline constexpr char const* kCaseSetNames[kCaseSets] = {
    "narrow", "middle", "wide", "cancellation", "boundary", "tiny", "huge", "special"};

/// The instructions, those of which results were recorded first, in that order. Of the integers'
/// number, from the highest bit to the lowest: saturate, k 32, a unsigned, b unsigned. (Of f64
/// there are no cases: tests/sim/isa holds them against a GPU.)
inline constexpr int kRecordedMmaSubjects = 24;
inline constexpr int kMmaSubjectCount = kRecordedMmaSubjects + 16 + 18;
constexpr MmaSpec mma_subject(int subject) {
  using enum DType;
  using enum MmaVariant;
  if (subject >= kRecordedMmaSubjects + 16) {
    constexpr MmaSpec kSmall[] = {warp_mma(s8, s8, s32, 16, 8),
                                  warp_mma(u8, s8, s32, 16, 8, saturate),
                                  warp_mma(s4, s4, s32, 32),
                                  warp_mma(s4, u4, s32, 32, 16, saturate),
                                  warp_mma(u4, s4, s32, 32),
                                  warp_mma(u4, u4, s32, 32, 16, saturate),
                                  warp_mma(s4, s4, s32, 64, 16, saturate),
                                  warp_mma(s4, u4, s32, 64),
                                  warp_mma(u4, s4, s32, 64, 16, saturate),
                                  warp_mma(u4, u4, s32, 64),
                                  warp_mma(s4, u4, s32, 32, 8, saturate),
                                  warp_mma(u4, u4, s32, 32, 8),
                                  warp_mma(b1, b1, s32, 128, 8, and_popc),
                                  warp_mma(b1, b1, s32, 128, 8, xor_popc),
                                  warp_mma(b1, b1, s32, 128, 16, and_popc),
                                  warp_mma(b1, b1, s32, 128, 16, xor_popc),
                                  warp_mma(b1, b1, s32, 256, 16, and_popc),
                                  warp_mma(b1, b1, s32, 256, 16, xor_popc)};
    static_assert(std::size(kSmall) == 18);
    return kSmall[subject - kRecordedMmaSubjects - 16];
  }
  if (subject >= kRecordedMmaSubjects) {
    int const number = subject - kRecordedMmaSubjects;
    return warp_mma((number & 2) != 0 ? e5m2 : e4m3, (number & 1) != 0 ? e5m2 : e4m3,
                    (number & 8) != 0 ? f16 : f32, (number & 4) != 0 ? 32 : 16);
  }
  constexpr MmaSpec kFloats[] = {warp_mma(f16, f32, 8),  warp_mma(f16, f32, 16),
                                 warp_mma(bf16, f32, 8), warp_mma(bf16, f32, 16),
                                 warp_mma(tf32, f32, 4), warp_mma(tf32, f32, 8),
                                 warp_mma(f16, f16, 8),  warp_mma(f16, f16, 16)};
  constexpr int kFirstInteger = static_cast<int>(std::size(kFloats));
  if (subject < kFirstInteger) return kFloats[subject];
  int const number = subject - kFirstInteger;
  MmaSpec spec = warp_mma((number & 2) != 0 ? u8 : s8, (number & 1) != 0 ? u8 : s8, s32,
                          (number & 4) != 0 ? 32 : 16);
  if ((number & 8) != 0) spec.variant = MmaVariant::saturate;
  return spec;
}

/// One warp's registers.
struct MmaCase {
  std::uint32_t a[32][4];
  std::uint32_t b[32][2];
  std::uint32_t c[32][4];
};

namespace detail {

/// A floating-point format inside a register.
struct Fields {
  int exponent_bits;
  int mantissa_bits;
  int position = 0;  // of its lowest bit in its register
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int top() const { return (1 << exponent_bits) - 1; }
  constexpr std::uint32_t sign() const { return 1u << (exponent_bits + mantissa_bits); }
};

inline Fields operand_fields(DType type) {
  switch (type) {
    case DType::bf16:
      return {8, 7};
    case DType::tf32:
      return {8, 10, 13};
    case DType::e4m3:
      return {4, 3};
    case DType::e5m2:
      return {5, 2};
    default:
      return {5, 10};
  }
}

inline std::uint32_t random_value(Random& random, Fields f, int least_exponent, int exponents) {
  std::uint32_t const mantissa =
      static_cast<std::uint32_t>(random.next()) & ((1u << f.mantissa_bits) - 1);
  int field = least_exponent + random.below(exponents) + f.bias();
  if (field < 0) field = 0;
  if (field >= f.top()) field = f.top() - 1;
  return (random.one_in(2) ? f.sign() : 0) |
         (static_cast<std::uint32_t>(field) << f.mantissa_bits) | mantissa;
}

inline std::uint32_t boundary_value(Random& random, Fields f) {
  std::uint32_t const sign = random.one_in(2) ? f.sign() : 0;
  std::uint32_t const last = (1u << f.mantissa_bits) - 1;
  std::uint32_t const one = static_cast<std::uint32_t>(f.bias()) << f.mantissa_bits;
  switch (random.below(12)) {
    case 0:
    case 1:
    case 2:
      return sign;
    case 3:
      return sign | 1u;  // least subnormal
    case 4:
      return sign | last;  // greatest subnormal
    case 5:
      return sign | (last + 1);  // least normal
    case 6:
      // greatest finite
      return sign | ((static_cast<std::uint32_t>(f.top()) << f.mantissa_bits) - 1);
    case 7:
      return sign | one;
    case 8:
      return sign | (one + 1);
    case 9:
      return sign | (one - 1);
    case 10:
      // 2^i
      return sign | (static_cast<std::uint32_t>(1 + random.below(f.top() - 1)) << f.mantissa_bits);
    default:
      return random_value(random, f, -3, 6);
  }
}

inline std::uint32_t special_value(Random& random, Fields f) {
  std::uint32_t const sign = random.one_in(2) ? f.sign() : 0;
  std::uint32_t const infinity = static_cast<std::uint32_t>(f.top()) << f.mantissa_bits;
  if (random.one_in(2)) return sign | infinity;
  if (random.one_in(2)) return sign | infinity | 1u;
  return sign | infinity |
         (static_cast<std::uint32_t>(random.next()) & ((1u << f.mantissa_bits) - 1));
}

/// A value of an operand (k elements are multiplied) or of the accumulator, for every set
/// but kCancellation.
inline std::uint32_t value(Random& random, CaseSet set, Fields f, bool accumulator) {
  bool const small_range = f.exponent_bits == 5;
  switch (set) {
    case CaseSet::kNarrow:
      return random_value(random, f, accumulator ? 0 : -1, 3);
    case CaseSet::kMiddle:
      return random_value(random, f, -6, 12);
    case CaseSet::kWide:
      return random_value(random, f, -f.bias(), f.top());
    case CaseSet::kTiny:
      if (accumulator) {
        if (random.one_in(3)) return random.one_in(2) ? f.sign() : 0;
        return random_value(random, f, small_range ? -16 : -136, 14);
      }
      if (random.one_in(8)) return random.one_in(2) ? f.sign() : 0;
      return random_value(random, f, small_range ? -15 : -78, 14);
    case CaseSet::kHuge:
      if (accumulator) {
        if (random.one_in(3)) return random.one_in(2) ? f.sign() : 0;
        return random_value(random, f, small_range ? 13 : 121, 8);
      }
      return random_value(random, f, small_range ? 4 : 60, small_range ? 6 : 5);
    case CaseSet::kSpecial:
      if (random.one_in(accumulator ? 8 : 96)) return special_value(random, f);
      return random.one_in(2) ? boundary_value(random, f) : random_value(random, f, -3, 6);
    default:
      return boundary_value(random, f);
  }
}

}  // namespace detail

/// Fills every register, used by the instruction or not.
inline MmaCase mma_case(int subject, CaseSet set, int index) {
  using detail::Fields;
  MmaSpec const op = mma_subject(subject);
  Random random{(static_cast<std::uint64_t>(subject) << 48) ^
                (static_cast<std::uint64_t>(set) << 40) ^ static_cast<std::uint64_t>(index)};
  MmaCase out;

  if (op.d == DType::s32) {
    bool const extreme = static_cast<int>(set) >= static_cast<int>(CaseSet::kCancellation);
    auto const bytes = [&] {
      std::uint32_t word = static_cast<std::uint32_t>(random.next());
      if (extreme) {
        for (int byte = 0; byte < 4; ++byte) {
          constexpr std::uint32_t kExtremes[4] = {0x80, 0x7f, 0xff, 0x00};
          if (random.one_in(2)) {
            word = (word & ~(0xffu << (8 * byte))) | (kExtremes[random.below(4)] << (8 * byte));
          }
        }
      }
      return word;
    };
    auto const accumulators = [&] {
      std::uint32_t const near = static_cast<std::uint32_t>(random.below(1 << 20));
      if (extreme && random.one_in(2)) return 0x7fffffffu - near;
      if (extreme && random.one_in(2)) return 0x80000000u + near;
      return static_cast<std::uint32_t>(random.next());
    };
    for (auto& lane : out.a)
      for (auto& word : lane) word = bytes();
    for (auto& lane : out.b)
      for (auto& word : lane) word = bytes();
    for (auto& lane : out.c)
      for (auto& word : lane) word = accumulators();
    return out;
  }

  Fields const operand = detail::operand_fields(op.a), operand_b = detail::operand_fields(op.b);
  bool const packed = operand.position == 0;
  int const width = bits(op.a);
  bool const half_accumulator = op.d == DType::f16;
  Fields const sum = half_accumulator ? Fields{5, 10} : Fields{8, 23};
  auto const word = [&](auto&& make) {
    if (packed) {
      std::uint32_t whole = 0;
      for (int at = 0; at < 32; at += width) whole |= make() << at;
      return whole;
    }
    // A tf32 register's low bits are not read: let them be anything.
    return (make() << operand.position) |
           (static_cast<std::uint32_t>(random.next()) & ((1u << operand.position) - 1));
  };
  auto const accumulators = [&](auto&& make) {
    if (!half_accumulator) return make();
    std::uint32_t const low = make();
    return low | (make() << 16);
  };

  if (set != CaseSet::kCancellation) {
    auto const factor = [&] { return detail::value(random, set, operand, false); };
    auto const factor_b = [&] { return detail::value(random, set, operand_b, false); };
    auto const addend = [&] { return detail::value(random, set, sum, true); };
    for (auto& lane : out.a)
      for (auto& w : lane) w = word(factor);
    for (auto& lane : out.b)
      for (auto& w : lane) w = word(factor_b);
    for (auto& lane : out.c)
      for (auto& w : lane) w = accumulators(addend);
    return out;
  }

  // Every second k of B is the negative of its neighbour, and A nearly repeats, so that sums cancel
  // to a few last places. In half of the cases A and B are (nearly) constant matrices and C is
  // minus their product, give or take.
  bool const constant = random.one_in(2);
  std::uint32_t const x = detail::random_value(random, operand, -4, 8);
  std::uint32_t const y = detail::random_value(random, operand_b, -4, 8);
  auto const perturbed = [&](std::uint32_t v) {
    return random.one_in(8) ? v ^ (1u << random.below(3)) : v;
  };
  auto const fill = [&](auto& lanes, Fields format, std::uint32_t fixed, bool negate_odd) {
    auto const negated = [&](std::uint32_t v, int odd) { return odd != 0 ? v ^ format.sign() : v; };
    for (auto& lane : lanes) {
      int const registers = static_cast<int>(sizeof lane / sizeof lane[0]);
      for (int r = 0; r < registers; ++r) {
        std::uint32_t const v = constant ? fixed : detail::random_value(random, format, -4, 8);
        if (packed) {
          lane[r] = 0;
          for (int at = 0; at < 32; at += width)
            lane[r] |= negated(perturbed(v), at / width % 2 != 0 && negate_odd && !constant) << at;
        } else {
          std::uint32_t const pair =
              r >= registers / 2 && !constant ? lane[r - registers / 2] >> operand.position : v;
          lane[r] = negated(perturbed(pair), negate_odd && r >= registers / 2 && !constant)
                    << operand.position;
        }
      }
    }
  };
  fill(out.a, operand, x, false);
  fill(out.b, operand_b, y, true);
  auto const as_float = [&](std::uint32_t code, DType type) {
    if (type == DType::e4m3) return to_float(float_e4m3{static_cast<std::uint8_t>(code)});
    if (type == DType::e5m2) return to_float(float_e5m2{static_cast<std::uint8_t>(code)});
    if (operand.exponent_bits == 5) return to_float(half{static_cast<std::uint16_t>(code)});
    return __builtin_bit_cast(float, code << (23 - operand.mantissa_bits));
  };
  float const product = -as_float(x, op.a) * as_float(y, op.b) * static_cast<float>(op.k);
  auto const addend = [&] {
    if (random.one_in(8)) return random.one_in(2) ? sum.sign() : 0u;
    if (!constant) return detail::random_value(random, sum, -20, 24);
    std::uint32_t const code =
        half_accumulator ? to_half(product).bits : __builtin_bit_cast(std::uint32_t, product);
    return random.one_in(2) ? code : code ^ (1u << random.below(half_accumulator ? 3 : 8));
  };
  for (auto& lane : out.c)
    for (auto& w : lane) w = accumulators(addend);
  return out;
}

}  // namespace tegula::probe
