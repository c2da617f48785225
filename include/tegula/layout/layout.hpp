#pragma once

#include "tegula/layout/tuple.hpp"

namespace tegula {

/// How many axes a problem may have: coordinate strides lie along axis 0 to kMaxAxes - 1.
inline constexpr int kMaxAxes = 15;

/// The stride of one leaf: `value` steps in the integers (axis < 0), or `value` units along axis
/// `axis` of a problem, written 1@0. (CuTe: an integer, or a ScaledBasis.)
struct Stride {
  std::int64_t value = 0;
  int axis = -1;

  friend constexpr bool operator==(Stride, Stride) = default;
};

namespace detail {

/// offset + index * stride, where nothing bounds the index: checked on the host.
TEGULA_HOST_DEVICE constexpr std::int64_t unbounded_step(std::int64_t offset, std::int64_t index,
                                                         std::int64_t stride) {
#if defined(__CUDA_ARCH__)
  return offset + index * stride;
#else
  return add(offset, multiply(index, stride));
#endif
}

}  // namespace detail

/// A layout: a tree of modes whose leaves have an extent and a stride; the function from a
/// coordinate in its shape, or from a flat colexicographic index (first mode fastest), to an
/// offset. Semantics and text form are CuTe's: `(4,(3,6)):(1,(4,12))`.
///
/// A structural literal type: equal layouts are equal template arguments. It stays an aggregate,
/// because nvcc writes template arguments of class type as braced lists into the host code;
/// Layout{} is the empty layout `():()`. At most kMaxLeaves leaves. Extents are at least 1; their
/// product, the magnitude of every stride and the sum of (extent - 1) * |stride| are at most 2^62.
/// Every operation keeps this or refuses. Strides are integers, or coordinate strides (see Stride),
/// whose layout's values are coordinates. The members are public because the language asks it of a
/// structural type: build layouts with layout(), make_layout(), row_major(), col_major() or a
/// literal, and read them through the functions.
struct Layout {
  // 64 bits leave no padding: clang 14 reads the arrays of a padded template argument one
  // member off.
  std::int64_t count = 0;
  std::int64_t extents[kMaxLeaves] = {};
  std::int64_t strides[kMaxLeaves] = {};
  LeafCounts axes;   // 0: an integer stride; k + 1: along axis k
  LeafCounts open;   // parentheses just before each leaf
  LeafCounts close;  // parentheses just after it

  constexpr int leaves() const { return count; }
  /// How many modes; 1 for a bare leaf such as 8:1.
  constexpr int rank() const { return detail::rank_of(*this); }
  /// 0 for a bare leaf, 1 for a tuple of leaves, and so on.
  constexpr int depth() const { return detail::depth_of(*this); }
  /// The size of the domain: the product of all extents.
  constexpr std::int64_t size() const {
    std::int64_t product = 1;
    for (int i = 0; i < count; ++i) product = detail::multiply(product, extents[i]);
    return product;
  }
  /// The size of the codomain: 1 + sum of (extent - 1) * |stride|, as CuTe has it. With strides of
  /// one sign the smallest bound on |offset| + 1. Refused for coordinate strides (see coshape).
  constexpr std::int64_t cosize() const {
    std::int64_t last = 0;
    for (int i = 0; i < count; ++i) {
      if (axes[i] != 0) refuse("cosize", "the values are coordinates, which have a coshape", *this);
      last = detail::add(
          last, detail::multiply(extents[i] - 1, strides[i] < 0 ? -strides[i] : strides[i]));
    }
    return last + 1;
  }
  /// Whether any stride is along an axis, so that values are coordinates.
  constexpr bool has_axes() const {
    for (int i = 0; i < count; ++i) {
      if (axes[i] != 0) return true;
    }
    return false;
  }

  /// The shape of the codomain: for each axis 1 + sum of (extent - 1) * |stride| over its
  /// leaves, a tuple of as many axes as are used; the cosize for a layout of integer strides.
  /// (CuTe: coshape.)
  constexpr Tuple coshape() const {
    if (!has_axes()) return cosize();
    std::int64_t last[kMaxAxes] = {};
    int used = 0;
    for (int i = 0; i < count; ++i) {
      if (axes[i] == 0) continue;
      std::int64_t const reach =
          detail::multiply(extents[i] - 1, strides[i] < 0 ? -strides[i] : strides[i]);
      last[axes[i] - 1] = detail::add(last[axes[i] - 1], reach);
      used = axes[i] > used ? axes[i] : used;
    }
    Tuple result;
    for (int axis = 0; axis < used; ++axis) result.append_leaf(last[axis] + 1);
    detail::wrap(result);
    return result;
  }

