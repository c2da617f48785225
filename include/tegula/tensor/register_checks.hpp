#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/numeric/float8.hpp"
#include "tegula/tensor/map.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// What the simulated machine knows of a fragment's registers: whether somebody has written them,
/// and which there are. On a GPU none of it exists.
namespace tegula::detail {

#if !TEGULA_GPU

/// What a register of values of T holds before it is written: signalling NaNs of f32, f64 and bf16,
/// NaNs of f16 and fp8, which nothing computes and nobody stores. Arithmetic makes such a NaN quiet
/// and may change its sign; `changed` are those bits.
struct UnwrittenBits {
  std::uint64_t bits, changed;
};
template <class T>
inline constexpr UnwrittenBits unwritten_bits =
    std::is_same_v<T, double>  ? UnwrittenBits{0x7ff4a3c57fa37f96, 0x8008000000000000}
    : std::is_same_v<T, float> ? UnwrittenBits{0x7fa37f96, 0x80400000}
    : std::is_same_v<T, float_e4m3> || std::is_same_v<T, float_e5m2> ? UnwrittenBits{0xff7f7fff, 0}
                                                                     : UnwrittenBits{0x7fa37f96, 0};

template <class T, class Register> inline void set_unwritten(Register& place) {
  using Bits = std::conditional_t<sizeof(Register) == 8, std::uint64_t, std::uint32_t>;
  constexpr Bits bits = static_cast<Bits>(unwritten_bits<T>.bits);
  __builtin_memcpy(&place, &bits, sizeof(bits));  // no value, which a copy might make quiet
}
template <class T, class Register> inline bool is_unwritten(Register const& place) {
  using Bits = std::conditional_t<sizeof(Register) == 8, std::uint64_t, std::uint32_t>;
  constexpr Bits kept = static_cast<Bits>(~unwritten_bits<T>.changed);
  Bits bits;
  __builtin_memcpy(&bits, &place, sizeof(bits));
  return (bits & kept) == (static_cast<Bits>(unwritten_bits<T>.bits) & kept);
}

/// Says that value `value` of a fragment of the map M was read unwritten.
template <class M> [[gnu::noinline]] void report_unwritten(int value, SourceLocation where) {
  constexpr int axes = [] {
    int most = 0;
    for (int i = 0; i < M::layout.count; ++i)
      most = M::layout.axes[i] > most ? M::layout.axes[i] : most;
    return most;
  }();
  int steps[axes + 1] = {};
  [&]<int... Axis>(NumberList<Axis...>) { ((steps[Axis] = coordinate<Axis>(M{}, value)), ...); }
  (typename CountTo<axes>::Type{});
  sim::read_unwritten_register(value, steps, axes, where);
}

/// An index that its finding has already been made of.
inline constexpr int kReported = -1 - 0x7fffffff;

/// What stands for a register that the fragment does not have: ones, and what is written is lost.
template <class Register>
[[gnu::noinline]] inline Register& no_register(int value, int values, SourceLocation where) {
  if (value != kReported) sim::beyond_fragment(value, values, -1, where);
  thread_local Register nowhere;
  __builtin_memset(&nowhere, 0xff, sizeof(nowhere));
  return nowhere;
}

#endif

/// An index that is known at compile time, as a type has it (std::integral_constant).
template <class I>
concept StaticIndex = requires {
  std::integral_constant<int, std::remove_cvref_t<I>::value>{};
};

/// Whether an index that is known at compile time lies within an extent. Of others nothing
/// is known.
template <class I, int Extent> inline constexpr bool within = true;
template <StaticIndex I, int Extent>
inline constexpr bool within<I, Extent> =
    0 <= std::remove_cvref_t<I>::value&& std::remove_cvref_t<I>::value < Extent;

/// The number of a value, given by itself or by one index for each mode of the map M. Refused
/// beyond the fragment where that is known at compile time; elsewhere a finding on the
/// simulated machine.
template <class M, class... Modes, class... I>
TEGULA_DEVICE constexpr int number_of_value(Map<Modes...>, [[maybe_unused]] SourceLocation where,
                                            I... i) {
  if constexpr (sizeof...(I) == 1) {
    static_assert((within<I, map_size<M>> && ...),
                  "a fragment has no such value: an index for all modes lies from 0 to size - 1");
    return (static_cast<int>(i), ...);
  } else {
    static_assert(sizeof...(I) == sizeof...(Modes),
                  "a value takes one index, or one for each mode of the fragment");
    static_assert((within<I, mode_size<Modes>> && ...),
                  "a fragment has no such value: an index of a mode lies from 0 to its extent - 1");
    int result = 0, below = 1;
    ((result += static_cast<int>(i) * below, below *= mode_size<Modes>), ...);
#if !TEGULA_GPU
    bool const inside =
        (true && ... && (static_cast<unsigned>(static_cast<int>(i)) < unsigned{mode_size<Modes>}));
    if (!inside) [[unlikely]] {
      int mode = 0;
      bool reported = false;
      auto const one = [&](int index, int extent) {
        if (!reported && (index < 0 || index >= extent)) {
          reported = true;
          sim::beyond_fragment(index, extent, mode, where);
        }
        ++mode;
      };
      (one(static_cast<int>(i), mode_size<Modes>), ...);
      return kReported;
    }
#endif
    return result;
  }
}

}  // namespace tegula::detail
