#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/ldmatrix.hpp"
#include "tegula/arch/stmatrix.hpp"
#include "tegula/tensor/element_types.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/global.hpp"
#include "tegula/tensor/register_arithmetic.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/tiled_copy.hpp"
#include "tegula/tensor/tiled_mma.hpp"
#include "tegula/tensor/vector.hpp"

/// copy(source, target) between registers and memory: a thread's part of a tensor, and its fragment
/// of it.
namespace tegula {

namespace detail {

/// N matrices of the load at (i...), a register each.
template <int N, class Tile, class Threads, CopyOp Op, int Moved, class M, class... I>
TEGULA_DEVICE void load_matrices(Tensor<Shared<Tile, Threads, Op, Moved>, M> const& source,
                                 std::uint32_t (&r)[N], SourceLocation where, I... i) {
  static_assert(Op == CopyOp::ldmatrix || Op == CopyOp::ldmatrix_trans,
                "copy: the tensor is not a tiled MMA's operand that ldmatrix loads");
  if constexpr (Op == CopyOp::ldmatrix_trans) {
    ldmatrix_trans<N>(r, source.at(where, i...), where);
  } else {
    ldmatrix<N>(r, source.at(where, i...), where);
  }
}

/// How many of a thread's elements one access moves: neighbours in the tile, and aligned, wherever
/// the thread and the step are; at most `most`.
constexpr int vector_of(SwizzledLayout const& tile, Layout const& threads, Layout const& values,
                        int most) {
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
      vector_of(Tile::layout, OffsetFacts<Tile, Threads>::offsets,
                OffsetFacts<Tile, all_modes<M>>::offsets, lowest < most ? lowest : most);
};

/// The wavefronts beyond the fewest that a warp's copies of such parts cost.
template <class Part> struct PartConflicts;
template <class Tile, class Threads, int Moved, class M>
struct PartConflicts<Tensor<Shared<Tile, Threads, CopyOp::universal, Moved>, M>> {
  static constexpr int vector = SharedVector<Tile, Threads, M, Moved>::value;
  static constexpr int value = warp_conflicts < Tile, Threads, Contiguity<Tile>::along_mn ? 0 : 1,
                       vector *static_cast<int>(sizeof(typename Tile::Element)) > ;
};

/// Registers F and memory of elements of T.
template <class T, class F> TEGULA_DEVICE constexpr void check_elements_of_registers() {
  static_assert(
      same_elements<typename F::Element, T>,
      "copy: the registers hold another type than the memory: convert<T>(registers) converts their "
      "values, recast<T>(registers) or recast<T>(tensor) takes the bits as they are");
}
/// Elements that are written.
template <class T> TEGULA_DEVICE constexpr void check_writable() {
  static_assert(!std::is_const_v<T>,
                "copy: the target's elements are const: its tensor was made of a pointer to const, "
                "and is only read");
}
template <class T, class F, class Tensor> TEGULA_DEVICE constexpr void check_same_size() {
  static_assert(F::size == Tensor::size, "copy: the tensor and the fragment differ in size");
  check_elements_of_registers<T, F>();
}

/// How many of a fragment's values, from one on, are neighbours in its registers: all, or a slice's
/// first mode.
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

/// Values i, i + 1, ... of registers as a vector, and the other way round; i is a multiple of the
/// vector's length.
template <class F, class Element, int N>
TEGULA_DEVICE void put(F& target, int i, Vector<Element, N> const& values, SourceLocation where) {
  constexpr int per_register = values_per_register<Element>;
  if constexpr (sizeof(Element) > 4) {
#pragma unroll
    for (int j = 0; j < N; ++j)
      target.word(i + j, where) =
          bits_as<typename std::remove_cvref_t<F>::Register>(values.data[j]);
  } else if constexpr (N >= per_register) {
    auto const words = bits_as<RegisterBits<sizeof(values)>>(values);
#pragma unroll
    for (int r = 0; r < N / per_register; ++r)
      target.word(i + r * per_register, where) =
          bits_as<typename std::remove_cvref_t<F>::Register>(words.word[r]);
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j)
      target.set(i + j, bits_as<typename std::remove_cvref_t<F>::Element>(values.data[j]), where);
  }
}
template <class Element, int N, class F>
TEGULA_DEVICE Vector<Element, N> get(F const& source, int i, SourceLocation where) {
  constexpr int per_register = values_per_register<Element>;
  if constexpr (sizeof(Element) <= 4 && N >= per_register) {
    RegisterBits<N* static_cast<int>(sizeof(Element))> words;
#pragma unroll
    for (int r = 0; r < N / per_register; ++r)
      words.word[r] = bits_as<std::uint32_t>(source.read_word(i + r * per_register, where));
    return bits_as<Vector<Element, N>>(words);
  } else {
    Vector<Element, N> values;
#pragma unroll
    for (int j = 0; j < N; ++j) values.data[j] = bits_as<Element>(source.value(i + j, where));
    return values;
  }
}

}  // namespace detail

