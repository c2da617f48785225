#pragma once

#include <cstdint>

#include "tegula/layout/refuse.hpp"
#include "tegula/macros.hpp"

namespace tegula {

/// The most leaves (integers) that a Tuple or a Layout can hold; more is refused.
inline constexpr int kMaxLeaves = 32;

/// The deepest nesting of a Tuple or a Layout; more is refused.
inline constexpr int kMaxDepth = 15;

/// A number from 0 to 15 for each leaf, packed: a template argument of many small members is costly
/// to a compiler, and long in its messages.
struct LeafCounts {
  std::uint64_t words[kMaxLeaves / 16] = {};

  /// What a non-constant LeafCounts gives for an element: reads, assigns and steps it.
  struct Reference {
    LeafCounts& counts;
    int leaf;

    constexpr operator int() const { return static_cast<LeafCounts const&>(counts)[leaf]; }
    constexpr Reference& operator=(int value) {
      counts.words[leaf / 16] &= ~(std::uint64_t{15} << leaf % 16 * 4);
      counts.put(leaf, value);
      return *this;
    }
    constexpr Reference& operator++() { return *this = *this + 1; }
    constexpr Reference& operator--() { return *this = *this - 1; }
  };

  TEGULA_HOST_DEVICE constexpr int operator[](int leaf) const {
    return static_cast<int>(words[leaf / 16] >> leaf % 16 * 4 & 15);
  }
  constexpr Reference operator[](int leaf) { return {*this, leaf}; }

  /// Sets an element that is still 0.
  constexpr void put(int leaf, int value) {
    if (value < 0 || value > kMaxDepth)
      refuse("nesting", "parentheses may nest 15 deep (kMaxDepth), no deeper", value);
    words[leaf / 16] |= static_cast<std::uint64_t>(value) << leaf % 16 * 4;
  }

