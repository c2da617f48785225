#pragma once

#include "tegula/macros.hpp"

#if !TEGULA_GPU
#include <cstdio>
#include <string>
#include <type_traits>

#include "tegula/layout/draw_text.hpp"
#include "tegula/layout/text.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/global.hpp"
#include "tegula/tensor/identity.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/tma.hpp"

/// Tensors as text, on the host: the space, the shape, the map, and for a tile the drawing that the
/// tool makes. Kernels that run on the simulated machine may call print(); on a GPU there is none.
namespace tegula {

namespace detail {

template <class T> std::string element_name() {
  using E = std::remove_const_t<T>;
  std::string name;
  if constexpr (requires { DTypeOf<E>::value; }) {
    name = to_string(DTypeOf<E>::value);
  } else {
    name = "elements of " + std::to_string(8 * sizeof(E)) + " bits";
  }
  return (std::is_const_v<T> ? "const " : "") + name;
}

/// A map as a layout prints, with ? for an extent that is known at run time only.
inline std::string map_text(Layout const& map) {
  std::string text = to_string(map);
  std::string const unbounded = std::to_string(kUnbounded);
  for (std::size_t at = text.find(unbounded); at != std::string::npos; at = text.find(unbounded)) {
    text.replace(at, unbounded.size(), "?");
  }
  return text;
}

template <int Rank> std::string tuple_text(int const (&values)[Rank]) {
  std::string text = "(";
  for (int i = 0; i < Rank; ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return text + ")";
}

template <class Kind> std::string axis_text(Kind) { return "strided"; }
inline std::string axis_text(Unit) { return "unit"; }
inline std::string axis_text(Gathered) { return "gathered"; }
template <int Rows> std::string axis_text(Paged<Rows>) {
  return "pages of " + std::to_string(Rows);
}
template <class... Kinds> std::string axes_text(Axes<Kinds...>) {
  std::string text;
  ((text += (text.empty() ? "" : ", ") + axis_text(Kinds{})), ...);
  return text;
}

template <class T, class A, Clip C> std::string space_text(Global<T, A, C> const& s) {
  return "global memory, " + element_name<T>() + ", axes (" + axes_text(A{}) + "), extents " +
         tuple_text(s.extent) + ", base at " + tuple_text(s.origin) +
         (C == Clip::none          ? ", whole"
          : C == Clip::vectors     ? ", clipped at whole vectors"
          : C == Clip::all_vectors ? ", clipped on all sides at whole vectors"
          : C == Clip::all_edges   ? ", clipped on all sides"
                                   : ", clipped");
}
template <class Tile, class Threads, CopyOp Op, int Moved>
std::string space_text(Shared<Tile, Threads, Op, Moved> const&) {
  return "shared memory, " + element_name<typename Tile::Element>() + ", tile " +
         to_string(Tile::layout) +
         (std::is_same_v<Threads, Mode<>>
              ? std::string()
              : ", a thread's part: threads " + map_text(ModeTraits<Threads>::make()));
}
template <class S> std::string space_text(Peer<S> const& s) {
  return "a peer's " + space_text(static_cast<S const&>(s));
}
template <class Tile> std::string space_text(Descriptors<Tile> const&) {
  return "matrix descriptors of tile " + to_string(Tile::layout);
}
template <int... Order> std::string space_text(Tma<Order...> const& s) {
  return "TMA, base at " + tuple_text(s.origin);
}
template <int Rank> std::string space_text(Coordinates<Rank> const& s) {
  return "coordinates from " + tuple_text(s.origin.at);
}

}  // namespace detail

/// "global memory, const bf16, axes (strided, unit), extents (100, 64), base at (0, 0), clipped:
/// (128,64):..."
template <class Space, class M> std::string to_string(Tensor<Space, M> const& tensor) {
  return detail::space_text(tensor.space) + ": " + detail::map_text(M::layout);
}
template <class T, class M> std::string to_string(Fragment<T, M> const&) {
  return "registers, " + detail::element_name<T>() + ", " +
         std::to_string(Fragment<T, M>::registers) + " of a thread: " + detail::map_text(M::layout);
}

/// Writes the tensor's text to standard output, and, of a whole tile in shared memory, where each
/// element lies in it (offsets in elements).
template <class Space, class M> void print(Tensor<Space, M> const& tensor) {
  std::string text = to_string(tensor) + "\n";
  if constexpr (requires { typename Space::Memory; }) {
    using Tile = typename Space::Memory;
    if constexpr (std::is_same_v<M, typename detail::WholeTile<Tile>::Type>)
      text += to_text(draw(Tile::layout));
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}
template <class T, class M> void print(Fragment<T, M> const& fragment) {
  std::string const text = to_string(fragment) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace tegula
#endif
