#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "expression.hpp"

namespace tegula::tool {

/// Tables are written out up to this size.
inline constexpr std::int64_t kLargestTable = 4096;

/// A literal tuple or integer stands for its compact layout; everything else is itself.
Value as_result(Value const& value);

/// The answer to an expression, as the members of a JSON object: "result", "size", "cosize" and "table" for a
/// layout, with the result in text form and the table only up to kLargestTable elements; "result" alone for
/// an integer (a number) or a tuple (nested arrays). Values that are coordinates (of a layout with coordinate
/// strides) are arrays, and such a layout has no cosize.
std::string result_members(Value const& value);

/// The shared-memory banks of the layout's elements, of `element_bits` each, as a member "banks". Throws
/// std::invalid_argument for what is no layout, layout_error for a layout of coordinates.
std::string banks_member(Value const& value, int element_bits);

/// Evaluates JSON lines {"id", "expr"} and writes one line for each to `out`: the id and result_members, or
/// {"id", "error"}. A line that is not such an object gets an error with its number in "line". Blank lines
/// are passed over.
void evaluate_batch(std::string_view lines, std::FILE* out);

}  // namespace tegula::tool
