#pragma once

#include <string>

#include "tegula/layout/swizzle.hpp"
#include "tegula/layout/tiler.hpp"

/// From values to text: CuTe's printed form, which the parse functions read back to an equal value.
namespace tegula {

namespace detail {

struct StringSink {
  std::string text;
  void write(char c) { text.push_back(c); }
};

template <class Value> std::string text_form(Value const& value) {
  StringSink sink;
  write_form(sink, value);
  return sink.text;
}

}  // namespace detail

inline std::string to_string(Tuple const& tuple) { return detail::text_form(tuple); }
inline std::string to_string(Layout const& layout) { return detail::text_form(layout); }
inline std::string to_string(Tiler const& tiler) { return detail::text_form(tiler); }
inline std::string to_string(Swizzle const& swizzle) { return detail::text_form(swizzle); }
inline std::string to_string(SwizzledLayout const& layout) { return detail::text_form(layout); }

}  // namespace tegula
