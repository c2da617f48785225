#pragma once

#include <cstdint>
#include <tegula/atom/mma_spec.hpp>
#include <tegula/sim/arithmetic.hpp>

/// What the parts of wgmma's arithmetic hand each other: the operands of one instruction, decoded
/// once, and the functions that sum over whole vectors of columns. Internal.
namespace tegula::sim::detail {

inline constexpr int kWgmmaRows = 64;
inline constexpr int kWgmmaMostColumns = 256;
inline constexpr int kWgmmaMostK = 32;
inline constexpr int kWgmmaColumnStep = 32;

/// What becomes of the products, by instruction family.
enum class WgmmaFamily {
  kWide8,        ///< k 8, 25 fraction bits are summed; binary32 results: tf32
  kWide16,       ///< k 16, the same: f16, bf16
  kWide16Half,   ///< k 16, the same, binary16 results: f16
  kWhole32,      ///< k 32, 25 fraction bits are summed: floats of 8 bits and fewer of tcgen05.mma
  kWhole32Half,  ///< the same, binary16 results
  kNarrow32,     ///< k 32, 13 fraction bits are summed and kept in binary32 results: 8-bit floats
  kNarrow32Half  ///< k 32, 13 fraction bits are summed; binary16 results: 8-bit floats
};

/// A and B as binary32 values, which hold every format's exactly, and the exponents under which the
/// hardware holds them (kZeroExponent for zeros). Columns from the instruction's n to the next
/// multiple of kWgmmaColumnStep are zeros.
struct WgmmaTile {
  alignas(64) float a[kWgmmaRows][kWgmmaMostK];
  // twice, in both halves of the word
  alignas(64) std::uint32_t a_exponent[kWgmmaRows][kWgmmaMostK];
  alignas(64) float b[kWgmmaMostK][kWgmmaMostColumns];
  alignas(64) std::int16_t b_exponent[kWgmmaMostK][kWgmmaMostColumns];
};

/// The rows of A and columns of B that hold an infinity or a NaN.
struct WgmmaSpecials {
  bool row[kWgmmaRows];
  int columns;
  int column[kWgmmaMostColumns];
};

/// One row of D = A B + C, and of C: binary32, or binary16 in the low half of a word.
struct WgmmaRow {
  alignas(64) std::uint32_t c[kWgmmaMostColumns];
  alignas(64) std::uint32_t d[kWgmmaMostColumns];
  alignas(64) std::int32_t exceptional[kWgmmaMostColumns];  // nonzero: d is not valid there
};

/// What is compiled for each instruction set.
struct WgmmaFunctions {
  /// Decodes the operands of an instruction, a and b as wgmma_tile has them but for elements of 6
  /// and 4 bits, which take a byte each.
  void (*decode)(MmaSpec const& op, std::uint8_t const (*a)[kWgmmaRowBytes],
                 std::uint8_t const (*b)[kWgmmaRowBytes], WgmmaTile& tile, WgmmaSpecials& specials);
  /// Fills `d` and `exceptional` of one row, to n or the next multiple of kWgmmaColumnStep; true if
  /// any is exceptional: among infinities, NaNs, sums beyond 31 bits, or alignments outside of
  /// 2^-100 to 2^120. Infinities and NaNs of A and B are not looked for.
  bool (*sum_row)(WgmmaTile const& tile, WgmmaFamily family, int row, int n, WgmmaRow& out);
  /// The exact sums of the products of one row of 8-bit integers, k 32, to n or the next multiple
  /// of kWgmmaColumnStep. `sums` is aligned to 64 bytes.
  void (*sum_integers)(WgmmaTile const& tile, int row, int n, std::int32_t* sums);
};

extern WgmmaFunctions const kWgmmaPortable;
extern WgmmaFunctions const kWgmmaAvx2;
extern WgmmaFunctions const kWgmmaAvx512;

}  // namespace tegula::sim::detail
