// An element of a tensor of const elements is assigned to.
// prints: the tensor's elements are const: it was made of a pointer to const, and is only read

#include "tegula/tensor/global.hpp"

using namespace tegula;

TEGULA_DEVICE void run(float const* p) { matrix<1>(p, 8, 8, 8)(0, 0) = 1.0f; }
