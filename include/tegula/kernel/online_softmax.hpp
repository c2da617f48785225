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

/// tanh(x) = 1 - 2 / (1 + e^2x), to about 2^-22: that of hardware is good to 2^-11. Of NaN it is
/// NaN.
template <Exponential E> TEGULA_DEVICE float tanh_by_exp2(float x) {
  float const power = exp2<E>(min_nan_f32(x * (2.0f * kLog2E), 126.0f));
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
  /// Whether few blocks of keys make a row follow its maximum. Then a block is asked whether one
  /// of its exponents is above the slack, by half as many instructions as maxima take. Only where
  /// one is are maxima computed.
  static constexpr bool follows_rarely = kSlack >= 8.0f;
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

  /// Replaces S, of the first keys that are seen, by P: in the first `Count` columns, and the
  /// others are left for exponentiate_rest.
  template <int Count = columns> TEGULA_DEVICE void start_and_exponentiate(Fragment<float, M>& S) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      offset[r] = shifted(shared_maximum(S, r) * scale_log2);
      if constexpr (follows_rarely) to_exponents(S, r);
      raise<Count>(S, r);
    }
  }
  /// The same of further keys. O is then to be multiplied by `factor` if some row of the warp has
  /// followed its maximum, or seen no key before: that is the answer, which all lanes share.
  template <int Count = columns>
  TEGULA_DEVICE bool follow_and_exponentiate(Fragment<float, M>& S, float (&factor)[rows]) {
    if constexpr (follows_rarely) {
      bool unseen = false;
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        unseen |= offset[r] == -kInfinity;
        to_exponents(S, r);
      }
      bool const grown = warp::any(unseen || any_above(S, kShift + kSlack));
      if (grown) {
#pragma unroll
        for (int r = 0; r < rows; ++r) factor[r] = follow_exponents(S, r);
      }
#pragma unroll
      for (int r = 0; r < rows; ++r) raise<Count>(S, r);
      return grown;
    } else {
      // Where no row's maximum can both be negative and be followed, integers compare scores.
      bool negative = false;
#pragma unroll
      for (int r = 0; r < rows; ++r) negative |= offset[r] < -(kShift + kSlack);
      return warp::any(negative) ? follow_each<Count, false>(S, factor)
                                 : follow_each<Count, true>(S, factor);
    }
  }
  /// Replaces the columns from `First` on by P, after one of these.
  template <int First> TEGULA_DEVICE void exponentiate_rest(Fragment<float, M>& S) {
#pragma unroll
    for (int r = 0; r < rows; ++r) raise<columns - First>(S, r, First);
  }
  /// The same of one row in two halves, without a branch. The first: whether the row has followed
  /// its maximum. O is then to be multiplied by `factor`, which otherwise is 1.
  template <bool ByBits = false>
  TEGULA_DEVICE bool follow(Fragment<float, M> const& S, int r, float& factor) {
    float const maximum = shared_maximum<ByBits>(S, r) * scale_log2;
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
    float const subtrahend = known_offset(r);
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
  /// That of a row which has seen a key; else 0.
  TEGULA_DEVICE float known_offset(int r) const {
    return offset[r] == -kInfinity ? 0.0f : offset[r];
  }
  /// Replaces a row's scores by the exponents of 2 that P has with the offset as it stands.
  TEGULA_DEVICE void to_exponents(Fragment<float, M>& S, int r) const {
    float const subtrahend = known_offset(r);
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      float& s = row_column(S, r, c);
      s = fma(s, scale_log2, -subtrahend);
    }
  }
  /// Whether one of a lane's exponents, of whatever row, is above `limit`, which is positive.
  TEGULA_DEVICE static bool any_above(Fragment<float, M> const& exponents, float limit) {
    static_assert(columns % 2 == 0, "pairs of exponents are compared");
    float part[4] = {};  // side by side, for one maximum waits for the one before it
#pragma unroll
    for (int i = 0; i + 1 < exponents.size; i += 2)
      part[i / 2 % 4] = max_of_bits(part[i / 2 % 4], exponents(i), exponents(i + 1));
    return max_of_bits(max_of_bits(part[0], part[1], part[2]), part[3], 0.0f) > limit;
  }
  /// follow_and_exponentiate row by row and without a branch: the maximum of one row is computed
  /// while the exponentials of another are. `ByBits`: a maximum that is followed is positive.
  template <int Count, bool ByBits>
  TEGULA_DEVICE bool follow_each(Fragment<float, M>& S, float (&factor)[rows]) {
    bool grown = false;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      grown |= follow<ByBits>(S, r, factor[r]);
      raise<Count>(S, r);
    }
    return warp::any(grown);
  }
  /// Has a row follow the maximum of its exponents where that has grown by more than the slack, or
  /// the row seen no key before. What O is then to be multiplied by, else 1.
  TEGULA_DEVICE float follow_exponents(Fragment<float, M>& exponents, int r) {
    float const maximum = shared_maximum(exponents, r);
    bool const unseen = offset[r] == -kInfinity;
    if (!(unseen ? maximum > -kInfinity : maximum > kShift + kSlack)) return 1.0f;
    float const growth = shifted(maximum);
    float const factor = unseen ? 1.0f : exp2<E>(-growth);  // an unseen row's O and sum are 0
    offset[r] = known_offset(r) + growth;
    sum[r] *= factor;
#pragma unroll
    for (int c = 0; c < columns; ++c) row_column(exponents, r, c) -= growth;
    return factor;
  }
  /// Replaces exponents, where rows follow rarely, or else scores by P, in `Count` columns from
  /// `first` on.
  template <int Count> TEGULA_DEVICE void raise(Fragment<float, M>& S, int r, int first = 0) {
    if constexpr (follows_rarely) {
#pragma unroll
      for (int c = first; c < first + Count; ++c) {
        float& s = row_column(S, r, c);
        s = exp2<E>(s);
        sum[r] += s;
      }
    } else {
      exponentiate<Count>(S, r, first);
    }
  }

  /// Combines the values of a row's lanes.
  template <class Combine> TEGULA_DEVICE static float of_row(float own, Combine combine) {
    if constexpr (Lanes == 1) {
      return own;
    } else {
      float const pair = combine(own, warp::shfl_xor(own, 1));
      return combine(pair, warp::shfl_xor(pair, 2));
    }
  }
  /// The largest value of a row; each of its lanes gets it. `ByBits`: or, if it is negative, some
  /// value of the row.
  template <bool ByBits = false>
  TEGULA_DEVICE static float shared_maximum(Fragment<float, M> const& values, int r) {
    float const own = ByBits ? largest_by_bits(values, r) : largest(values, r);
    return of_row(own, [](float x, float y) { return max_f32(x, y); });
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

  /// Of the scores that this lane has of a row, the largest, or, if that is negative, some other.
  TEGULA_DEVICE static float largest_by_bits(Fragment<float, M> const& S, int r) {
    static_assert(columns % 2 == 0);
    float part[2] = {row_column(S, r, 0), row_column(S, r, 1)};
#pragma unroll
    for (int c = 2; c < columns; c += 2)
      part[c / 2 % 2] = max_of_bits(part[c / 2 % 2], row_column(S, r, c), row_column(S, r, c + 1));
    return max_of_bits(part[0], part[1], part[1]);
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
