#pragma once

#include <cstdint>

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
/// and C in tensor memory and of f32, A and B in shared memory and K-major, by one CTA.
struct ScaledMmaSpec {
  ScaledMmaKind kind{};
  int m = 0, n = 0;
  DType a{}, b{};  ///< e4m3 or e5m2 each; of the kinds of four bits e2m1
  DType scale = DType::ue8m0;
  int block = 32;  ///< elements of a row that share a scale

  friend constexpr bool operator==(ScaledMmaSpec const&, ScaledMmaSpec const&) = default;
};

/// Elements along k: 32 bytes.
TEGULA_HOST_DEVICE constexpr int extent_k(ScaledMmaSpec const& s) { return 256 / bits(s.a); }
/// Scales of a row, 1, 2 or 4: .scale_vec.
TEGULA_HOST_DEVICE constexpr int scales(ScaledMmaSpec const& s) { return extent_k(s) / s.block; }

/// Refuses an instruction that sm_100a or the simulated machine lacks; true for all others. PTX
/// ISA, tcgen05.mma, "Block Scaling for tcgen05.mma".
constexpr bool check(ScaledMmaSpec const& s) {
  constexpr char const* name = "tcgen05_mma_scaled";
  bool const of_8bits = s.kind == ScaledMmaKind::mxf8f6f4;
  auto const is_8bit = [](DType type) { return type == DType::e4m3 || type == DType::e5m2; };
  bool const mx = s.scale == DType::ue8m0 && s.block == 32;
  bool const of_16 = s.block == 16 && (s.scale == DType::ue8m0 || s.scale == DType::ue4m3);
  if (s.m != 128) refuse(name, "m must be 128", s.m);
  if (s.n < 8 || s.n > 256 || s.n % 8 != 0)
    refuse(name, "n must be a multiple of 8 from 8 to 256", s.n);
  if (of_8bits && (!is_8bit(s.a) || !is_8bit(s.b)))
    refuse(name, "mxf8f6f4 is here of e4m3 and e5m2, not of 6 and 4 bits", to_string(s.a),
           to_string(s.b));
  if (!of_8bits && (s.a != DType::e2m1 || s.b != DType::e2m1))
    refuse(name, "a and b of mxf4 and mxf4nvf4 must be e2m1", to_string(s.a), to_string(s.b));
  if (s.kind != ScaledMmaKind::mxf4nvf4 && !mx)
    refuse(name, "mxf8f6f4 and mxf4 have a scale of ue8m0 for each 32 elements", to_string(s.scale),
           s.block);
  if (s.kind == ScaledMmaKind::mxf4nvf4 && !mx && !of_16)
    refuse(name, "mxf4nvf4 has scales of ue4m3 for 16, or ue8m0 for 16 or 32", to_string(s.scale),
           s.block);
  return true;
}

/// The instruction for operands and scales of these types: kind mxf8f6f4 of 8 bits, mxf4 of e2m1
/// with 32 elements to a scale, else mxf4nvf4. Refuses what is none.
constexpr ScaledMmaSpec scaled_mma(DType a, DType b, DType scale, int block, int n) {
  ScaledMmaKind const kind = bits(a) == 8  ? ScaledMmaKind::mxf8f6f4
                             : block == 32 ? ScaledMmaKind::mxf4
                                           : ScaledMmaKind::mxf4nvf4;
  ScaledMmaSpec const spec{
      .kind = kind, .m = 128, .n = n, .a = a, .b = b, .scale = scale, .block = block};
  check(spec);
  return spec;
}

}  // namespace tegula
