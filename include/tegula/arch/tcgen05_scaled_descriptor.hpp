#pragma once

#include <cstdint>

#include "tegula/arch/tcgen05_descriptor.hpp"
#include "tegula/atom/scaled_mma_spec.hpp"
#include "tegula/macros.hpp"
#include "tegula/numeric/dtype.hpp"

/// The instruction descriptor of a tcgen05.mma with block scales: PTX ISA, "Instruction
/// descriptor", kinds mxf8f6f4, mxf4 and mxf4nvf4.
namespace tegula {

/// Which byte of its column the scales of A, or of B, begin at: with one scale a row 0 to 3, with
/// two 0 or 2, with four 0.
struct ScaleIds {
  int a = 0, b = 0;
};

namespace detail {
/// The number of an operand's type: of mxf8f6f4; of the kinds of four bits, e2m1's is 1.
TEGULA_HOST_DEVICE constexpr std::uint32_t scaled_format(ScaledMmaKind kind, DType type) {
  return kind == ScaledMmaKind::mxf8f6f4 ? tcgen05_format(type) : 1;
}
}  // namespace detail

/// The scale of B's number from bit 4, type of A from bit 7, of B from bit 10; negation of A and B
/// bits 13 and 14; MN-major A and B bits 15 and 16; n / 8 from bit 17; ue8m0 scales bit 23; m / 128
/// from bit 27; the scale of A's number from bit 29.
TEGULA_HOST_DEVICE constexpr std::uint32_t tcgen05_scaled_descriptor(ScaledMmaSpec const& s,
                                                                     ScaleIds ids) {
  return static_cast<std::uint32_t>(ids.b) << 4 | detail::scaled_format(s.kind, s.a) << 7 |
         detail::scaled_format(s.kind, s.b) << 10 | (s.negate_a ? 1u : 0u) << 13 |
         (s.negate_b ? 1u : 0u) << 14 | (s.a_major == Major::mn ? 1u : 0u) << 15 |
         (s.b_major == Major::mn ? 1u : 0u) << 16 | static_cast<std::uint32_t>(s.n / 8) << 17 |
         (s.scale == DType::ue8m0 ? 1u : 0u) << 23 | static_cast<std::uint32_t>(s.m / 128) << 27 |
         static_cast<std::uint32_t>(ids.a) << 29;
}

/// What the fields mean, unchecked; bits that mean nothing that the simulated machine has are in
/// `unknown`.
struct Tcgen05ScaledInstruction {
  ScaledMmaSpec spec;
  ScaleIds ids;
  std::uint32_t unknown = 0;
};
constexpr Tcgen05ScaledInstruction decode_tcgen05_scaled(ScaledMmaKind kind, int block,
                                                         std::uint32_t bits_, int ctas = 1,
                                                         bool a_in_tensor_memory = false) {
  auto const type = [&](std::uint32_t number) {
    return kind == ScaledMmaKind::mxf8f6f4 ? detail::narrow_float(number) : DType::e2m1;
  };
  ScaledMmaSpec const spec{.kind = kind,
                           .m = static_cast<int>(bits_ >> 27 & 3) * 128,
                           .n = static_cast<int>(bits_ >> 17 & 63) * 8,
                           .a = type(bits_ >> 7 & 7),
                           .b = type(bits_ >> 10 & 7),
                           .scale = (bits_ >> 23 & 1) != 0 ? DType::ue8m0 : DType::ue4m3,
                           .block = block,
                           .ctas = ctas,
                           .a_in_tensor_memory = a_in_tensor_memory,
                           .a_major = (bits_ >> 15 & 1) != 0 ? Major::mn : Major::k,
                           .b_major = (bits_ >> 16 & 1) != 0 ? Major::mn : Major::k,
                           .negate_a = (bits_ >> 13 & 1) != 0,
                           .negate_b = (bits_ >> 14 & 1) != 0};
  ScaleIds const ids{static_cast<int>(bits_ >> 29 & 3), static_cast<int>(bits_ >> 4 & 3)};
  return {spec, ids, bits_ ^ tcgen05_scaled_descriptor(spec, ids)};
}

}  // namespace tegula
