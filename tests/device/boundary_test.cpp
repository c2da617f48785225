// The C++ boundary: bad arguments of every entry point, in one table. Each is refused by
// argument_error, whose sentence names the argument and its value, before anything runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "addresses.hpp"
#include "scratch.hpp"
#include "tegula/device/buffer.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/quantize_blocks.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/device/selection.hpp"

namespace tegula {
namespace {

using tegula::testing::in_region;
using tegula::testing::kHuge;
using tegula::testing::message_of;
using ::testing::HasSubstr;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

AttentionArguments attention_arguments() {
  return with_defaults(AttentionArguments{.dtype = DType::f16,
                                          .q = in_region(1),
                                          .k = in_region(2),
                                          .v = in_region(3),
                                          .o = in_region(4),
                                          .lse = in_region<float>(5),
                                          .batch = 2,
                                          .heads = 6,
                                          .kv_heads = 3,
                                          .seq_q = 100,
                                          .seq_k = 77,
                                          .head_dim = 64});
}

GemmArguments gemm_arguments() {
  return with_defaults(GemmArguments{.in = DType::bf16,
                                     .m = 128,
                                     .n = 96,
                                     .k = 64,
                                     .batch = 2,
                                     .a = in_region(1),
                                     .b = in_region(2),
                                     .c = in_region(3),
                                     .bias = in_region(4),
                                     .d = in_region(5),
                                     .beta = 1});
}

struct Bad {
  std::string names;  ///< what the sentence must hold
  std::function<void()> call;
};
using Table = std::vector<Bad>;

void expect_refused(Table const& table) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_THAT(message_of<argument_error>(table[i].call), HasSubstr(table[i].names))
        << "case " << i;
  }
}

template <class Change> Bad bad_attention(std::string names, Change change) {
  return {std::move(names), [=] {
            auto a = attention_arguments();
            change(a);
            check(a, 90);
          }};
}
template <class Change> Bad bad_gemm(std::string names, Change change) {
  return {std::move(names), [=] {
            auto g = gemm_arguments();
            change(g);
            check(g, 90);
          }};
}

using A = AttentionArguments;
using G = GemmArguments;

