#pragma once

#include "tegula/layout/literal.hpp"
#include "tegula/layout/swizzle.hpp"

/// From text to values, in constant expressions and at run time. A text that does not read is
/// refused: at run time a layout_error whose sentence gives the text, the column and what was
/// expected there. Spaces are skipped.
namespace tegula {

/// "8", "(4,(3,6))", "(_,2)", "()".
constexpr Tuple parse_tuple(Text text) {
  Reader reader(text);
  Tuple const result = reader.read_tuple();
  reader.expect_end();
  return result;
}

/// "8:1", "(4,(3,6)):(1,(4,12))", "(16,8):(1@0,1@1)"; without strides the compact column-major
/// layout of the shape.
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

/// "Sw<3,4,3> o (8,64):(64,1)", "Sw<3,4,3> o 16 o (8,64):(64,1)" with an offset, or a plain layout.
constexpr SwizzledLayout parse_swizzled_layout(Text text) {
  Reader reader(text);
  Swizzle swizzle;
  std::int64_t offset = 0;
  Text const word = reader.read_word();
  if (word.size > 0 && !(word == Text("Sw")))
    refuse("parse", "Sw<bits,base,shift> or a layout was expected", text);
  if (word.size > 0) {
    int parts[3] = {};
    for (int i = 0; i < 3; ++i) {
      if (!reader.accept(i == 0 ? '<' : ','))
        refuse("parse", "Sw<bits,base,shift> was expected", text, reader.column());
      std::int64_t const part = reader.read_integer();
      if (part < -62 || part > 62)
        refuse("parse", "a swizzle's bits lie between 0 and 62", text, reader.column());
      parts[i] = static_cast<int>(part);
    }
    if (!reader.accept('>') || !reader.accept('o'))
      refuse("parse", "> o was expected after a swizzle", text, reader.column());
    swizzle = Swizzle(parts[0], parts[1], parts[2]);
    std::int64_t const start = reader.position();
    Tuple const number = reader.read_tuple();
    if (number.is_integer() && reader.accept('o')) {
      offset = number.value();
    } else {
      reader.rewind(start);
    }
  }
  Layout const layout = reader.read_layout();
  reader.expect_end();
  return SwizzledLayout(swizzle, offset, layout);
}

}  // namespace tegula
