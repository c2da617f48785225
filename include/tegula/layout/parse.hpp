#pragma once

#include "tegula/layout/literal.hpp"

/// From text to values, in constant expressions and at run time. A text that does not read is refused: at run
/// time a layout_error whose sentence gives the text, the column and what was expected there. Spaces are
/// skipped.
namespace tegula {

/// "8", "(4,(3,6))", "(_,2)", "()".
constexpr Tuple parse_tuple(Text text) {
  Reader reader(text);
  Tuple const result = reader.read_tuple();
  reader.expect_end();
  return result;
}

/// "8:1", "(4,(3,6)):(1,(4,12))", "(16,8):(1@0,1@1)"; without strides the compact column-major layout of the
/// shape.
constexpr Layout parse_layout(Text text) {
  Reader reader(text);
  Layout const result = reader.read_layout();
  reader.expect_end();
  return result;
}

/// "<4:1,_,<2:1,8:2>>", where n means n:1; also a layout, `_` or an integer by itself.
constexpr Tiler parse_tiler(Text text) {
  Reader reader(text);
  Tiler const result = reader.read_tiler();
  reader.expect_end();
  return result;
}

}  // namespace tegula
