#pragma once

#include <cstdint>
#include <initializer_list>
#include <tegula/numeric/float8.hpp>
#include <tegula/numeric/narrow.hpp>

/// The scales of blocks: 8-bit formats without a sign.
namespace tegula {

/// OCP E8M0, PTX .ue8m0: 2^(bits - 127), from 2^-127 to 2^127; 0xff is NaN. No zero.
struct float_ue8m0 {
  std::uint8_t bits;

  float_ue8m0() = default;
  TEGULA_HOST_DEVICE constexpr float_ue8m0(std::initializer_list<std::uint8_t> bits)
      : bits(detail::only(bits)) {}

  TEGULA_HOST_DEVICE constexpr explicit operator float() const {
    return detail::bits_float(bits == 0xff ? 0x7fffffffu
                              : bits == 0  ? 0x400000u
                                           : static_cast<std::uint32_t>(bits) << 23);
  }
};

/// PTX .ue4m3: e4m3 whose sign bit is not read, from 0 to 448; NaN is 0x7f.
struct float_ue4m3 {
  std::uint8_t bits;

  float_ue4m3() = default;
  TEGULA_HOST_DEVICE constexpr float_ue4m3(std::initializer_list<std::uint8_t> bits)
      : bits(detail::only(bits)) {}

  TEGULA_HOST_DEVICE constexpr explicit operator float() const {
    return static_cast<float>(float_e4m3{static_cast<std::uint8_t>(bits & 0x7f)});
  }
};

/// PTX cvt.rp.satfinite.ue8m0x2.f32 of |x|, one element: to the next power of two that is not less,
/// at least 2^-127; infinity to 2^127, NaN to 0xff.
TEGULA_HOST_DEVICE constexpr float_ue8m0 to_float_ue8m0(float x) {
  std::uint32_t const magnitude = detail::float_bits(x) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return float_ue8m0{0xff};
  if (magnitude <= 0x400000u) return float_ue8m0{0};
  std::uint32_t const code = (magnitude + 0x7fffffu) >> 23;
  return float_ue8m0{static_cast<std::uint8_t>(code < 0xfe ? code : 0xfe)};
}

/// |x| as PTX cvt.rn.satfinite.e4m3x2.f32 rounds it: overflow and infinity to 448, NaN to 0x7f.
TEGULA_HOST_DEVICE constexpr float_ue4m3 to_float_ue4m3(float x) {
  return float_ue4m3{static_cast<std::uint8_t>(to_float_e4m3(x).bits & 0x7f)};
}

TEGULA_HOST_DEVICE constexpr float to_float(float_ue8m0 x) { return static_cast<float>(x); }
TEGULA_HOST_DEVICE constexpr float to_float(float_ue4m3 x) { return static_cast<float>(x); }

}  // namespace tegula
