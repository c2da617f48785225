#pragma once

#include <cstdint>

#include "tegula/arch/mma_text.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tcgen05_descriptor.hpp"
#include "tegula/arch/tcgen05_operands.hpp"
#include "tegula/arch/tensor_memory_address.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Blackwell's tensor memory and the tensor cores that work on it: PTX ISA, tcgen05 (sm_100a).
/// docs/blackwell.md is the introduction.
///
/// `Ctas` is .cta_group: 1, or 2 where a pair of CTAs works together, whose ranks in the cluster
/// differ in the last bit. All instructions of a kernel have the same.
///
/// tcgen05_ld, st and mma are asynchronous: they are over when a tcgen05_wait_ld or wait_st of the
/// same warp returns, or, of mma, when a phase is complete for which a tcgen05_commit after them
/// arrives. What one thread did to tensor memory another one sees where the first executes
/// tcgen05_fence_before_thread_sync, then the two synchronise, then the other executes
/// tcgen05_fence_after_thread_sync; of mma, the commit stands for the first fence.
namespace tegula {

/// Allocates `Columns` columns of tensor memory for the CTA and writes their address to shared
/// memory, 4 bytes. By a whole warp. Waits until they are free. Of a pair, a warp of each CTA
/// executes it, and both are given the same columns.
template <int Columns, int Ctas = 1>
TEGULA_DEVICE void tcgen05_alloc(
    SharedAddr destination, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(
      Columns >= kLeastTensorColumns && Columns <= kTensorColumns && (Columns & (Columns - 1)) == 0,
      "tcgen05.alloc takes a power of two of columns, 32 to 512");
#if TEGULA_GPU
  asm volatile(
      "tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(destination),
      "n"(Columns), "n"(Ctas)
      : "memory");
#else
  sim::tcgen05_alloc(destination, Columns, Ctas, where);
#endif
}

/// Frees what one tcgen05_alloc of as many columns gave. By a whole warp, after all accesses;
/// before the CTA ends. Of a pair, a warp of each CTA executes it.
template <int Columns, int Ctas = 1>
TEGULA_DEVICE void tcgen05_dealloc(
    TensorAddr address, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(address),
               "n"(Columns), "n"(Ctas));
#else
  sim::tcgen05_dealloc(address, Columns, Ctas, where);
#endif
}

/// The CTA will allocate no more: another one on the multiprocessor may. By a whole warp.
template <int Ctas = 1>
TEGULA_DEVICE void tcgen05_relinquish_alloc_permit(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(Ctas));
#else
  sim::tcgen05_relinquish_alloc_permit(Ctas, where);
#endif
}

#if TEGULA_GPU
namespace detail {

/// ".32x32b.x4", ".16x64b.x2.pack::16b".
constexpr MmaText tensor_shape_text(TensorMove const& move, char const* halves) {
  constexpr char const* names[] = {".32x32b.x", ".16x64b.x", ".16x128b.x", ".16x256b.x",
                                   ".16x32bx2.x"};
  MmaText const text = MmaText().append(names[static_cast<int>(move.shape)]).append(move.repeat);
  return move.packing == TensorPacking::halves ? MmaText(text).append(halves) : text;
}
/// What follows the address: ", 16", or nothing.
constexpr MmaText tensor_split_text(TensorMove const& move) {
  return move.shape == TensorShape::lanes16_bits32_x2 ? MmaText().append(", ").append(move.split)
                                                      : MmaText();
}
template <TensorMove M> struct TensorLoadText {
  using Shape = MmaCharacters<tensor_shape_text(M, ".pack::16b")>;
  using Split = MmaCharacters<tensor_split_text(M)>;
};
template <TensorMove M> struct TensorStoreText {
  using Shape = MmaCharacters<tensor_shape_text(M, ".unpack::16b")>;
  using Split = MmaCharacters<tensor_split_text(M)>;
};

template <Tcgen05Kind K> struct Tcgen05KindText;
template <> struct Tcgen05KindText<Tcgen05Kind::f16> { static constexpr char text[] = "f16"; };
template <> struct Tcgen05KindText<Tcgen05Kind::tf32> { static constexpr char text[] = "tf32"; };
template <> struct Tcgen05KindText<Tcgen05Kind::f8f6f4> {
  static constexpr char text[] = "f8f6f4";
};
template <> struct Tcgen05KindText<Tcgen05Kind::i8> { static constexpr char text[] = "i8"; };

/// What follows enable-input-d: ", 3".
constexpr MmaText scale_input_text(int scale) {
  return scale == 0 ? MmaText() : MmaText().append(", ").append(scale);
}
template <int Scale> using ScaleInputText = MmaCharacters<scale_input_text(Scale)>;
/// What follows tcgen05.mma: ".ws", or nothing.
constexpr MmaText stationary_text(bool is) { return is ? MmaText().append(".ws") : MmaText(); }
template <bool Is> using StationaryText = MmaCharacters<stationary_text(Is)>;
/// ".collector::a::fill", ".collector::b2::lastuse".
constexpr MmaText collector_text(bool of_b, Collector collector, int buffer) {
  constexpr char const* names[] = {"::discard", "::fill", "::use", "::lastuse"};
  MmaText const text =
      of_b ? MmaText().append(".collector::b").append(buffer) : MmaText().append(".collector::a");
  return MmaText(text).append(names[static_cast<int>(collector)]);
}
template <bool OfB, Collector C, int Buffer>
using CollectorText = MmaCharacters<collector_text(OfB, C, Buffer)>;

}  // namespace detail
#endif

