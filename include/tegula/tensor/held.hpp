#pragma once

#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#include "tegula/tensor/index.hpp"
#include "tegula/tensor/map.hpp"
#if !TEGULA_GPU
#include <string>

#include "tegula/sim/hooks.hpp"
#endif

/// What tensors hold against their extents on the simulated machine, and say where that does not
/// hold. On a GPU nothing is left of it.
namespace tegula::detail {

#if !TEGULA_GPU

/// "(3, 70)".
template <int Rank> std::string text_of(Coordinate<Rank> const& at) {
  std::string text = "(";
  for (int axis = 0; axis < Rank; ++axis)
    text += (axis == 0 ? "" : ", ") + std::to_string(at[axis]);
  return text + ")";
}

/// Not inlined, as all that is said seldom: it would cost those who do not ask for it.
template <int Rank>
[[gnu::noinline]] void outside_tensor(char const* extents, Coordinate<Rank> const& at,
                                      Coordinate<Rank> const& extent, SourceLocation where) {
  sim::outside_of_tensor("element " + text_of(at) + " is named, which is outside of " + extents +
                             ", " + text_of(extent),
                         where);
}
template <int Rank>
[[gnu::noinline]] void before_tensor(Coordinate<Rank> const& at, SourceLocation where) {
  sim::outside_of_tensor("coordinate " + text_of(at) +
                             " lies before the beginning of a tensor that is clipped at its end "
                             "alone: all_edges(t) is clipped there, too",
                         where);
}
[[gnu::noinline]] inline void beyond_mode(int mode, int index, int extent, SourceLocation where) {
  sim::outside_of_tensor(
      "index " + std::to_string(index) +
          (mode < 0 ? std::string(" over all modes") : " of mode " + std::to_string(mode)) +
          " of a tensor is named, whose extent is " + std::to_string(extent),
      where);
}
[[gnu::noinline]] inline void beyond_threads(char const* of, int thread, int threads,
                                             SourceLocation where) {
  sim::misuse(std::string(of) + " is for threads 0 to " + std::to_string(threads - 1) +
                  ", and is given thread " + std::to_string(thread) +
                  ": a thread counts from 0 within those that share the work, as "
                  "thread_idx() % " +
                  std::to_string(threads) + " does within a group of them",
              where);
}

/// The extents of modes that have one, and kUnbounded; of all modes together.
template <class M> inline constexpr bool has_size = true;
template <class... Modes>
inline constexpr bool has_size<Map<Modes...>> = (true && ... && (mode_size<Modes> < kUnbounded));

/// Reports an index of a named element that is beyond its mode: of one index for each mode, or of
/// one for all.
template <class M, class... I> void hold_indices(SourceLocation where, I... i) {
  if constexpr (sizeof...(I) == M::rank) {
    [&]<int... Axis>(NumberList<Axis...>) {
      auto const hold = [&](int mode, int extent, int index) {
        if (extent < kUnbounded && (index < 0 || index >= extent)) [[unlikely]]
          beyond_mode(mode, index, extent, where);
      };
      (hold(Axis, mode_size<mode_at<Axis, M>>, static_cast<int>(i)), ...);
    }
    (typename CountTo<M::rank>::Type{});
  } else if constexpr (sizeof...(I) == 1 && has_size<M>) {
    int const index = (0 + ... + static_cast<int>(i));
    if (index < 0 || index >= map_size<M>) [[unlikely]]
      beyond_mode(-1, index, map_size<M>, where);
  }
}

#endif

/// Reports a thread beyond those that share a tensor, or before them.
template <int Threads>
TEGULA_DEVICE void hold_thread([[maybe_unused]] char const* of, [[maybe_unused]] int thread,
                               [[maybe_unused]] SourceLocation where) {
#if !TEGULA_GPU
  if (static_cast<unsigned>(thread) >= static_cast<unsigned>(Threads)) [[unlikely]]
    beyond_threads(of, thread, Threads, where);
#endif
}

}  // namespace tegula::detail
