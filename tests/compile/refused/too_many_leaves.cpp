// 33 modes of 1.
// prints: refuse("tuple"
// prints: more than 32 integers

#include "tegula/layout/algebra.hpp"

using namespace tegula;

template <Layout L> struct Tile {};

using Refused = Tile<layout(shape(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))>;
