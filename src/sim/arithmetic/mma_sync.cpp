#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tegula/numeric/half.hpp>
#include <tegula/numeric/narrow.hpp>
#include <tegula/sim/arithmetic.hpp>

#include "arithmetic/tile.hpp"

namespace tegula::sim {
namespace {

using namespace detail;  // the tile and its reductions

constexpr std::uint32_t kNan = 0x7fffffffu;
constexpr std::uint32_t kInfinity = 0x7f800000u;

/// An operand format by its fields; the code is in the low bits of a register.
struct Fields {
  int exponent_bits;
  int mantissa_bits;
  int dropped_bits = 0;  // low bits of the register that the tensor core does not read
};

constexpr Fields kF16{5, 10};
constexpr Fields kBf16{8, 7};
constexpr Fields kTf32{8, 10, 13};
constexpr Fields kF32{8, 23};

/// One operand tile's raw codes: A as [row][k], B as [k][column], C as [row][column].
template <int Rows, int Columns> struct Codes { alignas(64) std::uint32_t code[Rows][Columns]; };

/// Splits codes into sign, exponent and magnitude (shifted left by `shift`); true if any is
/// infinite or NaN.
template <Fields F, int Rows, int Columns>
bool decode(Codes<Rows, Columns> const& codes, int shift, std::int32_t (*magnitude)[Columns],
            std::int32_t (*exponent)[Columns], std::int32_t (*sign)[Columns]) {
  constexpr std::int32_t kTop = (1 << F.exponent_bits) - 1;
  constexpr std::int32_t kBias = kTop / 2;
  constexpr std::int32_t kMantissaMask = (1 << F.mantissa_bits) - 1;
  std::int32_t special = 0;
  for (int row = 0; row < Rows; ++row) {
    for (int column = 0; column < Columns; ++column) {
      std::int32_t const code =
          static_cast<std::int32_t>(codes.code[row][column] >> F.dropped_bits);
      std::int32_t const field = (code >> F.mantissa_bits) & kTop;
      std::int32_t const mantissa = code & kMantissaMask;
      std::int32_t const normal = field != 0 ? 1 : 0;
      std::int32_t const value = mantissa | (normal << F.mantissa_bits);
      special |= field == kTop ? 1 : 0;
      magnitude[row][column] = value << shift;
      exponent[row][column] = value != 0 ? field + 1 - normal - kBias : kZeroExponent;
      sign[row][column] = -((code >> (F.mantissa_bits + F.exponent_bits)) & 1);
    }
  }
  return special != 0;
}

/// The same value as a binary32, for the rows where infinities and NaNs decide.
template <Fields F> std::uint32_t as_binary32(std::uint32_t code) {
  if constexpr (F.mantissa_bits == kF16.mantissa_bits && F.exponent_bits == kF16.exponent_bits) {
    return tegula::detail::widen<kHalfFormat, true>(code);
  } else {
    return (code >> F.dropped_bits) << (23 - F.mantissa_bits);
  }
}

bool is_nan(std::uint32_t bits) { return (bits & kNan) > kInfinity; }
bool is_infinite(std::uint32_t bits) { return (bits & kNan) == kInfinity; }
bool is_zero(std::uint32_t bits) { return (bits & kNan) == 0; }

/// What a dot-add with infinities or NaNs among its operands gives. False if it is finite
/// after all.
template <Fields Operand, int K>
bool special_result(Codes<kRows, K> const& a, Codes<K, kColumns> const& b, std::uint32_t c, int row,
                    int column, int first_k, int k, std::uint32_t& result) {
  bool nan = is_nan(c);
  bool positive = c == kInfinity;
  bool negative = c == (kInfinity | 0x80000000u);
  for (int i = first_k; i < first_k + k; ++i) {
    std::uint32_t const x = as_binary32<Operand>(a.code[row][i]);
    std::uint32_t const y = as_binary32<Operand>(b.code[i][column]);
    if (is_nan(x) || is_nan(y)) nan = true;
    if (is_infinite(x) || is_infinite(y)) {
      if (is_zero(x) || is_zero(y)) nan = true;
      (((x ^ y) >> 31) != 0 ? negative : positive) = true;
    }
  }
  if (!nan && !positive && !negative) return false;
  result = nan || (positive && negative) ? kNan : kInfinity | (negative ? 0x80000000u : 0);
  return true;
}

/// One dot-add with the rounding to zero of any binary32, subnormal and overflowing
/// results included.
std::uint32_t reduce_exceptional(DotTile const& tile, int row, int column, int first_k, int k,
                                 int fraction_bits) {
  std::int32_t largest = std::max(tile.c_exponent[row][column], kLeastAlignment);
  for (int i = first_k; i < first_k + k; ++i) {
    std::int32_t const exponent = tile.a_exponent[row][i] + tile.b_exponent[i][column];
    largest = std::max(largest, exponent);
  }
  auto const aligned = [&](std::int64_t magnitude, std::int32_t exponent, bool negative) {
    std::int64_t const kept = largest - exponent > 62 ? 0 : magnitude >> (largest - exponent);
    return negative ? -kept : kept;
  };
  std::int64_t sum = aligned(tile.c_magnitude[row][column], tile.c_exponent[row][column],
                             tile.c_sign[row][column] != 0);
  for (int i = first_k; i < first_k + k; ++i) {
    sum += aligned(std::int64_t{tile.a_magnitude[row][i]} * tile.b_magnitude[i][column],
                   tile.a_exponent[row][i] + tile.b_exponent[i][column],
                   (tile.a_sign[row][i] ^ tile.b_sign[i][column]) != 0);
  }
  if (sum == 0) return 0;
  std::uint32_t const sign = sum < 0 ? 0x80000000u : 0;
  std::uint64_t const magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  int const unit = largest - fraction_bits;  // the sum is magnitude * 2^unit
  int const exponent = std::bit_width(magnitude) - 1 + unit;
  if (exponent > 127) return sign | kInfinity;
  int const place = exponent < -126 ? -149 : exponent - 23;  // exponent of the result's last place
  int const shift = place - unit;
  std::uint64_t const significand = shift > 63   ? 0
                                    : shift >= 0 ? magnitude >> shift
                                                 : magnitude << -shift;
  if (significand == 0) return 0;
  std::uint32_t const field = exponent < -126 ? 0 : static_cast<std::uint32_t>(exponent + 127);
  return sign | (field << 23) | (static_cast<std::uint32_t>(significand) & 0x7fffffu);
}

/// A sum rounded to odd, as binary16 to nearest even. A zero result is positive, whatever was
/// rounded to it.
std::uint32_t half_result(std::uint32_t sum) {
  std::uint32_t const code =
      tegula::detail::narrow<kHalfFormat, Rounding::kNearestEven, Overflow::kInfinity>(sum);
  return (code & 0x7fffu) != 0 ? code : 0;
}

ReduceTile fastest_reduction() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return reduce_tile_avx2;
#endif
  return reduce_tile_portable;
}

ReduceTile const reduce_tile = fastest_reduction();

/// Floating-point D = A B + C. `half_accumulator`: C and D are binary16, packed in pairs.
template <Fields Operand, int K, bool HalfAccumulator>
void mma_float(Generation generation, std::uint32_t const (*a)[4], std::uint32_t const (*b)[2],
               std::uint32_t const (*c)[4], std::uint32_t (*d)[4]) {
  constexpr bool kPacked = Operand.dropped_bits == 0;  // two operands to a register
  constexpr int kPerRegister = kPacked ? 2 : 1;
  constexpr int kARegisters = kRows * K / kPerRegister / 32;
  constexpr int kBRegisters = kColumns * K / kPerRegister / 32;

  Codes<kRows, K> a_codes;
  Codes<K, kColumns> b_codes;
  Codes<kRows, kColumns> c_codes;
  for (int lane = 0; lane < 32; ++lane) {
    int const group = lane / 4;
    int const thread = lane % 4;
    for (int r = 0; r < kARegisters; ++r) {
      int const row = group + 8 * (r % 2);
      int const k = kPerRegister * (thread + 4 * (r / 2));
      std::uint32_t const word = a[lane][r];
      if constexpr (kPacked) {
        a_codes.code[row][k] = word & 0xffffu;
        a_codes.code[row][k + 1] = word >> 16;
      } else {
        a_codes.code[row][k] = word;
      }
    }
    for (int r = 0; r < kBRegisters; ++r) {
      int const k = kPerRegister * (thread + 4 * r);
      std::uint32_t const word = b[lane][r];
      if constexpr (kPacked) {
        b_codes.code[k][group] = word & 0xffffu;
        b_codes.code[k + 1][group] = word >> 16;
      } else {
        b_codes.code[k][group] = word;
      }
    }
    for (int half = 0; half < 2; ++half) {
      int const row = group + 8 * half;
      if constexpr (HalfAccumulator) {
        c_codes.code[row][2 * thread] = c[lane][half] & 0xffffu;
        c_codes.code[row][2 * thread + 1] = c[lane][half] >> 16;
      } else {
        c_codes.code[row][2 * thread] = c[lane][2 * half];
        c_codes.code[row][2 * thread + 1] = c[lane][2 * half + 1];
      }
    }
  }

  Summation const how = spec_of(generation).mma_sync;
  int const step =
      how.most_bits_k * kPerRegister / 32 < K ? how.most_bits_k * kPerRegister / 32 : K;
  DotTile tile;
  alignas(64) std::int32_t a_parts[3][kRows][K];
  bool const a_special = decode<Operand>(a_codes, 0, a_parts[0], a_parts[1], a_parts[2]);
  for (int row = 0; row < kRows; ++row) {
    std::memcpy(tile.a_magnitude[row], a_parts[0][row], sizeof a_parts[0][row]);
    std::memcpy(tile.a_exponent[row], a_parts[1][row], sizeof a_parts[1][row]);
    std::memcpy(tile.a_sign[row], a_parts[2][row], sizeof a_parts[2][row]);
  }
  bool const b_special = decode<Operand>(b_codes, how.fraction_bits - 2 * Operand.mantissa_bits,
                                         tile.b_magnitude, tile.b_exponent, tile.b_sign);
  constexpr Fields kAccumulator = HalfAccumulator ? kF16 : kF32;
  for (int first_k = 0; first_k < K; first_k += step) {
    bool const c_special =
        decode<kAccumulator>(c_codes, how.fraction_bits - kAccumulator.mantissa_bits,
                             tile.c_magnitude, tile.c_exponent, tile.c_sign);
    reduce_tile(tile, first_k, step, how.fraction_bits,
                HalfAccumulator ? SumRounding::kToOdd : SumRounding::kTowardZero);
    for (int row = 0; row < kRows; ++row) {
      bool const special = a_special || b_special || c_special;
      if (!special && !tile.exceptional[row]) continue;
      for (int column = 0; column < kColumns; ++column) {
        std::uint32_t& result = tile.d[row][column];
        std::uint32_t const addend = as_binary32<kAccumulator>(c_codes.code[row][column]);
        if (special &&
            special_result<Operand>(a_codes, b_codes, addend, row, column, first_k, step, result))
          continue;
        if (tile.exceptional[row]) {
          result = reduce_exceptional(tile, row, column, first_k, step, how.fraction_bits);
        }
      }
    }
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        std::uint32_t const result = tile.d[row][column];
        c_codes.code[row][column] = HalfAccumulator ? half_result(result) : result;
      }
    }
  }

  for (int lane = 0; lane < 32; ++lane) {
    for (int half = 0; half < 2; ++half) {
      std::uint32_t const* result = &c_codes.code[lane / 4 + 8 * half][2 * (lane % 4)];
      if constexpr (HalfAccumulator) {
        d[lane][half] = result[0] | (result[1] << 16);
      } else {
        d[lane][2 * half] = result[0];
        d[lane][2 * half + 1] = result[1];
      }
    }
  }
}

