// The accumulators are those of another product, with twice as many rows a warp.
// prints: gemm: a and the accumulators differ in MMA_M

#include "tegula/tensor/gemm.hpp"

using namespace tegula;

struct Spec {
  static constexpr MmaSpec atom = warp_mma(DType::bf16, DType::f32, 16);
};
using Mma = TiledMma<TiledMmaSpec{Spec::atom, 64, 64, 2, 2}>;
using Other = TiledMma<TiledMmaSpec{Spec::atom, 128, 64, 2, 2}>;
TEGULA_DEVICE void run(Mma::FragmentA<16> const& a, Mma::FragmentB<16> const& b,
                       Other::Accumulator& c) {
  gemm(Mma{0}, a, b, c);
}
