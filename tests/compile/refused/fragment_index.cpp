// A fragment of 2 x 4 values has no row 2.
// prints: a fragment has no such value: an index of a mode lies from 0 to its extent - 1

#include <type_traits>

#include "tegula/tensor/fragment.hpp"

using namespace tegula;

TEGULA_DEVICE float run(Fragment<float, identity_map<2, 4>> const& r) {
  return r(std::integral_constant<int, 2>{}, 0);
}
