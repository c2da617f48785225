// Operands in shared memory, given as fragments are.
// prints: operands in shared memory: gemm<Ahead>(mma, a, b, c)

#include "tegula/tensor/gemm.hpp"

using namespace tegula;

struct Spec {
  static constexpr MmaSpec atom = warp_mma(DType::bf16, DType::f32, 16);
};
using Mma = TiledMma<TiledMmaSpec{Spec::atom, 64, 64, 4}>;
TEGULA_DEVICE void run(SharedTile<bfloat16, OperandTile{16, 64, 64, 1}>& tile,
                       Mma::Accumulator& c) {
  auto const a = Mma{0}.partition_a(tensor(tile));
  gemm(Mma{}, a, a, c);
}
