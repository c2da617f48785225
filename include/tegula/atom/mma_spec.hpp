#pragma once

#include <cstdint>

#include "tegula/layout/refuse.hpp"
#include "tegula/macros.hpp"
#include "tegula/numeric/dtype.hpp"

/// The one name of a matrix multiply-accumulate instruction: a small value that arch/ pastes the
/// instruction from, that the simulated machine computes by, and that atom/ makes (thread, value)
/// layouts of.
namespace tegula {

/// Which index of an operand is contiguous in memory: K ("K-major"), or M (for A) and N (for B).
enum class Major : std::uint8_t { k, mn };

/// What distinguishes two instructions of the same shape and types. `saturate` is PTX's satfinite:
/// sums of integers are clamped to the range of s32.
enum class MmaVariant : std::uint8_t { plain, saturate, xor_popc, and_popc };

/// Where A and B are: in the registers of a warp (mma.sync); in shared memory both, or A in
/// registers and B in shared memory, of a warpgroup (wgmma); in shared memory both, or A in tensor
/// memory and B in shared memory, of one thread (tcgen05.mma); in the registers of one thread
/// (fma).
enum class MmaOperands : std::uint8_t { warp, ss, rs, ts, scalar };

/// M of every wgmma; a warp holds 16 rows of D.
inline constexpr int kWgmmaM = 64;
/// The threads that execute a wgmma together: four warps, the first of which has an index divisible
/// by four.
inline constexpr int kWarpgroupSize = 128;

/// One instruction, D(m, n) = A(m, k) * B(k, n) + C(m, n). A value, meant as a template argument:
/// the makers below give those of arch/, and `check` says which those are.
struct MmaSpec {
  int sm = 0;  ///< the architecture that introduced it: 75, 80, 89, 90, 100; 0 for a scalar's
  int m = 0, n = 0, k = 0;
  DType d{}, a{}, b{}, c{};
  MmaVariant variant = MmaVariant::plain;
  MmaOperands operands = MmaOperands::warp;
  /// wgmma: mn where A in shared memory is contiguous along m (16-bit types)
  Major a_major = Major::k;
  Major b_major = Major::k;  ///< wgmma: mn where B is contiguous along n (16-bit types)
  bool negate_a = false;     ///< wgmma and tcgen05.mma: D = -A * B + D
  bool negate_b = false;
  /// tcgen05.mma: the CTAs that compute it, one or a pair, each of which has half of A's rows, half
  /// of B's, and half of D's (PTX: .cta_group)
  int ctas = 1;
  /// tcgen05.mma.ws: of fewer than 128 rows the columns of D lie in parts, each in lanes of its own
  bool weight_stationary = false;

