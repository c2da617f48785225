// A descriptor of a tile whose axes were exchanged.
// prints: partition: a matrix descriptor does not exchange a tile's axes (select)

#include "tegula/tensor/tiled_mma.hpp"

using namespace tegula;

struct Spec {
  static constexpr MmaSpec atom = warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 64);
};
using Mma = TiledMma<TiledMmaSpec{Spec::atom}>;
TEGULA_DEVICE void run(SharedTile<bfloat16, OperandTile{16, 64, 64, 1}>& tile) {
  Mma{0}.partition_b(select<1, 0>(tensor(tile)));
}
