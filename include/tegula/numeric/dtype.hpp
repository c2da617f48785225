#pragma once

#include <cstdint>
#include <tegula/numeric/bfloat16.hpp>
#include <tegula/numeric/float4.hpp>
#include <tegula/numeric/float6.hpp>
#include <tegula/numeric/float8.hpp>
#include <tegula/numeric/half.hpp>
#include <tegula/numeric/scale8.hpp>
#include <tegula/numeric/tfloat32.hpp>

namespace tegula {

/// Element types, under PTX's names.
enum class DType : std::uint8_t {
  f64,
  f32,
  tf32,
  f16,
  bf16,
  e4m3,
  e5m2,
  e2m1,
  s64,
  u64,
  s32,
  u32,
  s16,
  u16,
  s8,
  u8,
  s4,
  u4,
  b1,
  e3m2,
  e2m3,
  ue8m0,
  ue4m3
};

inline constexpr int kDTypes = static_cast<int>(DType::ue4m3) + 1;

/// Bits an element occupies in memory (32 for tf32, though 19 count).
TEGULA_HOST_DEVICE constexpr int bits(DType type) {
  switch (type) {
    case DType::f64:
    case DType::s64:
    case DType::u64:
      return 64;
    case DType::f32:
    case DType::tf32:
    case DType::s32:
    case DType::u32:
      return 32;
    case DType::f16:
    case DType::bf16:
    case DType::s16:
    case DType::u16:
      return 16;
    case DType::e4m3:
    case DType::e5m2:
    case DType::s8:
    case DType::u8:
    case DType::ue8m0:
    case DType::ue4m3:
      return 8;
    case DType::e3m2:
    case DType::e2m3:
      return 6;
    case DType::e2m1:
    case DType::s4:
    case DType::u4:
      return 4;
    case DType::b1:
      return 1;
  }
  return 0;
}

constexpr char const* to_string(DType type) {
  constexpr char const* kNames[kDTypes] = {
      "f64", "f32", "tf32", "f16", "bf16", "e4m3", "e5m2", "e2m1", "s64",  "u64",   "s32",  "u32",
      "s16", "u16", "s8",   "u8",  "s4",   "u4",   "b1",   "e3m2", "e2m3", "ue8m0", "ue4m3"};
  return kNames[static_cast<int>(type)];
}

namespace detail {
template <class T> struct DTypeOf;
template <class T, DType D> struct IsDType {
  using Type = T;
  static constexpr DType value = D;
};
template <> struct DTypeOf<double> : IsDType<double, DType::f64> {};
template <> struct DTypeOf<float> : IsDType<float, DType::f32> {};
template <> struct DTypeOf<tfloat32> : IsDType<tfloat32, DType::tf32> {};
template <> struct DTypeOf<half> : IsDType<half, DType::f16> {};
template <> struct DTypeOf<bfloat16> : IsDType<bfloat16, DType::bf16> {};
template <> struct DTypeOf<float_e4m3> : IsDType<float_e4m3, DType::e4m3> {};
template <> struct DTypeOf<float_e5m2> : IsDType<float_e5m2, DType::e5m2> {};
template <> struct DTypeOf<float_ue8m0> : IsDType<float_ue8m0, DType::ue8m0> {};
template <> struct DTypeOf<float_ue4m3> : IsDType<float_ue4m3, DType::ue4m3> {};
template <> struct DTypeOf<std::int64_t> : IsDType<std::int64_t, DType::s64> {};
template <> struct DTypeOf<std::uint64_t> : IsDType<std::uint64_t, DType::u64> {};
template <> struct DTypeOf<std::int32_t> : IsDType<std::int32_t, DType::s32> {};
template <> struct DTypeOf<std::uint32_t> : IsDType<std::uint32_t, DType::u32> {};
template <> struct DTypeOf<std::int16_t> : IsDType<std::int16_t, DType::s16> {};
template <> struct DTypeOf<std::uint16_t> : IsDType<std::uint16_t, DType::u16> {};
template <> struct DTypeOf<std::int8_t> : IsDType<std::int8_t, DType::s8> {};
template <> struct DTypeOf<std::uint8_t> : IsDType<std::uint8_t, DType::u8> {};

template <DType D> struct TypeOf {
  static_assert(bits(D) >= 8,
                "type_of: no C++ object holds an element of less than a byte; a pair of e2m1 is a "
                "float_e2m1x2");
};
template <> struct TypeOf<DType::f64> : DTypeOf<double> {};
template <> struct TypeOf<DType::f32> : DTypeOf<float> {};
template <> struct TypeOf<DType::tf32> : DTypeOf<tfloat32> {};
template <> struct TypeOf<DType::f16> : DTypeOf<half> {};
template <> struct TypeOf<DType::bf16> : DTypeOf<bfloat16> {};
template <> struct TypeOf<DType::e4m3> : DTypeOf<float_e4m3> {};
template <> struct TypeOf<DType::e5m2> : DTypeOf<float_e5m2> {};
template <> struct TypeOf<DType::ue8m0> : DTypeOf<float_ue8m0> {};
template <> struct TypeOf<DType::ue4m3> : DTypeOf<float_ue4m3> {};
template <> struct TypeOf<DType::s64> : DTypeOf<std::int64_t> {};
template <> struct TypeOf<DType::u64> : DTypeOf<std::uint64_t> {};
template <> struct TypeOf<DType::s32> : DTypeOf<std::int32_t> {};
template <> struct TypeOf<DType::u32> : DTypeOf<std::uint32_t> {};
template <> struct TypeOf<DType::s16> : DTypeOf<std::int16_t> {};
template <> struct TypeOf<DType::u16> : DTypeOf<std::uint16_t> {};
template <> struct TypeOf<DType::s8> : DTypeOf<std::int8_t> {};
template <> struct TypeOf<DType::u8> : DTypeOf<std::uint8_t> {};
}  // namespace detail

/// The DType of a C++ element type (sub-byte types, which no C++ object holds singly, have none).
template <class T> inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

/// The C++ element type of a DType.
template <DType D> using type_of = typename detail::TypeOf<D>::Type;

/// binary32 to T: round to nearest even (fp8: saturating; tf32: toward zero, as a tensor core reads
/// it; ue8m0: upward). T: float, half, bfloat16, tfloat32, or a float of 8, 6 or 4 bits.
template <class T> TEGULA_HOST_DEVICE constexpr T from_float(float) {
  static_assert(sizeof(T) == 0,
                "from_float: T is float, half, bfloat16, tfloat32, or a float of 8, 6 or 4 bits");
  return {};
}
template <> TEGULA_HOST_DEVICE constexpr float from_float<float>(float x) { return x; }
template <> TEGULA_HOST_DEVICE constexpr half from_float<half>(float x) { return to_half(x); }
template <> TEGULA_HOST_DEVICE constexpr bfloat16 from_float<bfloat16>(float x) {
  return to_bfloat16(x);
}
template <> TEGULA_HOST_DEVICE constexpr tfloat32 from_float<tfloat32>(float x) {
  return to_tfloat32(x);
}
template <> TEGULA_HOST_DEVICE constexpr float_e4m3 from_float<float_e4m3>(float x) {
  return to_float_e4m3(x);
}
template <> TEGULA_HOST_DEVICE constexpr float_e5m2 from_float<float_e5m2>(float x) {
  return to_float_e5m2(x);
}
template <> TEGULA_HOST_DEVICE constexpr float_e2m1 from_float<float_e2m1>(float x) {
  return to_float_e2m1(x);
}

template <> TEGULA_HOST_DEVICE constexpr float_e3m2 from_float<float_e3m2>(float x) {
  return to_float_e3m2(x);
}
template <> TEGULA_HOST_DEVICE constexpr float_e2m3 from_float<float_e2m3>(float x) {
  return to_float_e2m3(x);
}
template <> TEGULA_HOST_DEVICE constexpr float_ue8m0 from_float<float_ue8m0>(float x) {
  return to_float_ue8m0(x);
}
template <> TEGULA_HOST_DEVICE constexpr float_ue4m3 from_float<float_ue4m3>(float x) {
  return to_float_ue4m3(x);
}

TEGULA_HOST_DEVICE constexpr float to_float(float x) { return x; }

}  // namespace tegula