/// Loads, from tensor memory into a warp's registers, `Repeat` repetitions of a shape side by side.
/// All lanes give the same address, whose lane is the first of the warp's own (16 lanes further on
/// for the upper half of them). The registers are there after tcgen05_wait_ld. With
/// TensorPacking::halves a register takes the low 16 bits of two columns side by side. `Split`, of
/// lanes16_bits32_x2: how many columns further on the upper 16 threads load than the lower ones.
template <TensorShape S, int Repeat, TensorPacking P = TensorPacking::none, int Split = 0,
          class Register, int Count>
TEGULA_DEVICE void tcgen05_ld(Register (&registers)[Count], TensorAddr address,
                              [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  constexpr TensorMove move{S, Repeat, P, Split};
  static_assert(sizeof(Register) == 4 && Count == registers_of(move),
                "tcgen05.ld: the shape has other registers");
  static_assert(Split == 0 || S == TensorShape::lanes16_bits32_x2,
                "tcgen05.ld: only lanes16_bits32_x2 is split");
#if TEGULA_GPU
  using Text = detail::TensorLoadText<move>;
  detail::Tcgen05Statement<Count>::template load<typename Text::Shape, typename Text::Split>(
      reinterpret_cast<std::uint32_t(&)[Count]>(registers), address);
#else
  sim::tcgen05_ld(move, registers, address, where);
#endif
}

/// Likewise stores registers to tensor memory. What they held is there after tcgen05_wait_st; the
/// registers themselves are free at once. With TensorPacking::halves the two halves of a register
/// go to the low 16 bits of two columns side by side; what their upper bits are then, the PTX ISA
/// does not say.
template <TensorShape S, int Repeat, TensorPacking P = TensorPacking::none, int Split = 0,
          class Register, int Count>
TEGULA_DEVICE void tcgen05_st(Register const (&registers)[Count], TensorAddr address,
                              [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  constexpr TensorMove move{S, Repeat, P, Split};
  static_assert(sizeof(Register) == 4 && Count == registers_of(move),
                "tcgen05.st: the shape has other registers");
  static_assert(Split == 0 || S == TensorShape::lanes16_bits32_x2,
                "tcgen05.st: only lanes16_bits32_x2 is split");
#if TEGULA_GPU
  using Text = detail::TensorStoreText<move>;
  detail::Tcgen05Statement<Count>::template store<typename Text::Shape, typename Text::Split>(
      reinterpret_cast<std::uint32_t const(&)[Count]>(registers), address);
#else
  sim::tcgen05_st(move, registers, address, where);
#endif
}

/// Waits for all tcgen05_ld of the warp.
TEGULA_DEVICE void tcgen05_wait_ld(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#else
  sim::tcgen05_wait_ld(where);
#endif
}
/// Keeps the compiler from reading loaded registers before this point: after the tcgen05_wait_ld
/// that ends the load. Costs no instruction.
template <class Register, int Count> TEGULA_DEVICE void tcgen05_pin(Register (&registers)[Count]) {
#if TEGULA_GPU
  detail::Tcgen05Statement<Count>::pin(reinterpret_cast<std::uint32_t(&)[Count]>(registers));
#else
  static_cast<void>(registers);
#endif
}

/// Waits for all tcgen05_st of the warp.
TEGULA_DEVICE void tcgen05_wait_st(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
#else
  sim::tcgen05_wait_st(where);
#endif
}

/// What this thread did to tensor memory comes before what it releases from now on.
TEGULA_DEVICE void tcgen05_fence_before_thread_sync(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
#else
  sim::tcgen05_fence_before_thread_sync(where);
#endif
}

/// What this thread does to tensor memory from now on comes after what it has acquired.
TEGULA_DEVICE void tcgen05_fence_after_thread_sync(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
#else
  sim::tcgen05_fence_after_thread_sync(where);
#endif
}

/// Lanes of D that a tcgen05_mma leaves as they are: lane 32 i + j where bit j of word i is set; of
/// a pair the odd CTA's lanes are in the second four words.
template <int Ctas = 1> struct DisabledLanes {
  std::uint32_t words[4 * Ctas] = {};
};

namespace detail {
/// scale-input-d is an immediate of four bits, of kinds f16 and tf32 alone; tcgen05.mma.ws has
/// none.
template <MmaSpec S, int Scale>
inline constexpr bool takes_scale_input = Scale == 0 ||
                                          (Scale > 0 && Scale < 16 && element_bits(S) >= 16 &&
                                           !S.weight_stationary);

/// The instruction itself. `a`: a matrix descriptor, or (TensorAddr) a place in tensor memory.
template <MmaSpec S, int Scale, class OperandA>
TEGULA_DEVICE void start_tcgen05_mma(TensorAddr d, OperandA a, std::uint64_t b_descriptor,
                                     bool accumulate, [[maybe_unused]] SourceLocation where) {
  static_assert(is_tensor_memory_mma(S));
  static_assert(takes_scale_input<S, Scale>,
                "tcgen05_mma: scale-input-d is 0 to 15, and 0 but of kinds f16 and tf32");
  constexpr std::uint32_t instruction = tcgen05_instruction_descriptor(S);
#if TEGULA_GPU
  using Kind = Tcgen05KindText<tcgen05_kind(S)>;
  using Stationary = StationaryText<S.weight_stationary>;
  std::uint32_t const p = static_cast<std::uint32_t>(accumulate);
  if constexpr (sizeof(OperandA) == 8) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma%8.cta_group::%6.kind::%5 [%0], %1, %2, %3, p%7; }" ::
            "r"(d),
        "l"(a), "l"(b_descriptor), "r"(instruction), "r"(p), "C"(Kind::text), "n"(S.ctas),
        "C"(ScaleInputText<Scale>::value), "C"(Stationary::value)
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma%8.cta_group::%6.kind::%5 [%0], [%1], %2, %3, p%7; }" ::
            "r"(d),
        "r"(a), "l"(b_descriptor), "r"(instruction), "r"(p), "C"(Kind::text), "n"(S.ctas),
        "C"(ScaleInputText<Scale>::value), "C"(Stationary::value)
        : "memory");
  }
