#pragma once

#include <cstdint>

#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/shuffle.hpp"
#include "tegula/arch/source_location.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Collectives of a warp: PTX ISA, vote.sync, match.sync, redux.sync, elect.sync, bar.warp.sync;
/// shuffle.hpp has shfl.sync.
/// `mask` names the lanes that take part; each of them executes the same instruction with the
/// same mask.
namespace tegula::warp {

/// Bit l is set where lane l of the mask says true.
TEGULA_DEVICE std::uint32_t ballot(
    bool predicate, std::uint32_t mask = kAllLanes,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  std::uint32_t r;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, %2; }"
               : "=r"(r)
               : "r"(static_cast<std::uint32_t>(predicate)), "r"(mask));
  return r;
#else
  return sim::ballot(predicate, mask, false, where);
#endif
}

/// True where any lane of the mask says true.
TEGULA_DEVICE bool any(bool predicate, std::uint32_t mask = kAllLanes,
                       [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  std::uint32_t r;
  asm volatile(
      "{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync.any.pred q, p, %2; selp.u32 %0, 1, 0, q; }"
      : "=r"(r)
      : "r"(static_cast<std::uint32_t>(predicate)), "r"(mask));
  return r != 0;
#else
  return sim::ballot(predicate, mask, false, where) != 0;
#endif
}

/// True where every lane of the mask says true.
TEGULA_DEVICE bool all(bool predicate, std::uint32_t mask = kAllLanes,
                       [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  std::uint32_t r;
  asm volatile(
      "{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync.all.pred q, p, %2; selp.u32 %0, 1, 0, q; }"
      : "=r"(r)
      : "r"(static_cast<std::uint32_t>(predicate)), "r"(mask));
  return r != 0;
#else
  return sim::ballot(predicate, mask, true, where) == mask;
#endif
}

namespace detail {

/// A value of 4 or 8 bytes as a word.
template <class T> TEGULA_DEVICE auto match_bits(T value) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                "match.sync compares trivially copyable values of 4 or 8 bytes");
  if constexpr (sizeof(T) == 8) {
    return bits_as<std::uint64_t>(value);
  } else {
    return bits_as<std::uint32_t>(value);
  }
}

}  // namespace detail

/// The lanes of the mask whose value has the same bits as the caller's, which is one of them: PTX
/// ISA, match.any.sync (sm_70). A value has 4 or 8 bytes.
template <class T>
TEGULA_DEVICE std::uint32_t match_any(
    T value, std::uint32_t mask = kAllLanes,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  auto const bits = detail::match_bits(value);
#if TEGULA_GPU
  std::uint32_t r;
  if constexpr (sizeof(T) == 8) {
    asm volatile("match.any.sync.b64 %0, %1, %2;" : "=r"(r) : "l"(bits), "r"(mask));
  } else {
    asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(r) : "r"(bits), "r"(mask));
  }
  return r;
#else
  return sim::match(sim::MatchMode::any, bits, sizeof(T), mask, where);
#endif
}

/// The mask where all of its lanes have the same value, else 0: PTX ISA, match.all.sync (sm_70). A
/// value has 4 or 8 bytes.
template <class T>
TEGULA_DEVICE std::uint32_t match_all(
    T value, std::uint32_t mask = kAllLanes,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  auto const bits = detail::match_bits(value);
#if TEGULA_GPU
  std::uint32_t r;
  if constexpr (sizeof(T) == 8) {
    asm volatile("match.all.sync.b64 %0, %1, %2;" : "=r"(r) : "l"(bits), "r"(mask));
  } else {
    asm volatile("match.all.sync.b32 %0, %1, %2;" : "=r"(r) : "r"(bits), "r"(mask));
  }
  return r;
#else
  return sim::match(sim::MatchMode::all, bits, sizeof(T), mask, where);
#endif
}

namespace detail {

enum class Redux : std::uint8_t { add, min, max, bit_and, bit_or, bit_xor };

template <Redux Op, class T>
TEGULA_DEVICE T redux(T value, std::uint32_t mask, [[maybe_unused]] SourceLocation where) {
  static_assert(
      std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int32_t>,
      "redux.sync takes std::uint32_t or std::int32_t (f32: reduce_min_f32, reduce_max_f32)");
#if TEGULA_GPU
#define TEGULA_REDUX(TEXT) \
  asm volatile("redux.sync." TEXT " %0, %1, %2;" : "=r"(r) : "r"(value), "r"(mask))
  T r;
  if constexpr (Op == Redux::add) {
    TEGULA_REDUX("add.s32");
  } else if constexpr (Op == Redux::min && std::is_signed_v<T>) {
    TEGULA_REDUX("min.s32");
  } else if constexpr (Op == Redux::min) {
    TEGULA_REDUX("min.u32");
  } else if constexpr (Op == Redux::max && std::is_signed_v<T>) {
    TEGULA_REDUX("max.s32");
  } else if constexpr (Op == Redux::max) {
    TEGULA_REDUX("max.u32");
  } else if constexpr (Op == Redux::bit_and) {
    TEGULA_REDUX("and.b32");
  } else if constexpr (Op == Redux::bit_or) {
    TEGULA_REDUX("or.b32");
  } else {
    TEGULA_REDUX("xor.b32");
  }
#undef TEGULA_REDUX
  return r;
#else
  constexpr bool is_signed = std::is_signed_v<T>;
  constexpr sim::ReduxOp op =
      Op == Redux::add       ? sim::ReduxOp::add
      : Op == Redux::min     ? is_signed ? sim::ReduxOp::min_s32 : sim::ReduxOp::min_u32
      : Op == Redux::max     ? is_signed ? sim::ReduxOp::max_s32 : sim::ReduxOp::max_u32
      : Op == Redux::bit_and ? sim::ReduxOp::bit_and
      : Op == Redux::bit_or  ? sim::ReduxOp::bit_or
                             : sim::ReduxOp::bit_xor;
  return bits_as<T>(sim::redux(op, bits_as<std::uint32_t>(value), mask, where));
#endif
}

}  // namespace detail

