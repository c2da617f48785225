// The tile has f16, and the wgmma multiplies bf16.
// prints: partition: the tile's elements are not of the type that the MMA multiplies

#include "tegula/tensor/tiled_mma.hpp"

using namespace tegula;

struct Spec {
  static constexpr MmaSpec atom = warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 64);
};
using Mma = TiledMma<TiledMmaSpec{Spec::atom}>;
TEGULA_DEVICE void run(SharedTile<half, OperandTile{16, 64, 64, 1}>& tile) {
  Mma{0}.partition_a(tensor(tile));
}
