// Every form of redux.sync on floats: the assembler of sm_100a must take it, and nothing runs it.
#include "tegula/arch/warp.hpp"

namespace tegula {

__global__ void reductions(float* p) {
  float const x = p[threadIdx.x];
  float const results[] = {warp::reduce_min_f32(x),
                           warp::reduce_max_f32(x),
                           warp::reduce_min_f32<true>(x),
                           warp::reduce_max_f32<true>(x),
                           warp::reduce_min_f32<false, true>(x),
                           warp::reduce_max_f32<false, true>(x),
                           warp::reduce_min_f32<true, true>(x),
                           warp::reduce_max_f32<true, true>(x, 0xffffu)};
  for (int i = 0; i < 8; ++i) p[32 * (i + 1) + threadIdx.x] = results[i];
}

}  // namespace tegula
