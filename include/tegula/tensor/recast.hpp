#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/tensor/global.hpp"
#include "tegula/tensor/shared.hpp"

/// The same memory as elements of another width. (CuTe: recast.)
namespace tegula {

namespace detail {

/// A map of elements of `from` bits as one of elements of `to` bits, whose neighbours lie
/// along `axis`.
constexpr Layout recast_map(Layout const& map, int axis, int from, int to) {
  Layout result = map;
  for (int i = 0; i < map.count; ++i) {
    if (map.axes[i] != axis + 1 || map.extents[i] == 1) continue;
    std::int64_t const extent = map.extents[i], step = map.strides[i];
    bool const unbounded = extent == kUnbounded;
    if (to <= from) {  // narrower elements: a run grows, larger steps do too
      int const more = from / to;
      if (step == 1) {
        result.extents[i] = unbounded ? extent : extent * more;
      } else {
        result.strides[i] = step * more;
      }
    } else {
      int const fewer = to / from;
      if (step == 1 && (unbounded || extent % fewer == 0)) {
        result.extents[i] = unbounded ? extent : extent / fewer;
      } else if (step % fewer == 0) {
        result.strides[i] = step / fewer;
      } else {
        refuse("recast", "a wider element would take in what is no neighbour", map, from, to);
      }
    }
  }
  return result;
}
template <class M, int Axis, int From, int To> struct RecastChecked {
  static constexpr bool value = recast_map(M::layout, Axis, From, To).count > 0;
};
template <class M, int Axis, int From, int To> struct RecastMap {
  struct Source {
    static constexpr Layout value = recast_map(M::layout, Axis, From, To);
  };
  using Type = MapOf<Source>;
};

#if !TEGULA_GPU
/// Reports what is no multiple of an element `more` times as wide, of `bytes` bytes.
template <int more, class Space>
void hold_recast(Space const& space, int bytes, SourceLocation where) {
  auto const whole = [&](std::string const& what, std::int64_t count) {
    if (count % more != 0) [[unlikely]]
      sim::misuse("recast to elements " + std::to_string(more) + " times as wide is given " + what +
                      std::to_string(count) + ", which is no multiple of " + std::to_string(more),
                  where);
  };
  constexpr int unit = Space::unit;
  whole("an extent along the unit axis of ", space.extent[unit]);
  whole("a tensor that begins at element ", space.origin[unit]);
  for (int axis = 0; axis < Space::rank; ++axis) {
    if (axis != unit && space.extent[axis] > 1)
      whole("a stride of axis " + std::to_string(axis) + " of ", space.stride[axis]);
  }
  if (auto const past =
          reinterpret_cast<std::uintptr_t>(space.data) % static_cast<std::uintptr_t>(bytes);
      past != 0) [[unlikely]]
    sim::misuse("recast to elements of " + std::to_string(bytes) +
                    " bytes is given a tensor that begins " + std::to_string(past) +
                    " bytes past a multiple of that",
                where);
}
#endif

/// A tile of T seen as one of U: its layout alone, for the addresses.
template <class Tile, class U> struct RecastTile {
  using Element = U;
  static constexpr SwizzledLayout layout =
      recast(Tile::layout, 8 * sizeof(typename Tile::Element), 8 * sizeof(U));
};

}  // namespace detail

/// A tensor in global memory as one of elements U along its unit axis. Refused where a wider
/// element would take in what is no neighbour. Preconditions for wider ones: the base, strides and
/// the extent along the unit axis are multiples of theirs; others are findings on the simulated
/// machine.
template <class U, class T, class A, Clip C, class M>
TEGULA_DEVICE auto recast(Tensor<Global<T, A, C>, M> const& t,
                          [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  using To = std::conditional_t<std::is_const_v<T>, U const, U>;
  constexpr int from = sizeof(T), to = sizeof(U), unit = Global<T, A, C>::unit;
  static_assert(unit >= 0, "recast: no axis of the tensor has neighbours");
  static_assert(detail::AxesTraits<A>::indexed == 0,
                "recast: a tensor with an indexed axis is not recast");
  // here: it prints sooner
  static_assert(detail::RecastChecked<M, unit, 8 * from, 8 * to>::value);
#if !TEGULA_GPU
  if constexpr (to > from) detail::hold_recast<to / from>(t.space, to, where);
#endif
  Global<To, A, C> space;
  space.data = reinterpret_cast<To*>(t.space.data);
  for (int axis = 0; axis < Global<T, A, C>::rank; ++axis) {
    bool const along = axis == unit;
    space.stride[axis] = t.space.stride[axis] * from / to;
    space.extent[axis] = along ? t.space.extent[axis] * from / to : t.space.extent[axis];
    space.origin[axis] = along ? t.space.origin[axis] * from / to : t.space.origin[axis];
  }
  return Tensor<Global<To, A, C>, typename detail::RecastMap<M, unit, 8 * from, 8 * to>::Type>{
      space};
}

/// A whole tile in shared memory as one of elements U along its contiguous axis.
template <class U, class T, auto L, class M>
TEGULA_DEVICE auto recast(Tensor<Shared<SharedTile<T, L>>, M> const& t,
                          SourceLocation where = SourceLocation::current()) {
  using Tile = SharedTile<T, L>;
  using To = detail::RecastTile<Tile, U>;
  static_assert(std::is_same_v<M, typename detail::WholeTile<Tile>::Type>,
                "recast: recast a tile before it is sliced");
  return Tensor<Shared<To>, typename detail::WholeTile<To>::Type>{
      Shared<To>(t.space.base_address(), where)};
}

}  // namespace tegula
