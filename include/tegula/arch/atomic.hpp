#pragma once

#include "tegula/arch/atomic_operation.hpp"

/// Atomics that return what was there before: PTX ISA, atom. (Without a result: reduction.hpp.)
///
/// **Types.** Sums: integers of 32 and 64 bits, float, double, half and bfloat16 (sm_90). min, max,
/// and, or, xor: integers of 32 and 64 bits; inc, dec: std::uint32_t. exch: any trivially copyable
/// value of 4, 8 or 16 bytes; cas: of 2, too (16: sm_90). The address is a multiple of the value's
/// size.
///
/// **Order and scope.** `atom_add<Scope::gpu, MemoryOrder::acq_rel>(ticket, 1u)`: what an atomic of
/// another thread released is visible afterwards (acquire, acq_rel); what this thread did before is
/// to those who acquire what it leaves (release, acq_rel). Two atomics meet only where the scope of
/// each holds the other's thread. Unless said otherwise they are relaxed, at the scope of the GPU
/// in global memory and of the CTA in shared memory.
///
/// **Shared memory.** At the scope of the CTA it is the CTA's own (.shared::cta); at a wider one
/// that of any CTA of the cluster, whose address is mapa's (.shared::cluster, sm_90). There values
/// have 2 or 4 bytes, but for sums of one integer or double of 8: ptxas 13.0 makes a load and a
/// store of the others, by which an H200 loses updates.
///
/// **Sums** of floating-point values round to nearest even, in their own format. Those of float in
/// global memory take subnormals, and leave them, as zeros of their sign; all others keep them. The
/// order in which threads add is the machine's. On the simulated machine CTAs take
/// their turn in the order of their indices, so that a result does not depend on how many of the
/// host's cores run it.
namespace tegula {

/// Adds value to what is there; returns what was there before.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_add(T* address, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::add, S, O>(address, value, where);
}

/// Likewise N neighbours by one instruction, each by an addition of its own: 2 or 4 floats; 2, 4 or
/// 8 half or bfloat16. The address is a multiple of all their bytes. (More than 4 bytes: sm_90.)
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T, int N>
TEGULA_DEVICE Vector<T, N> atom_add(
    T* address, Vector<T, N> const& values,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::add, S, O>(address, values, where);
}

/// Likewise in shared memory; of a Vector<half, 2> or <bfloat16, 2>, two neighbours.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_shared_add(SharedAddr address, T value,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::add, S, O>(address, value, where);
}

/// Stores the smaller of value and what is there; returns what was there before.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_min(T* address, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::min, S, O>(address, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_shared_min(SharedAddr address, T value,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::min, S, O>(address, value, where);
}

/// Stores the larger of value and what is there; returns what was there before.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_max(T* address, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::max, S, O>(address, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_shared_max(SharedAddr address, T value,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::max, S, O>(address, value, where);
}

/// Stores the bits that both value and what is there have; returns what was there before.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_and(T* address, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::bit_and, S, O>(address, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_shared_and(SharedAddr address, T value,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::bit_and, S, O>(address, value, where);
}

/// Stores the bits that value or what is there has; returns what was there before.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_or(T* address, T value,
                        [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::bit_or, S, O>(address, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_shared_or(SharedAddr address, T value,
                               [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::bit_or, S, O>(address, value, where);
}

/// Stores the bits that one of value and what is there has; returns what was there before.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_xor(T* address, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::bit_xor, S, O>(address, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_shared_xor(SharedAddr address, T value,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::bit_xor, S, O>(address, value, where);
}

/// Stores 0 where there is `last` or more, and else one more than there is; returns what was there
/// before.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_inc(T* address, T last,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::inc, S, O>(address, last, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_shared_inc(SharedAddr address, T last,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::inc, S, O>(address, last, where);
}

/// Stores `last` where there is 0 or more than `last`, and else one less than there is; returns
/// what was there before.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_dec(T* address, T last,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::dec, S, O>(address, last, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_shared_dec(SharedAddr address, T last,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::dec, S, O>(address, last, where);
}

/// Stores value; returns what was there before.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_exch(T* address, T value,
                          [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::exchange, S, O>(address, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T
atom_shared_exch(SharedAddr address, T value,
                 [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom<AtomicOp::exchange, S, O>(address, value, where);
}

/// Stores value where there are the bits of expected; returns what was there before.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_cas(T* address, T expected, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom_cas<S, O>(address, expected, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE T atom_shared_cas(SharedAddr address, T expected, T value,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  return detail::atom_cas<S, O>(address, expected, value, where);
}

}  // namespace tegula