/// Integer D = A B + C: exact, then wrapped or clamped to 32 bits.
template <class A, class B, int K, bool Saturate>
void mma_integer(std::uint32_t const (*a)[4], std::uint32_t const (*b)[2],
                 std::uint32_t const (*c)[4], std::uint32_t (*d)[4]) {
  alignas(64) std::int32_t rows[kRows][K];
  alignas(64) std::int32_t columns[K][kColumns];
  for (int lane = 0; lane < 32; ++lane) {
    for (int byte = 0; byte < 4; ++byte) {
      for (int r = 0; r < K / 8; ++r) {
        rows[lane / 4 + 8 * (r % 2)][4 * (lane % 4) + byte + 16 * (r / 2)] =
            static_cast<A>(a[lane][r] >> (8 * byte));
      }
      for (int r = 0; r < K / 16; ++r) {
        columns[4 * (lane % 4) + byte + 16 * r][lane / 4] =
            static_cast<B>(b[lane][r] >> (8 * byte));
      }
    }
  }
  alignas(64) std::int32_t products[kRows][kColumns];  // below 2^21
  for (int row = 0; row < kRows; ++row) {
    std::int32_t sums[kColumns] = {};
    for (int k = 0; k < K; ++k) {
      for (int column = 0; column < kColumns; ++column)
        sums[column] += rows[row][k] * columns[k][column];
    }
    std::memcpy(products[row], sums, sizeof sums);
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < 4; ++r) {
      std::int32_t const product = products[lane / 4 + 8 * (r / 2)][2 * (lane % 4) + r % 2];
      if constexpr (Saturate) {
        using Limits = std::numeric_limits<std::int32_t>;
        std::int64_t const exact = std::int64_t{static_cast<std::int32_t>(c[lane][r])} + product;
        std::int64_t const clamped = exact < Limits::min()   ? Limits::min()
                                     : exact > Limits::max() ? Limits::max()
                                                             : exact;
        d[lane][r] = static_cast<std::uint32_t>(clamped);
      } else {
        d[lane][r] = c[lane][r] + static_cast<std::uint32_t>(product);
      }
    }
  }
}

