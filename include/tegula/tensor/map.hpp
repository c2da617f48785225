#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tegula/layout/algebra.hpp"
#include "tegula/macros.hpp"
#include "tegula/tensor/coordinates.hpp"

/// Maps: from a tensor's modes to the coordinates of its space, known at compile time.
///
/// A map is a layout of coordinates that is written as a type. Types are the cheaper template
/// arguments, they print in a few words, and device code may use their numbers (nvcc lets it name
/// no member of a constexpr object). Equal maps are one type, however they came about: MapOf brings
/// every layout to one form.
namespace tegula {

/// A leaf of a map: `Extent` steps of `Step` units each along axis `Axis` of the space.
template <int Axis, int Extent, int Step> struct Along {};

/// A mode of a map: its leaves, the first one fastest. Its index runs over all of them; the last
/// leaf is unbounded, as in a layout.
template <class... Leaves> struct Mode {};

/// From one index for each mode to a coordinate. `layout` is the same map as a layout
/// of coordinates.
template <class... Modes> struct Map;

/// The extent of a mode whose true extent is known at run time only: of a tensor in global memory,
/// and of the tiles along it.
inline constexpr int kUnbounded = 1 << 20;

namespace detail {

template <class Mode> struct ModeTraits;
template <int... Axis, int... Extent, int... Step>
struct ModeTraits<Mode<Along<Axis, Extent, Step>...>> {
  static constexpr int size = (1 * ... * Extent);
  static constexpr Layout make() {
    Layout result;
    (result.append_leaf(Extent, Stride{Step, Axis}), ...);
    if (result.count == 0) result.append_leaf(1, {0});
    if (result.count > 1) wrap(result);
    return result;
  }
};

}  // namespace detail

template <class... Modes> struct Map {
  static constexpr int rank = sizeof...(Modes);
  static constexpr Layout make() {
    Layout result;
    (detail::append_mode(result, detail::ModeTraits<Modes>::make()), ...);
    detail::wrap(result);
    return result;
  }
  static constexpr Layout layout = make();
};

namespace detail {

/// Every mode flat, without leaves of extent 1, and with as few leaves as can be.
constexpr Layout canonical_map(Layout const& map) {
  Layout result;
  int const rank = map.rank();
  for (int mode = 0; mode < rank; ++mode) {
    LeafRange const range = mode_of(map, mode);
    int const first = result.count;
    for (int i = range.first; i < range.last; ++i) {
      if (map.extents[i] == 1) continue;
      int const last = result.count - 1;
      bool const continues = last >= first && result.axes[last] == map.axes[i] &&
                             result.strides[last] * result.extents[last] == map.strides[i];
      if (continues) {
        result.extents[last] *= map.extents[i];
      } else {
        result.append_leaf(map.extents[i], map.stride(i));
      }
    }
    if (result.count == first) result.append_leaf(1, {0});
    wrap(result, first);
  }
  wrap(result);
  return result;
}

constexpr int as_int(std::int64_t value) {
  if (value > INT32_MAX || value < INT32_MIN)
    refuse("Map", "an extent or a step exceeds 32 bits", value);
  return static_cast<int>(value);
}

template <class Source> struct Canonical {
  static constexpr Layout value = canonical_map(Source::value);
};

template <class C, int M> struct LeavesOfMode {
  static constexpr int first = mode_of(C::value, M).first;
  static constexpr int last = mode_of(C::value, M).last;
  static constexpr int count = last == first + 1 && C::value.extents[first] == 1 ? 0 : last - first;
};
template <class C, int M, class Leaves = typename CountTo<LeavesOfMode<C, M>::count>::Type>
struct ModeFrom;
template <class C, int M, int... I> struct ModeFrom<C, M, NumberList<I...>> {
  static constexpr int first = LeavesOfMode<C, M>::first;
  using Type =
      Mode<Along<C::value.axes[first + I] == 0 ? 0 : C::value.axes[first + I] - 1,
                 as_int(C::value.extents[first + I]), as_int(C::value.strides[first + I])>...>;
};
template <class C> struct RankOfLayout { static constexpr int value = C::value.rank(); };
template <class C, class Modes = typename CountTo<RankOfLayout<C>::value>::Type> struct MapFrom;
template <class C, int... M> struct MapFrom<C, NumberList<M...>> {
  using Type = Map<typename ModeFrom<C, M>::Type...>;
};

template <int I, class M> struct ModeAt;
template <int I, class First, class... Rest>
struct ModeAt<I, Map<First, Rest...>> : ModeAt<I - 1, Map<Rest...>> {};
template <class First, class... Rest> struct ModeAt<0, Map<First, Rest...>> { using Type = First; };

template <class... Maps> struct Concatenated;
template <> struct Concatenated<> { using Type = Map<>; };
template <class... A> struct Concatenated<Map<A...>> { using Type = Map<A...>; };
template <class... A, class... B, class... Rest>
struct Concatenated<Map<A...>, Map<B...>, Rest...> : Concatenated<Map<A..., B...>, Rest...> {};

template <int First, int Last, class M, class Numbers = typename CountTo<Last - First>::Type>
struct Taken;
template <int First, int Last, class M, int... I> struct Taken<First, Last, M, NumberList<I...>> {
  using Type = Map<typename ModeAt<First + I, M>::Type...>;
};

template <class... Modes> struct Grouped;
template <class... Leaves> struct Grouped<Mode<Leaves...>> { using Type = Mode<Leaves...>; };
template <class... A, class... B, class... Rest>
struct Grouped<Mode<A...>, Mode<B...>, Rest...> : Grouped<Mode<A..., B...>, Rest...> {};
template <class M> struct GroupedMap;
template <class... Modes> struct GroupedMap<Map<Modes...>> {
  struct Source {
    static constexpr Layout value = make_layout(Map<typename Grouped<Modes...>::Type>::layout[0]);
  };
};

template <class M> struct Flattened;
template <class... Modes>
struct Flattened<Map<Modes...>> : Concatenated<typename Flattened<Modes>::Type...> {};
template <> struct Flattened<Mode<>> { using Type = Map<Mode<>>; };
template <class... Leaves> struct Flattened<Mode<Leaves...>> { using Type = Map<Mode<Leaves>...>; };

}  // namespace detail

/// The map of a layout of coordinates, given as a type with the layout as its static member
/// `value`. A bare leaf is a map of one mode.
template <class Source> using MapOf = typename detail::MapFrom<detail::Canonical<Source>>::Type;

/// Mode I of a map; modes [First, Last); the modes of several maps in a row.
template <int I, class M> using mode_at = typename detail::ModeAt<I, M>::Type;
template <int First, int Last, class M> using take_t = typename detail::Taken<First, Last, M>::Type;
template <class... Maps> using concat_t = typename detail::Concatenated<Maps...>::Type;

/// How many indices a mode has, or a map in all.
template <class Mode> inline constexpr int mode_size = detail::ModeTraits<Mode>::size;
template <class M> inline constexpr int map_size = 1;
template <class... Modes>
inline constexpr int map_size<Map<Modes...>> =
    static_cast<int>((std::int64_t{1} * ... * mode_size<Modes>));  // of unbounded modes: no size

namespace detail {

template <int Axis> TEGULA_HOST_DEVICE constexpr int walk(unsigned, Mode<>) { return 0; }
template <int Axis, int A, int Extent, int Step, class... Rest>
TEGULA_HOST_DEVICE constexpr int walk(unsigned index, Mode<Along<A, Extent, Step>, Rest...>) {
  if constexpr (sizeof...(Rest) == 0) {
    return A == Axis ? static_cast<int>(index) * Step : 0;
  } else if constexpr (A == Axis) {
    return static_cast<int>(index % Extent) * Step + walk<Axis>(index / Extent, Mode<Rest...>{});
  } else {
    return walk<Axis>(index / Extent, Mode<Rest...>{});
  }
}

}  // namespace detail

/// Component `Axis` of the coordinate at an index of a mode. Precondition: 0 <= index, and within
/// the mode unless its last leaf is meant to be unbounded. In 32-bit arithmetic, which folds where
/// the index is known.
template <int Axis, class... Leaves>
TEGULA_HOST_DEVICE constexpr int coordinate(Mode<Leaves...> mode, int index) {
  return detail::walk<Axis>(static_cast<unsigned>(index), mode);
}
/// Of a map: at one index for each mode, ...
template <int Axis, class... Modes, class... I>
requires(sizeof...(Modes) == sizeof...(I)) TEGULA_HOST_DEVICE
    constexpr int coordinate(Map<Modes...>, I... index) {
  return (0 + ... + coordinate<Axis>(Modes{}, static_cast<int>(index)));
}
/// ... or at one flat index over all modes, the first one fastest.
template <int Axis, class... Modes>
requires(sizeof...(Modes) > 1) TEGULA_HOST_DEVICE
    constexpr int coordinate(Map<Modes...>, int index) {
  return coordinate<Axis>(typename detail::Grouped<Modes...>::Type{}, index);
}

/// The map with all of its modes put into one (CuTe: group_modes of all), or with each leaf as
/// a mode.
template <class M> using group_t = MapOf<typename detail::GroupedMap<M>::Source>;
template <class M> using flatten_t = typename detail::Flattened<M>::Type;

namespace detail {

/// Where `inner`, from indices to coordinates in the modes of `outer`, leads in `outer`'s space.
constexpr Layout compose_maps(Layout const& outer, Layout const& inner) {
  bool identity = true;  // each mode one axis of its own, in steps of 1: nothing changes
  for (int mode = 0; mode < outer.rank(); ++mode) {
    Layout const leaf = outer[mode];
    identity = identity && leaf.count == 1 && leaf.axes[0] == mode + 1 && leaf.strides[0] == 1;
  }
  return identity ? inner : composition(outer, inner);
}

template <class Outer, class Inner> struct Composed {
  struct Source {
    static constexpr Layout value = compose_maps(Outer::layout, Inner::layout);
  };
  using Type = MapOf<Source>;
};

}  // namespace detail

/// The map from Inner's modes through Outer: Inner's coordinates are indices into Outer's modes.
/// Refused where they carry from one leaf of Outer into another, as composition is.
template <class Outer, class Inner> using compose_t = typename detail::Composed<Outer, Inner>::Type;

/// The identity over a box: mode i runs along axis i. (CuTe: make_identity_layout.)
namespace detail {
template <class Axes, int... Extents> struct IdentityMap;
template <int... Axis, int... Extents> struct IdentityMap<NumberList<Axis...>, Extents...> {
  using Type = Map<std::conditional_t<Extents == 1, Mode<>, Mode<Along<Axis, Extents, 1>>>...>;
};
}  // namespace detail
template <int... Extents>
using identity_map =
    typename detail::IdentityMap<typename detail::CountTo<sizeof...(Extents)>::Type,
                                 Extents...>::Type;

}  // namespace tegula
