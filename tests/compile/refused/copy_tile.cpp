// A copy of 64 x 64 elements is given a tile of 32 x 64.
// prints: TiledCopy: the tile must be as high as the copy's

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/copy.hpp"

using namespace tegula;

using Copy = TiledCopy<share_rows({.threads = 128, .m = 64, .n = 64, .vector = 8}), bfloat16>;
TEGULA_DEVICE void run(bfloat16 const* p, SharedTile<bfloat16, OperandTile{16, 32, 64, 1}>& tile) {
  copy(Copy{0}, local_tile<32, 64>(matrix<1>(p, 64, 64, 64), 0, 0), tensor(tile));
}
