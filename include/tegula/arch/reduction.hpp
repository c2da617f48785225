#pragma once

#include "tegula/arch/atomic_operation.hpp"

/// Atomics without a result: PTX ISA, red. Types, scopes and shared memory are those of atomic.hpp.
/// A red is no read: it acquires nothing, a fence after it does not either, and its order is
/// relaxed or release. It goes on with what the word's value has released.
namespace tegula {

/// Adds value to what is there, with no result.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_add(T* address, T value,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::add, S, O>(address, value, where);
}

/// Likewise N neighbours by one instruction, each by an addition of its own: 2 or 4 floats; 2, 4 or
/// 8 half or bfloat16. The address is a multiple of all their bytes. (More than 4 bytes: sm_90.)
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T, int N>
TEGULA_DEVICE void red_add(T* address, Vector<T, N> const& values,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::add, S, O>(address, values, where);
}

/// Likewise in shared memory; of a Vector<half, 2> or <bfloat16, 2>, two neighbours.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_shared_add(
    SharedAddr address, T value,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::add, S, O>(address, value, where);
}

/// Stores the smaller of value and what is there, with no result.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_min(T* address, T value,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::min, S, O>(address, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_shared_min(
    SharedAddr address, T value,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::min, S, O>(address, value, where);
}

/// Stores the larger of value and what is there, with no result.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_max(T* address, T value,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::max, S, O>(address, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_shared_max(
    SharedAddr address, T value,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::max, S, O>(address, value, where);
}

/// Stores the bits that both value and what is there have, with no result.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_and(T* address, T value,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::bit_and, S, O>(address, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_shared_and(
    SharedAddr address, T value,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::bit_and, S, O>(address, value, where);
}

/// Stores the bits that value or what is there has, with no result.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_or(T* address, T value,
                          [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::bit_or, S, O>(address, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_shared_or(
    SharedAddr address, T value,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::bit_or, S, O>(address, value, where);
}

/// Stores the bits that one of value and what is there has, with no result.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_xor(T* address, T value,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::bit_xor, S, O>(address, value, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_shared_xor(
    SharedAddr address, T value,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::bit_xor, S, O>(address, value, where);
}

/// Stores 0 where there is `last` or more, and else one more than there is, with no result.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_inc(T* address, T last,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::inc, S, O>(address, last, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_shared_inc(
    SharedAddr address, T last, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::inc, S, O>(address, last, where);
}

/// Stores `last` where there is 0 or more than `last`, and else one less than there is, with no
/// result.
template <Scope S = Scope::gpu, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_dec(T* address, T last,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::dec, S, O>(address, last, where);
}

/// Likewise in shared memory.
template <Scope S = Scope::cta, MemoryOrder O = MemoryOrder::relaxed, class T>
TEGULA_DEVICE void red_shared_dec(
    SharedAddr address, T last, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  detail::red<AtomicOp::dec, S, O>(address, last, where);
}

}  // namespace tegula
