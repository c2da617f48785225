#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "tegula/arch/mutant.hpp"
#include "tegula/arch/wgmma_op.hpp"
#include "tegula/arch/wgmma_operands.hpp"
#include "tegula/arch/where.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Warpgroup-wide asynchronous matrix multiply-add on the tensor cores: PTX ISA, wgmma (sm_90a). All 128
/// threads of a warpgroup execute each of these together. From issue until a wgmma_wait_group that covers it,
/// an operation owns its registers, and reads shared memory in the asynchronous proxy.
namespace tegula {

/// The registers that one thread holds of D: floats, integers, or pairs of halves.
template <WgmmaConfig Op> struct WgmmaRegisters {
  using Accumulator = std::conditional_t<
      Op.accumulator == WgmmaAccumulator::f32, float,
      std::conditional_t<Op.accumulator == WgmmaAccumulator::s32, std::int32_t, std::uint32_t>>;
  static constexpr int count = check(Op) ? d_registers(Op) : 0;
  using D = Accumulator[count];
};

#if TEGULA_GPU
namespace detail {

/// A text of the assembler, put together at compile time.
struct WgmmaText {
  char text[48] = {};
  int length = 0;

  constexpr void append(char const* s) {
    while (*s != '\0') text[length++] = *s++;
  }
  constexpr void append(int value) {
    if (value >= 10) append(value / 10);
    text[length++] = static_cast<char>('0' + value % 10);
  }
};

/// What follows "wgmma.mma_async.sync.aligned.": "m64n128k16.f32.bf16.bf16".
constexpr WgmmaText wgmma_name(WgmmaConfig const& op) {
  constexpr char const* kTypes[kWgmmaTypes] = {"bf16.bf16", "f16.f16",   "tf32.tf32", "e4m3.e4m3",
                                               "e4m3.e5m2", "e5m2.e4m3", "e5m2.e5m2", "s8.s8",
                                               "s8.u8",     "u8.s8",     "u8.u8"};
  constexpr char const* kAccumulators[] = {".f32.", ".f16.", ".s32."};
  WgmmaText name;
  name.append("m64n");
  name.append(op.n);
  name.append("k");
  name.append(wgmma_k(op.type));
  name.append(kAccumulators[static_cast<int>(op.accumulator)]);
  name.append(kTypes[static_cast<int>(op.type)]);
  if (op.satfinite) name.append(".satfinite");
  return name;
}

/// What follows scale-d: imm-scale-a, imm-scale-b and, for 16-bit types, imm-trans-a (A in shared memory) and
/// imm-trans-b.
constexpr WgmmaText wgmma_tail(WgmmaConfig const& op, bool a_in_shared_memory) {
  WgmmaText tail;
  if (is_integer(op.type)) return tail;
  tail.append(op.negate_a ? ", -1" : ", 1");
  tail.append(op.negate_b ? ", -1" : ", 1");
  if (element_bits(op.type) != 16) return tail;
  if (a_in_shared_memory) tail.append(op.a_mn_major ? ", 1" : ", 0");
  tail.append(op.b_mn_major ? ", 1" : ", 0");
  return tail;
}

/// A text as the "C" constraint takes it: an array of its characters.
template <WgmmaText T, class Places = std::make_integer_sequence<int, T.length>> struct WgmmaCharacters;
template <WgmmaText T, int... Places> struct WgmmaCharacters<T, std::integer_sequence<int, Places...>> {
  static constexpr char value[] = {T.text[Places]..., '\0'};
};

/// Both texts of an instruction.
template <WgmmaConfig Op, bool AInSharedMemory> struct WgmmaTexts {
  using Name = WgmmaCharacters<wgmma_name(Op)>;
  using Tail = WgmmaCharacters<wgmma_tail(Op, AInSharedMemory)>;
};

}  // namespace detail
#endif

/// Orders this warpgroup's accesses to registers, and to shared memory through the asynchronous proxy, before
/// its wgmma that follow: needed before the first wgmma, and wherever registers that one uses have been
/// written since, other than accumulators by a wgmma of the same shape (PTX ISA, wgmma.fence).
TEGULA_DEVICE void wgmma_fence(Where where = Where::here()) {
  Mutation const m = mutation(where, Operation::wgmma_fence, Mutation::removed | Mutation::delayed);
  if (m == Mutation::removed) return;
#if TEGULA_GPU
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  execute(m, [=] { sim::wgmma_fence(where); });
#endif
}

/// Ends the warpgroup's current group of wgmma and starts the next.
TEGULA_DEVICE void wgmma_commit_group(Where where = Where::here()) {
  Mutation const m = mutation(where, Operation::wgmma_commit_group, Mutation::removed | Mutation::delayed);
  if (m == Mutation::removed) return;
#if TEGULA_GPU
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  execute(m, [=] { sim::wgmma_commit_group(where); });
#endif
}

/// Waits until at most the latest N of the warpgroup's committed groups are in flight.
template <int N> TEGULA_DEVICE void wgmma_wait_group(Where where = Where::here()) {
  static_assert(N >= 0 && N <= 7, "wgmma.wait_group counts at most 7 groups");
  Mutation const m = mutation(where, Operation::wgmma_wait_group, kWaitsForGroups<N>);
  if (m == Mutation::removed) return;
#if TEGULA_GPU
  if (m == Mutation::more) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N == 7 ? 7 : N + 1) : "memory");
  } else if (m == Mutation::less) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N == 0 ? 0 : N - 1) : "memory");
  } else {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
  }