  friend constexpr bool operator==(MmaSpec const&, MmaSpec const&) = default;
};

/// Whether it is a tcgen05.mma, whose D lies in tensor memory: one thread starts it.
TEGULA_HOST_DEVICE constexpr bool is_tensor_memory_mma(MmaSpec const& s) { return s.sm == 100; }

/// Parts of D's columns that lie beside each other, each in lanes of its own, so that all lanes of
/// tensor memory are used: PTX ISA, "Data path layout organization", layouts B, E and G.
TEGULA_HOST_DEVICE constexpr int column_parts(MmaSpec const& s) {
  if (s.weight_stationary) return 128 / s.m;
  return s.ctas == 2 && s.m == 128 ? 2 : 1;
}

/// The threads that execute the instruction together: 1, a warp's 32, or a warpgroup's 128.
TEGULA_HOST_DEVICE constexpr int threads(MmaSpec const& s) {
  return s.operands == MmaOperands::scalar || is_tensor_memory_mma(s) ? 1
         : s.operands == MmaOperands::warp                            ? 32
                                                                      : kWarpgroupSize;
}

/// Bits that an element of an operand takes in memory (tf32: 32, of which the hardware reads 19).
/// Of tcgen05.mma one of 6 or 4 bits takes 8: 16 of them lie in the first 12 or 8 of 16 bytes.
TEGULA_HOST_DEVICE constexpr int operand_bits(DType type) {
  return bits(type) < 8 ? 8 : bits(type);
}
/// Those of an element of A and of B.
TEGULA_HOST_DEVICE constexpr int element_bits(MmaSpec const& s) { return operand_bits(s.a); }

/// The 32-bit registers that one thread holds of A (0 where A is in shared memory).
TEGULA_HOST_DEVICE constexpr int a_registers(MmaSpec const& s) {
  return s.operands == MmaOperands::ss ? 0 : (s.m * s.k * bits(s.a) / threads(s) + 31) / 32;
}

/// The 32-bit registers that one thread holds of B (0 where B is in shared memory).
TEGULA_HOST_DEVICE constexpr int b_registers(MmaSpec const& s) {
  bool const in_shared_memory = s.operands == MmaOperands::ss || s.operands == MmaOperands::rs;
  return in_shared_memory ? 0 : (s.n * s.k * bits(s.b) / threads(s) + 31) / 32;
}

/// The 32-bit registers that one thread holds of D, and of C.
TEGULA_HOST_DEVICE constexpr int d_registers(MmaSpec const& s) {
  return (s.m * s.n * bits(s.d) / threads(s) + 31) / 32;
}

namespace detail {

constexpr bool is_8bit_float(DType type) { return type == DType::e4m3 || type == DType::e5m2; }
/// The types of kind f8f6f4.
constexpr bool is_narrow_float(DType type) {
  return is_8bit_float(type) || type == DType::e2m3 || type == DType::e3m2 || type == DType::e2m1;
}
constexpr bool is_8bit_integer(DType type) { return type == DType::s8 || type == DType::u8; }
constexpr bool is_4bit_integer(DType type) { return type == DType::s4 || type == DType::u4; }

/// The architecture that introduced the mma.sync of a type: PTX ISA, "mma", target notes. (An older
/// one has some of these shapes; they go by one name here.)
constexpr int warp_mma_sm(DType a, int m) {
  if (a == DType::f64 && m == 16) return 90;
  return is_8bit_float(a) ? 89 : 80;
}

/// Of mma.sync: the dense instructions of sm_80 to sm_90 with n = 8, but those of f16 that an sm_70
/// computes by quarters of a warp (m8n8k4). PTX ISA, "Matrix multiply-accumulate operation using
/// mma instruction".
constexpr void check_warp_mma(MmaSpec const& s) {
  bool const bit = s.a == DType::b1 && s.b == DType::b1;
  bool const summed = (is_8bit_integer(s.a) && is_8bit_integer(s.b)) ||
                      (is_4bit_integer(s.a) && is_4bit_integer(s.b));
  bool const integer = bit || summed;
  bool const narrow = is_8bit_float(s.a) && is_8bit_float(s.b);
  bool const wide = s.a == DType::f64 && s.b == DType::f64;
  bool const same = s.a == s.b && (s.a == DType::f16 || s.a == DType::bf16 || s.a == DType::tf32);
  if (!integer && !narrow && !wide && !same)
    refuse("mma_sync", "a and b must be f16, bf16, tf32, f64 or b1 both, or fp8, s8/u8, s4/u4 each",
           to_string(s.a), to_string(s.b));
  if (s.n != 8 || (s.m != 16 && s.m != 8))
    refuse("mma_sync", "m must be 16 or 8, and n 8", s.m, s.n);
  if (s.m == 8 && !integer && !wide)
    refuse("mma_sync", "m must be 16: only integers and f64 have m 8", s.m, to_string(s.a));
  if (s.sm != warp_mma_sm(s.a, s.m))
    refuse("mma_sync", "sm must be 89 of e4m3 and e5m2, 90 of f64 with m 16, and 80 of all others",
           s.sm, to_string(s.a), s.m);
  if (wide) {
    if (s.k != 4 && (s.m == 8 || (s.k != 8 && s.k != 16)))
      refuse("mma_sync", "k of f64 must be 4, and with m 16 may be 8 or 16", s.m, s.k);
  } else if (s.k * bits(s.a) != 128 && (s.m == 8 || s.k * bits(s.a) != 256)) {
    refuse("mma_sync", "k must be 16 bytes of elements, and with m 16 may be 32", to_string(s.a),
           s.m, s.k);
  }
  if (integer && s.d != DType::s32)
    refuse("mma_sync", "integers accumulate in s32", to_string(s.d));
  if (wide && s.d != DType::f64) refuse("mma_sync", "f64 accumulates in f64", to_string(s.d));
  if (!integer && !wide && s.d != DType::f32 &&
      (s.d != DType::f16 || (s.a != DType::f16 && !narrow)))
    refuse("mma_sync", "d must be f32, or f16 where a and b are f16, e4m3 or e5m2", to_string(s.a),
           to_string(s.d));
  bool const counts = s.variant == MmaVariant::xor_popc || s.variant == MmaVariant::and_popc;
  if (bit != counts)
    refuse("mma_sync", "b1, and only b1, has the variants xor_popc and and_popc, and no other",
           to_string(s.a));
  if (s.variant == MmaVariant::saturate && !summed)
    refuse("mma_sync", "only integers of 8 and 4 bits saturate", to_string(s.a));
  if (s.a_major != Major::k || s.b_major != Major::k)
    refuse("mma_sync", "operands in registers have no major-ness: a_major and b_major must be k");
  if (s.negate_a || s.negate_b) refuse("mma_sync", "only wgmma negates its operands");
}

/// Of wgmma: every instruction of sm_90a.
constexpr void check_warpgroup_mma(MmaSpec const& s) {
  bool const integer = is_8bit_integer(s.a) && is_8bit_integer(s.b);
  bool const narrow = is_8bit_float(s.a) && is_8bit_float(s.b);
  bool const same = s.a == s.b && (s.a == DType::f16 || s.a == DType::bf16 || s.a == DType::tf32);
  if (s.sm != 90 || s.m != kWgmmaM) refuse("wgmma", "sm must be 90 and m 64", s.sm, s.m);
  if (!integer && !narrow && !same)
    refuse("wgmma", "a and b are f16, bf16 or tf32 both, or e4m3 or e5m2 each, or s8 or u8 each",
           to_string(s.a), to_string(s.b));
  if (s.k * bits(s.a) != 256)
    refuse("wgmma", "k must be 32 bytes of elements", to_string(s.a), s.k);
  if (s.n < 8 || s.n > 256 || s.n % 8 != 0)
    refuse("wgmma", "n must be a multiple of 8 from 8 to 256", s.n);
  if (integer && s.n % 16 != 0 && s.n != 8 && s.n != 24)
    refuse("wgmma", "n of integers must be 8, 24 or a multiple of 16", s.n);
  if (integer != (s.d == DType::s32)) refuse("wgmma", "integers, and only they, accumulate in s32");
  if (!integer && s.d != DType::f32 && (s.d != DType::f16 || (s.a != DType::f16 && !narrow)))
    refuse("wgmma", "d must be f32, or f16 where a and b are f16, e4m3 or e5m2", to_string(s.d));
  if ((s.a_major != Major::k || s.b_major != Major::k) && bits(s.a) != 16)
    refuse("wgmma", "only operands of 16-bit elements may be contiguous along m or n");
  if (s.operands == MmaOperands::rs && s.a_major != Major::k)
    refuse("wgmma", "A in registers has no major-ness: a_major must be k");
  if ((s.negate_a || s.negate_b) && integer) refuse("wgmma", "integers cannot be negated");
  if (s.variant != MmaVariant::plain && (!integer || s.variant != MmaVariant::saturate))
    refuse("wgmma", "the variants are plain and, of integers, saturate");
}

/// Whether tcgen05.mma has this n: PTX ISA, "Matrix Shape". `coarse`: of integers, and of a B of
/// 8-bit elements that is contiguous along n ("Transpose and Negate operations").
constexpr bool is_tensor_memory_n(int n, int ctas, bool coarse) {
  int const step = (coarse ? 16 : 8) * ctas;
  return n >= step && n <= 256 && n % step == 0;
}
constexpr bool is_8bit_transposed(Major major, DType type) {
  return major == Major::mn && bits(type) == 8;
}
/// Refuses an n that there is not. `few`: 8 and 24 are there as well.
constexpr void check_tensor_memory_n(char const* name, int n, int ctas, bool coarse,
                                     bool few = false) {
  if (is_tensor_memory_n(n, ctas, coarse) || (few && (n == 8 || n == 24))) return;
  if (few) refuse(name, "n of integers must be 8, 24 or a multiple of 16, at most 256", n);
  if (coarse) refuse(name, "n must be a multiple of 16 (of a pair 32), at most 256", n, ctas);
  refuse(name, "n must be a multiple of 8 (of a pair 16), at most 256", n, ctas);
}
/// Refuses an operand of tcgen05.mma in shared memory that is contiguous along m or n and must be
/// K-major: PTX ISA, "Valid Combinations of Type-Size, Major-ness and Swizzling".
constexpr void check_tensor_memory_major(char const* name, Major major, DType type) {
  if (major == Major::k || bits(type) == 8 || bits(type) == 16) return;
  if (bits(type) < 8)
    refuse(name, "6- and 4-bit elements must be contiguous along k, by the PTX ISA",
           to_string(type));
  refuse(name, "tf32 must be contiguous along k: 32-byte swizzle atoms are not simulated",
         to_string(type));
}

/// Of tcgen05.mma: the instructions of sm_100a without block scales that the simulated machine has.
/// Sparsity is not among them.
constexpr void check_tensor_memory_mma(MmaSpec const& s) {
  bool const integer = is_8bit_integer(s.a) && is_8bit_integer(s.b);
  bool const narrow = is_narrow_float(s.a) && is_narrow_float(s.b);
  bool const same = s.a == s.b && (s.a == DType::f16 || s.a == DType::bf16 || s.a == DType::tf32);
  if (s.ctas != 1 && s.ctas != 2)
    refuse("tcgen05_mma", "one CTA computes it, or a pair: ctas must be 1 or 2", s.ctas);
  if (s.weight_stationary) {
    if (s.ctas != 1) refuse("tcgen05_mma", "one CTA computes what is weight-stationary", s.ctas);
    if (s.m != 32 && s.m != 64 && s.m != 128)
      refuse("tcgen05_mma", "m of what is weight-stationary must be 32, 64 or 128", s.m);
    if (s.n != 64 && s.n != 128 && s.n != 256)
      refuse("tcgen05_mma", "n of what is weight-stationary must be 64, 128 or 256", s.n);
  }
  if (!s.weight_stationary && s.m != 64 * s.ctas && s.m != 128 * s.ctas)
    refuse("tcgen05_mma", "m must be 64 or 128, and 128 or 256 of a pair of CTAs", s.m, s.ctas);
  if (!integer && !narrow && !same)
    refuse("tcgen05_mma", "a and b must be f16, bf16 or tf32 both, or of kind f8f6f4 or i8 each",
           to_string(s.a), to_string(s.b));
  if (s.k * operand_bits(s.a) != 256)
    refuse("tcgen05_mma", "k must be 32 bytes of elements", to_string(s.a), s.k);
  bool const coarse = integer || is_8bit_transposed(s.b_major, s.b);
  bool const few = integer && !is_8bit_transposed(s.b_major, s.b) && s.ctas == 1;
  check_tensor_memory_n("tcgen05_mma", s.n, s.ctas, coarse, few);
  if (integer != (s.d == DType::s32))
    refuse("tcgen05_mma", "integers, and only they, accumulate in s32", to_string(s.d));
  if (!integer && s.d != DType::f32 && (s.d != DType::f16 || (s.a != DType::f16 && !narrow)))
    refuse("tcgen05_mma", "d must be f32, or f16 where a and b are f16 or of 8, 6 and 4 bits",
           to_string(s.d));
  check_tensor_memory_major("tcgen05_mma", s.a_major, s.a);
  check_tensor_memory_major("tcgen05_mma", s.b_major, s.b);
  if (s.operands != MmaOperands::ss && s.operands != MmaOperands::ts)
    refuse("tcgen05_mma", "A is in shared or in tensor memory, B in shared memory: ss or ts");
  if (s.operands == MmaOperands::ts && s.a_major != Major::k)
    refuse("tcgen05_mma", "A in tensor memory has no major-ness: a_major must be k");
  if ((s.negate_a || s.negate_b) && integer) refuse("tcgen05_mma", "integers cannot be negated");
  if (s.variant != MmaVariant::plain && (!integer || s.variant != MmaVariant::saturate))
    refuse("tcgen05_mma", "the variants are plain and, of integers, saturate");
}

/// Of a thread's own multiply-add: arch/math.hpp has fma of f32.
constexpr void check_scalar_fma(MmaSpec const& s) {
  if (s.sm != 0 || s.m != 1 || s.n != 1 || s.k != 1)
    refuse("scalar_fma", "sm must be 0, and m, n and k 1", s.sm, s.m, s.n, s.k);
  if (s.d != DType::f32 || s.a != DType::f32 || s.b != DType::f32)
    refuse("scalar_fma", "a, b, c and d must be f32", to_string(s.a), to_string(s.b),
           to_string(s.d));
  if (s.variant != MmaVariant::plain || s.a_major != Major::k || s.b_major != Major::k ||
      s.negate_a || s.negate_b)
    refuse("scalar_fma", "it has neither variants nor major-ness nor negations");
}

}  // namespace detail

/// Refuses an instruction that arch/ lacks; true for all others.
constexpr bool check(MmaSpec const& s) {
  if (s.c != s.d) refuse("mma", "c and d must have one type", to_string(s.c), to_string(s.d));
  if (is_tensor_memory_mma(s)) {
    detail::check_tensor_memory_mma(s);
    return true;
  }
  switch (s.operands) {
    case MmaOperands::warp:
      detail::check_warp_mma(s);
      break;
    case MmaOperands::scalar:
      detail::check_scalar_fma(s);
      break;
    default:
      detail::check_warpgroup_mma(s);
  }
  return true;
}

namespace detail {
constexpr MmaSpec checked(MmaSpec const& s) {
  check(s);
  return s;
}
}  // namespace detail

/// mma.sync.m`m`n8k`k`, m being 16 or 8: f16 or bf16 (k 8 or 16), tf32 (4 or 8), e4m3 or e5m2 (16
/// or 32), s8 or u8 (16 or 32), s4 or u4 (32 or 64), b1 (128 or 256, with a variant that counts),
/// f64 (4, 8 or 16). m 8 is there of integers and f64, with the least of these k; refuses what is
/// none.
constexpr MmaSpec warp_mma(DType a, DType b, DType d, int k, int m = 16,
                           MmaVariant variant = MmaVariant::plain) {
  return detail::checked({.sm = detail::warp_mma_sm(a, m),
                          .m = m,
                          .n = 8,
                          .k = k,
                          .d = d,
                          .a = a,
                          .b = b,
                          .c = d,
                          .variant = variant});
}
constexpr MmaSpec warp_mma(DType a_and_b, DType d, int k) {
  return warp_mma(a_and_b, a_and_b, d, k);
}

/// wgmma.m64n`n` of sm_90a, K being 32 bytes of elements; refuses what is none. a_major and b_major
/// are those of operands in shared memory.
constexpr MmaSpec warpgroup_mma(DType a, DType b, DType d, int n, Major a_major = Major::k,
                                Major b_major = Major::k, MmaOperands operands = MmaOperands::ss) {
  if (operands != MmaOperands::ss && operands != MmaOperands::rs)
    refuse("warpgroup_mma", "operands must be ss or rs: A in shared memory or in registers");
  return detail::checked({.sm = 90,
                          .m = kWgmmaM,
                          .n = n,
                          .k = 256 / bits(a),
                          .d = d,
                          .a = a,
                          .b = b,
                          .c = d,
                          .operands = operands,
                          .a_major = a_major,
                          .b_major = b_major});
}

/// tcgen05.mma of sm_100a by one CTA or by a pair, K being 32 bytes of elements; refuses what is
/// none. a_major and b_major are those of operands in shared memory.
constexpr MmaSpec tensor_memory_mma(DType a, DType b, DType d, int m, int n,
                                    Major a_major = Major::k, Major b_major = Major::k,
                                    MmaOperands operands = MmaOperands::ss, int ctas = 1,
                                    MmaVariant variant = MmaVariant::plain) {
  return detail::checked({.sm = 100,
                          .m = m,
                          .n = n,
                          .k = 256 / operand_bits(a),
                          .d = d,
                          .a = a,
                          .b = b,
                          .c = d,
                          .variant = variant,
                          .operands = operands,
                          .a_major = a_major,
                          .b_major = b_major,
                          .ctas = ctas});
}

/// tcgen05.mma.ws of sm_100a, by one CTA.
constexpr MmaSpec weight_stationary_mma(DType a, DType b, DType d, int m, int n,
                                        Major a_major = Major::k, Major b_major = Major::k,
                                        MmaOperands operands = MmaOperands::ss,
                                        MmaVariant variant = MmaVariant::plain) {
  return detail::checked({.sm = 100,
                          .m = m,
                          .n = n,
                          .k = 256 / operand_bits(a),
                          .d = d,
                          .a = a,
                          .b = b,
                          .c = d,
                          .variant = variant,
                          .operands = operands,
                          .a_major = a_major,
                          .b_major = b_major,
                          .weight_stationary = true});
}

/// fma of one thread, D = A * B + C with a single rounding, all of one type: f32.
constexpr MmaSpec scalar_fma(DType type) {
  return detail::checked({.m = 1,
                          .n = 1,
                          .k = 1,
                          .d = type,
                          .a = type,
                          .b = type,
                          .c = type,
                          .operands = MmaOperands::scalar});
}

}  // namespace tegula