/// Bank conflicts, in wavefronts beyond the fewest, of a warp's copies between registers and its
/// threads' parts of a tile in shared memory: conflicts_of_part<decltype(tAsA)>.
template <class Part>
inline constexpr int conflicts_of_part = detail::PartConflicts<std::remove_cvref_t<Part>>::value;

/// A tiled MMA's operand (or a slice of it), from a tile in shared memory to registers,
/// by ldmatrix.
template <class Tile, class Threads, CopyOp Op, int Moved, class M, class T, class MF>
requires(Op == CopyOp::ldmatrix || Op == CopyOp::ldmatrix_trans) TEGULA_DEVICE
    void copy(Tensor<Shared<Tile, Threads, Op, Moved>, M> const& source, Fragment<T, MF>& target,
              SourceLocation where = SourceLocation::current()) {
  constexpr int loads = map_size<M>, each = Fragment<T, MF>::registers / loads;
  static_assert(loads * each == Fragment<T, MF>::registers && (each == 1 || each == 2 || each == 4),
                "copy: the fragment is not what the operand's loads fill");
#pragma unroll
  for (int i = 0; i < loads; ++i)
    detail::load_matrices(source, target.template take<each>(each * i), where, i);
}

namespace detail {
/// Register i of values of 16 bits.
template <class T, class From, class Order>
TEGULA_DEVICE std::uint32_t register_of(Rounded<T, From, Order> const& source, int i,
                                        SourceLocation where) {
  return source.reg(i, where);
}
template <Registers F>
TEGULA_DEVICE std::uint32_t register_of(F const& source, int i, SourceLocation where) {
  static_assert(sizeof(typename F::Element) == 2,
                "copy: stmatrix stores elements of 16 bits: rounded<T>(f)");
  return source.read_word(2 * i, where);
}
}  // namespace detail

/// Accumulators of 16 bits, or rounded to them, to a tile in shared memory by stmatrix
/// (MatrixStore).
template <class F, class Tile, class Threads, CopyOp Op, int Moved, class M>
requires(Op == CopyOp::stmatrix || Op == CopyOp::stmatrix_trans) TEGULA_DEVICE
    void copy(F const& source, Tensor<Shared<Tile, Threads, Op, Moved>, M> const& target,
              SourceLocation where = SourceLocation::current()) {
  constexpr int stores = map_size<M>, each = F::size / 2 / stores;
  static_assert(sizeof(typename Tile::Element) == 2, "copy: stmatrix stores elements of 16 bits");
  static_assert(2 * stores * each == F::size && (each == 1 || each == 2 || each == 4),
                "copy: the registers are not what the tile's stores take");
#pragma unroll
  for (int i = 0; i < stores; ++i) {
    std::uint32_t matrices[each];
#pragma unroll
    for (int j = 0; j < each; ++j) matrices[j] = detail::register_of(source, each * i + j, where);
    stmatrix<each, Op == CopyOp::stmatrix_trans>(target.at(where, i), matrices, where);
  }
}

