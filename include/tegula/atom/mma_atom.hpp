#pragma once

#include <cstdint>
#include <string_view>

#include "tegula/atom/mma_spec.hpp"
#include "tegula/atom/name.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/numeric/dtype.hpp"

/// The matrix multiply-accumulate instructions of a warp (mma.sync), of a warpgroup (wgmma) and of a thread
/// (fma) as values. Their (thread, value) layouts follow from one rule of the PTX ISA ("Matrix Fragments for
/// mma.m16n8k*"), so they are computed from the shape and the element widths, not listed.
namespace tegula {

/// One matrix multiply-accumulate instruction, D = A B + C, as a value.
///
/// `a`, `b` and `c` map (thread, value) to the flat column-major index of an element: `a` to m + M*k, `b` to
/// n + N*k, `c` (and D) to m + M*n. `value` counts the elements a thread holds, in register order, low bits
/// first. An operand that the instruction reads from shared memory counts as held by every thread, as a
/// whole.
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

  /// Whether each thread holds its own part of the operand.
  constexpr bool a_in_registers() const { return a.strides[0] != 0; }
  constexpr bool b_in_registers() const { return b.strides[0] != 0; }

  friend constexpr bool operator==(MmaAtom const&, MmaAtom const&) = default;
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
/// Result: ((4,8),(per_register, rows/8, columns/(4*per_register))) with extents of 1 left out. With several
/// warps, each has the `rows` rows after those of the warp before, and the thread mode is (4,8,warps).
constexpr Layout warp_fragment(int rows, int columns, int per_register, int warps = 1) {
  int const column = rows * warps;  // the distance of columns
  Layout const thread = warps == 1 ? layout(shape(4, 8), stride(column * per_register, 1))
                                   : layout(shape(4, 8, warps), stride(column * per_register, 1, rows));
  Layout const modes[3] = {layout(per_register, column), layout(rows / 8, 8),
                           layout(columns / (4 * per_register), 4 * per_register * column)};
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
/// C; SM90_64x128x16_F32BF16BF16_SS, types in the order D A B, then where A and B are, and TN where both must
/// be K-major.
constexpr Name mma_name(MmaSpec const& s) {
  Name name;
  name.append("SM");
  name.append(s.sm).append("_").append(s.m).append("x").append(s.n).append("x").append(s.k).append("_");
  name.append(detail::instruction_type_name(s.d)).append(detail::instruction_type_name(s.a));
  name.append(detail::instruction_type_name(s.b));
  if (s.operands == MmaOperands::warp) {
    name.append(detail::instruction_type_name(s.c)).append("_TN");
  } else {
    name.append(s.operands == MmaOperands::ss ? "_SS" : "_RS").append(bits(s.a) == 16 ? "" : "_TN");
  }
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
/// contiguous. (Operands of wgmma with 16-bit elements may be contiguous along M or N in shared memory; who
/// holds what is the same.)
constexpr MmaAtom mma_atom(MmaSpec const& s) {
  MmaAtom atom{.name = mma_name(s),
               .m = s.m,
               .n = s.n,
               .k = s.k,
               .threads = tegula::threads(s),
               .a_type = s.a,
               .b_type = s.b,
               .c_type = s.c,
               .d_type = s.d,
               .a = {},
               .b = {},
               .c = {}};
  if (s.operands == MmaOperands::scalar) {
    atom.a = atom.b = atom.c = layout(shape(1, 1), stride(1, 1));
    return atom;
  }
  int const warps = atom.threads / 32;
  auto const in_shared_memory = [&](int rows) {
    return make_layout(layout(atom.threads, 0), layout(shape(rows, s.k)));
  };
  atom.a = s.operands == MmaOperands::ss
               ? in_shared_memory(s.m)
               : detail::warp_fragment(s.m / warps, s.k, detail::elements_per_register(s.a), warps);
  atom.b = s.operands == MmaOperands::warp
               ? detail::warp_fragment(s.n, s.k, detail::elements_per_register(s.b))
               : in_shared_memory(s.n);
  atom.c = detail::warp_fragment(s.m / warps, s.n, 2, warps);  // pairs along n, whatever their width
  return atom;
}

/// Calls `visit(MmaSpec)` for every mma.sync of the catalogue, until one call returns true; returns whether
/// one did. Sources: PTX ISA, "Warp-level matrix instructions: mma".
template <class Visit> constexpr bool any_warp_mma(Visit&& visit) {
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

/// Likewise for every wgmma of the catalogue with N = n, 8 to 256. Sources: PTX ISA, "wgmma.mma_async".
template <class Visit> constexpr bool any_warpgroup_mma(int n, Visit&& visit) {
  using enum DType;
  struct Family {
    DType d, a, b;
  };
  constexpr Family families[] = {{f32, f16, f16},   {f16, f16, f16},   {f32, bf16, bf16}, {f32, tf32, tf32},
                                 {f32, e4m3, e4m3}, {f32, e4m3, e5m2}, {f32, e5m2, e4m3}, {f32, e5m2, e5m2},
                                 {f16, e4m3, e4m3}, {f16, e4m3, e5m2}, {f16, e5m2, e4m3}, {f16, e5m2, e5m2},
                                 {s32, s8, s8},     {s32, s8, u8},     {s32, u8, s8},     {s32, u8, u8}};
  for (Family const& f : families) {
    bool const integers = f.d == s32;
    if (integers && n % 16 != 0 && n != 8 && n != 24) continue;
    for (MmaOperands const operands : {MmaOperands::ss, MmaOperands::rs}) {
      MmaSpec spec{90, 64, n, 256 / bits(f.a), f.d, f.a, f.b, f.d, MmaVariant::plain, operands};
      if (visit(spec)) return true;
      spec.variant = MmaVariant::saturate;
      if (integers && visit(spec)) return true;
    }
  }
  return false;
}

/// Calls `visit(MmaSpec)` for every instruction of the catalogue, until one call returns true; returns
/// whether one did.
template <class Visit> constexpr bool any_mma(Visit&& visit) {
  if (any_warp_mma(visit)) return true;
  for (int n = 8; n <= 256; n += 8) {
    if (any_warpgroup_mma(n, visit)) return true;
  }
  return false;
}

/// Whether the catalogue holds an MMA of this name; if so `found` is set to it.
constexpr bool find_mma(std::string_view name, MmaSpec& found) {
  auto const is_it = [&](MmaSpec const& spec) {
    if (mma_name(spec).view() != name) {
      return false;
    }
    found = spec;
    return true;
  };
  constexpr std::string_view kWarpgroup = "SM90_64x";
  if (name.substr(0, kWarpgroup.size()) != kWarpgroup) return any_warp_mma(is_it);
  int n = 0;
  for (char const c : name.substr(kWarpgroup.size())) {
    if (c < '0' || c > '9' || n > 256) break;
    n = 10 * n + (c - '0');
  }
  return n >= 8 && n <= 256 && n % 8 == 0 && any_warpgroup_mma(n, is_it);
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
