// The float64 references against problems whose results are known exactly, and the
// comparison's verdicts.

#include "tegula/device/reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "tegula/device/grouped_gemm.hpp"
#include "tegula/sim/arithmetic.hpp"

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

// All four transpositions, leading dimensions, alpha, beta and bias: integers make the
// result exact.
TEST(ReferenceGemm, IsTheSumOfProducts) {
  constexpr int m = 5, n = 7, k = 19, ld = 23;
  auto const a = small_integers(ld * ld, 1), b = small_integers(ld * ld, 2),
             c = small_integers(m * ld, 3), bias = small_integers(n, 4);
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
            expected +=
                to_float(
                    a[static_cast<std::size_t>(a_major == Major::k ? i * ld + p : p * ld + i)]) *
                to_float(
                    b[static_cast<std::size_t>(b_major == Major::k ? j * ld + p : p * ld + j)]);
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

/// `count` elements of `type` from the floats that draw() gives.
template <class Draw> std::vector<std::uint8_t> elements(DType type, std::size_t count, Draw draw) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < count; ++i) {
    float const x = draw();
    std::uint32_t word = __builtin_bit_cast(std::uint32_t, x);
    if (type == DType::e4m3) word = to_float_e4m3(x).bits;
    if (type == DType::e5m2) word = to_float_e5m2(x).bits;
    if (type == DType::bf16) word = to_bfloat16(x).bits;
    for (int byte = 0; byte < bits(type) / 8; ++byte)
      bytes.push_back(static_cast<std::uint8_t>(word >> 8 * byte));
  }
  return bytes;
}

// Batches, one of the operands shared, with scales: integers make the result exact, of every type.
TEST(ReferenceGemm, FollowsBatchesScalesAndTypes) {
  constexpr int batch = 3, m = 4, n = 5, k = 6;
  struct Types {
    DType a, b;
  };
  for (auto const& [a_type, b_type] : {Types{DType::tf32, DType::tf32},
                                       {DType::e4m3, DType::e5m2},
                                       {DType::e5m2, DType::e4m3},
                                       {DType::bf16, DType::bf16}})
    for (bool const shared_a : {false, true}) {
      std::mt19937 random(9);
      auto const integer = [&] { return static_cast<float>(static_cast<int>(random() % 9) - 4); };
      auto const a = elements(a_type, batch * m * k, integer),
                 b = elements(b_type, batch * n * k, integer);
      float const scale_a = 0.5f, scale_b = -2;
      GemmArguments const g = {.in = a_type,
                               .in_b = b_type,
                               .out = DType::f32,
                               .m = m,
                               .n = n,
                               .k = k,
                               .batch = batch,
                               .a = a.data(),
                               .b = b.data(),
                               .a_batch_stride = shared_a ? 0 : m * k,
                               .scale_a = &scale_a,
                               .scale_b = &scale_b,
                               .alpha = 3};
      auto const values = reference::gemm(g, reference::some_rows(batch * m, 100));
      ASSERT_EQ(values.value.size(), std::size_t{batch * m * n});
      for (int x = 0; x < batch; ++x)
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            double expected = 0;
            for (int p = 0; p < k; ++p)
              expected +=
                  reference::element(a.data(), a_type, ((shared_a ? 0 : x * m) + i) * k + p) *
                  reference::element(b.data(), b_type, (x * n + j) * k + p);
            EXPECT_EQ(values.value[static_cast<std::size_t>((x * m + i) * n + j)], -3 * expected);
          }
    }
}

TEST(ReferenceGemm, ReadsOfTf32WhatATensorCoreReads) {
  float const x = 1 + 0x1p-10f + 0x1p-11f, one = 1;
  GemmArguments const g = {.in = DType::tf32, .m = 1, .n = 1, .k = 1, .a = &x, .b = &one};
  EXPECT_EQ(reference::gemm(g, {0}).value[0], 1 + 0x1p-10);
}

// 3e38 a b + 3e38 c is finite where a term of it is not, in f32.
TEST(ReferenceGemm, HasNoBoundWhereATermIsBeyondF32) {
  auto const bound = [](float a, float c) {
    float const one = 1;
    GemmArguments const g = {.in = DType::tf32,
                             .m = 1,
                             .n = 1,
                             .k = 1,
                             .a = &a,
                             .b = &one,
                             .c = &c,
                             .alpha = 3e38f,
                             .beta = 3e38f};
    return reference::gemm(g, {0}).bound[0];
  };
  EXPECT_EQ(bound(2, -1.5f), kInf);
  EXPECT_LT(bound(0.5f, -0.25f), 1e33);
}

