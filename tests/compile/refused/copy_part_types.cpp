// A part of integers is copied to a fragment of floats.
// prints: copy: the registers hold another type than the memory

#include "tegula/tensor/copy.hpp"

using namespace tegula;

TEGULA_DEVICE void run(int const* p, Fragment<float, identity_map<4, 4>>& values) {
  copy(local_tile<4, 4>(matrix<1>(p, 64, 64, 64), 0, 0), values);
}
