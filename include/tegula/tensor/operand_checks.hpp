#pragma once

#include <type_traits>

#include "tegula/atom/mma_spec.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/tensor/map.hpp"
#include "tegula/tensor/shared.hpp"

/// What a tile in shared memory must be for an instruction to multiply it: of the instruction's
/// type, and contiguous along the axis that it reads.
namespace tegula::detail {

/// Whether a tile's elements are what an instruction multiplies: its type, or, of floats, the bits
/// of it in an unsigned integer; a tf32 is any f32, cut.
template <class Element, DType Wanted> constexpr bool is_operand_of() {
  if constexpr (bits(Wanted) < 8) {
    return sizeof(Element) == 1;  // in memory 16 of them take 16 bytes
  } else {
    constexpr bool same_size = 8 * static_cast<int>(sizeof(Element)) == bits(Wanted);
    constexpr bool of_integers = Wanted == DType::s8 || Wanted == DType::u8;
    if (std::is_same_v<Element, type_of<Wanted>>) return true;
    if (Wanted == DType::tf32 && std::is_same_v<Element, float>) return true;
    return !of_integers && same_size && std::is_unsigned_v<Element>;
  }
}
/// As a constant, for device code calls no constexpr function of the host.
template <class Element, DType Wanted>
inline constexpr bool operand_of = is_operand_of<Element, Wanted>();

/// The tile's axis that a mode of a tensor goes along, or -1.
template <class M> inline constexpr int axis_of_mode = -1;
template <> inline constexpr int axis_of_mode<Mode<>> = 0;
template <int Axis, int... Extent, int... Step>
inline constexpr int axis_of_mode<Mode<Along<Axis, Extent, Step>...>> = Axis;

template <class Tile, DType Wanted> TEGULA_DEVICE constexpr void check_elements() {
  static_assert(operand_of<typename Tile::Element, Wanted>,
                "partition: the tile's elements are not of the type that the MMA multiplies");
}
/// Whether an operand (mn, k[, ...]) is contiguous along mn: as its tile is, or, of a tile whose
/// axes were exchanged (select), as it is not.
template <class Tile, class M> struct OperandContiguity {
  static constexpr int mn = axis_of_mode<mode_at<0, M>>;
  static constexpr bool along_mn = Contiguity<Tile>::along_mn == (mn != 1);
};
/// What a matrix descriptor names: a tile as it lies, of the instruction's type and major.
template <char Operand, class Tile, class M, MmaSpec S>
TEGULA_DEVICE constexpr void check_described_tile() {
  check_elements<Tile, Operand == 'a' ? S.a : S.b>();
  static_assert(
      OperandContiguity<Tile, M>::mn == 0,
      "partition: a matrix descriptor does not exchange a tile's axes (select): mn is its "
      "first one");
  constexpr bool along_mn = Contiguity<Tile>::along_mn;
  static_assert(
      Operand != 'a' || (S.a_major == Major::mn) == along_mn,
      "partition_a: the tile is contiguous along another axis than the MMA's a_major says");
  static_assert(
      Operand != 'b' || (S.b_major == Major::mn) == along_mn,
      "partition_b: the tile is contiguous along another axis than the MMA's b_major says");
}

}  // namespace tegula::detail
