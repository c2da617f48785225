#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "expression.hpp"

namespace tegula::tool {

/// Tables are written out up to this size.
inline constexpr std::int64_t kLargestTable = 4096;

/// A literal tuple or integer stands for its compact layout; everything else is itself.
Value as_result(Value const& value);

/// The answer to an expression: {"result", "size", "cosize", "table"} for a layout, with the result in text
/// form and the table only up to kLargestTable elements; {"result"} for an integer (a number) or a tuple
/// (nested arrays). Values that are coordinates (of a layout with coordinate strides) are arrays, and such a
/// layout has no cosize.
nlohmann::ordered_json result_json(Value const& value);

/// Evaluates JSON lines {"id", "expr"} and returns one line for each: result_json with the id, or {"id",
/// "error"}. A line that is not such an object gets an error with its number in "line". Blank lines are
/// passed over.
std::string evaluate_batch(std::string_view lines);

}  // namespace tegula::tool
