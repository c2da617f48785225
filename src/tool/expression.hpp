#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "tegula/io/text.hpp"
#include "tegula/layout/algebra.hpp"
#include "tegula/layout/swizzle.hpp"

namespace tegula::tool {

/// What an expression can come to. A tuple or an integer written down (not computed) is a Tuple
/// whose `bare` flag is set: it stands for the compact column-major layout of that shape wherever a
/// layout is wanted.
struct Value {
  std::variant<Layout, SwizzledLayout, Tuple, Tiler> what;
  bool bare = false;
};

/// An expression that cannot be read: what() is a sentence with the position, what was found there
/// and what was expected.
class ExpressionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// f(), with `what` in front of the refusal of a number on the way that is too large: it names
/// numbers alone.
template <class F> auto named_in_ranges(std::string_view what, F&& f) {
  try {
    return f();
  } catch (layout_error const& error) {
    std::string_view const sentence = error.what();
    if (!sentence.starts_with("arithmetic(")) throw;
    throw ExpressionError(io::in_quotes(what) + ": " + std::string(sentence));
  }
}

/// Evaluates an expression of the tool's language (docs/tool.md): layouts, tuples, tilers,
/// swizzled layouts and nested calls of the algebra's operations. Throws ExpressionError where the
/// text is malformed or an argument is of the wrong kind, and layout_error where an operation
/// refuses its operands.
Value evaluate(std::string_view expression);

/// The same, for an argument that must be a layout or a tile; `argument` names it in errors
/// ("--layout"). A tuple in place of a tiler is the tile with these extents.
Layout evaluate_layout(std::string const& argument, std::string_view expression);
Tiler evaluate_tiler(std::string const& argument, std::string_view expression);

/// The text form, which evaluates to the value again.
std::string to_text(Value const& value);

}  // namespace tegula::tool
