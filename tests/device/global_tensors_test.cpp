// What launches say of their tensors, and what the checker of the simulated machine makes of it.

#include "tegula/device/global_tensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tegula/device/buffer.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/layout/text.hpp"

namespace tegula {
namespace {

using sim::Coverage;
using sim::FindingKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// "A (70,152):(152,1) row column read"
std::vector<std::string> texts(std::vector<sim::GlobalTensor> const& tensors) {
  std::vector<std::string> all;
  for (sim::GlobalTensor const& tensor : tensors) {
    std::string text = tensor.name + " " + to_string(tensor.layout);
    for (std::string const& mode : tensor.modes) text += " " + mode;
    all.push_back(text + (tensor.coverage == Coverage::read      ? " read"
                          : tensor.coverage == Coverage::written ? " written"
                                                                 : " any"));
  }
  return all;
}

TEST(GlobalTensors, OfAGemm) {
  int memory = 0;
  GemmConfig config;
  GemmArguments g{.m = 70, .n = 76, .k = 152, .a = &memory, .b = &memory, .d = &memory, .ldd = 80};
  EXPECT_THAT(texts(global_tensors(config, lower(g))),
              ElementsAre("A (70,152):(152,1) row column read", "B (76,152):(152,1) n k read",
                          "D (70,76):(80,1) row column written"));
  g.c = g.bias = &memory;
  g.beta = 2;
  g.batch = 3;
  g.b_batch_stride = 0;
  config.b_major = Major::mn;
  g.ldb = 76;
  EXPECT_THAT(
      texts(global_tensors(config, lower(g))),
      ElementsAre("A (70,152,3):(152,1,10640) row column batch read", "B (76,152):(1,76) n k read",
                  "D (70,76,3):(80,1,5600) row column batch written",
                  "C (70,76,3):(76,1,5320) row column batch read", "bias (76):(1) column read"));
  g.alpha = 0;
  g.beta = 0;
  EXPECT_THAT(
      texts(global_tensors(config, lower(g))),
      ElementsAre("A (70,152,3):(152,1,10640) row column batch any", "B (76,152):(1,76) n k any",
                  "D (70,76,3):(80,1,5600) row column batch written", "bias (76):(1) column read"));
  g.k = 0;
  EXPECT_THAT(texts(global_tensors(config, lower(g))), IsEmpty());
}

TEST(GlobalTensors, OfAttention) {
  float memory = 0;
  AttentionConfig config{.head_dim = 64, .block_m = 64, .block_n = 64};
  AttentionArguments a{.q = &memory,
                       .k = &memory,
                       .v = &memory,
                       .o = &memory,
                       .batch = 2,
                       .heads = 4,
                       .kv_heads = 1,
                       .seq_q = 70,
                       .seq_k = 60,
                       .head_dim = 64};
  EXPECT_THAT(texts(global_tensors(config, lower(a))),
              ElementsAre("Q (70,64,4,2):(256,1,64,17920) row column head batch read",
                          "K (60,64,2):(64,1,3840) row column batch read",
                          "V (60,64,2):(64,1,3840) row column batch read",
                          "O (70,64,4,2):(256,1,64,17920) row column head batch written"));
  config.causal = true;
  a.lse = &memory;
  std::vector<std::string> const causal = texts(global_tensors(config, lower(a)));
  ASSERT_EQ(causal.size(), 5u);
  EXPECT_THAT(causal[0], HasSubstr(" any")) << "rows 0 to 9 see no key";
  EXPECT_THAT(causal[1], HasSubstr(" read")) << "the last row sees all";
  EXPECT_EQ(causal[4], "lse (70,4,2):(1,70,280) row head batch written");
  a.seq_k = 70;
  EXPECT_THAT(texts(global_tensors(config, lower(a)))[0], HasSubstr(" read"));
}

/// A simulated machine of whose launches reports are kept.
Machine quiet(Arch arch, sim::Options options = {}) {
  options.throw_on_finding = false;
  options.count = false;
  return Machine::simulated(arch, options);
}

/// A GEMM with all that it may have, of rows longer than need be.
struct Gemm {
  explicit Gemm(Machine const& machine, std::int64_t batch = 1, std::int64_t b_stride = 80 * 40)
      : a(machine, values(batch * 70 * 40), "A"),
        b(machine, values(batch * 80 * 40), "B"),
        c(machine, values(batch * 70 * 80), "C"),
        d(machine, batch * 70 * 80, "D"),
        bias(machine, values(75), "bias") {
    arguments = {.in = DType::f16,
                 .m = 70,
                 .n = 75,
                 .k = 37,
                 .batch = batch,
                 .a = a.data(),
                 .b = b.data(),
                 .c = c.data(),
                 .bias = bias.data(),
                 .d = d.data(),
                 .lda = 40,
                 .ldb = 40,
                 .ldc = 80,
                 .ldd = 80,
                 .beta = 1};
    arguments.b_batch_stride = b_stride;
  }
  static std::vector<half> values(std::int64_t count) {
    return std::vector<half>(static_cast<std::size_t>(count), to_half(0.5f));
  }