  constexpr std::int64_t extent(int leaf) const { return extents[leaf]; }
  constexpr Stride stride(int leaf) const { return {strides[leaf], axes[leaf] - 1}; }

  constexpr Tuple shape() const {
    Tuple result;
    for (int i = 0; i < count; ++i) result.append_leaf(extents[i], open[i], close[i]);
    return result;
  }
  /// The tree of strides, congruent with the shape. Refused for coordinate strides, which are
  /// not integers.
  constexpr Tuple stride() const {
    if (has_axes())
      refuse("stride", "the layout has coordinate strides, no integers; read them leaf by leaf",
             *this);
    Tuple result;
    for (int i = 0; i < count; ++i) result.append_leaf(strides[i], open[i], close[i]);
    return result;
  }

  /// Mode `mode`, in [0, rank). A bare leaf is its own mode 0.
  constexpr Layout operator[](int mode) const {
    return detail::subtree(*this, detail::mode_of(*this, mode));
  }

  /// The offset at a flat colexicographic index. The last leaf is unbounded, as in CuTe: an index
  /// of size() or more runs on along it. On the host an index below 0 (unless there is only one
  /// leaf), an offset beyond 2^62 and a layout of coordinates are refused.
  TEGULA_HOST_DEVICE constexpr std::int64_t operator()(std::int64_t index) const {
#if !defined(__CUDA_ARCH__)
    if (index < 0 && count > 1) refuse("layout(index)", "the index is negative", *this, index);
    if (has_axes())
      refuse("layout(index)", "the layout's values are coordinates: ask coordinate(index)", *this,
             index);
#endif
    std::int64_t offset = 0;
    for (int i = 0; i < count; ++i) {
      if (i + 1 == count) {
        offset = detail::unbounded_step(offset, index, strides[i]);
      } else {
        offset += index % extents[i] * strides[i];
        index /= extents[i];
      }
    }
    return offset;
  }

  /// The offset at a coordinate of flat indices, one per mode: layout(i, j).
  template <class... Rest>
  requires(sizeof...(Rest) > 0 && (... && (static_cast<Rest>(3) / 2 == 1))) TEGULA_HOST_DEVICE
      constexpr std::int64_t
      operator()(std::int64_t first, Rest... rest) const {
    std::int64_t const coordinate[] = {first, static_cast<std::int64_t>(rest)...};
#if !defined(__CUDA_ARCH__)
    if (rank() != 1 + sizeof...(rest))
      refuse("layout(i, j)", "the coordinate has not one index per mode", *this,
             1 + sizeof...(rest));
    if (has_axes())
      refuse("layout(i, j)", "the layout's values are coordinates: ask coordinate(coord)", *this);
#endif
    std::int64_t offset = 0;
    int level = 0;
    int mode = 0;
    std::int64_t index = first;
    for (int i = 0; i < count; ++i) {
      level += open[i] - close[i];
      if (level > 1) {
        offset += index % extents[i] * strides[i];
        index /= extents[i];
      } else {
        offset = detail::unbounded_step(offset, index, strides[i]);
        if (++mode < static_cast<int>(1 + sizeof...(rest))) index = coordinate[mode];
      }
    }
    return offset;
  }

  /// The offset at a coordinate: the shape's tree, in which an integer may stand for a whole tuple
  /// (then it is a flat index into it).
  constexpr std::int64_t operator()(Tuple const& coord) const {
    if (has_axes())
      refuse("layout(coord)", "the layout's values are coordinates: ask coordinate(coord)", *this,
             coord);
    std::int64_t offset = 0;
    Tuple const digits = digits_of(coord);
    for (int i = 0; i < count; ++i)
      offset = detail::add(offset, detail::multiply(digits.values[i], strides[i]));
    return offset;
  }

