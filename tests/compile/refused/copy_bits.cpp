// Unsigned integers stand for the bits of elements of their width.
// compiles

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/copy.hpp"

using namespace tegula;

using Copy = TiledCopy<share_rows({.threads = 128, .m = 64, .n = 64, .vector = 8}), bfloat16>;
TEGULA_DEVICE void run(std::uint16_t const* p,
                       SharedTile<bfloat16, OperandTile{16, 64, 64, 1}>& tile) {
  copy(Copy{0}, local_tile<64, 64>(matrix<1>(p, 64, 64, 64), 0, 0), tensor(tile));
}
