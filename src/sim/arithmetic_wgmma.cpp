#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tegula/numeric/dtype.hpp>
#include <tegula/sim/arithmetic.hpp>

#include "arithmetic_tile.hpp"
#include "arithmetic_wgmma_tile.hpp"

namespace tegula::sim {
namespace {

using namespace detail;  // the tile and its sums

constexpr std::uint32_t kNan = 0x7fffffffu;
constexpr std::uint32_t kInfinity = 0x7f800000u;
constexpr std::uint32_t kSign = 0x80000000u;
/// What the hardware keeps of a sum: fraction bits below the largest exponent, and fraction bits of a
/// binary32 result.
struct Kept {
  int of_terms;
  int of_result;
};

constexpr Kept kept(WgmmaType type) { return element_bits(type) == 8 ? Kept{13, 13} : Kept{25, 23}; }

/// An operand format by its fields.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool infinities = true;  // else the last code alone is a NaN
  int dropped_bits = 0;    // low bits of an element that the tensor core does not read
};

constexpr Format kBf16{8, 7};
constexpr Format kF16{5, 10};
constexpr Format kTf32{8, 10, true, 13};
constexpr Format kE4m3{4, 3, false};
constexpr Format kE5m2{5, 2};

/// Decodes the elements of one row: values, and the exponents under which the hardware holds them. True if
/// any is infinite or NaN; exponents of these mean nothing.
template <Format F, class Code>
bool decode(std::uint8_t const* bytes, bool negate, float* values, std::int16_t* exponents) {
  constexpr int kCount = kWgmmaRowBytes / static_cast<int>(sizeof(Code));
  constexpr int kCodeBits = F.exponent_bits + F.mantissa_bits;
  constexpr std::uint32_t kTop = (1u << F.exponent_bits) - 1;
  constexpr int kBias = static_cast<int>(kTop / 2);
  constexpr std::uint32_t kFirstSpecial = F.infinities ? kTop << F.mantissa_bits : (1u << kCodeBits) - 1;
  Code codes[kCount];
  std::memcpy(codes, bytes, kWgmmaRowBytes);
  std::uint32_t const flip = negate ? kSign : 0;
  bool special = false;
  for (int i = 0; i < kCount; ++i) {
    std::uint32_t const code = static_cast<std::uint32_t>(codes[i]) >> F.dropped_bits;
    std::uint32_t const magnitude = code & ((1u << kCodeBits) - 1);
    std::uint32_t const sign = ((code >> kCodeBits) << 31) ^ flip;
    special |= magnitude >= kFirstSpecial;
    // The fields in a binary32's places are the value but for the bias.
    float const scaled = std::bit_cast<float>(magnitude << (23 - F.mantissa_bits));
    constexpr float kScale = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 127 - kBias) << 23);
    float const value = F.exponent_bits == 8 ? scaled : scaled * kScale;
    values[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
    int const field = static_cast<int>(magnitude >> F.mantissa_bits);
    int const exponent = (field == 0 ? 1 : field) - kBias;
    exponents[i] = static_cast<std::int16_t>(magnitude == 0 ? kZeroExponent : exponent);
  }
  if (!special) return false;
  for (int i = 0; i < kCount; ++i) {
    std::uint32_t const code = static_cast<std::uint32_t>(codes[i]) >> F.dropped_bits;
    std::uint32_t const magnitude = code & ((1u << kCodeBits) - 1);
    if (magnitude < kFirstSpecial) continue;
    std::uint32_t const sign = std::bit_cast<std::uint32_t>(values[i]) & kSign;
    bool const infinite = F.infinities && magnitude == kFirstSpecial;
    values[i] = std::bit_cast<float>(infinite ? sign | kInfinity : kNan);
    exponents[i] = 0;
  }
  return true;
}

template <class Integer>
bool decode_integers(std::uint8_t const* bytes, bool, float* values, std::int16_t* exponents) {
  for (int i = 0; i < kWgmmaRowBytes; ++i) {
    values[i] = static_cast<Integer>(bytes[i]);
    exponents[i] = 0;
  }
  return false;
}

using Decode = bool (*)(std::uint8_t const* bytes, bool negate, float* values, std::int16_t* exponents);

/// The decoder of A, or of B.
Decode decoder(WgmmaType type, bool of_b) {
  switch (type) {
    case WgmmaType::bf16:
      return decode<kBf16, std::uint16_t>;
    case WgmmaType::f16:
      return decode<kF16, std::uint16_t>;
    case WgmmaType::tf32:
      return decode<kTf32, std::uint32_t>;
    case WgmmaType::e4m3_e4m3:
      return decode<kE4m3, std::uint8_t>;
    case WgmmaType::e4m3_e5m2:
      return of_b ? decode<kE5m2, std::uint8_t> : decode<kE4m3, std::uint8_t>;
    case WgmmaType::e5m2_e4m3:
      return of_b ? decode<kE4m3, std::uint8_t> : decode<kE5m2, std::uint8_t>;
    case WgmmaType::e5m2_e5m2:
      return decode<kE5m2, std::uint8_t>;
    case WgmmaType::s8_s8:
      return decode_integers<std::int8_t>;
    case WgmmaType::s8_u8:
      return of_b ? decode_integers<std::uint8_t> : decode_integers<std::int8_t>;
    case WgmmaType::u8_s8:
      return of_b ? decode_integers<std::int8_t> : decode_integers<std::uint8_t>;
    case WgmmaType::u8_u8:
      return decode_integers<std::uint8_t>;
  }
  return nullptr;
}

