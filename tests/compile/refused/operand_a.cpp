// Two warps along n hold S; as the A operand of the next product each warp needs whole rows of it.
// prints: refuse("operand_a"
// prints: the threads that hold C are not those that need it as A

#include "tegula/tensor/gemm.hpp"

using namespace tegula;

struct Spec {
  static constexpr MmaSpec atom = warp_mma(DType::bf16, DType::f32, 16);
};
using S = TiledMma<TiledMmaSpec{Spec::atom, 64, 64, 2, 2}>;
using O = TiledMma<TiledMmaSpec{Spec::atom, 64, 64, 4, 1}>;
TEGULA_DEVICE auto run(S::Accumulator const& c) { return O::operand_a(S{0}, c); }