/// A thread's elements of a tile in shared memory, to registers: as many at a time as
/// are neighbours.
template <class Tile, class Threads, int Moved, class M, Registers F>
TEGULA_DEVICE void copy(Tensor<Shared<Tile, Threads, CopyOp::universal, Moved>, M> const& source,
                        F&& target, SourceLocation where = SourceLocation::current()) {
  using Element = typename Tile::Element;
  using To = std::remove_cvref_t<F>;
  detail::check_same_size<Element, To,
                          Tensor<Shared<Tile, Threads, CopyOp::universal, Moved>, M>>();
  constexpr int vector =
      detail::CommonVector<detail::SharedVector<Tile, Threads, M, Moved>::value, To>::value;
#pragma unroll
  for (int i = 0; i < To::size; i += vector) {
    detail::put(target, i, ld_shared<Vector<Element, vector>>(source.at(where, i), where), where);
  }
}

/// Registers to a thread's elements of a tile in shared memory: as many at a time as
/// are neighbours.
template <Registers F, class Tile, class Threads, int Moved, class M>
TEGULA_DEVICE void copy(F const& source,
                        Tensor<Shared<Tile, Threads, CopyOp::universal, Moved>, M> const& target,
                        SourceLocation where = SourceLocation::current()) {
  using Element = typename Tile::Element;
  detail::check_same_size<Element, F, Tensor<Shared<Tile, Threads, CopyOp::universal, Moved>, M>>();
  constexpr int vector =
      detail::CommonVector<detail::SharedVector<Tile, Threads, M, Moved>::value, F>::value;
#pragma unroll
  for (int i = 0; i < F::size; i += vector) {
    st_shared(target.at(where, i), detail::get<Element, vector>(source, i, where), where);
  }
}

/// A thread's part of a tile in shared memory, to registers like it (make_fragment_like of the
/// copy's part), and back. (To and from global memory: copy.hpp.)
template <TiledCopySpec S, class T, class Tile, int Moved, class H, class E, class M>
TEGULA_DEVICE void copy(TiledCopy<S, T> const& by,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
                        Fragment<E, M>& to, SourceLocation where = SourceLocation::current()) {
  detail::check_elements_of_registers<T, Fragment<E, M>>();
  copy(by.partition(from, where), to, where);
}
template <TiledCopySpec S, class T, class E, class M, class Tile, int Moved, class H>
TEGULA_DEVICE void copy(TiledCopy<S, T> const& by, Fragment<E, M> const& from,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& to,
                        SourceLocation where = SourceLocation::current()) {
  detail::check_elements_of_registers<T, Fragment<E, M>>();
  copy(from, by.partition(to, where), where);
}

/// Between registers and a thread's elements of global memory, one at a time; of a tensor that
/// clips, none outside of it is written, and zeros stand for what would be read there.
template <class T, class A, Clip C, class M, Registers F>
TEGULA_DEVICE void copy(Tensor<Global<T, A, C>, M> const& source, F&& target,
                        SourceLocation where = SourceLocation::current()) {
  using To = std::remove_cvref_t<F>;
  using Element = std::remove_const_t<T>;
  detail::check_same_size<T, To, Tensor<Global<T, A, C>, M>>();
  auto const base = source.space.base();
#pragma unroll
  for (int i = 0; i < To::size; ++i) {
    Element value{};
    if (C == Clip::none || base.template inside<M>(i))
      value = ld_global<Element>(base.template at<M>(where, i), where);
    target.set(i, bits_as<typename To::Element>(value), where);
  }
}
template <Registers F, class T, class A, Clip C, class M>
TEGULA_DEVICE void copy(F const& source, Tensor<Global<T, A, C>, M> const& target,
                        SourceLocation where = SourceLocation::current()) {
  detail::check_same_size<T, F, Tensor<Global<T, A, C>, M>>();
  detail::check_writable<T>();
  auto const base = target.space.base();
#pragma unroll
  for (int i = 0; i < F::size; ++i) {
    if (C == Clip::none || base.template inside<M>(i))
      st_global(base.template at<M>(where, i), bits_as<T>(source.value(i, where)), where);
  }
}

/// Another product's accumulators, rounded, to the registers of an A operand.
template <class T, class From, class Order, class MF>
TEGULA_DEVICE void copy(Rounded<T, From, Order> const& source, Fragment<T, MF>& target,
                        SourceLocation where = SourceLocation::current()) {
#pragma unroll
  for (int i = 0; i < target.registers; ++i) target.data[i] = source.reg(i, where);
}

}  // namespace tegula
