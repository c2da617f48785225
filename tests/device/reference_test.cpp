// The float64 references against problems whose results are known exactly, and the comparison's verdicts.

#include "tegula/device/reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace tegula {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
double const kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<half> small_integers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<half> values(count);
  for (auto& v : values) v = to_half(static_cast<float>(static_cast<int>(random() % 9) - 4));
  return values;
}

// All four transpositions, leading dimensions, alpha, beta and bias: integers make the result exact.
TEST(ReferenceGemm, IsTheSumOfProducts) {
  constexpr int m = 5, n = 7, k = 19, ld = 23;
  auto const a = small_integers(ld * ld, 1), b = small_integers(ld * ld, 2), c = small_integers(m * ld, 3),
             bias = small_integers(n, 4);
  for (Major const a_major : {Major::k, Major::mn})
    for (Major const b_major : {Major::k, Major::mn}) {
      GemmArguments const g = {.in = DType::f16,
                               .out = DType::f16,
                               .a_major = a_major,
                               .b_major = b_major,
                               .m = m,
                               .n = n,
                               .k = k,
                               .a = a.data(),
                               .b = b.data(),
                               .c = c.data(),
                               .bias = bias.data(),
                               .lda = ld,
                               .ldb = ld,
                               .ldc = ld,
                               .alpha = 2,
                               .beta = -3};
      auto const values = reference::gemm(g, {4, 0, 1, 2, 3});
      for (int r = 0; r < m; ++r)
        for (int j = 0; j < n; ++j) {
          int const i = r == 0 ? 4 : r - 1;
          double expected = 0;
          for (int p = 0; p < k; ++p)
            expected += to_float(a[static_cast<std::size_t>(a_major == Major::k ? i * ld + p : p * ld + i)]) *
                        to_float(b[static_cast<std::size_t>(b_major == Major::k ? j * ld + p : p * ld + j)]);
          expected = 2 * expected - 3 * to_float(c[static_cast<std::size_t>(i * ld + j)]) +
                     to_float(bias[static_cast<std::size_t>(j)]);
          auto const at = static_cast<std::size_t>(r * n + j);
          EXPECT_EQ(values.value[at], expected);
          EXPECT_GT(values.bound[at], std::abs(expected) * 0x1p-11)
              << "the bound holds at least the output's rounding";
          EXPECT_LT(values.bound[at], std::abs(expected) * 0x1p-11 + 2 * k * 16 * 0x1p-18);
        }
    }
}

// Queries of zero weigh all visible keys alike: O is a mean of V, the log-sum-exp the logarithm of their
// number.
TEST(ReferenceAttention, OfZeroQueriesIsTheMeanOfVisibleValues) {
  constexpr int batch = 2, heads = 4, kv_heads = 2, seq_q = 5, seq_k = 3, dim = 32;
  std::vector<half> const q(batch * seq_q * heads * dim, to_half(0));
  auto const k = small_integers(batch * seq_k * kv_heads * dim, 1),
             v = small_integers(batch * seq_k * kv_heads * dim, 2);
  for (bool const causal : {false, true}) {
    AttentionArguments const a = {.dtype = DType::f16,
                                  .q = q.data(),
                                  .k = k.data(),
                                  .v = v.data(),
                                  .batch = batch,
                                  .heads = heads,
                                  .kv_heads = kv_heads,
                                  .seq_q = seq_q,
                                  .seq_k = seq_k,
                                  .head_dim = dim,
                                  .causal = causal};
    auto const result = reference::attention(a, reference::some_rows(batch * heads * seq_q, 1000));
    for (int row = 0; row < batch * heads * seq_q; ++row) {
      int const i = row % seq_q, h = row / seq_q % heads, b = row / seq_q / heads;
      int const visible = causal ? std::max(0, i + 1 + seq_k - seq_q) : seq_k;
      EXPECT_EQ(result.lse.value[static_cast<std::size_t>(row)], visible == 0 ? -kInf : std::log(visible));
      for (int d = 0; d < dim; ++d) {
        double sum = 0;
        for (int j = 0; j < visible; ++j)
          sum += to_float(v[static_cast<std::size_t>(((b * seq_k + j) * kv_heads + h / 2) * dim + d)]);
        EXPECT_DOUBLE_EQ(result.o.value[static_cast<std::size_t>(row * dim + d)],
                         visible == 0 ? 0 : sum / visible);
      }
    }
  }
}

