// Prints FAMILY INDEX UNIT SAMPLED (0 or 1) for every kernel configuration: CMake runs it to make
// the CUDA translation units.

#include <cstdio>

#include "units.hpp"

int main() {
  using namespace tegula;
  Families::for_each([]<class F>(F) {
    auto const unit = device::units<F>();
    auto const sampled = device::sampled<F>();
    for (std::size_t i = 0; i < unit.size(); ++i)
      std::printf("%s %zu %d %d\n", F::name, i, unit[i], sampled[i] ? 1 : 0);
  });
}
