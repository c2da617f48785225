#pragma once

#include <string>
#include <string_view>

#include "expression.hpp"

namespace tegula::tool {

/// Tables are written out up to this size.
inline constexpr std::int64_t kLargestTable = 4096;

/// A literal tuple or integer stands for its compact layout; everything else is itself.
Value as_result(Value const& value);

/// The answer to an expression, as the members of a JSON object: "result", "size", "cosize" and
/// "table" for a layout, with the result in text form and the table only up to kLargestTable
/// elements; "result" alone for an integer (a number) or a tuple (nested arrays). Values that are
/// coordinates (of a layout with coordinate strides) are arrays, and such a layout has no cosize.
std::string result_members(Value const& value);

/// The shared-memory banks of the layout's elements, of `element_bits` each, as a member "banks".
/// Throws std::invalid_argument for what is no layout, layout_error for a layout of coordinates.
std::string banks_member(Value const& value, int element_bits);

/// Lines of a batch may have this many bytes, and JSON in them be nested this deep.
inline constexpr std::size_t kLongestLine = std::size_t{1} << 20;
inline constexpr int kDeepestJson = 64;

/// The answer to one JSON line {"id", "expr"} of a batch, a line too: the id and result_members, or
/// {"id", "error"}. A line that is not such an object gets an error with its number in "line".
std::string answer_line(std::string_view text, int number);

/// Answers the lines of a file, or of standard input for "-", on standard output, one after the
/// other. Blank lines are passed over.
void evaluate_batch(std::string const& path);

}  // namespace tegula::tool
