#pragma once

// Random layouts for RapidCheck: nested, and compact, permuted, padded, broadcast or arbitrary.

#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "tegula/layout/algebra.hpp"
#include "tegula/layout/text.hpp"

namespace tegula {

inline void showValue(Layout const& layout, std::ostream& out) { out << to_string(layout); }
inline void showValue(Tuple const& tuple, std::ostream& out) { out << to_string(tuple); }
inline void showValue(Tiler const& tiler, std::ostream& out) { out << to_string(tiler); }

namespace random {

using Numbers = std::vector<std::int64_t>;

inline std::int64_t number(std::int64_t low, std::int64_t high) {
  return *rc::gen::inRange(low, high + 1);
}

/// Extents whose product is at most `limit`.
inline Numbers extents(int leaves, std::int64_t limit) {
  Numbers result;
  for (int i = 0; i < leaves; ++i) {
    std::int64_t const choice = *rc::gen::element<std::int64_t>(1, 2, 2, 3, 4, 4, 5, 6, 8);
    std::int64_t const extent = choice <= limit ? choice : 1;
    result.push_back(extent);
    limit /= extent;
  }
  return result;
}

enum class Style { compact, permuted, padded, broadcast, arbitrary };

inline Numbers strides(Numbers const& extents, Style style) {
  std::size_t const n = extents.size();
  Numbers result(n, 0);
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  if (style != Style::compact) {
    for (std::size_t i = n; i > 1; --i)
      std::swap(order[i - 1],
                order[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(i) - 1))]);
  }
  std::int64_t reached = 1;
  for (std::size_t const i : order) {
    result[i] = reached;
    reached *= extents[i];
    if (style == Style::padded) reached = number(0, 2) == 0 ? reached * number(2, 3) : reached;
    if (style == Style::broadcast && number(0, 1) == 0) {
      reached /= extents[i];
      result[i] = 0;
    }
    if (style == Style::arbitrary) result[i] = number(0, 12);
  }
  return result;
}

/// Random parentheses around the leaves, applied alike to extents and strides.
inline Layout nested(Numbers const& extents, Numbers const& strides) {
  Layout result;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    Layout mode = layout(Tuple(extents[i]), Tuple(strides[i]));
    if (number(0, 9) == 0) mode = make_layout(mode);
    result = result.leaves() == 0 ? mode : append(result, mode);
    if (result.rank() > 2 && number(0, 2) == 0) {
      int const begin = static_cast<int>(number(0, result.rank() - 2));
      result = group(result, begin, begin + 2);
    }
    if (result.depth() > 0 && result.depth() < 4 && number(0, 5) == 0) result = make_layout(result);
  }
  return result;
}

inline Layout layout_of(Style style, std::int64_t limit = 256) {
  Numbers const e = extents(static_cast<int>(number(1, 5)), limit);
  return nested(e, strides(e, style));
}

inline Layout any_layout(std::int64_t limit = 256) {
  return layout_of(*rc::gen::element(Style::compact, Style::permuted, Style::padded,
                                     Style::broadcast, Style::arbitrary),
                   limit);
}

/// A layout whose offsets are each used once: compact or permuted or padded.
inline Layout injective_layout(std::int64_t limit = 256) {
  return layout_of(*rc::gen::element(Style::compact, Style::permuted, Style::padded), limit);
}

}  // namespace random
}  // namespace tegula
