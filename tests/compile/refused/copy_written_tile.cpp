// All rows of the tile are the same place, and a copy writes each.
// prints: copy: elements of the tile in shared memory share a place, and are all written

#include "tegula/layout/literal.hpp"
#include "tegula/tensor/copy.hpp"

using namespace tegula;

using Copy = TiledCopy<share_rows({.threads = 32, .m = 8, .n = 16, .vector = 4}), float>;
TEGULA_DEVICE void run(float const* p, SharedTile<float, "(8,16):(0,1)"_layout>& tile) {
  copy(Copy{0}, local_tile<8, 16>(matrix<1>(p, 64, 64, 64), 0, 0), tensor(tile));
}