  /// The value of a layout of coordinates at an index or coordinate: a tuple with one integer per
  /// axis, up to the largest axis named. Refused where a leaf of more than one element has a
  /// non-zero integer stride.
  constexpr Tuple coordinate(Tuple const& coord) const {
    Tuple const digits = digits_of(coord);
    std::int64_t along[kMaxAxes] = {};
    int axes_used = 0;
    for (int i = 0; i < count; ++i) {
      if (axes[i] == 0) {
        if (strides[i] != 0 && extents[i] > 1)
          refuse("coordinate", "an integer stride among coordinate strides", *this);
        continue;
      }
      std::int64_t& reached = along[axes[i] - 1];
      reached = detail::add(reached, detail::multiply(digits.values[i], strides[i]));
      axes_used = axes[i] > axes_used ? axes[i] : axes_used;
    }
    Tuple result;
    for (int axis = 0; axis < axes_used; ++axis) result.append_leaf(along[axis]);
    detail::wrap(result);
    return result;
  }

  /// The index of every leaf at `coord`, flat: the last leaf that an integer of `coord` stands for
  /// is unbounded.
  constexpr Tuple digits_of(Tuple const& coord) const {
    Tuple result;
    int leaf = 0;
    for (int i = 0; i < coord.count; ++i) {
      detail::LeafRange const run = detail::matching_leaves(coord, i, *this, leaf);
      if (run.first == run.last)
        refuse("layout(coord)", "the coordinate is not a coarsening of the layout's shape", *this,
               coord);
      if (coord.values[i] == Tuple::kUnderscore)
        refuse("layout(coord)", "_ has no offset: slice the layout", *this, coord);
      std::int64_t index = coord.values[i];
      if (index < 0 && run.last - run.first > 1)
        refuse("layout(coord)", "a negative index into a nested mode", *this, coord);
      for (; leaf < run.last; ++leaf) {
        result.append_leaf(leaf + 1 == run.last ? index : index % extents[leaf]);
        index /= extents[leaf];
      }
    }
    if (leaf != count)
      refuse("layout(coord)", "the coordinate is not a coarsening of the layout's shape", *this,
             coord);
    return result;
  }

  friend constexpr bool operator==(Layout const&, Layout const&) = default;

