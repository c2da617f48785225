#pragma once

#include <type_traits>
#include <utility>

#include "tegula/arch/source_location.hpp"
#include "tegula/tensor/index.hpp"
#include "tegula/tensor/map.hpp"

/// Tensors: a space, a base in it that is held at run time, and a map from the tensor's modes to
/// coordinates of the space that is known at compile time.
///
/// Coordinates are what everything here is measured in, and a space gives them a meaning:
/// an address in global or shared memory, a TMA coordinate, a matrix descriptor, or just
/// the coordinate. A map is additive, so one map gives the address, the predicate and the
/// TMA coordinate.
///
/// A space has, for a mode or map M of coordinates:
///   Element                    what it holds
///   moved<Mode>(index)         the space with its base moved by the mode's coordinate at the index
///   at<Map>(where, i...)       the place at the map's coordinate from the base on
///   element<Map>(where, i...)  what stands for the element there: a reference, or a value
///   begin_at<Map>(t, where)    the space as thread t sees it: based where the map leads from t
namespace tegula {

template <class Space, class M> struct Tensor;

namespace detail {

/// The modes of a map whose index is `_`.
template <class M, class... I> struct Sliced;
template <class... Modes, class... I>
struct Sliced<Map<Modes...>, I...>
    : Concatenated<std::conditional_t<std::is_same_v<I, Underscore>, Map<Modes>, Map<>>...> {};

/// The space with its base moved by every mode whose index is not `_`.
template <class Space> TEGULA_DEVICE Space moved_by(Space const& space, Map<>) { return space; }
template <class Space, class First, class... Modes, class I, class... Rest>
TEGULA_DEVICE auto moved_by(Space const& space, Map<First, Modes...>, I index, Rest... rest) {
  if constexpr (std::is_same_v<I, Underscore>) {
    return moved_by(space, Map<Modes...>{}, rest...);
  } else {
    return moved_by(space.template moved<First>(static_cast<int>(index)), Map<Modes...>{}, rest...);
  }
}
template <class M, class Space> TEGULA_DEVICE Tensor<Space, M> make_tensor(Space const& space) {
  return {space};
}

/// A mode as tiles of `Tile` indices: within one tile, and from tile to tile.
constexpr Layout tiles_of_mode(Layout const& mode, int tile, bool rest) {
  if (mode.size() % tile != 0)
    refuse("local_tile", "the tile's extent does not divide the mode's", mode, tile);
  return composition(mode, rest ? layout(mode.size() / tile, tile) : layout(tile));
}
template <class M, int Tile> struct Tiles {
  template <bool Rest> struct Source {
    static constexpr Layout value =
        make_layout(tiles_of_mode(detail::ModeTraits<M>::make(), Tile, Rest));
  };
  using Within = mode_at<0, MapOf<Source<false>>>;
  using Between = mode_at<0, MapOf<Source<true>>>;
};
template <int Axis, int Extent, int Step, int Tile>
struct Tiles<Mode<Along<Axis, Extent, Step>>, Tile> {
  static constexpr bool unbounded = Extent == kUnbounded;
  static_assert(unbounded || Extent % Tile == 0,
                "local_tile: the tile's extent must divide the mode's");
  using Within = std::conditional_t<Tile == 1, Mode<>, Mode<Along<Axis, Tile, Step>>>;
  using Between =
      std::conditional_t<Extent == Tile, Mode<>,
                         Mode<Along<Axis, unbounded ? Extent : Extent / Tile, Step * Tile>>>;
};

}  // namespace detail

namespace detail {
/// False, for a static_assert of what must not be instantiated.
template <class U> inline constexpr bool no_number_by_itself = false;
}  // namespace detail

/// One element of a tensor: reading it loads, assigning to it stores. It remembers the line that
/// named it. `auto x = t(i, j)` is such a reference, and loads where it is read;
/// `auto x = t(i, j).value()` loads now.
template <class Space, class Place> struct ElementReference {
  using Element = std::remove_const_t<typename Space::Element>;
  Place place;
  [[no_unique_address]] SourceLocation where;

  TEGULA_DEVICE Element value() const { return Space::load(place, where); }
  TEGULA_DEVICE operator Element() const { return value(); }
  /// A number is made of an element of a narrow format by its conversion, or by an explicit cast.
  TEGULA_DEVICE explicit operator float() const requires(!std::is_arithmetic_v<Element>) {
    return to_float(value());
  }
  template <class U>
  requires(std::is_arithmetic_v<U> && !std::is_arithmetic_v<Element>) TEGULA_DEVICE operator U()
      const {
    static_assert(detail::no_number_by_itself<U>,
                  "an element of a narrow format is no number by itself: to_float(t(i, j))");
    return {};
  }
  TEGULA_DEVICE ElementReference const& operator=(Element const& value) const {
    static_assert(!std::is_const_v<typename Space::Element>,
                  "the tensor's elements are const: it was made of a pointer to const, and is only "
                  "read");
    Space::store(place, value, where);
    return *this;
  }
  TEGULA_DEVICE ElementReference const& operator=(ElementReference const& other) const {
    return *this = static_cast<Element>(other);
  }
};

/// An element of a tensor as a float: loads it.
template <class Space, class Place>
TEGULA_DEVICE float to_float(ElementReference<Space, Place> const& x) {
  return to_float(x.value());
}

/// A view of a space. Modes are numbered from 0; `Map` says where each leads.
template <class SpaceType, class M> struct Tensor {
  using Space = SpaceType;
  using Map = M;
  using Element = typename Space::Element;
  static constexpr int rank = M::rank;

  Space space;

  /// The extent of mode I, of all modes together.
  template <int I> static constexpr int extent = mode_size<mode_at<I, M>>;
  static constexpr int size = map_size<M>;

  /// t(_, _, k): a slice. Modes given as `_` stay; by the others the base moves.
  /// t(i, j): an element, to read or assign. (CuTe: operator(); an index may also be one for
  /// all modes.)
  template <TensorIndex I>
  TEGULA_DEVICE auto operator()(I i, SourceLocation where = SourceLocation::current()) const {
    return get(where, i);
  }
  template <TensorIndex I, TensorIndex J>
  TEGULA_DEVICE auto operator()(I i, J j, SourceLocation where = SourceLocation::current()) const {
    return get(where, i, j);
  }
  template <TensorIndex I, TensorIndex J, TensorIndex K>
  TEGULA_DEVICE auto operator()(I i, J j, K k,
                                SourceLocation where = SourceLocation::current()) const {
    return get(where, i, j, k);
  }
  template <TensorIndex I, TensorIndex J, TensorIndex K, TensorIndex L>
  TEGULA_DEVICE auto operator()(I i, J j, K k, L l,
                                SourceLocation where = SourceLocation::current()) const {
    return get(where, i, j, k, l);
  }
  template <TensorIndex I, TensorIndex J, TensorIndex K, TensorIndex L, TensorIndex N>
  TEGULA_DEVICE auto operator()(I i, J j, K k, L l, N n,
                                SourceLocation where = SourceLocation::current()) const {
    return get(where, i, j, k, l, n);
  }

  /// The place of an element: a pointer into global memory, a shared address, a TMA coordinate, a
  /// matrix descriptor. One index for each mode, or one for all.
  template <class... I> TEGULA_DEVICE auto at(SourceLocation where, I... i) const {
    return space.template at<M>(where, i...);
  }

 private:
  template <class... I> TEGULA_DEVICE auto get(SourceLocation where, I... i) const {
    if constexpr ((false || ... || std::is_same_v<I, Underscore>)) {
      static_assert(sizeof...(I) == rank,
                    "a slice takes one index, or _, for each mode of the tensor");
      return detail::make_tensor<typename detail::Sliced<M, I...>::Type>(
          detail::moved_by(space, M{}, i...));
    } else {
      static_assert(sizeof...(I) == rank || sizeof...(I) == 1,
                    "an element takes one index for each mode of the tensor, or one for all");
      return space.template element<M>(where, i...);
    }
  }
};

/// Tile (i, j, ...) of a tensor, of Tile... indices along its first modes; where `_` stands for an
/// index, all tiles along that mode, as modes that follow the tile's. Modes beyond those stay as
/// they are, last. (CuTe: local_tile.)
template <int... Tile, class Space, class M, class... I>
requires(sizeof...(Tile) == sizeof...(I)) TEGULA_DEVICE
    auto local_tile(Tensor<Space, M> const& tensor, I... index) {
  constexpr int tiled = sizeof...(Tile);
  static_assert(tiled <= M::rank, "local_tile: the tile has more modes than the tensor");
  return [&]<int... K>(detail::NumberList<K...>) {
    using Between = Map<typename detail::Tiles<mode_at<K, M>, Tile>::Between...>;
    using Within = Map<typename detail::Tiles<mode_at<K, M>, Tile>::Within...>;
    using Kept = typename detail::Sliced<Between, I...>::Type;
    using Result = concat_t<Within, Kept, take_t<tiled, M::rank, M>>;
    return detail::make_tensor<Result>(detail::moved_by(tensor.space, Between{}, index...));
  }
  (typename detail::CountTo<tiled>::Type{});
}

/// The tensor from element (i, j, ...) on, one index for each mode. (CuTe: domain_offset.)
template <class Space, class M, class... I>
requires(sizeof...(I) == M::rank) TEGULA_DEVICE
    auto domain_offset(Tensor<Space, M> const& tensor, I... index) {
  return detail::make_tensor<M>(detail::moved_by(tensor.space, M{}, index...));
}

/// The first Extents... indices of a tensor's first modes; the other modes stay. (CuTe: a slice of
/// composition(tensor, shape).)
template <int... Extents, class Space, class M>
TEGULA_DEVICE auto part(Tensor<Space, M> const& tensor) {
  constexpr int cut = sizeof...(Extents);
  static_assert(cut <= M::rank, "part: the tensor has fewer modes than extents are given");
  [&]<int... K>(detail::NumberList<K...>) {
    static_assert((true && ... && (Extents <= mode_size<mode_at<K, M>>)),
                  "part: an extent exceeds the tensor's");
  }
  (typename detail::CountTo<cut>::Type{});
  using Result =
      concat_t<compose_t<take_t<0, cut, M>, identity_map<Extents...>>, take_t<cut, M::rank, M>>;
  return Tensor<Space, Result>{tensor.space};
}

/// The same tensor with modes [First, Last) as one mode, or with each leaf of its map as a mode.
/// (CuTe: group_modes, flatten.)
template <int First, int Last, class Space, class M>
TEGULA_DEVICE auto group_modes(Tensor<Space, M> const& tensor) {
  static_assert(0 <= First && First < Last && Last <= M::rank,
                "group_modes: the modes are not the tensor's");
  using Result =
      concat_t<take_t<0, First, M>, group_t<take_t<First, Last, M>>, take_t<Last, M::rank, M>>;
  return Tensor<Space, Result>{tensor.space};
}
template <class Space, class M> TEGULA_DEVICE auto flatten(Tensor<Space, M> const& tensor) {
  return Tensor<Space, flatten_t<M>>{tensor.space};
}

/// The modes of a tensor that are named, in that order: select<1, 0>(t) is t transposed, the same
/// elements. (CuTe: select of a layout, make_tensor of the same pointer.)
template <int... Modes, class Space, class M>
TEGULA_DEVICE auto select(Tensor<Space, M> const& tensor) {
  static_assert(sizeof...(Modes) == M::rank, "select: each mode of the tensor is named once");
  static_assert((true && ... && (0 <= Modes && Modes < M::rank)),
                "select: the modes are not the tensor's");
  return Tensor<Space, Map<mode_at<Modes, M>...>>{tensor.space};
}

/// What thread `thread` of many has of a tensor whose first modes are a tile: Threads maps a thread
/// to the tile coordinate it begins at, Values maps its own modes to tile coordinates from there
/// on. The modes beyond the tile's follow.
template <class Threads, class Values, int TileRank, class Space, class M>
TEGULA_DEVICE auto partition(Tensor<Space, M> const& tensor, int thread, SourceLocation where) {
  using Tile = take_t<0, TileRank, M>;
  using Begins = compose_t<Tile, Threads>;
  using Own = concat_t<compose_t<Tile, Values>, take_t<TileRank, M::rank, M>>;
  return detail::make_tensor<Own>(tensor.space.template begin_at<Begins>(thread, where));
}

}  // namespace tegula
