#pragma once

#include <cstdint>

#include "tegula/atom/mma_spec.hpp"
#include "tegula/layout/refuse.hpp"
#include "tegula/macros.hpp"
#include "tegula/numeric/dtype.hpp"

/// The name of a tcgen05.mma with block scales, as MmaSpec is of the others.
namespace tegula {

/// .kind of a tcgen05.mma whose operands have scales.
enum class ScaledMmaKind : std::uint8_t { mxf8f6f4, mxf4, mxf4nvf4 };

constexpr char const* to_string(ScaledMmaKind kind) {
  constexpr char const* names[] = {"mxf8f6f4", "mxf4", "mxf4nvf4"};
  return names[static_cast<int>(kind)];
}

/// D(m, n) = sum over k of A(m, k) scale_a(m, k / block) B(k, n) scale_b(n, k / block) + C(m, n), D
/// and C in tensor memory and of f32, B in shared memory and A there or in tensor memory, by one
/// CTA or a pair.
struct ScaledMmaSpec {
  ScaledMmaKind kind{};
  int m = 0, n = 0;  ///< m 128, of a pair 128 or 256
  DType a{}, b{};    ///< of 8, 6 or 4 bits each; of the kinds of four bits e2m1
  DType scale = DType::ue8m0;
  int block = 32;  ///< elements of a row that share a scale
  int ctas = 1;    ///< that compute it: one, or a pair (.cta_group::2)
  bool a_in_tensor_memory = false;
  Major a_major = Major::k;  ///< mn: of mxf8f6f4, 8-bit elements in shared memory
  Major b_major = Major::k;
  bool negate_a = false;  ///< D = -A scale_a B scale_b + D
  bool negate_b = false;

  friend constexpr bool operator==(ScaledMmaSpec const&, ScaledMmaSpec const&) = default;
};

/// Elements along k: 32 bytes, of which one of mxf8f6f4 takes a whole one (16 elements of 6 or 4
/// bits lie in the first 12 or 8 of 16 bytes).
TEGULA_HOST_DEVICE constexpr int extent_k(ScaledMmaSpec const& s) {
  return s.kind == ScaledMmaKind::mxf8f6f4 ? 32 : 64;
}
/// Scales of a row, 1, 2 or 4: .scale_vec.
TEGULA_HOST_DEVICE constexpr int scales(ScaledMmaSpec const& s) { return extent_k(s) / s.block; }

/// Parts of D's columns that lie beside each other, as column_parts of an MmaSpec has them: of a
/// pair's m of 128 the upper half of the columns is in lanes 64 to 127.
TEGULA_HOST_DEVICE constexpr int column_parts(ScaledMmaSpec const& s) {
  return s.ctas == 2 && s.m == 128 ? 2 : 1;
}

/// Refuses an instruction that sm_100a or the simulated machine lacks; true for all others. PTX
/// ISA, tcgen05.mma, "Matrix Shape", "Transpose and Negate operations", "Block Scaling".
constexpr bool check(ScaledMmaSpec const& s) {
  constexpr char const* name = "tcgen05_mma_scaled";
  bool const of_any = s.kind == ScaledMmaKind::mxf8f6f4;
  bool const mx = s.scale == DType::ue8m0 && s.block == 32;
  bool const of_16 = s.block == 16 && (s.scale == DType::ue8m0 || s.scale == DType::ue4m3);
  if (s.ctas != 1 && s.ctas != 2) refuse(name, "one CTA computes it, or a pair", s.ctas);
  if (s.m != 128 && s.m != 128 * s.ctas)
    refuse(name, "m must be 128, of a pair 128 or 256", s.m, s.ctas);
  detail::check_tensor_memory_n(name, s.n, s.ctas, s.b_major == Major::mn);
  if (of_any && (!detail::is_narrow_float(s.a) || !detail::is_narrow_float(s.b)))
    refuse(name, "a and b of mxf8f6f4 must be e4m3, e5m2, e2m3, e3m2 or e2m1 each", to_string(s.a),
           to_string(s.b));
  if (!of_any && (s.a != DType::e2m1 || s.b != DType::e2m1))
    refuse(name, "a and b of mxf4 and mxf4nvf4 must be e2m1", to_string(s.a), to_string(s.b));
  if (s.kind != ScaledMmaKind::mxf4nvf4 && !mx)
    refuse(name, "mxf8f6f4 and mxf4 have a scale of ue8m0 for each 32 elements", to_string(s.scale),
           s.block);
  if (s.kind == ScaledMmaKind::mxf4nvf4 && !mx && !of_16)
    refuse(name, "mxf4nvf4 has scales of ue4m3 for 16, or ue8m0 for 16 or 32", to_string(s.scale),
           s.block);
  detail::check_tensor_memory_major(name, s.a_major, s.a);
  detail::check_tensor_memory_major(name, s.b_major, s.b);
  if (s.a_in_tensor_memory && s.a_major != Major::k)
    refuse(name, "A in tensor memory has no major-ness: a_major must be k");
  return true;
}

/// The instruction for operands and scales of these types: kind mxf4 of e2m1 both with 32 elements
/// to a scale, mxf4nvf4 of e2m1 with others, else mxf8f6f4. Refuses what is none.
constexpr ScaledMmaSpec scaled_mma(DType a, DType b, DType scale, int block, int n, int ctas = 1,
                                   bool a_in_tensor_memory = false) {
  bool const of_4bits = a == DType::e2m1 && b == DType::e2m1;
  ScaledMmaKind const kind = !of_4bits     ? ScaledMmaKind::mxf8f6f4
                             : block == 32 ? ScaledMmaKind::mxf4
                                           : ScaledMmaKind::mxf4nvf4;
  ScaledMmaSpec const spec{.kind = kind,
                           .m = 128 * ctas,
                           .n = n,
                           .a = a,
                           .b = b,
                           .scale = scale,
                           .block = block,
                           .ctas = ctas,
                           .a_in_tensor_memory = a_in_tensor_memory};
  check(spec);
  return spec;
}

}  // namespace tegula
