// Grouped GEMMs on the host: what is refused and how, which configuration is chosen, and the tiles
// of groups as a value.

#include "tegula/device/grouped_gemm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "addresses.hpp"
#include "expected_tiles.hpp"
#include "scratch.hpp"

namespace tegula {
namespace {

using tegula::testing::in_region;
using tegula::testing::message_of;
using ::testing::HasSubstr;

GroupedGemmArguments dense(int m = 300, int n = 256, int k = 512) {
  return with_defaults(GroupedGemmArguments{.in = DType::e4m3,
                                            .m = m,
                                            .n = n,
                                            .k = k,
                                            .a = in_region(1),
                                            .b = in_region(2),
                                            .d = in_region(4),
                                            .scale_a = in_region<float>(5),
                                            .scale_b = in_region<float>(6)});
}
GroupedGemmArguments grouped(Grouping grouping) {
  GroupedGemmArguments g{.in = DType::bf16,
                         .grouping = grouping,
                         .groups = 4,
                         .m = 300,
                         .n = 256,
                         .k = 512,
                         .a = in_region(1),
                         .b = in_region(2),
                         .d = in_region(4),
                         .group_ends = in_region<int>(7)};
  return with_defaults(g);
}

TEST(GroupedGemmCheck, RefusesEachBadArgument) {
  struct Row {
    char const* says;
    std::function<void(GroupedGemmArguments&)> change;
  };
  auto const expect_refused = [](GroupedGemmArguments const& good, std::vector<Row> const& rows) {
    check(good, 90);
    for (auto const& [says, change] : rows) {
      GroupedGemmArguments bad = good;
      change(bad);
      EXPECT_THAT(message_of<argument_error>([&] { check(bad, 90); }), HasSubstr(says));
    }
  };
  using G = GroupedGemmArguments;
  expect_refused(
      dense(), {{"m is 0", [](G& g) { g.m = 0; }},
                {"n is -1", [](G& g) { g.n = -1; }},
                {"k is", [](G& g) { g.k = std::int64_t{1} << 40; }},
                {"in is f32", [](G& g) { g.in = DType::f32; }},
                {"in is e4m3 and in_b is bf16", [](G& g) { g.in_b = DType::bf16; }},
                {"out is e4m3", [](G& g) { g.out = DType::e4m3; }},
                {"in is e4m3 and scales is none", [](G& g) { g.scales = Scales::none; }},
                {"scales is 7", [](G& g) { g.scales = static_cast<Scales>(7); }},
                {"grouping is 9", [](G& g) { g.grouping = static_cast<Grouping>(9); }},
                {"groups is 2 and grouping is none", [](G& g) { g.groups = 2; }},
                {"group_ends is no null pointer", [](G& g) { g.group_ends = in_region<int>(7); }},
                {"a is a null pointer", [](G& g) { g.a = nullptr; }},
                {"8 bytes past a multiple of 16", [](G& g) { g.b = in_region(2, 8); }},
                {"scale_a is a null pointer", [](G& g) { g.scale_a = nullptr; }},
                {"4 bytes past a multiple of 16", [](G& g) { g.scale_a = in_region<float>(5, 4); }},
                {"d and a are the same pointer", [](G& g) { g.d = const_cast<void*>(g.a); }},
                {"overlaps scale_a", [](G& g) { g.scale_a = in_region<float>(4, 64); }},
                {"overlaps scale_b", [](G& g) { g.scale_b = in_region<float>(4, 64); }},
                {"lda is 511", [](G& g) { g.lda = 511; }},
                {"ldb is 520 elements", [](G& g) { g.ldb = 520; }},
                {"ldd is 255", [](G& g) { g.ldd = 255; }},
                {"scale_a_stride is 299", [](G& g) { g.scale_a_stride = 299; }},
                {"scale_a_stride is 301", [](G& g) { g.scale_a_stride = 301; }},
                {"c and d are the same pointer", [](G& g) { g.c = g.d, g.ldc = 300; }},
                {"overlaps", [](G& g) { g.d = in_region(1, 256); }},
                {"overlaps", [](G& g) { g.c = in_region(4, 64); }}});
  expect_refused(grouped(Grouping::contiguous),
                 {{"groups is 0", [](G& g) { g.groups = 0; }},
                  {"group_ends is a null pointer", [](G& g) { g.group_ends = nullptr; }},
                  {"overlaps group_ends", [](G& g) { g.group_ends = in_region<int>(4, 256); }},
                  {"overlaps group_begins", [](G& g) { g.group_begins = in_region<int>(4, 64); }},
                  {"scales is 1x128,1x128", [](G& g) { g.scales = Scales::rows_by_rows; }},
                  {"scale_b is no null pointer", [](G& g) { g.scale_b = in_region<float>(6); }},
                  {"b_group_stride is", [](G& g) { g.b_group_stride = 100001; }},
                  {"in is bf16 and in_b is f16", [](G& g) { g.in_b = DType::f16; }}});
  expect_refused(
      grouped(Grouping::masked),
      {{"group_begins is no null pointer", [](G& g) { g.group_begins = in_region<int>(8); }},
       {"groups * m", [](G& g) { g.groups = std::int64_t{1} << 29; }}});
  expect_refused(grouped(Grouping::k), {{"d_group_stride is", [](G& g) { g.d_group_stride = 100; }},
                                        {"scales of 1x128,1x128", [](G& g) {
                                           g = dense();
                                           g.grouping = Grouping::k,
                                           g.group_ends = in_region<int>(7);
                                         }}});
  EXPECT_THAT(message_of<argument_error>([] { check(dense(), 80); }),
              HasSubstr("sm_80; it is computed on sm_90 and sm_100 only"));
  EXPECT_THAT(message_of<argument_error>([] { check(dense(), 100); }), HasSubstr("must be none"));
  GroupedGemmArguments without = dense();  // fp8, as sm_100 computes it, and sm_90 does not
  without.scales = Scales::none, without.scale_a = without.scale_b = nullptr;
  EXPECT_NO_THROW(check(without, 100));
  GroupedGemmArguments mx = without;
  mx.block_scale = kMxScale, mx.block_scale_a = in_region(5), mx.block_scale_b = in_region(6);
  EXPECT_NO_THROW(check(mx, 100));
  auto const scaled = [&](auto&& change) {
    GroupedGemmArguments g = mx;
    change(g);
    return message_of<argument_error>([&] { check(g, 100); });
  };
  EXPECT_THAT(scaled([](G& g) { g.block_scale = kNvScale; }), HasSubstr("both must be e2m1"));
  EXPECT_THAT(scaled([](G& g) { g.block_scale.block = 64; }), HasSubstr("kMxScale or kNvScale"));
  EXPECT_THAT(scaled([](G& g) { g.block_scale_b = nullptr; }),
              HasSubstr("block_scale_b is a null"));
  EXPECT_THAT(scaled([](G& g) { g.block_scale = {}; }), HasSubstr("block_scale_a is no null"));
  EXPECT_THAT(scaled([](G& g) { g.scales = Scales::rows_by_rows; }), HasSubstr("scales is 1x128"));
  EXPECT_THAT(scaled([](G& g) { g.in = DType::bf16; }), HasSubstr("each must be e4m3 or e5m2"));
  EXPECT_THAT(scaled([](G& g) { g.in = DType::e2m1, g.in_b = DType::e2m1, g.k = 511; }),
              HasSubstr("k is 511"));
  GroupedGemmArguments by_k = mx;
  by_k.grouping = Grouping::k, by_k.group_ends = in_region<int>(7);
  EXPECT_NO_THROW(check(by_k, 100));
  EXPECT_THAT(message_of<argument_error>([&] { check(mx, 90); }), HasSubstr("sm_100 only"));
  EXPECT_THAT(message_of<argument_error>([] { choose_grouped_gemm(dense(), {}, {.block_m = 77}); }),
              HasSubstr("what was asked for"));
}

TEST(GroupedGemmCheck, StridesOfOneElementDoNotCount) {
  GroupedGemmArguments one = dense(1, 1, 128);
  one.lda = one.ldb = one.ldd = one.b_group_stride = one.d_group_stride = -3;
  one.scale_a_stride = one.scale_b_stride = 1;
  EXPECT_NO_THROW(check(one, 90));
  GroupedGemmArguments two = one;
  two.m = 2;
  EXPECT_THROW(check(two, 90), argument_error);
  two.lda = 128, two.ldd = 1;
  EXPECT_NO_THROW(check(two, 90));
  two.k = 256, two.lda = 256;
  EXPECT_THROW(check(two, 90), argument_error);  // of two blocks scale_a_stride counts
  two.scale_a_stride = 4;
  EXPECT_NO_THROW(check(two, 90));
  // A group of one column: the distance to the next group's is left out, and is no multiple of 16.
  GroupedGemmArguments column = grouped(Grouping::contiguous);
  column.groups = column.n = 1, column.k = 100, column.lda = 112;
  column.ldb = column.b_group_stride = {};
  EXPECT_NO_THROW(check(column, 90));
}

TEST(GroupedGemmPlan, TakesLargeTilesForManyRows) {
  auto const g = dense(4096, 4096, 7168);
  auto const& c = configuration(grouped_gemm_sm90, choose_grouped_gemm(g, {}).configuration);
  EXPECT_GE(c.block_m * c.block_n, 128 * 128);
  EXPECT_EQ(c.split_k, 1);
  GroupedGemmPlan const plan = plan_grouped_gemm(g, {});
  EXPECT_EQ(plan.chosen().configuration, choose_grouped_gemm(g, {}).configuration);
  EXPECT_THAT(to_string(plan), HasSubstr("predicted to take the least time"));
  for (std::size_t i = 1; i < plan.candidates.size() && plan.candidates[i].refused.empty(); ++i)
    EXPECT_LE(plan.candidates[i - 1].choice.cost.total, plan.candidates[i].choice.cost.total);
}

// Without, 9 to 128 CTAs would read the weights of DeepGEMM's list.
TEST(GroupedGemmPlan, SharesKWhereTilesAreFewAndKIsLong) {
  DeviceProperties const device{.kernels = Kernels::all};
  auto const chosen = [&](GroupedGemmArguments const& g) {
    return configuration(grouped_gemm_sm90, choose_grouped_gemm(g, device).configuration);
  };
  for (int const m : {1, 64, 128}) {
    EXPECT_GT(chosen(dense(m, 576, 7168)).split_k, 1) << m;
    auto const& narrow = chosen(dense(m, 2112, 7168));
    EXPECT_TRUE(narrow.split_k > 1 || narrow.block_n <= 32) << m;
    EXPECT_EQ(chosen(dense(m, 24576, 512)).split_k, 1) << "there are tiles enough";
  }
  GroupedGemmChoice const asked = choose_grouped_gemm(dense(), {}, {.split_k = 4});
  EXPECT_EQ(configuration(grouped_gemm_sm90, asked.configuration).split_k, 4);
}

/// The scaled configuration of that tile that has no cluster and writes bf16: its number.
int plain_configuration(int block_m, int block_n) {
  auto const all = configurations(grouped_gemm_sm90, Kernels::all);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] == GroupedGemmSm90Config{.block_m = block_m, .block_n = block_n})
      return static_cast<int>(i);
  ADD_FAILURE() << "there is no tile of " << block_m << " x " << block_n;
  return 0;
}

