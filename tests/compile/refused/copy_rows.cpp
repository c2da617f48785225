// 96 threads copy 12 rows of 64 halves at a time, and 12 does not divide 64.
// prints: refuse("TiledCopy"
// prints: the rows copied at once must divide the tile's

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/tiled_copy.hpp"

using namespace tegula;

using Copy = TiledCopy<share_rows({.threads = 96, .m = 64, .n = 64, .vector = 8}), bfloat16>;
static_assert(Copy::vector == 8);
