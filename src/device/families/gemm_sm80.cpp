// What gemm_sm80 is launched with.

#include "gemm_sm80.hpp"

namespace tegula {

GemmParams lower(GemmArguments const& arguments) {
  GemmArguments const g = with_defaults(arguments);
  return {.a = g.a,
          .b = g.b,
          .c = g.c,
          .bias = g.bias,
          .d = g.d,
          .scale_a = g.scale_a,
          .scale_b = g.scale_b,
          .m = static_cast<int>(g.m),
          .n = static_cast<int>(g.n),
          .k = static_cast<int>(g.k),
          .lda = *g.lda,
          .ldb = *g.ldb,
          .ldc = *g.ldc,
          .ldd = *g.ldd,
          .batch = static_cast<int>(g.batch),
          .a_batch = *g.a_batch_stride,
          .b_batch = *g.b_batch_stride,
          .c_batch = *g.c_batch_stride,
          .d_batch = *g.d_batch_stride,
          .alpha = g.alpha,
          .beta = g.beta,
          .activation = g.activation};
}

}  // namespace tegula
