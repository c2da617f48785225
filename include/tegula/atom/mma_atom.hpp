#pragma once

#include <cstdint>
#include <string_view>

#include "tegula/atom/name.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/numeric/dtype.hpp"

/// The warp-wide matrix multiply-accumulate instructions as values. Their (thread, value) layouts follow from
/// one rule of the PTX ISA
/// ("Matrix Fragments for mma.m16n8k*"), so they are computed from the shape and the element widths, not
/// listed.
namespace tegula {

/// One matrix multiply-accumulate instruction, D = A B + C, as a value.
///
/// `a`, `b` and `c` map (thread, value) to the flat column-major index of an element: `a` to m + M*k, `b` to
/// n + N*k, `c` (and D) to m + M*n. `value` counts the elements a thread holds, in register order, low bits
/// first.
struct MmaAtom {
  Name name;
  int m = 0;
  int n = 0;
  int k = 0;
  int threads = 0;
  DType a_type{};
  DType b_type{};
  DType c_type{};
  DType d_type{};
  Layout a;
  Layout b;
  Layout c;

  friend constexpr bool operator==(MmaAtom const&, MmaAtom const&) = default;
};

/// What distinguishes two instructions of the same shape and types.
enum class MmaVariant : std::uint8_t { plain, saturate, xor_popc, and_popc };

/// An instruction before its layouts are computed: what its name says.
struct MmaSpec {
  int sm = 0;  // the architecture that introduced it: 75, 80, 89
  int m = 0, n = 0, k = 0;
  DType d{}, a{}, b{}, c{};
  MmaVariant variant = MmaVariant::plain;
};

namespace detail {

/// The type as it is spelled in instruction names.
constexpr std::string_view instruction_type_name(DType type) {
  switch (type) {
    case DType::f64:
      return "F64";
    case DType::f32:
      return "F32";
    case DType::tf32:
      return "TF32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::e4m3:
      return "E4M3";
    case DType::e5m2:
      return "E5M2";
    case DType::s32:
      return "S32";
    case DType::s8:
      return "S8";
    case DType::u8:
      return "U8";
    case DType::s4:
      return "S4";
    case DType::u4:
      return "U4";
    case DType::b1:
      return "U1";
    default:
      return "?";
  }
}

/// The fragment of a `rows` x `columns` operand whose 32-bit register holds `per_register` elements adjacent
/// along the columns. PTX ISA, mma.m16n8k*: with group = lane / 4 and t = lane % 4, element j of register r
/// lies at
///   row = group + 8 * (r % (rows / 8)),  column = t * per_register + j + 4 * per_register * (r / (rows /
///   8)).
/// Result: ((4,8),(per_register, rows/8, columns/(4*per_register))) with extents of 1 left out.
constexpr Layout warp_fragment(int rows, int columns, int per_register) {
  Layout const thread = layout(shape(4, 8), stride(rows * per_register, 1));
  Layout const modes[3] = {layout(per_register, rows), layout(rows / 8, 8),
                           layout(columns / (4 * per_register), 4 * per_register * rows)};
  Layout kept[3];
  int count = 0;
  for (Layout const& mode : modes) {
    if (mode.size() > 1) {
      kept[count++] = mode;
    }
  }
  switch (count) {
    case 0:
      return make_layout(thread, layout(1, 0));
    case 1:
      return make_layout(thread, kept[0]);
    case 2:
      return make_layout(thread, make_layout(kept[0], kept[1]));
    default:
      return make_layout(thread, make_layout(kept[0], kept[1], kept[2]));
  }
}

constexpr int elements_per_register(DType type) { return bits(type) >= 32 ? 1 : 32 / bits(type); }

}  // namespace detail

/// The name of an instruction in the field's spelling: SM80_16x8x16_F32F16F16F32_TN, types in the order D A B
/// C.
constexpr Name mma_name(MmaSpec const& s) {
  Name name;
  name.append("SM");
  name.append(s.sm).append("_").append(s.m).append("x").append(s.n).append("x").append(s.k).append("_");
  name.append(detail::instruction_type_name(s.d)).append(detail::instruction_type_name(s.a));
  name.append(detail::instruction_type_name(s.b)).append(detail::instruction_type_name(s.c)).append("_TN");
  switch (s.variant) {
    case MmaVariant::plain:
      break;
    case MmaVariant::saturate:
      name.append("_SATURATE");
      break;
    case MmaVariant::xor_popc:
      name.append("_XORPOPC");
      break;
    case MmaVariant::and_popc:
      name.append("_ANDPOPC");
      break;
  }
  return name;
}

/// The instruction with its layouts. A is (M,K) row-major in memory and B is (N,K) row-major ("TN"): both K
/// contiguous.
constexpr MmaAtom mma_atom(MmaSpec const& s) {
  return MmaAtom{
      .name = mma_name(s),
      .m = s.m,
      .n = s.n,
      .k = s.k,
      .threads = 32,
      .a_type = s.a,
      .b_type = s.b,
      .c_type = s.c,
      .d_type = s.d,
      .a = detail::warp_fragment(s.m, s.k, detail::elements_per_register(s.a)),
      .b = detail::warp_fragment(s.n, s.k, detail::elements_per_register(s.b)),
      .c = detail::warp_fragment(s.m, s.n, 2)};  // accumulators lie in pairs along n, whatever their width
}

/// Calls `visit(MmaSpec)` for every instruction of the catalogue, until one call returns true; returns
/// whether one did. Sources: PTX ISA, "Warp-level matrix instructions: mma".
template <class Visit> constexpr bool any_mma(Visit&& visit) {
  using enum DType;
  struct Family {
    int sm;
    DType d, a, b, c;
    int m, first_k, last_k;  // K doubles from first_k to last_k
  };
  constexpr Family floating[] = {
      {75, f16, f16, f16, f16, 16, 8, 8},     {75, f32, f16, f16, f32, 16, 8, 8},
      {80, f16, f16, f16, f16, 16, 8, 16},    {80, f32, f16, f16, f32, 16, 8, 16},
      {80, f32, bf16, bf16, f32, 16, 8, 16},  {80, f32, tf32, tf32, f32, 16, 4, 8},
      {80, f64, f64, f64, f64, 8, 4, 4},      {89, f32, e4m3, e4m3, f32, 16, 32, 32},
      {89, f32, e4m3, e5m2, f32, 16, 32, 32}, {89, f32, e5m2, e4m3, f32, 16, 32, 32},
      {89, f32, e5m2, e5m2, f32, 16, 32, 32}, {89, f16, e4m3, e4m3, f16, 16, 32, 32},
      {89, f16, e4m3, e5m2, f16, 16, 32, 32}, {89, f16, e5m2, e4m3, f16, 16, 32, 32},
      {89, f16, e5m2, e5m2, f16, 16, 32, 32}, {75, s32, s8, s8, s32, 8, 16, 16},
  };
  for (Family const& f : floating) {
    for (int k = f.first_k; k <= f.last_k; k *= 2) {
      if (visit(MmaSpec{f.sm, f.m, 8, k, f.d, f.a, f.b, f.c, MmaVariant::plain})) {
        return true;
      }
    }
  }
  // Integers: one 32-bit register along K with M = 8, one or two with M = 16; each pair of signs, wrapping or
  // saturating.
  struct Integers {
    DType types[2];
    int k;
  };
  constexpr Integers integers[] = {{{s8, u8}, 16}, {{s4, u4}, 32}};
  for (Integers const& f : integers) {
    for (DType const a : f.types) {
      for (DType const b : f.types) {
        for (MmaVariant const variant : {MmaVariant::plain, MmaVariant::saturate}) {
          if (visit(MmaSpec{80, 8, 8, f.k, s32, a, b, s32, variant}) ||
              visit(MmaSpec{80, 16, 8, f.k, s32, a, b, s32, variant}) ||
              visit(MmaSpec{80, 16, 8, 2 * f.k, s32, a, b, s32, variant})) {
            return true;
          }
        }
      }
    }
  }
  for (MmaVariant const variant : {MmaVariant::xor_popc, MmaVariant::and_popc}) {
    if (visit(MmaSpec{80, 8, 8, 128, s32, b1, b1, s32, variant}) ||
        visit(MmaSpec{80, 16, 8, 128, s32, b1, b1, s32, variant}) ||
        visit(MmaSpec{80, 16, 8, 256, s32, b1, b1, s32, variant})) {
      return true;
    }
  }
  return false;
}

/// Whether the catalogue holds an MMA of this name; if so `found` is set to it.
constexpr bool find_mma(std::string_view name, MmaSpec& found) {
  return any_mma([&](MmaSpec const& spec) {
    if (mma_name(spec).view() != name) {
      return false;
    }
    found = spec;
    return true;
  });
}

/// The MMA of this name, e.g. mma_atom("SM80_16x8x16_F32F16F16F32_TN"); refuses a name that the catalogue
/// does not hold.
constexpr MmaAtom mma_atom(std::string_view name) {
  MmaSpec spec;
  if (!find_mma(name, spec)) {
    refuse("mma_atom", "no MMA instruction of the catalogue has this name; `tegula atoms` lists them all");
  }
  return mma_atom(spec);
}

/// The sm_80 m16n8k`k` MMA of `operand` x `operand` into `accumulator`; refuses a combination that the
/// hardware lacks.
constexpr MmaAtom mma_atom_sm80(DType operand, DType accumulator, int k) {
  MmaSpec const wanted{80, 16, 8, k, accumulator, operand, operand, accumulator, MmaVariant::plain};
  return mma_atom(mma_name(wanted).view());
}

}  // namespace tegula
