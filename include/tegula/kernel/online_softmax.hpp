#pragma once

#include <type_traits>

#include "tegula/arch/math.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/macros.hpp"
#include "tegula/numeric/exp2.hpp"
#include "tegula/numeric/float8.hpp"
#include "tegula/tensor/fragment.hpp"

namespace tegula {

inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kLn2 = 0x1.62e430p-1f;
inline constexpr float kInfinity = __builtin_bit_cast(float, 0x7f800000u);

/// 2^x as the configuration wants it.
template <Exponential E> TEGULA_DEVICE float exp2(float x) {
  if constexpr (E == Exponential::ex2_approx) {
    return ex2_approx_ftz(x);
  } else {
    return exp2_polynomial(x);
  }
}

/// tanh(x) = 1 - 2 / (1 + e^2x), to about 2^-22: that of hardware is good to 2^-11.
template <Exponential E> TEGULA_DEVICE float tanh_by_exp2(float x) {
  float const power = exp2<E>(min_f32(x * (2.0f * kLog2E), 126.0f));
  return fma(-2.0f, rcp_approx_ftz(1.0f + power), 1.0f);
}

/// The running softmax of the rows that a lane shares with the three other lanes of its quad, or,
/// with `Lanes` 1, has for itself. M is the map of the accumulators of S, T the type that P is
/// rounded to.
///
/// Online softmax (Milakov and Gimelshein, arXiv 1805.02867) in base 2: P = 2^(scale_log2 S -
/// offset), where offset follows the row's maximum only when that has grown by more than `kSlack`:
/// until then P stays below 2^kSlack, well inside f32 and f16, and neither need the maximum be
/// shared by the quad nor O be rescaled. (The idea of a slack is FlashAttention-4's.) Sums stay in
/// each lane until the end.
///
/// P of e4m3, which has few bits, fills that type's range instead: an offset stands kShift below
/// the maximum that it follows, so that P reaches 2^8, and the slack leaves P below 2^8.75, where
/// 448 is the largest number. Whatever the offset, O and the sums have it in common, and the
/// log-sum-exp adds it.
template <class M, Exponential E, class T = bfloat16, int Lanes = 4> struct OnlineSoftmax {
  static_assert(Lanes == 1 || Lanes == 4, "OnlineSoftmax: a row is a quad's, or a lane's");
  static constexpr Exponential exponential = E;
  static constexpr float kShift = std::is_same_v<T, float_e4m3> ? 8.0f : 0.0f;
  static constexpr float kSlack = std::is_same_v<T, float_e4m3> ? 0.75f : 8.0f;
  static constexpr int rows = count_along<M, 0>;
  static constexpr int columns = count_along<M, 1>;

  float scale_log2;  ///< softmax scale times log2(e)
  /// scale_log2 times a maximum of the row so far, less kShift; -inf before the row has seen a key
  float offset[rows];
  float sum[rows];  ///< of this lane's P

  TEGULA_DEVICE explicit OnlineSoftmax(float scale) : scale_log2(scale * kLog2E) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      offset[r] = -kInfinity;
      sum[r] = 0.0f;
    }
  }

  /// Replaces S by P, after rescaling O and the sums to a new maximum where that is due. S and O
  /// have the same rows in each lane.
  template <class MO> TEGULA_DEVICE void apply(Fragment<float, M>& S, Fragment<float, MO>& O) {
    float maximum[rows];
    bool grown = false;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      maximum[r] = largest(S, r) * scale_log2;
      grown |= maximum[r] > offset[r] + (kShift + kSlack);
    }
    if (warp::any(grown)) rescale(maximum, O);
