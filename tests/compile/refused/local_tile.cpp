// Tiles of 48 columns of a tile of 64.
// prints: local_tile: the tile's extent must divide the mode's

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/shared.hpp"

using namespace tegula;

TEGULA_DEVICE auto run(SharedTile<bfloat16, OperandTile{16, 64, 64, 1}>& tile) {
  return local_tile<64, 48>(tensor(tile), 0, 0);
}