/// The rows of A and columns of B that hold an infinity or a NaN.
struct Specials {
  bool row[kWgmmaM];
  int columns;
  int column[kWgmmaMostColumns];
};

void decode_operands(WgmmaConfig const& op, std::uint8_t const (*a)[kWgmmaRowBytes],
                     std::uint8_t const (*b)[kWgmmaRowBytes], WgmmaTile& tile, Specials& specials) {
  int const k = wgmma_k(op.type);
  std::int16_t exponents[kWgmmaMostK];
  Decode const decode_a = decoder(op.type, false);
  for (int row = 0; row < kWgmmaM; ++row) {
    specials.row[row] = decode_a(a[row], op.negate_a, tile.a[row], exponents);
    for (int i = 0; i < k; ++i) {
      tile.a_exponent[row][i] = static_cast<std::uint16_t>(exponents[i]) * 0x10001u;
    }
  }

  Decode const decode_b = decoder(op.type, true);
  specials.columns = 0;
  constexpr int kBlock = 16;
  for (int first = 0; first < op.n; first += kBlock) {
    alignas(64) float values[kBlock][kWgmmaMostK] = {};
    alignas(64) std::int16_t exponents_of[kBlock][kWgmmaMostK];
    for (int column = 0; column < kBlock; ++column) {
      if (first + column >= op.n) {
        std::fill_n(exponents_of[column], kWgmmaMostK, static_cast<std::int16_t>(kZeroExponent));
      } else if (decode_b(b[first + column], op.negate_b, values[column], exponents_of[column])) {
        specials.column[specials.columns++] = first + column;
      }
    }
    for (int i = 0; i < k; ++i) {
      for (int column = 0; column < kBlock; ++column) {
        tile.b[i][first + column] = values[column][i];
        tile.b_exponent[i][first + column] = exponents_of[column][i];
      }
    }
  }
}

/// sum * 2^unit toward zero, with `fraction_bits` of a binary32's 23.
std::uint32_t binary32_toward_zero(std::int64_t sum, int unit, int fraction_bits) {
  if (sum == 0) return 0;
  std::uint32_t const sign = sum < 0 ? kSign : 0;
  std::uint64_t const magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  int const exponent = static_cast<int>(std::bit_width(magnitude)) - 1 + unit;
  if (exponent > 127) return sign | kInfinity;
  int const held = std::max(exponent, -126);
  // First to the bits that are kept, then to the place of a binary32's last bit.
  int const dropped = held - fraction_bits - unit;
  std::uint64_t const cut = dropped > 63 ? 0 : dropped > 0 ? magnitude >> dropped << dropped : magnitude;
  int const shift = held - 23 - unit;
  std::uint64_t const significand = shift > 63 ? 0 : shift >= 0 ? cut >> shift : cut << -shift;
  if (significand == 0) return 0;
  std::uint32_t const field = exponent < -126 ? 0 : static_cast<std::uint32_t>(exponent + 127);
  return sign | (field << 23) | (static_cast<std::uint32_t>(significand) & 0x7fffffu);
}

/// sum * 2^unit to nearest even. A zero result is positive.
std::uint32_t binary16_nearest(std::int64_t sum, int unit) {
  if (sum == 0) return 0;
  std::uint32_t const sign = sum < 0 ? 0x8000u : 0;
  std::uint64_t const magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  int const exponent = std::max(static_cast<int>(std::bit_width(magnitude)) - 1 + unit, -14);
  int const shift = exponent - 10 - unit;
  if (shift > 62) return 0;
  std::uint64_t units = magnitude;
  if (shift > 0) {
    std::uint64_t const half = std::uint64_t{1} << (shift - 1);
    units = (magnitude + half - 1 + ((magnitude >> shift) & 1)) >> shift;
  } else {
    units <<= -shift;
  }
  std::uint64_t const code = (static_cast<std::uint64_t>(exponent + 14) << 10) + units;
  if (code == 0) return 0;
  return sign | static_cast<std::uint32_t>(std::min<std::uint64_t>(code, 0x7c00u));
}