#else
  sim::tcgen05_mma(tcgen05_kind(S), {S.operands, S.ctas, S.weight_stationary, Scale, nullptr}, d, a,
                   b_descriptor, instruction, accumulate, where);
#endif
}

/// The same with lanes that it leaves as they are.
template <MmaSpec S, int Scale, class OperandA>
TEGULA_DEVICE void start_tcgen05_mma(TensorAddr d, OperandA a, std::uint64_t b_descriptor,
                                     bool accumulate, DisabledLanes<S.ctas> const& disabled,
                                     [[maybe_unused]] SourceLocation where) {
  static_assert(is_tensor_memory_mma(S) && !S.weight_stationary,
                "tcgen05_mma: tcgen05.mma.ws writes all lanes");
  static_assert(takes_scale_input<S, Scale>,
                "tcgen05_mma: scale-input-d is 0 to 15, and 0 but of kinds f16 and tf32");
  constexpr std::uint32_t instruction = tcgen05_instruction_descriptor(S);
#if TEGULA_GPU
  using Kind = Tcgen05KindText<tcgen05_kind(S)>;
  using Scaled = ScaleInputText<Scale>;
  std::uint32_t const p = static_cast<std::uint32_t>(accumulate);
  std::uint32_t const(&w)[4 * S.ctas] = disabled.words;
  if constexpr (S.ctas == 1 && sizeof(OperandA) == 8) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::%5 [%0], %1, %2, %3, {%7, %8, %9, %10}, p%6; }" ::
            "r"(d),
        "l"(a), "l"(b_descriptor), "r"(instruction), "r"(p), "C"(Kind::text), "C"(Scaled::value),
        "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
        : "memory");
  } else if constexpr (S.ctas == 1) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::%5 [%0], [%1], %2, %3, {%7, %8, %9, %10}, p%6; }" ::
            "r"(d),
        "r"(a), "l"(b_descriptor), "r"(instruction), "r"(p), "C"(Kind::text), "C"(Scaled::value),
        "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
        : "memory");
  } else if constexpr (sizeof(OperandA) == 8) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::2.kind::%5 [%0], %1, %2, %3, {%7, %8, %9, %10, %11, %12, %13, %14}, p%6; }" ::
            "r"(d),
        "l"(a), "l"(b_descriptor), "r"(instruction), "r"(p), "C"(Kind::text), "C"(Scaled::value),
        "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(w[4]), "r"(w[5]), "r"(w[6]), "r"(w[7])
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::2.kind::%5 [%0], [%1], %2, %3, {%7, %8, %9, %10, %11, %12, %13, %14}, p%6; }" ::
            "r"(d),
        "r"(a), "l"(b_descriptor), "r"(instruction), "r"(p), "C"(Kind::text), "C"(Scaled::value),
        "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(w[4]), "r"(w[5]), "r"(w[6]), "r"(w[7])
        : "memory");
  }
