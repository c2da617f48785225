#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/mma_registers.hpp"
#include "tegula/arch/mma_text.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/arch/wgmma_operands.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Warpgroup-wide asynchronous matrix multiply-add on the tensor cores: PTX ISA, wgmma (sm_90a).
/// All 128 threads of a warpgroup execute each of these together. From issue until a
/// wgmma_wait_group that covers it, an operation owns its registers, and reads shared memory in the
/// asynchronous proxy.
namespace tegula {

/// Orders this warpgroup's accesses to registers, and to shared memory through the asynchronous
/// proxy, before its wgmma that follow: needed before the first wgmma, and wherever registers that
/// one uses have been written since, other than accumulators by a wgmma of the same shape (PTX
/// ISA, wgmma.fence).
TEGULA_DEVICE void wgmma_fence([[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  sim::wgmma_fence(where);
#endif
}

/// Ends the warpgroup's current group of wgmma and starts the next.
TEGULA_DEVICE void wgmma_commit_group(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  sim::wgmma_commit_group(where);
#endif
}

/// Waits until at most the latest N of the warpgroup's committed groups are in flight.
template <int N>
TEGULA_DEVICE void wgmma_wait_group(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(N >= 0 && N <= 7, "wgmma.wait_group counts at most 7 groups");
#if TEGULA_GPU
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
#else
  sim::wgmma_wait_group(N, where);
#endif
}

/// D(64, n) = A * B + (scale_d ? D : 0) with A and B in shared memory, given by matrix descriptors
/// (tensor/descriptor.hpp). Who holds which element of d: atom/, or PTX ISA, "Register Fragments
/// and Shared Memory Matrix Layouts".
template <MmaSpec S>
TEGULA_DEVICE void wgmma(typename MmaRegisters<S>::D& d, std::uint64_t a_descriptor,
                         std::uint64_t b_descriptor, bool scale_d,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.operands == MmaOperands::ss,
                "wgmma: the spec is of none with A in shared memory");
#if TEGULA_GPU
  using Register = std::conditional_t<S.d == DType::f32, float, std::uint32_t>;
  constexpr int count = sizeof(d) / 4;
  detail::WgmmaStatement<Register, count>::template issue<detail::MmaTexts<S>>(
      reinterpret_cast<Register(&)[count]>(d), a_descriptor, b_descriptor, scale_d ? 1 : 0);
#else
  sim::wgmma(S, d, a_descriptor, b_descriptor, scale_d, where);
#endif
}

/// The same with A in registers: 64 x K elements, four registers a thread.
template <MmaSpec S>
TEGULA_DEVICE void wgmma(typename MmaRegisters<S>::D& d, std::uint32_t const (&a)[4],
                         std::uint64_t b_descriptor, bool scale_d,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.operands == MmaOperands::rs, "wgmma: the spec is of none with A in registers");
#if TEGULA_GPU
  using Register = std::conditional_t<S.d == DType::f32, float, std::uint32_t>;
  constexpr int count = sizeof(d) / 4;
  detail::WgmmaStatement<Register, count>::template issue<detail::MmaTexts<S>>(
      reinterpret_cast<Register(&)[count]>(d), a, b_descriptor, scale_d ? 1 : 0);
#else
  sim::wgmma(S, d, a, b_descriptor, scale_d, where);
#endif
}

/// Keeps the compiler from moving reads and writes of accumulators across this point: before the
/// wgmma_fence that precedes a wgmma whose accumulators the program wrote, and after the
/// wgmma_wait_group that ends it. Costs no instruction.
template <class Accumulator, int Count> TEGULA_DEVICE void wgmma_pin(Accumulator (&d)[Count]) {
  static_assert(sizeof(Accumulator) == 4);
#if TEGULA_GPU
  using Register = std::conditional_t<std::is_same_v<Accumulator, float>, float, std::uint32_t>;
  detail::WgmmaStatement<Register, Count>::pin(reinterpret_cast<Register(&)[Count]>(d));
#else
  static_cast<void>(d);
#endif
}

/// The accumulator's value in a register of its own. ptxas serialises the wgmma of a kernel that
/// stores accumulators' registers as they are (its remark C7520).
TEGULA_DEVICE float wgmma_value(float accumulator) {
#if TEGULA_GPU
  float value;
  asm volatile("mov.b32 %0, %1;" : "=f"(value) : "f"(accumulator));
  return value;
#else
  return accumulator;
#endif
}

}  // namespace tegula
