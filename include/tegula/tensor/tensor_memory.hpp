#pragma once

#include <cstdint>

#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/macros.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/map.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/tensor.hpp"

/// Tensor memory as a space of tensors, and products whose accumulators lie there.
namespace tegula {

/// Tensor memory: coordinates are (lane, column), places are addresses. Elements are moved by whole
/// warps only (copy, below).
template <class T> class TensorMemory {
 public:
  using Element = T;
  static_assert(sizeof(T) == 4, "TensorMemory: an element is a column of 32 bits");

  TEGULA_DEVICE explicit TensorMemory(TensorAddr base) : base_(base) {}
  template <class M> TEGULA_DEVICE TensorMemory moved(int index) const {
    return TensorMemory(base_ +
                        tensor_address(coordinate<0>(M{}, index), coordinate<1>(M{}, index)));
  }
  template <class M, class... I> TEGULA_DEVICE TensorAddr at(SourceLocation, I... i) const {
    return place(M{}, i...);
  }

 private:
  template <class... Modes, class... I>
  TEGULA_DEVICE TensorAddr place(Map<Modes...>, I... i) const {
    static_assert(sizeof...(Modes) == sizeof...(I), "tensor memory takes one index for each mode");
    return base_ + tensor_address((0 + ... + coordinate<0>(Modes{}, static_cast<int>(i))),
                                  (0 + ... + coordinate<1>(Modes{}, static_cast<int>(i))));
  }
  TensorAddr base_;
};

/// What tcgen05_alloc gave, as `Stages` tiles of 128 lanes x `Columns` columns side by side:
/// (128, Columns, Stages).
template <class T, int Columns, int Stages>
TEGULA_DEVICE auto tensor_memory_tiles(TensorAddr base) {
  using Tiles = Map<Mode<Along<0, kTensorLanes, 1>>, Mode<Along<1, Columns, 1>>,
                    Mode<Along<1, Stages, Columns>>>;
  return Tensor<TensorMemory<T>, Tiles>{TensorMemory<T>(base)};
}

/// tcgen05.mma over whole tiles in shared memory: one thread's, for the CTA.
template <MmaSpec S> struct TensorMemoryMma {
  static_assert(is_tensor_memory_mma(S) && S.operands == MmaOperands::ss);
  static constexpr MmaSpec spec = S;

  /// The matrix descriptors of an operand, of a tile in shared memory (m or n, k[, ...]):
  /// (MMA_K[, ...]).
  template <class Space, class M>
  TEGULA_DEVICE auto partition_a(Tensor<Space, M> const& tensor,
                                 SourceLocation where = SourceLocation::current()) const {
    return operand<S.m>(tensor, where);
  }
  template <class Space, class M>
  TEGULA_DEVICE auto partition_b(Tensor<Space, M> const& tensor,
                                 SourceLocation where = SourceLocation::current()) const {
    return operand<S.n>(tensor, where);
  }

 private:
  template <int Rows, class Space, class M>
  TEGULA_DEVICE auto operand(Tensor<Space, M> const& tensor, SourceLocation where) const {
    using Tile = typename Space::Memory;
    constexpr int K = mode_size<mode_at<1, M>>;
    static_assert(mode_size<mode_at<0, M>> == Rows,
                  "partition: the operand's tile must be as high as the MMA's");
    static_assert(8 * sizeof(typename Tile::Element) == element_bits(S),
                  "partition: the tile's elements are not the MMA's");
    static_assert(K % S.k == 0, "partition: the instruction's k must divide the tile's");
    using Steps = compose_t<take_t<0, 2, M>, Map<Mode<Along<1, K / S.k, S.k>>>>;
    return detail::make_tensor<concat_t<Steps, take_t<2, M::rank, M>>>(
        Descriptors<Tile, DescriptorForm::tcgen05>(tensor.space.base_address(), where));
  }
};

/// Starts c = a b^T, or with `accumulate` c += a b^T, by one thread: a and b are matrix descriptors
/// (MMA_K), c is a tile in tensor memory (128, n). From here until a tcgen05_commit after it has
/// arrived and been waited for, c belongs to the tensor core.
template <MmaSpec S, class TA, class MA, class TB, class MB, class MC>
TEGULA_DEVICE void gemm(TensorMemoryMma<S> const&,
                        Tensor<Descriptors<TA, DescriptorForm::tcgen05>, MA> const& a,
                        Tensor<Descriptors<TB, DescriptorForm::tcgen05>, MB> const& b,
                        Tensor<TensorMemory<float>, MC> const& c, bool accumulate,
                        SourceLocation where = SourceLocation::current()) {
  constexpr int K = mode_size<mode_at<0, MA>>;
  static_assert(MA::rank == 1 && MB::rank == 1,
                "gemm: operands have mode (MMA_K); slice the stage");
  static_assert(mode_size<mode_at<0, MB>> == K, "gemm: the operands differ in k");
  static_assert(mode_size<mode_at<1, MC>> == S.n, "gemm: the accumulators are not of n columns");
#pragma unroll
  for (int k = 0; k < K; ++k)
    tcgen05_mma<S>(c.at(where, 0, 0), a.at(where, k), b.at(where, k), accumulate || k > 0, where);
}

/// Starts a load of a warp's 16 lanes of a tile in tensor memory, (16, n), into a fragment in the
/// order of the accumulators of mma.sync: those of 16 rows x n columns. It is there after
/// tcgen05_wait_ld and tcgen05_pin.
template <class MC, class M>
TEGULA_DEVICE void copy(Tensor<TensorMemory<float>, MC> const& from, Fragment<float, M>& to,
                        SourceLocation where = SourceLocation::current()) {
  constexpr int n = mode_size<mode_at<1, MC>>, count = Fragment<float, M>::registers;
  static_assert(mode_size<mode_at<0, MC>> == 16 && 2 * count == n,
                "copy: the fragment is not of 16 rows of the tile's columns");
  // A repetition is eight columns; an instruction has a power of two of them.
  constexpr int part = n & -n, registers = part / 2;
#pragma unroll
  for (int first = 0; first < n; first += part)
    tcgen05_ld<TensorShape::lanes16_bits256, part / 8>(to.template take<registers>(first / 2),
                                                       from.at(where, 0, first), where);
}
/// Keeps the compiler from reading a loaded fragment before this point.
template <class M> TEGULA_DEVICE void tcgen05_pin(Fragment<float, M>& loaded) {
  constexpr int count = Fragment<float, M>::registers, part = count & -count;
#pragma unroll
  for (int first = 0; first < count; first += part) tcgen05_pin(loaded.template take<part>(first));
}

}  // namespace tegula
