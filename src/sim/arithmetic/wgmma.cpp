#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tegula/numeric/dtype.hpp>
#include <tegula/sim/arithmetic.hpp>

#include "arithmetic/packed.hpp"
#include "arithmetic/rounding.hpp"
#include "arithmetic/tile.hpp"
#include "arithmetic/wgmma_tile.hpp"

namespace tegula::sim {
namespace {

using namespace detail;  // the tile and its sums

/// What the hardware keeps of a sum: fraction bits below the largest exponent, and fraction bits of
/// a binary32 result.
struct Kept {
  int of_terms;
  int of_result;
};

constexpr Kept kept(MmaSpec const& op) {
  return element_bits(op) == 8 && !is_tensor_memory_mma(op) ? Kept{13, 13} : Kept{25, 23};
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

/// One fused dot-add, any operands; c counts 2^-scale_input_d, exactly.
std::uint32_t dot_add(WgmmaTile const& tile, int row, int column, int k, std::uint32_t c,
                      int scale_input_d, Kept kept, bool half_result) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  double const given =
      half_result ? to_float(half{static_cast<std::uint16_t>(c)}) : std::bit_cast<float>(c);
  double const addend = std::ldexp(given, -scale_input_d);
  int const least = (half_result ? -14 : -126) - scale_input_d;
  double products[kWgmmaMostK];
  int largest = kLeastAlignment;
  if (addend != 0 && std::isfinite(addend))
    largest = std::max({largest, std::ilogb(addend), least});
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
  return half_result ? binary16_nearest(sum, unit)
                     : binary32_toward_zero(sum, unit, kept.of_result);
}

/// Whether a row of A, or a column of B, holds a NaN: all its results are NaN.
bool has_nan_in_row(WgmmaTile const& tile, int row, int k) {
  return std::any_of(tile.a[row], tile.a[row] + k, [](float x) { return std::isnan(x); });
}
bool has_nan_in_column(WgmmaTile const& tile, int column, int k) {
  return std::any_of(tile.b, tile.b + k, [&](auto const& b) { return std::isnan(b[column]); });
}

constexpr WgmmaFamily family(MmaSpec const& op) {
  bool const half_result = op.d == DType::f16;
  if (element_bits(op) == 8 && is_tensor_memory_mma(op))
    return half_result ? WgmmaFamily::kWhole32Half : WgmmaFamily::kWhole32;
  if (element_bits(op) == 8)
    return half_result ? WgmmaFamily::kNarrow32Half : WgmmaFamily::kNarrow32;
  if (op.a == DType::tf32) return WgmmaFamily::kWide8;
  return half_result ? WgmmaFamily::kWide16Half : WgmmaFamily::kWide16;
}

/// The functions of the best instruction set at hand.
WgmmaFunctions const& best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) return kWgmmaAvx512;
  if (__builtin_cpu_supports("avx2")) return kWgmmaAvx2;
#endif
  return kWgmmaPortable;
}

void wgmma_float(WgmmaFunctions const& functions, MmaSpec const& op, WgmmaTile const& tile,
                 WgmmaSpecials const& specials, bool scale_d, std::uint32_t* d, int scale_input_d) {
  bool const half_result = op.d == DType::f16;
  WgmmaFamily const how = family(op);
  std::size_t const bytes = static_cast<std::size_t>(op.n) * sizeof *d;
  std::uint32_t const nan = (half_result ? 0x8000u : kSign) - 1;
  bool nan_column[kWgmmaMostColumns] = {};
  for (int i = 0; i < specials.columns; ++i)
    nan_column[specials.column[i]] = has_nan_in_column(tile, specials.column[i], op.k);
  WgmmaRow out{};
  for (int row = 0; row < kWgmmaM; ++row) {
    std::uint32_t* const results = d + row * op.n;
    if (scale_d) std::memcpy(out.c, results, bytes);
    auto const slowly = [&](int column) {
      out.d[column] =
          dot_add(tile, row, column, op.k, out.c[column], scale_input_d, kept(op), half_result);
    };
    if (specials.row[row] && has_nan_in_row(tile, row, op.k)) {
      std::fill_n(out.d, op.n, nan);
    } else if (specials.row[row] || scale_input_d != 0) {
      for (int column = 0; column < op.n; ++column) slowly(column);
    } else {
      if (functions.sum_row(tile, how, row, op.n, out)) {
        for (int column = 0; column < op.n; ++column) {
          if (out.exceptional[column] != 0 && !nan_column[column]) slowly(column);
        }
      }
      for (int i = 0; i < specials.columns; ++i) {
        int const column = specials.column[i];
        if (nan_column[column])
          out.d[column] = nan;
        else
          slowly(column);
      }
    }
    std::memcpy(results, out.d, bytes);
  }
}

void wgmma_integer(WgmmaFunctions const& functions, MmaSpec const& op, WgmmaTile const& tile,
                   bool scale_d, std::uint32_t* d) {
  alignas(64) std::int32_t products[kWgmmaMostColumns];
  for (int row = 0; row < kWgmmaM; ++row) {
    functions.sum_integers(tile, row, op.n, products);
    std::uint32_t* const results = d + row * op.n;
    if (!scale_d) std::memset(results, 0, static_cast<std::size_t>(op.n) * sizeof *d);
    for (int n = 0; n < op.n; ++n) {
      if (op.variant == MmaVariant::saturate) {
        using Limits = std::numeric_limits<std::int32_t>;
        std::int64_t const exact =
            std::int64_t{static_cast<std::int32_t>(results[n])} + products[n];
        results[n] = static_cast<std::uint32_t>(
            std::clamp<std::int64_t>(exact, Limits::min(), Limits::max()));
      } else {
        results[n] += static_cast<std::uint32_t>(products[n]);
      }
    }
  }
}

/// The rows with a byte for each element: themselves, or, of 6 and 4 bits, what they are unpacked
/// to.
std::uint8_t const (*in_bytes(DType type, std::uint8_t const (*rows)[kWgmmaRowBytes], int count,
                              std::uint8_t (*unpacked)[kWgmmaRowBytes]))[kWgmmaRowBytes] {
  if (bits(type) >= 8) return rows;
  for (int row = 0; row < count; ++row) {
    for (int i = 0; i < kWgmmaRowBytes; ++i) unpacked[row][i] = packed_code(type, rows[row], i);
  }
  return unpacked;
}

}  // namespace

void wgmma_tile(MmaSpec const& op, std::uint8_t const (*a)[kWgmmaRowBytes],
                std::uint8_t const (*b)[kWgmmaRowBytes], bool scale_d, std::uint32_t* d,
                int scale_input_d) {
  static WgmmaFunctions const& functions = best();
  thread_local WgmmaTile tile;  // too large for a fiber's stack
  thread_local std::uint8_t of_a[kWgmmaRows][kWgmmaRowBytes];
  thread_local std::uint8_t of_b[kWgmmaMostColumns][kWgmmaRowBytes];
  WgmmaSpecials specials;
  a = in_bytes(op.a, a, kWgmmaRows, of_a);
  b = in_bytes(op.b, b, op.n, of_b);
  functions.decode(op, a, b, tile, specials);
  if (op.d == DType::s32) {
    wgmma_integer(functions, op, tile, scale_d, d);
  } else {
    wgmma_float(functions, op, tile, specials, scale_d, d, scale_input_d);
  }
}

}  // namespace tegula::sim
