#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "run_kernel.hpp"
#include "scalar_kernels.hpp"

/// The kernels of scalar_kernels.hpp against other words for what the PTX ISA says: bit by bit, in
/// wider arithmetic, or in that of the host.
namespace tegula {
namespace {

using namespace scalar_kernels;

/// Calls f(in, out) with each thread's words, for several seeds and for words of special numbers.
template <class Kernel, class F> void for_each_thread(F f) {
  auto const special = [](std::uint32_t seed) {
    auto in = words(Kernel::in_words, seed);
    constexpr std::uint32_t kinds[] = {
        0,           0x80000000u, 1,           0x80000001u, 0x007fffffu, 0x00800000u,
        0x7f7fffffu, 0xff7fffffu, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffffffffu,
        0x3f800000u, 0xbf800000u, 0x3fc00000u, 0x4f000000u, 0x4effffffu, 0x5f000000u,
        0xdf000000u, 0x40200000u, 0x7c007c00u, 0xfc007bffu, 0x7e003c00u, 0x80000001u,
        0x04000400u, 0x7f7f7f80u, 0x00010080u, 0x7ff00000u, 0xfff00000u, 0x41dfffffu};
    for (std::size_t i = 0; i < in.size(); ++i) {
      std::uint32_t const roll = in[i] >> 7;
      if (roll % 3 != 0) in[i] = kinds[roll / 3 % std::size(kinds)];
    }
    return in;
  };
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    for (bool const wild : {false, true}) {
      auto const in = wild ? special(seed) : words(Kernel::in_words, seed);
      sim::Machine machine;
      auto const out = run_kernel<Kernel>(machine, in);
      for (std::size_t t = 0; t < static_cast<std::size_t>(Kernel::threads); ++t)
        f(in.data() + Kernel::in_of_each * t, out.data() + Kernel::out_of_each * t);
    }
  }
}

using U = std::uint32_t;
using S = std::int32_t;
using Wide = std::uint64_t;

bool bit_of(Wide x, int i) { return i >= 0 && i < 64 && (x >> i & 1) != 0; }

/// Of a field: bit i of the result is bit position + i, or what lies above.
U field_of(U x, U position, U length, bool is_signed) {
  position &= 255;
  length &= 255;
  U result = 0;
  auto const at = [&](U i) { return i < 32 ? (x >> i & 1) : is_signed ? x >> 31 : 0; };
  for (U i = 0; i < 32; ++i) {
    U bit = 0;
    if (i < length) {
      bit = at(position + i);
    } else if (is_signed && length > 0) {
      bit = at(position + length - 1);
    }
    result |= bit << i;
  }
  return result;
}
U inserted(U field, U x, U position, U length) {
  position &= 255;
  length &= 255;
  for (U i = 0; i < length && position + i < 32; ++i) {
    U const mask = 1u << (position + i);
    x = (x & ~mask) | ((i < 32 && (field >> i & 1) != 0) ? mask : 0);
  }
  return x;
}
/// The upper word of a product of 64 bits, by its four products of halves.
Wide upper_half(Wide a, Wide b) {
  Wide const mask = 0xffffffffu;
  Wide const low = (a & mask) * (b & mask), left = (a >> 32) * (b & mask),
             right = (a & mask) * (b >> 32);
  Wide const middle = (low >> 32) + (left & mask) + (right & mask);
  return (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32) + (middle >> 32);
}
Wide signed_upper_half(Wide a, Wide b) {
  return upper_half(a, b) - ((a >> 63) != 0 ? b : 0) - ((b >> 63) != 0 ? a : 0);
}
U dot(U a, bool a_signed, U b, bool b_signed, U c, int a_bits, int terms, int from) {
  auto const part = [](U word, int bits, int i, bool is_signed) -> std::int64_t {
    std::int64_t const value = word >> bits * i & ((1u << bits) - 1);
    return is_signed && (value >> (bits - 1)) != 0 ? value - (std::int64_t{1} << bits) : value;
  };
  std::int64_t sum = c;
  for (int i = 0; i < terms; ++i)
    sum += part(a, a_bits, i, a_signed) * part(b, 8, from + i, b_signed);
  return static_cast<U>(sum);
}
template <class Narrow> U clamped(std::int64_t x) {
  x = std::min<std::int64_t>(x, std::numeric_limits<Narrow>::max());
  x = std::max<std::int64_t>(x, std::numeric_limits<Narrow>::min());
  return static_cast<U>(x) & static_cast<std::make_unsigned_t<Narrow>>(~0u);
}

TEST(Scalar, BitsOfIntegers) {
  for_each_thread<Bits>([](U const* in, U const* out) {
    U const a = in[0], b = in[1], c = in[2], few = a >> (b & 31);
    Wide const wide = (Wide{a} << 32 | b) >> (c & 63);
    std::vector<U> expected;
    auto const put = [&](U x) { expected.push_back(x); };
    auto const put_wide = [&](Wide x) { put(static_cast<U>(x)), put(static_cast<U>(x >> 32)); };
    auto const count = [](Wide x) {
      U n = 0;
      for (int i = 0; i < 64; ++i) n += bit_of(x, i);
      return n;
    };
    auto const highest = [](Wide x) {
      int at = -1;
      for (int i = 0; i < 64; ++i) at = bit_of(x, i) ? i : at;
      return at;
    };
    auto const first = [](Wide x) {
      for (int i = 0; i < 64; ++i) {
        if (bit_of(x, i)) return static_cast<U>(i + 1);
      }
      return 0u;
    };
    auto const reversed = [](Wide x, int bits) {
      Wide r = 0;
      for (int i = 0; i < bits; ++i) r |= Wide{bit_of(x, i)} << (bits - 1 - i);
      return r;
    };
    put(count(a) | count(wide) << 8);
    put(static_cast<U>(31 - highest(few)) | static_cast<U>(63 - highest(wide)) << 8);
    put(first(U{few << (c & 31)}) | first(wide) << 8);
    put(static_cast<U>(highest(few)));
    put(static_cast<U>(reversed(a, 32)));
    put_wide(reversed(wide, 64));
    Wide const both = Wide{b} << 32 | a;
    U const clamp = std::min(c & 63, 32u);
    put(static_cast<U>((both << (c & 31)) >> 32));
    put(clamp == 32 ? a : static_cast<U>((both << clamp) >> 32));
    put(static_cast<U>(both >> (c & 31)));
    put(static_cast<U>(both >> clamp));
    put(field_of(a, b & 63, c & 63, false));
    put(field_of(a, b & 63, c & 63, true));
    put(field_of(a, b, c, false));
    put(inserted(a, b, c & 63, c >> 8 & 63));
    put(inserted(a, b, c, a));
    put(static_cast<U>(Wide{a} * b >> 32));
    put(static_cast<U>(static_cast<Wide>(std::int64_t{static_cast<S>(a)} * static_cast<S>(b)) >>
                       32));
    Wide const left = Wide{a} << 32 | c, right = Wide{b} << 32 | c;
    put_wide(upper_half(left, right));
    put_wide(signed_upper_half(left, right));
    put(dot(a, false, b, false, c, 8, 4, 0));
    put(dot(a, true, b, true, c, 8, 4, 0));
    put(dot(a, true, b, false, c, 8, 4, 0));
    put(dot(a, false, b, true, c, 8, 4, 0));
    put(dot(a, false, b, false, c, 16, 2, 0));
    put(dot(a, true, b, true, c, 16, 2, 2));
    put(dot(a, true, b, false, c, 16, 2, 0));
    put(dot(a, false, b, true, c, 16, 2, 2));
    put((a & b) ^ c);
    U by_table = 0;
    for (int i = 0; i < 32; ++i) {
      int const index = (bit_of(a, i) ? 4 : 0) + (bit_of(b, i) ? 2 : 0) + (bit_of(c, i) ? 1 : 0);
      by_table |= U{bit_of(0x1b, index)} << i;
    }
    put(by_table);
    U permuted = 0;
    for (int i = 0; i < 4; ++i)
      permuted |= static_cast<U>(both >> 8 * (c >> 4 * i & 7) & 0xff) << 8 * i;
    put(permuted);
    put(clamped<std::int8_t>(static_cast<S>(few)) |
        clamped<std::uint8_t>(static_cast<S>(a) >> 22) << 8 | clamped<std::uint16_t>(few) << 16);
    put(clamped<std::int16_t>(static_cast<S>(a) >> (c & 31)) |
        clamped<std::int8_t>(static_cast<S>(b) >> 23) << 16 | clamped<std::uint8_t>(few) << 24);
    EXPECT_EQ(std::vector<U>(out, out + Bits::out_of_each), expected) << a << " " << b << " " << c;
  });
}

/// An integer of `bits` bits from a number that is one, or is none: what PTX's cvt gives.
template <class Int, class Float> Int integer(Float x) {
  if (std::isnan(x)) {
    if (sizeof(Float) == 4 && sizeof(Int) == 4) return 0;
    return std::is_signed_v<Int> ? std::numeric_limits<Int>::min()
                                 : Int(std::numeric_limits<Int>::max() / 2 + 1);
  }
  auto const wide = static_cast<long double>(x);
  if (wide <= static_cast<long double>(std::numeric_limits<Int>::min()))
    return std::numeric_limits<Int>::min();
  if (wide >= static_cast<long double>(std::numeric_limits<Int>::max()))
    return std::numeric_limits<Int>::max();
  return static_cast<Int>(wide);
}

/// A result in wider arithmetic, rounded to f32. Of sums, products, quotients and roots of f32 that
/// is one rounding in effect, for a double has more than twice the bits (Figueroa, "When is double
/// rounding innocuous?", 1995), but for subnormal results, which long double's 64 bits cover.
U one_f32(long double x) {
  auto const narrow = static_cast<float>(x);
  return std::isnan(narrow) ? 0x7fffffffu : std::bit_cast<U>(narrow);
}

TEST(Scalar, ArithmeticOnFloatsIsRoundedOnce) {
  for_each_thread<Rounded>([](U const* in, U const* out) {
    auto const a = std::bit_cast<float>(in[0]), b = std::bit_cast<float>(in[1]);
    long double const x = a, y = b;
    std::vector<U> expected = {one_f32(x + y), one_f32(x - y), one_f32(x * y),
                               one_f32(x / y), one_f32(1 / x), one_f32(std::sqrt(x))};
    float const product = std::bit_cast<float>(expected[2]);
    expected.push_back(one_f32(static_cast<long double>(product) + x));
    for (float const rounded : {std::nearbyint(a), std::trunc(a), std::floor(a), std::ceil(a)})
      expected.push_back(one_f32(rounded));
    expected.push_back((in[0] & 0x7fffffffu) | (in[1] & 0x80000000u));
    expected.push_back(static_cast<U>(integer<S>(std::nearbyint(a))));
    expected.push_back(integer<U>(std::trunc(a)));
    for (Wide const wide :
         {static_cast<Wide>(integer<std::int64_t>(std::floor(a))), integer<Wide>(std::ceil(a))}) {
      expected.push_back(static_cast<U>(wide));
      expected.push_back(static_cast<U>(wide >> 32));
    }
    EXPECT_EQ(std::vector<U>(out, out + Rounded::out_of_each), expected) << a << " " << b;
  });
}

TEST(Scalar, ArithmeticOnDoublesIsTheHosts) {
  for_each_thread<RoundedWide>([](U const* in, U const* out) {
    auto const a = std::bit_cast<double>(Wide{in[1]} << 32 | in[0]);
    auto const b = std::bit_cast<double>(Wide{in[3]} << 32 | in[2]);
    std::vector<U> expected;
    auto const put = [&](Wide x) {
      expected.push_back(static_cast<U>(x));
      expected.push_back(static_cast<U>(x >> 32));
    };
    for (double const x :
         {a + b, a - b, a * b, a / b, 1 / a, std::sqrt(a), std::fma(a, b, a), std::nearbyint(a),
          std::trunc(a), std::floor(a), std::ceil(a), std::copysign(a, b)})
      put(std::isnan(x) ? 0x7fffffffffffffffull : std::bit_cast<Wide>(x));
    expected.push_back(static_cast<U>(integer<S>(std::trunc(a))));
    expected.push_back(integer<U>(std::nearbyint(b)));
    put(static_cast<Wide>(integer<std::int64_t>(std::nearbyint(a))));
    put(integer<Wide>(std::trunc(b)));
    EXPECT_EQ(std::vector<U>(out, out + RoundedWide::out_of_each), expected) << a << " " << b;
  });
}

TEST(Scalar, ASumOfAProductIsTwoRoundings) {
  // (1 + 2^-12)^2 - 1 is 2^-11 + 2^-24: the product's last bit is lost, and kept by fma.
  float const x = 1 + 0x1p-12f;
  EXPECT_EQ(sub_rn(mul_rn(x, x), 1.0f), 0x1p-11f);
  EXPECT_EQ(fma_rn(x, x, -1.0f), 0x1p-11f + 0x1p-24f);
  double const y = 1 + 0x1p-27;
  EXPECT_EQ(sub_rn(mul_rn(y, y), 1.0), 0x1p-26);
  EXPECT_EQ(fma_rn(y, y, -1.0), 0x1p-26 + 0x1p-54);
}

/// A 16-bit float by its description.
struct Format {
  int exponent_bits, mantissa_bits;
};
long double value_of(Format f, U code) {
  int const e = static_cast<int>(code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
  auto const m = static_cast<long double>(code & ((1u << f.mantissa_bits) - 1));
  int const bias = (1 << (f.exponent_bits - 1)) - 1;
  long double magnitude = 0;
  if (e == (1 << f.exponent_bits) - 1) {
    magnitude = m == 0 ? std::numeric_limits<long double>::infinity()
                       : std::numeric_limits<long double>::quiet_NaN();
  } else if (e == 0) {
    magnitude = std::ldexp(m, 1 - bias - f.mantissa_bits);
  } else {
    magnitude = std::ldexp(m + std::ldexp(1.0L, f.mantissa_bits), e - bias - f.mantissa_bits);
  }
  return (code & 0x8000u) != 0 ? -magnitude : magnitude;
}
/// The code nearest to a + b, of ties the even one: by looking for it. (a + b may need more bits
/// than a long double has; then the halfway values are subtracted from the greater first, which is
/// near.)
U nearest(Format f, long double a, long double b) {
  long double const sum = a + b;
  if (std::isnan(sum)) return 0x7fffu;
  U const sign = std::signbit(sum) ? 0x8000u : 0;
  U const infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  if (std::isinf(sum)) return sign | infinity;
  // Of the two magnitudes: is a + b beyond `x`?
  long double const p = sign != 0 ? -a : a, q = sign != 0 ? -b : b;
  auto const compared = [&](long double x) {
    long double const big = std::fabs(p) > std::fabs(q) ? p : q;
    long double const small = std::fabs(p) > std::fabs(q) ? q : p;
    bool const exact = (p + q) - big == small;
    long double const rest = exact ? (p + q) - x : (big - x) + small;
    return rest > 0 ? 1 : rest < 0 ? -1 : 0;
  };
  U low = 0, high = infinity;  // codes below and above
  while (high - low > 1) {
    U const middle = (low + high) / 2;
    (compared(value_of(f, middle)) >= 0 ? low : high) = middle;
  }
  long double const top = std::ldexp(1.0L, (1 << (f.exponent_bits - 1)));  // in infinity's place
  long double const above = high == infinity ? top : value_of(f, high);
  int const half = compared((value_of(f, low) + above) / 2);
  return sign | (half > 0 || (half == 0 && (low & 1) != 0) ? high : low);
}
template <bool Greatest> U extreme(Format f, U a, U b, bool nan_wins) {
  long double const x = value_of(f, a), y = value_of(f, b);
  if (std::isnan(x) || std::isnan(y)) {
    if (nan_wins || (std::isnan(x) && std::isnan(y))) return 0x7fffu;
    return std::isnan(x) ? b : a;
  }
  if (x == y) return ((a & 0x8000u) != 0) == Greatest ? b : a;
  return (x < y) == Greatest ? b : a;
}

TEST(Scalar, PackedArithmeticIsRoundedOnce) {
  for_each_thread<Packed>([](U const* in, U const* out) {
    int i = 0;
    for (Format const f : {Format{5, 10}, Format{8, 7}}) {
      auto const expect = [&](auto of) {
        U const expected = of(in[0] & 0xffffu, in[1] & 0xffffu, in[2] & 0xffffu) |
                           of(in[0] >> 16, in[1] >> 16, in[2] >> 16) << 16;
        EXPECT_EQ(out[i], expected)
            << "result " << i << std::hex << ": " << in[0] << " " << in[1] << " " << in[2];
        ++i;
      };
      auto const number = [f](U code) { return value_of(f, code); };
      expect([&](U a, U b, U) { return nearest(f, number(a), number(b)); });
      expect([&](U a, U b, U) { return nearest(f, number(a), -number(b)); });
      expect([&](U a, U b, U) {
        // -0 changes no product, and no zero's sign.
        return nearest(f, number(a) * number(b), -0.0L);
      });
      expect([&](U a, U b, U c) { return nearest(f, number(a) * number(b), number(c)); });
      expect([&](U a, U b, U) { return extreme<true>(f, a, b, false); });
      expect([&](U a, U b, U) { return extreme<false>(f, a, b, false); });
      expect([&](U a, U b, U) { return extreme<true>(f, a, b, true); });
      expect([&](U a, U b, U) { return extreme<false>(f, a, b, true); });
    }
  });
}

}  // namespace
}  // namespace tegula
