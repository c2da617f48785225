#pragma once

#include "tegula/layout/coalesce.hpp"

/// Composition, decided exactly.
///
/// Let A be coalesced with its last leaf unbounded: extents a_0..a_{K-1}, strides t_0..t_K, P_k =
/// a_0 * ... * a_{k-1}. Then
///     A(x) = t_0 x + sum over k >= 1 of delta_k * floor(x / P_k),
/// where no delta_k = t_k - a_{k-1} t_{k-1} is 0.
/// A layout R compatible with B has R(i) = sum over the leaves j of B of R_j(i_j), so R = A o B
/// exists if and only if
///   (1) for each leaf s:d of B, g(i) = A(d i) on [0, s) is a flat layout, and
///   (2) A adds over the leaves: A(sum d_j i_j) = sum A(d_j i_j), that is, no carry between them
///       changes the result.
/// (1) is decided greedily: the coalesced form of a layout is unique, and its first leaf is the
/// longest prefix e on which g is linear; so e must divide s, and the rest is the leaf s/e : d e.
/// Splitting all leaves so makes (1) part of (2) for the split leaves e_j:d_j, which says
///   for all coordinates i:
///   sum over k of delta_k * floor(sum over j of i_j (d_j mod P_k) / P_k) = 0.
/// If no sum reaches its P_k all floors are 0. Otherwise the largest coordinate has a floor above
/// 0; with one such k the equation fails there. Only where several k overflow and cancel at that
/// corner are all coordinates tried, up to kEnumerationLimit of them.
namespace tegula {

namespace detail {

/// How many coordinates composition() tries where carries cancel (see above); beyond it refuses.
inline constexpr std::int64_t kEnumerationLimit = 1 << 16;

/// A, coalesced with its last leaf unbounded, and P_k, the product of the extents below leaf k.
struct Extended {
  Layout flat;
  std::int64_t below[kMaxLeaves] = {};

  constexpr explicit Extended(Layout const& a) {
    for (int i = 0; i + 1 < a.count; ++i) append_coalesced(flat, a.extents[i], a.stride(i));
    // The last leaf is unbounded, so it counts whatever its extent (CuTe: coalesce_x); 2 stands
    // for any.
    bool const more = a.count > 0 && !continues_run(flat, a.stride(a.count - 1));
    if (more) flat.append_leaf(2, a.stride(a.count - 1));
    std::int64_t product = 1;
    for (int i = 0; i < flat.count; ++i) {
      below[i] = product;
      product = i + 1 < flat.count ? product * flat.extents[i] : product;
    }
  }

  /// The axis of a sum of strides along several axes, which is no stride.
  static constexpr int kSeveralAxes = -2;

  /// A(x) as a stride, its axis kSeveralAxes if it is none.
  constexpr Stride operator()(std::int64_t x) const {
    std::int64_t totals[kMaxAxes + 1] = {};
    for (int k = 0; k < flat.count; ++k) {
      std::int64_t const digit = k + 1 < flat.count ? x % flat.extents[k] : x;
      std::int64_t& total = totals[flat.axes[k]];
      total = add(total, multiply(digit, flat.strides[k]));
      x /= flat.extents[k];
    }
    Stride sum{totals[0]};
    for (int axis = 0; axis < kMaxAxes; ++axis) {
      if (totals[axis + 1] != 0) sum = {totals[axis + 1], sum.value == 0 ? axis : kSeveralAxes};
    }
    return sum;
  }

  /// The stride that CuTe gives a leaf 1:d, where any would do: what is left of d beyond all
  /// bounded leaves, along the last one.
  constexpr Stride stride_of_one(std::int64_t d) const {
    if (flat.count == 0) return {0};
    int const last = flat.count - 1;
    std::int64_t const steps = d < 0 ? -((-d - 1) / below[last] + 1) : (d - 1) / below[last] + 1;
    return {multiply(steps, flat.strides[last]), flat.axes[last] - 1};
  }

  /// Whether sum over k of delta_k * weights[k] is 0, in every axis.
  constexpr bool jumps_cancel(std::int64_t const* weights) const {
    std::int64_t totals[kMaxAxes + 1] = {};
    for (int k = 1; k < flat.count; ++k) {
      std::int64_t& after = totals[flat.axes[k]];
      after = add(after, multiply(weights[k], flat.strides[k]));
      std::int64_t& before = totals[flat.axes[k - 1]];
      before =
          add(before, -multiply(weights[k], multiply(flat.extents[k - 1], flat.strides[k - 1])));
    }
    for (std::int64_t const total : totals) {
      if (total != 0) return false;
    }
    return true;
  }

  /// The largest e <= extent such that A(d i) = i A(d) for all i < e; 0 if that takes too long
  /// to find.
  constexpr std::int64_t linear_prefix(std::int64_t extent, std::int64_t d) const {
    std::int64_t first = extent;
    bool together = false;
    for (int k = 1; k < flat.count; ++k) {
      std::int64_t const r = d % below[k];
      if (r == 0) continue;
      std::int64_t const jump = (below[k] - 1) / r + 1;  // the first i with floor(i r / P_k) = 1
      together = jump == first ? true : (jump < first ? false : together);
      first = jump < first ? jump : first;
    }
    return together && first < extent ? cancelling_prefix(extent, d, first) : first;
  }

  /// linear_prefix where the first jumps come together, at `i`, and may cancel: steps from one jump
  /// to the next.
  constexpr std::int64_t cancelling_prefix(std::int64_t extent, std::int64_t d,
                                           std::int64_t i) const {
    for (std::int64_t steps = 0; i < extent; ++steps) {
      if (steps == kEnumerationLimit) return 0;
      std::int64_t weights[kMaxLeaves] = {};
      std::int64_t next = extent;
      for (int k = 1; k < flat.count; ++k) {
        std::int64_t const r = d % below[k];
        if (r == 0) continue;
        weights[k] = multiply(i, r) / below[k];
        std::int64_t const jump = (multiply(weights[k] + 1, below[k]) - 1) / r + 1;
        next = jump < next ? jump : next;
      }
      if (!jumps_cancel(weights)) return i;
      i = next;
    }
    return extent;
  }

