#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tegula/numeric/float8.hpp>
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

/// A byte of an 8-bit float as the binary16 of the same value.
template <DType Type> std::uint32_t widened(std::uint32_t byte) {
  if constexpr (Type == DType::e5m2) {
    return byte << 8;
  } else {
    static auto const table = [] {
      std::array<std::uint16_t, 256> codes{};
      for (std::uint32_t i = 0; i < 256; ++i)
        codes[i] = to_half(to_float(float_e4m3{static_cast<std::uint8_t>(i)})).bits;
      return codes;
    }();
    return table[byte];
  }
}

/// The two lower bytes of every register, and the two upper, as pairs of binary16.
template <int Registers>
void widen(DType type, std::uint32_t const (*codes)[Registers], int registers,
           std::uint32_t (*lower)[Registers], std::uint32_t (*upper)[Registers]) {
  auto const as = type == DType::e5m2 ? widened<DType::e5m2> : widened<DType::e4m3>;
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < registers; ++r) {
      std::uint32_t const word = codes[lane][r];
      lower[lane][r] = as(word & 0xffu) | as((word >> 8) & 0xffu) << 16;
      upper[lane][r] = as((word >> 16) & 0xffu) | as(word >> 24) << 16;
    }
  }
}

std::uint32_t add_binary32(std::uint32_t x, std::uint32_t y) {
  std::uint32_t const sum =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(x) + std::bit_cast<float>(y));
  return is_nan(sum) ? kNan : sum;
}
std::uint32_t add_binary16(std::uint32_t x, std::uint32_t y) {
  auto const value = [](std::uint32_t code) {
    return to_float(half{static_cast<std::uint16_t>(code & 0xffffu)});
  };
  // A binary32 keeps more than twice a binary16's bits, and two: rounding twice is rounding once.
  std::uint32_t const code = to_half(value(x) + value(y)).bits;
  return (code & 0x7fffu) > 0x7c00u ? 0x7fffu : code;
}

/// e4m3 and e5m2 by an sm_90 or an sm_100, whose mma.sync has no tensor core for them. ptxas widens
/// A and B to binary16 and issues two HMMA: of the lower two bytes of every register, and of the
/// upper two, added to the first's sum. C is added to the second's, by FADD or HADD2.
template <int K, bool HalfAccumulator>
void mma_narrow(MmaSpec const& op, Generation generation, std::uint32_t const (*a)[4],
                std::uint32_t const (*b)[2], std::uint32_t const (*c)[4], std::uint32_t (*d)[4]) {
  std::uint32_t of_a[2][32][4], of_b[2][32][2], sum[32][4] = {};
  widen<4>(op.a, a, K / 8, of_a[0], of_a[1]);
  widen<2>(op.b, b, K / 16, of_b[0], of_b[1]);
  for (int half = 0; half < 2; ++half)
    mma_float<kF16, K / 2, HalfAccumulator>(generation, of_a[half], of_b[half], sum, sum);
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < (HalfAccumulator ? 2 : 4); ++r) {
      std::uint32_t const x = sum[lane][r], y = c[lane][r];
      d[lane][r] = HalfAccumulator ? add_binary16(x, y) | add_binary16(x >> 16, y >> 16) << 16
                                   : add_binary32(x, y);
    }
  }
}

/// What integers and bits multiply to, row by row.
struct Products {
  alignas(64) std::int32_t at[kRows][kColumns];
};

/// Where an element lies: PTX ISA, "Matrix Fragments for mma". A register holds neighbours of K;
/// the registers of a lane go through the halves of 8 rows, then along K.
struct Placed {
  int row, k;
};
constexpr Placed placed(int lane, int r, int halves, int per_register) {
  return {lane / 4 + 8 * (r % halves), per_register * (lane % 4 + 4 * (r / halves))};
}

/// Integers of 8 or 4 bits.
template <int Bits, int K>
void multiply_integers(MmaSpec const& op, std::uint32_t const (*a)[4], std::uint32_t const (*b)[2],
                       Products& products) {
  constexpr int kPerRegister = 32 / Bits;
  alignas(64) std::int32_t rows[kRows][K];
  alignas(64) std::int32_t columns[K][kColumns];
  auto const value = [](std::uint32_t word, int i, std::uint32_t sign) {
    std::uint32_t const code = (word >> (Bits * i)) & ((1u << Bits) - 1);
    return static_cast<std::int32_t>((code ^ sign) - sign);
  };
  constexpr std::uint32_t kSign = 1u << (Bits - 1);
  std::uint32_t const a_sign = op.a == DType::s8 || op.a == DType::s4 ? kSign : 0;
  std::uint32_t const b_sign = op.b == DType::s8 || op.b == DType::s4 ? kSign : 0;
  int const halves = op.m / 8;
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < halves * K / (4 * kPerRegister); ++r) {
      Placed const at = placed(lane, r, halves, kPerRegister);
      for (int i = 0; i < kPerRegister; ++i) rows[at.row][at.k + i] = value(a[lane][r], i, a_sign);
    }
    for (int r = 0; r < K / (4 * kPerRegister); ++r) {
      Placed const at = placed(lane, r, 1, kPerRegister);
      for (int i = 0; i < kPerRegister; ++i)
        columns[at.k + i][at.row] = value(b[lane][r], i, b_sign);
    }
  }
  for (int row = 0; row < op.m; ++row) {
    std::int32_t sums[kColumns] = {};  // below 2^21
    for (int k = 0; k < K; ++k) {
      for (int column = 0; column < kColumns; ++column)
        sums[column] += rows[row][k] * columns[k][column];
    }
    std::memcpy(products.at[row], sums, sizeof sums);
  }
}

