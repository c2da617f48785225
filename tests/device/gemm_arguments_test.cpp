// Every argument that the entry point of GEMM must refuse is refused, by a sentence that names it,
// its value and what is accepted; and what lies just inside each limit is accepted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "addresses.hpp"
#include "argument_checker.hpp"
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

GemmArguments gemm() {
  GemmArguments const contiguous = {.in = DType::f16,
                                    .out = DType::f32,
                                    .m = 100,
                                    .n = 60,
                                    .k = 48,
                                    .a = at(std::uintptr_t{1} << 44),
                                    .b = at(std::uintptr_t{2} << 44),
                                    .c = at(std::uintptr_t{3} << 44),
                                    .bias = at(std::uintptr_t{4} << 44),
                                    .d = at(std::uintptr_t{5} << 44),
                                    .beta = 1};
  return with_defaults(contiguous);
}

TEST(GemmArguments, HaveTheDefaultsOfContiguousMatrices) {
  GemmArguments const rows = with_defaults(GemmArguments{.m = 10, .n = 20, .k = 30});
  EXPECT_EQ(rows.lda, 30);
  EXPECT_EQ(rows.ldb, 30);
  EXPECT_EQ(rows.ldc, 20);
  EXPECT_EQ(rows.ldd, 20);
  EXPECT_EQ(rows.out, DType::bf16);
  GemmArguments const columns = with_defaults(GemmArguments{
      .in = DType::f16, .a_major = Major::mn, .b_major = Major::mn, .m = 10, .n = 20, .k = 30});
  EXPECT_EQ(columns.lda, 10);
  EXPECT_EQ(columns.ldb, 20);
  EXPECT_EQ(columns.out, DType::f16);
  EXPECT_EQ(columns.in_b, DType::f16);
  EXPECT_EQ(columns.batch, 1);
  EXPECT_EQ(columns.a_batch_stride, 30 * 10);
  EXPECT_EQ(columns.b_batch_stride, 30 * 20);
  GemmArguments const padded =
      with_defaults(GemmArguments{.m = 10, .n = 20, .k = 30, .lda = 32, .ldb = 40, .ldd = 24});
  EXPECT_EQ(padded.a_batch_stride, 10 * 32);
  EXPECT_EQ(padded.b_batch_stride, 20 * 40);
  EXPECT_EQ(padded.c_batch_stride, 10 * 20);
  EXPECT_EQ(padded.d_batch_stride, 10 * 24);
  EXPECT_EQ(with_defaults(GemmArguments{.in = DType::tf32}).out, DType::f32);
  EXPECT_EQ(with_defaults(GemmArguments{.in = DType::e5m2}).out, DType::bf16);
  EXPECT_EQ(with_defaults(GemmArguments{.m = kHuge, .k = 2}).a_batch_stride, kHuge)
      << "to be refused, not wrapped";
}

TEST(GemmArguments, FilledInAnyOrderAreThoseThatAreMadeAtOnce) {
  GemmArguments g;
  g.a = at(1 << 30), g.b = at(2 << 30), g.d = at(std::uintptr_t{3} << 30);
  g.m = g.n = g.k = 64;
  check(g, 90);  // then larger, and smaller, and of other types, than what was checked
  for (std::int64_t const k : {128, 32}) {
    g.in = DType::f16, g.m = 48, g.n = 96, g.k = k, g.batch = 2, g.b_major = Major::mn;
    check(g, 90);
    GemmParams const p = lower(g);
    EXPECT_EQ(p.lda, k);
    EXPECT_EQ(p.ldb, 96);
    EXPECT_EQ(p.ldc, 96);
    EXPECT_EQ(p.ldd, 96);
    EXPECT_EQ(p.a_batch, 48 * k);
    EXPECT_EQ(p.b_batch, k * 96);
    EXPECT_EQ(p.c_batch, 48 * 96);
    EXPECT_EQ(p.d_batch, 48 * 96);
    EXPECT_EQ(with_defaults(g).out, DType::f16);
    EXPECT_EQ(with_defaults(g).in_b, DType::f16);
  }
}

