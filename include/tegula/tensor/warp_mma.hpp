#pragma once

#include <cstdint>

#include "tegula/arch/ldmatrix.hpp"
#include "tegula/arch/mma_sync.hpp"
#include "tegula/arch/where.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/macros.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/tensor/coordinates.hpp"
#include "tegula/tensor/shared_tile.hpp"

/// A warp's matrix product on m16n8k16 tensor-core instructions with 16-bit operands: fragments, their loads
/// from shared memory, and the loop. A fragment is a plain array: float (&acc)[MMA_M][MMA_N][4] is a warp's
/// (16 MMA_M) x (8 MMA_N) accumulator.
namespace tegula {

/// A lane's registers of one 16x16 tile of A, and of two adjacent 8x16 tiles of B: what one ldmatrix.x4
/// loads.
using FragmentA = std::uint32_t[4];
using FragmentB2 = std::uint32_t[4];

/// (lane, value) -> (m, n) of a lane's accumulator values, as layouts of coordinates. PTX ISA, fragments of
/// mma.m16n8k16.
inline constexpr Layout accumulator_lanes = make_layout(along(1, 4, 2), along(0, 8, 1));
inline constexpr Layout accumulator_values = make_layout(along(1, 2, 1), along(0, 2, 8));

/// Lane -> (mn, k) of the 16-byte row whose address it gives to ldmatrix.x4, so that the four matrices it
/// loads are the registers of A (16x16), or of two tiles of B (16x16 in (n, k)). For an operand whose mn axis
/// is contiguous in shared memory the 16-byte rows lie along mn, and the transposing ldmatrix is used.
/// `contiguous`: 0 for mn, 1 for k.
constexpr Layout ldmatrix_rows_a(int contiguous) {
  return make_layout(along(1 - contiguous, 8, 1), along(0, 2, 8), along(1, 2, 8));
}
constexpr Layout ldmatrix_rows_b(int contiguous) {
  return make_layout(along(1 - contiguous, 8, 1), along(1, 2, 8), along(0, 2, 8));
}

/// Loads a lane's registers of four 8x8 matrices, transposed if the tile's mn axis is contiguous.
template <int Contiguous>
TEGULA_DEVICE void load_fragment(std::uint32_t (&r)[4], SharedAddr row, Where where = Where::here()) {
  if constexpr (Contiguous == 1) {
    ldmatrix<4>(r, row, where);
  } else {
    ldmatrix_trans<4>(r, row, where);
  }
}

template <int M, int N> TEGULA_DEVICE void clear(float (&acc)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[m][n][i] = 0.0f;
    }
  }
}

/// The largest divisor of `value` that is at most `bound`.
constexpr int largest_divisor(int value, int bound) {
  int divisor = bound < value ? bound : value;
  while (value % divisor != 0) --divisor;
  return divisor;
}

/// Pairs of B's N tiles in one step of warp_gemm.
template <int N, int Block> inline constexpr int warp_gemm_block = largest_divisor(N / 2, Block);

/// acc (MMA_M, MMA_N) += A (MMA_M, K) B (MMA_N, K)^T over K instructions of depth 16.
///
/// load_a(k, m, registers) and load_b(k, n, registers) fetch the fragment of A's tile m, and of B's tiles 2n
/// and 2n + 1, at depth k. The product goes step by step through blocks of at most `Block` of B's pairs; B's
/// fragments for the next step are fetched before the instructions of the current one, so that their latency
/// is hidden. (A's are not: the registers are worth more.)
template <MmaSpec Mma, int K, int Block = 4, int M, int N, class LoadA, class LoadB>
TEGULA_DEVICE void warp_gemm(float (&acc)[M][N][4], LoadA load_a, LoadB load_b, Where where = Where::here()) {
  constexpr int pairs = N / 2;
  constexpr int block = warp_gemm_block<N, Block>;
  constexpr int blocks = pairs / block;
  static_assert(N % 2 == 0, "B's tiles come in pairs");
  FragmentA a[M];
  FragmentB2 b[2][block];
  auto const fetch = [&](int step) {
    int const k = step / blocks, n = step % blocks * block;
#pragma unroll
    for (int i = 0; i < block; ++i) load_b(k, n + i, b[step % 2][i]);
  };
  fetch(0);
#pragma unroll
  for (int step = 0; step < K * blocks; ++step) {
    if (step + 1 < K * blocks) fetch(step + 1);
    int const k = step / blocks, n = step % blocks * block;
    if (n == 0) {
#pragma unroll
      for (int m = 0; m < M; ++m) load_a(k, m, a[m]);
    }
#pragma unroll
    for (int i = 0; i < block; ++i) {
#pragma unroll
      for (int m = 0; m < M; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          auto& c = acc[m][2 * (n + i) + half];
          std::uint32_t const pair[2] = {b[step % 2][i][2 * half], b[step % 2][i][2 * half + 1]};
          mma_sync<Mma>(c, a[m], pair, c, where);
        }
      }
    }
  }
}

}  // namespace tegula
