// The choice of a GEMM's kernel, over many problems: always one that can compute the problem,
// gemm_sm90 wherever TMA admits it, the same for the same arguments, and in accord with the list of
// what was weighed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "addresses.hpp"
#include "gemm_plan_problems.hpp"
#include "scratch.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/selection.hpp"

namespace tegula {
namespace {

using tegula::testing::at;
using tegula::testing::expect_fits;
using tegula::testing::kA100;
using tegula::testing::kH100;
using tegula::testing::kSizes;
using tegula::testing::message_of;
using tegula::testing::problem;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(GemmPlan, FindsAKernelForEveryCheckedProblemOf16Bits) {
  std::map<FamilyId, int> kernels;
  for (DType const in : {DType::f16, DType::bf16})
    for (DType const out : {DType::f16, DType::bf16, DType::f32})
      for (Major const a_major : {Major::k, Major::mn})
        for (Major const b_major : {Major::k, Major::mn})
          for (Activation const activation : {Activation::none, Activation::gelu})
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
                                           .batch = m == 100 ? 3 : 1,
                                           .a = at(0x1000),
                                           .b = at(std::uintptr_t{1} << 44),
                                           .d = at(std::uintptr_t{2} << 44),
                                           .activation = activation};
                  check(g, 90);
                  GemmChoice const choice = choose_gemm(g, kH100);
                  expect_fits(g, choice);
                  EXPECT_GT(choice.cost.total, 0);
                  ++kernels[choice.kernel];
                  expect_fits(g, choose_gemm(g, kA100));
                  EXPECT_EQ(choose_gemm(g, kA100).kernel, gemm_sm80);
                  if (in == out && a_major == Major::k && b_major == Major::k) {
                    EXPECT_EQ(choice.kernel == gemm_sm90, tma_obstacle(g).empty()) << to_string(g);
                  }
                }
  EXPECT_GT(kernels[gemm_sm80], 1000);
  EXPECT_GT(kernels[gemm_sm90], 1000);
}

TEST(GemmPlan, HasEveryTypeThatTheTensorCoresMultiply) {
  struct Types {
    DType a, b;
  };
  for (auto const& [a, b] : {Types{DType::tf32, DType::tf32},
                             {DType::e4m3, DType::e4m3},
                             {DType::e4m3, DType::e5m2},
                             {DType::e5m2, DType::e4m3},
                             {DType::e5m2, DType::e5m2},
                             {DType::f16, DType::f16},
                             {DType::bf16, DType::bf16}})
    for (DType const out : {DType::f16, DType::bf16, DType::f32})
      for (auto const m : {1, 128, 5000}) {
        GemmArguments g = problem(m, 512, 512);
        g.in = a, g.in_b = b, g.out = out;
        check(g, 90);
        GemmChoice const choice = choose_gemm(g, kH100);
        expect_fits(g, choice);
      }
}

TEST(GemmPlan, FallsBackWhereTmaCannotAddressTheProblem) {
  auto const obstacle = [](auto&& change) {
    GemmArguments g = problem(64, 64, 64);
    change(g);
    EXPECT_NO_THROW(check(g, 90));
    std::string const text = tma_obstacle(g);
    EXPECT_EQ(choose_gemm(g, kH100).kernel, text.empty() ? FamilyId(gemm_sm90) : gemm_sm80) << text;
    EXPECT_THAT(plan_gemm(g, kH100).reason, HasSubstr(text));
    return text;
  };
  EXPECT_EQ(obstacle([](auto&) {}), "");
  EXPECT_EQ(obstacle([](auto& g) { g.a = at(0x1008); }),
            "a is 0x1008, 8 bytes past a multiple of 16");
  EXPECT_THAT(obstacle([](auto& g) { g.b = at(0x2002); }), HasSubstr("b is 0x2002"));
  EXPECT_THAT(obstacle([](auto& g) { g.d = at(0x3004); }), HasSubstr("d is 0x3004"));
  EXPECT_THAT(obstacle([](auto& g) { g.c = at(0x4008), g.beta = 1; }), HasSubstr("c is 0x4008"));
  EXPECT_THAT(obstacle([](auto& g) { g.bias = at(0x4002); }), HasSubstr("bias is 0x4002"));
  EXPECT_EQ(obstacle([](auto& g) { g.c = at(0x4008), g.beta = 0; }), "") << "c is not read";
  EXPECT_EQ(obstacle([](auto& g) { g.lda = 65; }),
            "lda is 65 elements of 2 bytes, which is not a multiple of 16 bytes");
  EXPECT_THAT(obstacle([](auto& g) { g.ldb = 68; }), HasSubstr("ldb is 68"));
  EXPECT_THAT(obstacle([](auto& g) { g.ldd = 66; }), HasSubstr("ldd is 66"));
  EXPECT_THAT(obstacle([](auto& g) { g.c = at(0x4000), g.beta = 1, g.ldc = 66; }),
              HasSubstr("ldc is 66"));
  EXPECT_THAT(obstacle([](auto& g) { g.lda = std::int64_t{1} << 39; }),
              HasSubstr("below 2^40 bytes"));
  EXPECT_EQ(obstacle([](auto& g) { g.lda = 72; }), "");
  EXPECT_EQ(obstacle([](auto& g) { g.k = 63, g.lda = g.ldb = 64; }), "")
      << "TMA clips a row itself";
  EXPECT_EQ(obstacle([](auto& g) { g.m = 1, g.lda = 65, g.ldd = 67; }), "")
      << "a single row has no stride";
  EXPECT_THAT(obstacle([](auto& g) { g.batch = 2, g.a_batch_stride = 4100; }),
              HasSubstr("a_batch_stride is 4100"));
  EXPECT_THAT(obstacle([](auto& g) { g.batch = 2, g.d_batch_stride = 4100; }),
              HasSubstr("d_batch_stride is 4100"));
  EXPECT_EQ(obstacle([](auto& g) { g.a_batch_stride = 4100; }), "")
      << "a single batch has no stride";
  EXPECT_EQ(obstacle([](auto& g) { g.batch = 2, g.a_batch_stride = 0; }), "");
}