Table attention_table() {
  Table table;
  struct Extent {
    char const* name;
    void (*set)(A&, std::int64_t);
  };
  for (auto const& [name, set] : {Extent{"batch", [](A&a, std::int64_t n) { a.batch = n; }},
                                  {"heads", [](A&a, std::int64_t n) { a.heads = n; }},
                                  {"kv_heads", [](A&a, std::int64_t n) { a.kv_heads = n; }},
                                  {"seq_q", [](A&a, std::int64_t n) { a.seq_q = n; }},
                                  {"seq_k", [](A&a, std::int64_t n) { a.seq_k = n; }},
                                  {"head_dim", [](A&a, std::int64_t n) { a.head_dim = n; }}}) {
    for (std::int64_t const value :
         {std::int64_t{0}, std::int64_t{-1}, kLeast, kMaxExtent + 1, kHuge})
      table.push_back(bad_attention(std::string(name) + " is " + std::to_string(value),
                                    [s = set, value](A& a) { s(a, value); }));
  }
  struct Strides {
    char const* name;
    std::optional<TokenStrides> A::*member;
  };
  for (auto const& [name, member] : {Strides{"q_stride", &A::q_stride},
                                     {"k_stride", &A::k_stride},
                                     {"v_stride", &A::v_stride},
                                     {"o_stride", &A::o_stride}}) {
    std::string const n = name;
    auto const m = member;
    table.push_back(bad_attention(n + ".batch is -8", [m](A& a) { (a.*m)->batch = -8; }));
    table.push_back(bad_attention(n + ".seq is -8", [m](A& a) { (a.*m)->seq = -8; }));
    table.push_back(bad_attention(n + ".head is -8", [m](A& a) { (a.*m)->head = -8; }));
    table.push_back(bad_attention(n + ".batch is 12", [m](A& a) { (a.*m)->batch = 12; }));
    table.push_back(bad_attention(n + ".seq is 12", [m](A& a) { (a.*m)->seq = 12; }));
    table.push_back(bad_attention(n + ".head is 12", [m](A& a) { (a.*m)->head = 12; }));
    table.push_back(
        bad_attention(n.substr(0, 1) + " spans", [m](A& a) { (a.*m)->seq = kHuge - 7; }));
    table.push_back(
        bad_attention(n.substr(0, 1) + " spans", [m](A& a) { (a.*m)->head = kHuge / 2 - 7; }));
    table.push_back(
        bad_attention("o_stride" == n ? "o_stride.batch is 0" : n + " is 0 along every axis",
                      [m](A& a) { a.*m = TokenStrides{}; }));
  }
  table.push_back(bad_attention("q is a null", [](A& a) { a.q = nullptr; }));
  table.push_back(bad_attention("k is a null", [](A& a) { a.k = nullptr; }));
  table.push_back(bad_attention("v is a null", [](A& a) { a.v = nullptr; }));
  table.push_back(bad_attention("o is a null", [](A& a) { a.o = nullptr; }));
  table.push_back(bad_attention("q is 0x100000000008", [](A& a) { a.q = in_region(1, 8); }));
  table.push_back(bad_attention("k is 0x200000000002", [](A& a) { a.k = in_region(2, 2); }));
  table.push_back(bad_attention("v is 0x300000000001", [](A& a) { a.v = in_region(3, 1); }));
  table.push_back(bad_attention("o is 0x400000000004", [](A& a) { a.o = in_region(4, 4); }));
  table.push_back(
      bad_attention("lse is 0x500000000002", [](A& a) { a.lse = in_region<float>(5, 2); }));
  for (std::uintptr_t const region : {1, 2, 3, 4}) {
    table.push_back(bad_attention("lse", [=](A& a) { a.lse = in_region<float>(region); }));
    table.push_back(bad_attention("lse", [=](A& a) { a.lse = in_region<float>(region, 1024); }));
    table.push_back(bad_attention("lse", [=](A& a) { a.lse = in_region<float>(region, 0) - 16; }));
    if (region != 4) table.push_back(bad_attention("o ", [=](A& a) { a.o = in_region(region); }));
    if (region != 4)
      table.push_back(bad_attention("o, ", [=](A& a) { a.o = in_region(region, 128); }));
  }
  for (float const scale : {0.0f, -1.0f, kNan, kInfinity, -kInfinity, 1e-45f, 3e38f})
    table.push_back(bad_attention("scale is", [=](A& a) { a.scale = scale; }));
  for (DType const type :
       {DType::f32, DType::tf32, DType::e5m2, DType::s8, DType::b1, static_cast<DType>(200)})
    table.push_back(bad_attention("dtype is", [=](A& a) { a.dtype = type; }));
  table.push_back(bad_attention("heads is 6 and kv_heads is 4", [](A& a) { a.kv_heads = 4; }));
  table.push_back(bad_attention("kv_heads", [](A& a) { a.kv_heads = 7; }));
  table.push_back(
      bad_attention("exponential is 9", [](A& a) { a.exponential = static_cast<Exponential>(9); }));
  table.push_back({"sm_75", [] { check(attention_arguments(), 75); }});
  table.push_back({"head_dim is 0", [] {
                     A a;  // of which some members were never filled in
                     a.q = in_region(1), a.k = in_region(2), a.v = in_region(3), a.o = in_region(4),
                     a.seq_q = 5;
                     check(a, 90);
                   }});
  return table;
}

