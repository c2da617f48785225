#pragma once

#include <string_view>

#include "tegula/atom/copy_atom.hpp"
#include "tegula/atom/mma_atom.hpp"
#include "tegula/atom/name.hpp"

/// The catalogue of instructions under the field's names, for the tool and for tests: all that
/// arch/ has, and the older names that sm_75 has for some of them. Kernels name an instruction by
/// its spec and need nothing of this.
namespace tegula {

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

/// What follows `base` in `name`, as a width in bits: UniversalCopy<uint128_t>, UniversalCopy<128>,
/// UniversalCopy_128 -> 128; 0 if the rest is not a width. `name` itself is `base` with nothing
/// after it: the widest, 128.
constexpr int copy_width(std::string_view name, std::string_view base) {
  if (!name.starts_with(base)) {
    return 0;
  }
  name.remove_prefix(base.size());
  if (name.empty()) {
    return 128;
  }
  bool const bracketed = name.front() == '<' && name.back() == '>';
  if (bracketed) {
    name = name.substr(1, name.size() - 2);
  } else if (name.front() == '_') {
    name.remove_prefix(1);
  }
  for (std::string_view const prefix : {std::string_view("cute::"), std::string_view("uint")}) {
    if (bracketed && name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
    }
  }
  int bits = 0;
  std::size_t used = 0;
  for (; used < name.size() && name[used] >= '0' && name[used] <= '9' && bits < 1000; ++used) {
    bits = 10 * bits + (name[used] - '0');
  }
  std::string_view const rest = name.substr(used);
  return used > 0 && (rest.empty() || (bracketed && rest == "_t")) ? bits : 0;
}

/// The name without its width.
constexpr std::string_view copy_base_name(CopyOp op) {
  switch (op) {
    case CopyOp::ldmatrix:
      return "SM75_U32x";
    case CopyOp::ldmatrix_trans:
      return "SM75_U16x";
    case CopyOp::stmatrix:
      return "SM90_U32x";
    case CopyOp::stmatrix_trans:
      return "SM90_U16x";
    case CopyOp::cp_async_ca:
      return "SM80_CP_ASYNC_CACHEALWAYS";
    case CopyOp::cp_async_ca_zfill:
      return "SM80_CP_ASYNC_CACHEALWAYS_ZFILL";
    case CopyOp::cp_async_cg:
      return "SM80_CP_ASYNC_CACHEGLOBAL";
    case CopyOp::cp_async_cg_zfill:
      return "SM80_CP_ASYNC_CACHEGLOBAL_ZFILL";
    case CopyOp::universal:
      return "UniversalCopy";
    case CopyOp::auto_vectorizing:
      return "AutoVectorizingCopyWithAssumedAlignment";
    case CopyOp::tma_load:
      return "SM90_TMA_LOAD";
    case CopyOp::tma_multicast:
      return "SM90_TMA_LOAD_MULTICAST";
    case CopyOp::tma_store:
      return "SM90_TMA_STORE";
    case CopyOp::tma_reduce:
      return "SM90_TMA_REDUCE_ADD";
    case CopyOp::bulk_load:
      return "SM90_BULK_COPY_G2S";
    case CopyOp::bulk_store:
      return "SM90_BULK_COPY_S2G";
  }
  return "?";
}

}  // namespace detail

/// The name of an instruction in the field's spelling: SM80_16x8x16_F32F16F16F32_TN, types in the
/// order D A B C; SM90_64x128x16_F32BF16BF16_SS, types in the order D A B, then where A and B are,
/// and TN where both must be K-major; UniversalFMA<float>.
constexpr Name mma_name(MmaSpec const& s) {
  Name name;
  if (s.operands == MmaOperands::scalar) return name.append("UniversalFMA<float>");
  name.append("SM");
  name.append(s.sm).append("_").append(s.m).append("x").append(s.n).append("x").append(s.k).append(
      "_");
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

/// Calls `visit(MmaSpec)` for every mma.sync of the catalogue, until one call returns true; returns
/// whether one did. Sources: PTX ISA, "Warp-level matrix instructions: mma".
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
      {80, f64, f64, f64, f64, 8, 4, 4},      {90, f64, f64, f64, f64, 16, 4, 16},
      {89, f32, e4m3, e4m3, f32, 16, 16, 32}, {89, f32, e4m3, e5m2, f32, 16, 16, 32},
      {89, f32, e5m2, e4m3, f32, 16, 16, 32}, {89, f32, e5m2, e5m2, f32, 16, 16, 32},
      {89, f16, e4m3, e4m3, f16, 16, 16, 32}, {89, f16, e4m3, e5m2, f16, 16, 16, 32},
      {89, f16, e5m2, e4m3, f16, 16, 16, 32}, {89, f16, e5m2, e5m2, f16, 16, 16, 32},
      {75, s32, s8, s8, s32, 8, 16, 16},
  };
  for (Family const& f : floating) {
    for (int k = f.first_k; k <= f.last_k; k *= 2) {
      if (visit(MmaSpec{f.sm, f.m, 8, k, f.d, f.a, f.b, f.c, MmaVariant::plain})) {
        return true;
      }
    }
  }
  // Integers: one 32-bit register along K with M = 8, one or two with M = 16; each pair of signs,
  // wrapping or saturating.
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

