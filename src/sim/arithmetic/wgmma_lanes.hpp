#pragma once

#include <cstdint>

#include "arithmetic/tile.hpp"
#include "arithmetic/wgmma_tile.hpp"

/// wgmma's dot-adds over whole vectors of columns. Included by one source file per instruction set,
/// each of which is compiled for its own, so everything here has internal linkage.
///
/// A product of two factors is exact in binary32 unless its exponent is out of range, and so is its
/// multiple by a power of two; the conversion to an integer truncates toward zero as the hardware
/// does. A product too small for binary32 is far below the last bit kept, because alignments below
/// 2^-100 are left to others.
namespace tegula::sim::detail {
namespace {

template <int Lanes> struct WgmmaLane {
  using Signed __attribute__((vector_size(Lanes * 4), may_alias)) = std::int32_t;
  using Unsigned __attribute__((vector_size(Lanes * 4), may_alias)) = std::uint32_t;
  using Float __attribute__((vector_size(Lanes * 4), may_alias)) = float;
  using Short __attribute__((vector_size(Lanes * 2), may_alias)) = std::int16_t;
  using Shorts __attribute__((vector_size(Lanes * 4), may_alias)) = std::int16_t;
};

inline constexpr std::int32_t kLeastExponent = -100, kGreatestExponent = 120;
// above what a zero factor gives, below what others give
inline constexpr std::int32_t kNoProducts = -2000;

/// The code of the binary16 nearest to a value of magnitude `x`, ties to even; the code of infinity
/// above all. x may have been rounded to odd at 24 bits.
template <class F, class U> inline U binary16_nearest(F x) {
  U const bits = (U)x;
  U const normal = ((bits + 0xfffu + ((bits >> 13) & 1u)) >> 13) - (112u << 10);
  U const subnormal = (U)(x + 0.5f) - 0x3f000000u;  // 2^-24 is the last place of 0.5
  U const code = bits < (113u << 23) ? subnormal : normal;
  return code > 0x7c00u ? U{} + 0x7c00u : code;
}

/// The last step for one vector of columns: adds c to the products' sum, rounds. Returns a mask of
/// the lanes whose result is not valid.
template <int Lanes, int Fraction, bool Half>
inline typename WgmmaLane<Lanes>::Signed finish_columns(typename WgmmaLane<Lanes>::Signed products,
                                                        typename WgmmaLane<Lanes>::Float addend,
                                                        typename WgmmaLane<Lanes>::Float scale,
                                                        typename WgmmaLane<Lanes>::Signed largest,
                                                        std::uint32_t* d) {
  using I = typename WgmmaLane<Lanes>::Signed;
  using U = typename WgmmaLane<Lanes>::Unsigned;
  using F = typename WgmmaLane<Lanes>::Float;
  constexpr bool kMayOverflow = Fraction == 25;
  I const term = __builtin_convertvector(addend * scale, I);
  I const sum = (I)((U)products + (U)term);
  I const sign = sum >> 31;
  U magnitude = (U)(sum ^ sign) - (U)sign;
  I invalid = (largest > kGreatestExponent);
  if constexpr (kMayOverflow) invalid |= (~(products ^ term) & (products ^ sum)) | (I)magnitude;
  invalid >>= 31;

  I unit = largest - (Fraction - 127);  // biased
  if constexpr (Half && kMayOverflow) {
    U const wide = (U)((magnitude >> 24) != 0);
    U const sticky = (U)((magnitude & 255u) != 0) & wide & 1u;
    magnitude = (magnitude >> (wide & 8u)) | sticky;
    unit += (I)(wide & 8u);
  } else if constexpr (kMayOverflow) {
    magnitude &= ~(magnitude >> 24);  // a zero in the round bit of the conversion
  }
  F converted = __builtin_convertvector((I)magnitude, F);
  if constexpr (!Half && Fraction == 13) converted = (F)((U)converted & ~0x3ffu);
  F const value = converted * (F)((U)unit << 23);
  if constexpr (Half) {
    U const code = binary16_nearest<F, U>(value);
    *reinterpret_cast<U*>(d) = (code != 0) & (code | ((U)sign & 0x8000u));
  } else {
    *reinterpret_cast<U*>(d) = (U)value | ((U)sign & 0x80000000u);
  }
  return invalid;
}

/// Two vectors of columns of one row.
template <int Lanes, int K, int Fraction, bool Half>
inline typename WgmmaLane<Lanes>::Signed sum_columns(WgmmaTile const& tile, int row, int column,
                                                     WgmmaRow& out) {
  using I = typename WgmmaLane<Lanes>::Signed;
  using U = typename WgmmaLane<Lanes>::Unsigned;
  using F = typename WgmmaLane<Lanes>::Float;
  using S = typename WgmmaLane<Lanes>::Short;
  using SS = typename WgmmaLane<Lanes>::Shorts;

  SS greatest = SS{} + static_cast<std::int16_t>(2 * kZeroExponent);
#pragma GCC unroll 32
  for (int k = 0; k < K; ++k) {
    SS const factor = (SS)(U{} + tile.a_exponent[row][k]);
    SS const exponent = *reinterpret_cast<SS const*>(&tile.b_exponent[k][column]) + factor;
    greatest = exponent > greatest ? exponent : greatest;
  }
  alignas(64) std::int16_t parts[2 * Lanes];
  *reinterpret_cast<SS*>(parts) = greatest;

  F addend[2], scale[2];
  I largest[2], of_products[2], special[2];
  for (int half = 0; half < 2; ++half) {
    of_products[half] =
        __builtin_convertvector(*reinterpret_cast<S const*>(parts + half * Lanes), I);
    U const code = *reinterpret_cast<U const*>(&out.c[column + half * Lanes]);
    I exponent;
    if constexpr (Half) {
      U const magnitude = code & 0x7fffu;
      F const value = (F)(magnitude << 13) * 0x1p112f;
      addend[half] = (F)((U)value | ((code & 0x8000u) << 16));
      exponent = (I)(magnitude >> 10);
      special[half] = exponent == 31;
      // A subnormal counts with the least normal exponent, a zero does not count.
      exponent = (exponent == 0 ? I{} + 1 : exponent) - 15;
      exponent = magnitude == 0 ? I{} + kLeastExponent : exponent;
    } else {
      addend[half] = (F)code;
      exponent = (I)((code >> 23) & 255u) - 127;
      special[half] = I{};
    }
    largest[half] = of_products[half] > exponent ? of_products[half] : exponent;
    I const power = Fraction + 127 - largest[half];
    I const most = I{} + 254;
    scale[half] = (F)((U)(power < most ? power : most) << 23);
  }

  // Sixteen products fit into 31 bits; where there are more, the halves of the sum may not.
  constexpr bool kTwoParts = K > 16 && Fraction == 25;
  U sums[2] = {}, upper[2] = {};  // invalid lanes may wrap
#pragma GCC unroll 32
  for (int k = 0; k < K; ++k) {
    F const factor = F{} + tile.a[row][k];
    F const* b = reinterpret_cast<F const*>(&tile.b[k][column]);
    U* const into = kTwoParts && k >= 16 ? upper : sums;
    into[0] += (U) __builtin_convertvector(b[0] * factor * scale[0], I);
    into[1] += (U) __builtin_convertvector(b[1] * factor * scale[1], I);
  }
  if constexpr (kTwoParts) {
    for (int half = 0; half < 2; ++half) {
      U const sum = sums[half] + upper[half];
      special[half] |= (I)(~(sums[half] ^ upper[half]) & (sums[half] ^ sum)) >> 31;
      sums[half] = sum;
    }
  }

  I any{};
  for (int half = 0; half < 2; ++half) {
    int const first = column + half * Lanes;
    I invalid = finish_columns<Lanes, Fraction, Half>((I)sums[half], addend[half], scale[half],
                                                      largest[half], &out.d[first]);
    invalid |= special[half];
    if constexpr (!Half) {
      I const none = of_products[half] < kNoProducts;
      invalid |= ~none & (largest[half] < kLeastExponent);
      // Without products c is the result: alignments need not reach its subnormals.
      U const kept = Fraction == 13 ? (U)addend[half] & ~0x3ffu : (U)addend[half];
      U const alone = (U)((F)kept + 0.0f);  // never a negative zero
      U* const d = reinterpret_cast<U*>(&out.d[first]);
      *d = ((U)none & alone) | (~(U)none & *d);
    }
    *reinterpret_cast<I*>(&out.exceptional[first]) = invalid;
    any |= invalid;
  }
  return any;
}

template <int Lanes, int K, int Fraction, bool Half>
inline bool sum_row(WgmmaTile const& tile, int row, int n, WgmmaRow& out) {
  typename WgmmaLane<Lanes>::Signed any{};
  for (int column = 0; column < n; column += 2 * Lanes) {
    any |= sum_columns<Lanes, K, Fraction, Half>(tile, row, column, out);
  }
  std::int32_t one = 0;
  for (int lane = 0; lane < Lanes; ++lane) one |= any[lane];
  return one != 0;
}

template <int Lanes>
inline bool sum_wgmma_row(WgmmaTile const& tile, WgmmaFamily family, int row, int n,
                          WgmmaRow& out) {
  switch (family) {
    case WgmmaFamily::kWide8:
      return sum_row<Lanes, 8, 25, false>(tile, row, n, out);
    case WgmmaFamily::kWide16:
      return sum_row<Lanes, 16, 25, false>(tile, row, n, out);
    case WgmmaFamily::kWide16Half:
      return sum_row<Lanes, 16, 25, true>(tile, row, n, out);
    case WgmmaFamily::kWhole32:
      return sum_row<Lanes, 32, 25, false>(tile, row, n, out);
    case WgmmaFamily::kWhole32Half:
      return sum_row<Lanes, 32, 25, true>(tile, row, n, out);
    case WgmmaFamily::kNarrow32:
      return sum_row<Lanes, 32, 13, false>(tile, row, n, out);
    case WgmmaFamily::kNarrow32Half:
      return sum_row<Lanes, 32, 13, true>(tile, row, n, out);
  }
  return false;
}

/// Sums of at most 32 * 2^16: exact in binary32.
template <int Lanes>
inline void sum_wgmma_integers(WgmmaTile const& tile, int row, int n, std::int32_t* sums) {
  using I = typename WgmmaLane<Lanes>::Signed;
  using F = typename WgmmaLane<Lanes>::Float;
  for (int column = 0; column < n; column += 2 * Lanes) {
    F sum[2] = {};
#pragma GCC unroll 32
    for (int k = 0; k < kWgmmaMostK; ++k) {
      F const* b = reinterpret_cast<F const*>(&tile.b[k][column]);
      sum[0] += b[0] * tile.a[row][k];
      sum[1] += b[1] * tile.a[row][k];
    }
    *reinterpret_cast<I*>(sums + column) = __builtin_convertvector(sum[0], I);
    *reinterpret_cast<I*>(sums + column + Lanes) = __builtin_convertvector(sum[1], I);
  }
}

}  // namespace
}  // namespace tegula::sim::detail
