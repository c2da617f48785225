// A warp on words 32 apart in a tile whose offsets are all multiples of 32: nothing below to
// swizzle into.
// prints: refuse("derive_swizzle"
// prints: no swizzle makes this access conflict-free

#include "tegula/layout/derive_swizzle.hpp"

#include "tegula/layout/algebra.hpp"

using namespace tegula;

constexpr SharedAccess column = vector_access(layout(shape(32, 1)), 32, 4);
constexpr Swizzle refused = derive_swizzle(column, layout(32, 32));