// A band of all of a group's rows reads B once; a higher one than the rounds need would read A
// again, once it is too large for L2.
TEST(GroupedGemmPlan, HasBandsOfAllRowsOfASmallA) {
  GroupedGemmConstraints const tile{.configuration = plain_configuration(128, 128)};
  DeviceProperties const device{.kernels = Kernels::all};
  auto const band = [&](int m, int k) {
    return choose_grouped_gemm(dense(m, 4096, k), device, tile).band;
  };
  EXPECT_EQ(band(1024, 2048), 16) << "2 MB: twice the rows of tiles that are expected";
  EXPECT_EQ(band(8192, 512), 64) << "4 MB, but a band has at most 64";
  EXPECT_LT(band(8192, 7168), 16) << "59 MB: about as high as wide";
}

// A group has 0.7 to 1.3 of the rows that are expected: of 384, so in three or four rows of 32
// tiles, which are a round of 132; of 512 in three to six, as often in one round as in two.
TEST(GroupedGemmPlan, TakesGroupsToHaveAboutTheRowsThatAreExpected) {
  DeviceProperties const device{.kernels = Kernels::all};
  GroupedGemmConstraints const tile{.configuration = plain_configuration(128, 128)};
  auto const tensor = [&](Grouping grouping, int groups, int rows) {
    GroupedGemmArguments g = dense(2048, 4096, 7168);
    g.grouping = grouping, g.groups = groups, g.expected_rows = rows;
    return choose_grouped_gemm(g, device, tile).cost.tensor;
  };
  double const round = choose_grouped_gemm(dense(512, 4096, 7168), device, tile).cost.tensor;
  EXPECT_NEAR(tensor(Grouping::masked, 1, 384) / round, 1, 0.05) << "three or four rows of tiles";
  EXPECT_NEAR(tensor(Grouping::masked, 1, 512) / round, 1.5, 0.05) << "three to six";
  EXPECT_NEAR(tensor(Grouping::contiguous, 1, 2048) / round, 4, 1e-6) << "what is known";
  double const many = tensor(Grouping::masked, 64, 384) / round;
  EXPECT_GT(many, 64 * 384 / 512.0) << "the last tile of each is not full";
  EXPECT_LT(many, 64 * 512 / 512.0);
}

