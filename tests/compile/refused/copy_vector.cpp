// Vectors of eight halves along n, and the tile in shared memory is contiguous along m.
// prints: refuse("copy"
// prints: a vector's elements must be neighbours in the tile

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/copy.hpp"

using namespace tegula;

using Copy = TiledCopy<share_rows({.threads = 128, .m = 64, .n = 64, .vector = 8}), bfloat16>;
TEGULA_DEVICE void run(bfloat16 const* p, SharedTile<bfloat16, OperandTile{16, 64, 64, 0}>& tile) {
  copy(Copy{0}, local_tile<64, 64>(matrix<1>(p, 64, 64, 64), 0, 0), tensor(tile));
}
