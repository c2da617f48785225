// A(B(i)) is 0, 8, 5, 2: no layout has these values.
// prints: refuse("composition"
// prints: no layout is A(B(i))

#include "tegula/layout/algebra.hpp"

using namespace tegula;

template <Layout L> struct Tile {};

using Refused = Tile<composition(layout(shape(3, 4), stride(4, 1)), layout(4, 2))>;