Table gemm_table() {
  Table table;
  struct Extent {
    char const* name;
    std::int64_t G::*member;
  };
  struct Stride {
    char const* name;
    std::optional<std::int64_t> G::*member;
  };
  for (auto const& [name, member] :
       {Extent{"m", &G::m}, {"n", &G::n}, {"k", &G::k}, {"batch", &G::batch}}) {
    for (std::int64_t const value :
         {std::int64_t{0}, std::int64_t{-1}, kLeast, kMaxExtent + 1, kHuge})
      table.push_back(bad_gemm(std::string(name) + " is " + std::to_string(value),
                               [m = member, value](G& g) { g.*m = value; }));
  }
  for (auto const& [name, member] :
       {Stride{"lda", &G::lda}, {"ldb", &G::ldb}, {"ldc", &G::ldc}, {"ldd", &G::ldd}}) {
    for (std::int64_t const value : {std::int64_t{0}, std::int64_t{-64}, std::int64_t{63}, kLeast})
      table.push_back(bad_gemm(std::string(name) + " is " + std::to_string(value),
                               [m = member, value](G& g) { g.*m = value; }));
    table.push_back(
        bad_gemm(std::string(1, name[2]) + " spans", [m = member](G& g) { g.*m = kHuge / 2; }));
  }
  for (auto const& [name, member] : {Stride{"a", &G::a_batch_stride},
                                     {"b", &G::b_batch_stride},
                                     {"c", &G::c_batch_stride},
                                     {"d", &G::d_batch_stride}}) {
    for (std::int64_t const value : {std::int64_t{-1}, kLeast})
      table.push_back(bad_gemm(std::string(name) + "_batch_stride is " + std::to_string(value),
                               [m = member, value](G& g) { g.*m = value; }));
    table.push_back(bad_gemm(std::string(name) + " spans", [m = member](G& g) { g.*m = kHuge; }));
  }
  table.push_back(bad_gemm("d_batch_stride is 0", [](G& g) { g.d_batch_stride = 0; }));
  table.push_back(bad_gemm("d_batch_stride is 100", [](G& g) { g.d_batch_stride = 100; }));
  table.push_back(bad_gemm("a is a null", [](G& g) { g.a = nullptr; }));
  table.push_back(bad_gemm("b is a null", [](G& g) { g.b = nullptr; }));
  table.push_back(bad_gemm("c is a null", [](G& g) { g.c = nullptr; }));
  table.push_back(bad_gemm("d is a null", [](G& g) { g.d = nullptr; }));
  table.push_back(bad_gemm("a is 0x100000000001", [](G& g) { g.a = in_region(1, 1); }));
  table.push_back(bad_gemm("b is 0x200000000001", [](G& g) { g.b = in_region(2, 1); }));
  table.push_back(bad_gemm("c is 0x300000000001", [](G& g) { g.c = in_region(3, 1); }));
  table.push_back(bad_gemm("bias is 0x400000000001", [](G& g) { g.bias = in_region(4, 1); }));
  table.push_back(bad_gemm("d is 0x500000000001", [](G& g) { g.d = in_region(5, 1); }));
  table.push_back(bad_gemm("scale_a is", [](G& g) { g.scale_a = in_region<float>(6, 2); }));
  table.push_back(bad_gemm("scale_b is", [](G& g) { g.scale_b = in_region<float>(6, 2); }));
  for (std::uintptr_t const region : {1, 2, 4}) {
    table.push_back(bad_gemm("d and ", [=](G& g) { g.d = in_region(region); }));
    table.push_back(bad_gemm("d, ", [=](G& g) {
      g.d = in_region(region, region == 4 ? 0 : 64), g.bias = in_region(4, 2);
    }));
  }
  table.push_back(bad_gemm("overlaps c", [](G& g) { g.d = in_region(3, 2); }));
  table.push_back(bad_gemm("overlaps scale_a", [](G& g) { g.scale_a = in_region<float>(5, 4); }));
  table.push_back(bad_gemm("overlaps scale_b", [](G& g) { g.scale_b = in_region<float>(5, 4); }));
  for (std::uintptr_t const region : {1, 2, 3, 4, 5})
    table.push_back(bad_gemm("workspace, 4096 bytes from", [=](G& g) {
      g.workspace = in_region(region, 64), g.workspace_bytes = 4096;
    }));
  table.push_back(bad_gemm("overlaps scale_a", [](G& g) {
    g.scale_a = in_region<float>(6, 68), g.workspace = in_region(6, 64), g.workspace_bytes = 4096;
  }));
  table.push_back(bad_gemm("workspace_bytes is 16", [](G& g) { g.workspace_bytes = 16; }));
  table.push_back(bad_gemm("ldc is 100 but ldd is 96", [](G& g) { g.c = g.d, g.ldc = 100; }));
  for (float const value : {kNan, kInfinity, -kInfinity}) {
    table.push_back(bad_gemm("alpha is", [=](G& g) { g.alpha = value; }));
    table.push_back(bad_gemm("beta is", [=](G& g) { g.beta = value; }));
  }
  for (DType const type : {DType::f32, DType::s8, DType::b1, static_cast<DType>(200)}) {
    table.push_back(bad_gemm("in is", [=](G& g) { g.in = type; }));
    table.push_back(bad_gemm("in_b is", [=](G& g) { g.in_b = type; }));
  }
  for (DType const type : {DType::tf32, DType::e4m3, DType::s8, static_cast<DType>(200)})
    table.push_back(bad_gemm("out is", [=](G& g) { g.out = type; }));
  table.push_back(bad_gemm("in is bf16 and in_b is f16", [](G& g) { g.in_b = DType::f16; }));
  table.push_back(bad_gemm("a_major is 7", [](G& g) { g.a_major = static_cast<Major>(7); }));
  table.push_back(bad_gemm("b_major is 7", [](G& g) { g.b_major = static_cast<Major>(7); }));
  table.push_back(
      bad_gemm("activation is 99", [](G& g) { g.activation = static_cast<Activation>(99); }));
  table.push_back({"sm_70", [] { check(gemm_arguments(), 70); }});
  return table;
}

