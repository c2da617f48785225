#pragma once

#include <type_traits>

#include "tegula/arch/reduction.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/global.hpp"
#include "tegula/tensor/register_copy.hpp"
#include "tegula/tensor/tiled_copy.hpp"

/// red_add: a thread's values are added to those of a tensor in global memory that others add to,
/// too, as where K is split and every part of it adds to D. Elements are float, double, half,
/// bfloat16 or integers of 32 or 64 bits; each sum is one of its own, rounded in the elements'
/// type, relaxed at the scope of the GPU. What is added to must have been written before. The sums
/// of floating-point values depend on the order in which the threads come.
namespace tegula {

namespace detail {

/// How many neighbours one red adds to, at most: PTX ISA, red (more than a pair of 16 bits: sm_90).
template <class T>
inline constexpr int most_reduced = std::is_same_v<T, float> ? 4
                                    : AtomicShortFloat<T>    ? 8
                                                             : 1;

/// Whether each `vector` values of a map, in order, are neighbours along the unit axis, and begin
/// at a multiple of their number there.
template <class M, int Unit, int Rank, int Vector> struct RunsOf {
  template <int Axis> static constexpr bool along() {
    for (int i = 0; i < map_size<M>; ++i) {
      int const first = coordinate<Axis>(M{}, i / Vector * Vector);
      if (coordinate<Axis>(M{}, i) != first + (Axis == Unit ? i % Vector : 0)) return false;
      if (Axis == Unit && first % Vector != 0) return false;
    }
    return true;
  }
  template <int... Axis> static constexpr bool all(NumberList<Axis...>) {
    return (along<Axis>() && ...);
  }
  static constexpr bool value = map_size<M> % Vector == 0 && all(typename CountTo<Rank>::Type{});
};
/// The widest vector, of at most `Most` values, that a map lets be added together.
template <class M, int Unit, int Rank, int Most> struct ReducedVector {
  static constexpr int make() {
    if constexpr (Most == 1 || Unit < 0) {
      return 1;
    } else if constexpr (RunsOf<M, Unit, Rank, Most>::value) {
      return Most;
    } else {
      return ReducedVector<M, Unit, Rank, Most / 2>::value;
    }
  }
  static constexpr int value = make();
};

/// Adds a vector's first `inside` elements to neighbours, by as few instructions as there can be.
template <bool Cut, class T, int N>
TEGULA_DEVICE void red_inside(T* to, Vector<T, N> const& values, int inside, SourceLocation where) {
  constexpr int each = N < most_reduced<T> ? N : most_reduced<T>;
  static_assert(N % each == 0, "red_add: a vector is of 1, 2, 4 or 8 elements");
  if constexpr (Cut) {
    if (inside < N) {
#pragma unroll
      for (int j = 0; j + 1 < N; ++j) {
        if (j < inside) tegula::red_add(to + j, values.data[j], where);
      }
      return;
    }
  }
  if constexpr (each == 1) {
#pragma unroll
    for (int j = 0; j < N; ++j) tegula::red_add(to + j, values.data[j], where);
  } else {
    auto const pieces = bits_as<Vector<Vector<T, each>, N / each>>(values);
#pragma unroll
    for (int j = 0; j < N / each; ++j) tegula::red_add(to + each * j, pieces.data[j], where);
  }
}

}  // namespace detail

/// Adds registers to a thread's part of a tensor, such as accumulators to
/// `mma.partition_c(tile)`: vectors as wide as the part's map lets them be, at most `Most` elements
/// (1: whatever the alignment, on sm_80 too). Of what lies outside of a tensor that clips nothing
/// is added to.
///
/// Preconditions: vectors begin at multiples of their size in memory, as for copies: the base, the
/// strides, and the coordinates that the part begins at are multiples of the vector. (On the
/// simulated machine one that does not is `misaligned`.)
template <int Most = 8, Registers F, class T, class A, Clip C, class M>
TEGULA_DEVICE void red_add(F const& source, Tensor<Global<T, A, C>, M> const& target,
                           SourceLocation where = SourceLocation::current()) {
  static_assert(Most == 1 || Most == 2 || Most == 4 || Most == 8,
                "red_add: at most 1, 2, 4 or 8 elements are added together");
  static_assert(std::is_same_v<typename F::Element, T>,
                "red_add: the registers' elements are not the tensor's: convert<T>(fragment)");
  detail::check_same_size<T, F, Tensor<Global<T, A, C>, M>>();
  using Space = Global<T, A, C>;
  constexpr int most = Most < detail::most_reduced<T> ? Most : detail::most_reduced<T>;
  constexpr int vector =
      detail::CommonVector<detail::ReducedVector<M, Space::unit, Space::rank, most>::value,
                           F>::value;
  auto const base = target.space.base();
#pragma unroll
  for (int i = 0; i < F::size; i += vector) {
    int const inside = base.template count_inside<M, vector>(where, i);
    if (inside == 0) continue;
    detail::red_inside<detail::may_be_cut<C, vector>>(
        base.template at<M>(where, i), detail::get<T, vector>(source, i, where), inside, where);
  }
}

/// As copy(tiled_copy, fragment, tensor): the thread's part of a tile, a vector of the copy at a
/// time.
template <TiledCopySpec S, class E, class M, class T, class A, Clip C, class G>
TEGULA_DEVICE void red_add(TiledCopy<S, T> const& by, Fragment<E, M> const& from,
                           Tensor<Global<T, A, C>, G> const& to,
                           SourceLocation where = SourceLocation::current()) {
  static_assert(std::is_same_v<E, T>,
                "red_add: the fragment's elements are not the tensor's: convert<T>(fragment)");
  auto const target = by.partition(to, where);
  using MG = typename decltype(target)::Map;
  detail::check_registers<S, Global<T, A, C>, MG, T, Fragment<E, M>>();
  auto const base = target.space.base();
  using Steps = detail::steps_of<MG>;
#pragma unroll
  for (int i = 0; i < map_size<Steps>; ++i) {
    int const inside = base.template count_inside<Steps, S.vector>(where, i);
    if (inside == 0) continue;
    detail::red_inside<detail::may_be_cut<C, S.vector>>(
        base.template at<Steps>(where, i), detail::get<T, S.vector>(from, i * S.vector, where),
        inside, where);
  }
}

}  // namespace tegula