// A tensor core may add the large products first: their sum is beyond f32 though the whole is 0.
TEST(ReferenceGemm, HasNoBoundWhereSomeTermsAddUpBeyondF32) {
  std::vector<bfloat16> const a(16, to_bfloat16(3e38f));
  std::vector<bfloat16> b(16, to_bfloat16(1.0f));
  for (std::size_t i = 8; i < b.size(); ++i) b[i] = to_bfloat16(-1.0f);
  auto const dense = reference::gemm(
      {.in = DType::bf16, .m = 1, .n = 1, .k = 16, .a = a.data(), .b = b.data()}, {0});
  EXPECT_EQ(dense.value[0], 0);
  EXPECT_EQ(dense.bound[0], kInf);
  auto const grouped = reference::grouped_gemm(
      {.in = DType::bf16, .m = 1, .n = 1, .k = 16, .a = a.data(), .b = b.data()}, {0});
  EXPECT_EQ(grouped.value[0], 0);
  EXPECT_EQ(grouped.bound[0], kInf);
}

// alpha, scale_a and scale_b are multiplied in f32, in this order: the product of the first two may
// be below its numbers, or beyond them, where that of all three is not.
TEST(ReferenceGemm, BoundsProductsOfFactorsThatLeaveTheRangeOfF32) {
  std::vector<float_e4m3> const a(16, to_float_e4m3(1.0f)), b(16, to_float_e4m3(0.5f));
  auto const of = [&](float alpha, float scale_a, float scale_b) {
    auto const result = reference::gemm({.in = DType::e4m3,
                                         .out = DType::f32,
                                         .m = 1,
                                         .n = 1,
                                         .k = 16,
                                         .a = a.data(),
                                         .b = b.data(),
                                         .scale_a = &scale_a,
                                         .scale_b = &scale_b,
                                         .alpha = alpha},
                                        {0});
    float const by_kernel = alpha * scale_a * scale_b * 8;
    EXPECT_TRUE(
        reference::compare({by_kernel}, result, reference::largest_finite(DType::f32)).within())
        << alpha << " " << scale_a << " " << scale_b;
    return result.bound[0] / std::abs(result.value[0]);
  };
  EXPECT_GE(of(1e-30f, 1e-30f, 1e38f), 1) << "the product is 0 after the second factor";
  EXPECT_EQ(of(1e30f, 1e30f, 1e-38f), kInf);
  EXPECT_LT(of(1e-30f, 1e38f, 1e-30f), 0x1p-7);
  EXPECT_LT(of(1e-30f, 1e-7f, 1e30f), 0x1p-7);
}

TEST(ReferenceGemm, AppliesTheActivationLast) {
  auto const of = [](Activation activation, float x) {
    float const one = 1, bias = 0.25f;
    GemmArguments const g = {.in = DType::tf32,
                             .m = 1,
                             .n = 1,
                             .k = 1,
                             .a = &x,
                             .b = &one,
                             .bias = &bias,
                             .activation = activation};
    auto const values = reference::gemm(g, {0});
    EXPECT_GT(values.bound[0], 0);
    EXPECT_LT(values.bound[0], 0x1p-10 * std::abs(x)) << "a bound that large finds no error";
    return values.value[0];
  };
  for (float const x : {-3.0f, -0.5f, 0.5f, 2.0f}) {
    double const y = x + 0.25;
    EXPECT_EQ(of(Activation::none, x), y);
    EXPECT_EQ(of(Activation::relu, x), std::max(y, 0.0));
    EXPECT_NEAR(of(Activation::silu, x), y / (1 + std::exp(-y)), 1e-14);
    EXPECT_NEAR(of(Activation::gelu, x), y / 2 * (1 + std::erf(y / std::sqrt(2.0))), 5e-4)
        << "the usual approximation of the normal distribution's";
  }
}

