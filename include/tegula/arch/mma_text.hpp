#pragma once

#include "tegula/arch/assembler_text.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/macros.hpp"

#if TEGULA_GPU

/// What of an instruction's text follows from its spec, as the "C" constraint of inline PTX takes
/// it: the name's qualifiers behind "mma.sync.aligned." and "wgmma.mma_async.sync.aligned.", and
/// wgmma's immediates.
namespace tegula::detail {

using MmaText = AssemblerText<48>;

/// "m16n8k16.row.col.f32.bf16.bf16.f32"; "m16n8k256.row.col.s32.b1.b1.s32.and.popc";
/// "m64n128k16.f32.bf16.bf16".
constexpr MmaText mma_qualifiers(MmaSpec const& s) {
  bool const warp = s.operands == MmaOperands::warp;
  bool const saturates = s.variant == MmaVariant::saturate;
  MmaText name;
  name.append("m").append(s.m).append("n").append(s.n).append("k").append(s.k);
  if (warp) name.append(".row.col").append(saturates ? ".satfinite" : "");
  name.append(".")
      .append(to_string(s.d))
      .append(".")
      .append(to_string(s.a))
      .append(".")
      .append(to_string(s.b));
  if (!warp) return name.append(saturates ? ".satfinite" : "");
  name.append(".").append(to_string(s.c));
  if (s.variant == MmaVariant::xor_popc) name.append(".xor.popc");
  if (s.variant == MmaVariant::and_popc) name.append(".and.popc");
  return name;
}

/// What follows scale-d of a wgmma: imm-scale-a, imm-scale-b and, for 16-bit types, imm-trans-a (A
/// in shared memory) and imm-trans-b.
constexpr MmaText wgmma_immediates(MmaSpec const& s) {
  MmaText tail;
  if (s.d == DType::s32) return tail;
  tail.append(s.negate_a ? ", -1" : ", 1").append(s.negate_b ? ", -1" : ", 1");
  if (element_bits(s) != 16) return tail;
  if (s.operands == MmaOperands::ss) tail.append(s.a_major == Major::mn ? ", 1" : ", 0");
  return tail.append(s.b_major == Major::mn ? ", 1" : ", 0");
}

template <MmaText T> using MmaCharacters = AssemblerCharacters<T>;

/// Both texts of an instruction.
template <MmaSpec S> struct MmaTexts {
  using Name = MmaCharacters<mma_qualifiers(S)>;
  using Tail = MmaCharacters<wgmma_immediates(S)>;
};

}  // namespace tegula::detail

#endif