// The mean over every size that a group may have, one by one.
TEST(RowsOfTiles, AreTheMeanOverTheSizes) {
  for (int const rows : {40, 100, 144, 384, 1000}) {
    for (int const block_m : {64, 128, 256}) {
      double mean = 0;
      int const first = 7 * rows, last = 13 * rows;  // tenths of a row
      for (int tenth = first; tenth < last; ++tenth)
        mean += std::ceil((tenth + 0.5) / 10 / block_m) / (last - first);
      device::RowsOfTiles const one = device::rows_of_tiles(1, rows, 1 << 20, block_m, false);
      EXPECT_NEAR(one.mean, mean, 0.05) << rows << " " << block_m;
      EXPECT_NEAR(device::rows_of_tiles(9, rows, 1 << 20, block_m, true).mean, 9 * one.mean, 0.3);
      EXPECT_GE(one.turns(1000, 132), one.mean * 1000 / 132 - 0.01);
    }
  }
  // Of as many rows as there may be, at once; and about the same on either side of where turns are
  // summed one by one.
  EXPECT_GT(device::rows_of_tiles(1, 1 << 30, 1 << 30, 64, false).turns(1 << 20, 132), 1e9);
  for (double const deviation : {15.99, 16.01})
    EXPECT_NEAR((device::RowsOfTiles{100, deviation}).turns(131, 132), 100 * 131.0 / 132 + 0.5,
                0.6);
  device::RowsOfTiles const known = {.mean = 3};
  EXPECT_EQ(known.turns(44, 132), 1);
  EXPECT_EQ(known.turns(45, 132), 2);
  EXPECT_EQ(device::rows_of_tiles(1, 384, 384, 128, false).mean, 3)
      << "no more than there is room for";
}

