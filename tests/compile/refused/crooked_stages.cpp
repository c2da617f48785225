// Stages that are no multiple of the swizzle's period apart: no step from one to the next is an
// exclusive-or.
// prints: refuse("partition"
// prints: the swizzle does not add

#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/tiled_copy.hpp"

using namespace tegula;

using Tile = SharedTile<float, SwizzledLayout{Swizzle(5, 0, 5), 0,
                                              layout(tuple(16, 32, 3), tuple(32, 1, 512 + 32))}>;
using Copy =
    TiledCopy<make_tiled_copy(layout(shape(2, 32), stride(32, 1)), tuple(1, 1), 16, 32), float>;

TEGULA_DEVICE SharedAddr stage_1(Tile const& tile) {
  return Copy{0}.partition(tensor(tile)).at(SourceLocation{}, 0, 0, 0, 1);
}
