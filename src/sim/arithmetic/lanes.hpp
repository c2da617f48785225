#pragma once

#include <cstdint>

#include "arithmetic/tile.hpp"

/// The fused dot-add over whole vectors of columns. Included by one source file per instruction
/// set, each of which is compiled for its own, so everything here has internal linkage.
namespace tegula::sim::detail {
namespace {

template <int Lanes> struct Lane {
  using Signed __attribute__((vector_size(Lanes * 4), may_alias)) = std::int32_t;
  using Unsigned __attribute__((vector_size(Lanes * 4), may_alias)) = std::uint32_t;
  using Float __attribute__((vector_size(Lanes * 4), may_alias)) = float;
};

/// One row, one group of columns: every product and c aligned to the largest exponent and
/// truncated, summed exactly, rounded.
template <int Lanes, int K, SumRounding Rounding>
inline bool reduce_columns(DotTile& tile, int row, int column, int first_k, int fraction_bits) {
  using I = typename Lane<Lanes>::Signed;
  using U = typename Lane<Lanes>::Unsigned;
  using F = typename Lane<Lanes>::Float;
  auto const load = [](std::int32_t const* p) { return *reinterpret_cast<I const*>(p); };

  I const c_exponent = load(&tile.c_exponent[row][column]);
  I const floor = I{} + kLeastAlignment;
  I largest = c_exponent > floor ? c_exponent : floor;
#pragma GCC unroll 16
  for (int k = 0; k < K; ++k) {
    I const exponent =
        load(&tile.b_exponent[first_k + k][column]) + tile.a_exponent[row][first_k + k];
    largest = exponent > largest ? exponent : largest;
  }

  I const last_shift = I{} + 31;
  I products{};
#pragma GCC unroll 16
  for (int k = 0; k < K; ++k) {
    I const exponent =
        load(&tile.b_exponent[first_k + k][column]) + tile.a_exponent[row][first_k + k];
    I const distance = largest - exponent;
    I const shift = distance < last_shift ? distance : last_shift;
    I const magnitude =
        load(&tile.b_magnitude[first_k + k][column]) * tile.a_magnitude[row][first_k + k];
    I const sign = load(&tile.b_sign[first_k + k][column]) ^ tile.a_sign[row][first_k + k];
    products += ((I)((U)magnitude >> (U)shift) ^ sign) - sign;
  }
  I const c_distance = largest - c_exponent;
  I const c_shift = c_distance < last_shift ? c_distance : last_shift;
  I const c_sign = load(&tile.c_sign[row][column]);
  I const addend = (I)((U)load(&tile.c_magnitude[row][column]) >> (U)c_shift);
  I const term = (addend ^ c_sign) - c_sign;

  // The products' sum is below 2^31, the whole sum below 2^32: its sign is bit 31 corrected
  // for overflow.
  I const sum = (I)((U)products + (U)term);
  I const overflow = ~(products ^ term) & (products ^ sum);
  I const sign = (sum ^ overflow) >> 31;
  U magnitude = (U)(sum ^ sign) - (U)sign;

  // To 24 bits or fewer, so that the conversion to float is exact, or has a zero in its round bit.
  I scale;
  if constexpr (Rounding == SumRounding::kTowardZero) {
    U const wide = (U)((magnitude >> 30) != 0);
    scale = (I)(wide & 2u);
    magnitude >>= wide & 2u;
    magnitude &= ~(magnitude >> 24);
  } else {
    U const wide = (U)((magnitude >> 24) != 0);
    U const sticky = (U)((magnitude & 255u) != 0) & wide & 1u;
    scale = (I)(wide & 8u);
    magnitude = (magnitude >> (wide & 8u)) | sticky;
  }
  F const converted = __builtin_convertvector((I)magnitude, F);
  I const significand = (I)converted;
  I const nonzero = (I)(magnitude != 0);
  I const exponent = largest - fraction_bits + scale;
  I const field = (significand >> 23) + exponent;
  I const bits = (I)((U)significand + ((U)exponent << 23));  // meaningless where `outside`
  *reinterpret_cast<I*>(&tile.d[row][column]) = nonzero & (bits | (I)((U)sign << 31));

  I const outside = nonzero & ((field < 1) | (field > 254));
  std::int32_t any = 0;
  for (int lane = 0; lane < Lanes; ++lane) any |= outside[lane];
  return any != 0;
}

template <int Lanes, int K, SumRounding Rounding>
inline void reduce_rows(DotTile& tile, int first_k, int fraction_bits) {
  for (int row = 0; row < kRows; ++row) {
    bool exceptional = false;
    for (int column = 0; column < kColumns; column += Lanes) {
      exceptional |= reduce_columns<Lanes, K, Rounding>(tile, row, column, first_k, fraction_bits);
    }
    tile.exceptional[row] = exceptional;
  }
}

template <int Lanes, SumRounding Rounding>
inline void reduce_rounded(DotTile& tile, int first_k, int k, int fraction_bits) {
  if (k == 16) return reduce_rows<Lanes, 16, Rounding>(tile, first_k, fraction_bits);
  if (k == 8) return reduce_rows<Lanes, 8, Rounding>(tile, first_k, fraction_bits);
  return reduce_rows<Lanes, 4, Rounding>(tile, first_k, fraction_bits);
}

template <int Lanes>
inline void reduce_tile(DotTile& tile, int first_k, int k, int fraction_bits,
                        SumRounding rounding) {
  if (rounding == SumRounding::kTowardZero) {
    reduce_rounded<Lanes, SumRounding::kTowardZero>(tile, first_k, k, fraction_bits);
  } else {
    reduce_rounded<Lanes, SumRounding::kToOdd>(tile, first_k, k, fraction_bits);
  }
}

}  // namespace
}  // namespace tegula::sim::detail
