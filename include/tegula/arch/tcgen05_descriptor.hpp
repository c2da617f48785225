#pragma once

#include <cstdint>

#include "tegula/arch/wgmma_descriptor.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/macros.hpp"

/// What tcgen05.mma is told of its operands: the instruction descriptor, and the matrix descriptors
/// of those in shared memory. PTX ISA, "Instruction descriptor", "Shared memory descriptor".
namespace tegula {

/// .kind of a tcgen05.mma.
enum class Tcgen05Kind : std::uint8_t { f16, tf32, f8f6f4, i8 };

TEGULA_HOST_DEVICE constexpr Tcgen05Kind tcgen05_kind(MmaSpec const& s) {
  return s.d == DType::s32      ? Tcgen05Kind::i8
         : element_bits(s) == 8 ? Tcgen05Kind::f8f6f4
         : s.a == DType::tf32   ? Tcgen05Kind::tf32
                                : Tcgen05Kind::f16;
}

namespace detail {
/// The number of an operand's type within its kind.
TEGULA_HOST_DEVICE constexpr std::uint32_t tcgen05_format(DType type) {
  switch (type) {
    case DType::bf16:
    case DType::e5m2:
    case DType::s8:
      return 1;
    case DType::tf32:
      return 2;
    case DType::e2m3:
      return 3;
    case DType::e3m2:
      return 4;
    case DType::e2m1:
      return 5;
    default:  // f16, e4m3, u8
      return 0;
  }
}
/// The type of kinds f8f6f4 and mxf8f6f4 with this number; e4m3 where there is none.
constexpr DType narrow_float(std::uint32_t number) {
  constexpr DType types[] = {DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1};
  for (DType const type : types) {
    if (tcgen05_format(type) == number) return type;
  }
  return DType::e4m3;
}
/// The number of the accumulators' type.
TEGULA_HOST_DEVICE constexpr std::uint32_t tcgen05_accumulator(DType type) {
  return type == DType::f16 ? 0 : type == DType::s32 ? 2 : 1;
}
}  // namespace detail

/// The instruction descriptor of kinds f16, tf32, f8f6f4 and i8: saturation of integers bit 3; type
/// of D from bit 4 (f16 0, f32 1, s32 2), of A from bit 7, of B from bit 10; negation of A and B
/// bits 13 and 14; MN-major A and B bits 15 and 16; n / 8 from bit 17, m / 16 from bit 24.
TEGULA_HOST_DEVICE constexpr std::uint32_t tcgen05_instruction_descriptor(MmaSpec const& s) {
  return (s.variant == MmaVariant::saturate ? 1u : 0u) << 3 |
         detail::tcgen05_accumulator(s.d) << 4 | detail::tcgen05_format(s.a) << 7 |
         detail::tcgen05_format(s.b) << 10 | (s.negate_a ? 1u : 0u) << 13 |
         (s.negate_b ? 1u : 0u) << 14 | (s.a_major == Major::mn ? 1u : 0u) << 15 |
         (s.b_major == Major::mn ? 1u : 0u) << 16 | static_cast<std::uint32_t>(s.n / 8) << 17 |
         static_cast<std::uint32_t>(s.m / 16) << 24;
}

/// Columns of B, its rows where it is K-major, that a weight-stationary product takes for zeros,
/// whatever they hold: `used` that it takes as they are and `zeros` that it does not, in turn. Each
/// part of the columns (column_parts) counts for itself, from a run of zeros or of others on, of
/// which it leaves out the first `start`. PTX ISA, "Zero-Column Mask Descriptor", by its examples;
/// a shift of B's columns, which is in it, too, is not here.
struct ZeroColumns {
  struct Part {
    int start = 0;
    bool zeros_first = false;
  };
  int used = 1, zeros = 1;  ///< 1 to 256
  Part part[4] = {};

