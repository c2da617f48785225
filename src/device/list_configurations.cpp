// Prints FAMILY INDEX UNIT for every kernel configuration: CMake runs it to make the CUDA
// translation units.

#include <cstdio>

#include "units.hpp"

int main() {
  using namespace tegula;
  Families::for_each([]<class F>(F) {
    int index = 0;
    for (int const unit : device::units<F>()) std::printf("%s %d %d\n", F::name, index++, unit);
  });
}
