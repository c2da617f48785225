#pragma once

#include <cstddef>

#include "tegula/layout/reader.hpp"

// clang 14 crashes where a consteval function returns an array inside a struct to run-time code;
// there a literal outside a constant expression is read, and refused, at run time.
#if defined(__clang__) && __clang_major__ < 16
#define TEGULA_CONSTEVAL constexpr
#else
#define TEGULA_CONSTEVAL consteval
#endif

namespace tegula {

/// "(4,(3,6)):(1,(4,12))"_layout, read at compile time; a mistake is a compile error whose line
/// says what was expected.
TEGULA_CONSTEVAL Layout operator""_layout(char const* text, std::size_t size) {
  Reader reader(Text(text, static_cast<std::int64_t>(size)));
  Layout const result = reader.read_layout();
  reader.expect_end();
  return result;
}

/// "<4:1,_,8:2>"_tile, read at compile time.
TEGULA_CONSTEVAL Tiler operator""_tile(char const* text, std::size_t size) {
  Reader reader(Text(text, static_cast<std::int64_t>(size)));
  Tiler const result = reader.read_tiler();
  reader.expect_end();
  return result;
}

}  // namespace tegula
