// A tile is copied to a tensor of const elements.
// prints: copy: the target's elements are const

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/copy.hpp"

using namespace tegula;

using Tile = SharedTile<bfloat16, OperandTile{16, 64, 64, 1}>;
using Copy = TiledCopy<share_rows({.threads = 128, .m = 64, .n = 64, .vector = 8}), bfloat16>;
TEGULA_DEVICE void run(Tile const& tile, bfloat16 const* p) {
  copy(Copy{0}, tensor(tile), local_tile<64, 64>(matrix<1>(p, 64, 64, 64), 0, 0));
}
