// One tensor is shared by 8 x 16 threads, the other by 16 x 8: the parts have one size.
// prints: copy: the parts have modes of different sizes

#include "tegula/layout/literal.hpp"
#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/copy.hpp"

using namespace tegula;

TEGULA_DEVICE void run(bfloat16 const* p, SharedTile<bfloat16, OperandTile{16, 64, 64, 1}>& tile) {
  copy(local_partition<"(8,16):(16,1)"_layout>(local_tile<64, 64>(matrix<1>(p, 64, 64, 64), 0, 0),
                                               0),
       local_partition<"(16,8):(8,1)"_layout>(tensor(tile), 0));
}