TEST(GemmArguments, AreRefusedWithASentenceEach) {
  using G = GemmArguments;
  std::vector<Case<G>> cases = {
      {"f32 in",
       [](G& g) { g.in = DType::f32; },
       {": in is f32", "f16, bf16, tf32, e4m3 and e5m2"}},
      {"f32 b",
       [](G& g) { g.in_b = DType::f32; },
       {": in_b is f32", "f16, bf16, tf32, e4m3 and e5m2"}},
      {"other types",
       [](G& g) { g.in_b = DType::bf16; },
       {"in is f16 and in_b is bf16", "the same type"}},
      {"fp8 and not",
       [](G& g) { g.in_b = DType::e4m3; },
       {"in is f16 and in_b is e4m3", "e4m3 or e5m2"}},
      {"s8 in", [](G& g) { g.in = DType::s8; }, {": in is s8"}},
      {"f64 out", [](G& g) { g.out = DType::f64; }, {": out is f64", "f16, bf16 and f32"}},
      {"a major",
       [](G& g) { g.a_major = static_cast<Major>(7); },
       {"a_major is 7", "Major::k or Major::mn"}},
      {"b major", [](G& g) { g.b_major = static_cast<Major>(8); }, {"b_major is 8"}},
      {"c missing", [](G& g) { g.c = nullptr; }, {"c is a null pointer and beta is 1"}},
      {"misaligned a",
       [](G& g) { g.a = at(0x10001); },
       {": a is 0x10001, 1 byte past", "aligned to 2 bytes"}},
      {"misaligned b", [](G& g) { g.b = at(0x20001); }, {": b is 0x20001"}},
      {"misaligned c", [](G& g) { g.c = at(0x30002); }, {": c is 0x30002", "aligned to 4 bytes"}},
      {"misaligned d", [](G& g) { g.d = at(0x50002); }, {": d is 0x50002", "aligned to 4 bytes"}},
      {"misaligned bias",
       [](G& g) { g.bias = at(0x40001); },
       {": bias is 0x40001", "aligned to 4 bytes"}},
      {"null a", [](G& g) { g.a = nullptr; }, {": a is a null pointer"}},
      {"null b", [](G& g) { g.b = nullptr; }, {": b is a null pointer"}},
      {"null d", [](G& g) { g.d = nullptr; }, {": d is a null pointer"}},
      {"d is a", [](G& g) { g.d = const_cast<void*>(g.a); }, {"d and a are the same pointer"}},
      {"d is b", [](G& g) { g.d = const_cast<void*>(g.b); }, {"d and b are the same pointer"}},
      {"d is bias",
       [](G& g) { g.d = const_cast<void*>(g.bias); },
       {"d and bias are the same pointer"}},
      {"in place", [](G& g) { g.c = g.d, g.ldc = 64; }, {"ldc is 64 but ldd is 60"}},
      {"lda", [](G& g) { g.lda = 47; }, {"lda is 47", "at least k = 48", "rows of a"}},
      {"zero lda", [](G& g) { g.lda = 0; }, {"lda is 0"}},
      {"negative lda", [](G& g) { g.lda = -48; }, {"lda is -48"}},
      {"lda of columns",
       [](G& g) { g.a_major = Major::mn, g.lda = 99; },
       {"lda is 99", "at least m = 100"}},
      {"ldb", [](G& g) { g.ldb = 47; }, {"ldb is 47", "at least k = 48"}},
      {"ldb of columns",
       [](G& g) { g.b_major = Major::mn, g.ldb = 59; },
       {"ldb is 59", "at least n = 60"}},
      {"ldc", [](G& g) { g.ldc = 59; }, {"ldc is 59", "at least n = 60", "rows of c"}},
      {"ldd", [](G& g) { g.ldd = 59; }, {"ldd is 59", "at least n = 60", "rows of d"}},
      {"a wraps", [](G& g) { g.lda = kHuge / 2; }, {": a spans 2^63 bytes or more"}},
      {"b wraps", [](G& g) { g.ldb = kHuge; }, {": b spans"}},
      {"c wraps", [](G& g) { g.ldc = kHuge / 300; }, {": c spans"}},
      {"d wraps", [](G& g) { g.ldd = kHuge / 300; }, {": d spans"}},
      {"too many tiles", [](G& g) { g.m = g.n = 1 << 26; }, {"m / 64 * n / 64", "2^31 - 1 tiles"}},
      {"misaligned scale_a",
       [](G& g) { g.scale_a = at<float>(0x60002); },
       {": scale_a is 0x60002", "4 bytes"}},
      {"misaligned scale_b",
       [](G& g) { g.scale_b = at<float>(0x60001); },
       {": scale_b is 0x60001", "4 bytes"}},
      {"d is scale_a",
       [](G& g) { g.scale_a = static_cast<float*>(g.d); },
       {"d and scale_a are the same"}},
      {"no workspace",
       [](G& g) { g.workspace_bytes = 4096; },
       {"workspace_bytes is 4096 and workspace is a null pointer"}},
      {"bytes of a workspace",
       [](G& g) { g.workspace = at(0x60000), g.workspace_bytes = -1; },
       {"workspace_bytes is -1"}},
      {"misaligned workspace",
       [](G& g) { g.workspace = at(0x60008), g.workspace_bytes = 64; },
       {"workspace is 0x60008", "16"}},
      {"d is scale_b",
       [](G& g) { g.scale_b = static_cast<float*>(g.d); },
       {"d and scale_b are the same"}},
      {"activation",
       [](G& g) { g.activation = static_cast<Activation>(4); },
       {"activation is 4", "gelu or silu"}},
      {"a batches backwards",
       [](G& g) { g.batch = 2, g.a_batch_stride = -1; },
       {"a_batch_stride is -1", "negative"}},
      {"b batches backwards",
       [](G& g) { g.batch = 2, g.b_batch_stride = -8; },
       {"b_batch_stride is -8"}},
      {"c batches backwards",
       [](G& g) { g.batch = 2, g.c_batch_stride = -8; },
       {"c_batch_stride is -8"}},
      {"d batches in place of each other",
       [](G& g) { g.batch = 2, g.d_batch_stride = 0; },
       {"d_batch_stride is 0", "overlap"}},
      {"d batches too near",
       [](G& g) { g.batch = 2, g.d_batch_stride = 5999; },
       {"d_batch_stride is 5999", "at least 6000"}},
      {"d rows too near for batches between them",
       [](G& g) { g.batch = 3, g.d_batch_stride = 60, g.ldd = 179; },
       {"ldd is 179", "at least 180"}},
      {"in place in other batches",
       [](G& g) { g.c = g.d, g.batch = 2, g.c_batch_stride = 0; },
       {"c_batch_stride is 0 but d_batch_stride is 6000"}},
  };
  // What gemm_sm90 alone computes, from K-major operands that TMA can address.
  for (DType const type : {DType::tf32, DType::e4m3, DType::e5m2}) {
    std::string const name = to_string(type);
    auto const with = [type](auto change) {
      return [type, change](G& g) {
        g.in_b = g.in = type;
        change(g);
      };
    };
    cases.push_back({"a is not K-major",
                     with([](G& g) { g.a_major = Major::mn; }),
                     {"a_major is Major::mn and in is " + name, "Major::k only"}});
    cases.push_back({"b is not K-major",
                     with([](G& g) { g.b_major = Major::mn; }),
                     {"b_major is Major::mn and in_b is " + name, "Major::k only"}});
    cases.push_back({"a beside a multiple of 16",
                     with([](G& g) { g.a = at(0x10008); }),
                     {"a is 0x10008, 8 bytes past a multiple of 16",
                      name + " is computed only from what TMA"}});
    cases.push_back({"d beside one",
                     with([](G& g) { g.d = at(0x50004); }),
                     {"d is 0x50004, 4 bytes past", name}});
    cases.push_back({"lda",
                     with([](G& g) { g.lda = 49; }),
                     {"lda is 49 elements", "it must be a multiple of", name}});
    cases.push_back({"ldb",
                     with([](G& g) { g.ldb = 50; }),
                     {"ldb is 50 elements", "it must be a multiple of", name}});
    cases.push_back({"ldd",
                     with([](G& g) { g.ldd = 61; }),
                     {"ldd is 61 elements", "it must be a multiple of", name}});
    cases.push_back({"batches",
                     with([](G& g) { g.batch = 2, g.a_batch_stride = 4801; }),
                     {"a_batch_stride is 4801 elements", name}});
  }
  struct Extent {
    std::string name;
    std::int64_t G::*member;
  };
  for (auto const& extent :
       {Extent{"m", &G::m}, Extent{"n", &G::n}, Extent{"k", &G::k}, Extent{"batch", &G::batch}}) {
    auto const name = extent.name;
    auto const member = extent.member;
    cases.push_back({"zero", [=](G& g) { g.*member = 0; }, {": " + name + " is 0", "at least 1"}});
    cases.push_back(
        {"negative", [=](G& g) { g.*member = -3; }, {": " + name + " is -3", "negative"}});
    cases.push_back({"large",
                     [=](G& g) { g.*member = kMaxExtent + 1; },
                     {": " + name + " is 1073740801", "at most 1073740800"}});
    cases.push_back({"huge",
                     [=](G& g) { g.*member = kHuge; },
                     {": " + name + " is 9223372036854775807", "32-bit"}});
  }
  expect_refused(gemm, cases, "gemm");
}

