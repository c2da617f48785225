// f16 is copied to bf16: the bits would mean another number.
// prints: copy: source and target have elements of different types, and a copy moves bits

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/numeric/half.hpp"
#include "tegula/tensor/copy.hpp"

using namespace tegula;

using Copy = TiledCopy<share_rows({.threads = 128, .m = 64, .n = 64, .vector = 8}), bfloat16>;
TEGULA_DEVICE void run(half const* p, SharedTile<bfloat16, OperandTile{16, 64, 64, 1}>& tile) {
  copy(Copy{0}, local_tile<64, 64>(matrix<1>(p, 64, 64, 64), 0, 0), tensor(tile));
}