/// The sum, modulo 2^32, over the lanes of the mask: redux.sync (sm_80).
template <class T>
TEGULA_DEVICE T reduce_add(T value, std::uint32_t mask = kAllLanes,
                           SourceLocation where = SourceLocation::current()) {
  return detail::redux<detail::Redux::add>(value, mask, where);
}

/// The least value over the lanes of the mask: redux.sync (sm_80).
template <class T>
TEGULA_DEVICE T reduce_min(T value, std::uint32_t mask = kAllLanes,
                           SourceLocation where = SourceLocation::current()) {
  return detail::redux<detail::Redux::min>(value, mask, where);
}

/// The greatest value over the lanes of the mask: redux.sync (sm_80).
template <class T>
TEGULA_DEVICE T reduce_max(T value, std::uint32_t mask = kAllLanes,
                           SourceLocation where = SourceLocation::current()) {
  return detail::redux<detail::Redux::max>(value, mask, where);
}

/// The bits that every lane of the mask has: redux.sync (sm_80).
template <class T>
TEGULA_DEVICE T reduce_and(T value, std::uint32_t mask = kAllLanes,
                           SourceLocation where = SourceLocation::current()) {
  return detail::redux<detail::Redux::bit_and>(value, mask, where);
}

/// The bits that some lane of the mask has: redux.sync (sm_80).
template <class T>
TEGULA_DEVICE T reduce_or(T value, std::uint32_t mask = kAllLanes,
                          SourceLocation where = SourceLocation::current()) {
  return detail::redux<detail::Redux::bit_or>(value, mask, where);
}

/// The bits that an odd number of the mask's lanes have: redux.sync (sm_80).
template <class T>
TEGULA_DEVICE T reduce_xor(T value, std::uint32_t mask = kAllLanes,
                           SourceLocation where = SourceLocation::current()) {
  return detail::redux<detail::Redux::bit_xor>(value, mask, where);
}

namespace detail {

template <bool Greatest, bool Abs, bool Nan>
TEGULA_DEVICE float redux_f32(float value, std::uint32_t mask,
                              [[maybe_unused]] SourceLocation where) {
#if TEGULA_GPU
#define TEGULA_REDUX(TEXT)                                                                         \
  if constexpr (Abs && Nan) {                                                                      \
    asm volatile("redux.sync." TEXT ".abs.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(value), "r"(mask)); \
  } else if constexpr (Abs) {                                                                      \
    asm volatile("redux.sync." TEXT ".abs.f32 %0, %1, %2;" : "=f"(r) : "f"(value), "r"(mask));     \
  } else if constexpr (Nan) {                                                                      \
    asm volatile("redux.sync." TEXT ".NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(value), "r"(mask));     \
  } else {                                                                                         \
    asm volatile("redux.sync." TEXT ".f32 %0, %1, %2;" : "=f"(r) : "f"(value), "r"(mask));         \
  }
  float r;
  if constexpr (Greatest) {
    TEGULA_REDUX("max")
  } else {
    TEGULA_REDUX("min")
  }
#undef TEGULA_REDUX
  return r;
#else
  return sim::redux_f32({Greatest, Abs, Nan}, value, mask, where);
#endif
}

}  // namespace detail

/// The least of the mask's lanes' floats, of their magnitudes with `Abs`; -0 is less than +0. A NaN
/// gives way to a number, and with `Nan` the result is a NaN where one is among them. It is
/// 0x7fffffff. redux.sync.min.f32 (sm_100a).
template <bool Abs = false, bool Nan = false>
TEGULA_DEVICE float reduce_min_f32(float value, std::uint32_t mask = kAllLanes,
                                   SourceLocation where = SourceLocation::current()) {
  return detail::redux_f32<false, Abs, Nan>(value, mask, where);
}

/// Likewise the greatest: redux.sync.max.f32 (sm_100a).
template <bool Abs = false, bool Nan = false>
TEGULA_DEVICE float reduce_max_f32(float value, std::uint32_t mask = kAllLanes,
                                   SourceLocation where = SourceLocation::current()) {
  return detail::redux_f32<true, Abs, Nan>(value, mask, where);
}

/// True in one lane of the warp, the same one each time (which one, PTX leaves open; an H100 and
/// the simulated machine choose lane 0): elect.sync over all lanes (sm_90).
TEGULA_DEVICE bool elect_one([[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  std::uint32_t r;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(r));
  return r != 0;
#else
  return sim::elect_one(kAllLanes, where);
#endif
}

/// Likewise among the lanes of the mask, which the calling lane is one of (the H100 and the
/// simulated machine choose the lowest).
TEGULA_DEVICE bool elect_one(std::uint32_t mask,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  std::uint32_t r;
  asm volatile("{ .reg .pred p; elect.sync _|p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(r) : "r"(mask));
  return r != 0;
#else
  return sim::elect_one(mask, where);
#endif
}

/// Waits for the lanes of the mask; their earlier memory accesses are visible to one
/// another afterwards.
TEGULA_DEVICE void sync(std::uint32_t mask = kAllLanes,
                        [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory");
#else
  sim::warp_sync(mask, where);
#endif
}

}  // namespace tegula::warp
