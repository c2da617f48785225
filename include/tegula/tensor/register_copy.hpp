#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/ldmatrix.hpp"
#include "tegula/arch/stmatrix.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/global.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/tiled_mma.hpp"
#include "tegula/tensor/vector.hpp"

/// copy(source, target) between registers and memory: a thread's part of a tensor, and its fragment of it.
namespace tegula {

namespace detail {

/// N matrices of the load at (i...), a register each.
template <int N, class Tile, class Threads, CopyOp Op, int Moved, class M, class... I>
TEGULA_DEVICE void load_matrices(Tensor<Shared<Tile, Threads, Op, Moved>, M> const& source,
                                 std::uint32_t (&r)[N], Where where, I... i) {
  static_assert(Op == CopyOp::ldmatrix || Op == CopyOp::ldmatrix_trans,
                "copy: the tensor is not a tiled MMA's operand that ldmatrix loads");
  if constexpr (Op == CopyOp::ldmatrix_trans) {
    ldmatrix_trans<N>(r, source.at(where, i...), where);
  } else {
    ldmatrix<N>(r, source.at(where, i...), where);
  }
}

/// How many of a thread's elements one access moves: neighbours in the tile, and aligned, wherever the thread
/// and the step are; at most `most`.
constexpr int vector_of(SwizzledLayout const& tile, Layout const& threads, Layout const& values, int most) {
  Layout const flat = coalesce(values);
  int vector = 1;
  if (flat.strides[0] != 1) return 1;
  while (2 * vector <= most && flat.extents[0] % (2 * vector) == 0) vector *= 2;
  auto const divides = [&](Layout const& offsets, int from) {
    for (int i = from; i < offsets.count; ++i) {
      if (offsets.extents[i] > 1 && offsets.strides[i] % vector != 0) return false;
    }
    return true;
  };
  while (vector > 1 && (!divides(flat, 1) || !divides(threads, 0) ||
                        !(tile.swizzle.identity() || (1 << tile.swizzle.base) % vector == 0) ||
                        tile.offset % vector != 0)) {
    vector /= 2;
  }
  return vector;
}
template <class Tile, class Threads, class M, int Moved> struct SharedVector {
  static constexpr int most = 16 / static_cast<int>(sizeof(typename Tile::Element));
  static constexpr int lowest =
      Moved == 0 ? most : Moved & -Moved;  // of the bits that slices moved the base by
  static constexpr int value =
      vector_of(Tile::layout, OffsetFacts<Tile, Threads>::offsets, OffsetFacts<Tile, all_modes<M>>::offsets,
                lowest < most ? lowest : most);
};

template <class T, class F, class Tensor> TEGULA_DEVICE constexpr void check_same_size() {
  static_assert(F::size == Tensor::size, "copy: the tensor and the fragment differ in size");
  static_assert(sizeof(typename F::Element) == sizeof(T),
                "copy: the tensor and the fragment differ in element");
}

/// How many of a fragment's values, from one on, are neighbours in its registers: all, or a slice's first
/// mode.
template <class F> inline constexpr int run_of_values = F::size;
template <class F, class N, class M>
inline constexpr int run_of_values<FragmentSlice<F, N, M>> = mode_size<mode_at<0, M>>;

/// The widest vector that both the memory and the registers allow.
constexpr int common_vector(int memory, int run) {
  int vector = memory;
  while (run % vector != 0) vector /= 2;
  return vector;
}
template <int Memory, class F> struct CommonVector {
  static constexpr int value = common_vector(Memory, run_of_values<F>);
};

}  // namespace detail

/// A tiled MMA's operand (or a slice of it), from a tile in shared memory to registers, by ldmatrix.
template <class Tile, class Threads, CopyOp Op, int Moved, class M, class T, class MF>
requires(Op == CopyOp::ldmatrix || Op == CopyOp::ldmatrix_trans) TEGULA_DEVICE
    void copy(Tensor<Shared<Tile, Threads, Op, Moved>, M> const& source, Fragment<T, MF>& target,
              Where where = Where::here()) {
  constexpr int loads = map_size<M>, each = Fragment<T, MF>::registers / loads;
  static_assert(loads * each == Fragment<T, MF>::registers && (each == 1 || each == 2 || each == 4),
                "copy: the fragment is not what the operand's loads fill");
#pragma unroll
  for (int i = 0; i < loads; ++i)
    detail::load_matrices(source, target.template take<each>(each * i), where, i);
}

/// A thread's elements of a tile in shared memory, to registers: as many at a time as are neighbours.
template <class Tile, class Threads, int Moved, class M, Registers F>
TEGULA_DEVICE void copy(Tensor<Shared<Tile, Threads, CopyOp::universal, Moved>, M> const& source, F&& target,
                        Where where = Where::here()) {
  using Element = typename Tile::Element;
  using To = std::remove_cvref_t<F>;
  detail::check_same_size<Element, To, Tensor<Shared<Tile, Threads, CopyOp::universal, Moved>, M>>();
  constexpr int vector =
      detail::CommonVector<detail::SharedVector<Tile, Threads, M, Moved>::value, To>::value;
  constexpr int per_register = 4 / static_cast<int>(sizeof(Element));
#pragma unroll
  for (int i = 0; i < To::size; i += vector) {
    auto const values = ld_shared<Vector<Element, vector>>(source.at(where, i), where);
    if constexpr (vector >= per_register) {
      auto const words = bits_as<RegisterBits<sizeof(values)>>(values);
#pragma unroll
      for (int r = 0; r < vector / per_register; ++r)
        target.word(i + r * per_register, where) = bits_as<typename To::Register>(words.word[r]);
    } else {
#pragma unroll
      for (int j = 0; j < vector; ++j)
        target.set(i + j, bits_as<typename To::Element>(values.data[j]), where);
    }
  }
}

/// Registers to a thread's elements of a tile in shared memory: as many at a time as are neighbours.
template <Registers F, class Tile, class Threads, int Moved, class M>
TEGULA_DEVICE void copy(F const& source,
                        Tensor<Shared<Tile, Threads, CopyOp::universal, Moved>, M> const& target,
                        Where where = Where::here()) {
  using Element = typename Tile::Element;
  detail::check_same_size<Element, F, Tensor<Shared<Tile, Threads, CopyOp::universal, Moved>, M>>();
  constexpr int vector = detail::CommonVector<detail::SharedVector<Tile, Threads, M, Moved>::value, F>::value;
  constexpr int per_register = 4 / static_cast<int>(sizeof(Element));
#pragma unroll
  for (int i = 0; i < F::size; i += vector) {
    if constexpr (vector >= per_register) {
      RegisterBits<vector* static_cast<int>(sizeof(Element))> words;
#pragma unroll
      for (int r = 0; r < vector / per_register; ++r)
        words.word[r] = bits_as<std::uint32_t>(source.word(i + r * per_register, where));
      st_shared(target.at(where, i), bits_as<Vector<Element, vector>>(words), where);
    } else {
#pragma unroll
      for (int j = 0; j < vector; ++j)
        st_shared(target.at(where, i + j), bits_as<Element>(source(i + j, where)), where);
    }
  }
}

/// Between registers and a thread's elements of global memory, one at a time; of a tensor that clips, none
/// outside of it is written, and zeros stand for what would be read there.
template <class T, class A, Clip C, class M, Registers F>
TEGULA_DEVICE void copy(Tensor<Global<T, A, C>, M> const& source, F&& target, Where where = Where::here()) {
  using To = std::remove_cvref_t<F>;
  using Element = std::remove_const_t<T>;
  detail::check_same_size<T, To, Tensor<Global<T, A, C>, M>>();
  auto const base = source.space.base();
#pragma unroll
  for (int i = 0; i < To::size; ++i) {
    Element value{};
    if (C == Clip::none || base.template inside<M>(i))
      value = ld_global<Element>(base.template at<M>(where, i), where);
    if constexpr (To::whole_registers) {
      target(i, where) = value;
    } else {
      target.set(i, value, where);
    }
  }
}
template <Registers F, class T, class A, Clip C, class M>
TEGULA_DEVICE void copy(F const& source, Tensor<Global<T, A, C>, M> const& target,
                        Where where = Where::here()) {
  detail::check_same_size<T, F, Tensor<Global<T, A, C>, M>>();
  auto const base = target.space.base();
#pragma unroll
  for (int i = 0; i < F::size; ++i) {
    if (C == Clip::none || base.template inside<M>(i))
      st_global(base.template at<M>(where, i), bits_as<T>(source(i, where)), where);
  }
}

/// Another product's accumulators, rounded, to the registers of an A operand.
template <class T, class From, class Order, class MF>
TEGULA_DEVICE void copy(Rounded<T, From, Order> const& source, Fragment<T, MF>& target,
                        Where where = Where::here()) {
#pragma unroll
  for (int i = 0; i < target.registers; ++i) target.data[i] = source.reg(i, where);
}

}  // namespace tegula