// The bound of fp8 against the tensor core's own arithmetic, which truncates to 13 bits at each
// step: no sum is beyond it, and it is not so far off that it would find nothing.
TEST(ReferenceGemm, BoundsTheArithmeticOfFp8) {
  constexpr int m = 64, n = 8;
  std::mt19937 random(17);
  double nearest = 0;
  for (int t = 0; t < 4; ++t)
    for (int const k : {32, 128, 1024})
      for (int const spread : {0, 1, 6}) {
        DType const a_type = t < 2 ? DType::e4m3 : DType::e5m2,
                    b_type = t % 2 == 0 ? DType::e4m3 : DType::e5m2;
        auto const value = [&] {
          float const x = std::normal_distribution<float>()(random);
          return spread == 0 ? std::abs(x)
                             : std::ldexp(x, static_cast<int>(random() % 3) * -spread);
        };
        auto const a = elements(a_type, m * k, value), b = elements(b_type, n * k, value);
        std::vector<std::uint32_t> d(m * n);
        for (int first = 0; first < k; first += 32) {
          std::uint8_t a_step[m][sim::kWgmmaRowBytes], b_step[n][sim::kWgmmaRowBytes];
          for (int i = 0; i < m; ++i) std::copy_n(a.data() + i * k + first, 32, a_step[i]);
          for (int j = 0; j < n; ++j) std::copy_n(b.data() + j * k + first, 32, b_step[j]);
          sim::wgmma_tile(warpgroup_mma(a_type, b_type, DType::f32, n), a_step, b_step, first > 0,
                          d.data());
        }
        std::vector<double> results;
        for (auto const word : d) results.push_back(__builtin_bit_cast(float, word));
        GemmArguments const g = {.in = a_type,
                                 .in_b = b_type,
                                 .out = DType::f32,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .a = a.data(),
                                 .b = b.data()};
        auto const comparison =
            reference::compare(results, reference::gemm(g, reference::some_rows(m, m)),
                               reference::largest_finite(DType::f32));
        EXPECT_TRUE(comparison.within()) << to_string(a_type) << " " << to_string(b_type) << " k "
                                         << k << ": " << comparison.max_ratio << " bounds";
        nearest = std::max(nearest, comparison.max_ratio);
      }
  EXPECT_GT(nearest, 0.2) << "sums of positive products lose about half a unit in each step";
}

// A subnormal factor counts as the least normal one where products are aligned: sums of products of
// subnormal f16 lose more than their magnitude says.
TEST(ReferenceGemm, BoundsTheArithmeticOfSubnormals) {
  constexpr int m = 64, n = 8, k = 16;
  std::mt19937 random(5);
  std::vector<half> a, b;
  for (int i = 0; i < m * k; ++i) {
    int const fraction = static_cast<int>(random() % 1024),
              exponent = static_cast<int>(random() % 12);
    a.push_back(to_half(std::ldexp(1024.0f + static_cast<float>(fraction), -10 - exponent)));
  }
  for (int i = 0; i < n * k; ++i)
    b.push_back(half{static_cast<std::uint16_t>(1 + random() % 3)});  // at most 3 * 2^-24
  std::uint8_t a_rows[m][sim::kWgmmaRowBytes], b_rows[n][sim::kWgmmaRowBytes];
  for (int i = 0; i < m; ++i) std::memcpy(a_rows[i], a.data() + i * k, 2 * k);
  for (int j = 0; j < n; ++j) std::memcpy(b_rows[j], b.data() + j * k, 2 * k);
  std::vector<std::uint32_t> d(m * n);
  sim::wgmma_tile(warpgroup_mma(DType::f16, DType::f16, DType::f32, n), a_rows, b_rows, false,
                  d.data());
  std::vector<double> results;
  for (auto const word : d) results.push_back(__builtin_bit_cast(float, word));
  GemmArguments const g = {
      .in = DType::f16, .out = DType::f32, .m = m, .n = n, .k = k, .a = a.data(), .b = b.data()};
  auto const exact = reference::gemm(g, reference::some_rows(m, m));
  auto const comparison = reference::compare(results, exact, reference::largest_finite(DType::f32));
  EXPECT_TRUE(comparison.within()) << comparison.max_ratio << " bounds";
  EXPECT_GT(comparison.max_ratio, 0.02);
  EXPECT_GT(comparison.max_error, 0x1p-19 * *std::ranges::max_element(exact.value))
      << "more than sums of normal numbers lose";
}

