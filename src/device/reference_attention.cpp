#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "reference_sums.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/numeric/float8.hpp"

// The bounds. Sums of products err as reference_sums.cpp says: mma(K), and the fp8 rule.
//
// Attention, a row of scores s_j = scale q.k_j and weights w_j = exp(s_j - max) / sum. The kernel
// computes 2^(fma(S_j, c, -offset)), c = scale log2(e). Any offset is right so long as O and the
// sum use the same, so only the arithmetic around it errs:
//   - S_j by mma(D) scale |q|.|k_j| =: delta_j, of which the largest counts;
//   - c by 2u relative, so s_j by 2u A, A the largest |s_j| of the row plus its delta; the fma by
//     u |s_j - offset| <= 2u A;
//   - the exponential by e = 2^-22 relative (ex2.approx.ftz: PTX ISA, 2 ulp; the polynomial:
//     1.02 ulp);
//   - at most one rescaling for each block of keys: the sum of the differences of offsets is at
//     most 2A (they grow monotonically), so 2u A for their roundings, and e + u for each factor
//     and product.
//   Together a weight errs, relatively, by eta = expm1(delta + 6u A + (1 + blocks)(e + u)).
//   - The sum, of non-negative terms: a lane adds a quarter of the keys, then two sums of lanes:
//     (keys / 4 + 4) u; as a divisor with a correctly rounded or approximate reciprocal and a
//     product, 4u more. It carries eta as well.
//   - P rounds to the input type: u_in relative, and half its smallest subnormal absolutely: P is
//     relative to the offset, and the sum is at least 1 in these units, so that part errs by at
//     most 2^-25 (f16) or 2^-126 (bf16, flushed f32) sum_j |v_j| / sum.
//   - P V by mma(keys + 8 blocks) with sum_j w_j |v_j| for S.
//   Of e4m3:
//   - S_j errs by the fp8 rule, and by 4u A more for the factors and their products.
//   - P is relative to 2^8 times its maximum or more (OnlineSoftmax), so its smallest subnormal,
//   2^-9,
//     is 2^-17 of that.
//   - P V is summed by the fp8 rule, where the products are known to eta and u_in relative, and
//     absolutely; the order of the steps, from the last block of keys to the first, makes no
//     difference to the largest partial sum that is taken. Rescaling O multiplies its error too.
//     With `precise`, partial sums are those of a block's steps, and blocks are added up in f32.
//     (tcgen05.mma, whose sums keep 25 bits, truncates 33 terms to 25 bits and the sum to 23: a
//     step adds at most 33 * 2^-25 + 2^-23 < 0x1.3p-20 of the partial sum over all blocks, and of
//     the largest product less than above. `precise` allows for both.)
//   Weights that err by as much as they are, or more, are still positive and have the sum 1, as far
//   as P's and O's roundings leave it: then O lies between the values, whatever the weights.
//   Anything is right where the roundings of the scores alone may take P out of its type's range, a
//   factor e of it at most, and where values of the tensor core's sums may be beyond f32: P is at
//   most 2^8.75 (OnlineSoftmax), and O is scaled by V's factor after them.
//   Then one rounding to the output type. The log-sum-exp errs by eta and the sum's part absolutely
//   (d ln x = dx / x), by lg2.approx's 2^-22 absolute and relative, and by a few roundings of
//   A + |lse|.

namespace tegula::reference {
namespace {

/// A sequence: how many queries and keys it has, and where, plainly from the arguments.
class Sequence {
 public:
  Sequence(AttentionArguments const& a, std::int64_t batch)
      : a_(a), batch_(batch), queries_(a.seq_q), keys_(*a.seq_k) {
    if (a.cu_seqlens_q != nullptr)
      queries_ = between(a.cu_seqlens_q[batch + 1] - a.cu_seqlens_q[batch], a.seq_q);
    if (a.cu_seqlens_k != nullptr)
      keys_ = between(a.cu_seqlens_k[batch + 1] - a.cu_seqlens_k[batch], *a.seq_k);
    if (a.seqused_k != nullptr) old_keys_ = keys_ = between(a.seqused_k[batch], keys_);
    if (a.k_new == nullptr) return;
    std::int64_t new_keys = a.seq_new;
    if (a.cu_seqlens_new != nullptr)
      new_keys = between(a.cu_seqlens_new[batch + 1] - a.cu_seqlens_new[batch], a.seq_new);
    keys_ = between(old_keys_ + new_keys, *a.seq_k);
  }