TEST(GemmArguments, CountBatchesInTilesAndBytes) {
  auto const refusal = [](auto&& change) {
    auto g = gemm();
    change(g);
    return message_of<argument_error>([&] { check(g, 90); });
  };
  EXPECT_THAT(refusal([](auto& g) { g.ldc = g.ldd = g.m = g.n = 1 << 20, g.batch = 8; }),
              HasSubstr("* batch is beyond 2^31 - 1 tiles"));
  EXPECT_THAT(refusal([](auto& g) { g.batch = 4, g.a_batch_stride = kHuge / 4; }),
              HasSubstr(": a spans 2^63"));
  EXPECT_THAT(refusal([](auto& g) { g.batch = 4, g.d_batch_stride = kHuge / 8; }),
              HasSubstr(": d spans 2^63"));
}

TEST(GemmArguments, StridesOfOneElementDoNotCount) {
  GemmArguments one = gemm();
  one.m = one.batch = 1;
  one.lda = one.ldc = one.ldd = -7;
  one.a_batch_stride = one.b_batch_stride = one.c_batch_stride = one.d_batch_stride = -3;
  EXPECT_NO_THROW(check(one, 80));
  EXPECT_NO_THROW(check(one, 90));
  // Where they are taken, they count.
  for (auto const& change : std::vector<void (*)(GemmArguments&)>{
           [](GemmArguments& g) { g.m = 2; }, [](GemmArguments& g) { g.batch = 2; }}) {
    GemmArguments two = one;
    change(two);
    EXPECT_THROW(check(two, 90), argument_error);
  }
  // One row of fp8 is what TMA addresses, of any length.
  GemmArguments fp8 = gemm();
  fp8.in = DType::e4m3, fp8.in_b = DType::e4m3, fp8.out = DType::f32, fp8.c = nullptr, fp8.beta = 0;
  fp8.b_major = Major::k, fp8.m = fp8.n = 1, fp8.k = 100, fp8.lda = 100, fp8.ldb = 3;
  fp8.ldc = fp8.ldd = {};
  EXPECT_NO_THROW(check(fp8, 90));
}

