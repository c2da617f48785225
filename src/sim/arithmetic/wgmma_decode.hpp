#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "arithmetic/tile.hpp"
#include "arithmetic/wgmma_lanes.hpp"

/// wgmma's operands decoded, whole vectors at a time: rows of A along k, columns of B side by side.
/// Included by one source file per instruction set, as arithmetic_wgmma_lanes.hpp is.
namespace tegula::sim::detail {
namespace {

/// The codes that are no numbers: those of the last exponent, the last one (a NaN), or none.
enum class WgmmaSpecialCodes { last_exponent, last, none };

/// An operand format by its fields; without an exponent, an integer.
struct WgmmaFormat {
  int exponent_bits;
  int mantissa_bits;
  WgmmaSpecialCodes special = WgmmaSpecialCodes::last_exponent;
  int dropped_bits = 0;  // low bits of an element that the tensor core does not read
  bool is_signed = true;

  /// That an element takes.
  constexpr int bits() const {
    int const used = exponent_bits + mantissa_bits + dropped_bits + (exponent_bits != 0 ? 1 : 0);
    return used < 8 ? 8 : used;
  }
};

inline constexpr WgmmaFormat kBf16{8, 7};
inline constexpr WgmmaFormat kF16{5, 10};
inline constexpr WgmmaFormat kTf32{8, 10, WgmmaSpecialCodes::last_exponent, 13};
inline constexpr WgmmaFormat kE4m3{4, 3, WgmmaSpecialCodes::last};
inline constexpr WgmmaFormat kE5m2{5, 2};
inline constexpr WgmmaFormat kE2m3{2, 3, WgmmaSpecialCodes::none};
inline constexpr WgmmaFormat kE3m2{3, 2, WgmmaSpecialCodes::none};
inline constexpr WgmmaFormat kE2m1{2, 1, WgmmaSpecialCodes::none};
inline constexpr WgmmaFormat kS8{0, 8, WgmmaSpecialCodes::none};
inline constexpr WgmmaFormat kU8{0, 8, WgmmaSpecialCodes::none, 0, false};

template <int Lanes> struct WgmmaDecoded {
  typename WgmmaLane<Lanes>::Float value;
  typename WgmmaLane<Lanes>::Signed exponent;  // under which the hardware holds it; 0 where special
  typename WgmmaLane<Lanes>::Signed special;   // a mask: infinite or NaN
};

/// Codes in the low bits of words, zeros above. `flip` is 0 or a binary32's sign.
template <WgmmaFormat Format, int Lanes>
inline WgmmaDecoded<Lanes> decode_lanes(typename WgmmaLane<Lanes>::Unsigned code,
                                        std::uint32_t flip) {
  using I = typename WgmmaLane<Lanes>::Signed;
  using U = typename WgmmaLane<Lanes>::Unsigned;
  using F = typename WgmmaLane<Lanes>::Float;
  if constexpr (Format.exponent_bits == 0) {
    I const value = Format.is_signed ? (I)(code << 24) >> 24 : (I)code;
    return {__builtin_convertvector(value, F), I{}, I{}};
  } else {
    constexpr int kCodeBits = Format.exponent_bits + Format.mantissa_bits;
    constexpr std::uint32_t kTop = (1u << Format.exponent_bits) - 1;
    constexpr int kBias = static_cast<int>(kTop / 2);
    constexpr bool kInfinities = Format.special == WgmmaSpecialCodes::last_exponent;
    constexpr std::int32_t kFirstSpecial =
        kInfinities ? kTop << Format.mantissa_bits
                    : (1u << kCodeBits) - (Format.special == WgmmaSpecialCodes::last ? 1 : 0);
    code >>= Format.dropped_bits;
    U const magnitude = code & ((1u << kCodeBits) - 1);
    U const sign = (code >> kCodeBits << 31) ^ flip;
    // The fields in a binary32's places are the value but for the bias.
    F value = (F)(magnitude << (23 - Format.mantissa_bits));
    if constexpr (Format.exponent_bits != 8)
      value *= std::bit_cast<float>(static_cast<std::uint32_t>(127 + 127 - kBias) << 23);
    I const special = (I)magnitude >= kFirstSpecial;
    U const infinity = kInfinities ? (U)((I)magnitude == kFirstSpecial) : U{};
    U const instead = U{} + 0x7fffffffu - (infinity & 0x007fffffu);
    U const finite = ~(U)special;
    value = (F)((((U)value & finite) | (instead & (U)special)) | sign);
    I const field = (I)(magnitude >> Format.mantissa_bits);
    I exponent = (field == 0 ? I{} + 1 : field) - kBias;
    exponent = magnitude == 0 ? I{} + kZeroExponent : exponent;
    return {value, exponent & (I)finite, special};
  }
}

template <class Vector> inline bool any_lane(Vector const& mask) {
  constexpr int kLanes = static_cast<int>(sizeof mask / sizeof mask[0]);
  std::int32_t any = 0;
  for (int lane = 0; lane < kLanes; ++lane) any |= mask[lane];
  return any != 0;
}

/// At most the 8 elements that a row of tf32 has.
template <int Lanes> inline constexpr int kDecodeLanes = Lanes < 8 ? Lanes : 8;

template <WgmmaFormat Format, int Lanes>
inline void decode_a(std::uint8_t const (*a)[kWgmmaRowBytes], bool negate, WgmmaTile& tile,
                     WgmmaSpecials& specials) {
  using I = typename WgmmaLane<Lanes>::Signed;
  using U = typename WgmmaLane<Lanes>::Unsigned;
  using F = typename WgmmaLane<Lanes>::Float;
  constexpr int kBytes = Format.bits() / 8;
  using Code = std::conditional_t<kBytes == 1, std::uint8_t,
                                  std::conditional_t<kBytes == 2, std::uint16_t, std::uint32_t>>;
  using Codes __attribute__((vector_size(Lanes * sizeof(Code)))) = Code;
  std::uint32_t const flip = negate ? 0x80000000u : 0;
  for (int row = 0; row < kWgmmaRows; ++row) {
    I special{};
    for (int i = 0; i < kWgmmaRowBytes / kBytes; i += Lanes) {
      Codes codes;
      std::memcpy(&codes, a[row] + kBytes * i, sizeof codes);
      auto const decoded = decode_lanes<Format, Lanes>(__builtin_convertvector(codes, U), flip);
      special |= decoded.special;
      *reinterpret_cast<F*>(&tile.a[row][i]) = decoded.value;
      *reinterpret_cast<U*>(&tile.a_exponent[row][i]) = ((U)decoded.exponent & 0xffffu) * 0x10001u;
    }
    specials.row[row] = any_lane(special);
  }
}

template <WgmmaFormat Format, int Lanes>
inline void decode_b(std::uint8_t const (*b)[kWgmmaRowBytes], int n, bool negate, WgmmaTile& tile,
                     WgmmaSpecials& specials) {
  using I = typename WgmmaLane<Lanes>::Signed;
  using U = typename WgmmaLane<Lanes>::Unsigned;
  using F = typename WgmmaLane<Lanes>::Float;
  using S = typename WgmmaLane<Lanes>::Short;
  constexpr int kWords = kWgmmaRowBytes / 4;
  constexpr int kInWord = 32 / Format.bits();
  constexpr std::uint32_t kMask = 0xffffffffu >> (32 - Format.bits());
  std::uint32_t const flip = negate ? 0x80000000u : 0;
  specials.columns = 0;
  for (int first = 0; first < (n + kWgmmaColumnStep - 1) / kWgmmaColumnStep * kWgmmaColumnStep;
       first += Lanes) {
    alignas(64) std::uint32_t words[kWords][Lanes] = {};  // turned, so that columns are lanes
    for (int lane = 0; lane < Lanes && first + lane < n; ++lane) {
      for (int w = 0; w < kWords; ++w) std::memcpy(&words[w][lane], b[first + lane] + 4 * w, 4);
    }
    I special{};
    for (int w = 0; w < kWords; ++w) {
      U const word = *reinterpret_cast<U const*>(words[w]);
#pragma GCC unroll 4
      for (int i = 0; i < kInWord; ++i) {
        auto const decoded =
            decode_lanes<Format, Lanes>((word >> (Format.bits() * i)) & kMask, flip);
        special |= decoded.special;
        *reinterpret_cast<F*>(&tile.b[kInWord * w + i][first]) = decoded.value;
        *reinterpret_cast<S*>(&tile.b_exponent[kInWord * w + i][first]) =
            __builtin_convertvector(decoded.exponent, S);
      }
    }
    if (!any_lane(special)) continue;
    for (int lane = 0; lane < Lanes; ++lane) {
      if (special[lane] != 0) specials.column[specials.columns++] = first + lane;
    }
  }
}

/// Calls f with the format of the type as its template argument.
template <class F> inline void with_format(DType type, F&& f) {
  switch (type) {
    case DType::bf16:
      return f.template operator()<kBf16>();
    case DType::f16:
      return f.template operator()<kF16>();
    case DType::tf32:
      return f.template operator()<kTf32>();
    case DType::e4m3:
      return f.template operator()<kE4m3>();
    case DType::e5m2:
      return f.template operator()<kE5m2>();
    case DType::e2m3:
      return f.template operator()<kE2m3>();
    case DType::e3m2:
      return f.template operator()<kE3m2>();
    case DType::e2m1:
      return f.template operator()<kE2m1>();
    case DType::s8:
      return f.template operator()<kS8>();
    default:
      return f.template operator()<kU8>();
  }
}

template <int Lanes>
inline void decode_wgmma(MmaSpec const& op, std::uint8_t const (*a)[kWgmmaRowBytes],
                         std::uint8_t const (*b)[kWgmmaRowBytes], WgmmaTile& tile,
                         WgmmaSpecials& specials) {
  with_format(op.a, [&]<WgmmaFormat Format>() {
    decode_a<Format, kDecodeLanes<Lanes>>(a, op.negate_a, tile, specials);
  });
  with_format(op.b, [&]<WgmmaFormat Format>() {
    decode_b<Format, kDecodeLanes<Lanes>>(b, op.n, op.negate_b, tile, specials);
  });
}

/// The functions for vectors of so many words.
template <int Lanes>
inline constexpr WgmmaFunctions kWgmmaFunctions{decode_wgmma<Lanes>, sum_wgmma_row<Lanes>,
                                                sum_wgmma_integers<Lanes>};

}  // namespace
}  // namespace tegula::sim::detail
