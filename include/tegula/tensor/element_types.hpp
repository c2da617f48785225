#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/macros.hpp"
#include "tegula/numeric/tfloat32.hpp"

/// Between elements of which types a copy, which moves bits, does not change what they mean.
namespace tegula::detail {

template <class T> inline constexpr bool is_f32_or_tf32 = false;
template <> inline constexpr bool is_f32_or_tf32<float> = true;
template <> inline constexpr bool is_f32_or_tf32<tfloat32> = true;

/// The same type; or of one size, one of them an unsigned integer, which stands for bits; or f32
/// and tf32, which is an f32 that is cut.
template <class From, class To, class F = std::remove_const_t<From>,
          class G = std::remove_const_t<To>>
inline constexpr bool same_elements = std::is_same_v<F, G> ||
                                      (sizeof(F) == sizeof(G) &&
                                       (std::is_unsigned_v<F> || std::is_unsigned_v<G> ||
                                        (is_f32_or_tf32<F> && is_f32_or_tf32<G>)));

template <class From, class To> TEGULA_DEVICE constexpr void check_copied_elements() {
  static_assert(same_elements<From, To>,
                "copy: source and target have elements of different types, and a copy moves bits: "
                "convert<T> converts, recast<U> to an unsigned integer says that bits are meant");
}

}  // namespace tegula::detail
