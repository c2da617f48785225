#pragma once

#include "tegula/macros.hpp"

namespace tegula {

/// The source line of an instruction. It is the last, defaulted argument of every instruction
/// (`SourceLocation where = SourceLocation::current()`), so that it names the line that wrote the
/// call; a helper that wants its *caller's* line takes a SourceLocation the same way and passes it
/// on. The simulated machine reports and counts by it. On a GPU it is empty and costs nothing;
/// compiled as a mutant (sim/mutable_values.hpp), it says whether this is the line to mutate.
#if TEGULA_GPU && defined(TEGULA_MUTANT_FILE)
struct SourceLocation {
  bool mutant = false;

  __host__ __device__ static consteval SourceLocation current(char const* file = __builtin_FILE(),
                                                              int line = __builtin_LINE()) {
    return {line == TEGULA_MUTANT_LINE && is_end_of_path(TEGULA_MUTANT_FILE, file)};
  }

 private:
  __host__ __device__ static consteval bool is_end_of_path(char const* end, char const* path) {
    int characters = 0, all = 0;
    while (end[characters] != 0) ++characters;
    while (path[all] != 0) ++all;
    int const before = all - characters;
    if (before < 0 || (before > 0 && path[before - 1] != '/')) return false;
    for (int i = 0; i < characters; ++i) {
      if (path[before + i] != end[i]) return false;
    }
    return true;
  }
};
#elif TEGULA_GPU
struct SourceLocation {
  TEGULA_HOST_DEVICE static constexpr SourceLocation current() { return {}; }
};
#else
struct SourceLocation {
  char const* file = "";
  int line = 0;

  static constexpr SourceLocation current(char const* file = __builtin_FILE(),
                                          int line = __builtin_LINE()) {
    return {file, line};
  }
};
#endif

}  // namespace tegula
