#pragma once

#include <cstdint>
#include <tegula/macros.hpp>
#include <type_traits>

/// Rounding to integers and conversions to them, the same on a GPU, on the simulated machine and in
/// host code: PTX ISA, cvt, the rounding modifiers .rni (to nearest even), .rzi (toward zero), .rmi
/// (down) and .rpi (up). From an integer to a float C++'s conversion rounds to nearest even on
/// every machine (cvt.rn); from a float to an integer it is undefined where the value does not fit,
/// and machines differ there. These do not.
namespace tegula {

namespace detail {

template <class To, class Float> TEGULA_HOST_DEVICE constexpr void check_cvt() {
  static_assert(std::is_same_v<Float, float> || std::is_same_v<Float, double>,
                "cvt to an integer takes a float or a double");
  static_assert(std::is_same_v<To, Float> || std::is_same_v<To, std::int32_t> ||
                    std::is_same_v<To, std::uint32_t> || std::is_same_v<To, std::int64_t> ||
                    std::is_same_v<To, std::uint64_t>,
                "cvt of a float gives its own type, or an integer of 32 or 64 bits, which cvt_sat "
                "narrows to 8 or 16");
}

#if !defined(__CUDA_ARCH__)
/// `x`, a float that is an integer or none, as one of type To.
template <class To, class Float> To converted(Float x) {
  if constexpr (std::is_same_v<To, Float>) {
    return x;
  } else {
    constexpr int bits = 8 * sizeof(To);
    constexpr To top = static_cast<To>(std::uint64_t{1} << (bits - 1));  // its highest bit
    if (x != x) return sizeof(Float) == 4 && bits == 32 ? To{0} : top;
    // One more than the greatest integer; it is a float.
    constexpr Float half = static_cast<Float>(std::uint64_t{1} << (bits - 1));
    constexpr Float end = std::is_signed_v<To> ? half : 2 * half;
    constexpr To least = std::is_signed_v<To> ? top : To{0};
    if (x >= end) return static_cast<To>(~least);
    if (x < static_cast<Float>(least)) return least;
    return static_cast<To>(x);
  }
}
#endif

}  // namespace detail

#if defined(__CUDA_ARCH__)
#define TEGULA_CVT(MODE, TO, REGISTER, FROM, IN) \
  asm("cvt." MODE "." TO "." FROM " %0, %1;" : REGISTER(r) : IN(x))
#define TEGULA_CVT_OF(MODE, FROM, IN)                       \
  To r;                                                     \
  if constexpr (std::is_same_v<To, Float>) {                \
    TEGULA_CVT(MODE, FROM, "=" IN, FROM, IN);               \
  } else if constexpr (std::is_same_v<To, std::int32_t>) {  \
    TEGULA_CVT(MODE, "s32", "=r", FROM, IN);                \
  } else if constexpr (std::is_same_v<To, std::uint32_t>) { \
    TEGULA_CVT(MODE, "u32", "=r", FROM, IN);                \
  } else if constexpr (std::is_signed_v<To>) {              \
    TEGULA_CVT(MODE, "s64", "=l", FROM, IN);                \
  } else {                                                  \
    TEGULA_CVT(MODE, "u64", "=l", FROM, IN);                \
  }                                                         \
  return r
#define TEGULA_CVT_BODY(MODE, HOST)   \
  detail::check_cvt<To, Float>();     \
  if constexpr (sizeof(Float) == 4) { \
    TEGULA_CVT_OF(MODE, "f32", "f");  \
  } else {                            \
    TEGULA_CVT_OF(MODE, "f64", "d");  \
  }
#else
#define TEGULA_CVT_BODY(MODE, HOST)                       \
  detail::check_cvt<To, Float>();                         \
  if constexpr (sizeof(Float) == 4) {                     \
    return detail::converted<To>(__builtin_##HOST##f(x)); \
  } else {                                                \
    return detail::converted<To>(__builtin_##HOST(x));    \
  }
#endif

/// x, a float or a double, rounded to an integer: to nearest even, toward zero, down, up. `To` is
/// x's own type, or an integer's of 32 or 64 bits. As a float, what is rounded to zero keeps its
/// sign. As an integer, what does not fit becomes the nearest that does, and a NaN 0; of a double,
/// and to 64 bits, it becomes the integer whose highest bit alone is set.
template <class To, class Float> TEGULA_HOST_DEVICE To cvt_rni(Float x) {
  TEGULA_CVT_BODY("rni", rint);
}
template <class To, class Float> TEGULA_HOST_DEVICE To cvt_rzi(Float x) {
  TEGULA_CVT_BODY("rzi", trunc);
}
template <class To, class Float> TEGULA_HOST_DEVICE To cvt_rmi(Float x) {
  TEGULA_CVT_BODY("rmi", floor);
}
template <class To, class Float> TEGULA_HOST_DEVICE To cvt_rpi(Float x) {
  TEGULA_CVT_BODY("rpi", ceil);
}

#if defined(__CUDA_ARCH__)
#undef TEGULA_CVT
#undef TEGULA_CVT_OF
#endif
#undef TEGULA_CVT_BODY

/// An integer of 8 or 16 bits from one of 32, clamped to what it can hold: PTX ISA, cvt.sat.
template <class Narrow, class Wide> TEGULA_HOST_DEVICE Narrow cvt_sat(Wide x) {
  static_assert(std::is_same_v<Narrow, std::int8_t> || std::is_same_v<Narrow, std::uint8_t> ||
                    std::is_same_v<Narrow, std::int16_t> || std::is_same_v<Narrow, std::uint16_t>,
                "cvt_sat gives an integer of 8 or 16 bits");
  static_assert(std::is_same_v<Wide, std::int32_t> || std::is_same_v<Wide, std::uint32_t>,
                "cvt_sat takes an integer of 32 bits; cvt_rni makes one of a float");
#if defined(__CUDA_ARCH__)
  std::int32_t r;
#define TEGULA_CVT_SAT(TO)                                \
  if constexpr (std::is_signed_v<Wide>) {                 \
    asm("cvt.sat." TO ".s32 %0, %1;" : "=r"(r) : "r"(x)); \
  } else {                                                \
    asm("cvt.sat." TO ".u32 %0, %1;" : "=r"(r) : "r"(x)); \
  }
  if constexpr (std::is_same_v<Narrow, std::int8_t>) {
    TEGULA_CVT_SAT("s8")
  } else if constexpr (std::is_same_v<Narrow, std::uint8_t>) {
    TEGULA_CVT_SAT("u8")
  } else if constexpr (std::is_same_v<Narrow, std::int16_t>) {
    TEGULA_CVT_SAT("s16")
  } else {
    TEGULA_CVT_SAT("u16")
  }
#undef TEGULA_CVT_SAT
  return static_cast<Narrow>(r);
#else
  auto const wide = static_cast<std::int64_t>(x);
  constexpr int bits = 8 * sizeof(Narrow);
  constexpr std::int64_t least = std::is_signed_v<Narrow> ? -(std::int64_t{1} << (bits - 1)) : 0;
  constexpr std::int64_t most = least + (std::int64_t{1} << bits) - 1;
  return static_cast<Narrow>(wide < least ? least : wide > most ? most : wide);
#endif
}

}  // namespace tegula