// Queries of zero weigh all visible keys alike: O is a mean of V, the log-sum-exp the logarithm of
// their number.
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
      EXPECT_EQ(result.lse.value[static_cast<std::size_t>(row)],
                visible == 0 ? -kInf : std::log(visible));
      for (int d = 0; d < dim; ++d) {
        double sum = 0;
        for (int j = 0; j < visible; ++j)
          sum +=
              to_float(v[static_cast<std::size_t>(((b * seq_k + j) * kv_heads + h / 2) * dim + d)]);
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
                          .q_stride = TokenStrides{0, dim, seq * dim},
                          .k_stride = TokenStrides{0, dim, seq * dim},
                          .scale = 0.25f};
  auto const result = reference::attention(a, {heads * seq - 1});
  double weights = 0, weighted = 0;
  for (int j = 0; j < seq; ++j) {
    double s = 0;
    for (int d = 0; d < dim; ++d)
      s += to_float(q[(heads * seq - 1) * dim + static_cast<std::size_t>(d)]) *
           to_float(k[static_cast<std::size_t>(((heads - 1) * seq + j) * dim + d)]);
    weights += std::exp(0.25 * s);
    weighted += std::exp(0.25 * s) *
                to_float(v[static_cast<std::size_t>(((heads - 1) * seq + j) * dim + 9)]);
  }
  EXPECT_NEAR(result.o.value[9], weighted / weights, 1e-12);
  EXPECT_NEAR(result.lse.value[0], std::log(weights), 1e-12);
  EXPECT_GT(result.o.bound[9], 0x1p-12);
  EXPECT_LT(result.o.bound[9], 4 * 0x1.2p-10)
      << "a bound far above f16's rounding of values up to 4 finds no error";
}

// Scores so large that their roundings alone change weights by more than these are: O still lies
// between the values.
TEST(ReferenceAttention, BoundsOByTheValuesWhereWeightsAreUncertain) {
  constexpr int seq = 40, dim = 64;
  std::mt19937 random(3);
  auto const normal = [&] {
    std::vector<float_e4m3> values(seq * dim);
    for (auto& x : values) x = to_float_e4m3(std::normal_distribution<float>()(random));
    return values;
  };
  auto const q = normal(), k = normal();
  std::vector<float_e4m3> const v(seq * dim, to_float_e4m3(1.5f));
  auto const of = [&](float scale) {
    return reference::attention({.dtype = DType::e4m3,
                                 .q = q.data(),
                                 .k = k.data(),
                                 .v = v.data(),
                                 .heads = 1,
                                 .seq_q = seq,
                                 .head_dim = dim,
                                 .scale = scale},
                                reference::some_rows(seq, seq));
  };
  for (float const scale : {1e4f, 3e4f}) {
    auto const o = of(scale).o;
    for (std::size_t i = 0; i < o.value.size(); ++i) {
      EXPECT_NEAR(o.value[i], 1.5, 1e-12);
      EXPECT_GT(o.bound[i], 0x1p-9);
      EXPECT_LT(o.bound[i], 4) << scale;
    }
  }
  for (float const scale : {1e7f, 1e30f})
    for (double const bound : of(scale).o.bound)
      EXPECT_EQ(bound, kInf) << "roundings take P out of its range: " << scale;
}

// The sum over the keys comes before the division by the weights' sum.
TEST(ReferenceAttention, HasNoBoundWhereValuesAddUpBeyondF32) {
  constexpr int seq = 8, dim = 32;
  std::vector<bfloat16> const q(seq * dim, to_bfloat16(0.0f)), v(seq * dim, to_bfloat16(3.3e38f));
  auto const o = reference::attention({.dtype = DType::bf16,
                                       .q = q.data(),
                                       .k = q.data(),
                                       .v = v.data(),
                                       .heads = 1,
                                       .seq_q = seq,
                                       .head_dim = dim},
                                      {0})
                     .o;
  EXPECT_NEAR(o.value[0], to_float(v[0]), 1e30);
  EXPECT_EQ(o.bound[0], kInf);
}

