#pragma once

#include <cstdint>

#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/source_location.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Collectives of a warp: PTX ISA, shfl.sync, vote.sync, redux.sync, elect.sync, bar.warp.sync.
/// `mask` names the lanes that take part; each of them executes the same instruction with the
/// same mask.
namespace tegula::warp {

inline constexpr std::uint32_t kAllLanes = 0xffffffffu;

/// A value that one shuffle moves.
template <class T>
concept ShuffleValue = std::is_trivially_copyable_v<T> && sizeof(T) == 4;

/// The value of lane src_lane % 32.
template <ShuffleValue T>
TEGULA_DEVICE T shfl(T value, int src_lane, std::uint32_t mask = kAllLanes,
                     [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  auto const v = bits_as<std::uint32_t>(value);
#if TEGULA_GPU
  std::uint32_t r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, %3;"
               : "=r"(r)
               : "r"(v), "r"(src_lane), "r"(mask));
  return bits_as<T>(r);
#else
  return bits_as<T>(sim::shfl(sim::ShuffleMode::idx, v, src_lane, mask, where));
#endif
}

/// The value of lane (lane_id ^ lane_mask).
template <ShuffleValue T>
TEGULA_DEVICE T shfl_xor(T value, int lane_mask, std::uint32_t mask = kAllLanes,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  auto const v = bits_as<std::uint32_t>(value);
#if TEGULA_GPU
  std::uint32_t r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, %3;"
               : "=r"(r)
               : "r"(v), "r"(lane_mask), "r"(mask));
  return bits_as<T>(r);
#else
  return bits_as<T>(sim::shfl(sim::ShuffleMode::bfly, v, lane_mask, mask, where));
#endif
}

/// The value of lane (lane_id - delta), or one's own where there is none.
template <ShuffleValue T>
TEGULA_DEVICE T shfl_up(T value, int delta, std::uint32_t mask = kAllLanes,
                        [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  auto const v = bits_as<std::uint32_t>(value);
#if TEGULA_GPU
  std::uint32_t r;
  asm volatile("shfl.sync.up.b32 %0, %1, %2, 0x0, %3;" : "=r"(r) : "r"(v), "r"(delta), "r"(mask));
  return bits_as<T>(r);
#else
  return bits_as<T>(sim::shfl(sim::ShuffleMode::up, v, delta, mask, where));
#endif
}

/// The value of lane (lane_id + delta), or one's own where there is none.
template <ShuffleValue T>
TEGULA_DEVICE T shfl_down(T value, int delta, std::uint32_t mask = kAllLanes,
                          [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  auto const v = bits_as<std::uint32_t>(value);
#if TEGULA_GPU
  std::uint32_t r;
  asm volatile("shfl.sync.down.b32 %0, %1, %2, 0x1f, %3;"
               : "=r"(r)
               : "r"(v), "r"(delta), "r"(mask));
  return bits_as<T>(r);
#else
  return bits_as<T>(sim::shfl(sim::ShuffleMode::down, v, delta, mask, where));
#endif
}

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

template <class T>
concept ReduceValue = std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int32_t>;

/// The sum, modulo 2^32, over the lanes of the mask: redux.sync (sm_80).
template <ReduceValue T>
TEGULA_DEVICE T reduce_add(T value, std::uint32_t mask = kAllLanes,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  T r;
  asm volatile("redux.sync.add.s32 %0, %1, %2;" : "=r"(r) : "r"(value), "r"(mask));
  return r;
#else
  return bits_as<T>(sim::redux(sim::ReduxOp::add, bits_as<std::uint32_t>(value), mask, where));
#endif
}

/// The least value over the lanes of the mask: redux.sync (sm_80).
template <ReduceValue T>
TEGULA_DEVICE T reduce_min(T value, std::uint32_t mask = kAllLanes,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  T r;
  if constexpr (std::is_signed_v<T>) {
    asm volatile("redux.sync.min.s32 %0, %1, %2;" : "=r"(r) : "r"(value), "r"(mask));
  } else {
    asm volatile("redux.sync.min.u32 %0, %1, %2;" : "=r"(r) : "r"(value), "r"(mask));
  }
  return r;
#else
  constexpr auto op = std::is_signed_v<T> ? sim::ReduxOp::min_s32 : sim::ReduxOp::min_u32;
  return bits_as<T>(sim::redux(op, bits_as<std::uint32_t>(value), mask, where));
#endif
}

/// The greatest value over the lanes of the mask: redux.sync (sm_80).
template <ReduceValue T>
TEGULA_DEVICE T reduce_max(T value, std::uint32_t mask = kAllLanes,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  T r;
  if constexpr (std::is_signed_v<T>) {
    asm volatile("redux.sync.max.s32 %0, %1, %2;" : "=r"(r) : "r"(value), "r"(mask));
  } else {
    asm volatile("redux.sync.max.u32 %0, %1, %2;" : "=r"(r) : "r"(value), "r"(mask));
  }
  return r;
#else
  constexpr auto op = std::is_signed_v<T> ? sim::ReduxOp::max_s32 : sim::ReduxOp::max_u32;
  return bits_as<T>(sim::redux(op, bits_as<std::uint32_t>(value), mask, where));
#endif
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
