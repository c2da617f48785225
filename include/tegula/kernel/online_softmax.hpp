#pragma once

#include "tegula/arch/math.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/macros.hpp"
#include "tegula/numeric/exp2.hpp"

namespace tegula {

inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kLn2 = 0x1.62e430p-1f;
inline constexpr float kInfinity = __builtin_huge_valf();

/// 2^x as the configuration wants it.
template <Exponential E> TEGULA_DEVICE float exp2(float x) {
  if constexpr (E == Exponential::ex2_approx) {
    return ex2_approx_ftz(x);
  } else {
    return exp2_polynomial(x);
  }
}

/// The running softmax of the rows that a lane shares with the three other lanes of its quad: row h of tile
/// m, m < MMA_M, h < 2.
///
/// Online softmax (Milakov and Gimelshein, arXiv 1805.02867) in base 2: P = 2^(scale_log2 S - offset), where
/// offset follows the row's maximum only when that has grown by more than `kSlack`: until then P stays below
/// 2^kSlack, well inside f32 and f16, and neither need the maximum be shared by the quad nor O be rescaled.
/// (The idea of a slack is FlashAttention-4's.) Sums stay in each lane until the end.
template <int MMA_M, Exponential E> struct OnlineSoftmax {
  static constexpr float kSlack = 8.0f;

  float scale_log2;  ///< softmax scale times log2(e)
  float offset[MMA_M]
              [2];      ///< scale_log2 times a maximum of the row so far; -inf before the row has seen a key
  float sum[MMA_M][2];  ///< of this lane's P

  TEGULA_DEVICE explicit OnlineSoftmax(float scale) : scale_log2(scale * kLog2E) {
#pragma unroll
    for (int m = 0; m < MMA_M; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        offset[m][h] = -kInfinity;
        sum[m][h] = 0.0f;
      }
    }
  }

  /// Replaces S (MMA_M, MMA_N) by P, after rescaling O (MMA_M, MMA_D) and the sums to a new maximum where
  /// that is due.
  template <int MMA_N, int MMA_D>
  TEGULA_DEVICE void apply(float (&tSrS)[MMA_M][MMA_N][4], float (&tOrO)[MMA_M][MMA_D][4]) {
    float maximum[MMA_M][2];
    bool grown = false;
#pragma unroll
    for (int m = 0; m < MMA_M; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float largest = max_f32(tSrS[m][0][2 * h], tSrS[m][0][2 * h + 1]);
#pragma unroll
        for (int n = 1; n < MMA_N; ++n) {
          largest = max_f32(largest, max_f32(tSrS[m][n][2 * h], tSrS[m][n][2 * h + 1]));
        }
        maximum[m][h] = largest * scale_log2;
        grown |= maximum[m][h] > offset[m][h] + kSlack;
      }
    }
    if (warp::any(grown)) rescale(maximum, tOrO);
#pragma unroll
    for (int m = 0; m < MMA_M; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float const subtrahend = offset[m][h] == -kInfinity ? 0.0f : offset[m][h];
#pragma unroll
        for (int n = 0; n < MMA_N; ++n) {
#pragma unroll
          for (int i = 2 * h; i < 2 * h + 2; ++i) {
            tSrS[m][n][i] = exp2<E>(fma(tSrS[m][n][i], scale_log2, -subtrahend));
            sum[m][h] += tSrS[m][n][i];
          }
        }
      }
    }
  }

  /// The sum of a row over the quad; every lane of the quad gets it.
  TEGULA_DEVICE float total(int m, int h) const {
    float const pair = sum[m][h] + warp::shfl_xor(sum[m][h], 1);
    return pair + warp::shfl_xor(pair, 2);
  }

 private:
  template <int MMA_D>
  TEGULA_DEVICE void rescale(float const (&maximum)[MMA_M][2], float (&tOrO)[MMA_M][MMA_D][4]) {
#pragma unroll
    for (int m = 0; m < MMA_M; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float const pair = max_f32(maximum[m][h], warp::shfl_xor(maximum[m][h], 1));
        float const next = max_f32(offset[m][h], max_f32(pair, warp::shfl_xor(pair, 2)));
        // Before its first key a row's sum and O are 0, whatever the factor.
        float const factor = offset[m][h] == -kInfinity ? 1.0f : exp2<E>(offset[m][h] - next);
        offset[m][h] = next;
        sum[m][h] *= factor;
#pragma unroll
        for (int d = 0; d < MMA_D; ++d) {
          tOrO[m][d][2 * h] *= factor;
          tOrO[m][d][2 * h + 1] *= factor;
        }
      }
    }
  }
};

}  // namespace tegula