  Buffer<half> a, b, c, d, bias;
  GemmArguments arguments;
};

TEST(GlobalTensors, AreCoveredByEveryKernel) {
  for (Arch const arch : {Arch::sm80, Arch::sm90}) {
    Machine const machine = quiet(arch);
    for (float const alpha : {0.0f, 1.0f}) {
      for (float const beta : {0.0f, 1.0f}) {
        for (std::int64_t const b_stride : {0, 80 * 40}) {
          Gemm gemm(machine, 2, b_stride);
          gemm.arguments.alpha = alpha;
          gemm.arguments.beta = beta;
          tegula::gemm(machine, gemm.arguments);
          EXPECT_TRUE(machine.last_report()->ok()) << machine.last_report()->text();
        }
      }
    }
  }
}

TEST(GlobalTensors, OfOneAllocationAreCovered) {
  Machine const machine = quiet(Arch::sm80);
  // Q, K and V of one projection, and fewer keys than queries.
  Buffer<half> const qkv(machine, Gemm::values(70 * 3 * 64), "qkv");
  Buffer<half> const o(machine, 70 * 64, "o");
  for (bool const causal : {false, true}) {
    for (std::int64_t const seq_k : {30, 70}) {
      AttentionArguments a{.dtype = DType::f16,
                           .q = qkv.data(),
                           .k = qkv.data() + 64,
                           .v = qkv.data() + 128,
                           .o = o.data(),
                           .seq_q = 70,
                           .seq_k = seq_k,
                           .head_dim = 64,
                           .causal = causal};
      a.q_stride = a.k_stride = TokenStrides{.seq = 3 * 64};
      attention(machine, a);
      EXPECT_TRUE(machine.last_report()->ok()) << machine.last_report()->text();
    }
  }
}

TEST(GlobalTensors, ATensorBeyondItsMemoryIsFoundWhereItIsTouched) {
  Machine const machine = quiet(Arch::sm80);
  Gemm gemm(machine);
  gemm.arguments.m = 72;
  tegula::gemm(machine, gemm.arguments);
  sim::Report const report = *machine.last_report();
  ASSERT_FALSE(report.ok());
  for (sim::Finding const& f : report.findings)
    EXPECT_EQ(f.kind, FindingKind::out_of_bounds) << f.message;
}

TEST(GlobalTensors, FindingsNameTheirElements) {
  Machine const machine = quiet(Arch::sm80);
  Gemm gemm(machine);
  Buffer<half> const partly(machine, 70 * 40, "A");
  gemm.arguments.a = partly.data();
  tegula::gemm(machine, gemm.arguments);
  sim::Report const report = *machine.last_report();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.findings[0].coordinate, "row 0, column 0 of A");
}

/// Every predicate and zero-fill of a kernel, one less: what is left out is found.
template <class Run> void expect_every_edge_found(Arch arch, Run&& run) {
  Machine const unmutated = quiet(arch, {.list_marked = true});
  run(unmutated);
  sim::Report const report = *unmutated.last_report();
  ASSERT_TRUE(report.ok()) << report.text();
  int mutants = 0;
  for (sim::MarkedStatement const& marked : report.marked) {
    if (!admits(marked.admitted, Mutation::less)) continue;
    if (marked.operation != Operation::predicate && marked.operation != Operation::zero_fill)
      continue;
    std::string const file = marked.where.file;
    Machine const machine = quiet(
        arch, {.mutant = sim::Mutant{file, marked.where.line, marked.operation, Mutation::less}});
    run(machine);
    ++mutants;
    EXPECT_FALSE(machine.last_report()->ok()) << file << ":" << marked.where.line;
  }
  EXPECT_GE(mutants, 4);
}

TEST(GlobalTensors, WhatAttentionLeavesOutIsFound) {
  expect_every_edge_found(Arch::sm80, [](Machine const& machine) {
    Buffer<half> const q(machine, Gemm::values(70 * 64), "Q"),
        k(machine, Gemm::values(70 * 64), "K"), v(machine, Gemm::values(70 * 64), "V");
    Buffer<half> const o(machine, 70 * 64, "O");
    Buffer<float> const lse(machine, 70, "lse");
    attention(machine, {.dtype = DType::f16,
                        .q = q.data(),
                        .k = k.data(),
                        .v = v.data(),
                        .o = o.data(),
                        .lse = lse.data(),
                        .seq_q = 70,
                        .head_dim = 64});
  });
}

}  // namespace
}  // namespace tegula