  friend constexpr bool operator==(LeafCounts const&, LeafCounts const&) = default;
};

/// `_` in a coordinate or a tiler: "this whole mode".
struct Underscore {
  friend constexpr bool operator==(Underscore, Underscore) = default;
};
inline constexpr Underscore _{};

namespace detail {

/// A mode, or any other consecutive run of leaves: [first, last).
struct LeafRange {
  int first;
  int last;
};

// Tuple and Layout keep their tree in the same way: leaves in order, and for each leaf how many
// parentheses open just before it and close just after it. A tree is a bare leaf (`8`: no
// parentheses), a tuple whose first leaf opens and whose last leaf closes it, or `()`.

template <class Tree> constexpr bool is_leaf(Tree const& tree) {
  return tree.count == 1 && tree.open[0] == 0;
}

template <class Tree> constexpr int rank_of(Tree const& tree) {
  if (is_leaf(tree)) return 1;
  int modes = 0;
  int level = 0;
  for (int i = 0; i < tree.count; ++i) {
    level += tree.open[i] - tree.close[i];
    if (level <= 1) ++modes;
  }
  return modes;
}

template <class Tree> constexpr int depth_of(Tree const& tree) {
  int deepest = tree.count == 0 ? 1 : 0;
  int level = 0;
  for (int i = 0; i < tree.count; ++i) {
    level += tree.open[i];
    deepest = level > deepest ? level : deepest;
    level -= tree.close[i];
  }
  return deepest;
}

/// The leaves of mode `mode`. A bare leaf is its own mode 0.
template <class Tree> constexpr LeafRange mode_of(Tree const& tree, int mode) {
  if (is_leaf(tree) && mode == 0) return {0, 1};
  int level = 0;
  int first = 0;
  int left = mode;
  for (int i = 0; i < tree.count && left >= 0; ++i) {
    level += tree.open[i] - tree.close[i];
    if (level > 1) continue;
    if (left-- == 0) return {first, i + 1};
    first = i + 1;
  }
  refuse("operator[]", "there is no such mode: its number is at least 0 and less than the rank",
         tree, mode);
}

/// Makes everything appended to `tree` since leaf `first` one tuple.
template <class Tree> constexpr void wrap(Tree& tree, int first = 0) {
  if (first == tree.count) return;
  ++tree.open[first];
  ++tree.close[tree.count - 1];
}

/// The subtree over `range`, a mode of `tree`.
template <class Tree> constexpr Tree subtree(Tree const& tree, LeafRange range) {
  Tree result;
  for (int i = range.first; i < range.last; ++i)
    result.append_leaf(tree, i, tree.open[i], tree.close[i]);
  if (!is_leaf(tree)) {
    if (range.first == 0) --result.open[0];
    if (range.last == tree.count) --result.close[result.count - 1];
  }
  return result;
}

/// Appends `part` as one mode: its leaves with its own parentheses.
template <class Tree> constexpr void append_mode(Tree& tree, Tree const& part) {
  if (part.count == 0)
    refuse("nesting", "the empty tuple () cannot be a mode of a larger tuple", tree);
  for (int i = 0; i < part.count; ++i) tree.append_leaf(part, i, part.open[i], part.close[i]);
}

/// Walks the leaves of `fine` that leaf `leaf` of `coarse` stands for, `first` being the first of
/// them, and returns the run. `coarse` must be a coarsening of `fine`: the same tree with some
/// tuples written as one integer. Its parentheses are compared on the way.
template <class Coarse, class Fine>
constexpr LeafRange matching_leaves(Coarse const& coarse, int leaf, Fine const& fine, int first) {
  int level = first < fine.count ? fine.open[first] - coarse.open[leaf] : -1;
  int last = first;
  if (level >= 0) {
    level -= fine.close[last++];
    while (level > 0 && last < fine.count) {
      level += fine.open[last] - fine.close[last];
      ++last;
    }
  }
  bool const all_taken = (leaf + 1 == coarse.count) == (last == fine.count);
  if (last == first || -level != coarse.close[leaf] || !all_taken) return {first, first};
  return {first, last};
}

/// The greatest size, and the greatest magnitude of an extent, a stride or an offset.
inline constexpr std::int64_t kLargest = std::int64_t{1} << 62;

/// a + b, refused where it exceeds 2^62 in magnitude.
constexpr std::int64_t add(std::int64_t a, std::int64_t b) {
  bool const beyond = b > 0 ? a > kLargest - b : a < -kLargest - b;
  if (beyond) refuse("arithmetic", "a size or an offset exceeds 2^62", a, b);
  return a + b;
}

/// a * b, refused where it exceeds 2^62 in magnitude.
constexpr std::int64_t multiply(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t half = std::int64_t{1} << 31;
  if (-half < a && a < half && -half < b && b < half) return a * b;
  // `_` is the one integer without a negative.
  std::int64_t const size_a = a < -kLargest ? kLargest + 1 : a < 0 ? -a : a;
  std::int64_t const size_b = b < -kLargest ? kLargest + 1 : b < 0 ? -b : b;
  if (size_b != 0 && size_a > kLargest / size_b)
    refuse("arithmetic", "a size or an offset exceeds 2^62", a, b);
  return a * b;
}

}  // namespace detail

/// A tree of integers: an integer, or a tuple of such trees (CuTe's IntTuple): shapes, strides,
/// coordinates, profiles. A leaf may be `_`. A structural literal type of at most kMaxLeaves
/// integers. Not more than one empty tuple: `()` itself, never as a part.
struct Tuple {
  /// The value that stands for `_`.
  static constexpr std::int64_t kUnderscore = INT64_MIN;

  std::int64_t count = 0;
  std::int64_t values[kMaxLeaves] = {};
  LeafCounts open;
  LeafCounts close;