  enum class Adds : std::uint8_t { yes, no, undecided };

  /// Condition (2) for the leaves of `split` along `axis`.
  constexpr Adds adds_over(Layout const& split, int axis) const {
    std::int64_t corner[kMaxLeaves] = {};
    std::int64_t coordinates = 1;
    bool overflows = false;
    for (int k = 1; k < flat.count; ++k) {
      std::int64_t sum = 0;
      for (int j = 0; j < split.count; ++j) {
        if (split.axes[j] == axis + 1)
          sum += (split.extents[j] - 1) * (split.strides[j] % below[k]);
      }
      corner[k] = sum / below[k];
      overflows = overflows || corner[k] > 0;
    }
    if (!overflows) return Adds::yes;
    if (!jumps_cancel(corner)) return Adds::no;
    for (int j = 0; j < split.count; ++j) {
      coordinates = multiply(coordinates, split.axes[j] == axis + 1 ? split.extents[j] : 1);
    }
    if (coordinates > kEnumerationLimit) return Adds::undecided;
    for (std::int64_t index = 0; index < coordinates; ++index) {
      std::int64_t weights[kMaxLeaves] = {};
      for (int k = 1; k < flat.count; ++k) {
        std::int64_t rest = index;
        for (int j = 0; j < split.count; ++j) {
          if (split.axes[j] != axis + 1) continue;
          weights[k] += rest % split.extents[j] * (split.strides[j] % below[k]);
          rest /= split.extents[j];
        }
        weights[k] /= below[k];
      }
      if (!jumps_cancel(weights)) return Adds::no;
    }
    return Adds::yes;
  }
};

}  // namespace detail

/// A o B. Law: the result's shape refines B's leaf by leaf, and result(c) == A(B(c)) for every
/// coordinate c of B; A's last leaf is unbounded. A leaf of B becomes one leaf, or a tuple of the
/// runs that A breaks it into, none of extent 1; one of stride 0 stays, and one of extent 1 keeps a
/// stride, of no account (CuTe's form in all three). A coordinate stride d@k of B means: d steps in
/// mode k of A.
///
/// Refused exactly where no layout satisfies the law (see the head of this file), or if B has a
/// negative stride while A is more than one run, since A has no negative indices; and, with
/// sentences of their own, where a number on the way exceeds 2^62, and in the rare case that is too
/// large to decide.
constexpr Layout composition(Layout const& a, Layout const& b) {
  Layout result;
  Layout split;  // the leaves of B as A breaks them: condition (2) is about these
  bool const by_axis = b.has_axes();
  int axis = -1;
  detail::Extended extended(by_axis ? Layout() : a);
  for (int j = 0; j < b.count; ++j) {
    std::int64_t extent = b.extents[j];
    Stride const step = b.stride(j);
    if (step.value == 0) {
      result.append_leaf(extent, {0}, b.open[j], b.close[j]);
      continue;
    }
    bool const mixed = by_axis && step.axis < 0;
    if (mixed) refuse("composition", "B has integer strides among coordinate strides", a, b);
    bool const exists = step.axis < a.rank();
    if (!exists) refuse("composition", "B has a stride along an axis that A has no mode for", a, b);
    if (step.axis != axis) extended = detail::Extended(a[axis = step.axis]);
    if (extent == 1) {
      result.append_leaf(1, extended.stride_of_one(step.value), b.open[j], b.close[j]);
      continue;
    }
    bool const leaves_a = step.value < 0 && extended.flat.count > 1;
    if (leaves_a)
      refuse("composition", "B has a negative stride, and A has no negative indices", a, b);

    int const first = result.count;
    std::int64_t d = step.value;
    while (extent > 1) {
      std::int64_t const prefix =
          extended.flat.count > 1 ? extended.linear_prefix(extent, d) : extent;
      if (prefix == 0)
        refuse("composition", "carries in A cancel for too long to follow (2^16)", a, b);
      bool const even = extent % prefix == 0;
      if (!even)
        refuse("composition", "a leaf of B splits unevenly at A's modes; no layout is A(B(i))", a,
               b);
      Stride const stride = extended(d);
      bool const one_axis = stride.axis != extended.kSeveralAxes;
      if (!one_axis)
        refuse("composition", "a stride of the result would go along several axes", a, b);
      result.append_leaf(prefix, stride);
      split.append_leaf(prefix, {d, step.axis});
      extent /= prefix;
      d = extent > 1 ? d * prefix : d;
    }
    if (result.count - first > 1) detail::wrap(result, first);
    result.open[first] = result.open[first] + b.open[j];
    result.close[result.count - 1] = result.close[result.count - 1] + b.close[j];
  }
  for (int checked = by_axis ? 0 : -1; checked < (by_axis ? a.rank() : 0); ++checked) {
    if (by_axis) extended = detail::Extended(a[checked]);
    auto const adds = extended.adds_over(split, checked);
    bool const carry = adds == detail::Extended::Adds::no;
    if (carry)
      refuse("composition", "B's leaves carry into each other in A's modes; no layout is A(B(i))",
             a, b);
    bool const decided = adds == detail::Extended::Adds::yes;
    if (!decided)
      refuse("composition", "carries may cancel at more than 2^16 coordinates, too many to try", a,
             b);
  }
  return detail::bounded(result);
}

}  // namespace tegula
