#pragma once

#include "tegula/layout/coalesce.hpp"

/// Layouts in address arithmetic: the layout is a template argument, so that with power-of-two
/// extents only shifts, masks and adds remain.
namespace tegula {

namespace detail {

inline constexpr int kAllModes = -1;

/// Mode `mode` of a layout, or all of it, coalesced; sizes below 2^31 and offsets that fit 32 bits,
/// which is what offset_of computes with.
constexpr Layout flat_for_offsets(Layout const& layout, int mode) {
  Layout const flat = coalesce(mode == kAllModes ? layout : layout[mode]);
  bool const fits = flat.size() <= INT32_MAX && flat.cosize() <= INT32_MAX;
  if (!fits) refuse("offset_of", "size or cosize exceeds 2^31 - 1", layout);
  return flat;
}

// Constants as members of a type, since a device function may not call a host one, not even for its
// constants (nvcc warning 20013), and since a type is a cheaper template argument to a compiler
// than a Layout.
template <Layout L, int Mode> struct FlatMode {
  static constexpr Layout value = flat_for_offsets(L, Mode);
};
template <Layout L> inline constexpr int layout_rank = L.rank();

template <int... Numbers> struct NumberList {};
template <int N, int... Numbers> struct CountTo : CountTo<N - 1, N - 1, Numbers...> {};
template <int... Numbers> struct CountTo<0, Numbers...> { using Type = NumberList<Numbers...>; };

/// One leaf's part of an offset; takes its digit off the index. Extent 0: the last leaf, which
/// takes all.
template <unsigned Extent, int Step> TEGULA_HOST_DEVICE constexpr int leaf_offset(unsigned& index) {
  if constexpr (Extent == 0) {
    return static_cast<int>(index) * Step;
  } else {
    unsigned const digit = index % Extent;
    index /= Extent;
    return static_cast<int>(digit) * Step;
  }
}

template <class Mode, int... Leaves>
TEGULA_HOST_DEVICE constexpr int mode_offset(unsigned index, NumberList<Leaves...>) {
  int offset = 0;
  ((offset += leaf_offset < Leaves + 1 == Mode::value.count
                  ? 0u
                  : static_cast<unsigned>(Mode::value.extents[Leaves]),
    static_cast<int>(Mode::value.strides[Leaves]) > (index)),
   ...);
  return offset;
}

template <class... Modes, class... Indices>
TEGULA_HOST_DEVICE constexpr int modes_offset(Indices... indices) {
  return (... + mode_offset<Modes>(static_cast<unsigned>(indices),
                                   typename CountTo<Modes::value.count>::Type{}));
}

template <Layout L, int... Modes, class... Indices>
TEGULA_HOST_DEVICE constexpr int each_mode_offset(NumberList<Modes...>, Indices... indices) {
  return modes_offset<FlatMode<L, Modes>...>(indices...);
}

}  // namespace detail

/// L(index) for 0 <= index < size(L), in 32-bit arithmetic unrolled over L's leaves: the
/// form for kernels. Refused at compile time if size or cosize exceeds 2^31 - 1, or L's
/// values are coordinates.
template <Layout L> TEGULA_HOST_DEVICE constexpr int offset_of(int index) {
  return detail::modes_offset<detail::FlatMode<L, detail::kAllModes>>(index);
}

/// L(i, j, ...) with one flat index for each mode, each within its mode.
template <Layout L, class... Rest>
requires(sizeof...(Rest) > 0) TEGULA_HOST_DEVICE constexpr int offset_of(int first, Rest... rest) {
  static_assert(1 + sizeof...(Rest) == detail::layout_rank<L>,
                "offset_of takes one index, or one for each mode of the layout");
  return detail::each_mode_offset<L>(typename detail::CountTo<1 + sizeof...(Rest)>::Type{}, first,
                                     rest...);
}

}  // namespace tegula