/// One fused dot-add, any operands.
std::uint32_t dot_add(WgmmaTile const& tile, int row, int column, int k, std::uint32_t c, Kept kept,
                      bool half_result) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  double const addend = half_result ? to_float(half{static_cast<std::uint16_t>(c)}) : std::bit_cast<float>(c);
  int const least = half_result ? -14 : -126;
  double products[kWgmmaMostK];
  int largest = kLeastAlignment;
  if (addend != 0 && std::isfinite(addend)) largest = std::max({largest, std::ilogb(addend), least});
  bool nan = std::isnan(addend);
  bool positive = addend == kInfinite;
  bool negative = addend == -kInfinite;
  for (int i = 0; i < k; ++i) {
    products[i] = double{tile.a[row][i]} * double{tile.b[i][column]};
    nan = nan || std::isnan(products[i]);
    positive = positive || products[i] == kInfinite;
    negative = negative || products[i] == -kInfinite;
    int const a_exponent = static_cast<std::int16_t>(tile.a_exponent[row][i] & 0xffffu);
    largest = std::max(largest, a_exponent + tile.b_exponent[i][column]);
  }
  std::uint32_t const infinity = half_result ? 0x7c00u : kInfinity;
  std::uint32_t const sign = half_result ? 0x8000u : kSign;
  if (nan || (positive && negative)) return sign - 1;
  if (positive || negative) return negative ? sign | infinity : infinity;
  // At most 22 significant bits and the accumulator's 24: exact until the conversion truncates.
  double const scale = std::ldexp(1.0, kept.of_terms - largest);
  std::int64_t sum = static_cast<std::int64_t>(addend * scale);
  for (int i = 0; i < k; ++i) sum += static_cast<std::int64_t>(products[i] * scale);
  int const unit = largest - kept.of_terms;
  return half_result ? binary16_nearest(sum, unit) : binary32_toward_zero(sum, unit, kept.of_result);
}

constexpr WgmmaFamily family(WgmmaType type, bool half_result) {
  if (element_bits(type) == 8) return half_result ? WgmmaFamily::kNarrow32Half : WgmmaFamily::kNarrow32;
  if (type == WgmmaType::tf32) return WgmmaFamily::kWide8;
  return half_result ? WgmmaFamily::kWide16Half : WgmmaFamily::kWide16;
}

/// The functions of the best instruction set at hand.
struct Best {
  SumWgmmaRow sum_row = sum_wgmma_row_portable;
  SumWgmmaIntegers sum_integers = sum_wgmma_integers_portable;
};

Best best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return {sum_wgmma_row_avx2, sum_wgmma_integers_avx2};
#endif
  return {};
}

Best const kBest = best();

void wgmma_float(WgmmaConfig const& op, WgmmaTile const& tile, Specials const& specials, bool scale_d,
                 std::uint32_t* d) {
  bool const half_result = op.accumulator == WgmmaAccumulator::f16;
  WgmmaFamily const how = family(op.type, half_result);
  std::size_t const bytes = static_cast<std::size_t>(op.n) * sizeof *d;
  WgmmaRow out{};
  for (int row = 0; row < kWgmmaM; ++row) {
    std::uint32_t* const results = d + row * op.n;
    if (scale_d) std::memcpy(out.c, results, bytes);
    auto const slowly = [&](int column) {
      out.d[column] = dot_add(tile, row, column, wgmma_k(op.type), out.c[column], kept(op.type), half_result);
    };
    if (specials.row[row]) {
      for (int column = 0; column < op.n; ++column) slowly(column);
    } else {
      if (kBest.sum_row(tile, how, row, op.n, out)) {
        for (int column = 0; column < op.n; ++column) {
          if (out.exceptional[column] != 0) slowly(column);
        }
      }
      for (int i = 0; i < specials.columns; ++i) slowly(specials.column[i]);
    }
    std::memcpy(results, out.d, bytes);
  }
}

void wgmma_integer(WgmmaConfig const& op, WgmmaTile const& tile, bool scale_d, std::uint32_t* d) {
  alignas(64) std::int32_t products[kWgmmaMostColumns];
  for (int row = 0; row < kWgmmaM; ++row) {
    kBest.sum_integers(tile, row, op.n, products);
    std::uint32_t* const results = d + row * op.n;
    if (!scale_d) std::memset(results, 0, static_cast<std::size_t>(op.n) * sizeof *d);
    for (int n = 0; n < op.n; ++n) {
      if (op.satfinite) {
        using Limits = std::numeric_limits<std::int32_t>;
        std::int64_t const exact = std::int64_t{static_cast<std::int32_t>(results[n])} + products[n];
        results[n] =
            static_cast<std::uint32_t>(std::clamp<std::int64_t>(exact, Limits::min(), Limits::max()));
      } else {
        results[n] += static_cast<std::uint32_t>(products[n]);
      }
    }
  }
}

}  // namespace

void wgmma_tile(WgmmaConfig const& op, std::uint8_t const (*a)[kWgmmaRowBytes],
                std::uint8_t const (*b)[kWgmmaRowBytes], bool scale_d, std::uint32_t* d) {
  thread_local WgmmaTile tile;  // too large for a fiber's stack
  Specials specials;
  decode_operands(op, a, b, tile, specials);
  if (is_integer(op.type)) {
    wgmma_integer(op, tile, scale_d, d);
  } else {
    wgmma_float(op, tile, specials, scale_d, d);
  }
}

}  // namespace tegula::sim
