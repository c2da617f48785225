#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/source_location.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Shuffles: a lane takes another lane's value. PTX ISA, shfl.sync. `mask` names the lanes that
/// take part; each of them executes the same shuffle with the same mask, and reads from one of
/// them. (Reading from another lane is found on the simulated machine.)
///
/// `Width` divides the warp into segments of 1, 2, 4, 8, 16 or 32 lanes, as CUDA's
/// __shfl_sync(mask, value, lane, width) does. shfl, shfl_up and shfl_down stay in a lane's own
/// segment; shfl_xor may also reach a segment of lower lanes. Where there is no such lane, a lane
/// gets its own value.
namespace tegula::warp {

inline constexpr std::uint32_t kAllLanes = 0xffffffffu;

/// A value that can be shuffled: one of at most 4 bytes by one instruction, one of 8 by two.
template <class T>
concept ShuffleValue = std::is_trivially_copyable_v<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

/// What a shuffle says besides the value: PTX's predicate.
template <class T> struct Shuffled {
  T value;
  bool in_range;  ///< whether the lane that it asked for was in reach; else the value is its own
};

namespace detail {

#if TEGULA_GPU
enum class ShuffleMode : std::uint8_t { idx, bfly, up, down };
#else
using sim::ShuffleMode;
#endif

/// PTX's operand c: which bits of a lane's number name its segment, in bits 8-12, and the lane of
/// the segment that a shuffle reaches at most (with .up at least), in bits 0-4.
template <ShuffleMode Mode, int Width>
inline constexpr std::uint32_t kClamp =
    static_cast<std::uint32_t>((32 - Width) << 8 | (Mode == ShuffleMode::up ? 0 : 31));

template <ShuffleMode Mode, int Width, bool Predicate>
TEGULA_DEVICE std::uint32_t shuffle_word(std::uint32_t v, int lane, std::uint32_t mask,
                                         [[maybe_unused]] bool* in_range,
                                         [[maybe_unused]] SourceLocation where) {
  static_assert(Width >= 1 && Width <= 32 && (Width & (Width - 1)) == 0,
                "a shuffle's width is 1, 2, 4, 8, 16 or 32 lanes");
#if TEGULA_GPU
  std::uint32_t r;
#define TEGULA_SHUFFLE(MODE)                                                \
  if constexpr (Predicate) {                                                \
    std::uint32_t p;                                                        \
    asm volatile("{ .reg .pred q; shfl.sync." MODE                          \
                 ".b32 %0|q, %2, %3, %4, %5; "                              \
                 "selp.u32 %1, 1, 0, q; }"                                  \
                 : "=r"(r), "=r"(p)                                         \
                 : "r"(v), "r"(lane), "n"(kClamp<Mode, Width>), "r"(mask)); \
    *in_range = p != 0;                                                     \
  } else {                                                                  \
    asm volatile("shfl.sync." MODE ".b32 %0, %1, %2, %3, %4;"               \
                 : "=r"(r)                                                  \
                 : "r"(v), "r"(lane), "n"(kClamp<Mode, Width>), "r"(mask)); \
  }
  if constexpr (Mode == ShuffleMode::idx) {
    TEGULA_SHUFFLE("idx")
  } else if constexpr (Mode == ShuffleMode::bfly) {
    TEGULA_SHUFFLE("bfly")
  } else if constexpr (Mode == ShuffleMode::up) {
    TEGULA_SHUFFLE("up")
  } else {
    TEGULA_SHUFFLE("down")
  }
#undef TEGULA_SHUFFLE
  return r;
#else
  return sim::shfl(Mode, v, lane, kClamp<Mode, Width>, mask, in_range, where);
#endif
}

template <ShuffleMode Mode, int Width, bool Predicate, class T>
TEGULA_DEVICE T shuffle(T value, int lane, std::uint32_t mask, bool* in_range,
                        SourceLocation where) {
  static_assert(ShuffleValue<T>,
                "a shuffle moves a trivially copyable value of 1, 2, 4 or 8 bytes");
  auto const word = [&](std::uint32_t w) {
    return shuffle_word<Mode, Width, Predicate>(w, lane, mask, in_range, where);
  };
  if constexpr (sizeof(T) == 8) {
    auto const bits = bits_as<RegisterBits<8>>(value);
    std::uint32_t const low = word(bits.word[0]);
    return bits_as<T>(RegisterBits<8>{{low, word(bits.word[1])}});
  } else if constexpr (sizeof(T) == 4) {
    return bits_as<T>(word(bits_as<std::uint32_t>(value)));
  } else if constexpr (sizeof(T) == 2) {
    return bits_as<T>(static_cast<std::uint16_t>(word(bits_as<std::uint16_t>(value))));
  } else {
    return bits_as<T>(static_cast<std::uint8_t>(word(bits_as<std::uint8_t>(value))));
  }
}

template <ShuffleMode Mode, int Width, class T>
TEGULA_DEVICE Shuffled<T> shuffle_in_range(T value, int lane, std::uint32_t mask,
                                           SourceLocation where) {
  bool in_range = false;
  T const taken = shuffle<Mode, Width, true>(value, lane, mask, &in_range, where);
  return {taken, in_range};
}

}  // namespace detail

/// The value of lane src_lane % Width of one's segment.
template <int Width = 32, class T>
TEGULA_DEVICE T shfl(T value, int src_lane, std::uint32_t mask = kAllLanes,
                     SourceLocation where = SourceLocation::current()) {
  return detail::shuffle<detail::ShuffleMode::idx, Width, false>(value, src_lane, mask, nullptr,
                                                                 where);
}

/// The value of lane (lane_id ^ lane_mask), or one's own where that lies beyond one's segment.
template <int Width = 32, class T>
TEGULA_DEVICE T shfl_xor(T value, int lane_mask, std::uint32_t mask = kAllLanes,
                         SourceLocation where = SourceLocation::current()) {
  return detail::shuffle<detail::ShuffleMode::bfly, Width, false>(value, lane_mask, mask, nullptr,
                                                                  where);
}

/// The value of lane (lane_id - delta), or one's own where that lies before one's segment.
template <int Width = 32, class T>
TEGULA_DEVICE T shfl_up(T value, int delta, std::uint32_t mask = kAllLanes,
                        SourceLocation where = SourceLocation::current()) {
  return detail::shuffle<detail::ShuffleMode::up, Width, false>(value, delta, mask, nullptr, where);
}

/// The value of lane (lane_id + delta), or one's own where that lies beyond one's segment.
template <int Width = 32, class T>
TEGULA_DEVICE T shfl_down(T value, int delta, std::uint32_t mask = kAllLanes,
                          SourceLocation where = SourceLocation::current()) {
  return detail::shuffle<detail::ShuffleMode::down, Width, false>(value, delta, mask, nullptr,
                                                                  where);
}

/// shfl_xor, and whether the lane was in reach. (That of shfl always is.)
template <int Width = 32, class T>
TEGULA_DEVICE Shuffled<T> shfl_xor_in_range(T value, int lane_mask, std::uint32_t mask = kAllLanes,
                                            SourceLocation where = SourceLocation::current()) {
  return detail::shuffle_in_range<detail::ShuffleMode::bfly, Width>(value, lane_mask, mask, where);
}

/// shfl_up, and whether there was such a lane.
template <int Width = 32, class T>
TEGULA_DEVICE Shuffled<T> shfl_up_in_range(T value, int delta, std::uint32_t mask = kAllLanes,
                                           SourceLocation where = SourceLocation::current()) {
  return detail::shuffle_in_range<detail::ShuffleMode::up, Width>(value, delta, mask, where);
}

/// shfl_down, and whether there was such a lane.
template <int Width = 32, class T>
TEGULA_DEVICE Shuffled<T> shfl_down_in_range(T value, int delta, std::uint32_t mask = kAllLanes,
                                             SourceLocation where = SourceLocation::current()) {
  return detail::shuffle_in_range<detail::ShuffleMode::down, Width>(value, delta, mask, where);
}

}  // namespace tegula::warp