/// What is written lies apart from the tables, factors and new rows that are read, and from the
/// workspace; and numbers that only a pointer gives a meaning are refused without it.
Table written_apart_table() {
  constexpr std::uintptr_t o = 4, lse = 5, workspace = 9;
  auto const append = [](A& a) {
    a.k_new = in_region(11), a.v_new = in_region(12), a.seq_new = 1;
    a.seqused_k = in_region<std::int32_t>(13);
  };
  auto const paged = [](A& a) {
    a.page_table = in_region<std::int32_t>(14), a.pages = 40, a.page_size = 16,
    a.page_table_stride = 5;
  };
  Table table;
  for (auto const& [name, region] :
       {std::pair("o", o), std::pair("lse", lse), std::pair("workspace", workspace)}) {
    std::string const over = std::string(name) + ", ";
    auto const with = [&, region = region](auto&& change) {
      table.push_back(bad_attention(over, [=](A& a) {
        a.workspace = in_region(workspace), a.workspace_bytes = 4096;
        change(a, region);
      }));
    };
    with([](A& a, std::uintptr_t r) {
      a.cu_seqlens_q = in_region<std::int32_t>(r, 64), a.total_q = 200;
    });
    with([](A& a, std::uintptr_t r) {
      a.cu_seqlens_k = in_region<std::int32_t>(r, 64), a.total_k = 154;
    });
    with([](A& a, std::uintptr_t r) { a.seqused_k = in_region<std::int32_t>(r, 64); });
    with([=](A& a, std::uintptr_t r) { paged(a), a.page_table = in_region<std::int32_t>(r, 64); });
    with([=](A& a, std::uintptr_t r) { append(a), a.k_new = in_region(r, 64); });
    with([=](A& a, std::uintptr_t r) { append(a), a.v_new = in_region(r, 64); });
    with([=](A& a, std::uintptr_t r) {
      append(a), a.cu_seqlens_new = in_region<std::int32_t>(r, 64), a.total_new = 2;
    });
  }
  for (std::uintptr_t const region : {1, 2, 3, 4, 5})
    table.push_back(bad_attention("workspace, 4096 bytes from", [=](A& a) {
      a.workspace = in_region(region, 64), a.workspace_bytes = 4096;
    }));
  table.push_back(bad_attention("total_q is 9 and cu_seqlens_q is", [](A& a) { a.total_q = 9; }));
  table.push_back(bad_attention("total_k is -1 and cu_seqlens_k", [](A& a) { a.total_k = -1; }));
  table.push_back(bad_attention("pages is 3 and page_table is", [](A& a) { a.pages = 3; }));
  table.push_back(bad_attention("page_size is 16 and page_table", [](A& a) { a.page_size = 16; }));
  table.push_back(bad_attention("total_new is 1 and cu_seqlens_new is a null pointer",
                                [=](A& a) { append(a), a.total_new = 1; }));
  return table;
}

TEST(Boundary, AttentionRefusesEachBadArgument) { expect_refused(attention_table()); }
TEST(Boundary, GemmRefusesEachBadArgument) { expect_refused(gemm_table()); }
TEST(Boundary, WhatIsWrittenLiesApartFromWhatIsRead) { expect_refused(written_apart_table()); }

TEST(Boundary, TheTableHoldsAtLeastAHundredAndFiftySets) {
  EXPECT_GE(attention_table().size() + gemm_table().size(), 150u);
}

