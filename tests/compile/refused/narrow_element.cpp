// An element of bfloat16 is taken for a float.
// prints: an element of a narrow format is no number by itself: to_float(t(i, j))

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/global.hpp"

using namespace tegula;

TEGULA_DEVICE float run(bfloat16 const* p) { return matrix<1>(p, 8, 8, 8)(0, 0); }