/// Likewise for every wgmma of the catalogue with N = n, 8 to 256. Sources: PTX ISA,
/// "wgmma.mma_async".
template <class Visit> constexpr bool any_warpgroup_mma(int n, Visit&& visit) {
  using enum DType;
  struct Family {
    DType d, a, b;
  };
  constexpr Family families[] = {
      {f32, f16, f16},   {f16, f16, f16},   {f32, bf16, bf16}, {f32, tf32, tf32},
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

/// Calls `visit(MmaSpec)` for every instruction of the catalogue, until one call returns true;
/// returns whether one did.
template <class Visit> constexpr bool any_mma(Visit&& visit) {
  if (visit(scalar_fma(DType::f32)) || any_warp_mma(visit)) return true;
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
  if (is_it(scalar_fma(DType::f32))) return true;
  constexpr std::string_view kWarpgroup = "SM90_64x";
  if (name.substr(0, kWarpgroup.size()) != kWarpgroup) return any_warp_mma(is_it);
  int n = 0;
  for (char const c : name.substr(kWarpgroup.size())) {
    if (c < '0' || c > '9' || n > 256) break;
    n = 10 * n + (c - '0');
  }
  return n >= 8 && n <= 256 && n % 8 == 0 && any_warpgroup_mma(n, is_it);
}

/// The MMA of this name, e.g. mma_atom("SM80_16x8x16_F32F16F16F32_TN"); refuses a name that the
/// catalogue does not hold.
constexpr MmaAtom mma_atom(std::string_view name) {
  MmaSpec spec;
  if (!find_mma(name, spec)) {
    refuse("mma_atom", "no MMA of the catalogue has this name; `tegula atoms` lists them all");
  }
  return mma_atom(spec);
}

/// The name of a copy in the field's spelling: SM75_U32x4_LDSM_N,
/// SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, UniversalCopy<uint16_t>.
constexpr Name copy_name(CopySpec const& s) {
  Name name;
  name.append(detail::copy_base_name(s.op));
  switch (s.op) {
    case CopyOp::ldmatrix:
      return name.append(s.amount).append("_LDSM_N");
    case CopyOp::ldmatrix_trans:
      return name.append(2 * s.amount).append("_LDSM_T");  // counted in 16-bit elements a thread
    case CopyOp::stmatrix:
      return name.append(s.amount).append("_STSM_N");
    case CopyOp::stmatrix_trans:
      return name.append(2 * s.amount).append("_STSM_T");
    case CopyOp::tma_load:
    case CopyOp::tma_multicast:
    case CopyOp::tma_store:
    case CopyOp::tma_reduce:
    case CopyOp::bulk_load:
    case CopyOp::bulk_store:
      return name;
    case CopyOp::auto_vectorizing:
      return name.append("<").append(s.amount).append(">");
    default:
      return name.append("<uint").append(s.amount).append("_t>");
  }
}

/// Calls `visit(CopySpec)` for every copy of the catalogue, until one call returns true; returns
/// whether one did. Of the copies of whole tiles, which have no widths of their own, the amount
/// is 0.
template <class Visit> constexpr bool any_copy(Visit&& visit) {
  using enum CopyOp;
  struct Family {
    CopyOp op;
    int first, last;  // the amount doubles from first to last
  };
  constexpr Family families[] = {{ldmatrix, 1, 4},        {ldmatrix_trans, 1, 4},
                                 {stmatrix, 1, 4},        {stmatrix_trans, 1, 4},
                                 {cp_async_ca, 32, 128},  {cp_async_ca_zfill, 32, 128},
                                 {cp_async_cg, 128, 128}, {cp_async_cg_zfill, 128, 128},
                                 {universal, 8, 128},     {auto_vectorizing, 8, 128}};
  for (Family const& f : families) {
    for (int amount = f.first; amount <= f.last; amount *= 2) {
      if (visit(CopySpec{f.op, amount})) {
        return true;
      }
    }
  }
  for (CopyOp const op : {tma_load, tma_multicast, tma_store, tma_reduce, bulk_load, bulk_store}) {
    if (visit(CopySpec{op, 0})) {
      return true;
    }
  }
  return false;
}

/// Whether the catalogue holds a copy of this name; if so `found` is set to it. The width of a
/// plain or asynchronous copy may also be given as a number, UniversalCopy<64>, or left out, which
/// means 128 bits.
constexpr bool find_copy(std::string_view name, CopySpec& found) {
  return any_copy([&](CopySpec const& spec) {
    bool const counted_in_bits = !moves_matrices(spec.op) && !moves_tiles(spec.op);
    if (copy_name(spec).view() != name &&
        !(counted_in_bits &&
          detail::copy_width(name, detail::copy_base_name(spec.op)) == spec.amount)) {
      return false;
    }
    found = spec;
    return true;
  });
}

/// The copy of this name, e.g. copy_atom("SM75_U32x4_LDSM_N"); refuses a name that the catalogue
/// does not hold.
constexpr CopyAtom copy_atom(std::string_view name) {
  CopySpec spec;
  if (!find_copy(name, spec)) {
    refuse("copy_atom", "no copy of the catalogue has this name; `tegula atoms` lists them all");
  }
  return copy_atom(spec);
}

}  // namespace tegula
