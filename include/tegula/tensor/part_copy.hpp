#pragma once

#include "tegula/tensor/register_copy.hpp"

/// copy(source, target) of a thread's parts of two tensors in memory.
namespace tegula {

namespace detail {

/// Spaces whose elements a thread reads and writes one by one: global memory, and shared memory.
template <class Space> inline constexpr bool holds_elements = false;
template <class T, class A, Clip C> inline constexpr bool holds_elements<Global<T, A, C>> = true;
template <class Tile, class Threads, int Moved>
inline constexpr bool holds_elements<Shared<Tile, Threads, CopyOp::universal, Moved>> = true;

/// Whether maps have modes of the same sizes, one by one.
template <class G, class H> inline constexpr bool are_congruent = false;
template <class... G, class... H>
requires(sizeof...(G) == sizeof...(H)) inline constexpr bool are_congruent<Map<G...>, Map<H...>> =
    (true && ... && (mode_size<G> == mode_size<H>));

}  // namespace detail

/// Between a thread's elements of two tensors in global or shared memory, through registers: all
/// are read before the first is written. The parts must have modes of the same sizes, as those of
/// one layout of threads have. What a tensor clips is read as zeros, and not written.
template <class From, class G, class To, class H>
requires(detail::holds_elements<From>&& detail::holds_elements<To>) TEGULA_DEVICE
    void copy(Tensor<From, G> const& source, Tensor<To, H> const& target,
              SourceLocation where = SourceLocation::current()) {
  static_assert(detail::are_congruent<G, H>,
                "copy: the parts have modes of different sizes: share both tensors out by one "
                "layout of threads");
  detail::check_copied_elements<typename From::Element, typename To::Element>();
  auto values = make_fragment_like(source);
  copy(source, values, where);
  copy(values, target, where);
}

}  // namespace tegula
