// A is 32 deep and B 64.
// prints: gemm: a and b differ in MMA_K: the operands have different K

#include "tegula/tensor/gemm.hpp"

using namespace tegula;

struct Spec {
  static constexpr MmaSpec atom = warp_mma(DType::bf16, DType::f32, 16);
};
using Mma = TiledMma<TiledMmaSpec{Spec::atom, 64, 64, 2, 2}>;
TEGULA_DEVICE void run(Mma::FragmentA<32> const& a, Mma::FragmentB<64> const& b,
                       Mma::Accumulator& c) {
  gemm(Mma{0}, a, b, c);
}
