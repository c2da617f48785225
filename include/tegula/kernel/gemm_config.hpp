#pragma once

#include <cstdint>

#include "tegula/atom/mma_spec.hpp"
#include "tegula/kernel/activation.hpp"
#include "tegula/numeric/dtype.hpp"

namespace tegula {

/// One configuration of the GEMM kernel: everything inside a CTA's tile.
///
/// A CTA computes a block_m x block_n tile of D with warps_m x warps_n warps, walking K in steps
/// of block_k through `stages` shared-memory buffers. Operands move from global to shared memory
/// `vector_bytes` at a time: 16 (cp.async), or the size of one element where alignment rules
/// that out.
struct GemmConfig {
  DType in = DType::bf16;
  DType out = DType::bf16;
  Major a_major = Major::k;
  Major b_major = Major::k;
  int block_m = 128;
  int block_n = 128;
  int block_k = 32;
  int stages = 3;
  int warps_m = 2;
  int warps_n = 2;
  int min_ctas_per_sm = 1;
  int vector_bytes = 16;

  constexpr bool operator==(GemmConfig const&) const = default;
};

/// Shared memory of a CTA: the stages of A and B, 16 bits an element, and 16 rows of D in f32 for
/// each warp.
constexpr int shared_bytes(GemmConfig const& c) {
  return 2 * c.stages * c.block_k * (c.block_m + c.block_n) + 4 * 16 * c.warps_m * c.block_n;
}

/// What the GEMM kernel is launched with: D = activation(alpha scale_a scale_b A B^T + beta C +
/// bias) for each batch, A as (m, k), B as (n, k), C and D as (m, n).
///
/// C and D are row-major (n contiguous) in the output type; ld* are the distances, in elements,
/// between consecutive rows (K-major) or columns (M- or N-major) of an operand, *_batch those
/// between consecutive batches. bias (n values in the output type), c and the scales (a value each)
/// may be null; c is not read when beta is 0.
struct GemmParams {
  void const* a = nullptr;
  void const* b = nullptr;
  void const* c = nullptr;
  void const* bias = nullptr;
  void* d = nullptr;
  float const* scale_a = nullptr;
  float const* scale_b = nullptr;
  int m = 0;
  int n = 0;
  int k = 0;
  std::int64_t lda = 0;
  std::int64_t ldb = 0;
  std::int64_t ldc = 0;
  std::int64_t ldd = 0;
  int batch = 1;
  std::int64_t a_batch = 0;
  std::int64_t b_batch = 0;
  std::int64_t c_batch = 0;
  std::int64_t d_batch = 0;
  float alpha = 1;
  float beta = 0;
  Activation activation = Activation::none;
  int raster_group = 8;  ///< tiles along M whose CTAs run side by side, for reuse in L2
};

}  // namespace tegula
