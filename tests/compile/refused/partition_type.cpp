// The tile has bf16, and the instruction multiplies f16.
// prints: partition: the tile's elements are not of the type that the MMA multiplies

#include "tegula/tensor/tiled_mma.hpp"

using namespace tegula;

struct Spec {
  static constexpr MmaSpec atom = warp_mma(DType::f16, DType::f32, 16);
};
using Mma = TiledMma<TiledMmaSpec{Spec::atom, 64, 64, 4}>;
TEGULA_DEVICE void run(SharedTile<bfloat16, OperandTile{16, 64, 64, 1}>& tile) {
  Mma{0}.partition_a(tensor(tile));
}
