#pragma once

#include "tegula/layout/layout.hpp"

namespace tegula {

namespace detail {

/// Whether a leaf of this stride goes on where the last leaf of a flat layout ends, so that the two
/// are one run.
constexpr bool continues_run(Layout const& flat, Stride stride) {
  if (flat.count == 0) return false;
  Stride const previous = flat.stride(flat.count - 1);
  if (previous.axis != (stride.value == 0 ? -1 : stride.axis)) return false;
  if (previous.value == 0) return stride.value == 0;
  // By division, since extent * stride may be beyond 2^62.
  return stride.value % previous.value == 0 &&
         stride.value / previous.value == flat.extents[flat.count - 1];
}

/// Appends extent:stride to a flat layout, merged with its last leaf where the two are one run,
/// left out where it has one element.
constexpr void append_coalesced(Layout& flat, std::int64_t extent, Stride stride) {
  if (extent == 1) return;
  if (continues_run(flat, stride)) {
    flat.extents[flat.count - 1] = multiply(flat.extents[flat.count - 1], extent);
  } else {
    flat.append_leaf(extent, stride);
  }
}

/// Makes a finished flat list of leaves a layout: a bare leaf if there is one, a tuple if there are
/// more, 1:0 if there is none.
constexpr void finish_flat(Layout& flat) {
  if (flat.count == 0) flat.append_leaf(1, {0});
  if (flat.count > 1) wrap(flat);
}

/// Applies f to each mode of `layout` that the tuple or tiler tree `profile` has a mode for;
/// further modes stay as they are.
template <class F> constexpr Layout transform_modes(Layout const& layout, int modes, F const& f) {
  Layout result;
  int const rank = layout.rank();
  for (int i = 0; i < rank; ++i) append_mode(result, i < modes ? f(layout[i], i) : layout[i]);
  wrap(result);
  return bounded(result);
}

}  // namespace detail

/// The simplest layout that is the same function of the flat index. Law: result(i) == layout(i)
/// for 0 <= i < size; same size; depth at most 1; no leaf of one element (unless it is 1:0); no two
/// neighbours that are one run. Two layouts of the same size are the same function if and only if
/// their coalesced forms are equal. (CuTe: coalesce.)
constexpr Layout coalesce(Layout const& layout) {
  Layout result;
  for (int i = 0; i < layout.count; ++i)
    detail::append_coalesced(result, layout.extents[i], layout.stride(i));
  detail::finish_flat(result);
  return result;
}

/// Coalesces by mode: where `profile` has an integer (its value is of no account), that mode is
/// coalesced as a whole; a tuple descends. Modes beyond the profile's stay. The profile may have no
/// more modes than the layout.
constexpr Layout coalesce(Layout const& layout, Tuple const& profile) {
  if (profile.is_integer()) return coalesce(layout);
  if (profile.rank() > layout.rank())
    refuse("coalesce", "the profile has more modes than the layout", layout, profile);
  return detail::transform_modes(layout, profile.rank(),
                                 [&](Layout const& m, int i) { return coalesce(m, profile[i]); });
}

/// Coalesces what is left without the leaves of stride 0 or extent 1: each offset of the
/// layout once per remaining index. Law: same image; size is the size of the part that moves.
/// (CuTe: filter.)
constexpr Layout filter(Layout const& layout) {
  Layout result;
  for (int i = 0; i < layout.count; ++i) {
    if (layout.strides[i] != 0)
      detail::append_coalesced(result, layout.extents[i], layout.stride(i));
  }
  detail::finish_flat(result);
  return result;
}

/// The same leaves without nesting: depth at most 1, the same function of the flat index. A bare
/// leaf stays one. (CuTe: flatten.)
constexpr Layout flatten(Layout const& layout) {
  if (detail::is_leaf(layout)) return layout;
  Layout result;
  for (int i = 0; i < layout.count; ++i) result.append_leaf(layout.extents[i], layout.stride(i));
  detail::wrap(result);
  return result;
}

/// The integers of a tuple without nesting.
constexpr Tuple flatten(Tuple const& tree) {
  if (tree.is_integer()) return tree;
  Tuple result;
  for (int i = 0; i < tree.count; ++i) result.append_leaf(tree.values[i]);
  detail::wrap(result);
  return result;
}

}  // namespace tegula