#else
  sim::tcgen05_mma(tcgen05_kind(S), {S.operands, S.ctas, false, Scale, disabled.words}, d, a,
                   b_descriptor, instruction, accumulate, where);
#endif
}

/// One that uses a collector buffer.
template <MmaSpec S, Collector C, int Buffer, class OperandA>
TEGULA_DEVICE void start_collected_mma(TensorAddr d, OperandA a, std::uint64_t b_descriptor,
                                       bool accumulate, [[maybe_unused]] SourceLocation where) {
  static_assert(is_tensor_memory_mma(S));
  static_assert(Buffer >= 0 && Buffer < (S.weight_stationary ? 4 : 1),
                "tcgen05_mma_collected: A has one collector buffer, a weight-stationary B four");
  constexpr std::uint32_t instruction = tcgen05_instruction_descriptor(S);
#if TEGULA_GPU
  using Kind = Tcgen05KindText<tcgen05_kind(S)>;
  using Stationary = StationaryText<S.weight_stationary>;
  using Collects = CollectorText<S.weight_stationary, C, Buffer>;
  std::uint32_t const p = static_cast<std::uint32_t>(accumulate);
  if constexpr (sizeof(OperandA) == 8) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma%8.cta_group::%6.kind::%5%7 [%0], %1, %2, %3, p; }" ::
            "r"(d),
        "l"(a), "l"(b_descriptor), "r"(instruction), "r"(p), "C"(Kind::text), "n"(S.ctas),
        "C"(Collects::value), "C"(Stationary::value)
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma%8.cta_group::%6.kind::%5%7 [%0], [%1], %2, %3, p; }" ::
            "r"(d),
        "r"(a), "l"(b_descriptor), "r"(instruction), "r"(p), "C"(Kind::text), "n"(S.ctas),
        "C"(Collects::value), "C"(Stationary::value)
        : "memory");
  }
#else
  sim::tcgen05_mma(tcgen05_kind(S),
                   {S.operands, S.ctas, S.weight_stationary, 0, nullptr, 0, C, Buffer}, d, a,
                   b_descriptor, instruction, accumulate, where);