  std::int64_t queries() const { return queries_; }
  std::int64_t keys() const { return keys_; }
  /// Of keys(), those before new ones.
  std::int64_t old_keys() const { return a_.k_new == nullptr ? keys_ : old_keys_; }
  /// Offset of key j, a new one, in k_new or v_new, but for its head.
  std::int64_t new_key(std::int64_t j, TokenStrides const& s) const {
    std::int64_t const i = j - old_keys_;
    return a_.cu_seqlens_new != nullptr ? (a_.cu_seqlens_new[batch_] + i) * s.seq
                                        : batch_ * s.batch + i * s.seq;
  }
  /// Offsets of query i in q, and of key j in k or v, but for their heads.
  std::int64_t query(std::int64_t i) const {
    TokenStrides const& s = *a_.q_stride;
    return a_.cu_seqlens_q != nullptr ? (a_.cu_seqlens_q[batch_] + i) * s.seq
                                      : batch_ * s.batch + i * s.seq;
  }
  std::int64_t key(std::int64_t j, TokenStrides const& s) const {
    if (a_.page_table != nullptr) {
      std::int64_t const entry = batch_ * *a_.page_table_stride + j / a_.page_size;
      return a_.page_table[entry] * s.batch + j % a_.page_size * s.seq;
    }
    return a_.cu_seqlens_k != nullptr ? (a_.cu_seqlens_k[batch_] + j) * s.seq
                                      : batch_ * s.batch + j * s.seq;
  }

 private:
  static std::int64_t between(std::int64_t length, std::int64_t most) {
    return std::clamp<std::int64_t>(length, 0, most);
  }

  AttentionArguments const& a_;
  std::int64_t batch_, queries_, keys_, old_keys_ = 0;
};

/// The keys that a row sees: [begin, end).
struct Visible {
  std::int64_t begin, end;
};
Visible visible(AttentionArguments const& a, Sequence const& sequence, std::int64_t i) {
  std::int64_t const keys = sequence.keys(), place = i + keys - sequence.queries();
  std::int64_t begin = 0, end = keys;
  if (a.window_left) begin = std::max<std::int64_t>(begin, place - *a.window_left);
  if (a.causal) end = std::min(end, place + 1);
  if (a.window_right) end = std::min(end, place + 1 + *a.window_right);
  return {begin, std::max(begin, end)};
}

/// What the scores and values of 8-bit operands are multiplied with.
struct Descale {
  double scores = 1, values = 1;
};
Descale descale(AttentionArguments const& a, std::int64_t batch, std::int64_t kv_head) {
  auto const of = [&](float const* factors) {
    std::int64_t const place = batch * a.descale_stride->batch + kv_head * a.descale_stride->head;
    return factors == nullptr ? 1.0 : static_cast<double>(factors[place]);
  };
  return {of(a.q_descale) * of(a.k_descale), of(a.v_descale)};
}

/// P of e4m3 for the maximum of a row: OnlineSoftmax's 2^kShift, which the slack can but exceed.
constexpr double kLargestP = 0x1p8;
/// More than P ever is, of any type.
constexpr double kMostP = 0x1p9;

/// One row of O: scores, softmax and the sum of values, each with what a kernel's arithmetic may
/// add to it.
class AttentionRow {
 public:
  AttentionRow(AttentionArguments const& a, std::int64_t head, Descale const& descale, Visible keys,
               std::int64_t all_keys)
      : a_(a),
        descale_(descale),
        first_(keys.begin),
        all_keys_(all_keys),
        weight_(static_cast<std::size_t>(keys.end - keys.begin)),
        has_sink_(a.sink != nullptr) {
    if (has_sink_) sink_ = a.sink[head];
  }