  constexpr void append_leaf(std::int64_t extent, Stride stride, int opening = 0, int closing = 0) {
    if (count == kMaxLeaves) refuse("layout", "more than 32 leaves (kMaxLeaves)");
    if (extent < 1) refuse("layout", "an extent is less than 1", Tuple(extent));
    if (extent > detail::kLargest) refuse("layout", "an extent is beyond 2^62", extent);
    if (stride.value < -detail::kLargest || stride.value > detail::kLargest)
      refuse("layout", "a stride is _ or beyond 2^62", Tuple(stride.value));
    if (stride.axis < -1) refuse("layout", "an axis is negative", stride.axis);
    if (stride.axis >= kMaxAxes)
      refuse("layout", "an axis is beyond 14 (kMaxAxes - 1)", stride.axis);
    extents[count] = extent;
    strides[count] = stride.value;
    axes.put(count, stride.value == 0 ? 0 : stride.axis + 1);
    open.put(count, opening);
    close.put(count, closing);
    ++count;
  }
  constexpr void append_leaf(Layout const& from, int leaf, int opening, int closing) {
    append_leaf(from.extents[leaf], from.stride(leaf), opening, closing);
  }
};

namespace detail {

/// Refuses a size or an offset that does not fit 62 bits; returns the layout otherwise.
constexpr Layout const& bounded(Layout const& layout) {
  std::int64_t size = 1;
  std::int64_t last = 0;
  for (int i = 0; i < layout.count; ++i) {
    size = multiply(size, layout.extents[i]);
    std::int64_t const stride = layout.strides[i] < 0 ? -layout.strides[i] : layout.strides[i];
    last = add(last, multiply(layout.extents[i] - 1, stride));
  }
  return layout;
}

/// A mode's number as select() takes it, of any integer type.
template <class Integer> constexpr int mode_number(Layout const& layout, Integer mode) {
  bool const exists = mode >= Integer{0} && mode < static_cast<Integer>(kMaxLeaves);
  if (!exists)
    refuse("select", "there is no such mode: its number is at least 0 and less than the rank",
           layout, static_cast<std::int64_t>(mode));
  return static_cast<int>(mode);
}

}  // namespace detail

/// The layout with this shape and these strides, which must be congruent (the same tree).
constexpr Layout layout(Tuple const& shape, Tuple const& stride) {
  Layout result;
  bool congruent = shape.count == stride.count;
  for (int i = 0; i < shape.count && congruent; ++i) {
    congruent = shape.open[i] == stride.open[i] && shape.close[i] == stride.close[i];
    result.append_leaf(shape.values[i], {stride.values[i]}, shape.open[i], shape.close[i]);
  }
  if (!congruent)
    refuse("layout", "shape and stride are not congruent (the same tree)", shape, stride);
  return detail::bounded(result);
}

/// The compact column-major layout of a shape: the first leaf has stride 1, each next one the
/// product of the extents before it.
constexpr Layout layout(Tuple const& shape) {
  Layout result;
  std::int64_t stride = 1;
  for (int i = 0; i < shape.count; ++i) {
    result.append_leaf(shape.values[i], {stride}, shape.open[i], shape.close[i]);
    stride = detail::multiply(stride, shape.values[i]);
  }
  return result;
}

/// The compact layout of a tuple of extents (or shapes) whose first leaf is contiguous:
/// col_major(4, 8) is (4,8):(1,4).
template <class... Extents> constexpr Layout col_major(Extents const&... extents) {
  return layout(tuple(extents...));
}

/// The compact layout of a tuple of extents (or shapes) whose last leaf is contiguous:
/// row_major(4, 8) is (4,8):(8,1).
template <class... Extents> constexpr Layout row_major(Extents const&... extents) {
  Layout result = layout(tuple(extents...));
  std::int64_t stride = 1;
  for (int i = result.count; i-- > 0;) {
    result.strides[i] = stride;
    stride = detail::multiply(stride, result.extents[i]);
  }
  return result;
}

/// The layout of the coordinates of `shape` themselves: mode k runs along axis k, a
/// nested mode as its flat index: identity_layout((4,(3,6))) is
/// (4,(3,6)):(1@0,(1@1,3@1)). (CuTe: make_identity_layout.)
constexpr Layout identity_layout(Tuple const& shape) {
  Layout result;
  std::int64_t stride = 1;
  int level = 0;
  int mode = 0;
  for (int i = 0; i < shape.count; ++i) {
    result.append_leaf(shape.values[i], {stride, mode}, shape.open[i], shape.close[i]);
    level += shape.open[i] - shape.close[i];
    stride = level > 1 ? detail::multiply(stride, shape.values[i]) : 1;
    mode += level > 1 ? 0 : 1;
  }
  return detail::bounded(result);
}

/// The layout whose modes are the given layouts: make_layout(4:1, (2,3):(4,8)) is
/// (4,(2,3)):(1,(4,8)).
template <class... Modes> constexpr Layout make_layout(Layout const& first, Modes const&... modes) {
  Layout result;
  detail::append_mode(result, first);
  (detail::append_mode(result, static_cast<Layout const&>(modes)), ...);
  detail::wrap(result);
  return detail::bounded(result);
}

constexpr std::int64_t size(Layout const& layout) { return layout.size(); }
constexpr std::int64_t size(Tuple const& shape) { return shape.size(); }
constexpr std::int64_t cosize(Layout const& layout) { return layout.cosize(); }
constexpr int rank(Layout const& layout) { return layout.rank(); }
constexpr int rank(Tuple const& tuple) { return tuple.rank(); }
constexpr int depth(Layout const& layout) { return layout.depth(); }
constexpr int depth(Tuple const& tuple) { return tuple.depth(); }

/// A layout as CuTe prints it: 8:1, (4,(3,6)):(1,(4,12)), (16,8):(1@0,1@1).
template <class Sink> constexpr void write_form(Sink& sink, Layout const& layout) {
  detail::write_tree(sink, layout, '(', ')', [&](int i) { write_form(sink, layout.extents[i]); });
  sink.write(':');
  detail::write_tree(sink, layout, '(', ')', [&](int i) {
    write_form(sink, layout.strides[i]);
    if (layout.axes[i] == 0) return;
    sink.write('@');
    write_form(sink, layout.axes[i] - 1);
  });
}

}  // namespace tegula
