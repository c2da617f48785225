// The tiler has the offsets 0, 2, 3, 5: nothing fills the gaps evenly.
// prints: logical_divide
// prints: refuse("complement"
// prints: is no multiple of the run

#include "tegula/layout/algebra.hpp"

using namespace tegula;

template <Layout L> struct Tile {};

using Refused = Tile<logical_divide(layout(24), layout(shape(2, 2), stride(2, 3)))>;
