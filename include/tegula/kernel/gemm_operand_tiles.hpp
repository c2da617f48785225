#pragma once

#include "tegula/arch/tensor_map.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/tensor/tensor.hpp"
#include "tegula/tensor/tma.hpp"

namespace tegula {

/// The operands of a tile of D, in steps along K, as TMA finds them: what a GEMM's producer loads.
/// `C` is a configuration with a_major, b_major, block_m, block_n, of which BlockK is the step.
template <auto C, int BlockK> struct GemmOperandTiles {
  /// (block_m, block_k, steps), of the tile's row.
  template <class Problem, class Work>
  TEGULA_DEVICE static auto a(Problem const& p, Work const& work) {
    return a(p, work, p.a, work.m);
  }
  /// The same of A's rows from m on, by another map of A.
  template <class Problem, class Work>
  TEGULA_DEVICE static auto a(Problem const& p, Work const& work, TensorMap const& map, int m) {
    auto const mA = operand<C.a_major>(map)(_, _, p.a_batched ? work.batch : 0);
    return local_tile<C.block_m, BlockK>(domain_offset(mA, m, 0), 0, _);
  }
  /// (block_n, block_k, steps), of the tile's column.
  template <class Problem, class Work>
  TEGULA_DEVICE static auto b(Problem const& p, Work const& work) {
    return b(p, work, p.b, work.n);
  }
  /// The same of B's columns from n on, by another map of B.
  template <class Problem, class Work>
  TEGULA_DEVICE static auto b(Problem const& p, Work const& work, TensorMap const& map, int n) {
    auto const mB = operand<C.b_major>(map)(_, _, p.b_batched ? work.batch : 0);
    return local_tile<C.block_n, BlockK>(domain_offset(mB, n, 0), 0, _);
  }

 private:
  /// (mn, k, batch)
  template <Major M> TEGULA_DEVICE static auto operand(TensorMap const& map) {
    if constexpr (M == Major::k) {
      return tma_tensor<1, 0, 2>(map);
    } else {
      return tma_tensor<0, 1, 2>(map);
    }
  }
};

}  // namespace tegula
