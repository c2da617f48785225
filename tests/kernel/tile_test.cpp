// The value-level pieces of the kernels, on the host: operand layouts, copy plans, the address split, and the
// ldmatrix sources as what the atoms say they are.

#include <gtest/gtest.h>

#include <set>

#include "tegula/atom/catalogue.hpp"
#include "tegula/atom/tiled_copy.hpp"
#include "tegula/layout/algebra.hpp"
#include "tegula/tensor/tile_loader.hpp"
#include "tegula/tensor/warp_mma.hpp"

namespace tegula {
namespace {

TEST(SwizzledOperand, PutsEveryElementSomewhereElse) {
  for (int const contiguous : {0, 1}) {
    for (int const k : {32, 64, 96, 128, 256}) {
      SwizzledLayout const tile = swizzled_operand(16, 64, k, contiguous, 2);
      std::set<std::int64_t> offsets;
      for (std::int64_t i = 0; i < tile.layout.size(); ++i) offsets.insert(tile.swizzle(tile.layout(i)));
      EXPECT_EQ(static_cast<std::int64_t>(offsets.size()), tile.layout.size());
      EXPECT_LT(*offsets.rbegin(), tile.layout.cosize());
    }
  }
  EXPECT_THROW(swizzled_operand(16, 64, 36, 1), layout_error);
}

TEST(CopyPlan, CoversTheTileOnceOrRefuses) {
  for (int const block : {32, 64}) {
    for (int const vector : {1, 8}) {
      Layout const plan = copy_plan(128, block, 2 * block, 64, vector);
      EXPECT_TRUE(covers_once(plan, tuple(2 * block, 64)));
      EXPECT_FALSE(covers_once(plan, tuple(2 * block, 128)));
      EXPECT_FALSE(covers_once(plan, tuple(block, 64)));
    }
  }
  EXPECT_THROW(copy_plan(96, 64, 64, 100, 8), layout_error);
  EXPECT_THROW(copy_plan(100, 64, 64, 64, 8), layout_error);
}

TEST(CoversOnce, AgreesWithEnumeration) {
  Layout const twice = make_layout(along(0, 4, 1), along(0, 2, 2), along(1, 2, 1));
  EXPECT_FALSE(covers_once(twice, tuple(6, 2)));
  EXPECT_FALSE(covers_once(twice, tuple(8, 2)));
  EXPECT_TRUE(covers_once(make_layout(along(0, 2, 4), along(0, 4, 1), along(1, 3, 1)), tuple(8, 3)));
}

// Which row of the tile a lane's address points at follows from two tables of the hardware: the elements that
// mma.sync wants in a lane's registers, and the rows from which ldmatrix fills them.
TEST(LdmatrixRows, FollowFromTheAtoms) {
  MmaTiling const mma = make_tiled_mma(mma_atom("SM80_16x8x16_F32BF16BF16F32_TN"), layout(shape(1, 1, 1)),
                                       make_tile(layout(16), layout(16), layout(16)));
  for (int const contiguous : {0, 1}) {
    CopyAtom const ldmatrix = copy_atom(contiguous == 1 ? "SM75_U32x4_LDSM_N" : "SM75_U16x8_LDSM_T");
    Layout const a = make_tiled_copy_a(ldmatrix, 16, mma).src();
    Layout const b = make_tiled_copy_b(ldmatrix, 16, mma).src();
    for (int lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(ldmatrix_rows_a(contiguous).coordinate(lane), tuple(a(lane, 0) % 16, a(lane, 0) / 16))
          << "A, lane " << lane;
      EXPECT_EQ(ldmatrix_rows_b(contiguous).coordinate(lane), tuple(b(lane, 0) % 16, b(lane, 0) / 16))
          << "B, lane " << lane;
    }
  }
}

TEST(Accumulator, LiesWhereTheAtomSays) {
  constexpr MmaAtom atom = mma_atom("SM80_16x8x16_F32BF16BF16F32_TN");
  for (int lane = 0; lane < 32; ++lane) {
    for (int value = 0; value < 4; ++value) {
      Tuple const thread = accumulator_lanes.coordinate(lane), within = accumulator_values.coordinate(value);
      EXPECT_EQ(atom.c(lane, value),
                thread[0].value() + within[0].value() + 16 * (thread[1].value() + within[1].value()));
    }
  }
}

}  // namespace
}  // namespace tegula
