#pragma once

#include "tegula/layout/parse.hpp"

namespace tegula {

/// The layout that a text says: short, since tests have many.
inline Layout L(char const* text) { return parse_layout(text); }

}  // namespace tegula
