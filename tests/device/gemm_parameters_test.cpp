// The parameters of the Hopper GEMM, tensor maps among them, for every configuration.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "gemm_plan_problems.hpp"
#include "tegula/device/buffer.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {
namespace {

using tegula::testing::kH100;

/// What asks for a configuration: of one in parts, for two of them, with memory of no extent.
GemmConstraints asked_for(int configuration, GemmArguments& g, void* workspace) {
  GemmSm90Config const& c = tegula::configuration(gemm_sm90, configuration);
  GemmConstraints wanted{.kernel = gemm_sm90, .configuration = configuration};
  if (!c.in_parts) return wanted;
  g.workspace = workspace, g.workspace_bytes = std::int64_t{1} << 30;
  wanted.split_k = 2;
  return wanted;
}

// What the kernel expects of its tensor maps, for every configuration: the boxes of a stage's tile.
TEST(GemmPlan, MakesParametersForEveryConfiguration) {
  Machine const machine = Machine::simulated(Arch::sm90);
  Buffer<float> const a(machine, 4096, "A"), b(machine, 4096, "B"), d(machine, 65536, "D"),
      workspace(machine, 16, "workspace");
  for (int i = 0; i < static_cast<int>(configurations(gemm_sm90).size()); ++i) {
    GemmSm90Config const& c = configuration(gemm_sm90, i);
    GemmArguments g = {.in = c.a,
                       .in_b = c.b,
                       .out = c.out,
                       .a_major = c.a_major,
                       .b_major = c.b_major,
                       .m = 48,
                       .n = 32,
                       .k = 64,
                       .batch = 2,
                       .a = a.data(),
                       .b = b.data(),
                       .c = d.data(),
                       .d = d.data(),
                       .a_batch_stride = 0,
                       .beta = 1,
                       .activation = c.activates ? Activation::relu : Activation::none};
    if (c.transposed) {  // the caller's A is the kernel's B
      g = exchanged(g);
      g.c = nullptr, g.beta = 0;
    }
    check(g, 90);
    GemmConstraints const wanted = asked_for(i, g, workspace.data());
    GemmChoice const choice = choose_gemm(g, kH100, wanted);
    EXPECT_EQ(choice.configuration, i) << to_string(c);
    EXPECT_EQ(choice.parts, c.in_parts ? 2 : 1) << to_string(c);
    GemmSm90Params const p = lower(machine, g, choice);
    EXPECT_FALSE(p.problem.a_batched);
    EXPECT_TRUE(p.problem.b_batched);
    EXPECT_EQ(p.epilogue.c_batched, !c.transposed);
    EXPECT_TRUE(p.problem.m == 48 && p.problem.n == 32 && p.problem.k == 64);
    EXPECT_EQ(p.schedule.tiling.tiles, choice.tiling.tiles);
    EXPECT_EQ(p.schedule.clusters, choice.clusters);
    EXPECT_EQ(p.parts.tile.count, choice.parts);
    EXPECT_EQ(p.parts.partial.sums, c.in_parts ? workspace.data() : nullptr);
    auto const map = [](TensorMap const& m) { return *sim::decode(m); };
    TensorMapDescription const of_a = map(p.problem.a), of_b = map(p.problem.b);
    // Of a single tile the boxes are cut short, not only those of the last.
    int const rows_of_a = c.block_m - (c.block_m >= 48 ? p.problem.unloaded_a : 0),
              rows_of_b = c.block_n - (c.block_n >= 32 ? p.problem.unloaded_b : 0);
    EXPECT_EQ(box_bytes(of_a) * a_fetch(c).boxes_mn, 128 * rows_of_a) << to_string(c);
    EXPECT_EQ(box_bytes(of_b) * b_fetch(c).boxes_mn, 128 * rows_of_b) << to_string(c);
    EXPECT_EQ(of_a.swizzle, TmaSwizzle::b128);
    EXPECT_EQ(of_a.extents[2], 1);
    EXPECT_EQ(of_b.extents[2], 2);
    if (c.transposed) {
      EXPECT_EQ(p.epilogue.d_address, d.data());
      EXPECT_EQ(p.epilogue.ldd, 48);
      EXPECT_EQ(p.epilogue.d_batch_stride, 32 * 48);
      if (c.store_buffers == 0) continue;  // stored without TMA
      TensorMapDescription const of_d = map(p.epilogue.d.whole);
      EXPECT_EQ(of_d.box, (std::array<int, 5>{64, store_n(epilogue(c)), 1})) << to_string(c);
      EXPECT_EQ(of_d.swizzle, TmaSwizzle::b128);
      EXPECT_EQ(of_d.extents[0], 48);
      EXPECT_EQ(of_d.extents[1], 32);
      continue;
    }
    TensorMapDescription const of_d = map(p.epilogue.d.whole);
    EXPECT_EQ(of_d, map(p.epilogue.c.whole));
    EXPECT_EQ(span_bytes(of_d.swizzle), store_n(epilogue(c)) * bits(c.out) / 8);
    EXPECT_EQ(of_d.extents[0], 32);
    EXPECT_EQ(of_d.extents[1], 48);
  }
}

// Peers that share an operand's tile share its last one, too: each has an equal part of the rows
// that there are.
TEST(GemmPlan, PeersShareTheRowsOfAnOperandsLastTile) {
  Machine const machine = Machine::simulated(Arch::sm90);
  Buffer<float> const any(machine, 16, "any");
  int tried = 0;
  for (int i = 0; i < static_cast<int>(configurations(gemm_sm90).size()); ++i) {
    GemmSm90Config const& c = configuration(gemm_sm90, i);
    TmaBoxes const boxes = b_fetch(c);
    if (c.a != DType::bf16 || c.out != DType::bf16 || c.a_major != Major::k ||
        c.b_major != Major::k || c.activates || c.narrow_n > 0 || boxes.peers == 1)
      continue;
    ++tried;
    for (int const rest : {1, c.block_n / 2 + 1, c.block_n - 1, c.block_n}) {
      GemmArguments g = {.m = c.block_m * c.cluster_m,
                         .n = 3 * c.block_n + rest,
                         .k = 64 * 2000 * c.split_k * (c.in_parts ? 2 : 1),
                         .a = any.data(),
                         .b = any.data(),
                         .d = any.data()};
      g.ldd = 4096;
      if (c.transposed) g = exchanged(g);
      GemmConstraints const wanted = asked_for(i, g, any.data());
      GemmSm90Problem const p = lower(machine, g, choose_gemm(g, kH100, wanted)).problem;
      int const rows = (rest + boxes.peers - 1) / boxes.peers;
      EXPECT_EQ(p.unloaded_b, c.block_n - rows * boxes.peers) << to_string(c) << ", " << rest;
      if (p.unloaded_b > 0) {
        EXPECT_EQ(sim::decode(p.b_last)->box[1], rows) << to_string(c) << ", " << rest;
      }
    }
  }
  EXPECT_GT(tried, 2);
}

// Of an operand's last tile, boxes bring the rows that there are.
TEST(GemmPlan, LoadsNoRowsBeyondAnOperandsLastTile) {
  Machine const machine = Machine::simulated(Arch::sm90);
  Buffer<float> const any(machine, 16, "any");
  struct Case {
    std::int64_t m, k;
    int unloaded;
  };
  for (bool const transposed : {false, true}) {
    GemmConstraints wanted{.kernel = gemm_sm90, .block_m = 64, .block_n = 64, .split_k = 1};
    for (int i = 0; i < static_cast<int>(configurations(gemm_sm90).size()); ++i) {
      GemmSm90Config const& c = configuration(gemm_sm90, i);
      if (c.a == DType::bf16 && c.out == DType::bf16 && c.block_m == 64 && c.block_n == 64 &&
          cluster_size(c) == 1 && c.transposed == transposed)
        wanted.configuration = i;
    }
    if (!wanted.configuration) continue;  // none in this build
    for (Case const& x : {Case{5, 8192, 59},
                          {63, 64, 1},
                          {64, 8192, 0},
                          {65, 64, 63},
                          {200, 8192, 56},
                          {192, 8192, 0}}) {
      GemmArguments const g = {
          .m = x.m, .n = 192, .k = x.k, .a = any.data(), .b = any.data(), .d = any.data()};
      GemmSm90Problem const p = lower(machine, g, choose_gemm(g, kH100, wanted)).problem;
      EXPECT_EQ(transposed ? p.unloaded_b : p.unloaded_a, x.unloaded) << x.m << ", " << x.k;
      EXPECT_EQ(transposed ? p.unloaded_a : p.unloaded_b, 0) << x.m << ", " << x.k;
      auto const rows = [](TensorMap const& map) { return sim::decode(map)->box[1]; };
      EXPECT_EQ(rows(transposed ? p.b : p.a), x.m < 64 ? 64 - x.unloaded : 64);
      if (x.unloaded > 0) {
        EXPECT_EQ(rows(transposed ? p.b_last : p.a_last), 64 - x.unloaded);
      }
    }
  }
}

// Where D has tiles of two widths, the map of a narrower tile's last piece; elsewhere that of D.
TEST(GemmPlan, MakesParametersForTilesOfTwoWidths) {
  Machine const machine = Machine::simulated(Arch::sm90);
  Buffer<float> const a(machine, 4096, "A"), b(machine, 4096, "B"), d(machine, 4096, "D");
  int count = 0;
  for (int i = 0; i < static_cast<int>(configurations(gemm_sm90).size()); ++i) {
    GemmSm90Config const& c = configuration(gemm_sm90, i);
    if (c.narrow_n == 0) continue;
    SCOPED_TRACE(to_string(c));
    GemmArguments const g = {.in = c.a,
                             .in_b = c.b,
                             .out = c.out,
                             .a_major = c.a_major,
                             .b_major = c.b_major,
                             .m = c.block_m * c.cluster_m,
                             .n = tile_widths(c).wide + tile_widths(c).narrow - 5,
                             .k = 64,
                             .batch = 2,
                             .a = a.data(),
                             .b = b.data(),
                             .d = d.data(),
                             .lda = c.a_major == Major::k ? 64 : 512,
                             .ldb = c.b_major == Major::k ? 64 : 512,
                             .ldd = 512,
                             .activation = c.activates ? Activation::relu : Activation::none};
    check(g, 90);
    GemmChoice choice = choose_gemm(g, kH100, {.configuration = i});
    auto const map = [](TensorMap const& m) { return *sim::decode(m); };
    GemmSm90Params const equal = lower(machine, g, choice);
    EXPECT_FALSE(equal.schedule.tiling.fitted());
    EXPECT_EQ(map(equal.epilogue.d.last_narrow), map(equal.epilogue.d.whole));
    choice.clusters = 2;
    choice.tiling = fit_tiles(choice.tiling.order(), static_cast<int>(g.n), tile_widths(c), 2);
    ASSERT_TRUE(choice.tiling.fitted());
    GemmSm90Params const p = lower(machine, g, choice);
    EXPECT_EQ(p.schedule.tiling, choice.tiling);
    EXPECT_EQ(p.schedule.clusters, 2);
    TensorMapDescription last = map(p.epilogue.d.whole);
    EXPECT_EQ(last, map(equal.epilogue.d.whole));
    EXPECT_EQ(map(p.problem.b), map(equal.problem.b))
        << "a narrow tile's operands are those of a wide one";
    int const piece = store_n(epilogue(c)), pieces = c.narrow_n / piece * piece;
    last.box[0] = pieces < c.narrow_n ? c.narrow_n - pieces : piece;
    EXPECT_EQ(map(p.epilogue.d.last_narrow), last);
    EXPECT_EQ(last.box[1], 16);
    ++count;
  }
  EXPECT_GT(count, 15);
}

}  // namespace
}  // namespace tegula
