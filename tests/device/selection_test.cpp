// The choice of a configuration, over many problems: always one that can compute the problem, the vectorised
// kernel wherever alignment admits it, and the same for the same arguments.

#include "tegula/device/selection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "scratch.hpp"
#include "tegula/device/launch.hpp"

namespace tegula {
namespace {

constexpr DeviceProperties kDevice{.compute_capability = 90, .multiprocessors = 132};

using tegula::testing::message_of;
using ::testing::HasSubstr;

template <class T = void> T* at(std::uintptr_t address) { return reinterpret_cast<T*>(address); }

constexpr std::int64_t kSizes[] = {1, 7, 8, 64, 100, 127, 128, 129, 1000, 4096, 100000};

TEST(Selection, FindsAnAttentionConfigurationForEveryCheckedProblem) {
  auto const table = attention_configurations();
  std::set<int> chosen;
  for (DType const dtype : {DType::f16, DType::bf16})
    for (int const head_dim : {32, 64, 96, 128, 256})
      for (bool const causal : {false, true})
        for (Exponential const exponential : {Exponential::ex2_approx, Exponential::polynomial})
          for (auto const seq_q : kSizes)
            for (auto const seq_k : kSizes) {
              AttentionArguments const a = {.dtype = dtype,
                                            .q = at(0x1000),
                                            .k = at(0x2000),
                                            .v = at(0x3000),
                                            .o = at(0x4000),
                                            .heads = 3,
                                            .seq_q = seq_q,
                                            .seq_k = seq_k,
                                            .head_dim = head_dim,
                                            .causal = causal,
                                            .exponential = exponential};
              check(a, 90);
              int const index = select(a, table, kDevice);
              AttentionConfig const& c = table[static_cast<std::size_t>(index)];
              EXPECT_EQ(c.dtype, dtype);
              EXPECT_EQ(c.head_dim, head_dim);
              EXPECT_EQ(c.causal, causal);
              EXPECT_EQ(c.exponential, exponential);
              EXPECT_EQ(select(a, table, kDevice), index);
              chosen.insert(index);
            }
  EXPECT_GE(chosen.size(), 40u) << "each combination has a configuration of its own";
}

GemmArguments aligned_gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.in = DType::bf16, .m = m, .n = n, .k = k, .a = at(0x1000), .b = at(0x2000), .d = at(0x3000)};
}

TEST(Selection, FindsAGemmConfigurationForEveryCheckedProblem) {
  auto const table = gemm_configurations();
  for (DType const in : {DType::f16, DType::bf16})
    for (DType const out : {DType::f16, DType::bf16, DType::f32})
      for (Major const a_major : {Major::k, Major::mn})
        for (Major const b_major : {Major::k, Major::mn})
          for (auto const m : kSizes)
            for (auto const n : kSizes)
              for (std::int64_t const k : {1, 8, 33, 1024}) {
                GemmArguments const g = {.in = in,
                                         .out = out,
                                         .a_major = a_major,
                                         .b_major = b_major,
                                         .m = m,
                                         .n = n,
                                         .k = k,
                                         .a = at(0x1000),
                                         .b = at(0x2000),
                                         .d = at(0x3000)};
                check(g, 90);
                GemmConfig const& c = table[static_cast<std::size_t>(select(g, table, kDevice))];
                EXPECT_EQ(c.in, in);
                EXPECT_EQ(c.out, out);
                EXPECT_EQ(c.a_major, a_major);
                EXPECT_EQ(c.b_major, b_major);
                EXPECT_EQ(c.vector_bytes, g.lda % 8 == 0 && g.ldb % 8 == 0 ? 16 : 2)
                    << m << " " << n << " " << k;
              }
}

TEST(Selection, TakesTheSlowerKernelWhereAlignmentRulesOutTheVectorisedOne) {
  auto const bytes = [](auto&& change) {
    GemmArguments g = aligned_gemm(64, 64, 64);
    change(g);
    auto const table = gemm_configurations();
    int const chosen = table[static_cast<std::size_t>(select(g, table, kDevice))].vector_bytes;
    EXPECT_EQ(chosen, vector_bytes(g));
    return chosen;
  };
  EXPECT_EQ(bytes([](auto&) {}), 16);
  EXPECT_EQ(bytes([](auto& g) { g.a = at(0x1008); }), 2);
  EXPECT_EQ(bytes([](auto& g) { g.b = at(0x2002); }), 2);
  EXPECT_EQ(bytes([](auto& g) { g.lda = 65; }), 2);
  EXPECT_EQ(bytes([](auto& g) { g.ldb = 68; }), 2);
  EXPECT_EQ(bytes([](auto& g) { g.lda = 72; }), 16);
  EXPECT_EQ(bytes([](auto& g) { g.d = at(0x3002), g.ldd = 65; }), 16)
      << "D's alignment is the epilogue's own affair";
  EXPECT_EQ(bytes([](auto& g) { g.m = 13, g.n = 17; }), 16);
  EXPECT_EQ(bytes([](auto& g) { g.k = 63; }), 2) << "the last vector of a row would cross its edge";
}

