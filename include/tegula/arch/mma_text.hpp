#pragma once

#include <utility>

#include "tegula/atom/mma_spec.hpp"
#include "tegula/macros.hpp"

#if TEGULA_GPU

/// What of an instruction's text follows from its spec, as the "C" constraint of inline PTX takes
/// it: the name's qualifiers behind "mma.sync.aligned." and "wgmma.mma_async.sync.aligned.", and
/// wgmma's immediates.
namespace tegula::detail {

/// A text of the assembler, put together at compile time.
struct MmaText {
  char text[48] = {};
  int length = 0;

  constexpr MmaText& append(char const* s) {
    while (*s != '\0') text[length++] = *s++;
    return *this;
  }
  constexpr MmaText& append(int value) {
    if (value >= 10) append(value / 10);
    text[length++] = static_cast<char>('0' + value % 10);
    return *this;
  }
};

/// "m16n8k16.row.col.f32.bf16.bf16.f32"; "m64n128k16.f32.bf16.bf16".
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
  return warp ? name.append(".").append(to_string(s.c))
              : name.append(saturates ? ".satfinite" : "");
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

/// A text as an array of its characters.
template <MmaText T, class Places = std::make_integer_sequence<int, T.length>> struct MmaCharacters;
template <MmaText T, int... Places> struct MmaCharacters<T, std::integer_sequence<int, Places...>> {
  static constexpr char value[] = {T.text[Places]..., '\0'};
};

/// Both texts of an instruction.
template <MmaSpec S> struct MmaTexts {
  using Name = MmaCharacters<mma_qualifiers(S)>;
  using Tail = MmaCharacters<wgmma_immediates(S)>;
};

}  // namespace tegula::detail

#endif
