#pragma once

#include <cstdint>

#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// What a kernel tells the caches without reading or writing: PTX ISA, prefetch, prefetchu,
/// applypriority, discard. (Of tensors and whole ranges: tma_prefetch, bulk_prefetch.)
namespace tegula {

enum class CacheLevel : std::uint8_t {
  l1,
  l2,
  l2_evict_last,  ///< to L2, which drops it late
  l2_evict_normal,
  uniform  ///< to the cache of uniform accesses (prefetchu.L1)
};

/// Brings the cache line that holds the address of global memory into a cache. It orders nothing,
/// and reads nothing that the kernel could see: the line may be one that nobody has written.
template <CacheLevel Level>
TEGULA_DEVICE void prefetch_global(
    void const* address, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  if constexpr (Level == CacheLevel::l1) {
    asm volatile("prefetch.global.L1 [%0];" ::"l"(address));
  } else if constexpr (Level == CacheLevel::l2) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
  } else if constexpr (Level == CacheLevel::l2_evict_last) {
    asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(address));
  } else if constexpr (Level == CacheLevel::l2_evict_normal) {
    asm volatile("prefetch.global.L2::evict_normal [%0];" ::"l"(address));
  } else {
    asm volatile("prefetchu.L1 [%0];" ::"l"(address));
  }
#else
  sim::prefetch_global(address, where);
#endif
}

/// Gives 128 bytes of global memory the priority evict_normal in L2 again, where an access has
/// given them another. The address is a multiple of 128. (applypriority has no other priority and
/// no other size.)
TEGULA_DEVICE void apply_priority_evict_normal(
    void const* address, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(address) : "memory");
#else
  sim::apply_priority(address, where);
#endif
}

/// Lets L2 drop 128 bytes of global memory without writing them back. The address is a multiple of
/// 128. It is a weak write: what the bytes hold then is undefined, and may differ from one read to
/// the next, until somebody writes them. On the simulated machine they hold 0xff, and to the
/// checker nobody has written them.
TEGULA_DEVICE void discard_global(
    void* address, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("discard.global.L2 [%0], 128;" ::"l"(address) : "memory");
#else
  sim::discard_global(address, where);
#endif
}

}  // namespace tegula