TEST(GemmArguments, AreAcceptedJustInsideTheLimits) {
  auto const accepted = [](auto&& change) {
    auto g = gemm();
    change(g);
    EXPECT_NO_THROW(check(g, 80));
  };
  accepted([](auto& g) { g.beta = 0, g.c = nullptr, g.ldc = 0; });  // c is not read
  accepted([](auto& g) { g.bias = nullptr; });
  accepted([](auto& g) { g.c = g.d; });                      // in place
  accepted([](auto& g) { g.a = at(0x10002), g.lda = 49; });  // for the slower kernel
  accepted([](auto& g) { g.a = g.b; });
  accepted([](auto& g) { g.out = DType::bf16; });
  accepted([](auto& g) { g.out = DType::f16, g.d = at(0x50002); });
  accepted([](auto& g) { g.m = g.n = g.k = 1; });
  accepted([](auto& g) { g.lda = g.ldb = g.k = kMaxExtent; });
  accepted([](auto& g) { g.a_major = g.b_major = Major::mn, g.lda = 100, g.ldb = 60; });
  accepted([](auto& g) { g.batch = 7; });
  accepted(
      [](auto& g) { g.batch = 7, g.a_batch_stride = g.b_batch_stride = g.c_batch_stride = 0; });
  // batches between the rows
  accepted([](auto& g) { g.batch = 3, g.d_batch_stride = 60, g.ldd = 180; });
  // the stride of a single batch is not used
  accepted([](auto& g) { g.a_batch_stride = g.d_batch_stride = 0; });
  accepted([](auto& g) { g.batch = 2, g.c = g.d; });
  accepted(
      [](auto& g) { g.activation = Activation::silu, g.scale_a = g.scale_b = at<float>(0x60004); });
  for (DType const type : {DType::tf32, DType::e4m3, DType::e5m2}) {
    auto g = gemm();
    g.in_b = g.in = type;
    EXPECT_NO_THROW(check(g, 90)) << to_string(type);
    g.in_b = type == DType::e4m3 ? DType::e5m2 : type == DType::e5m2 ? DType::e4m3 : DType::tf32;
    EXPECT_NO_THROW(check(g, 90)) << to_string(type);
    g.m = 1, g.lda = g.k = 48;
    EXPECT_NO_THROW(check(g, 90)) << "one row is never stepped over";
    for (int const other : {80, 89})
      EXPECT_THAT(message_of<argument_error>([&] { check(g, other); }),
                  AllOf(HasSubstr(to_string(type)), HasSubstr("sm_" + std::to_string(other)),
                        HasSubstr("sm_90 and sm_100 only")));
  }
  EXPECT_THAT(message_of<argument_error>([] { check(gemm(), 70); }), HasSubstr("sm_70"));
}