  /// The descriptor.
  TEGULA_HOST_DEVICE constexpr std::uint64_t bits() const {
    std::uint64_t all = std::uint64_t{1} << 39 | static_cast<std::uint64_t>(zeros - 1) << 40 |
                        static_cast<std::uint64_t>(used - 1) << 48;
    for (int i = 0; i < 4; ++i) {
      all |= static_cast<std::uint64_t>(part[i].start) << 8 * i;
      all |= static_cast<std::uint64_t>(part[i].zeros_first ? 1 : 0) << (32 + i);
    }
    return all;
  }
};
/// Whether such a descriptor says so of a column, number `column` of a part.
constexpr bool is_zero_column(std::uint64_t bits, int part, int column) {
  if ((bits >> 39 & 1) == 0) return false;
  bool const zeros_first = (bits >> (32 + part) & 1) != 0;
  int const zeros = static_cast<int>(bits >> 40 & 255) + 1,
            used = static_cast<int>(bits >> 48 & 255) + 1,
            start = static_cast<int>(bits >> 8 * part & 255);
  bool const in_first = (column + start) % (zeros + used) < (zeros_first ? zeros : used);
  return in_first == zeros_first;
}

/// What becomes of a collector buffer, in which the tensor core keeps an operand for products that
/// follow: A, or, where they are weight-stationary, B, which has four buffers.
enum class Collector : std::uint8_t {
  discard,   ///< what it holds need not be kept: the default
  fill,      ///< the operand is kept
  use,       ///< the operand, which it holds, may be taken from it, and is kept
  last_use,  ///< it may be taken from it, and need not be kept
};

/// What a tcgen05.mma is besides what its instruction descriptor says.
struct Tcgen05Form {
  MmaOperands operands = MmaOperands::ss;
  int ctas = 1;
  bool weight_stationary = false;
  int scale_input_d = 0;                          ///< D counts 2^-scale_input_d
  std::uint32_t const* disabled_lanes = nullptr;  ///< four words for each CTA; null: none is
  std::uint64_t zero_columns = 0;                 ///< ZeroColumns::bits(); 0: there are none
  Collector collector = Collector::discard;
  int collector_buffer = 0;  ///< of B: 0 to 3
};

/// What the fields of an instruction descriptor mean, unchecked (tensor_memory_mma refuses what is
/// no instruction). Bits that stand for what the simulated machine has not, and formats that the
/// kind has not, are in `unknown`.
struct Tcgen05Instruction {
  MmaSpec spec;
  std::uint32_t unknown = 0;
};
/// Of these the bits that ask for sparsity (.sp): the selector of its metadata, and the flag.
inline constexpr std::uint32_t kSparsityBits = 7;
constexpr Tcgen05Instruction decode_tcgen05_instruction(Tcgen05Kind kind, Tcgen05Form const& form,
                                                        std::uint32_t bits_) {
  auto const format = [&](std::uint32_t number) {
    if (kind == Tcgen05Kind::tf32) return DType::tf32;
    if (kind == Tcgen05Kind::f16) return number == 1 ? DType::bf16 : DType::f16;
    if (kind == Tcgen05Kind::i8) return number == 1 ? DType::s8 : DType::u8;
    return detail::narrow_float(number);
  };
  std::uint32_t const a = bits_ >> 7 & 7, b = bits_ >> 10 & 7;
  DType const d = kind == Tcgen05Kind::i8 ? DType::s32
                  : (bits_ >> 4 & 3) == 0 ? DType::f16
                                          : DType::f32;
  MmaSpec const spec = {.sm = 100,
                        .m = static_cast<int>(bits_ >> 24 & 31) * 16,
                        .n = static_cast<int>(bits_ >> 17 & 63) * 8,
                        .k = 256 / operand_bits(format(a)),
                        .d = d,
                        .a = format(a),
                        .b = format(b),
                        .c = d,
                        .variant = (bits_ >> 3 & 1) != 0 ? MmaVariant::saturate : MmaVariant::plain,
                        .operands = form.operands,
                        .a_major = (bits_ >> 15 & 1) != 0 ? Major::mn : Major::k,
                        .b_major = (bits_ >> 16 & 1) != 0 ? Major::mn : Major::k,
                        .negate_a = (bits_ >> 13 & 1) != 0,
                        .negate_b = (bits_ >> 14 & 1) != 0,
                        .ctas = form.ctas,
                        .weight_stationary = form.weight_stationary};
  return {spec, bits_ ^ tcgen05_instruction_descriptor(spec)};
}

/// Bits 32 to 63 of the matrix descriptor of an operand that tcgen05.mma reads: the distances mean
/// what they mean to wgmma; bits 46 to 48 are 1, and the swizzle's number begins at bit 61. Bits 0
/// to 31 are wgmma's.
TEGULA_HOST_DEVICE constexpr std::uint32_t tcgen05_descriptor_high(WgmmaDescriptor const& d) {
  std::uint32_t const mode = d.swizzle_bytes == 0     ? 0
                             : d.swizzle_bytes == 128 ? 2
                             : d.swizzle_bytes == 64  ? 4
                                                      : 6;
  return static_cast<std::uint32_t>(d.stride_offset >> 4) | 1u << 14 | mode << 29;
}

/// wgmma's descriptor of the same operand, by which what both read is found; `valid` is false where
/// a bit is not what this generation wants.
struct Tcgen05Operand {
  std::uint64_t as_wgmma = 0;
  bool valid = false;
};
constexpr Tcgen05Operand decode_tcgen05_descriptor(std::uint64_t bits) {
  std::uint64_t const mode = bits >> 61;
  std::uint64_t const as_wgmma_mode = mode == 2 ? 1 : mode == 4 ? 2 : mode == 6 ? 3 : 0;
  bool const known = mode == 0 || mode == 2 || mode == 4 || mode == 6;
  std::uint64_t const fields = bits & 0x3fff'3fff'3fffull;
  bool const rest = (bits & ~(std::uint64_t{7} << 61)) == (fields | std::uint64_t{1} << 46);
  return {fields | as_wgmma_mode << 62, known && rest};
}

}  // namespace tegula