/// Bits: how many of A AND B, or of A XOR B, are set.
void multiply_bits(MmaSpec const& op, std::uint32_t const (*a)[4], std::uint32_t const (*b)[2],
                   Products& products) {
  std::uint32_t rows[kRows][8], columns[kColumns][8];
  int const halves = op.m / 8, words = op.k / 32;
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < halves * words / 4; ++r) {
      Placed const at = placed(lane, r, halves, 1);
      rows[at.row][at.k] = a[lane][r];
    }
    for (int r = 0; r < words / 4; ++r) {
      Placed const at = placed(lane, r, 1, 1);
      columns[at.row][at.k] = b[lane][r];
    }
  }
  bool const both = op.variant == MmaVariant::and_popc;
  for (int row = 0; row < op.m; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      int sum = 0;
      for (int word = 0; word < words; ++word) {
        std::uint32_t const x = rows[row][word], y = columns[column][word];
        sum += std::popcount(both ? x & y : x ^ y);
      }
      products.at[row][column] = sum;
    }
  }
}

/// D = A B + C of integers and bits: exact, then wrapped or clamped to 32 bits.
void mma_integer(MmaSpec const& op, std::uint32_t const (*a)[4], std::uint32_t const (*b)[2],
                 std::uint32_t const (*c)[4], std::uint32_t (*d)[4]) {
  Products products;
  bool const wide = op.k * bits(op.a) == 256;
  if (op.a == DType::b1)
    multiply_bits(op, a, b, products);
  else if (bits(op.a) == 8)
    (wide ? multiply_integers<8, 32> : multiply_integers<8, 16>)(op, a, b, products);
  else
    (wide ? multiply_integers<4, 64> : multiply_integers<4, 32>)(op, a, b, products);
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < op.m / 4; ++r) {
      std::int32_t const product = products.at[lane / 4 + 8 * (r / 2)][2 * (lane % 4) + r % 2];
      if (op.variant == MmaVariant::saturate) {
        using Limits = std::numeric_limits<std::int32_t>;
        std::int64_t const exact = std::int64_t{static_cast<std::int32_t>(c[lane][r])} + product;
        d[lane][r] = static_cast<std::uint32_t>(
            std::clamp<std::int64_t>(exact, Limits::min(), Limits::max()));
      } else {
        d[lane][r] = c[lane][r] + static_cast<std::uint32_t>(product);
      }
    }
  }
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
    case DType::e4m3:
    case DType::e5m2:
      if (op.d == DType::f16)
        return (wide ? mma_narrow<32, true> : mma_narrow<16, true>)(op, generation, a, b, c, d);
      return (wide ? mma_narrow<32, false> : mma_narrow<16, false>)(op, generation, a, b, c, d);
    default:
      return mma_integer(op, a, b, c, d);
  }
}

void mma_sync_warp(MmaSpec const& op, double const (*a)[8], double const (*b)[4],
                   double const (*c)[4], double (*d)[4]) {
  double rows[kRows][16], columns[kColumns][16];
  int const halves = op.m / 8, steps = op.k / 4;
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < halves * steps; ++r) {
      Placed const at = placed(lane, r, halves, 1);
      rows[at.row][at.k] = a[lane][r];
    }
    for (int r = 0; r < steps; ++r) columns[lane / 4][placed(lane, r, 1, 1).k] = b[lane][r];
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < 2 * halves; ++r) {
      double const* const row = rows[lane / 4 + 8 * (r / 2)];
      double const* const column = columns[2 * (lane % 4) + r % 2];
      double sum = c[lane][r];
      for (int k = 0; k < op.k; ++k) sum = std::fma(row[k], column[k], sum);
      d[lane][r] = std::isnan(sum) ? std::numeric_limits<double>::quiet_NaN() : sum;
    }
  }
}

}  // namespace tegula::sim
