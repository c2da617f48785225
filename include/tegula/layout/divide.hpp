#pragma once

#include "tegula/layout/complement.hpp"
#include "tegula/layout/composition.hpp"
#include "tegula/layout/tiler.hpp"

namespace tegula {

namespace detail {

/// Splits by mode and gathers: ((tile_0, tile_1, ...), (rest_0, rest_1, ..., further modes)). A
/// mode left alone counts as tile 1:0, rest itself. `split` gives a layout of rank 2, (tile, rest).
/// `operation` is whose refusal it is.
template <class Split>
constexpr Layout zip_split(char const* operation, Split const& split, Layout const& layout,
                           Tiler const& tiler) {
  if (tiler.is_underscore()) return make_layout(tegula::layout(Tuple(1), Tuple(0)), layout);
  if (!tiler.by_mode()) return split(layout, tiler.layout());
  int const tiled = tiler.rank();
  int const rank = layout.rank();
  if (tiled > rank) refuse(operation, "the tiler has more modes than the layout", layout, tiler);
  Layout tiles;
  Layout rests;
  for (int i = 0; i < rank; ++i) {
    if (i >= tiled) {
      append_mode(rests, layout[i]);
      continue;
    }
    Layout const both = zip_split(operation, split, layout[i], tiler[i]);
    append_mode(tiles, both[0]);
    append_mode(rests, both[1]);
  }
  wrap(tiles);
  wrap(rests);
  return make_layout(tiles, rests);
}

constexpr void append_modes(Layout& result, Layout const& part) {
  for (int i = 0; i < part.rank(); ++i) append_mode(result, part[i]);
}

/// (tile, (a, b, ...)) to (tile, a, b, ...).
constexpr Layout unpack_rest(Layout const& zipped) {
  Layout result;
  append_mode(result, zipped[0]);
  append_modes(result, zipped[1]);
  wrap(result);
  return result;
}

/// ((x, y, ...), (a, b, ...)) to (x, y, ..., a, b, ...).
constexpr Layout unpack_both(Layout const& zipped) {
  Layout result;
  append_modes(result, zipped[0]);
  append_modes(result, zipped[1]);
  wrap(result);
  return result;
}

}  // namespace detail

/// Composition by mode: result mode i is composition(a[i], tiler[i]); a[i] for `_` and beyond the
/// tiler's modes, so that the rank stays. A tiler of one layout is plain composition. (CuTe's
/// published semantics, and its reference pycute; cute::composition drops the modes that the tiler
/// does not name.)
constexpr Layout composition(Layout const& a, Tiler const& tiler) {
  if (tiler.is_underscore()) return a;
  if (!tiler.by_mode()) return composition(a, tiler.layout());
  if (tiler.rank() > a.rank())
    refuse("composition", "the tiler has more modes than the layout", a, tiler);
  return detail::transform_modes(a, tiler.rank(),
                                 [&](Layout const& m, int i) { return composition(m, tiler[i]); });
}

/// Splits `layout` into tiles: mode 0 runs inside the tile that `tiler` picks out of the index
/// space, mode 1 over the tiles. Law: result == composition(layout, make_layout(tiler,
/// complement(tiler, size(layout)))), so result(c) == layout(T(c)) for that pair T of layouts,
/// which covers every index of `layout` once (and, if the tile does not divide its size, some
/// beyond: the last leaf runs on). Refused where that complement or that composition is.
/// (CuTe: logical_divide.)
constexpr Layout logical_divide(Layout const& layout, Layout const& tiler) {
  return composition(layout, make_layout(tiler, complement(tiler, layout.size())));
}

/// Divides by mode; a mode at `_` or beyond the tiler's modes stays. Result mode i is
/// (tile_i, rest_i).
constexpr Layout logical_divide(Layout const& layout, Tiler const& tiler) {
  if (tiler.is_underscore()) return layout;
  if (!tiler.by_mode()) return logical_divide(layout, tiler.layout());
  if (tiler.rank() > layout.rank())
    refuse("logical_divide", "the tiler has more modes than the layout", layout, tiler);
  return detail::transform_modes(
      layout, tiler.rank(), [&](Layout const& m, int i) { return logical_divide(m, tiler[i]); });
}

namespace detail {

constexpr Layout zip_divide(char const* operation, Layout const& layout, Tiler const& tiler) {
  return zip_split(
      operation, [](Layout const& m, Layout const& t) { return logical_divide(m, t); }, layout,
      tiler);
}

}  // namespace detail

/// logical_divide, gathered: ((tile_0, tile_1, ...), (rest_0, rest_1, ..., further modes)). Law:
/// the same offsets as logical_divide, at coordinates regrouped. For a mode left alone (`_`) the
/// tile is 1:0 and the rest the mode. (CuTe: zipped_divide.)
constexpr Layout zipped_divide(Layout const& layout, Tiler const& tiler) {
  return detail::zip_divide("zipped_divide", layout, tiler);
}

/// zipped_divide with the rests as modes of their own: ((tile_0, tile_1, ...), rest_0,
/// rest_1, ...).
constexpr Layout tiled_divide(Layout const& layout, Tiler const& tiler) {
  return detail::unpack_rest(detail::zip_divide("tiled_divide", layout, tiler));
}

/// zipped_divide with all modes side by side: (tile_0, tile_1, ..., rest_0, rest_1, ...).
constexpr Layout flat_divide(Layout const& layout, Tiler const& tiler) {
  return detail::unpack_both(detail::zip_divide("flat_divide", layout, tiler));
}

/// The layout of `shape` over `layout`'s elements in flat order. Law: result(i) == layout(i).
/// (CuTe: with_shape.)
constexpr Layout with_shape(Layout const& layout, Tuple const& shape) {
  return composition(layout, tegula::layout(shape));
}

}  // namespace tegula
