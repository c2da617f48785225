// Every argument that the entry point of attention must refuse is refused, by a sentence that names
// it, its value and what is accepted; and what lies just inside each limit is accepted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "addresses.hpp"
#include "refused_arguments.hpp"
#include "scratch.hpp"
#include "tegula/device/arguments.hpp"

namespace tegula {
namespace {

using tegula::testing::at;
using tegula::testing::Case;
using tegula::testing::expect_refused;
using tegula::testing::kHuge;
using tegula::testing::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

AttentionArguments attention() {
  AttentionArguments const contiguous = {.dtype = DType::f16,
                                         .q = at(std::uintptr_t{1} << 44),
                                         .k = at(std::uintptr_t{2} << 44),
                                         .v = at(std::uintptr_t{3} << 44),
                                         .o = at(std::uintptr_t{4} << 44),
                                         .lse = at<float>(std::uintptr_t{5} << 44),
                                         .batch = 2,
                                         .heads = 6,
                                         .kv_heads = 3,
                                         .seq_q = 100,
                                         .seq_k = 77,
                                         .head_dim = 64};
  return with_defaults(contiguous);
}

TEST(AttentionArguments, HaveTheDefaultsOfAContiguousTensor) {
  AttentionArguments const a = with_defaults(AttentionArguments{
      .batch = 2, .heads = 8, .kv_heads = 2, .seq_q = 10, .seq_k = 20, .head_dim = 64});
  EXPECT_EQ(a.q_stride->batch, 10 * 8 * 64);
  EXPECT_EQ(a.q_stride->seq, 8 * 64);
  EXPECT_EQ(a.q_stride->head, 64);
  EXPECT_EQ(a.k_stride->batch, 20 * 2 * 64);
  EXPECT_EQ(a.v_stride->seq, 2 * 64);
  EXPECT_EQ(a.o_stride->batch, 10 * 8 * 64);
  EXPECT_EQ(a.scale, 0.125f);
  AttentionArguments const square =
      with_defaults(AttentionArguments{.heads = 4, .seq_q = 16, .head_dim = 32});
  EXPECT_EQ(square.kv_heads, 4);
  EXPECT_EQ(square.seq_k, 16);
  TokenStrides const apart = {4096, 512, 64};
  AttentionArguments const alike =
      with_defaults(AttentionArguments{.batch = 2, .seq_q = 8, .head_dim = 64, .k_stride = apart});
  EXPECT_EQ(alike.v_stride->batch, 4096) << "v lies as k";
}

TEST(AttentionArguments, FilledInAnyOrderAreThoseThatAreMadeAtOnce) {
  AttentionArguments a = attention();
  a = {};
  a.dtype = DType::f16, a.head_dim = 128, a.heads = 2, a.seq_q = 5;
  a.q = at(1 << 20), a.k = at(2 << 20), a.v = at(3 << 20), a.o = at(4 << 20);
  check(a, 90);  // then larger, and smaller, than what was checked
  for (std::int64_t const seq : {100, 3}) {
    a.batch = 3, a.heads = 6, a.seq_q = seq, a.head_dim = 64;
    check(a, 90);
    AttentionParams const p = lower(a);
    EXPECT_EQ(p.kv_heads, 6);
    EXPECT_EQ(p.seq_k, seq);
    EXPECT_EQ(p.scale, 0.125f);
    for (TokenStrides const& s : {p.q_stride, p.k_stride, p.v_stride, p.o_stride}) {
      EXPECT_EQ(s.batch, seq * 6 * 64);
      EXPECT_EQ(s.seq, 6 * 64);
      EXPECT_EQ(s.head, 64);
    }
  }
}

TEST(AttentionArguments, AreRefusedWithASentenceEach) {
  using A = AttentionArguments;
  std::vector<Case<A>> cases = {
      {"f32", [](A& a) { a.dtype = DType::f32; }, {"dtype is f32", "bf16 and e4m3"}},
      {"tf32", [](A& a) { a.dtype = DType::tf32; }, {"dtype is tf32"}},
      {"no dtype", [](A& a) { a.dtype = static_cast<DType>(77); }, {"dtype is not a DType"}},
      {"not a divisor", [](A& a) { a.kv_heads = 4; }, {"heads is 6 and kv_heads is 4", "multiple"}},
      {"more kv heads", [](A& a) { a.kv_heads = 12; }, {"kv_heads is 12", "multiple"}},
      {"negative scale",
       [](A& a) { a.scale = -0.5f; },
       {"scale is -0.5", "between 2^-126 and 2^126"}},
      {"zero scale", [](A& a) { a.scale = 0; }, {"scale is 0;"}},
      {"infinite scale",
       [](A& a) { a.scale = std::numeric_limits<float>::infinity(); },
       {"scale is inf"}},
      {"NaN scale",
       [](A& a) { a.scale = std::numeric_limits<float>::quiet_NaN(); },
       {"scale is nan"}},
      {"tiny scale", [](A& a) { a.scale = 0x1p-127f; }, {"between 2^-126 and 2^126"}},
      {"huge scale", [](A& a) { a.scale = 0x1.1p+126f; }, {"between 2^-126 and 2^126"}},
      {"exponential",
       [](A& a) { a.exponential = static_cast<Exponential>(9); },
       {"exponential is 9"}},
      {"misaligned lse",
       [](A& a) { a.lse = at<float>(0x50002); },
       {"lse is 0x50002", "aligned to 4 bytes"}},
      {"o is q",
       [](A& a) { a.o = const_cast<void*>(a.q); },
       {"o and q are the same pointer 0x10000"}},
      {"o is k", [](A& a) { a.o = const_cast<void*>(a.k); }, {"o and k"}},
      {"o is v", [](A& a) { a.o = const_cast<void*>(a.v); }, {"o and v"}},
      {"o broadcast over tokens",
       [](A& a) { a.o_stride->seq = 0; },
       {"o_stride.seq is 0", "overlap", "at least 64"}},
      {"o heads too near",
       [](A& a) { a.o_stride->head = 56; },
       {"o_stride.head is 56", "at least 64"}},
      {"o tokens too near",
       [](A& a) { a.o_stride->seq = 376; },
       {"o_stride.seq is 376", "at least 384"}},
      {"o batches too near",
       [](A& a) { a.o_stride->batch = 38392; },
       {"o_stride.batch is 38392", "at least 38400"}},
      {"too many tiles",
       [](A& a) {
         a.batch = 1 << 20;
         a.kv_heads = a.heads = 1 << 10;
         a.seq_q = 129;
       },
       {"batch * heads * seq_q / 64", "2^31 - 1 tiles"}},
  };
  for (int const dim : {1, 33, 60, 257, 264, 512}) {
    cases.push_back({"head dim",
                     [=](A& a) { a.head_dim = dim; },
                     {"head_dim is " + std::to_string(dim) + ";", "multiples of 8 from 8 to 256"}});
    cases.push_back(
        {"head dim of V",
         [=](A& a) { a.head_dim_v = dim; },
         {"head_dim_v is " + std::to_string(dim) + ";", "multiples of 8 from 8 to 256"}});
  }
  cases.push_back(
      {"window", [](A& a) { a.window_left = -1; }, {"window_left is -1;", "at least 0"}});
  cases.push_back(
      {"window", [](A& a) { a.window_right = -2; }, {"window_right is -2;", "at least 0"}});
  cases.push_back({"window",
                   [](A& a) { a.causal = true, a.window_right = 3; },
                   {"window_right is 3 and causal is true;", "left out"}});
  for (float const cap : {-1.0f, 0x1p-61f, 0x1p61f, __builtin_inff(), __builtin_nanf("")})
    cases.push_back({"softcap", [=](A& a) { a.softcap = cap; }, {"softcap is ", "it must be 0"}});
  cases.push_back(
      {"sink", [](A& a) { a.sink = at<float>(0x1002); }, {"sink is 0x1002, 2 bytes past"}});
  cases.push_back({"sink", [](A& a) { a.sink = static_cast<float const*>(a.o); }, {"sink"}});
  cases.push_back({"out", [](A& a) { a.out = DType::f32; }, {"out is f32; f16 and bf16"}});
  cases.push_back({"out",
                   [](A& a) { a.out = a.dtype == DType::f16 ? DType::bf16 : DType::f16; },
                   {"out is", "only of e4m3 may they differ"}});
  cases.push_back({"descale",
                   [](A& a) { a.k_descale = at<float>(0x1000); },
                   {"k_descale is set and dtype is", "only of e4m3"}});
  auto const fp8 = [](auto change) {
    return [=](A& a) {
      a.dtype = DType::e4m3;
      change(a);
    };
  };
  cases.push_back({"fp8 head dim",
                   fp8([](A& a) { a.head_dim = 72; }),
                   {"head_dim is 72; multiples of 16 from 16 to 256"}});
  cases.push_back(
      {"precise", [](A& a) { a.precise = false; }, {"precise is false and dtype is", "left out"}});
  cases.push_back({"fp8 exponential",
                   fp8([](A& a) { a.exponential = Exponential::polynomial; }),
                   {"exponential is polynomial and dtype is e4m3"}});
  cases.push_back({"fp8 stride",
                   fp8([](A& a) { a.q_stride->seq += 8; }),
                   {"q_stride.seq is", "a multiple of 16 elements"}});
  cases.push_back({"descale",
                   fp8([](A& a) { a.v_descale = at<float>(0x1002); }),
                   {"v_descale is 0x1002, 2 bytes past"}});
  cases.push_back({"descale",
                   fp8([](A& a) {
                     a.descale_stride = {-1, 1};
                   }),
                   {"descale_stride.batch is -1, which is negative"}});
  cases.push_back({"descale in o",
                   fp8([](A& a) { a.q_descale = static_cast<float const*>(a.o); }),
                   {"q_descale", "must lie apart"}});
  cases.push_back({"head dim", [](A& a) { a.head_dim = 0; }, {"head_dim is 0"}});
  cases.push_back({"head dim", [](A& a) { a.head_dim = -64; }, {"head_dim is -64"}});

  struct Extent {
    std::string name;
    std::function<void(A&, std::int64_t)> set;
  };
  for (auto const &extent : {Extent{"batch", [](A&a, std::int64_t n) { a.batch = n; }},
                             Extent{"heads", [](A&a, std::int64_t n) { a.heads = n; }},
                             Extent{"kv_heads", [](A&a, std::int64_t n) { a.kv_heads = n; }},
                             Extent{"seq_q", [](A&a, std::int64_t n) { a.seq_q = n; }},
                             Extent{"seq_k", [](A&a, std::int64_t n) { a.seq_k = n; }}}) {
    auto const name = extent.name;
    auto const set = extent.set;
    cases.push_back({"zero", [=](A& a) { set(a, 0); }, {": " + name + " is 0", "at least 1"}});
    cases.push_back({"negative", [=](A& a) { set(a, -5); }, {": " + name + " is -5", "negative"}});
    cases.push_back(
        {"least", [=](A& a) { set(a, -kHuge - 1); }, {": " + name + " is -9223372036854775808"}});
    cases.push_back({"large",
                     [=](A& a) { set(a, kMaxExtent + 1); },
                     {": " + name + " is 1073740801", "at most 1073740800"}});
    cases.push_back({"huge",
                     [=](A& a) { set(a, kHuge); },
                     {": " + name + " is 9223372036854775807", "32-bit"}});
  }

  struct Tensor {
    std::string name;
    std::function<void(A&, void*)> set;
    std::optional<TokenStrides> A::*stride;
  };
  for (auto const &tensor : {Tensor{"q", [](A&a, void*p) { a.q = p; }, &A::q_stride},
                             Tensor{"k", [](A&a, void*p) { a.k = p; }, &A::k_stride},
                             Tensor{"v", [](A&a, void*p) { a.v = p; }, &A::v_stride},
                             Tensor{"o", [](A&a, void*p) { a.o = p; }, &A::o_stride}}) {
    auto const name = tensor.name;
    auto const set = tensor.set;
    auto const stride = tensor.stride;
    cases.push_back(
        {"null", [set](A& a) { set(a, nullptr); }, {": " + name + " is a null pointer"}});
    cases.push_back({"misaligned by 8",
                     [set](A& a) { set(a, at(0x60008)); },
                     {": " + name + " is 0x60008, 8 bytes past", "16 bytes"}});
    cases.push_back(
        {"misaligned by 1", [set](A& a) { set(a, at(0x60001)); }, {": " + name + " is 0x60001"}});
    struct Axis {
      std::string name;
      std::int64_t TokenStrides::*member;
    };
    for (auto const& axis : {Axis{"batch", &TokenStrides::batch}, Axis{"seq", &TokenStrides::seq},
                             Axis{"head", &TokenStrides::head}}) {
      auto const member = axis.member;
      std::string const full = name + "_stride." + axis.name;
      cases.push_back({"negative",
                       [=](A& a) { (*(a.*stride)).*member = -64; },
                       {full + " is -64", "negative"}});
      cases.push_back({"odd",
                       [=](A& a) { (*(a.*stride)).*member = 38407; },
                       {full + " is 38407", "multiple of 8"}});
    }
    cases.push_back({"wraps",
                     [stride](A& a) {
                       a.*stride = TokenStrides{kHuge - 7, 384, 64};
                     },
                     {": " + name + " spans 2^63 bytes or more"}});
  }
  expect_refused(attention, cases, "attention");
}

/// Sequences of their own lengths with keys in pages, and a workspace.
AttentionArguments paged() {
  AttentionArguments a = attention();
  a.cu_seqlens_q = at<std::int32_t>(0x1000), a.total_q = 130;
  a.seqused_k = at<std::int32_t>(0x2000);
  a.page_table = at<std::int32_t>(0x3000), a.pages = 12, a.page_size = 16;
  a.page_table_stride = 5;
  a.workspace = at(0x4000), a.workspace_bytes = 4096;
  a.splits = 3;
  return a;
}

TEST(AttentionArguments, AreRefusedWithASentenceEachOfServing) {
  using A = AttentionArguments;
  std::vector<Case<A>> cases = {
      {"tokens", [](A& a) { a.total_q = 0; }, {"total_q is 0"}},
      {"tokens", [](A& a) { a.total_q = -1; }, {"total_q is -1"}},
      {"two tables of keys",
       [](A& a) { a.cu_seqlens_k = a.seqused_k, a.total_k = 5; },
       {"cu_seqlens_k and page_table are both given"}},
      {"keys",
       [](A& a) { a.page_table = nullptr, a.cu_seqlens_k = a.seqused_k; },
       {"total_k is 0"}},
      {"pages", [](A& a) { a.pages = 0; }, {"pages is 0"}},
      {"page size", [](A& a) { a.page_size = 0; }, {"page_size is 0"}},
      {"page size", [](A& a) { a.page_size = 48; }, {"page_size is 48", "a multiple of 128"}},
      {"page size", [](A& a) { a.page_size = 8; }, {"page_size is 8"}},
      {"table", [](A& a) { a.page_table_stride = 4; }, {"page_table_stride is 4", "at least 5"}},
      {"table", [](A& a) { a.page_table_stride = kHuge; }, {"page_table_stride is 9223"}},
      {"no workspace",
       [](A& a) { a.workspace = nullptr; },
       {"workspace_bytes is 4096 and workspace is a null pointer"}},
      {"workspace", [](A& a) { a.workspace_bytes = -1; }, {"workspace_bytes is -1"}},
      {"workspace", [](A& a) { a.workspace = at(0x4008); }, {"workspace is 0x4008", "16"}},
      {"parts", [](A& a) { a.splits = 0; }, {"splits is 0"}},
      {"parts", [](A& a) { a.splits = 1025; }, {"splits is 1025", "1 and 1024"}}};
  for (auto const& [name, member] : {std::pair("cu_seqlens_q", &A::cu_seqlens_q),
                                     {"seqused_k", &A::seqused_k},
                                     {"page_table", &A::page_table}})
    cases.push_back({name,
                     [member = member](A& a) { a.*member = at<std::int32_t>(0x1002); },
                     {std::string(name) + " is 0x1002, 2 bytes past a multiple of 4"}});
  expect_refused(paged, cases, "attention");
}

AttentionArguments latent() {
  AttentionArguments a = attention();
  a.dtype = DType::bf16, a.out = DType::bf16;
  a.head_dim = 576, a.head_dim_v = 512, a.v = a.k;
  a.q_stride = a.k_stride = a.v_stride = a.o_stride = {};
  return with_defaults(a);
}

TEST(AttentionArguments, AreRefusedWithASentenceEachOfLatentAttention) {
  using A = AttentionArguments;
  std::vector<Case<A>> const cases = {
      {"type",
       [](A& a) { a.dtype = DType::f16, a.out = DType::f16; },
       {"head_dim is 576, dtype is f16", "bf16"}},
      {"V's", [](A& a) { a.head_dim_v = 576; }, {"head_dim_v is 576", "512"}},
      {"V", [](A& a) { a.v = at(std::uintptr_t{3} << 44); }, {"v is not k"}},
      {"exponential",
       [](A& a) { a.exponential = Exponential::polynomial; },
       {"exponential is polynomial and head_dim is 576"}},
      {"new values",
       [](A& a) {
         a.seqused_k = at<std::int32_t>(0x2000), a.seq_new = 1;
         a.k_new = at(0x10000000), a.v_new = at(0x20000000);
       },
       {"v_new is given"}}};
  expect_refused(latent, cases, "attention");
}

/// The same with new keys.
AttentionArguments appending() {
  AttentionArguments a = paged();
  a.k_new = at(0x10000000), a.v_new = at(0x20000000), a.seq_new = 3;
  a.cu_seqlens_new = at<std::int32_t>(0x5000), a.total_new = 7;
  a.k_stride = a.v_stride = {};  // without gaps, so that what overlaps is told
  return a;
}

TEST(AttentionArguments, AreRefusedWithASentenceEachOfNewKeys) {
  using A = AttentionArguments;
  std::vector<Case<A>> const cases = {
      {"length before", [](A& a) { a.seqused_k = nullptr; }, {"seqused_k is not"}},
      {"packed keys",
       [](A& a) {
         a.page_table = nullptr, a.pages = 0, a.page_size = 0;
         a.cu_seqlens_k = at<std::int32_t>(0x6000), a.total_k = 50;
       },
       {"cu_seqlens_k and k_new are both given"}},
      {"none", [](A& a) { a.seq_new = 0; }, {"seq_new is 0"}},
      {"total", [](A& a) { a.total_new = 0; }, {"total_new is 0"}},
      {"k_new", [](A& a) { a.k_new = nullptr; }, {"k_new is a null pointer"}},
      {"v_new", [](A& a) { a.v_new = nullptr; }, {"v_new is a null pointer"}},
      {"k_new", [](A& a) { a.k_new = at(0x10000008); }, {"k_new is 0x10000008", "16"}},
      {"cu_seqlens_new",
       [](A& a) { a.cu_seqlens_new = at<std::int32_t>(0x5002); },
       {"cu_seqlens_new is 0x5002"}},
      {"stride",
       [](A& a) {
         a.k_new_stride = TokenStrides{0, 129, 64};
       },
       {"k_new_stride.seq is 129", "multiple of 8"}},
      {"type",
       [](A& a) { a.new_dtype = DType::bf16; },
       {"new_dtype is bf16 and dtype is f16", "where dtype is e4m3"}},
      {"from the cache itself", [](A& a) { a.k_new = a.k; }, {"k, ", "overlaps k_new"}},
      {"from the other cache", [](A& a) { a.k_new = a.v; }, {"v, ", "overlaps k_new"}},
      {"one cache",
       [](A& a) { a.v = at(reinterpret_cast<std::uintptr_t>(a.k) + 16); },
       {"overlaps v"}},
      {"lengths in the cache",
       [](A& a) { a.seqused_k = static_cast<std::int32_t const*>(a.k); },
       {"overlaps seqused_k"}},
      {"shared pages",
       [](A& a) {
         TokenStrides s = *with_defaults(a).k_stride;
         s.batch = 0;
         a.k_stride = s;
       },
       {"k_stride.batch is 0", "rows of k would overlap"}}};
  expect_refused(appending, cases, "attention");
}

TEST(AttentionArguments, OfNewKeysAreRefusedWithoutThem) {
  using A = AttentionArguments;
  std::vector<Case<A>> const cases = {
      {"values", [](A& a) { a.v_new = at(0x20000000); }, {"v_new is given and k_new is a null"}},
      {"bounds",
       [](A& a) { a.cu_seqlens_new = at<std::int32_t>(0x5000); },
       {"cu_seqlens_new is given and k_new is a null"}},
      {"length", [](A& a) { a.seq_new = 3; }, {"seq_new is 3 and k_new is a null", "must be 0"}},
      {"negative length", [](A& a) { a.seq_new = -3; }, {"seq_new is -3 and k_new is a null"}},
      {"total", [](A& a) { a.total_new = 3; }, {"total_new is 3 and cu_seqlens_new is a null"}}};
  expect_refused(attention, cases, "attention");
  expect_refused(paged, cases, "attention");
}

TEST(AttentionArguments, StridesOfOneElementDoNotCount) {
  constexpr TokenStrides odd = {-3, 7, kHuge};
  auto const with = [&](AttentionArguments a) {
    a.q_stride = a.k_stride = a.v_stride = a.o_stride = odd;
    return a;
  };
  AttentionArguments one = {.dtype = DType::f16, .seq_q = 1, .seq_k = 1, .head_dim = 64};
  one.q = at(0x100000), one.k = at(0x200000), one.v = at(0x300000), one.o = at(0x400000);
  EXPECT_NO_THROW(check(with(one), 90));
  EXPECT_NO_THROW(check(with(one), 80));
  AttentionArguments a = with_defaults(with(one));
  EXPECT_EQ(a.q_stride->batch, 64);
  EXPECT_EQ(a.q_stride->seq, 64);
  EXPECT_EQ(a.q_stride->head, 64);
  // Each axis by itself, of which there are two.
  for (int axis = 0; axis < 3; ++axis) {
    AttentionArguments two = with(one);
    (axis == 0 ? two.batch : axis == 1 ? two.seq_q : two.heads) = 2;
    two.kv_heads = 1;
    TokenStrides strides = {-3, 7, kHuge};
    EXPECT_THROW(check(two, 90), argument_error) << axis;
    (axis == 0 ? strides.batch : axis == 1 ? strides.seq : strides.head) = 64;
    two.q_stride = two.o_stride = strides;
    two.k_stride = two.v_stride = {};
    EXPECT_NO_THROW(check(two, 90)) << axis;
  }
  // Packed, all tokens are one batch's.
  AttentionArguments packed = one;
  packed.cu_seqlens_q = at<std::int32_t>(0x1000), packed.total_q = 5, packed.seq_q = 5;
  packed.q_stride = packed.o_stride = TokenStrides{-1, 64, 64};
  EXPECT_NO_THROW(check(packed, 90));
  // V is the first columns of K, of one key too.
  AttentionArguments latent_one = latent();
  latent_one.seq_k = latent_one.kv_heads = latent_one.batch = 1;
  latent_one.cu_seqlens_q = latent_one.cu_seqlens_k = latent_one.seqused_k = nullptr;
  latent_one.total_q = latent_one.total_k = 0;
  latent_one.k_stride = TokenStrides{576, 576, 576};
  latent_one.v_stride = TokenStrides{512, 512, 512};
  EXPECT_NO_THROW(check(latent_one, 90));
}

TEST(AttentionArguments, AreAcceptedJustInsideTheLimits) {
  auto const accepted = [](auto&& change) {
    auto a = attention();
    change(a);
    EXPECT_NO_THROW(check(a, 80));
  };
  for (int const dim : {32, 64, 96, 128, 256}) {
    AttentionArguments const a = {.q = at(0x1000),
                                  .k = at(0x2000),
                                  .v = at(0x3000),
                                  .o = at(0x4000),
                                  .seq_q = 1,
                                  .head_dim = dim};
    EXPECT_NO_THROW(check(a, 90)) << dim;
  }
  accepted([](auto& a) { a.lse = nullptr; });
  accepted([](auto& a) { a.dtype = *(a.out = DType::bf16); });
  accepted([](auto& a) { a.causal = true; });
  accepted([](auto& a) { a.exponential = Exponential::polynomial; });
  accepted([](auto& a) { a.k = a.v; });                              // shared input
  accepted([](auto& a) { a.k_stride = {0, 0, 8}; });                 // a broadcast input
  accepted([](auto& a) { a.q_stride = {8, 8, 8}; });                 // overlapping rows of an input
  accepted([](auto& a) { a.o_stride = {38400, 64, 6400}; });         // (batch, head, seq, head_dim)
  accepted([](auto& a) { a.o_stride = {64, 2 * 6 * 64, 2 * 64}; });  // (seq, head, batch, head_dim)
  // the stride of a single batch is not used
  accepted([](auto& a) { a.batch = 1, a.o_stride->batch = 0; });
  accepted([](auto& a) {
    a.seq_q = kMaxExtent, a.kv_heads = a.heads = a.batch = 1, a.o_stride = {0, 64, 0};
  });
  accepted([](auto& a) { a.seq_k = kMaxExtent; });
}

TEST(AttentionArguments, AreRefusedWhereOnlyHopperComputesThem) {
  auto const refusal = [](auto&& change) {
    auto a = attention();
    change(a);
    EXPECT_NO_THROW(check(a, 90));
    return message_of<argument_error>([&] { check(a, 80); });
  };
  EXPECT_THAT(refusal([](auto& a) { a.head_dim = 40; }),
              AllOf(HasSubstr("head_dim is 40;"), HasSubstr("32, 64, 96, 128 and 256")));
  EXPECT_THAT(refusal([](auto& a) { a.head_dim = 32; }),
              HasSubstr("head_dim_v is 64 and head_dim is 32; on an sm_80 they must be equal"));
  EXPECT_THAT(refusal([](auto& a) { a.seqused_k = at<std::int32_t>(0x2000); }),
              HasSubstr("seqused_k is given and the machine is sm_80"));
}

// A dimension that is refused alone says what would be computed beside which other one.
TEST(AttentionArguments, HeadDimsOfBlackwellAreThoseOfItsKernelOrOfSm80) {
  auto const check_dims = [](DType type, int dim, int dim_v) {
    check(AttentionArguments{.dtype = type,
                             .q = at(std::uintptr_t{1} << 44),
                             .k = at(std::uintptr_t{2} << 44),
                             .v = at(std::uintptr_t{3} << 44),
                             .o = at(std::uintptr_t{4} << 44),
                             .heads = 1,
                             .seq_q = 16,
                             .head_dim = dim,
                             .head_dim_v = dim_v},
          100);
  };
  auto const refusal = [&](DType type, int dim, int dim_v) {
    return message_of<argument_error>([&] { check_dims(type, dim, dim_v); });
  };
  EXPECT_THAT(refusal(DType::f16, 160, 160),
              HasSubstr("head_dim_v is 160; multiples of 8 from 8 to 128 are computed on an "
                        "sm_100, and 256 where head_dim is 256, too (pad with zeros"));
  EXPECT_THAT(refusal(DType::f16, 200, 64),
              HasSubstr("head_dim is 200; multiples of 8 from 8 to 192 are computed on an sm_100, "
                        "and 256 where head_dim_v is 256, too"));
  EXPECT_THAT(refusal(DType::f16, 192, 256), HasSubstr("must be equal where one is 256"));
  EXPECT_THAT(refusal(DType::e4m3, 256, 256),
              HasSubstr("head_dim is 256; multiples of 16 from 16 to 192 are computed on an sm_100 "
                        "(pad"));
  for (auto const& [dim, dim_v] : {std::pair(192, 128), {256, 256}, {8, 128}})
    EXPECT_NO_THROW(check_dims(DType::f16, dim, dim_v)) << dim;
}

TEST(AttentionArguments, AreRefusedOnAnOldArchitecture) {
  EXPECT_THAT(message_of<argument_error>([] { check(attention(), 75); }),
              AllOf(HasSubstr("sm_75"), HasSubstr("sm_80 or later")));
  EXPECT_NO_THROW(check(attention(), 80));
  EXPECT_NO_THROW(check(attention(), 120));
}

// The rule for output strides, against marking every element: what is accepted never overlaps.
TEST(AttentionArguments, NeverAcceptOverlappingOutputRows) {
  std::mt19937 random(1);
  int accepted = 0, refused = 0, needlessly = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    auto a = attention();
    auto const pick = [&](int limit) {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit));
    };
    a.batch = 1 + pick(3), a.kv_heads = a.heads = 1 + pick(3), a.seq_q = 1 + pick(4);
    a.head_dim = 32, a.head_dim_v = 32;
    a.o_stride = {8 * pick(40), 8 * pick(40), 8 * pick(40)};
    std::set<std::int64_t> elements;
    bool overlap = false;
    for (int b = 0; b < a.batch; ++b)
      for (int s = 0; s < a.seq_q; ++s)
        for (int h = 0; h < a.heads; ++h)
          for (int d = 0; d < 32; d += 8)
            overlap =
                !elements
                     .insert(b * a.o_stride->batch + s * a.o_stride->seq + h * a.o_stride->head + d)
                     .second ||
                overlap;
    bool refuses = false;
    try {
      check(a, 90);
    } catch (argument_error const&) {
      refuses = true;
    }
    EXPECT_TRUE(refuses || !overlap)
        << "batch " << a.batch << " seq " << a.seq_q << " heads " << a.heads;
    ++(refuses ? refused : accepted);
    needlessly += refuses && !overlap;
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
  EXPECT_LT(needlessly, refused / 4) << "the sufficient condition refuses too much";
}

TEST(AttentionArguments, AreLoweredWhole) {
  auto const a = attention();
  AttentionParams const p = lower(a);
  EXPECT_EQ(p.q, a.q);
  EXPECT_EQ(p.k, a.k);
  EXPECT_EQ(p.v, a.v);
  EXPECT_EQ(p.o, a.o);
  EXPECT_EQ(p.lse, a.lse);
  EXPECT_EQ(p.batch, 2);
  EXPECT_EQ(p.heads, 6);
  EXPECT_EQ(p.kv_heads, 3);
  EXPECT_EQ(p.seq_q, 100);
  EXPECT_EQ(p.seq_k, 77);
  EXPECT_EQ(p.k_stride.batch, 77 * 3 * 64);
  EXPECT_EQ(p.o_stride.seq, 6 * 64);
  EXPECT_EQ(p.scale, 0.125f);
}

}  // namespace
}  // namespace tegula
