#pragma once

#include <cstdint>

#include "tegula/arch/wgmma.hpp"
#include "tegula/tensor/gemm.hpp"

/// gemm(mma, a, b, c) by wgmma: a and b matrix descriptors, or a in registers.
namespace tegula {

namespace detail {
/// The wgmma of a product, k outermost; operand(m, k) is a's descriptor or registers.
template <TiledMmaSpec S, int M, int Ka, class TB, class MB, class TC, class MC, class OperandA>
TEGULA_DEVICE void warpgroup_gemm(Tensor<Descriptors<TB>, MB> const& b, Fragment<TC, MC>& c,
                                  bool accumulate, OperandA operand, SourceLocation where) {
  constexpr int N = mode_size<mode_at<0, MB>>, K = mode_size<mode_at<1, MB>>;
  constexpr int count = d_registers(S.atom), apart = Fragment<TC, MC>::registers / (M * N);
  static_assert(MB::rank == 2, "gemm: operands have modes (MMA_MN, MMA_K); slice the stage");
  check_depth<Ka, K>();
  check_accumulators<MC, M, N>();
  static_assert(count <= apart, "gemm: the accumulators have fewer columns than the product");
#pragma unroll
  for (int k = 0; k < K; ++k) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        if (accumulate && k == 0) c.check_written(apart * (m + M * n), count, where);
        wgmma<S.atom>(c.template take<count>(apart * (m + M * n)), operand(m, k), b.at(where, n, k),
                      accumulate || k > 0, where);
      }
    }
  }
}
}  // namespace detail

/// Keeps the compiler from moving reads and writes of accumulators across this point
/// (arch/wgmma.hpp).
template <class T, class M> TEGULA_DEVICE void wgmma_pin(Fragment<T, M>& c) {
  constexpr int count = mode_size<mode_at<0, M>> / Fragment<T, M>::per_register;
#pragma unroll
  for (int i = 0; i < Fragment<T, M>::registers / count; ++i)
    wgmma_pin(c.template take<count>(count * i));
}

/// Starts c = a b^T, or with `accumulate` c += a b^T, by wgmma; a and b are a warpgroup's parts of
/// tiles in shared memory. From here until a wgmma_wait_group that covers it, c belongs to the
/// tensor core. c may have more columns than the product: its first ones are meant.
template <TiledMmaSpec S, class TA, class MA, class TB, class MB, class TC, class MC>
requires(S.atom.operands == MmaOperands::ss) TEGULA_DEVICE
    void gemm(TiledMma<S> const&, Tensor<Descriptors<TA>, MA> const& a,
              Tensor<Descriptors<TB>, MB> const& b, Fragment<TC, MC>& c, bool accumulate = true,
              SourceLocation where = SourceLocation::current()) {
  static_assert(MA::rank == 2, "gemm: operands have modes (MMA_MN, MMA_K); slice the stage");
  detail::warpgroup_gemm<S, mode_size<mode_at<0, MA>>, mode_size<mode_at<1, MA>>>(
      b, c, accumulate, [&](int m, int k) { return a.at(where, m, k); }, where);
}

/// The same with a in registers, which belong to the tensor core for as long.
template <TiledMmaSpec S, class TA, class MA, class TB, class MB, class TC, class MC>
requires(S.atom.operands == MmaOperands::rs) TEGULA_DEVICE
    void gemm(TiledMma<S> const&, Fragment<TA, MA> const& a, Tensor<Descriptors<TB>, MB> const& b,
              Fragment<TC, MC>& c, bool accumulate = true,
              SourceLocation where = SourceLocation::current()) {
  constexpr int M = mode_size<mode_at<1, MA>>, r = a_registers(S.atom);
  detail::warpgroup_gemm<S, M, mode_size<mode_at<2, MA>>>(
      b, c, accumulate,
      [&](int m, int k) -> auto const& { return a.template take<r>(r * (m + M * k), where); },
      where);
}

}  // namespace tegula
