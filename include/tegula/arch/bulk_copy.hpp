#pragma once

#include <cstdint>

#include "tegula/arch/bulk_reduce.hpp"
#include "tegula/arch/cache_hint.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/source_location.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Copies and reductions of bytes that lie in one piece, by the TMA unit: PTX ISA, cp.async.bulk,
/// cp.reduce.async.bulk and cp.async.bulk.prefetch (sm_90). One thread issues one. Into shared
/// memory it reports its bytes to an mbarrier (complete_tx), which waits for them; into global
/// memory it is waited for in groups by the thread that issued it. All of it goes through the async
/// proxy: what threads wrote to shared memory is read only after fence_proxy_async() and a barrier.
namespace tegula {

/// Copies `bytes` bytes to shared memory and counts them as arrived at the mbarrier. Both addresses
/// and `bytes` are multiples of 16.
template <L2Policy Hint = L2Hint::none>
TEGULA_DEVICE void bulk_load(SharedAddr dst, void const* src, int bytes, SharedAddr mbarrier,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
#if TEGULA_GPU
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes%4 [%0], [%1], %2, [%3]%5;" ::
          "r"(dst),
      "l"(src), "r"(bytes), "r"(mbarrier), "C"(detail::PolicyQualifier<Hint>::text),
      "C"(detail::PolicyOperand<Hint>::text)
      : "memory");
#else
  sim::bulk_load(dst, src, bytes, mbarrier, where);
#endif
}

/// As bulk_load, into each CTA of the cluster whose bit is set in `cta_mask`: to the same offset in
/// its shared memory, and counted at the mbarrier at the same offset there. (.multicast::cluster)
template <L2Policy Hint = L2Hint::none>
TEGULA_DEVICE void bulk_load_multicast(
    SharedAddr dst, void const* src, int bytes, SharedAddr mbarrier, std::uint16_t cta_mask,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
#if TEGULA_GPU
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster%5 "
      "[%0], [%1], %2, [%3], %4%6;" ::"r"(dst),
      "l"(src), "r"(bytes), "r"(mbarrier), "h"(cta_mask), "C"(detail::PolicyQualifier<Hint>::text),
      "C"(detail::PolicyOperand<Hint>::text)
      : "memory");
#else
  sim::bulk_load_multicast(dst, src, bytes, mbarrier, cta_mask, where);
#endif
}

/// Copies `bytes` bytes from this CTA's shared memory to that of a CTA of the cluster, and counts
/// them as arrived at an mbarrier there. Both of its addresses are mapa's; all three and `bytes`
/// are multiples of 16, but for the mbarrier's. (.shared::cluster.shared::cta)
TEGULA_DEVICE void bulk_copy_cluster(
    SharedAddr remote, SharedAddr src, int bytes, SharedAddr remote_mbarrier,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(remote),
      "r"(src), "r"(bytes), "r"(remote_mbarrier)
      : "memory");
#else
  sim::bulk_copy_cluster(remote, src, bytes, remote_mbarrier, where);
#endif
}

/// As bulk_copy_cluster, but combines each T of `bytes` bytes with the one there: an atomic of the
/// cluster's scope of each element by itself, so that several CTAs may reduce into one at once.
/// What is there must have been written, and that made known to this thread. The types are those of
/// can_reduce_in_cluster.
template <TmaReduce Op, class T>
TEGULA_DEVICE void bulk_reduce_cluster(
    SharedAddr remote, SharedAddr src, int bytes, SharedAddr remote_mbarrier,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  constexpr DType type = reduced_as(Op, dtype_of<T>);
  static_assert(
      can_reduce_in_cluster(Op, type),
      "bulk_reduce_cluster: shared memory of a cluster has sums of integers of 32 and 64 bits, "
      "min, max, and, or and xor of those of 32, and inc and dec of std::uint32_t");
#if TEGULA_GPU
  asm volatile(
      "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes%4%5 "
      "[%0], [%1], %2, [%3];" ::"r"(remote),
      "r"(src), "r"(bytes), "r"(remote_mbarrier), "C"(detail::ReduceOpText<Op>::text),
      "C"(detail::ReduceTypeText<Op, type>::text)
      : "memory");
#else
  sim::bulk_reduce_cluster(remote, src, bytes, Op, type, remote_mbarrier, where);
#endif
}

