#pragma once

#include "tegula/macros.hpp"

namespace tegula {

/// The source line of an instruction. It is the last, defaulted argument of every instruction (`Where where =
/// Where::here()`), so that it names the line that wrote the call; a helper that wants its *caller's* line
/// takes a Where the same way and passes it on. The simulated machine reports and counts by it. On a GPU it
/// is empty and costs nothing.
#if TEGULA_GPU
struct Where {
  TEGULA_HOST_DEVICE static constexpr Where here() { return {}; }
};
#else
struct Where {
  char const* file = "";
  int line = 0;

  static constexpr Where here(char const* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};
#endif

}  // namespace tegula
