#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/source_location.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/macros.hpp"
#include "tegula/numeric/half.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/map.hpp"
#include "tegula/tensor/operand_checks.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/tensor.hpp"

/// Tensor memory as a space of tensors, and products whose accumulators lie there.
namespace tegula {

/// Tensor memory: coordinates are (lane, element of its row), places are addresses. A column of 32
/// bits holds one element, or neighbours of 16 or 8 bits. Elements are moved by whole warps only
/// (copy, below).
template <class T> class TensorMemory {
 public:
  using Element = T;
  static constexpr int per_column = 4 / static_cast<int>(sizeof(T));
  static_assert(sizeof(T) == 4 || sizeof(T) == 2 || sizeof(T) == 1,
                "TensorMemory: an element has 32 bits, or 16 or 8, of which some share a column");

  TEGULA_DEVICE explicit TensorMemory(TensorAddr base) : base_(base) {}
  /// By whole columns.
  template <class M> TEGULA_DEVICE TensorMemory moved(int index) const {
    return TensorMemory(
        base_ + tensor_address(coordinate<0>(M{}, index), coordinate<1>(M{}, index) / per_column));
  }
  template <class M, class... I> TEGULA_DEVICE TensorAddr at(SourceLocation, I... i) const {
    return place(M{}, i...);
  }

 private:
  template <class... Modes, class... I>
  TEGULA_DEVICE TensorAddr place(Map<Modes...>, I... i) const {
    static_assert(sizeof...(Modes) == sizeof...(I), "tensor memory takes one index for each mode");
    return base_ +
           tensor_address((0 + ... + coordinate<0>(Modes{}, static_cast<int>(i))),
                          (0 + ... + coordinate<1>(Modes{}, static_cast<int>(i))) / per_column);
  }
  TensorAddr base_;
};

/// What tcgen05_alloc gave, from `base` on, as `Stages` tiles of 128 lanes x `Elements` elements:
/// (128, Elements, Stages). From one to the next are `Distance` elements.
template <class T, int Elements, int Stages, int Distance = Elements>
TEGULA_DEVICE auto tensor_memory_tiles(TensorAddr base) {
  using Tiles = Map<Mode<Along<0, kTensorLanes, 1>>, Mode<Along<1, Elements, 1>>,
                    Mode<Along<1, Stages, Distance>>>;
  return Tensor<TensorMemory<T>, Tiles>{TensorMemory<T>(base)};
}

/// An accumulator of f16 as tensor memory has it: the low half of a column. In registers it is a
/// `half`.
struct HalfColumn {
  std::uint32_t bits;
};

/// The elements of a product's accumulators in tensor memory: float, std::int32_t or HalfColumn.
template <MmaSpec S>
using TensorAccumulator =
    std::conditional_t<S.d == DType::f32, float,
                       std::conditional_t<S.d == DType::s32, std::int32_t, HalfColumn>>;

/// How a warpgroup holds a tile of 128 x N in tensor memory when each thread has a row of it: as a
/// TiledMma says of its accumulators.
template <int N, class T = float> struct TensorMemoryRows {
  static constexpr int threads = kTensorLanes;
  using Accumulator = Fragment<T, identity_map<1, N>>;

  int thread;
  /// The coordinate of the thread's first value.
  TEGULA_DEVICE Coordinate<2> origin_c() const { return {{thread, 0}}; }
  /// The thread's row of a tile (128, N) in another memory: (1, N).
  template <class Space, class M>
  TEGULA_DEVICE auto partition_c(Tensor<Space, M> const& tile,
                                 SourceLocation where = SourceLocation::current()) const {
    using Threads = Map<Mode<Along<0, kTensorLanes, 1>>>;
    return partition<Threads, identity_map<1, N>, 2>(tile, thread, where);
  }
};

/// Those rows of a tile (128, n) that the calling warp reaches: (32, n).
template <class T, class M>
TEGULA_DEVICE auto rows_of_warp(Tensor<TensorMemory<T>, M> const& tile) {
  constexpr int n = mode_size<mode_at<1, M>>;
  return part<32, n>(domain_offset(tile, 32 * (warp_id() % 4), 0));
}

/// tcgen05.mma over whole tiles, A in shared or in tensor memory: one thread's, for the CTA, or for
/// a pair of CTAs, of whose operands each has half.
template <MmaSpec S> struct TensorMemoryMma {
  static_assert(is_tensor_memory_mma(S));
  static constexpr MmaSpec spec = S;

  /// The matrix descriptors of an operand, of a tile in shared memory (m or n, k[, ...]):
  /// (MMA_K[, ...]).
  template <class Space, class M>
  TEGULA_DEVICE auto partition_a(Tensor<Space, M> const& tensor,
                                 SourceLocation where = SourceLocation::current()) const {
    static_assert(S.operands == MmaOperands::ss, "partition_a: this A lies in tensor memory");
    return operand<'a', S.m / S.ctas>(tensor, where);
  }
  template <class Space, class M>
  TEGULA_DEVICE auto partition_b(Tensor<Space, M> const& tensor,
                                 SourceLocation where = SourceLocation::current()) const {
    return operand<'b', S.n / S.ctas>(tensor, where);
  }

 private:
  template <char Operand, int Rows, class Space, class M>
  TEGULA_DEVICE auto operand(Tensor<Space, M> const& tensor, SourceLocation where) const {
    using Tile = typename Space::Memory;
    constexpr int K = mode_size<mode_at<1, M>>;
    static_assert(mode_size<mode_at<0, M>> == Rows,
                  "partition: the operand's tile must be as high as the MMA's, in each CTA");
    detail::check_described_tile<Operand, Tile, M, S>();
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
                        Tensor<TensorMemory<TensorAccumulator<S>>, MC> const& c, bool accumulate,
                        SourceLocation where = SourceLocation::current()) {
  constexpr int K = mode_size<mode_at<0, MA>>;
  static_assert(MA::rank == 1 && MB::rank == 1,
                "gemm: operands have mode (MMA_K); slice the stage");
  static_assert(mode_size<mode_at<0, MB>> == K, "gemm: the operands differ in k");
  static_assert(mode_size<mode_at<1, MC>> == S.n / column_parts(S),
                "gemm: the accumulators are not of the MMA's columns");
#pragma unroll
  for (int k = 0; k < K; ++k)
    tcgen05_mma<S>(c.at(where, 0, 0), a.at(where, k), b.at(where, k), accumulate || k > 0, where);
}

/// The same with a in tensor memory: a tile (128, k) as it is.
template <MmaSpec S, class T, class MA, class TB, class MB, class MC>
TEGULA_DEVICE void gemm(TensorMemoryMma<S> const&, Tensor<TensorMemory<T>, MA> const& a,
                        Tensor<Descriptors<TB, DescriptorForm::tcgen05>, MB> const& b,
                        Tensor<TensorMemory<TensorAccumulator<S>>, MC> const& c, bool accumulate,
                        SourceLocation where = SourceLocation::current()) {
  constexpr int K = mode_size<mode_at<1, MA>> / S.k;
  static_assert(8 * sizeof(T) == element_bits(S), "gemm: the elements of a are not the MMA's");
  static_assert(MB::rank == 1 && mode_size<mode_at<0, MB>> == K, "gemm: the operands differ in k");
  static_assert(mode_size<mode_at<1, MC>> == S.n / column_parts(S),
                "gemm: the accumulators are not of the MMA's columns");
#pragma unroll
  for (int k = 0; k < K; ++k)
    tcgen05_mma_ts<S>(c.at(where, 0, 0), a.at(where, 0, k * S.k), b.at(where, k),
                      accumulate || k > 0, where);
}

/// Starts a load of lanes of a warp into a fragment. Of 16, (16, n), in the order of the
/// accumulators of mma.sync: those of 16 rows x n columns. Of 32, (32, n), a row for each thread.
/// Accumulators of f16 become a fragment of `half`. It is there after tcgen05_wait_ld and
/// tcgen05_pin.
template <class T, class MC, class U, class M>
TEGULA_DEVICE void copy(Tensor<TensorMemory<T>, MC> const& from, Fragment<U, M>& to,
                        SourceLocation where = SourceLocation::current()) {
  constexpr bool halves = std::is_same_v<T, HalfColumn>;
  constexpr int rows = mode_size<mode_at<0, MC>>, n = mode_size<mode_at<1, MC>>;
  static_assert(std::is_same_v<U, std::conditional_t<halves, half, T>> && sizeof(T) == 4,
                "copy: a fragment has float or std::int32_t as tensor memory has it, or half");
  static_assert(rows == 16 || rows == 32, "copy: a warp loads 16 or 32 rows");
  static_assert(32 * Fragment<U, M>::size == rows * n,
                "copy: the fragment is not of the tile's rows and columns");
  constexpr TensorShape shape = rows == 32 ? TensorShape::lanes32_bits32
                                : halves   ? TensorShape::lanes16_bits128
                                           : TensorShape::lanes16_bits256;
  // A repetition is some columns; an instruction has a power of two of them. Of whole rows 32: with
  // more registers to an instruction, ptxas has too few left to choose from.
  constexpr int packed = halves ? 2 : 1, most = n & -n,
                part = rows == 32 && most > 32 * packed ? 32 * packed : most,
                registers = part * rows / 32 / packed;
#pragma unroll
  for (int first = 0; first < n; first += part)
    tcgen05_ld<shape, registers / registers_of(shape),
               halves ? TensorPacking::halves : TensorPacking::none>(
        to.template take<registers>(first * rows / 32 / packed), from.at(where, 0, first), where);
}
/// Starts a store of rows, one of each thread of a warp, to 32 lanes (32, n): a fragment, or what
/// is rounded on the way. It is there after tcgen05_wait_st.
template <class T, class M, class MC>
TEGULA_DEVICE void copy(Fragment<T, M> const& from, Tensor<TensorMemory<T>, MC> const& to,
                        SourceLocation where = SourceLocation::current()) {
  constexpr int n = mode_size<mode_at<1, MC>>, count = Fragment<T, M>::registers;
  static_assert(mode_size<mode_at<0, MC>> == 32 && Fragment<T, M>::size == n,
                "copy: the fragment is not a row of the tile");
  constexpr int most = count & -count, part = most > 32 ? 32 : most;
#pragma unroll
  for (int first = 0; first < count; first += part)
    tcgen05_st<TensorShape::lanes32_bits32, part>(
        from.template take<part>(first, where),
        to.at(where, 0, first * TensorMemory<T>::per_column), where);
}
/// Accumulators of f16.
template <class M, class MC>
TEGULA_DEVICE void copy(Fragment<half, M> const& from,
                        Tensor<TensorMemory<HalfColumn>, MC> const& to,
                        SourceLocation where = SourceLocation::current()) {
  constexpr int n = mode_size<mode_at<1, MC>>, count = Fragment<half, M>::registers;
  static_assert(mode_size<mode_at<0, MC>> == 32 && Fragment<half, M>::size == n && n % 2 == 0,
                "copy: the fragment is not a row of the tile");
  constexpr int most = count & -count, part = most > 32 ? 32 : most;
#pragma unroll
  for (int first = 0; first < count; first += part)
    tcgen05_st<TensorShape::lanes32_bits32, part, TensorPacking::halves>(
        from.template take<part>(first, where), to.at(where, 0, 2 * first), where);
}
template <class T, class F, class Order, class MC>
TEGULA_DEVICE void copy(Rounded<T, F, Order> const& from, Tensor<TensorMemory<T>, MC> const& to,
                        SourceLocation where = SourceLocation::current()) {
  Fragment<T, identity_map<1, F::size>> row;
#pragma unroll
  for (int i = 0; i < row.registers; ++i) row.data[i] = from.reg(i, where);
  copy(row, to, where);
}
/// Keeps the compiler from reading a loaded fragment before this point.
template <class T, class M> TEGULA_DEVICE void tcgen05_pin(Fragment<T, M>& loaded) {
  constexpr int count = Fragment<T, M>::registers, most = count & -count,
                part = mode_size<mode_at<0, M>> == 1 && most > 32 ? 32 : most;
#pragma unroll
  for (int first = 0; first < count; first += part) tcgen05_pin(loaded.template take<part>(first));
}

}  // namespace tegula