TEST(Selection, WeighsTilesByRoundsOfCtas) {
  std::vector<GemmConfig> const table = {
      {.block_m = 64, .block_n = 64}, {.block_m = 128, .block_n = 128}, {.block_m = 128, .block_n = 256}};
  EXPECT_EQ(select(aligned_gemm(8192, 8192, 1024), table, kDevice), 2)
      << "large problems take the tile that copies least";
  EXPECT_EQ(select(aligned_gemm(64, 64, 1024), table, kDevice), 0)
      << "small problems take the tile that computes least beyond the edge";
  EXPECT_EQ(select(aligned_gemm(1408, 1536, 1024), table, kDevice), 1)
      << "132 CTAs of 128 x 128 make exactly one round";
  EXPECT_EQ(select(aligned_gemm(1408, 1536, 1024), table, kDevice),
            select(aligned_gemm(1408, 1536, 1024), table, kDevice));
  std::vector<AttentionConfig> const rows = {{.block_m = 64}, {.block_m = 128}};
  AttentionArguments const decode = {.seq_q = 1, .seq_k = 1000, .head_dim = 64};
  AttentionArguments const prefill = {.batch = 4, .heads = 16, .seq_q = 4096, .head_dim = 64};
  EXPECT_EQ(select(decode, rows, kDevice), 0);
  EXPECT_EQ(select(prefill, rows, kDevice), 1);
}

TEST(Selection, GroupsCausalHeadsByWhatL2Serves) {
  auto const group = [](auto&& change) {
    AttentionArguments a = {
        .dtype = DType::f16, .batch = 4, .heads = 16, .seq_q = 4096, .head_dim = 128, .causal = true};
    change(a);
    return attention_heads_per_l2_group(a);
  };
  EXPECT_EQ(group([](auto&) {}), 32) << "2 MiB of K and V for each head";
  EXPECT_EQ(group([](auto& a) { a.causal = false; }), 1);
  EXPECT_EQ(group([](auto& a) { a.kv_heads = 8; }), 64) << "two heads share K and V";
  EXPECT_EQ(group([](auto& a) { a.seq_k = 100; }), 64) << "no more than there are";
  EXPECT_EQ(group([](auto& a) { a.seq_k = kMaxExtent; }), 1) << "no less than one";
}

TEST(Selection, SaysWhatTheTableLacks) {
  AttentionArguments const a = {.dtype = DType::f16, .seq_q = 1, .head_dim = 96, .causal = true};
  EXPECT_THAT(message_of<argument_error>([&] { select(a, {}, kDevice); }),
              HasSubstr("f16 with head_dim 96, causal, and ex2_approx"));
  std::vector<GemmConfig> const table = {{.a_major = Major::mn}};
  EXPECT_THAT(message_of<argument_error>([&] { select(aligned_gemm(1, 1, 8), table, kDevice); }),
              HasSubstr("bf16 to bf16 with A k-major and B k-major, 16 bytes at once"));
}

TEST(Selection, PrintsEveryConfigurationDifferently) {
  std::set<std::string> names;
  for (auto const& c : attention_configurations())
    EXPECT_TRUE(names.insert(to_string(c)).second) << to_string(c);
  for (auto const& c : gemm_configurations()) EXPECT_TRUE(names.insert(to_string(c)).second) << to_string(c);
  EXPECT_EQ(to_string(GemmConfig{.in = DType::f16, .out = DType::f32, .b_major = Major::mn}),
            "gemm_sm80 f16->f32 A:k B:mn 128x128x32 2x2 warps 3 stages 16-byte");
  EXPECT_EQ(to_string(AttentionConfig{.dtype = DType::f16, .causal = true}),
            "attention_sm80 f16 d64 128x64 4 warps 2 stages causal ex2_approx");
}

TEST(Selection, KnowsWhatEachKernelNeeds) {
  for (int i = 0; i < static_cast<int>(attention_configurations().size()); ++i) {
    AttentionConfig const& c = attention_configurations()[static_cast<std::size_t>(i)];
    auto const r = attention_resources(i);
    EXPECT_EQ(r.threads, 32 * c.warps);
    EXPECT_EQ(r.shared_bytes, static_cast<std::size_t>(shared_bytes(c)));
    EXPECT_LE(r.shared_bytes, 227u * 1024) << to_string(c);
  }
  for (int i = 0; i < static_cast<int>(gemm_configurations().size()); ++i) {
    auto const& c = gemm_configurations()[static_cast<std::size_t>(i)];
    auto const r = gemm_resources(i);
    EXPECT_EQ(r.threads, 32 * c.warps_m * c.warps_n);
    EXPECT_EQ(r.shared_bytes, static_cast<std::size_t>(shared_bytes(c)));
    EXPECT_LE(r.shared_bytes, 227u * 1024) << to_string(c);
  }
}

TEST(Selection, KeepsToTheSharedMemoryOfTheDevice) {
  for (int const compute_capability : {80, 86, 90}) {
    DeviceProperties const device{.compute_capability = compute_capability};
    for (int const head_dim : {32, 64, 96, 128, 256}) {
      AttentionArguments const a{.seq_q = 1000, .head_dim = head_dim};
      if (compute_capability == 86 && head_dim > 128) {
        EXPECT_THROW(select(a, attention_configurations(), device), argument_error);
      } else {
        int const chosen = select(a, attention_configurations(), device);
        EXPECT_LE(attention_resources(chosen).shared_bytes, static_cast<std::size_t>(device.shared_bytes()));
      }
    }
    int const chosen = select(aligned_gemm(8192, 8192, 8192), gemm_configurations(), device);
    EXPECT_LE(gemm_resources(chosen).shared_bytes, static_cast<std::size_t>(device.shared_bytes()));
  }
}

}  // namespace
}  // namespace tegula