  void scores(double const* q, double const* k) {
    if (has_sink_) take(sink_);
    double const scale = *a_.scale * descale_.scores;
    for (std::size_t j = 0; j < weight_.size(); ++j) {
      double const* const key = k + (first_ + static_cast<std::int64_t>(j)) * a_.head_dim;
      Dot const s = dot(q, key, a_.head_dim);
      double score = scale * s.sum;
      delta_ = std::max(delta_, std::abs(scale) * product_error(q, key, s));
      if (a_.softcap != 0) score = a_.softcap * std::tanh(score / a_.softcap);
      take(weight_[j] = score);
    }
    // Of tanh from an exponential and a reciprocal, both approximate, whose slope is at most 1: a
    // few 2^-22.
    if (a_.softcap != 0) delta_ += std::abs(static_cast<double>(a_.softcap)) * 0x1p-20;
    for (double& w : weight_) sum_ += w = std::exp(w - largest_);
    if (has_sink_) sum_ += std::exp(sink_ - largest_);
    double const exponential = 0x1p-22;
    int const roundings = fp8() ? 10 : 6;  // of scores: the factors and their products
    double const rounding = roundings * kU * (most_ + delta_);
    eta_ = std::expm1(delta_ + rounding + (1 + blocks()) * (exponential + kU));
    p_in_range_ = rounding < 1;
  }

  /// Whether every score is -inf: the row is one that sees no key.
  bool sees_nothing() const { return largest_ == -kInfinite; }
  bool has_infinite_score() const { return largest_ == kInfinite; }

  /// `finite_values`: every one of the head's is finite.
  void output(double const* v, bool finite_values, double* o, double* bound) const {
    std::int64_t const dim = *a_.head_dim_v;
    double const products =
        fp8() ? (3 + blocks()) * kU : mma_error(keys() + 8 * static_cast<std::int64_t>(blocks()));
    double const relative = 2.01 * eta_ + summation() + 4 * kU + unit_roundoff(a_.dtype) + products;
    double const absolute = underflow_of_p() / sum_, least = fp8() ? 0 : least_normal(a_.dtype);
    for (std::int64_t d = 0; d < dim; ++d) {
      double value = 0, magnitude = 0, plain = 0, largest = 0;
      double finite = 0;  // of the finite values' magnitudes
      for (std::int64_t j = 0; j < keys(); ++j) {
        double const vj = v[(first_ + j) * dim + d],
                     product = weight_[static_cast<std::size_t>(j)] * vj;
        value += product;
        magnitude += weight_[static_cast<std::size_t>(j)] * aligned(vj, least);
        plain += std::abs(vj);
        finite += if_finite(vj);
        largest = std::max(largest, std::abs(vj));
      }
      value *= descale_.values / sum_;
      double const factor = std::abs(descale_.values);
      double error = kInfinite;
      auto const overflows = [&](double sum) {
        return kMostP * sum * std::max(1.0, factor) > largest_finite(DType::f32);
      };
      if (!p_in_range_ || overflows(plain)) {
        // Whatever comes of it, unless the inputs alone make it infinite or NaN.
        if (!std::isfinite(value) && ((!p_in_range_ && std::isfinite(most_)) || overflows(finite)))
          value = 0;
      } else if (eta_ >= 1) {
        error = factor * 1.25 * largest + std::abs(value);
      } else {
        double const in_product = fp8() ? 1.02 * values_error(v + d, dim) / sum_ : 0;
        error = factor * (1.01 * relative * magnitude / sum_ + absolute * plain + in_product);
      }
      // Zeros times what is not finite are NaN, in blocks where the row does not see all keys.
      if (!finite_values && hides_infinite(v + d, dim)) {
        error = kInfinite;
        if (!std::isfinite(value)) value = 0;
      }
      o[d] = value;
      bound[d] = error + unit_roundoff(*a_.out) * (std::abs(value) + error) + underflow(*a_.out);
    }
  }

  double log_sum_exp() const { return largest_ + std::log(sum_); }
  double log_sum_exp_bound() const {
    return 1.01 * (eta_ + summation()) + 0x1p-22 * (7 + std::log(sum_)) +
           6 * kU * (most_ + std::abs(log_sum_exp()));
  }

 private:
  bool fp8() const { return a_.dtype == DType::e4m3; }