// What float64 makes infinite or NaN of such inputs, f32 may make anything of.
TEST(ReferenceGemm, HasNoBoundWhereFiniteTermsOverflowBesideInfiniteOnes) {
  std::vector<bfloat16> const a(16, to_bfloat16(3.3e38f));
  std::vector<bfloat16> b(16, to_bfloat16(1.0f));
  b[3] = bfloat16{0xff80};  // -inf
  auto const values = [&](float factor) {
    std::vector<bfloat16> const scaled(16, to_bfloat16(3.3e38f * factor));
    GemmArguments const g = {
        .in = DType::bf16, .m = 1, .n = 1, .k = 16, .a = scaled.data(), .b = b.data()};
    auto const grouped = reference::grouped_gemm(
        {.in = DType::bf16, .m = 1, .n = 1, .k = 16, .a = scaled.data(), .b = b.data()}, {0});
    auto const dense = reference::gemm(g, {0});
    EXPECT_EQ(dense.value[0], grouped.value[0]);
    EXPECT_EQ(std::isfinite(dense.value[0]), std::isfinite(grouped.value[0]));
    return dense;
  };
  for (double const any : {1.0, kNaN, kInf, -kInf})
    EXPECT_TRUE(reference::compare({any}, values(1), 3e38).within()) << any;
  EXPECT_TRUE(reference::compare({-kInf}, values(0x1p-10f), 3e38).within());
  EXPECT_FALSE(reference::compare({kNaN}, values(0x1p-10f), 3e38).within());
  EXPECT_FALSE(reference::compare({1.0}, values(0x1p-10f), 3e38).within());
}

// Eight keys, of which the first row sees one: a hidden value that is infinite may make it NaN. One
// that it sees makes it infinite.
TEST(ReferenceAttention, HasNoBoundWhereAHiddenValueIsNotFinite) {
  constexpr int seq = 8, dim = 32;
  std::vector<bfloat16> const q(seq * dim, to_bfloat16(0.5f));
  std::vector<bfloat16> v(seq * dim, to_bfloat16(1.0f));
  v[5 * dim + 7] = bfloat16{0x7f80};
  auto const o = reference::attention({.dtype = DType::bf16,
                                       .q = q.data(),
                                       .k = q.data(),
                                       .v = v.data(),
                                       .heads = 1,
                                       .seq_q = seq,
                                       .head_dim = dim,
                                       .causal = true},
                                      {0, 7})
                     .o;
  EXPECT_EQ(o.value[7], 1);
  EXPECT_EQ(o.bound[7], kInf);
  EXPECT_LT(o.bound[6], 0.1);
  EXPECT_EQ(o.value[dim + 7], kInf);
  EXPECT_EQ(o.value[dim + 6], 1);
}

TEST(ReferenceAttention, TakesScoresOfMinusInfinityForKeysThatAreNotSeen) {
  constexpr int seq = 8, dim = 32;
  std::vector<bfloat16> const q(seq * dim, to_bfloat16(0.5f)), k(seq * dim, bfloat16{0xff80});
  auto const all = reference::attention({.dtype = DType::bf16,
                                         .q = q.data(),
                                         .k = k.data(),
                                         .v = q.data(),
                                         .heads = 1,
                                         .seq_q = seq,
                                         .head_dim = dim},
                                        {3});
  EXPECT_EQ(all.lse.value[0], -kInf);
  EXPECT_EQ(all.o.value[0], 0);
  EXPECT_EQ(all.o.bound[0], 0);
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

TEST(ReferenceComparison, TakesAnythingForAFiniteValueWithoutABound) {
  reference::Values const values = {{1, kInf}, {kInf, kInf}};
  for (double const any : {5.0, kInf, -kInf, kNaN})
    EXPECT_TRUE(reference::compare({any, kInf}, values, 65504).within()) << any;
  EXPECT_FALSE(reference::compare({1, kNaN}, values, 65504).within());
}

TEST(ReferenceComparison, CountsWhatHasNoBoundAndWhatIsNotFinite) {
  // Any result; two right ones, of which one has overflowed; infinite by right; a wrong one.
  reference::Values const values = {{1, 2, 3, 70000, kInf, 5}, {kInf, kInf, 0.1, 4, kInf, 0.1}};
  auto all = reference::compare({kNaN, 2, 3, kInf, kInf, -kInf}, values, 65504);
  EXPECT_EQ(all.unbounded, 2);
  EXPECT_EQ(all.not_finite, 3);
  EXPECT_FALSE(all.within());
  all.add(reference::compare({kInf}, {{1}, {kInf}}, 65504), 6);
  EXPECT_EQ(all.unbounded, 3);
  EXPECT_EQ(all.not_finite, 4);
}

TEST(ReferenceRows, AreSpreadFromFirstToLast) {
  EXPECT_EQ(reference::some_rows(3, 10), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(reference::some_rows(101, 3), (std::vector<std::int64_t>{0, 50, 100}));
  EXPECT_EQ(reference::some_rows(100, 1), (std::vector<std::int64_t>{0}));
}

}  // namespace
}  // namespace tegula
