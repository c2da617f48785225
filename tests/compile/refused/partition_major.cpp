// B lies along n, and the instruction reads it along k.
// prints: partition_b: the tile is contiguous along another axis than the MMA's b_major says

#include "tegula/tensor/tiled_mma.hpp"

using namespace tegula;

struct Spec {
  static constexpr MmaSpec atom = warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 64);
};
using Mma = TiledMma<TiledMmaSpec{Spec::atom}>;
TEGULA_DEVICE void run(SharedTile<bfloat16, OperandTile{16, 64, 64, 0}>& tile) {
  Mma{0}.partition_b(tensor(tile));
}
