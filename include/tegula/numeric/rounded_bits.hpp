#pragma once

#include <cstdint>
#include <tegula/numeric/dtype.hpp>

namespace tegula {

/// The bits of `x` rounded to a type of at most 32 bits: a float of 16, 8, 6 or 4 bits. Of tf32 and
/// f32 those of `x` itself: what the tensor core drops of tf32 is there to be dropped.
constexpr std::uint32_t rounded_bits(DType type, float x) {
  switch (type) {
    case DType::f16:
      return to_half(x).bits;
    case DType::bf16:
      return to_bfloat16(x).bits;
    case DType::e4m3:
      return to_float_e4m3(x).bits;
    case DType::e5m2:
      return to_float_e5m2(x).bits;
    case DType::e2m3:
      return to_float_e2m3(x).bits;
    case DType::e3m2:
      return to_float_e3m2(x).bits;
    case DType::e2m1:
      return to_float_e2m1(x).bits;
    default:
      return detail::float_bits(x);
  }
}

}  // namespace tegula
