#pragma once

#include "tegula/arch/math.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/global.hpp"

namespace tegula {

/// y = alpha x + beta y, of a thread's registers and its part of a tensor in global memory. With
/// beta 0, y is not read; nothing outside of a tensor that clips is read or written. (CuTe: axpby.)
template <Registers X, class T, class A, Clip C, class M>
TEGULA_DEVICE void axpby(float alpha, X const& x, float beta, Tensor<Global<T, A, C>, M> const& y,
                         SourceLocation where = SourceLocation::current()) {
  static_assert(X::size == map_size<M>, "axpby: x and y differ in size");
  static_assert(std::is_same_v<T, float> && std::is_same_v<typename X::Element, float>,
                "axpby: x and y hold f32: convert<float>(x)");
  auto const base = y.space.base();
#pragma unroll
  for (int i = 0; i < X::size; ++i) {
    if (C != Clip::none && !base.template inside<M>(i)) continue;
    float* const place = base.template at<M>(where, i);
    float const scaled = alpha * x.value(i, where);
    st_global(place, beta == 0.0f ? scaled : fma(beta, ld_global<float>(place, where), scaled),
              where);
  }
}

}  // namespace tegula
