#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "expression.hpp"

namespace tegula::tool {

/// Whether the tool's language has a call of this name.
bool is_call(std::string_view name);

/// NAME(arguments). Throws ExpressionError where the number or the kind of the arguments does not
/// fit, and layout_error where the operation refuses them. Precondition: is_call(name).
Value evaluate_call(std::string_view name, std::vector<Value> const& arguments);

/// All names, for sentences, and one line for each call with its form and what it gives, for
/// the help.
std::string call_names();
std::string describe_calls();

}  // namespace tegula::tool
