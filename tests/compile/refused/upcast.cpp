// Elements three apart do not come in pairs.
// prints: refuse("upcast"
// prints: a stride neither divides n nor is a multiple of it

#include "tegula/layout/algebra.hpp"

using namespace tegula;

template <Layout L> struct Tile {};

using Refused = Tile<upcast(layout(4, 3), 2)>;