#endif
}

/// A weight-stationary one with columns of B that it takes for zeros.
template <MmaSpec S, class OperandA>
TEGULA_DEVICE void start_tcgen05_mma(TensorAddr d, OperandA a, std::uint64_t b_descriptor,
                                     bool accumulate, ZeroColumns const& columns,
                                     [[maybe_unused]] SourceLocation where) {
  static_assert(S.weight_stationary, "tcgen05_mma: only tcgen05.mma.ws has a mask of zero columns");
  constexpr std::uint32_t instruction = tcgen05_instruction_descriptor(S);
#if TEGULA_GPU
  using Kind = Tcgen05KindText<tcgen05_kind(S)>;
  std::uint32_t const p = static_cast<std::uint32_t>(accumulate);
  if constexpr (sizeof(OperandA) == 8) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.ws.cta_group::1.kind::%5 [%0], %1, %2, %3, p, %6; }" ::
            "r"(d),
        "l"(a), "l"(b_descriptor), "r"(instruction), "r"(p), "C"(Kind::text), "l"(columns.bits())
        : "memory");
  } else {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.ws.cta_group::1.kind::%5 [%0], [%1], %2, %3, p, %6; }" ::
            "r"(d),
        "r"(a), "l"(b_descriptor), "r"(instruction), "r"(p), "C"(Kind::text), "l"(columns.bits())
        : "memory");
  }
#else
  sim::tcgen05_mma(tcgen05_kind(S), {S.operands, S.ctas, true, 0, nullptr, columns.bits()}, d, a,
                   b_descriptor, instruction, accumulate, where);
#endif
}
}  // namespace detail

/// D(m, n) = A * B + (accumulate ? D : 0), with D in tensor memory, row i of it in lane i (m 64: in
/// lane i of each 16, the next 16 rows 32 lanes on) and a column for each of its n, of which an
/// element of f16 is the low half; A and B in shared memory, given by matrix descriptors, 16
/// elements of 6 or 4 bits in the first of 16 bytes. Started by one thread; those of one thread, of
/// one shape and kind, are performed in their order. From its start until a tcgen05_commit after it
/// has arrived and been waited for, D belongs to the tensor core, and so do A and B as they are
/// read.
///
/// Of a pair of CTAs (S.ctas), one thread of one of them starts it. The even CTA has the first half
/// of A's rows and of B's, the odd CTA the second, each in its own shared memory where the
/// descriptors say. D lies at the same address of both: of m 256 a row of its half in each lane; of
/// m 128 row i of its half in lane i, columns 0 to n / 2 - 1, and in lane 64 + i the others.
///
/// Weight-stationary (weight_stationary_mma), row i is in lane i, too, and all lanes are used: of m
/// 64 lane 64 + i has the upper half of row i's columns, of m 32 lane 32 j + i the quarter j.
///
/// With `ScaleInputD` (kinds f16 and tf32), D = A * B + 2^-ScaleInputD D.
template <MmaSpec S, int ScaleInputD = 0>
TEGULA_DEVICE void tcgen05_mma(TensorAddr d, std::uint64_t a_descriptor, std::uint64_t b_descriptor,
                               bool accumulate,
                               [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.operands == MmaOperands::ss,
                "tcgen05_mma: the spec is of none with A in shared memory");
  detail::start_tcgen05_mma<S, ScaleInputD>(d, a_descriptor, b_descriptor, accumulate, where);
}
/// The same, but for lanes of D that stay as they are.
template <MmaSpec S, int ScaleInputD = 0>
TEGULA_DEVICE void tcgen05_mma(TensorAddr d, std::uint64_t a_descriptor, std::uint64_t b_descriptor,
                               bool accumulate, DisabledLanes<S.ctas> const& disabled,
                               [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.operands == MmaOperands::ss,
                "tcgen05_mma: the spec is of none with A in shared memory");
  detail::start_tcgen05_mma<S, ScaleInputD>(d, a_descriptor, b_descriptor, accumulate, disabled,
                                            where);
}