  /// Of q.k as the tensor core computes it.
  double product_error(double const* q, double const* k, Dot const& s) const {
    if (!fp8())
      return products_error(
          q, a_.dtype, k, a_.dtype, a_.head_dim, s.magnitude,
          has_subnormal(q, a_.dtype, a_.head_dim) || has_subnormal(k, a_.dtype, a_.head_dim));
    // Steps of zeros, up to the tile's head dimension, align the sum to a product of least normals.
    double const padding = 8 * 34 * 0x1p-13 * least_normal(DType::e4m3) * least_normal(DType::e4m3);
    return fp8_error(q, DType::e4m3, k, DType::e4m3, a_.head_dim) + padding;
  }

  /// Half of P's least subnormal, P in units of its largest possible value for the row's maximum.
  double underflow_of_p() const {
    return a_.dtype == DType::e4m3  ? 0x1p-10 / kLargestP
           : a_.dtype == DType::f16 ? 0x1p-25
                                    : 0x1p-126;
  }

  /// Of one column of P V as the fp8 tensor core sums it; v are the column's values, `stride`
  /// apart. Keys that the row does not see are zeros in P: those of its blocks align the sum too.
  double values_error(double const* v, std::int64_t stride) const {
    constexpr std::int64_t block = 256;  // keys at most
    std::int64_t const begin = std::max<std::int64_t>(0, first_ - block) / kFp8Step * kFp8Step,
                       end = std::min(all_keys_, first_ + keys() + block);
    double const least = least_normal(DType::e4m3), least_p = least / kLargestP;
    double largest = 0;
    for (std::int64_t j = begin; j < end; ++j) largest = std::max(largest, std::abs(v[j * stride]));
    Fp8Sum sum(1.01 * (eta_ + unit_roundoff(DType::e4m3)), underflow_of_p() * largest, *a_.precise);
    for (std::int64_t step = begin; step < end; step += kFp8Step) {
      for (std::int64_t j = step; j < std::min(end, step + kFp8Step); ++j) {
        std::int64_t const i = j - first_;
        double const weight = i >= 0 && i < keys() ? weight_[static_cast<std::size_t>(i)] : 0,
                     value = v[j * stride];
        sum.add(weight * value, std::max(weight, least_p) * std::max(std::abs(value), least));
      }
      sum.end_step();
    }
    return sum.error();
  }

  /// Whether a key of the sequence that the row does not see has a value that is not finite there.
  bool hides_infinite(double const* v, std::int64_t stride) const {
    for (std::int64_t j = 0; j < all_keys_; ++j)
      if ((j < first_ || j >= first_ + keys()) && !std::isfinite(v[j * stride])) return true;
    return false;
  }

  void take(double score) {
    largest_ = std::max(largest_, score);
    // A score of -inf, a sink's, adds an exact 0.
    if (score != -std::numeric_limits<double>::infinity()) most_ = std::max(most_, std::abs(score));
    if (std::isnan(score)) largest_ = score;  // std::max drops a NaN on its right
  }
  std::int64_t keys() const { return static_cast<std::int64_t>(weight_.size()); }
  double blocks() const { return static_cast<double>((keys() + 15) / 16) + (has_sink_ ? 1 : 0); }
  double summation() const { return (static_cast<double>(keys()) / 4 + 4) * kU; }