  /// The empty tuple `()`.
  constexpr Tuple() = default;
  /// The integer `value`, not a tuple of it.
  constexpr Tuple(std::int64_t value) : count(1) { values[0] = value; }
  constexpr Tuple(Underscore) : Tuple(kUnderscore) {}
  /// All members: how nvcc writes a tuple that is a template argument into the host code.
  constexpr Tuple(std::int64_t count, std::int64_t const (&values)[kMaxLeaves],
                  LeafCounts const& open, LeafCounts const& close)
      : count(count), open(open), close(close) {
    for (int i = 0; i < kMaxLeaves; ++i) this->values[i] = values[i];
  }

  /// How many integers there are.
  constexpr int leaves() const { return count; }
  /// How many modes; 1 for an integer.
  constexpr int rank() const { return detail::rank_of(*this); }
  /// 0 for an integer, 1 for a tuple of integers, and so on.
  constexpr int depth() const { return detail::depth_of(*this); }
  constexpr bool is_integer() const { return detail::is_leaf(*this); }
  constexpr bool is_underscore() const { return is_integer() && values[0] == kUnderscore; }
  /// The integer that this is.
  constexpr std::int64_t value() const {
    if (!is_integer()) refuse("value", "this is a tuple, not an integer", *this);
    return values[0];
  }
  /// The product of all integers (of a shape: its size).
  constexpr std::int64_t size() const {
    std::int64_t product = 1;
    for (int i = 0; i < count; ++i) product = detail::multiply(product, values[i]);
    return product;
  }
  /// Mode `mode`, in [0, rank).
  constexpr Tuple operator[](int mode) const {
    return detail::subtree(*this, detail::mode_of(*this, mode));
  }

  friend constexpr bool operator==(Tuple const&, Tuple const&) = default;

  constexpr void append_leaf(std::int64_t value, int opening = 0, int closing = 0) {
    if (count == kMaxLeaves) refuse("tuple", "more than 32 integers (kMaxLeaves)");
    values[count] = value;
    open.put(count, opening);
    close.put(count, closing);
    ++count;
  }
  constexpr void append_leaf(Tuple const& from, int leaf, int opening, int closing) {
    append_leaf(from.values[leaf], opening, closing);
  }
};

/// The tuple of its arguments: tuple(4, tuple(3, 6)) is (4,(3,6)), tuple(4) is (4).
template <class... Parts> constexpr Tuple tuple(Parts const&... parts) {
  Tuple result;
  (detail::append_mode(result, Tuple(parts)), ...);
  detail::wrap(result);
  return result;
}

/// Synonyms that say what the tuple is meant for.
template <class... Parts> constexpr Tuple shape(Parts const&... parts) { return tuple(parts...); }
template <class... Parts> constexpr Tuple stride(Parts const&... parts) { return tuple(parts...); }
template <class... Parts> constexpr Tuple coord(Parts const&... parts) { return tuple(parts...); }

namespace detail {

/// Writes the tree, calling leaf(i) where leaf i stands.
template <class Sink, class Tree, class WriteLeaf>
constexpr void write_tree(Sink& sink, Tree const& tree, char opening, char closing,
                          WriteLeaf const& leaf) {
  if (tree.count == 0) sink.write(opening);
  if (tree.count == 0) sink.write(closing);
  for (int i = 0; i < tree.count; ++i) {
    if (i > 0) sink.write(',');
    for (int k = 0; k < tree.open[i]; ++k) sink.write(opening);
    leaf(i);
    for (int k = 0; k < tree.close[i]; ++k) sink.write(closing);
  }
}

}  // namespace detail

/// A tuple as CuTe prints it: 8, (4,(3,6)), (_,2), ().
template <class Sink> constexpr void write_form(Sink& sink, Tuple const& tuple) {
  detail::write_tree(sink, tuple, '(', ')', [&](int i) {
    if (tuple.values[i] == Tuple::kUnderscore) {
      sink.write('_');
    } else {
      write_form(sink, tuple.values[i]);
    }
  });
}

}  // namespace tegula