/// Brings `bytes` bytes into L2. The address and `bytes` are multiples of 16.
template <L2Policy Hint = L2Hint::none>
TEGULA_DEVICE void bulk_prefetch(
    void const* src, int bytes, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
#if TEGULA_GPU
  asm volatile("cp.async.bulk.prefetch.L2.global%2 [%0], %1%3;" ::"l"(src), "r"(bytes),
               "C"(detail::PolicyQualifier<Hint>::text), "C"(detail::PolicyOperand<Hint>::text)
               : "memory");
#else
  sim::bulk_prefetch(src, bytes, where);
#endif
}

/// Copies `bytes` bytes from shared memory, as part of the thread's current bulk group. Both
/// addresses and `bytes` are multiples of 16.
template <L2Policy Hint = L2Hint::none>
TEGULA_DEVICE void bulk_store(void* dst, SharedAddr src, int bytes,
                              [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
#if TEGULA_GPU
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group%3 [%0], [%1], %2%4;" ::"l"(dst),
               "r"(src), "r"(bytes), "C"(detail::PolicyQualifier<Hint>::text),
               "C"(detail::PolicyOperand<Hint>::text)
               : "memory");
#else
  sim::bulk_store(dst, src, bytes, 0xffff, where);
#endif
}

/// As bulk_store, but of each 16 bytes it writes those whose bits are set in `byte_mask`, byte i by
/// bit i. (.cp_mask, sm_100)
template <L2Policy Hint = L2Hint::none>
TEGULA_DEVICE void bulk_store_masked(
    void* dst, SharedAddr src, int bytes, std::uint16_t byte_mask,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
#if TEGULA_GPU
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group%4.cp_mask [%0], [%1], %2%5, %3;" ::"l"(dst),
      "r"(src), "r"(bytes), "h"(byte_mask), "C"(detail::PolicyQualifier<Hint>::text),
      "C"(detail::PolicyOperand<Hint>::text)
      : "memory");
#else
  sim::bulk_store(dst, src, bytes, byte_mask, where);
#endif
}

/// As bulk_store, but combines each T of `bytes` bytes with the one in global memory: an atomic of
/// the GPU's scope of each element by itself. The types are those of can_reduce, and sums of
/// std::int64_t. Sums of floating-point values keep subnormals.
template <TmaReduce Op, L2Policy Hint = L2Hint::none, class T>
TEGULA_DEVICE void bulk_reduce(T* dst, SharedAddr src, int bytes,
                               [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::PolicyChecked<Hint>::value);
  constexpr DType type = reduced_as(Op, dtype_of<T>);
  static_assert(
      can_reduce(Op, type),
      "bulk_reduce: global memory has sums of half, bfloat16, float, double and integers of 32 "
      "and 64 bits, min and max of half, bfloat16 and those integers, and, or and xor of "
      "those integers, and inc and dec of std::uint32_t");
#if TEGULA_GPU
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group%3%4%5 [%0], [%1], %2%6;" ::"l"(dst),
      "r"(src), "r"(bytes), "C"(detail::PolicyQualifier<Hint>::text),
      "C"(detail::ReduceOpText<Op>::text), "C"(detail::ReduceTypeText<Op, type>::text),
      "C"(detail::PolicyOperand<Hint>::text)
      : "memory");
#else
  sim::bulk_reduce(dst, src, bytes, Op, type, where);
#endif
}

/// Ends this thread's current group of bulk stores and starts the next.
TEGULA_DEVICE void bulk_commit_group(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#else
  sim::bulk_commit_group(where);
#endif
}

/// Waits until all but the latest N of this thread's committed groups are complete: written to
/// global memory.
template <int N>
TEGULA_DEVICE void bulk_wait_group(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(N >= 0);
#if TEGULA_GPU
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
#else
  sim::bulk_wait_group(N, where);
#endif
}

/// Waits until all but the latest N of this thread's committed groups have read their shared
/// memory, which can then be written again.
template <int N>
TEGULA_DEVICE void bulk_wait_group_read(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(N >= 0);
#if TEGULA_GPU
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
#else
  sim::bulk_wait_group_read(N, where);
#endif
}

}  // namespace tegula