  AttentionArguments const& a_;
  Descale descale_;
  std::int64_t first_, all_keys_;  ///< the first that the row sees; of its sequence
  std::vector<double> weight_;
  bool has_sink_;
  double sink_ = 0;
  // of the scores
  double largest_ = -std::numeric_limits<double>::infinity(), most_ = 0, delta_ = 0;
  double sum_ = 0;
  bool p_in_range_ = true;
  double eta_ = 0;  ///< by how much a weight may be off, in units of it
};

}  // namespace

double new_element(AttentionArguments const& a, void const* rows, float const* descale,
                   std::int64_t batch, std::int64_t kv_head, std::int64_t index) {
  double const x = element(rows, *a.new_dtype, index);
  if (*a.new_dtype == a.dtype) return x;
  DescaleStrides const& s = *a.descale_stride;
  float const factor = descale == nullptr ? 1.0f : descale[batch * s.batch + kv_head * s.head];
  return to_float(to_float_e4m3(static_cast<float>(x) / factor));
}

Attention attention(AttentionArguments const& arguments, std::vector<std::int64_t> const& rows) {
  AttentionArguments const a = with_defaults(arguments);
  check_rows("attention", rows, a.batch * a.heads * a.seq_q);
  std::int64_t const dim = a.head_dim, dim_v = *a.head_dim_v;
  Attention result;
  for (auto* const values : {&result.o.value, &result.o.bound})
    values->resize(rows.size() * static_cast<std::size_t>(dim_v));
  for (auto* const values : {&result.lse.value, &result.lse.bound}) values->resize(rows.size());

  // Rows of one (batch, head) are computed together, from its keys and values as doubles.
  std::size_t begin = 0;
  while (begin < rows.size()) {
    std::int64_t const pair = rows[begin] / a.seq_q;
    std::size_t end = begin;
    while (end < rows.size() && rows[end] / a.seq_q == pair) ++end;
    std::int64_t const batch = pair / a.heads, head = pair % a.heads,
                       kv_head = head / (a.heads / *a.kv_heads);
    Sequence const sequence(a, batch);
    auto const head_matrix = [&](void const* data, TokenStrides const& s, void const* new_data,
                                 TokenStrides const& new_s, float const* factors,
                                 std::int64_t width) {
      std::vector<double> rows_of_keys(static_cast<std::size_t>(sequence.keys() * width));
      parallel_for(sequence.keys(), [&](std::int64_t j) {
        bool const old = j < sequence.old_keys();
        std::int64_t const first = old ? sequence.key(j, s) + kv_head * s.head
                                       : sequence.new_key(j, new_s) + kv_head * new_s.head;
        for (std::int64_t d = 0; d < width; ++d)
          rows_of_keys[static_cast<std::size_t>(j * width + d)] =
              old ? element(data, a.dtype, first + d)
                  : new_element(a, new_data, factors, batch, kv_head, first + d);
      });
      return rows_of_keys;
    };
    for (std::size_t row = begin; row < end; ++row)
      if (rows[row] % a.seq_q >= sequence.queries())
        throw argument_error(fmt::format(
            "reference::attention: row {} is query {} of sequence {}, which has {} of them.",
            rows[row], rows[row] % a.seq_q, batch, sequence.queries()));
    bool const one_tensor = is_latent(a);
    auto const k = head_matrix(a.k, *a.k_stride, a.k_new, *a.k_new_stride, a.k_descale, dim),
               v = head_matrix(a.v, *a.v_stride, one_tensor ? a.k_new : a.v_new,
                               one_tensor ? *a.k_new_stride : *a.v_new_stride, a.v_descale, dim_v);

    bool const finite_values =
        std::all_of(v.begin(), v.end(), [](double x) { return std::isfinite(x); });
    parallel_for(static_cast<std::int64_t>(end - begin), [&](std::int64_t r) {
      std::size_t const row = begin + static_cast<std::size_t>(r);
      std::int64_t const i = rows[row] % a.seq_q;
      Visible const keys = visible(a, sequence, i);
      if (keys.begin == keys.end) {  // exactly 0, and -inf or the sink
        result.lse.value[row] =
            a.sink != nullptr ? a.sink[head] : -std::numeric_limits<double>::infinity();
        result.lse.bound[row] =
            a.sink != nullptr ? 6 * kU * std::abs(result.lse.value[row]) + 0x1p-21 : 0;
        return;
      }
      std::vector<double> q(static_cast<std::size_t>(dim));
      for (std::int64_t d = 0; d < dim; ++d)
        q[static_cast<std::size_t>(d)] =
            element(a.q, a.dtype, sequence.query(i) + head * a.q_stride->head + d);
      AttentionRow one(a, head, descale(a, batch, kv_head), keys, sequence.keys());
      one.scores(q.data(), k.data());
      std::size_t const first = row * static_cast<std::size_t>(dim_v);
      if (one.sees_nothing()) {  // O is zeros
        result.lse.value[row] = -kInfinite;
        return;
      }
      one.output(v.data(), finite_values, result.o.value.data() + first,
                 result.o.bound.data() + first);
      // Of a score of +inf, whose weight is NaN, it may be either.
      bool const either = one.has_infinite_score();
      result.lse.value[row] = either ? 0 : one.log_sum_exp();
      result.lse.bound[row] = either ? kInfinite : one.log_sum_exp_bound();
    });
    begin = end;
  }
  return result;
}

}  // namespace tegula::reference
