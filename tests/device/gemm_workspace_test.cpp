// K in parts by the workspace that a GEMM is given: what is chosen, what it takes, what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "addresses.hpp"
#include "gemm_plan_problems.hpp"
#include "scratch.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/launch.hpp"

namespace tegula {
namespace {

using tegula::testing::at;
using tegula::testing::kA100;
using tegula::testing::kH100;
using tegula::testing::message_of;
using tegula::testing::problem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

GemmArguments with_workspace(GemmArguments g, std::int64_t bytes) {
  g.workspace = at(std::uintptr_t{3} << 44), g.workspace_bytes = bytes;
  return g;
}

/// What parts of K would save, by a model in which they cost nothing.
GemmCostModel cheap_parts() {
  GemmCostModel model;
  model.sm90.parts_us = model.sm90.part_us = 0;
  model.sm90.parts_stored_per_cycle = model.sm90.parts_taken_per_cycle = 1e9;
  return model;
}

// Without a workspace none is used; with what gemm_workspace_bytes says, the choice is that of
// unlimited memory; with a byte less it needs less.
TEST(GemmWorkspace, IsAsLargeAsTheChoiceNeeds) {
  int in_parts = 0;
  for (GemmCostModel const& model : {GemmCostModel(), cheap_parts()}) {
    for (std::int64_t const m : {1, 64, 307, 1000, 5000}) {
      for (std::int64_t const n : {64, 360, 2416}) {
        for (std::int64_t const k : {8, 640, 14472}) {
          GemmArguments const g = problem(m, n, k);
          EXPECT_EQ(choose_gemm(g, kH100, {}, model).parts, 1);
          GemmChoice const best = choose_gemm(with_workspace(g, kMost), kH100, {}, model);
          std::int64_t const bytes = gemm_workspace_bytes(g, kH100, {}, model);
          EXPECT_EQ(bytes > 0, best.parts > 1);
          if (bytes == 0) continue;
          ++in_parts;
          GemmChoice const choice = choose_gemm(with_workspace(g, bytes), kH100, {}, model);
          EXPECT_EQ(choice.configuration, best.configuration);
          EXPECT_EQ(choice.parts, best.parts);
          EXPECT_EQ(choice.tiling, best.tiling);
          EXPECT_LE(choice.parts, kMostParts);
          EXPECT_EQ(choice.tiling.order().batches, choice.parts);
          GemmSm90Config const& c = configuration(gemm_sm90, choice.configuration);
          EXPECT_GE(bytes, 4 * choice.parts * m * n);
          EXPECT_EQ(bytes, choice.tiling.tiles * part_bytes(c));
          GemmChoice const less = choose_gemm(with_workspace(g, bytes - 1), kH100, {}, model);
          EXPECT_TRUE(less.configuration != choice.configuration || less.parts < choice.parts);
        }
      }
    }
  }
  EXPECT_GT(in_parts, 10);
}

// A long K and few tiles, where K within a cluster alone leaves most multiprocessors idle.
TEST(GemmWorkspace, ServesALongKOfFewTiles) {
  GemmArguments const g = problem(307, 2416, 14472);
  GemmChoice const without = choose_gemm(g, kH100),
                   with = choose_gemm(with_workspace(g, 32 << 20), kH100);
  EXPECT_GT(with.parts, 1);
  EXPECT_LT(with.cost.total, 0.95 * without.cost.total);
  EXPECT_EQ(gemm_workspace_bytes(problem(8192, 8192, 8192), kH100), 0);
  EXPECT_EQ(gemm_workspace_bytes(g, kA100), 0) << "gemm_sm80 has no parts";
}

TEST(GemmWorkspace, ComputesAsManyPartsAsAreAskedFor) {
  GemmArguments const g = with_workspace(problem(100, 96, 104), kMost);
  for (int const parts : {5, 7, kMostParts}) {
    EXPECT_EQ(choose_gemm(g, kH100, {.split_k = parts}).parts, parts);
    GemmArguments batched = g;
    batched.batch = 3;
    GemmChoice const choice = choose_gemm(batched, kH100, {.split_k = parts});
    EXPECT_EQ(choice.tiling.order().batches, 3 * parts);
  }
  EXPECT_EQ(choose_gemm(g, kH100, {.split_k = 1}).parts, 1);
  EXPECT_THROW(choose_gemm(g, kH100, {.split_k = kMostParts + 1}), argument_error);
  EXPECT_THROW(choose_gemm(problem(100, 96, 104), kH100, {.split_k = 5}), argument_error);
}

// Arrivals are counted for each warp of each CTA's tile; a problem of more has no parts.
TEST(GemmWorkspace, HasNoPartsOfMoreTilesThanAreCounted) {
  GemmConstraints const wanted{.split_k = 5};
  EXPECT_NO_THROW(choose_gemm(with_workspace(problem(4096, 4096, 4096), kMost), kH100, wanted));
  EXPECT_THROW(choose_gemm(with_workspace(problem(65536, 65536, 4096), kMost), kH100, wanted),
               argument_error);
  EXPECT_EQ(gemm_workspace_bytes(problem(1 << 20, 1 << 16, 64), kH100), 0);
}

// What the choice was made for is not what is launched: less memory, or none.
TEST(GemmWorkspace, IsHeldToTheChoice) {
  Machine const machine = Machine::simulated(Arch::sm90);
  GemmArguments const g = problem(64, 96, 4096);
  GemmChoice choice = choose_gemm(with_workspace(g, kMost), machine.properties(), {.split_k = 5});
  ASSERT_EQ(choice.parts, 5);
  for (GemmArguments const& less : {g, with_workspace(g, 1000)})
    EXPECT_THAT(message_of<argument_error>([&] { gemm(machine, less, choice); }),
                HasSubstr("is for a workspace for two parts of k"));
  GemmSm90Config const& c = configuration(gemm_sm90, choice.configuration);
  std::int64_t const part = choice.tiling.tiles / 5 * part_bytes(c);
  EXPECT_THAT(
      message_of<argument_error>([&] { gemm(machine, with_workspace(g, 4 * part), choice); }),
      AllOf(HasSubstr("the choice is of 5 parts of k"), HasSubstr("allow at most 4")));
  choice.parts = 0;
  EXPECT_THAT(
      message_of<argument_error>([&] { gemm(machine, with_workspace(g, 1 << 30), choice); }),
      HasSubstr("0 parts of k"));
}

TEST(GemmWorkspace, IsDescribedByThePlan) {
  GemmPlan const plan =
      plan_gemm(with_workspace(problem(307, 2416, 14472), kMost), kH100, {.split_k = 3});
  EXPECT_THAT(to_string(plan), AllOf(HasSubstr("3 parts of k"), HasSubstr("of workspace")));
}

}  // namespace
}  // namespace tegula
