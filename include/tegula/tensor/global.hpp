#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/global.hpp"
#include "tegula/tensor/held.hpp"
#include "tegula/tensor/tensor.hpp"
#if !TEGULA_GPU
#include <string>

#include "tegula/sim/hooks.hpp"
#endif

/// Tensors in global memory, of any rank.
namespace tegula {

/// How one axis of a tensor in global memory is laid out.
struct Unit {};      ///< elements are neighbours
struct Strided {};   ///< elements are a run-time stride apart
struct Gathered {};  ///< element i is row table[i]; rows are a run-time stride apart
/// Element i is row i % Rows of page table[i / Rows]: rows are a run-time stride apart, and
/// pages another.
template <int Rows> struct Paged { static_assert(Rows > 0, "a page has at least one row"); };
/// The axes of a tensor, in the order of its coordinates. At most one is indexed (Gathered
/// or Paged).
template <class... Kinds> struct Axes {};

/// Whether accesses to a tensor may fall outside of it: then those that do are left out (copies
/// write zeros where they would have read). An edge may cut a copy's vectors: of those only the
/// elements inside are moved.
enum class Clip : std::uint8_t {
  none,         ///< none does (whole)
  vectors,      ///< some do, and a copy's vectors lie inside or outside as a whole (whole_vectors)
  edges,        ///< some do, beyond the end of the tensor
  all_vectors,  ///< as `vectors`, and some lie before the tensor's beginning
  all_edges     ///< as `edges`, and some lie before the tensor's beginning (all_edges)
};

namespace detail {

/// Whether coordinates before a tensor's beginning are left out, too; and whether its end may cut a
/// vector.
template <Clip C>
inline constexpr bool clips_before = C == Clip::all_vectors || C == Clip::all_edges;
template <Clip C> inline constexpr bool end_may_cut = C == Clip::edges || C == Clip::all_edges;

template <class Kind> inline constexpr bool is_indexed = false;
template <> inline constexpr bool is_indexed<Gathered> = true;
template <int Rows> inline constexpr bool is_indexed<Paged<Rows>> = true;

template <int I, class A> struct AxisAt;
template <int I, class First, class... Rest>
struct AxisAt<I, Axes<First, Rest...>> : AxisAt<I - 1, Axes<Rest...>> {};
template <class First, class... Rest> struct AxisAt<0, Axes<First, Rest...>> {
  using Type = First;
};

template <class A> struct AxesTraits;
template <class... Kinds> struct AxesTraits<Axes<Kinds...>> {
  static constexpr int rank = sizeof...(Kinds);
  static constexpr int indexed = (0 + ... + (is_indexed<Kinds> ? 1 : 0));
  static_assert(indexed <= 1, "at most one axis of a tensor is indexed by a table");
  static_assert((0 + ... + (std::is_same_v<Kinds, Unit> ? 1 : 0)) <= 1,
                "at most one axis of a tensor is Unit: along the others elements are a stride "
                "apart (Strided)");
  /// The axis whose elements are neighbours, or -1.
  static constexpr int make_unit() {
    int axis = 0, found = -1;
    ((found = std::is_same_v<Kinds, Unit> ? axis : found, ++axis), ...);
    return found;
  }
  static constexpr int unit = make_unit();
};

/// Where the rows of an indexed axis are.
struct RowTable {
  std::int32_t const* entries = nullptr;
  std::int64_t page_stride = 0;
};
struct NoTable {};

#if !TEGULA_GPU
/// An edge of a tensor lies where the kernel says that none does, after `inside` of `count`
/// neighbours: ends the launch on the simulated machine with that finding.
/// Of `count` elements from one on, `inside` lie in the tensor.
[[noreturn, gnu::noinline]] inline void cut_by_edge(char const* reason, int count, int inside,
                                                    char const* remedy, SourceLocation where) {
  sim::misuse(std::string("copy: ") + reason + ": " + std::to_string(inside) + " of " +
                  std::to_string(count) + " elements lie in the tensor; " + remedy,
              where);
}
#endif

/// A tensor that a problem does not have, as C where beta is 0, has no place: on the host null
/// stays null, to which C++ adds nothing.
template <class T> TEGULA_DEVICE T* advanced(T* from, std::int64_t by) {
#if TEGULA_GPU
  return from + by;
#else
  return from == nullptr ? from : from + by;
#endif
}

}  // namespace detail

/// Global memory: `A` (an Axes<...>) says how each axis lies, C whether accesses may fall outside.
///
/// The base is a coordinate, not a pointer: the tensors of one partition then share what they are
/// made of, and a pointer lives only where it is used (base()).
template <class T, class A, Clip C = Clip::edges> struct Global {
  using Element = T;
  using Table =
      std::conditional_t<detail::AxesTraits<A>::indexed == 1, detail::RowTable, detail::NoTable>;
  static constexpr int rank = detail::AxesTraits<A>::rank;
  static constexpr int unit = detail::AxesTraits<A>::unit;
  static constexpr bool indexed = detail::AxesTraits<A>::indexed == 1;
  static constexpr Clip clip = C;

  T* data;
  std::int64_t stride[rank];  ///< in elements; not read along a unit axis
  int extent[rank];
  int origin[rank];
  [[no_unique_address]] Table table;

  template <class M> TEGULA_DEVICE Global moved(int index) const {
    Global result = *this;
    [&]<int... Axis>(detail::NumberList<Axis...>) {
      ((result.origin[Axis] += coordinate<Axis>(M{}, index)), ...);
    }
    (typename detail::CountTo<rank>::Type{});
    return result;
  }
  template <class M> TEGULA_DEVICE Global begin_at(int thread, SourceLocation) const {
    return moved<mode_at<0, M>>(thread);
  }

  /// The base as a pointer, and how many elements lie from it to the end along each axis.
  struct Base {
    T* data;
    std::int64_t stride[rank];
    int left[rank];
    int origin[rank];
    [[no_unique_address]] Table table;

    /// Of an access, which nothing has left out.
    template <class M, class... I> TEGULA_DEVICE T* at(SourceLocation where, I... i) const {
#if !TEGULA_GPU
      if constexpr (C == Clip::vectors || C == Clip::edges) {
        if (before<M>(i...)) [[unlikely]]
          detail::before_tensor(place<M>(i...), where);
      }
#endif
      return address<M>(where, i...);
    }
    template <class M, class... I> TEGULA_DEVICE T* address(SourceLocation where, I... i) const {
      T* result = data;
      [&]<int... Axis>(detail::NumberList<Axis...>) {
        ((result += offset<Axis>(coordinate<Axis>(M{}, i...), where)), ...);
      }
      (typename detail::CountTo<rank>::Type{});
      return result;
    }
    /// Whether the element lies in the tensor. Coordinates before its beginning do not occur,
    /// unless it is clipped there.
    template <class M, class... I> TEGULA_DEVICE bool inside(I... i) const {
      return [&]<int... Axis>(detail::NumberList<Axis...>) {
        return (true && ... && within<Axis>(coordinate<Axis>(M{}, i...)));
      }
      (typename detail::CountTo<rank>::Type{});
    }
#if !TEGULA_GPU
    /// Where the element lies in the whole tensor; whether that is before its beginning.
    template <class M, class... I> Coordinate<rank> place(I... i) const {
      return [&]<int... Axis>(detail::NumberList<Axis...>) {
        return Coordinate<rank>{{(origin[Axis] + coordinate<Axis>(M{}, i...))...}};
      }
      (typename detail::CountTo<rank>::Type{});
    }
    template <class M, class... I> bool before(I... i) const {
      bool some = false;  // maps lead onwards
      for (int axis = 0; axis < rank; ++axis) some = some || origin[axis] < 0;
      if (!some && (true && ... && (static_cast<int>(i) >= 0))) [[likely]]
        return false;
      Coordinate<rank> const at = place<M>(i...);
      for (int axis = 0; axis < rank; ++axis) {
        if (at[axis] < 0) return true;
      }
      return false;
    }
    /// Reports an element that is named and is none of the tensor's.
    template <class M, class... I> void hold(SourceLocation where, I... i) const {
      detail::hold_indices<M>(where, i...);
      bool const outside = before<M>(i...) || [&]<int... Axis>(detail::NumberList<Axis...>) {
        return (false || ... || (coordinate<Axis>(M{}, i...) >= left[Axis]));
      }
      (typename detail::CountTo<rank>::Type{});
      if (!outside) [[likely]]
        return;
      Coordinate<rank> extent{};
      for (int axis = 0; axis < rank; ++axis) extent.at[axis] = left[axis] + origin[axis];
      detail::outside_tensor("the tensor's extents", place<M>(i...), extent, where);
    }
#endif
    /// How many of a vector's elements, neighbours along the unit axis from there on, lie in the
    /// tensor. A comparison more than inside() only where an edge may cut the vector.
    template <class M, int Count, class... I>
    TEGULA_DEVICE int count_inside([[maybe_unused]] SourceLocation where, I... i) const {
      if (C == Clip::none) return Count;
      bool const begins = inside<M>(i...);
      if constexpr (Count > 1) {
#if !TEGULA_GPU
        if constexpr (detail::clips_before<C>) cut_at_beginning<M, Count>(where, i...);
#endif
        if constexpr (detail::end_may_cut<C>) {
          int const rest = left[unit] - coordinate<unit>(M{}, i...);
          return !begins ? 0 : rest < Count ? rest : Count;
        }
#if !TEGULA_GPU
        if (begins && left[unit] - coordinate<unit>(M{}, i...) < Count) [[unlikely]]
          detail::cut_by_edge("the edge of a tensor of whole vectors (whole_vectors) cuts a vector",
                              Count, left[unit] - coordinate<unit>(M{}, i...),
                              "without whole_vectors the elements inside are moved", where);
#endif
      }
      return begins ? Count : 0;
    }

   private:
    template <int Axis> TEGULA_DEVICE bool within(int at) const {
      if constexpr (detail::clips_before<C>) {
        return at >= -origin[Axis] && at < left[Axis];
      } else {
        return at < left[Axis];
      }
    }
#if !TEGULA_GPU
    template <class M, int Count, class... I>
    void cut_at_beginning(SourceLocation where, I... i) const {
      Coordinate<rank> const at = place<M>(i...);
      if (at[unit] >= 0 || at[unit] + Count <= 0) [[likely]]
        return;
      for (int axis = 0; axis < rank; ++axis) {
        if (axis != unit && (at[axis] < 0 || at[axis] >= left[axis] + origin[axis])) return;
      }
      detail::cut_by_edge("the beginning of a tensor cuts a vector", Count, at[unit] + Count,
                          "a vector begins at a multiple of its length", where);
    }
#endif
    template <int Axis> TEGULA_DEVICE std::int64_t offset(int at, SourceLocation where) const {
      using Kind = typename detail::AxisAt<Axis, A>::Type;
      if constexpr (std::is_same_v<Kind, Unit>) {
        return at;
      } else if constexpr (detail::is_indexed<Kind>) {
        return row(Kind{}, origin[Axis] + at, stride[Axis], where);
      } else {
        return at * stride[Axis];
      }
    }
    TEGULA_DEVICE std::int64_t row(Gathered, int i, std::int64_t apart,
                                   SourceLocation where) const {
      return ld_global_nc<std::int32_t>(table.entries + i, where) * apart;
    }
    template <int Rows>
    TEGULA_DEVICE std::int64_t row(Paged<Rows>, int i, std::int64_t apart,
                                   SourceLocation where) const {
      auto const page =
          ld_global_nc<std::int32_t>(table.entries + static_cast<unsigned>(i) / Rows, where);
      return page * table.page_stride + static_cast<int>(static_cast<unsigned>(i) % Rows) * apart;
    }
  };
  TEGULA_DEVICE Base base() const {
    Base result;
    result.table = table;
    T* begin = data;
    [&]<int... Axis>(detail::NumberList<Axis...>) {
      ((result.stride[Axis] = stride[Axis], result.left[Axis] = extent[Axis] - origin[Axis],
        result.origin[Axis] = origin[Axis], begin = detail::advanced(begin, affine<Axis>())),
       ...);
    }
    (typename detail::CountTo<rank>::Type{});
#if TEGULA_GPU
    // Opaque, so that the compiler adds each step to the pointer and not to every term of its sum.
    if constexpr (C != Clip::none) asm("" : "+l"(begin));
#endif
    result.data = begin;
    return result;
  }

  template <class M, class... I> TEGULA_DEVICE T* at(SourceLocation where, I... i) const {
    return base().template address<M>(where, i...);
  }
  template <class M, class... I> TEGULA_DEVICE auto element(SourceLocation where, I... i) const {
#if !TEGULA_GPU
    base().template hold<M>(where, i...);
#endif
    return ElementReference<Global, T*>{at<M>(where, i...), where};
  }
  TEGULA_DEVICE static std::remove_const_t<T> load(T const* place, SourceLocation where) {
    return ld_global<std::remove_const_t<T>>(place, where);
  }
  TEGULA_DEVICE static void store(T* place, T const& value, SourceLocation where) {
    st_global(place, value, where);
  }

 private:
  template <int Axis> TEGULA_DEVICE std::int64_t affine() const {
    using Kind = typename detail::AxisAt<Axis, A>::Type;
    if constexpr (std::is_same_v<Kind, Unit>) {
      return origin[Axis];
    } else if constexpr (detail::is_indexed<Kind>) {
      return 0;
    } else {
      return origin[Axis] * stride[Axis];
    }
  }
};

/// Global memory from a pointer that has been made: for a tensor whose elements are named many
/// times, at steps that are known only while the kernel runs. (A Global makes its pointer at
/// each use.)
template <class Space> struct Anchored {
  using Element = typename Space::Element;
  typename Space::Base base;

  template <class M, class... I> TEGULA_DEVICE Element* at(SourceLocation where, I... i) const {
    return base.template address<M>(where, i...);
  }
  template <class M, class... I> TEGULA_DEVICE auto element(SourceLocation where, I... i) const {
#if !TEGULA_GPU
    base.template hold<M>(where, i...);
#endif
    return ElementReference<Space, Element*>{at<M>(where, i...), where};
  }
};
/// The same tensor, its base a pointer from here on. It is indexed, not sliced.
template <class T, class A, Clip C, class M>
TEGULA_DEVICE auto anchored(Tensor<Global<T, A, C>, M> const& tensor) {
  return Tensor<Anchored<Global<T, A, C>>, M>{{tensor.space.base()}};
}

namespace detail {
template <int Rank, int Unit, class Axes = typename CountTo<Rank>::Type> struct OneUnit;
template <int Rank, int UnitAxis, int... Axis> struct OneUnit<Rank, UnitAxis, NumberList<Axis...>> {
  using Type = Axes<std::conditional_t<Axis == UnitAxis, Unit, Strided>...>;
};
template <class Axes> struct UnboundedMap;
template <int... Axis> struct UnboundedMap<NumberList<Axis...>> {
  using Type = Map<Mode<Along<Axis, kUnbounded, 1>>...>;
};
}  // namespace detail

/// The extents of a tensor, or its strides in elements, one for each axis.
template <class Integer, int Rank> struct PerAxis { Integer value[Rank]; };
template <class... I> TEGULA_DEVICE PerAxis<int, sizeof...(I)> extents(I... i) {
  return {{static_cast<int>(i)...}};
}
template <class... I> TEGULA_DEVICE PerAxis<std::int64_t, sizeof...(I)> strides(I... i) {
  return {{static_cast<std::int64_t>(i)...}};
}

/// A tensor in global memory whose axes lie as A says, one mode for each. (CuTe:
/// make_tensor(make_gmem_ptr(p), shape, stride).) Strides are in elements; those of unit axes are
/// not read. For an indexed axis: its table, an entry for each element (Gathered) or page (Paged),
/// and how many elements lie from page to page.
template <class A, class T, int Rank>
TEGULA_DEVICE auto global_tensor(T* data, PerAxis<int, Rank> const& extents,
                                 PerAxis<std::int64_t, Rank> const& strides,
                                 std::int32_t const* table = nullptr,
                                 std::int64_t page_stride = 0) {
  static_assert(Rank == detail::AxesTraits<A>::rank,
                "global_tensor: one extent and one stride for each axis");
  Global<T, A> space;
  space.data = data;
  for (int axis = 0; axis < Rank; ++axis) {
    space.stride[axis] = strides.value[axis];
    space.extent[axis] = extents.value[axis];
    space.origin[axis] = 0;
  }
  if constexpr (detail::AxesTraits<A>::indexed == 1) space.table = {table, page_stride};
  using M = typename detail::UnboundedMap<typename detail::CountTo<Rank>::Type>::Type;
  return Tensor<Global<T, A>, M>{space};
}

/// A matrix (rows, columns) whose axis UnitAxis is contiguous; along the other, elements are
/// `stride` apart.
template <int UnitAxis, class T>
TEGULA_DEVICE auto matrix(T* data, std::int64_t stride, int rows, int columns) {
  static_assert(UnitAxis == 0 || UnitAxis == 1, "matrix: the contiguous axis is 0 or 1");
  return global_tensor<typename detail::OneUnit<2, UnitAxis>::Type>(data, extents(rows, columns),
                                                                    strides(stride, stride));
}

namespace detail {
/// The same tensor, clipped in another way.
template <Clip To, class T, class A, Clip C, class M>
TEGULA_DEVICE auto clipped(Tensor<Global<T, A, C>, M> const& tensor) {
  auto const& s = tensor.space;
  Global<T, A, To> space;
  space.data = s.data;
  for (int axis = 0; axis < Global<T, A>::rank; ++axis) {
    space.stride[axis] = s.stride[axis];
    space.extent[axis] = s.extent[axis];
    space.origin[axis] = s.origin[axis];
  }
  space.table = s.table;
  return Tensor<Global<T, A, To>, M>{space};
}
}  // namespace detail

/// The same tensor, of which no access falls outside: nothing is compared.
template <class T, class A, Clip C, class M>
TEGULA_DEVICE auto whole(Tensor<Global<T, A, C>, M> const& tensor) {
  return detail::clipped<Clip::none>(tensor);
}

/// The same tensor, of which each vector of a copy lies inside or outside as a whole: its first
/// element is compared, and none of the others. So the extent along the unit axis, from where the
/// vectors begin, must be a multiple of the vector; a vector that the edge cuts ends the launch on
/// the simulated machine, and on a GPU is moved as a whole.
template <class T, class A, Clip C, class M>
TEGULA_DEVICE auto whole_vectors(Tensor<Global<T, A, C>, M> const& tensor) {
  constexpr Clip vectors = detail::clips_before<C> ? Clip::all_vectors : Clip::vectors;
  return detail::clipped < C == Clip::none ? Clip::none : vectors > (tensor);
}

/// The same tensor, clipped before its beginning as beyond its end, on every axis: for halos,
/// all_edges(t) from domain_offset(t, -1, -8) on. Such coordinates of another tensor are not left
/// out; on the simulated machine they are findings. Costs a comparison more for each axis and
/// vector. Vectors begin at multiples of their length, so that no beginning cuts one; one that it
/// cuts ends the launch on the simulated machine. (Of whole(t) too: all_edges is what it is then.)
template <class T, class A, Clip C, class M>
TEGULA_DEVICE auto all_edges(Tensor<Global<T, A, C>, M> const& tensor) {
  constexpr bool vectors = C == Clip::vectors || C == Clip::all_vectors;
  return detail::clipped < vectors ? Clip::all_vectors : Clip::all_edges > (tensor);
}

}  // namespace tegula
