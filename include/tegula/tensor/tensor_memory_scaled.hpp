#pragma once

#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tcgen05_cp.hpp"
#include "tegula/arch/tcgen05_scaled.hpp"
#include "tegula/macros.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/map.hpp"
#include "tegula/tensor/tensor.hpp"
#include "tegula/tensor/tensor_memory.hpp"

/// Products whose operands have block scales, which lie in tensor memory beside the accumulators.
namespace tegula {

/// Starts copies of the first `count` of `Pieces` pieces of scales of 128 rows (block_scale.hpp),
/// one after the other in shared memory, to 4 columns each from `to` on. By one thread; its
/// products after them wait for them.
template <int Pieces>
TEGULA_DEVICE void copy_scales(SharedAddr from, TensorAddr to, int count,
                               SourceLocation where = SourceLocation::current()) {
#pragma unroll
  for (int piece = 0; piece < Pieces; ++piece) {
    if (piece < count)
      tcgen05_cp<TensorCopyShape::rows32_bits128_warpx4>(
          to + tensor_address(0, 4 * piece),
          rows16_descriptor(from + static_cast<SharedAddr>(512 * piece)), where);
  }
}

/// Starts the first `steps` instructions of c = a b^T with scales, or with `accumulate` of c += a
/// b^T: a and b are matrix descriptors (MMA_K), c is a tile in tensor memory (128, n). From scale_a
/// and scale_b on lie pieces of scales as copy_scales brings them, the first with k = 0.
template <ScaledMmaSpec S, class TA, class MA, class TB, class MB, class MC>
TEGULA_DEVICE void gemm_scaled(Tensor<Descriptors<TA, DescriptorForm::tcgen05>, MA> const& a,
                               Tensor<Descriptors<TB, DescriptorForm::tcgen05>, MB> const& b,
                               TensorAddr scale_a, TensorAddr scale_b,
                               Tensor<TensorMemory<float>, MC> const& c, bool accumulate, int steps,
                               SourceLocation where = SourceLocation::current()) {
  constexpr int K = mode_size<mode_at<0, MA>>;
  static_assert(MA::rank == 1 && MB::rank == 1,
                "gemm_scaled: operands have mode (MMA_K); slice the stage");
  static_assert(mode_size<mode_at<0, MB>> == K, "gemm_scaled: the operands differ in k");
  static_assert(mode_size<mode_at<1, MC>> == S.n && S.n <= 128,
                "gemm_scaled: the accumulators are not of n columns, of which a piece has scales");
#pragma unroll
  for (int k = 0; k < K; ++k) {
    int const first = k * scales(S);  // of a row's scales
    TensorAddr const piece = tensor_address(0, 4 * (first / 4));
    if (k < steps)
      tcgen05_mma_scaled<S>(c.at(where, 0, 0), a.at(where, k), b.at(where, k), scale_a + piece,
                            scale_b + piece, {first % 4, first % 4}, accumulate || k > 0, where);
  }
}

}  // namespace tegula
