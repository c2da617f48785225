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

/// Starts copies of pieces of scales (block_scale.hpp), `Pieces` of 128 rows one after the other in
/// shared memory, and after them those of the next of `Rows` times 128 rows, to 4 columns each from
/// `to` on: there all rows of a piece along k are side by side. By one thread; its products after
/// them wait for them. `Ctas` 2: in both CTAs of a pair.
template <int Pieces, int Rows, int Ctas>
TEGULA_DEVICE void copy_scales(SharedAddr from, TensorAddr to,
                               SourceLocation where = SourceLocation::current()) {
#pragma unroll
  for (int piece = 0; piece < Pieces; ++piece) {
#pragma unroll
    for (int row = 0; row < Rows; ++row)
      tcgen05_cp<TensorCopyShape::rows32_bits128_warpx4, Ctas>(
          to + tensor_address(0, 4 * (Rows * piece + row)),
          rows16_descriptor(from + static_cast<SharedAddr>(512 * (Pieces * row + piece))), where);
  }
}

/// Starts the instructions of c = a b^T with scales, or with `accumulate` of c += a b^T: a and b
/// are matrix descriptors (MMA_K), c is a tile in tensor memory (128, n), of a pair each CTA's; m
/// is 128 of each CTA. From scale_a and scale_b on lie pieces of scales as copy_scales brings them,
/// the first with k = 0.
template <ScaledMmaSpec S, class TA, class MA, class TB, class MB, class MC>
TEGULA_DEVICE void gemm_scaled(Tensor<Descriptors<TA, DescriptorForm::tcgen05>, MA> const& a,
                               Tensor<Descriptors<TB, DescriptorForm::tcgen05>, MB> const& b,
                               TensorAddr scale_a, TensorAddr scale_b,
                               Tensor<TensorMemory<float>, MC> const& c, bool accumulate,
                               SourceLocation where = SourceLocation::current()) {
  constexpr int K = mode_size<mode_at<0, MA>>;
  static_assert(MA::rank == 1 && MB::rank == 1,
                "gemm_scaled: operands have mode (MMA_K); slice the stage");
  static_assert(mode_size<mode_at<0, MB>> == K, "gemm_scaled: the operands differ in k");
  static_assert(column_parts(S) == 1,
                "gemm_scaled: of a pair with m 128 copy_scales does not bring B's scales as "
                "tcgen05_mma_scaled reads them: m must be 256");
  static_assert(mode_size<mode_at<1, MC>> == S.n && S.n % 128 == 0,
                "gemm_scaled: the accumulators are not of n columns, whole pieces of scales");
#pragma unroll
  for (int k = 0; k < K; ++k) {
    int const first = k * scales(S);  // of a row's scales
    TensorAddr const of_a = scale_a + tensor_address(0, 4 * (first / 4)),
                     of_b = scale_b + tensor_address(0, 4 * (S.n / 128) * (first / 4));
    tcgen05_mma_scaled<S>(c.at(where, 0, 0), a.at(where, k), b.at(where, k), of_a, of_b,
                          {first % 4, first % 4}, accumulate || k > 0, where);
  }
}

}  // namespace tegula
