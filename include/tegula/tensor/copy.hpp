#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/cp_async.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/element_types.hpp"
#include "tegula/tensor/global.hpp"
#include "tegula/tensor/identity.hpp"
#include "tegula/tensor/part_copy.hpp"
#include "tegula/tensor/register_copy.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/tiled_copy.hpp"
#include "tegula/tensor/vector.hpp"

/// copy(tiled_copy, source, target): a tile between global and shared memory, by the threads of
/// a CTA.
namespace tegula {

namespace detail {

/// A vector's elements must be neighbours in the tile, and begin at a multiple of the vector.
constexpr bool check_vector(SwizzledLayout const& tile, Layout const& vector, Layout const& threads,
                            Layout const& steps, int count) {
  if (count == 1) return true;
  Layout const run = coalesce(vector);
  if (run.count != 1 || run.extents[0] != count || run.strides[0] != 1)
    refuse("copy", "a vector's elements must be neighbours in the tile", tile, vector, count);
  bool const kept = tile.swizzle.identity() || (1 << tile.swizzle.base) % count == 0;
  if (!kept) refuse("copy", "the tile's swizzle takes a vector apart", tile, count);
  for (Layout const* offsets : {&threads, &steps}) {
    for (int i = 0; i < offsets->count; ++i) {
      if (offsets->extents[i] > 1 && offsets->strides[i] % count != 0)
        refuse("copy", "a vector would cross an edge of the tile's layout", tile, *offsets, count);
    }
  }
  return true;
}
template <class Tile, class Threads, class M, int Count> struct VectorChecked {
  template <class Part> struct Flat {
    static constexpr Layout value = OffsetFacts<Tile, all_modes<Part>>::offsets;
  };
  static constexpr bool value =
      check_vector(Tile::layout, OffsetFacts<Tile, mode_at<0, M>>::offsets,
                   OffsetFacts<Tile, Threads>::offsets, Flat<take_t<1, M::rank, M>>::value, Count);
};
template <int UnitAxis, class M, int Count> struct GlobalVectorChecked {
  static constexpr bool value =
      Count == 1 || std::is_same_v<mode_at<0, M>, Mode<Along<UnitAxis, Count, 1>>>;
};

/// The steps of a thread's part: its modes but the first, which is a vector's elements.
template <class M> using steps_of = take_t<1, M::rank, M>;

template <class Space, class G, class H, int Count> TEGULA_DEVICE constexpr void check_parts() {
  static_assert(map_size<G> == map_size<H>,
                "copy: source and target differ in size; slice the stage");
  static_assert(
      GlobalVectorChecked<Space::unit, G, Count>::value,
      "copy: a vector's elements must be neighbours in global memory, along the tensor's unit axis");
}

/// A vector of which the first `inside` elements are read, and the others are zeros. `Cut`: there
/// may be such as have some elements inside and some outside.
template <CacheHint Hint, class T, int N, bool Cut>
TEGULA_DEVICE Vector<T, N> load_inside(T const* from, int inside, SourceLocation where) {
  using V = Vector<T, N>;
  if constexpr (Cut) {
    if (inside > 0 && inside < N) {
      V values{};
#pragma unroll
      for (int j = 0; j + 1 < N; ++j) {
        if (j < inside) values.data[j] = ld_global<T, Hint>(from + j, where);
      }
      return values;
    }
  }
  return inside > 0 ? ld_global<V, Hint>(from, where) : V{};
}
/// Writes the first `inside` elements of a vector.
template <CacheHint Hint, bool Cut, class T, int N>
TEGULA_DEVICE void store_inside(T* to, Vector<T, N> const& values, int inside,
                                SourceLocation where) {
  if constexpr (Cut) {
    if (inside < N) {
#pragma unroll
      for (int j = 0; j + 1 < N; ++j) {
        if (j < inside) st_global<Hint>(to + j, values.data[j], where);
      }
      return;
    }
  }
  if (inside > 0) st_global<Hint>(to, values, where);
}
/// Whether an edge of a tensor may cut a copy's vectors.
template <Clip C, int Vector> inline constexpr bool may_be_cut = end_may_cut<C> && (Vector > 1);

/// How many elements of a step's vector are in the tensor and wanted. Of those outside, nobody is
/// asked.
template <class M, int Vector, class Base, class Wanted>
TEGULA_DEVICE int wanted_inside(Base const& base, Wanted const& wanted, int i,
                                SourceLocation where) {
  int const inside = base.template count_inside<M, Vector>(where, i);
  return inside > 0 && wanted(i) ? inside : 0;
}

struct Always {
  template <class... I> TEGULA_DEVICE constexpr bool operator()(I...) const { return true; }
};

/// A copy's hint as cp.async takes it, whose operator is a part of its name: .cg of 16 bytes, and
/// .ca of those too with that operator.
template <CacheHint Hint> struct AsyncHint {
  static constexpr CacheHint make() {
    if (Hint == CacheHint{}) return kCopyHint;
    CacheHint result = Hint;
    if (Hint.op == CacheOperator::ca || Hint.op == CacheOperator::cg)
      result.op = CacheOperator::none;
    return result;
  }
  static constexpr CacheHint value = make();
};

/// Global to shared memory; what lies outside of the tensor, or is not wanted, becomes zeros.
template <TiledCopySpec S, class T, CacheHint Hint, class U, class A, Clip C, class G, class Tile,
          int Moved, class H, class Wanted>
TEGULA_DEVICE void copy_to_shared(
    TiledCopy<S, T, Hint> const& by, Tensor<Global<U, A, C>, G> const& from,
    Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& to, Wanted wanted,
    SourceLocation where) {
  static_assert(sizeof(U) == sizeof(T) && sizeof(typename Tile::Element) == sizeof(T),
                "copy: the copy's elements are not the tensors'");
  check_copied_elements<U, typename Tile::Element>();
  static_assert(same_elements<T, U> && same_elements<T, typename Tile::Element>,
                "copy: the copy is of another type than the tensors");
  auto const source = by.partition(from, where);
  auto const target = by.partition(to, where);
  using MG = typename decltype(source)::Map;
  using MS = typename decltype(target)::Map;
  using Part = typename decltype(target)::Space;
  // here: it prints sooner
  static_assert(VectorChecked<Tile, typename Part::ThreadMode, MS, S.vector>::value);
  static_assert(WrittenTile<Tile>::value,
                "copy: elements of the tile in shared memory share a place, and are all written");
  check_parts<Global<U, A, C>, MG, MS, S.vector>();
  constexpr int bytes = TiledCopy<S, T, Hint>::bytes, steps = map_size<steps_of<MS>>;
  static_assert(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16,
                "copy: a vector has 1, 2, 4, 8 or 16 bytes");
  // Copies through a register hold it until the value arrives: a few at a time.
  [[maybe_unused]] constexpr int unrolled = bytes >= 4 ? steps : 4;
  auto base = source.space.base();
  constexpr int strided = Global<U, A, C>::unit == 0 ? 1 : 0;
  ZeroFill const fill = zero_fill<C != Clip::none>(base.left[strided], where);
  base.left[strided] = fill.left;
#pragma unroll unrolled
  for (int i = 0; i < steps; ++i) {
    int const inside = fill.none ? (wanted(i) ? S.vector : 0)
                                 : wanted_inside<steps_of<MG>, S.vector>(base, wanted, i, where);
    // A table has no entry beyond its end, and none before: there nothing is asked for.
    bool const asked = inside > 0 || (TEGULA_GPU && !Global<U, A, C>::indexed);
    auto const* const address = asked ? base.template at<steps_of<MG>>(where, i) : base.data;
    SharedAddr const place = target.space.template at<steps_of<MS>>(where, i);
    if constexpr (bytes == 16 && Hint.op != CacheOperator::ca) {
      cp_async_cg<16, AsyncHint<Hint>::value>(place, address, inside * static_cast<int>(sizeof(T)),
                                              where);
    } else if constexpr (bytes >= 4) {
      cp_async_ca<bytes, AsyncHint<Hint>::value>(place, address,
                                                 inside * static_cast<int>(sizeof(T)), where);
    } else {
      st_shared(place,
                load_inside<Hint, std::remove_const_t<U>, S.vector, may_be_cut<C, S.vector>>(
                    address, inside, where),
                where);
    }
  }
}

/// Shared to global memory through registers; nothing is written outside of the tensor, or where
/// not wanted.
template <TiledCopySpec S, class T, CacheHint Hint, class U, class A, Clip C, class G, class Tile,
          int Moved, class H, class Wanted>
TEGULA_DEVICE void copy_to_global(
    TiledCopy<S, T, Hint> const& by,
    Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
    Tensor<Global<U, A, C>, G> const& to, Wanted wanted, SourceLocation where) {
  check_writable<U>();
  static_assert(sizeof(U) == sizeof(T) && sizeof(typename Tile::Element) == sizeof(T),
                "copy: the copy's elements are not the tensors'");
  check_copied_elements<U, typename Tile::Element>();
  static_assert(same_elements<T, U> && same_elements<T, typename Tile::Element>,
                "copy: the copy is of another type than the tensors");
  auto const source = by.partition(from, where);
  auto const target = by.partition(to, where);
  using MG = typename decltype(target)::Map;
  using MS = typename decltype(source)::Map;
  using Part = typename decltype(source)::Space;
  // here: it prints sooner
  static_assert(VectorChecked<Tile, typename Part::ThreadMode, MS, S.vector>::value);
  check_parts<Global<U, A, C>, MG, MS, S.vector>();
  auto base = target.space.base();
  constexpr int strided = Global<U, A, C>::unit == 0 ? 1 : 0;
  if constexpr (C != Clip::none) base.left[strided] = edge(base.left[strided], where);
#pragma unroll
  for (int i = 0; i < map_size<steps_of<MS>>; ++i) {
    auto const values =
        ld_shared<Vector<U, S.vector>>(source.space.template at<steps_of<MS>>(where, i), where);
    int const inside = wanted_inside<steps_of<MG>, S.vector>(base, wanted, i, where);
    if (inside > 0)
      store_inside<Hint, may_be_cut<C, S.vector>>(base.template at<steps_of<MG>>(where, i), values,
                                                  inside, where);
  }
}

/// A fragment must be as large as the copy's part of a tile in global memory, its vectors
/// neighbours there.
template <TiledCopySpec S, class Space, class G, class U, class F>
TEGULA_DEVICE constexpr void check_registers() {
  static_assert(
      map_size<G> == F::size,
      "copy: the fragment is not like the copy's part of the tile: make_fragment_like(partition(tile))");
  check_elements_of_registers<U, F>();
  static_assert(
      GlobalVectorChecked<Space::unit, G, S.vector>::value,
      "copy: a vector's elements must be neighbours in global memory, along the tensor's unit axis");
}

/// Global memory to registers; what lies outside of the tensor, or is not wanted, becomes zeros.
template <TiledCopySpec S, class T, CacheHint Hint, class U, class A, Clip C, class G, class E,
          class M, class Wanted>
TEGULA_DEVICE void copy_to_registers(TiledCopy<S, T, Hint> const& by,
                                     Tensor<Global<U, A, C>, G> const& from, Fragment<E, M>& to,
                                     Wanted wanted, SourceLocation where) {
  auto const source = by.partition(from, where);
  using MG = typename decltype(source)::Map;
  check_registers<S, Global<U, A, C>, MG, U, Fragment<E, M>>();
  using V = std::remove_const_t<U>;
  auto const base = source.space.base();
#pragma unroll
  for (int i = 0; i < map_size<steps_of<MG>>; ++i) {
    int const inside = wanted_inside<steps_of<MG>, S.vector>(base, wanted, i, where);
    V const* const address = inside > 0 ? base.template at<steps_of<MG>>(where, i) : nullptr;
    put(to, i * S.vector,
        load_inside<Hint, V, S.vector, may_be_cut<C, S.vector>>(address, inside, where), where);
  }
}

/// Registers to global memory; nothing is written outside of the tensor, or where not wanted.
template <TiledCopySpec S, class T, CacheHint Hint, class E, class M, class U, class A, Clip C,
          class G, class Wanted>
TEGULA_DEVICE void copy_from_registers(TiledCopy<S, T, Hint> const& by, Fragment<E, M> const& from,
                                       Tensor<Global<U, A, C>, G> const& to, Wanted wanted,
                                       SourceLocation where) {
  auto const target = by.partition(to, where);
  using MG = typename decltype(target)::Map;
  check_writable<U>();
  check_registers<S, Global<U, A, C>, MG, U, Fragment<E, M>>();
  auto const base = target.space.base();
#pragma unroll
  for (int i = 0; i < map_size<steps_of<MG>>; ++i) {
    int const inside = wanted_inside<steps_of<MG>, S.vector>(base, wanted, i, where);
    if (inside > 0)
      store_inside<Hint, may_be_cut<C, S.vector>>(base.template at<steps_of<MG>>(where, i),
                                                  get<U, S.vector>(from, i * S.vector, where),
                                                  inside, where);
  }
}

/// A predicate on coordinates as one on steps of a thread's part of a tensor.
template <class Predicate, class Part> struct WantedAt {
  Predicate const& predicate;
  Part const& part;  // of coordinates
  TEGULA_DEVICE bool operator()(int i) const {
    return predicate(part.space.template at<steps_of<typename Part::Map>>(SourceLocation{}, i));
  }
};

}  // namespace detail

/// Starts the copy of a tile (m, n) from global to shared memory: by cp.async where the hardware
/// has the vector's width (4, 8, 16 bytes), else through a register. What lies outside of a
/// tensor that clips becomes zeros, also where its edge cuts a vector. Complete for this thread at
/// its next cp_async_wait_group that covers it.
template <TiledCopySpec S, class T, CacheHint Hint, class U, class A, Clip C, class G, class Tile,
          int Moved, class H>
TEGULA_DEVICE void copy(TiledCopy<S, T, Hint> const& by, Tensor<Global<U, A, C>, G> const& from,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& to,
                        SourceLocation where = SourceLocation::current()) {
  detail::copy_to_shared(by, from, to, detail::Always{}, where);
}
/// A tile from shared to global memory, through registers. Nothing outside of a tensor that clips
/// is written: of a vector that its edge cuts, single elements are.
template <TiledCopySpec S, class T, CacheHint Hint, class U, class A, Clip C, class G, class Tile,
          int Moved, class H>
TEGULA_DEVICE void copy(TiledCopy<S, T, Hint> const& by,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
                        Tensor<Global<U, A, C>, G> const& to,
                        SourceLocation where = SourceLocation::current()) {
  detail::copy_to_global(by, from, to, detail::Always{}, where);
}
/// A thread's part of a tile in global memory, to registers like it (make_fragment_like), a vector
/// at a time. What lies outside of a tensor that clips becomes zeros.
template <TiledCopySpec S, class T, CacheHint Hint, class U, class A, Clip C, class G, class E,
          class M>
TEGULA_DEVICE void copy(TiledCopy<S, T, Hint> const& by, Tensor<Global<U, A, C>, G> const& from,
                        Fragment<E, M>& to, SourceLocation where = SourceLocation::current()) {
  detail::copy_to_registers(by, from, to, detail::Always{}, where);
}
/// And from registers. Nothing outside of a tensor that clips is written.
template <TiledCopySpec S, class T, CacheHint Hint, class E, class M, class U, class A, Clip C,
          class G>
TEGULA_DEVICE void copy(TiledCopy<S, T, Hint> const& by, Fragment<E, M> const& from,
                        Tensor<Global<U, A, C>, G> const& to,
                        SourceLocation where = SourceLocation::current()) {
  detail::copy_from_registers(by, from, to, detail::Always{}, where);
}

/// As copy, of the vectors at whose first element `predicate` holds of the coordinate in global
/// memory, a Coordinate<rank>; of the others, zeros are written to shared memory and registers, and
/// nothing to global memory.
/// (CuTe: copy_if.)
template <TiledCopySpec S, class T, CacheHint Hint, class U, class A, Clip C, class G, class Tile,
          int Moved, class H, class Predicate>
TEGULA_DEVICE void copy_if(TiledCopy<S, T, Hint> const& by, Predicate const& predicate,
                           Tensor<Global<U, A, C>, G> const& from,
                           Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& to,
                           SourceLocation where = SourceLocation::current()) {
  auto const places = by.partition(coordinates_of(from), where);
  detail::copy_to_shared(by, from, to,
                         detail::WantedAt<Predicate, decltype(places)>{predicate, places}, where);
}
template <TiledCopySpec S, class T, CacheHint Hint, class U, class A, Clip C, class G, class Tile,
          int Moved, class H, class Predicate>
TEGULA_DEVICE void copy_if(TiledCopy<S, T, Hint> const& by, Predicate const& predicate,
                           Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
                           Tensor<Global<U, A, C>, G> const& to,
                           SourceLocation where = SourceLocation::current()) {
  auto const places = by.partition(coordinates_of(to), where);
  detail::copy_to_global(by, from, to,
                         detail::WantedAt<Predicate, decltype(places)>{predicate, places}, where);
}

template <TiledCopySpec S, class T, CacheHint Hint, class U, class A, Clip C, class G, class E,
          class M, class Predicate>
TEGULA_DEVICE void copy_if(TiledCopy<S, T, Hint> const& by, Predicate const& predicate,
                           Tensor<Global<U, A, C>, G> const& from, Fragment<E, M>& to,
                           SourceLocation where = SourceLocation::current()) {
  auto const places = by.partition(coordinates_of(from), where);
  detail::copy_to_registers(
      by, from, to, detail::WantedAt<Predicate, decltype(places)>{predicate, places}, where);
}
template <TiledCopySpec S, class T, CacheHint Hint, class E, class M, class U, class A, Clip C,
          class G, class Predicate>
TEGULA_DEVICE void copy_if(TiledCopy<S, T, Hint> const& by, Predicate const& predicate,
                           Fragment<E, M> const& from, Tensor<Global<U, A, C>, G> const& to,
                           SourceLocation where = SourceLocation::current()) {
  auto const places = by.partition(coordinates_of(to), where);
  detail::copy_from_registers(
      by, from, to, detail::WantedAt<Predicate, decltype(places)>{predicate, places}, where);
}

}  // namespace tegula