TEST(GemmArguments, AreLoweredWhole) {
  auto g = gemm();
  g.ldc = 61, g.ldd = 62, g.alpha = 0.5f, g.beta = 2, g.batch = 3, g.activation = Activation::gelu;
  g.a_batch_stride = 10, g.b_batch_stride = 20, g.c_batch_stride = 30, g.d_batch_stride = 40;
  g.scale_a = at<float>(0x60000), g.scale_b = at<float>(0x60004);
  GemmParams const p = lower(g);
  EXPECT_EQ(p.a, g.a);
  EXPECT_EQ(p.b, g.b);
  EXPECT_EQ(p.c, g.c);
  EXPECT_EQ(p.bias, g.bias);
  EXPECT_EQ(p.d, g.d);
  EXPECT_EQ(p.m, 100);
  EXPECT_EQ(p.n, 60);
  EXPECT_EQ(p.k, 48);
  EXPECT_EQ(p.lda, 48);
  EXPECT_EQ(p.ldb, 48);
  EXPECT_EQ(p.ldc, 61);
  EXPECT_EQ(p.ldd, 62);
  EXPECT_EQ(p.alpha, 0.5f);
  EXPECT_EQ(p.beta, 2);
  EXPECT_EQ(p.batch, 3);
  EXPECT_EQ(p.a_batch, 10);
  EXPECT_EQ(p.b_batch, 20);
  EXPECT_EQ(p.c_batch, 30);
  EXPECT_EQ(p.d_batch, 40);
  EXPECT_EQ(p.scale_a, g.scale_a);
  EXPECT_EQ(p.scale_b, g.scale_b);
  EXPECT_EQ(p.activation, Activation::gelu);
}

// Rows of one pitch, against marking every byte: refused where they share one, and only there.
TEST(GemmArguments, OutputsInTheGapsOfAnotherTensorAreAccepted) {
  int met = 0, apart_ = 0;
  for (int const pitch : {8, 12})
    for (int x_rows = 1; x_rows <= 3; ++x_rows)
      for (int y_rows = 1; y_rows <= 3; ++y_rows)
        for (int const x_row : {1, 5, 8})
          for (int const y_row : {2, 7})
            for (int shift = -40; shift <= 40; ++shift) {
              constexpr int kFrom = 64;
              std::array<int, 256> owners{};
              for (int i = 0; i < x_rows; ++i)
                for (int b = 0; b < x_row; ++b)
                  owners[static_cast<std::size_t>(kFrom + i * pitch + b)] |= 1;
              for (int i = 0; i < y_rows; ++i)
                for (int b = 0; b < y_row; ++b)
                  owners[static_cast<std::size_t>(kFrom + shift + i * pitch + b)] |= 2;
              bool const meet = std::find(owners.begin(), owners.end(), 3) != owners.end();
              auto const rows = [&](std::uintptr_t at, int count, int row) {
                return device::region("x", reinterpret_cast<void const*>(at), {{count, pitch}}, row,
                                      1);
              };
              EXPECT_EQ(device::rows_meet(
                            rows(kFrom, x_rows, x_row),
                            rows(static_cast<std::uintptr_t>(kFrom + shift), y_rows, y_row)),
                        meet)
                  << x_rows << " x " << x_row << ", " << y_rows << " x " << y_row << ", pitch "
                  << pitch << ", shift " << shift;
              ++(meet ? met : apart_);
            }
  EXPECT_GT(met, 1000);
  EXPECT_GT(apart_, 1000);
}

}  // namespace
}  // namespace tegula
