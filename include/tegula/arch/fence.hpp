#pragma once

#include "tegula/arch/scope.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Memory fences: PTX ISA, fence.acq_rel, fence.sc and fence.proxy.async.
namespace tegula {

/// Orders this thread's earlier accesses before its later ones, for observers in the scope (CUDA's
/// __threadfence family).
template <Scope S>
TEGULA_DEVICE void fence_acq_rel(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("fence.acq_rel%0;" ::"C"(detail::ScopeText<S>::text) : "memory");
#else
  sim::fence(S, where);
#endif
}

/// As fence_acq_rel, and sequentially consistent with every other fence_sc of the scope.
template <Scope S>
TEGULA_DEVICE void fence_sc([[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("fence.sc%0;" ::"C"(detail::ScopeText<S>::text) : "memory");
#else
  sim::fence(S, where);
#endif
}

/// Orders this thread's accesses to memory of any kind before later ones through the asynchronous
/// proxy (TMA, bulk copies, wgmma's operands in shared memory), and the other way round: PTX ISA,
/// fence.proxy.async (sm_90).
TEGULA_DEVICE void fence_proxy_async(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("fence.proxy.async;" ::: "memory");
#else
  sim::fence_proxy_async(where);
#endif
}

/// As fence_proxy_async, for the CTA's shared memory alone (.shared::cta), which is cheaper: no
/// memory barrier of the whole GPU. What TMA loads of global memory that this kernel has written
/// needs fence_proxy_async.
TEGULA_DEVICE void fence_proxy_async_shared(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  sim::fence_proxy_async_shared(where);
#endif
}

}  // namespace tegula