// The same problem in another order of axes gives the same rows; and scores are weighed by their
// exponentials.
TEST(ReferenceAttention, FollowsStridesAndWeighsByExponentials) {
  constexpr int heads = 3, seq = 17, dim = 32;
  auto const q = small_integers(heads * seq * dim, 5), k = small_integers(heads * seq * dim, 6),
             v = small_integers(heads * seq * dim, 7);
  AttentionArguments a = {.dtype = DType::f16,
                          .q = q.data(),
                          .k = k.data(),
                          .v = v.data(),
                          .heads = heads,
                          .seq_q = seq,
                          .head_dim = dim,
                          .q_stride = {0, dim, seq * dim},
                          .k_stride = {0, dim, seq * dim},
                          .scale = 0.25f};
  auto const result = reference::attention(a, {heads * seq - 1});
  double weights = 0, weighted = 0;
  for (int j = 0; j < seq; ++j) {
    double s = 0;
    for (int d = 0; d < dim; ++d)
      s += to_float(q[(heads * seq - 1) * dim + static_cast<std::size_t>(d)]) *
           to_float(k[static_cast<std::size_t>(((heads - 1) * seq + j) * dim + d)]);
    weights += std::exp(0.25 * s);
    weighted += std::exp(0.25 * s) * to_float(v[static_cast<std::size_t>(((heads - 1) * seq + j) * dim + 9)]);
  }
  EXPECT_NEAR(result.o.value[9], weighted / weights, 1e-12);
  EXPECT_NEAR(result.lse.value[0], std::log(weights), 1e-12);
  EXPECT_GT(result.o.bound[9], 0x1p-12);
  EXPECT_LT(result.o.bound[9], 4 * 0x1.2p-10)
      << "a bound far above f16's rounding of values up to 4 finds no error";
}

TEST(ReferenceComparison, JudgesEachElementByItsBound) {
  reference::Values const values = {{1, 2, 0}, {0.1, 0.1, 0}};
  EXPECT_TRUE(reference::compare({1.05, 1.95, 0}, values, 65504).within());
  auto const off = reference::compare({1.05, 2.3, 0}, values, 65504);
  EXPECT_FALSE(off.within());
  EXPECT_EQ(off.worst, 1);
  EXPECT_NEAR(off.max_error, 0.3, 1e-12);
  EXPECT_NEAR(off.max_ratio, 3, 1e-12);
  EXPECT_EQ(off.worst_result, 2.3);
  EXPECT_FALSE(reference::compare({1, 2, 1e-300}, values, 65504).within())
      << "a bound of 0 asks for equality";
  EXPECT_FALSE(reference::compare({kNaN, 2, 0}, values, 65504).within());
  EXPECT_FALSE(reference::compare({1, kInf, 0}, values, 65504).within());
}

TEST(ReferenceComparison, KnowsInfinitiesAndNaNs) {
  reference::Values const values = {{65503, 70000, -kInf, kNaN}, {4, 4, kNaN, kNaN}};
  EXPECT_TRUE(reference::compare({65503, kInf, -kInf, kNaN}, values, 65504).within());
  EXPECT_TRUE(reference::compare({kInf, kInf, -kInf, kNaN}, values, 65504).within())
      << "within its bound of overflow";
  EXPECT_FALSE(reference::compare({65503, -kInf, -kInf, kNaN}, values, 65504).within());
  EXPECT_FALSE(reference::compare({65503, kInf, kInf, kNaN}, values, 65504).within());
  EXPECT_FALSE(reference::compare({65503, kInf, -1e300, kNaN}, values, 65504).within());
  EXPECT_FALSE(reference::compare({65503, kInf, -kInf, 0}, values, 65504).within());
}

TEST(ReferenceRows, AreSpreadFromFirstToLast) {
  EXPECT_EQ(reference::some_rows(3, 10), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(reference::some_rows(101, 3), (std::vector<std::int64_t>{0, 50, 100}));
  EXPECT_EQ(reference::some_rows(100, 1), (std::vector<std::int64_t>{0}));
}

}  // namespace
}  // namespace tegula