TEST(GemmPlan, CopiesSingleElementsOnlyWhereItMust) {
  auto const bytes = [](auto&& change) {
    GemmArguments g = problem(64, 64, 64);
    change(g);
    GemmChoice const choice = choose_gemm(g, kA100);
    int const chosen = configuration(gemm_sm80, choice.configuration).vector_bytes;
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
  EXPECT_EQ(bytes([](auto& g) { g.batch = 2, g.a_batch_stride = 4100; }), 2);
  EXPECT_EQ(bytes([](auto& g) { g.a_batch_stride = 4100; }), 16) << "a single batch has no stride";
}

// The plan is the choice, spelt out.
TEST(GemmPlan, ListsWhatWasWeighedTheChosenFirst) {
  for (auto const m : kSizes) {
    GemmArguments const g = problem(m, 4096, 1024);
    GemmPlan const plan = plan_gemm(g, kH100);
    GemmChoice const choice = choose_gemm(g, kH100);
    EXPECT_EQ(plan.chosen().configuration, choice.configuration);
    EXPECT_EQ(plan.chosen().cost.total, choice.cost.total);
    EXPECT_EQ(plan.candidates.size(),
              configurations(gemm_sm80).size() + configurations(gemm_sm90).size() +
                  configurations(gemm_sm100).size() + configurations(scaled_gemm_sm100).size());
    bool refused = false;
    double last = 0;
    for (GemmCandidate const& candidate : plan.candidates) {
      if (!candidate.refused.empty()) {
        refused = true;
        continue;
      }
      EXPECT_FALSE(refused) << "the refused come last";
      EXPECT_GE(candidate.choice.cost.total, last);
      last = candidate.choice.cost.total;
      GemmCost const& c = candidate.choice.cost;
      EXPECT_GE(c.total / c.correction + 1e-9,
                c.launch + c.fill + c.epilogue + std::max({c.tensor, c.l2, c.dram}))
          << candidate.name;
    }
    EXPECT_TRUE(refused);
    std::string const text = to_string(plan);
    EXPECT_THAT(text, AllOf(HasSubstr(plan.candidates.front().name), HasSubstr(plan.reason),
                            HasSubstr("refused: other operand types")));
    EXPECT_LT(text.size(), to_string(plan, /*all=*/true).size());
  }
}

TEST(GemmPlan, KeepsToConstraints) {
  GemmArguments const g = problem(4096, 4096, 4096);
  auto const configuration = [&](GemmConstraints const& wanted) {
    GemmChoice const choice = choose_gemm(g, kH100, wanted);
    EXPECT_EQ(choice.kernel, gemm_sm90);
    EXPECT_EQ(plan_gemm(g, kH100, wanted).chosen().configuration, choice.configuration);
    return tegula::configuration(gemm_sm90, choice.configuration);
  };
  EXPECT_EQ(configuration({.schedule = Schedule::pingpong}).schedule, Schedule::pingpong);
  EXPECT_EQ(configuration({.schedule = Schedule::basic}).schedule, Schedule::basic);
  EXPECT_EQ(configuration({.block_m = 64, .block_n = 64}).block_n, 64);
  EXPECT_EQ(configuration({.split_k = 4}).split_k, 4);
  GemmSm90Config const cluster = configuration({.cluster_m = 1, .cluster_n = 1});
  EXPECT_EQ(cluster.cluster_m * cluster.cluster_n, 1);
  EXPECT_EQ(choose_gemm(g, kH100, {.configuration = 3}).configuration, 3);
  GemmChoice const sm80 = choose_gemm(g, kH100, {.kernel = gemm_sm80});
  EXPECT_EQ(sm80.kernel, gemm_sm80);
  EXPECT_EQ(choose_gemm(g, kH100, {.kernel = gemm_sm80, .configuration = sm80.configuration})
                .configuration,
            sm80.configuration);
  for (Raster const raster : {Raster::along_m, Raster::along_n}) {
    GemmChoice const choice = choose_gemm(g, kH100, {.raster = raster, .group = 3});
    EXPECT_EQ(choice.tiling.order().raster, raster);
    EXPECT_EQ(choice.tiling.order().group, 3);
  }
  TileScheduler const small =
      choose_gemm(problem(64, 64, 64), kH100, {.raster = Raster::along_m, .group = 100})
          .tiling.order();
  EXPECT_EQ(small.group, small.tiles_n) << "no more than there are";

  auto const refusal = [&](GemmArguments const& arguments, GemmConstraints const& wanted) {
    std::string const sentence =
        message_of<argument_error>([&] { choose_gemm(arguments, kH100, wanted); });
    EXPECT_EQ(message_of<argument_error>([&] { plan_gemm(arguments, kH100, wanted); }), sentence);
    return sentence;
  };
  EXPECT_THAT(refusal(g, {.block_m = 96}),
              AllOf(HasSubstr("asked for"), HasSubstr("m 4096, n 4096, k 4096")));
  EXPECT_THAT(refusal(g, {.configuration = 100000}), HasSubstr("asked for"));
  GemmArguments odd = g;
  odd.lda = 4097;
  EXPECT_THAT(refusal(odd, {.kernel = gemm_sm90}), HasSubstr("asked for"));
  EXPECT_THAT(refusal(odd, {.schedule = Schedule::basic}), HasSubstr("asked for"));
}

// Nothing that was measured speaks for a cluster of several CTAs, or pairs, on Blackwell.
TEST(GemmPlan, TakesClustersOfSeveralPairsWhereTheyAreAskedFor) {
  DeviceProperties const device = properties_of(sim::Generation::sm100);
  auto const chosen = [&](GemmArguments const& g, GemmConstraints const& wanted) {
    GemmChoice const choice = choose_gemm(g, device, wanted);
    EXPECT_EQ(choice.kernel, gemm_sm100);
    return configuration(gemm_sm100, choice.configuration);
  };
  for (std::int64_t const m : kSizes) {
    for (std::int64_t const n : {8, 128, 136, 4096, 100000}) {
      for (DType const in : {DType::bf16, DType::e4m3}) {
        for (Major const major : {Major::k, Major::mn}) {
          GemmArguments g = problem(m, n, 1024);
          g.in = in, g.out = DType::bf16;
          if (in == DType::bf16) g.a_major = g.b_major = major;
          if (major == Major::mn) g.m = (m + 7) / 8 * 8;
          GemmSm100Config const c = chosen(g, {});
          EXPECT_EQ(cluster_size(c), c.ctas) << m << " x " << n << ": " << to_string(c);
        }
      }
      for (auto const& [cluster_m, cluster_n, ctas] :
           {std::tuple(2, 1, 2), {1, 2, 1}, {4, 1, 2}, {2, 2, 2}}) {
        GemmSm100Config const c =
            chosen(problem(m, n, 1024), {.cluster_m = cluster_m, .cluster_n = cluster_n});
        EXPECT_EQ(cluster_of(c), (GemmClusterSpec{.m = cluster_m, .n = cluster_n, .group = ctas}));
      }
    }
  }
  EXPECT_THAT(message_of<argument_error>([&] {
                choose_gemm(problem(64, 64, 64), device, {.cluster_m = 3, .cluster_n = 1});
              }),
              HasSubstr("is what was asked for"));
}

// What is worth timing: the default choice first, others of about its predicted time, none twice.
TEST(GemmPlan, ProposesChoicesToTime) {
  for (GemmArguments const& g :
       {problem(4096, 7168, 2048), problem(1024, 1024, 1024), problem(64, 7168, 2048),
        problem(1, 1, 1), problem(128, 2112, 7168)}) {
    GemmChoice const chosen = choose_gemm(g, kH100);
    for (int const most : {1, 2, 8, 100}) {
      std::vector<GemmChoice> const all = tuning_candidates(g, kH100, most);
      ASSERT_GE(all.size(), 1u);
      ASSERT_LE(all.size(), static_cast<std::size_t>(most));
      EXPECT_EQ(all[0].configuration, chosen.configuration);
      EXPECT_EQ(all[0].tiling, chosen.tiling);
      for (std::size_t i = 0; i < all.size(); ++i) {
        expect_fits(g, all[i]);
        EXPECT_EQ(all[i].kernel, gemm_sm90);
        for (std::size_t j = 0; j < i; ++j)
          EXPECT_FALSE(all[i].configuration == all[j].configuration &&
                       all[i].tiling == all[j].tiling);
      }
    }
  }
  std::vector<GemmChoice> const large = tuning_candidates(problem(4096, 7168, 2048), kH100);
  EXPECT_EQ(large.size(), 8u);
  std::set<int> configurations;
  for (GemmChoice const& choice : large) configurations.insert(choice.configuration);
  EXPECT_GE(configurations.size(), 2u);
  for (GemmChoice const& choice :
       tuning_candidates(problem(4096, 7168, 2048), kH100, 8, {.group = 3}))
    EXPECT_EQ(choice.tiling.order().group, 3);
  GemmArguments odd = problem(4096, 4096, 4096);
  odd.lda = 4097;  // gemm_sm80's
  for (GemmChoice const& choice : tuning_candidates(odd, kH100))
    EXPECT_EQ(choice.kernel, gemm_sm80);
  EXPECT_THAT(
      message_of<argument_error>([&] { tuning_candidates(odd, kH100, 8, {.block_m = 96}); }),
      HasSubstr("asked for"));
}

TEST(GemmPlan, ComputesEveryEpilogueOfEveryType) {
  constexpr DType fp8[] = {DType::e4m3, DType::e5m2};
  std::vector<std::pair<DType, DType>> operands = {
      {DType::f16, DType::f16}, {DType::bf16, DType::bf16}, {DType::tf32, DType::tf32}};
  for (DType const a : fp8)
    for (DType const b : fp8) operands.emplace_back(a, b);
  for (auto const& [a, b] : operands)
    for (DType const out : {DType::f16, DType::bf16, DType::f32})
      for (Activation const activation :
           {Activation::none, Activation::relu, Activation::gelu, Activation::silu}) {
        GemmArguments g = problem(64, 64, 64);
        g.in = a, g.in_b = b, g.out = out, g.activation = activation;
        check(g, 90);
        expect_fits(g, choose_gemm(g, kH100));
      }
}

TEST(GemmPlan, SaysWhatNoConfigurationComputes) {
  GemmArguments g = problem(64, 64, 64);
  g.activation = Activation::silu;
  DeviceProperties tiny = kA100;
  tiny.shared_bytes = 1024;
  EXPECT_THAT(message_of<argument_error>([&] { choose_gemm(g, tiny); }),
              AllOf(HasSubstr("no configuration computes"), HasSubstr("silu(A B)"),
                    HasSubstr("gemm_sm90 does not, for the device is sm_80")));
  GemmArguments small = problem(64, 64, 64);
  small.lda = 65;
  EXPECT_THAT(plan_gemm(small, kH100).reason, HasSubstr("lda is 65"));
  EXPECT_THAT(plan_gemm(problem(64, 64, 64), kA100).reason, HasSubstr("the device is sm_80"));
}

TEST(GemmPlan, PrintsTheProblem) {
  GemmArguments g = problem(1, 2, 3);
  EXPECT_EQ(to_string(g), "D = A B: m 1, n 2, k 3, A bf16 k-major, B bf16 k-major, D bf16");
  g.batch = 4, g.alpha = 2, g.beta = 0.5f, g.bias = at(0x1000), g.activation = Activation::relu;
  g.scale_a = at<float>(0x2000), g.b_major = Major::mn, g.out = DType::f32;
  EXPECT_EQ(
      to_string(g),
      "D = relu(2 scale_a A B + 0.5 C + bias): m 1, n 2, k 3, batch 4, A bf16 k-major, B bf16 mn-major, D f32");
}

}  // namespace
}  // namespace tegula
