#pragma once

#include "tegula/layout/complement.hpp"
#include "tegula/layout/composition.hpp"

/// A layout seen in larger or smaller elements, and the vectors that two layouts have in common.
namespace tegula {

/// The layout in elements of n of the present ones. A leaf of stride d with d dividing n has n/d
/// neighbours in one large element, so its extent shrinks by that (rounded up) and its stride
/// becomes 1; a stride that n divides is divided by n; stride 0 stays. Law: with r the shrink
/// factor of each leaf, result(floor(c / r)) == floor(layout(c) / n) for every coordinate c.
/// (CuTe: upcast<N>.)
///
/// Refused where a stride neither divides n nor is divided by it (the elements straddle), is
/// negative and not divided by n, or where the parts of several leaves inside one element reach
/// beyond it.
constexpr Layout upcast(Layout const& layout, std::int64_t n) {
  if (n < 1) refuse("upcast", "the factor is less than 1", layout, n);
  if (n > detail::kLargest) refuse("upcast", "the factor is beyond 2^62", layout, n);
  Layout result;
  std::int64_t last_inside = 0;
  for (int i = 0; i < layout.count; ++i) {
    std::int64_t const extent = layout.extents[i];
    std::int64_t const stride = layout.strides[i];
    std::int64_t shrink = 1;
    std::int64_t larger = stride / n;
    if (stride % n != 0 && extent == 1) {
      larger = 0;
    } else if (stride % n != 0) {
      if (stride < 0) refuse("upcast", "a negative stride is not a multiple of n", layout, n);
      if (n % stride != 0)
        refuse("upcast", "a stride neither divides n nor is a multiple of it", layout, n);
      shrink = n / stride;
      larger = 1;
      last_inside += ((extent < shrink ? extent : shrink) - 1) * stride;
    }
    if (last_inside >= n)
      refuse("upcast", "leaves overlap or carry inside one larger element", layout, n);
    result.append_leaf((extent - 1) / shrink + 1, {larger, layout.axes[i] - 1}, layout.open[i],
                       layout.close[i]);
  }
  return result;
}

/// The layout in elements of which n make one present one. The first leaf of stride 1 with more
/// than one element (else the first of stride 1) grows n-fold, and all other strides are multiplied
/// by n. Law: with index n c + k in that leaf, 0 <= k < n, and c' elsewhere, result(...) == n
/// layout(c, c') + k. Refused where no leaf has stride 1, since then the small elements have no
/// leaf; but with n = 1 it is the layout itself. (CuTe: downcast<N>.)
constexpr Layout downcast(Layout const& layout, std::int64_t n) {
  if (n < 1) refuse("downcast", "the factor is less than 1", layout, n);
  if (n == 1) return layout;
  int unit = -1;
  for (int i = 0; i < layout.count; ++i) {
    if (layout.strides[i] != 1) continue;
    if (unit < 0 || (layout.extents[unit] == 1 && layout.extents[i] > 1)) unit = i;
  }
  if (unit < 0)
    refuse("downcast", "no leaf has stride 1, so the smaller elements have no leaf to go to",
           layout, n);
  Layout result;
  for (int i = 0; i < layout.count; ++i) {
    std::int64_t const extent = detail::multiply(layout.extents[i], i == unit ? n : 1);
    std::int64_t const stride = detail::multiply(layout.strides[i], i == unit ? 1 : n);
    result.append_leaf(extent, {stride, layout.axes[i] - 1}, layout.open[i], layout.close[i]);
  }
  return detail::bounded(result);
}

/// The layout of elements of `old_bits` as one of elements of `new_bits`: upcast and then downcast
/// by the reduced fraction new / old. (CuTe: recast_layout<Old, New>.)
constexpr Layout recast(Layout const& layout, std::int64_t old_bits, std::int64_t new_bits) {
  if (old_bits < 1 || new_bits < 1)
    refuse("recast", "an element has less than 1 bit", layout, old_bits, new_bits);
  std::int64_t a = old_bits;
  std::int64_t b = new_bits;
  while (b != 0) {
    std::int64_t const rest = a % b;
    a = b;
    b = rest;
  }
  std::int64_t const up = new_bits / a;
  std::int64_t const down = old_bits / a;
  Layout const larger = up == 1 ? layout : upcast(layout, up);
  return down == 1 ? larger : downcast(larger, down);
}

namespace detail {

/// The largest n such that, for all i < n, inverse(i) is an index of `a` and a(inverse(i)) == i,
/// and that [0, n) of `inverse` (a flat layout) is a layout: a product of its first extents times
/// any part of the next. Found leaf by leaf, without composition(a, inverse), which need not exist
/// as a whole.
constexpr std::int64_t identity_run(Layout const& a, Layout const& inverse) {
  Extended const extended(a);
  Layout taken;
  std::int64_t run = 1;
  std::int64_t room = a.size() - 1;  // how far the largest index may still go
  for (int i = 0; i < inverse.count; ++i) {
    std::int64_t const extent = inverse.extents[i];
    std::int64_t const step = inverse.strides[i];
    if (extent == 1) continue;
    if (!(extended(step) == Stride{run})) break;
    std::int64_t part = extended.linear_prefix(extent, step);
    if (part == 0)
      refuse("max_common_layout", "carries cancel for too long to follow (2^16)", a, inverse);
    part = part - 1 > room / step ? room / step + 1 : part;
    taken.append_leaf(part, {step});
    // What adds over the leaves does so over any smaller part, so the largest part is found
    // by bisection.
    std::int64_t refused_part = part + 1;
    for (std::int64_t accepted = 1; refused_part - accepted > 1;) {
      std::int64_t const tried =
          refused_part == part + 1 ? part : accepted + (refused_part - accepted) / 2;
      taken.extents[taken.count - 1] = tried;
      (extended.adds_over(taken, -1) == Extended::Adds::yes ? accepted : refused_part) = tried;
    }
    part = taken.extents[taken.count - 1] = refused_part - 1;
    run *= part;
    room -= (part - 1) * step;
    if (part < extent) break;
  }
  return run;
}

}  // namespace detail

/// The largest layout of elements that are contiguous from offset 0 on in both `a` and `b`. Law:
/// for 0 <= i < size(result), result(i) is an index of both layouts and a(result(i)) == i and
/// b(result(i)) == i; it is the longest prefix of right_inverse(b) for which that holds and which
/// is a layout. So where right_inverse(b) ends early, as of a layout whose leaves overlap, this
/// does. (CuTe: max_common_layout, which refuses more.)
constexpr Layout max_common_layout(Layout const& a, Layout const& b) {
  if (a.has_axes() || b.has_axes())
    refuse("max_common_layout", "a layout's values are coordinates, not integers", a, b);
  Layout const inverse = right_inverse(b);
  return coalesce(composition(inverse, layout(Tuple(detail::identity_run(a, inverse)))));
}

/// How many elements max_common_layout holds: the widest vector that moves between `a` and `b`. At
/// least 1. (CuTe: max_common_vector.)
constexpr std::int64_t max_common_vector(Layout const& a, Layout const& b) {
  return max_common_layout(a, b).size();
}

}  // namespace tegula