template <int K, bool Saturate> auto integer_function(bool a_unsigned, bool b_unsigned) {
  using S = std::int8_t;
  using U = std::uint8_t;
  if (a_unsigned)
    return b_unsigned ? mma_integer<U, U, K, Saturate> : mma_integer<U, S, K, Saturate>;
  return b_unsigned ? mma_integer<S, U, K, Saturate> : mma_integer<S, S, K, Saturate>;
}

}  // namespace

void mma_sync_warp(MmaSpec const& op, Generation generation, std::uint32_t const (*a)[4],
                   std::uint32_t const (*b)[2], std::uint32_t const (*c)[4],
                   std::uint32_t (*d)[4]) {
  bool const wide = op.k * bits(op.a) == 256;  // 32 bytes of K, and not 16
  switch (op.a) {
    case DType::f16:
      if (op.d == DType::f16)
        return (wide ? mma_float<kF16, 16, true> : mma_float<kF16, 8, true>)(generation, a, b, c,
                                                                             d);
      return (wide ? mma_float<kF16, 16, false> : mma_float<kF16, 8, false>)(generation, a, b, c,
                                                                             d);
    case DType::bf16:
      return (wide ? mma_float<kBf16, 16, false> : mma_float<kBf16, 8, false>)(generation, a, b, c,
                                                                               d);
    case DType::tf32:
      return (wide ? mma_float<kTf32, 8, false> : mma_float<kTf32, 4, false>)(generation, a, b, c,
                                                                              d);
    default:
      break;
  }
  bool const a_unsigned = op.a == DType::u8;
  bool const b_unsigned = op.b == DType::u8;
  if (op.variant == MmaVariant::saturate) {
    return (wide ? integer_function<32, true>(a_unsigned, b_unsigned)
                 : integer_function<16, true>(a_unsigned, b_unsigned))(a, b, c, d);
  }
  return (wide ? integer_function<32, false>(a_unsigned, b_unsigned)
               : integer_function<16, false>(a_unsigned, b_unsigned))(a, b, c, d);
}

}  // namespace tegula::sim