// Each tile of a group once, in any band, and none outside of its rows.
TEST(GroupTiles, AreEachOnceWithinTheirGroup) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    GroupTiles const t{.grouping = static_cast<Grouping>(i % 4),
                       .groups = 9,
                       .rows = 1 + static_cast<int>(random() % 900),
                       .depth = 700,
                       .tiles_n = 1 + static_cast<int>(random() % 7),
                       .band = 1 + static_cast<int>(random() % 12)};
    int const block_m = i % 2 == 0 ? 64 : 128, group = static_cast<int>(random() % 9);
    int const begin = static_cast<int>(random() % 900), end = static_cast<int>(random() % 900);
    GroupRange const range = group_range(t, group, begin, end);
    ASSERT_LE(range.begin, range.end);
    int const first = t.grouping == Grouping::k ? 0 : range.begin;
    int const last = t.grouping == Grouping::k ? t.rows : range.end;
    std::set<std::pair<int, int>> seen;
    int const count = tiles_of_group(t, range, block_m);
    EXPECT_EQ(count, (last - first + block_m - 1) / block_m * t.tiles_n);
    for (int index = 0; index < count; ++index) {
      GroupTile const tile = tile_of_group(t, group, range, 5, index, block_m);
      EXPECT_TRUE(seen.insert({tile.m, tile.n}).second);
      EXPECT_TRUE(tile.m >= first && tile.m < last && (tile.m - first) % block_m == 0);
      EXPECT_TRUE(tile.n >= 0 && tile.n < t.tiles_n);
      EXPECT_EQ(std::tuple(tile.group, tile.m_end, tile.k_block), std::tuple(group, last, 5));
    }
  }
}

// Entries that are no range of the tensor are cut to one.
TEST(GroupTiles, KeepWithinTheTensor) {
  for (Grouping const grouping : {Grouping::contiguous, Grouping::masked, Grouping::k}) {
    GroupTiles const t{.grouping = grouping, .groups = 3, .rows = 50, .depth = 70};
    int const most = grouping == Grouping::k ? 70 : 50;
    for (int const begin : {-2147483647 - 1, -1, 0, 20, 49, 2147483647}) {
      for (int const end : {-2147483647 - 1, -1, 0, 20, 71, 2147483647}) {
        GroupRange const r = group_range(t, 2, begin, end);
        int const from = grouping == Grouping::masked ? 2 * 50 : 0;
        EXPECT_TRUE(from <= r.begin && r.begin <= r.end && r.end <= from + most);
      }
    }
  }
}

}  // namespace
}  // namespace tegula
