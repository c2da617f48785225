#pragma once

// A second, independent implementation of what the layout laws mean: function tables and brute
// force. It shares no code with the algebra; it only reads the leaves of a Layout.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include "tegula/layout/layout.hpp"

namespace oracle {

using Integer = std::int64_t;
using Table = std::vector<Integer>;

struct Leaf {
  Integer extent;
  Integer stride;
};
using Leaves = std::vector<Leaf>;

inline Leaves leaves_of(tegula::Layout const& layout) {
  Leaves result;
  for (int i = 0; i < layout.leaves(); ++i)
    result.push_back({layout.extent(i), layout.stride(i).value});
  return result;
}

inline Integer size(Leaves const& leaves) {
  Integer product = 1;
  for (Leaf const& leaf : leaves) product *= leaf.extent;
  return product;
}

/// The offset at a colexicographic index; the last leaf is unbounded.
inline Integer at(Leaves const& leaves, Integer index) {
  Integer offset = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    bool const last = i + 1 == leaves.size();
    offset += (last ? index : index % leaves[i].extent) * leaves[i].stride;
    index /= leaves[i].extent;
  }
  return offset;
}

inline Table table(Leaves const& leaves, Integer length) {
  Table result;
  for (Integer i = 0; i < length; ++i) result.push_back(at(leaves, i));
  return result;
}
inline Table table(Leaves const& leaves) { return table(leaves, size(leaves)); }

/// All ways to write n as an ordered product of factors above 1.
inline std::vector<std::vector<Integer>> factorizations(Integer n) {
  if (n == 1) return {{}};
  std::vector<std::vector<Integer>> result;
  for (Integer first = 2; first <= n; ++first) {
    if (n % first != 0) continue;
    for (std::vector<Integer> rest : factorizations(n / first)) {
      rest.insert(rest.begin(), first);
      result.push_back(rest);
    }
  }
  return result;
}

/// A flat layout with this table, if there is any: every factorization of its size is tried; the
/// strides are then forced.
inline std::optional<Leaves> as_layout(Table const& wanted) {
  static std::vector<std::vector<std::vector<Integer>>> known(4096);
  if (wanted.empty() || wanted[0] != 0) return std::nullopt;
  auto& shapes = known.at(wanted.size());
  if (shapes.empty()) shapes = factorizations(static_cast<Integer>(wanted.size()));
  for (std::vector<Integer> const& shape : shapes) {
    Leaves candidate;
    Integer below = 1;
    for (Integer const extent : shape) {
      candidate.push_back({extent, wanted[static_cast<std::size_t>(below)]});
      below *= extent;
    }
    bool same = true;
    for (std::size_t i = 0; i < wanted.size() && same; ++i)
      same = at(candidate, static_cast<Integer>(i)) == wanted[i];
    if (same) return candidate;
  }
  return std::nullopt;
}

/// Whether any layout compatible with b is A(B(i)), A given by its table (long enough for B's
/// offsets). Such a layout is a sum of one flat layout for each leaf of b, and at coordinates with
/// a single index each of these is what A o B is there.
inline bool composable(Table const& a, Leaves const& b) {
  std::vector<Table> parts;
  for (Leaf const& leaf : b) {
    Table part;
    for (Integer i = 0; i < leaf.extent; ++i)
      part.push_back(a.at(static_cast<std::size_t>(i * leaf.stride)));
    if (!as_layout(part)) return false;
    parts.push_back(part);
  }
  for (Integer i = 0; i < size(b); ++i) {
    Integer rest = i;
    Integer sum = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      sum += parts[j][static_cast<std::size_t>(rest % b[j].extent)];
      rest /= b[j].extent;
    }
    if (sum != a[static_cast<std::size_t>(at(b, i))]) return false;
  }
  return true;
}

/// The leaves that move: extent above 1 and stride not 0.
inline Leaves moving(Leaves const& leaves) {
  Leaves result;
  for (Leaf const& leaf : leaves) {
    if (leaf.extent > 1 && leaf.stride != 0) result.push_back(leaf);
  }
  return result;
}

/// The complement by tiling: translates of the image of `layout` are laid into [0, N) from the
/// left. The least offset not covered yet must begin the next translate, so the tiling is forced;
/// it fails for every N once two translates overlap. N is the least number not below `cotarget`
/// such that [0, N) is covered exactly and the translates are the table of a layout.
struct Complement {
  Leaves leaves;
  Integer covered;  // N
};
inline std::optional<Complement> complement(Leaves const& layout, Integer cotarget) {
  Table const image = table(moving(layout));
  std::set<Integer> pending;  // covered offsets at or beyond `next`
  Table translates;
  for (Integer next = 0;;) {
    if (pending.empty() && next >= cotarget && next > 0) {
      if (std::optional<Leaves> const leaves = as_layout(translates))
        return Complement{*leaves, next};
    }
    if (translates.size() == 4000)
      throw std::length_error("oracle::complement: no tiling and no overlap so far");
    translates.push_back(next);
    for (Integer const offset : image) {
      if (!pending.insert(next + offset).second) return std::nullopt;
    }
    while (pending.erase(next) > 0) ++next;
  }
}

}  // namespace oracle
