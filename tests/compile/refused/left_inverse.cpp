// Offset 2 belongs to the indices 2 and 4 of 4:1 and 2:2.
// prints: refuse("left_inverse"
// prints: two leaves overlap

#include "tegula/layout/algebra.hpp"

using namespace tegula;

template <Layout L> struct Tile {};

using Refused = Tile<left_inverse(layout(shape(4, 2), stride(1, 2)))>;
