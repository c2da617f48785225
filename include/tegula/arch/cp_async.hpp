#pragma once

#include "tegula/arch/cache_hint.hpp"
#include "tegula/arch/shared.hpp"

/// Asynchronous copies from global to shared memory: PTX ISA, cp.async (sm_80). A copy's bytes are
/// in shared memory once the issuing thread has waited for the copy's group; other threads see them
/// after a barrier that follows that wait.
namespace tegula {

/// What L2 fetches where nothing else is asked for: whole lines.
inline constexpr CacheHint kCopyHint{.prefetch = L2Prefetch::b128};

/// Copies src_bytes from global to shared memory through L1 (.ca) and fills the rest of Bytes with
/// zeros; src is not read where src_bytes is 0. Both addresses are multiples of Bytes.
template <int Bytes, CacheHint H = kCopyHint>
TEGULA_DEVICE void cp_async_ca(SharedAddr dst, void const* src, int src_bytes = Bytes,
                               [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async.ca copies 4, 8 or 16 bytes");
  static_assert(detail::HintChecked<H, detail::Hinted::cp_async>::value);
#if TEGULA_GPU
  asm volatile("cp.async.ca.shared.global%4 [%0], [%1], %2, %3%5;" ::"r"(dst), "l"(src), "n"(Bytes),
               "r"(src_bytes), "C"(detail::HintQualifiers<H>::text),
               "C"(detail::PolicyOperand<H.l2>::text)
               : "memory");
#else
  sim::cp_async(dst, src, Bytes, src_bytes, where);
#endif
}

/// Copies src_bytes from global to shared memory past L1 (.cg) and fills the rest of the 16 bytes
/// with zeros.
template <int Bytes = 16, CacheHint H = kCopyHint>
TEGULA_DEVICE void cp_async_cg(SharedAddr dst, void const* src, int src_bytes = Bytes,
                               [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(Bytes == 16, "cp.async.cg copies 16 bytes");
  static_assert(detail::HintChecked<H, detail::Hinted::cp_async>::value);
#if TEGULA_GPU
  asm volatile("cp.async.cg.shared.global%4 [%0], [%1], %2, %3%5;" ::"r"(dst), "l"(src), "n"(Bytes),
               "r"(src_bytes), "C"(detail::HintQualifiers<H>::text),
               "C"(detail::PolicyOperand<H.l2>::text)
               : "memory");
#else
  sim::cp_async(dst, src, Bytes, src_bytes, where);
#endif
}

/// Ends this thread's current group of copies and starts the next.
TEGULA_DEVICE void cp_async_commit_group(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  sim::cp_async_commit_group(where);
#endif
}

/// Waits until at most the latest N of this thread's committed groups are in flight.
template <int N>
TEGULA_DEVICE void cp_async_wait_group(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(N >= 0);
#if TEGULA_GPU
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#else
  sim::cp_async_wait_group(N, where);
#endif
}

/// Waits for all of this thread's copies, committed or not.
TEGULA_DEVICE void cp_async_wait_all(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("cp.async.wait_all;" ::: "memory");
#else
  sim::cp_async_wait_all(where);
#endif
}

}  // namespace tegula
