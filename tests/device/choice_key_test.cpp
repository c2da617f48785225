// What a choice is remembered by: all that it looks at, and no address.

#include "choice_key.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "addresses.hpp"
#include "gemm_plan_problems.hpp"
#include "memo.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/grouped_gemm.hpp"

namespace tegula::device {
namespace {

using tegula::testing::at;
using tegula::testing::kH100;

GemmArguments given() {
  GemmArguments g = tegula::testing::problem(512, 256, 1024);
  g.c = at(std::uintptr_t{4} << 44), g.bias = at(std::uintptr_t{5} << 44), g.beta = 1;
  g.workspace = at(std::uintptr_t{6} << 44), g.workspace_bytes = 1 << 20;
  return with_defaults(g);
}

TEST(GemmKey, TellsProblemsApart) {
  using Change = std::function<void(GemmArguments&)>;
  std::vector<Change> const changes = {
      [](auto& g) { g.in = DType::f16; },
      [](auto& g) { g.in_b = DType::f16; },
      [](auto& g) { g.out = DType::f32; },
      [](auto& g) { g.a_major = Major::mn; },
      [](auto& g) { g.b_major = Major::mn; },
      [](auto& g) { g.activation = Activation::relu; },
      [](auto& g) { g.beta = 0; },
      [](auto& g) { g.block_scale = kMxScale; },
      [](auto& g) { g.block_scale = kNvScale; },
      [](auto& g) { g.a = at(0x1002); },
      [](auto& g) { g.b = at(0x1008); },
      [](auto& g) { g.c = at(0x1008); },
      [](auto& g) { g.d = at(0x1008); },
      [](auto& g) { g.bias = at(0x1002); },
      [](auto& g) { g.bias = nullptr; },
      [](auto& g) { g.m = 513; },
      [](auto& g) { g.n = 264; },
      [](auto& g) { g.k = 1032; },
      [](auto& g) { g.batch = 2; },
      [](auto& g) { g.lda = 2048; },
      [](auto& g) { g.ldb = 2048; },
      [](auto& g) { g.ldc = 2048; },
      [](auto& g) { g.ldd = 2048; },
      // Of one matrix there is no stride.
      [](auto& g) { g.batch = 2, g.a_batch_stride = 0; },
      [](auto& g) { g.batch = 2, g.b_batch_stride = 0; },
      [](auto& g) { g.batch = 2, g.c_batch_stride = 0; },
      [](auto& g) { g.batch = 2, g.d_batch_stride = 1 << 30; },
      [](auto& g) { g.workspace_bytes = 1 << 21; },
  };
  std::set<GemmKey> keys = {key_of(given(), kH100)};
  for (Change const& change : changes) {
    GemmArguments g = given();
    change(g);
    EXPECT_TRUE(keys.insert(key_of(g, kH100)).second) << keys.size();
  }
  DeviceProperties fewer = kH100, other = kH100, any = kH100;
  fewer.multiprocessors = 16, other.compute_capability = 100, any.kernels = Kernels::all;
  for (DeviceProperties const& device : {fewer, other, any})
    EXPECT_TRUE(keys.insert(key_of(given(), device)).second);
}

TEST(GemmKey, IsTheSameWhereverThingsLie) {
  GemmArguments g = given();
  g.a = at(0x2000), g.b = at(0x3000), g.c = at(0x4000), g.d = at(0x5000), g.bias = at(0x6000);
  g.workspace = at(0x7000), g.alpha = 3, g.beta = 2;
  EXPECT_EQ(key_of(g, kH100), key_of(given(), kH100));
  GemmArguments left_out = given();
  left_out.lda.reset(), left_out.ldd.reset(), left_out.in_b.reset(),
      left_out.d_batch_stride.reset();
  EXPECT_EQ(key_of(left_out, kH100), key_of(given(), kH100));
}

GroupedGemmArguments given_groups() {
  GroupedGemmArguments g;
  g.groups = 4, g.grouping = Grouping::contiguous, g.m = 512, g.n = 256, g.k = 1024;
  g.a = at(std::uintptr_t{1} << 44), g.b = at(std::uintptr_t{2} << 44);
  g.d = at(std::uintptr_t{3} << 44);
  g.scale_a = at<float>(std::uintptr_t{4} << 44), g.scale_b = at<float>(std::uintptr_t{5} << 44);
  g.group_ends = at<int>(std::uintptr_t{6} << 44);
  return with_defaults(g);
}

TEST(GroupedGemmKey, TellsProblemsApart) {
  using Change = std::function<void(GroupedGemmArguments&)>;
  std::vector<Change> const changes = {
      [](auto& g) { g.in = DType::e5m2; },
      [](auto& g) { g.in_b = DType::e5m2; },
      [](auto& g) { g.out = DType::f32; },
      [](auto& g) { g.scales = Scales::rows_by_rows; },
      [](auto& g) { g.grouping = Grouping::masked; },
      [](auto& g) { g.block_scale = kMxScale; },
      [](auto& g) { g.block_scale = kNvScale; },
      [](auto& g) { g.groups = 5; },
      [](auto& g) { g.m = 513; },
      [](auto& g) { g.n = 264; },
      [](auto& g) { g.k = 1032; },
      [](auto& g) { g.a = at(0x1008); },
      [](auto& g) { g.b = at(0x1008); },
      [](auto& g) { g.c = at(0x1008); },
      [](auto& g) { g.d = at(0x1008); },
      [](auto& g) { g.scale_a = at<float>(0x1004); },
      [](auto& g) { g.scale_b = at<float>(0x1004); },
      [](auto& g) { g.block_scale_a = at(0x1000); },
      [](auto& g) { g.block_scale_b = at(0x1000); },
      [](auto& g) { g.group_begins = at<int>(0x1000); },
      [](auto& g) { g.group_ends = nullptr; },
      [](auto& g) { g.lda = 2048; },
      [](auto& g) { g.ldb = 2048; },
      [](auto& g) { g.ldc = 2048; },
      [](auto& g) { g.ldd = 2048; },
      [](auto& g) { g.b_group_stride = 1 << 30; },
      // Of groups of k; other groups' rows follow each other.
      [](auto& g) { g.grouping = Grouping::k, g.c_group_stride = 1 << 30; },
      [](auto& g) { g.grouping = Grouping::k, g.d_group_stride = 1 << 30; },
      [](auto& g) { g.scale_a_stride = 1024; },
      [](auto& g) { g.scale_b_stride = 1024; },
      [](auto& g) { g.expected_rows = 3; },
  };
  std::set<GroupedGemmKey> keys = {key_of(given_groups(), kH100)};
  for (Change const& change : changes) {
    GroupedGemmArguments g = given_groups();
    change(g);
    EXPECT_TRUE(keys.insert(key_of(g, kH100)).second) << keys.size();
  }
  GroupedGemmArguments g = given_groups();
  g.a = at(0x2000), g.b = at(0x3000), g.d = at(0x5000), g.group_ends = at<int>(0x6000);
  EXPECT_EQ(key_of(g, kH100), key_of(given_groups(), kH100));
}

TEST(Memo, DecidesOnceForEachKey) {
  Memo<int, int> memo;
  int decided = 0;
  auto const square = [&](int key) { return memo.of(key, [&] { return ++decided, key * key; }); };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(square(3), 9);
    EXPECT_EQ(square(4), 16);
  }
  EXPECT_EQ(decided, 2);
  for (int key = 0; key < 10000; ++key) EXPECT_EQ(square(key), key * key);
  EXPECT_LE(decided, 10002);
}

}  // namespace
}  // namespace tegula::device
