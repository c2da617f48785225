#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/register_arithmetic.hpp"
#include "tegula/tensor/tiled_mma.hpp"

/// Reductions across the threads that hold a tiled MMA's accumulators.
namespace tegula {

namespace detail {

/// Which bits of a thread's number move it along one axis of C's tile: among a warp's lanes, and
/// among its warps.
struct ThreadBits {
  int lanes = 0;
  int warps = 0;
};
constexpr ThreadBits bits_along(Layout const& threads, int count, int axis) {
  ThreadBits result;
  for (int bit = 1; bit < count; bit *= 2) {
    int rest = bit;
    bool along = false, across = false;
    for (int i = 0; i < threads.count; ++i) {
      int const extent = static_cast<int>(threads.extents[i]);
      if (rest % extent != 0 && threads.strides[i] != 0 && threads.axes[i] > 0)
        (threads.axes[i] == axis + 1 ? along : across) = true;
      rest /= extent;
    }
    if (along && across)
      refuse("reduce_lanes", "a bit of the lane moves along both axes of the accumulators", threads,
             axis, bit);
    if (along) (bit < 32 ? result.lanes : result.warps) |= bit;
  }
  return result;
}
template <TiledMmaSpec S, int Axis> struct ReducedBits {
  static constexpr ThreadBits value = bits_along(
      OperandRegisters<S, 'c', MmaTilingOf<S>::k>::value.threads, MmaTilingOf<S>::threads, Axis);
  static constexpr int lanes = value.lanes, warps = value.warps;
};

/// shfl.sync.bfly of a value of 1 to 8 bytes.
template <class T>
TEGULA_DEVICE T value_of_lane(T const& value, int lane_mask, SourceLocation where) {
  if constexpr (sizeof(T) == 8) {
    auto words = bits_as<RegisterBits<8>>(value);
    words.word[0] = warp::shfl_xor(words.word[0], lane_mask, warp::kAllLanes, where);
    words.word[1] = warp::shfl_xor(words.word[1], lane_mask, warp::kAllLanes, where);
    return bits_as<T>(words);
  } else {
    using Bits = typename BitsOfSize<sizeof(T)>::Type;
    return bits_as<T>(static_cast<Bits>(warp::shfl_xor(
        static_cast<std::uint32_t>(bits_as<Bits>(value)), lane_mask, warp::kAllLanes, where)));
  }
}

}  // namespace detail

/// Whether the threads of a tiled MMA that share a row of C (Axis 1), or a column (Axis 0), are of
/// one warp.
template <class Mma, int Axis>
inline constexpr bool shared_within_warp = detail::ReducedBits<Mma::spec, Axis>::warps == 0;

/// After values = reduce<Axis>(accumulators, combine): combines each with those of the lanes of the
/// warp that hold others of the same row (Axis 1: the quad, of mma.sync and wgmma) or column (Axis
/// 0), by shuffles; each of them has the result. All lanes of the warp execute it. Where groups
/// along the axis share a row (shared_within_warp is false), it is the warp's share of it: what the
/// warps have is combined in shared memory. (FlashAttention: quad_allreduce.)
template <int Axis, TiledMmaSpec S, Registers R, class Combine>
TEGULA_DEVICE void reduce_lanes(TiledMma<S> const&, R&& values, Combine combine,
                                SourceLocation where = SourceLocation::current()) {
  static_assert(Axis == 0 || Axis == 1,
                "reduce_lanes: accumulators have rows (axis 0) and columns (axis 1)");
  using Bits = detail::ReducedBits<S, Axis>;
  using T = typename std::remove_cvref_t<R>::Element;
  using W = detail::Operand<T, Combine, float, float>;
  static_assert(detail::gives<W, Combine, W, W>,
                "reduce_lanes: combine(a, b) takes two values and returns one");
#pragma unroll
  for (int lane = 1; lane < 32; lane *= 2) {
    if ((Bits::lanes & lane) == 0) continue;
#pragma unroll
    for (int i = 0; i < std::remove_cvref_t<R>::size; ++i) {
      T const own = values.value(i, where);
      T const other = detail::value_of_lane(own, lane, where);
      values.set(i,
                 detail::as_number<T>(combine(detail::operand<W>(own), detail::operand<W>(other))),
                 where);
    }
  }
}

}  // namespace tegula
