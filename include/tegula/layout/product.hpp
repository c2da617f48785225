#pragma once

#include "tegula/layout/divide.hpp"
#include "tegula/layout/modes.hpp"

namespace tegula {

/// `block` repeated as often and in the order that `tiler` says. Law: mode 0 is `block`; mode 1 is
/// C o tiler, where C = complement(block, size(block) * cosize(tiler)); so result((i, j)) ==
/// block(i) + C(tiler(j)), and C(tiler(j)) for different tiler(j) never brings two copies together.
/// Refused where that complement or that composition is. (CuTe: logical_product.)
constexpr Layout logical_product(Layout const& block, Layout const& tiler) {
  return make_layout(
      block, composition(complement(block, detail::multiply(block.size(), tiler.cosize())), tiler));
}

/// Multiplies by mode; a mode at `_` or beyond the tiler's modes stays. Result mode i is
/// (block_i, copies_i).
constexpr Layout logical_product(Layout const& block, Tiler const& tiler) {
  if (tiler.is_underscore()) return block;
  if (!tiler.by_mode()) return logical_product(block, tiler.layout());
  if (tiler.rank() > block.rank())
    refuse("logical_product", "the tiler has more modes than the layout", block, tiler);
  return detail::transform_modes(
      block, tiler.rank(), [&](Layout const& m, int i) { return logical_product(m, tiler[i]); });
}

namespace detail {

constexpr Layout zip_product(char const* operation, Layout const& block, Tiler const& tiler) {
  return zip_split(
      operation, [](Layout const& m, Layout const& t) { return logical_product(m, t); }, block,
      tiler);
}

}  // namespace detail

/// logical_product, gathered: ((block_0, block_1, ...), (copies_0, copies_1, ..., further modes)).
constexpr Layout zipped_product(Layout const& block, Tiler const& tiler) {
  return detail::zip_product("zipped_product", block, tiler);
}

/// zipped_product with the copies as modes of their own.
constexpr Layout tiled_product(Layout const& block, Tiler const& tiler) {
  return detail::unpack_rest(detail::zip_product("tiled_product", block, tiler));
}

/// zipped_product with all modes side by side.
constexpr Layout flat_product(Layout const& block, Tiler const& tiler) {
  return detail::unpack_both(detail::zip_product("flat_product", block, tiler));
}

namespace detail {

/// The product of `block` and `tiler`, both padded to the same rank, with each mode of one beside
/// the same mode of the other.
constexpr Layout paired_product(Layout const& block, Layout const& tiler, bool block_first) {
  int const rank = block.rank() > tiler.rank() ? block.rank() : tiler.rank();
  Layout const padded_block = append(block, rank);
  Layout const padded_tiler = append(tiler, rank);
  Layout const copies = logical_product(padded_block, padded_tiler)[1];
  Layout result;
  for (int i = 0; i < rank; ++i) {
    Layout const inner = is_leaf(padded_block) ? padded_block : padded_block[i];
    Layout const outer = is_leaf(padded_tiler) ? copies : copies[i];
    append_mode(result, block_first ? make_layout(inner, outer) : make_layout(outer, inner));
  }
  wrap(result);
  return bounded(result);
}

}  // namespace detail

/// `tiler` as a grid of blocks: mode i is (block[i], copies[i]); rank is the larger of the two
/// ranks, the other padded with 1:0. Law: the offsets of logical_product, at coordinates regrouped.
/// (CuTe: blocked_product.)
constexpr Layout blocked_product(Layout const& block, Layout const& tiler) {
  return detail::paired_product(block, tiler, true);
}

/// blocked_product with the blocks interleaved: mode i is (copies[i], block[i]).
/// (CuTe: raked_product.)
constexpr Layout raked_product(Layout const& block, Layout const& tiler) {
  return detail::paired_product(block, tiler, false);
}

/// The compact layout of `shape` whose modes are contiguous in the order that `order` ranks them:
/// the least first, equals left to right. Example: shape (4,8), order (2,1) gives (4,8):(8,1).
/// (CuTe: make_ordered_layout.)
constexpr Layout ordered_layout(Tuple const& shape, Tuple const& order) {
  Layout result = layout(shape);
  if (order.rank() != shape.rank())
    refuse("ordered_layout", "order has not one integer per mode of the shape", shape, order);
  bool placed[kMaxLeaves] = {};
  std::int64_t stride = 1;
  for (int done = 0; done < shape.rank(); ++done) {
    int next = -1;
    for (int mode = 0; mode < shape.rank(); ++mode) {
      if (!placed[mode] && (next < 0 || order[mode].value() < order[next].value())) next = mode;
    }
    placed[next] = true;
    detail::LeafRange const leaves = detail::mode_of(shape, next);
    for (int i = leaves.first; i < leaves.last; ++i) {
      result.strides[i] = stride;
      stride = detail::multiply(stride, shape.values[i]);
    }
  }
  return result;
}

/// `block` repeated until it has the given shape, over mode 0 first, or in the order that `order`
/// ranks the modes. Law: each mode of the result has the size of that mode of `shape`, and it is
/// blocked_product(block, ordered_layout(shape / block's shape, order)). Refused where a mode of
/// the block does not divide that of the shape, and where that product is. (CuTe: tile_to_shape.)
constexpr Layout tile_to_shape(Layout const& block, Tuple const& shape, Tuple const& order) {
  if (block.rank() > shape.rank())
    refuse("tile_to_shape", "the block has more modes than the shape", block, shape);
  Layout const padded = append(block, shape.rank());
  Tuple counts;
  for (int i = 0; i < shape.rank(); ++i) {
    std::int64_t const extent = padded[i].size();
    if (shape[i].size() % extent != 0)
      refuse("tile_to_shape", "a mode of the block does not divide that mode of the shape", block,
             shape);
    counts.append_leaf(shape[i].size() / extent);
  }
  if (!shape.is_integer()) detail::wrap(counts);
  return blocked_product(padded, ordered_layout(counts, order));
}
constexpr Layout tile_to_shape(Layout const& block, Tuple const& shape) {
  Tuple order;
  for (int i = 0; i < shape.rank(); ++i) order.append_leaf(i);
  if (!shape.is_integer()) detail::wrap(order);
  return tile_to_shape(block, shape, order);
}

}  // namespace tegula
