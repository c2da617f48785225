// Prints FAMILY INDEX UNIT for every kernel configuration: CMake runs it to make the CUDA translation units.

#include <cstdio>

#include "family.hpp"

namespace tegula::device {
namespace {
template <Family F> void list(char const* name) {
  int index = 0;
  for (int const unit : units<F>()) std::printf("%s %d %d\n", name, index++, unit);
}
}  // namespace
}  // namespace tegula::device

int main() {
  using namespace tegula::device;
  list<Family::attention_sm80>("attention_sm80");
  list<Family::gemm_sm80>("gemm_sm80");
  list<Family::gemm_sm90>("gemm_sm90");
}
