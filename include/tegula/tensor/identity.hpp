#pragma once

#include "tegula/tensor/tensor.hpp"

/// Tensors of coordinates: what a predicate asks. (CuTe: make_identity_tensor.)
namespace tegula {

/// The coordinates themselves: an element is where it lies.
template <int Rank> struct Coordinates {
  using Element = Coordinate<Rank>;
  Coordinate<Rank> origin;

  template <class M> TEGULA_DEVICE Coordinates moved(int index) const {
    return {origin + from<Map<M>>(index)};
  }
  template <class M> TEGULA_DEVICE Coordinates begin_at(int thread, SourceLocation) const {
    return {origin + from<M>(thread)};
  }
  template <class M, class... I> TEGULA_DEVICE Coordinate<Rank> at(SourceLocation, I... i) const {
    return origin + from<M>(i...);
  }
  template <class M, class... I>
  TEGULA_DEVICE Coordinate<Rank> element(SourceLocation where, I... i) const {
    return at<M>(where, i...);
  }

 private:
  template <class M, class... I> TEGULA_DEVICE static Coordinate<Rank> from(I... i) {
    return [&]<int... Axis>(detail::NumberList<Axis...>) {
      return Coordinate<Rank>{{coordinate<Axis>(M{}, i...)...}};
    }
    (typename detail::CountTo<Rank>::Type{});
  }
};

/// The tensor of coordinates of a box: element (i, j, ...) is Coordinate{i, j, ...}.
template <int... Extents> TEGULA_DEVICE auto identity_tensor() {
  return Tensor<Coordinates<sizeof...(Extents)>, identity_map<Extents...>>{{{{(0 * Extents)...}}}};
}

/// The tensor of a tensor's own coordinates: where each element lies in its space. Of
/// global memory.
template <class Space, class M>
requires(requires(Space const& s) {
  s.origin[0];
  s.extent[0];
}) TEGULA_DEVICE auto coordinates_of(Tensor<Space, M> const& tensor) {
  Coordinates<Space::rank> space;
  for (int axis = 0; axis < Space::rank; ++axis) space.origin.at[axis] = tensor.space.origin[axis];
  return Tensor<Coordinates<Space::rank>, M>{space};
}

}  // namespace tegula
