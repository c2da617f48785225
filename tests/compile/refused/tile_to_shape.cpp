// Tiles of 3 rows do not fill 8 rows.
// prints: refuse("tile_to_shape"
// prints: does not divide

#include "tegula/layout/algebra.hpp"

using namespace tegula;

template <Layout L> struct Tile {};

using Refused = Tile<tile_to_shape(row_major(3, 4), shape(8, 8))>;