#pragma unroll
    for (int r = 0; r < rows; ++r) exponentiate(S, r);
  }

  /// Replaces S by P, row by row and without a branch, so that the maximum of one row is computed
  /// while the exponentials of another are: in the first `Count` columns, and the others stay
  /// scores, for exponentiate_rest. A row alone follows its maximum; O is then to be multiplied by
  /// `factor`. The answer, which all lanes of a warp share, is whether any row has.
  template <int Count = columns>
  TEGULA_DEVICE bool follow_and_exponentiate(Fragment<float, M>& S, float (&factor)[rows]) {
    bool grown = false;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      grown |= follow(S, r, factor[r]);
      exponentiate<Count>(S, r);
    }
    return warp::any(grown);
  }
  /// Replaces S by P in the columns from `First` on.
  template <int First> TEGULA_DEVICE void exponentiate_rest(Fragment<float, M>& S) {
#pragma unroll
    for (int r = 0; r < rows; ++r) exponentiate<columns - First>(S, r, First);
  }
  /// The first half of it for one row: whether the row has followed its maximum. O is then to be
  /// multiplied by `factor`, which otherwise is 1.
  TEGULA_DEVICE bool follow(Fragment<float, M> const& S, int r, float& factor) {
    float const maximum =
        of_row(largest(S, r), [](float x, float y) { return max_f32(x, y); }) * scale_log2;
    bool const follows = maximum > offset[r] + (kShift + kSlack);
    float const next = shifted(maximum);
    factor = follows ? exp2<E>(offset[r] - next) : 1.0f;
    offset[r] = follows ? next : offset[r];
    sum[r] *= factor;
    return follows;
  }
  /// The second: replaces S by P, in `Count` columns from `first` on. Of each eight columns,
  /// `Polynomials` are computed by the polynomial, on other units than the hardware's exponentials.
  /// (A share of them: FlashAttention-4's idea.)
  template <int Count = columns, int Polynomials = 0>
  TEGULA_DEVICE void exponentiate(Fragment<float, M>& S, int r, int first = 0) {
    float const subtrahend = offset[r] == -kInfinity ? 0.0f : offset[r];
#pragma unroll
    for (int c = first; c < first + Count; ++c) {
      float& s = row_column(S, r, c);
      float const power = fma(s, scale_log2, -subtrahend);
      bool const by_polynomial = c * Polynomials % 8 < Polynomials;
      s = by_polynomial ? exp2_polynomial(power) : exp2<E>(power);
      sum[r] += s;
    }
  }

  /// O *= factor, row by row.
  template <class MO>
  TEGULA_DEVICE static void scale_rows(Fragment<float, MO>& O, float const (&factor)[rows]) {
    static_assert(count_along<MO, 0> == rows,
                  "OnlineSoftmax: S and O differ in the rows of a lane");
#pragma unroll
    for (int r = 0; r < rows; ++r) {
#pragma unroll
      for (int c = 0; c < count_along<MO, 1>; ++c) row_column(O, r, c) *= factor[r];
    }
  }

  /// The sum of a row over its lanes; each of them gets it.
  TEGULA_DEVICE float total(int r) const {
    return of_row(sum[r], [](float x, float y) { return x + y; });
  }

 private:
  /// Combines the values of a row's lanes.
  template <class Combine> TEGULA_DEVICE static float of_row(float own, Combine combine) {
    if constexpr (Lanes == 1) {
      return own;
    } else {
      float const pair = combine(own, warp::shfl_xor(own, 1));
      return combine(pair, warp::shfl_xor(pair, 2));
    }
  }
  /// The offset that follows a maximum.
  TEGULA_DEVICE static float shifted(float maximum) {
    return kShift == 0.0f ? maximum : maximum - kShift;
  }

  template <class MO>
  TEGULA_DEVICE void rescale(float const (&maximum)[rows], Fragment<float, MO>& O) {
    static_assert(count_along<MO, 0> == rows,
                  "OnlineSoftmax: S and O differ in the rows of a lane");
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      float const pair = max_f32(maximum[r], warp::shfl_xor(maximum[r], 1));
      float const next = max_f32(offset[r], shifted(max_f32(pair, warp::shfl_xor(pair, 2))));
      // Before its first key a row's sum and O are 0, whatever the factor.
      float const factor = offset[r] == -kInfinity ? 1.0f : exp2<E>(offset[r] - next);
      offset[r] = next;
      sum[r] *= factor;
#pragma unroll
      for (int c = 0; c < count_along<MO, 1>; ++c) row_column(O, r, c) *= factor;
    }
  }

  /// Of the scores that this lane has of a row: the largest of each of some columns, side by side,
  /// for one maximum waits for the one before it.
  TEGULA_DEVICE static float largest(Fragment<float, M> const& S, int r) {
    constexpr int parts = columns % 4 == 0 ? 4 : 2;
    float part[parts];
#pragma unroll
    for (int c = 0; c < columns; ++c)
      part[c % parts] =
          c < parts ? row_column(S, r, c) : max_f32(part[c % parts], row_column(S, r, c));
    float result = max_f32(part[0], part[1]);
    if constexpr (parts == 4) result = max_f32(result, max_f32(part[2], part[3]));
    return result;
  }
};

}  // namespace tegula