TEST(Boundary, ConfigurationsAndDevicesAreOnesThatExist) {
  Machine const machine = Machine::simulated(Arch::sm90);
  Table table;
  for (int const index : {-1, 100000, std::numeric_limits<int>::min()}) {
    std::string const value = std::to_string(index);
    Families::for_each([&](auto family) {
      table.push_back({value, [=] { resources(family, index); }});
      table.push_back({value, [=] { configuration(family, index); }});
      table.push_back({value, [=] { launch_kernel(machine, family, index, {}); }});
    });
    for (FamilyId const kernel : {FamilyId(gemm_sm80), FamilyId(gemm_sm90)}) {
      GemmChoice const choice = {.kernel = kernel, .configuration = index};
      table.push_back({value, [=] { gemm(machine, gemm_arguments(), choice); }});
    }
  }
  GemmChoice const other = {.kernel = gemm_sm80, .configuration = 0};
  table.push_back({"does not compute", [=] {
                     auto g = gemm_arguments();
                     g.in_b = g.in = DType::f16;
                     gemm(machine, g, other);
                   }});
  table.push_back({"0 multiprocessors", [] { choose_gemm(gemm_arguments(), {90, 0}); }});
  table.push_back({"-1 multiprocessors", [] { plan_gemm(gemm_arguments(), {90, -1}); }});
  table.push_back({"0 multiprocessors", [] { choose_attention(attention_arguments(), {90, 0}); }});
  table.push_back({"most is 0", [] { tuning_candidates(gemm_arguments(), {}, 0); }});
  expect_refused(table);
}

TEST(Boundary, MachinesAndBuffersRefuseWhatIsOutOfRange) {
  Machine const machine = Machine::simulated(Arch::sm90);
  std::vector<float> values(4, 1.0f);
  Table table = {
      {"workers is -1", [] { Machine::simulated(Arch::sm90, {.workers = -1}); }},
      {"workers is 1000000", [] { Machine::simulated(Arch::sm90, {.workers = 1000000}); }},
      {"multiprocessors is -1", [] { Machine::simulated(Arch::sm90, {.multiprocessors = -1}); }},
      {"stack_bytes is 1", [] { Machine::simulated(Arch::sm90, {.stack_bytes = 1}); }},
      {"generation is 9", [] { Machine::simulated(static_cast<Arch>(9)); }},
      {"''", [] { Machine::from_name(""); }},
      {"'gpu\\x0a'", [] { Machine::from_name("gpu\n"); }},
      {"'cuda:-1'", [] { Machine::from_name("cuda:-1"); }},
      {"'cuda:4294967296'", [] { Machine::from_name("cuda:4294967296"); }},
      {"-4 bytes", [&] { Buffer<float>(machine, -1, "x"); }},
      {"more than 64 bits", [&] { Buffer<float>(machine, kHuge, "x"); }},
      {"-4", [&] { Allocation(machine, -4, "x"); }},
  };
  Buffer<float> buffer(machine, 8, "x");
  Allocation allocation(machine, 8, "y");
  for (std::int64_t const offset :
       {kLeast, kLeast / 4, std::int64_t{-1}, std::int64_t{5}, kHuge / 4, kHuge})
    table.push_back({"x", [&, offset] { buffer.upload(values, offset); }});
  table.push_back({"null", [&] { allocation.upload(nullptr, 8); }});
  table.push_back({"null", [&] { allocation.download(nullptr, 8); }});
  table.push_back({"-1 bytes", [&] { allocation.upload(values.data(), -1); }});
  table.push_back({"9 bytes", [&] { allocation.download(values.data(), 9); }});
  expect_refused(table);
  buffer.upload(values, 4);
  EXPECT_EQ(buffer.download()[7], 1.0f);
}

TEST(Boundary, ReferencesAndQuantisationRefuseWhatIsOutOfRange) {
  auto const g = gemm_arguments();
  auto const a = attention_arguments();
  float const value = 1;
  auto const quantised = [&](std::int64_t rows, std::int64_t k, std::int64_t ld, float const* x) {
    return [=] { quantize_blocks(DType::e4m3, kMxScale, rows, k, ld, x); };
  };
  expect_refused(
      {{"a row is -1; it must be from 0 to 255", [=] { reference::gemm(g, {-1}); }},
       {"a row is 256; it must be from 0 to 255", [=] { reference::gemm(g, {256}); }},
       {"a row is 1200; it must be from 0 to 1199", [=] { reference::attention(a, {1200}); }},
       {"a row is -9", [=] { reference::attention(a, {-9}); }},
       {"total is -1", [] { reference::some_rows(-1, 5); }},
       {"values is a null pointer", quantised(1, 64, 64, nullptr)},
       {"rows 1 and ld 1099511627776", quantised(1, 64, std::int64_t{1} << 40, &value)},
       {"rows 1073741824 and ld 1073741824", quantised(1 << 30, 1 << 30, 1 << 30, &value)},
       {"rows 9223372036854775807 and ld 64", quantised(kHuge, 64, 64, &value)}});
}

}  // namespace
}  // namespace tegula
