#pragma once

#include "tegula/layout/coalesce.hpp"

/// Layouts in address arithmetic: the layout is a template argument, so that with power-of-two extents only
/// shifts, masks and adds remain.
namespace tegula {

namespace detail {

/// Sizes below 2^31 and offsets that fit 32 bits: what offset_of computes with.
constexpr Layout flat_for_offsets(Layout const& layout) {
  Layout const flat = coalesce(layout);
  if (flat.size() > INT32_MAX || flat.cosize() > INT32_MAX)
    refuse("offset_of", "size or cosize exceeds 2^31 - 1", layout);
  return flat;
}

// Constants at namespace scope, since a device function may not call a host one, not even for its constants
// (nvcc warning 20013).
template <Layout L> inline constexpr Layout flat_layout = flat_for_offsets(L);
template <Layout L, int Mode> inline constexpr Layout mode_layout = L[Mode];
template <Layout L> inline constexpr int layout_rank = L.rank();

template <Layout Flat, int Leaf> TEGULA_HOST_DEVICE constexpr int leaf_offset(unsigned& index) {
  constexpr unsigned extent = static_cast<unsigned>(Flat.extents[Leaf]);
  constexpr int stride = static_cast<int>(Flat.strides[Leaf]);
  if constexpr (Leaf + 1 == Flat.count) {
    return static_cast<int>(index) * stride;
  } else {
    unsigned const digit = index % extent;
    index /= extent;
    return static_cast<int>(digit) * stride;
  }
}

template <int... Leaves> struct LeafList {};

template <Layout Flat, int... Leaves>
TEGULA_HOST_DEVICE constexpr int flat_offset(unsigned index, LeafList<Leaves...>) {
  int offset = 0;
  ((offset += leaf_offset<Flat, Leaves>(index)), ...);
  return offset;
}

template <int N, int... Leaves> struct CountTo : CountTo<N - 1, N - 1, Leaves...> {};
template <int... Leaves> struct CountTo<0, Leaves...> { using Type = LeafList<Leaves...>; };

}  // namespace detail

/// L(index) for 0 <= index < size(L), in 32-bit arithmetic unrolled over L's leaves: the form for kernels.
/// Refused at compile time if size or cosize exceeds 2^31 - 1, or L's values are coordinates.
template <Layout L> TEGULA_HOST_DEVICE constexpr int offset_of(int index) {
  return detail::flat_offset<detail::flat_layout<L>>(
      static_cast<unsigned>(index), typename detail::CountTo<detail::flat_layout<L>.count>::Type{});
}

namespace detail {

template <Layout L, int Mode, class... Rest>
TEGULA_HOST_DEVICE constexpr int offset_from_mode(int index, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return offset_of<mode_layout<L, Mode>>(index);
  } else {
    return offset_of<mode_layout<L, Mode>>(index) + offset_from_mode<L, Mode + 1>(rest...);
  }
}

}  // namespace detail

/// L(i, j, ...) with one flat index for each mode.
template <Layout L, class... Rest>
requires(sizeof...(Rest) > 0) TEGULA_HOST_DEVICE constexpr int offset_of(int first, Rest... rest) {
  static_assert(1 + sizeof...(Rest) == detail::layout_rank<L>,
                "offset_of takes one index, or one for each mode of the layout");
  return detail::offset_from_mode<L, 0>(first, rest...);
}

}  // namespace tegula