#else
  execute(m, [=] { sim::wgmma_wait_group(counted(N, m), where); });
#endif
}

/// D(64, n) = A * B + (scale_d ? D : 0) with A and B in shared memory, given by matrix descriptors
/// (tensor/wgmma_operand.hpp). Who holds which element of d: atom/, or PTX ISA, "Register Fragments and
/// Shared Memory Matrix Layouts".
template <WgmmaConfig Op>
TEGULA_DEVICE void wgmma(typename WgmmaRegisters<Op>::D& d, std::uint64_t a_descriptor,
                         std::uint64_t b_descriptor, bool scale_d,
                         [[maybe_unused]] Where where = Where::here()) {
#if TEGULA_GPU
  using Accumulator = std::conditional_t<Op.accumulator == WgmmaAccumulator::f32, float, std::uint32_t>;
  constexpr int count = sizeof(d) / 4;
  detail::WgmmaStatement<Accumulator, count>::template issue<detail::WgmmaTexts<Op, true>>(
      reinterpret_cast<Accumulator(&)[count]>(d), a_descriptor, b_descriptor, scale_d ? 1 : 0);
#else
  sim::wgmma(Op, d, a_descriptor, b_descriptor, scale_d, where);
#endif
}

/// The same with A in registers: 64 x K elements, four registers a thread.
template <WgmmaConfig Op>
TEGULA_DEVICE void wgmma(typename WgmmaRegisters<Op>::D& d, std::uint32_t const (&a)[4],
                         std::uint64_t b_descriptor, bool scale_d,
                         [[maybe_unused]] Where where = Where::here()) {
  static_assert(!Op.a_mn_major, "A in registers has no major-ness");
#if TEGULA_GPU
  using Accumulator = std::conditional_t<Op.accumulator == WgmmaAccumulator::f32, float, std::uint32_t>;
  constexpr int count = sizeof(d) / 4;
  detail::WgmmaStatement<Accumulator, count>::template issue<detail::WgmmaTexts<Op, false>>(
      reinterpret_cast<Accumulator(&)[count]>(d), a, b_descriptor, scale_d ? 1 : 0);
#else
  sim::wgmma(Op, d, a, b_descriptor, scale_d, where);
#endif
}

/// Keeps the compiler from moving reads and writes of accumulators across this point: before the wgmma_fence
/// that precedes a wgmma whose accumulators the program wrote, and after the wgmma_wait_group that ends it.
/// Costs no instruction.
template <class Accumulator, int Count> TEGULA_DEVICE void wgmma_pin(Accumulator (&d)[Count]) {
  static_assert(sizeof(Accumulator) == 4);
#if TEGULA_GPU
  using Register = std::conditional_t<std::is_same_v<Accumulator, float>, float, std::uint32_t>;
  detail::WgmmaStatement<Register, Count>::pin(reinterpret_cast<Register(&)[Count]>(d));
#else
  static_cast<void>(d);
#endif
}

/// The accumulator's value in a register of its own. ptxas serialises the wgmma of a kernel that stores
/// accumulators' registers as they are (its remark C7520).
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