/// The same of a weight-stationary product that takes columns of B for zeros.
template <MmaSpec S>
TEGULA_DEVICE void tcgen05_mma(TensorAddr d, std::uint64_t a_descriptor, std::uint64_t b_descriptor,
                               bool accumulate, ZeroColumns const& columns,
                               [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.operands == MmaOperands::ss,
                "tcgen05_mma: the spec is of none with A in shared memory");
  detail::start_tcgen05_mma<S>(d, a_descriptor, b_descriptor, accumulate, columns, where);
}

/// The same with A in tensor memory: row i in a lane as of D, its K elements packed into eight
/// columns, of 6 or 4 bits a byte each (tcgen05_cp). Where D's columns lie in parts (column_parts),
/// the lanes of each part have a copy of A.
template <MmaSpec S, int ScaleInputD = 0>
TEGULA_DEVICE void tcgen05_mma_ts(
    TensorAddr d, TensorAddr a, std::uint64_t b_descriptor, bool accumulate,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.operands == MmaOperands::ts,
                "tcgen05_mma_ts: the spec is of none with A in tensor memory");
  detail::start_tcgen05_mma<S, ScaleInputD>(d, a, b_descriptor, accumulate, where);
}
template <MmaSpec S, int ScaleInputD = 0>
TEGULA_DEVICE void tcgen05_mma_ts(
    TensorAddr d, TensorAddr a, std::uint64_t b_descriptor, bool accumulate,
    DisabledLanes<S.ctas> const& disabled,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.operands == MmaOperands::ts,
                "tcgen05_mma_ts: the spec is of none with A in tensor memory");
  detail::start_tcgen05_mma<S, ScaleInputD>(d, a, b_descriptor, accumulate, disabled, where);
}
template <MmaSpec S>
TEGULA_DEVICE void tcgen05_mma_ts(
    TensorAddr d, TensorAddr a, std::uint64_t b_descriptor, bool accumulate,
    ZeroColumns const& columns, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.operands == MmaOperands::ts,
                "tcgen05_mma_ts: the spec is of none with A in tensor memory");
  detail::start_tcgen05_mma<S>(d, a, b_descriptor, accumulate, columns, where);
}

/// As tcgen05_mma, or tcgen05_mma_ts, with a collector buffer: of A, or, weight-stationary, buffer
/// `Buffer` of B. What `use` and `last_use` take from it is what a `fill` before them put there,
/// and must be what memory still has.
template <MmaSpec S, Collector C, int Buffer = 0>
TEGULA_DEVICE void tcgen05_mma_collected(
    TensorAddr d, std::uint64_t a_descriptor, std::uint64_t b_descriptor, bool accumulate,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.operands == MmaOperands::ss,
                "tcgen05_mma_collected: the spec is of none with A in shared memory");
  detail::start_collected_mma<S, C, Buffer>(d, a_descriptor, b_descriptor, accumulate, where);
}
template <MmaSpec S, Collector C, int Buffer = 0>
TEGULA_DEVICE void tcgen05_mma_collected_ts(
    TensorAddr d, TensorAddr a, std::uint64_t b_descriptor, bool accumulate,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(S.operands == MmaOperands::ts,
                "tcgen05_mma_collected_ts: the spec is of none with A in tensor memory");
  detail::start_collected_mma<S, C, Buffer>(d, a, b_descriptor, accumulate, where);
}

/// Arrives at an mbarrier of this CTA, once, when all tcgen05_mma that this thread has started are
/// over.
template <int Ctas = 1>
TEGULA_DEVICE void tcgen05_commit(
    SharedAddr mbarrier, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                   mbarrier),
               "n"(Ctas)
               : "memory");
#else
  sim::tcgen05_commit(mbarrier, Ctas, 0, where);
#endif
}

/// As tcgen05_commit, at the mbarrier at the same place in each CTA of the cluster whose bit is set
/// in `cta_mask`.
template <int Ctas = 1>
TEGULA_DEVICE void tcgen05_commit_multicast(
    SharedAddr mbarrier, std::uint16_t cta_mask,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile(
      "tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;" ::"r"(mbarrier),
      "h"(cta_mask), "n"(Ctas)
      : "memory");
#else
  sim::tcgen05_commit(mbarrier, Ctas, cta_mask, where);
#endif
}

}  // namespace tegula
