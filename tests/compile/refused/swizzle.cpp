// Three bits exclusive-ored into bits two above: the two groups share a bit.
// prints: refuse("Swizzle"
// prints: overlap

#include "tegula/layout/swizzle.hpp"

using namespace tegula;

template <Swizzle S> struct Tile {};

using Refused = Tile<Swizzle(3, 0, 2)>;
