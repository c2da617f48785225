// The value-level pieces of the kernels, on the host: operand layouts, and which thread holds,
// loads and stores what by the tables of the hardware; parts of tensors and of fragments; the boxes
// of TMA.

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "tegula/layout/algebra.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/identity.hpp"
#include "tegula/tensor/tiled_mma.hpp"
#include "tegula/tensor/tma_box.hpp"

namespace tegula {
namespace {

TEST(SwizzledOperand, PutsEveryElementSomewhereElse) {
  for (int const contiguous : {0, 1}) {
    for (int const k : {32, 64, 96, 128, 256}) {
      SwizzledLayout const tile = swizzled_operand(16, 64, k, contiguous, 2);
      std::set<std::int64_t> offsets;
      for (std::int64_t i = 0; i < tile.layout.size(); ++i)
        offsets.insert(tile.swizzle(tile.layout(i)));
      EXPECT_EQ(static_cast<std::int64_t>(offsets.size()), tile.layout.size());
      EXPECT_LT(*offsets.rbegin(), tile.layout.cosize());
    }
  }
  EXPECT_THROW(swizzled_operand(16, 64, 36, 1), layout_error);
  EXPECT_THROW(swizzled_operand(16, 64, 64, 3), layout_error);
  EXPECT_THROW(swizzled_operand(16, 64, 64, -1), layout_error);
}

TEST(CoversOnce, AgreesWithEnumeration) {
  Layout const twice = make_layout(along(0, 4, 1), along(0, 2, 2), along(1, 2, 1));
  EXPECT_FALSE(covers_once(twice, tuple(6, 2)));
  EXPECT_FALSE(covers_once(twice, tuple(8, 2)));
  EXPECT_TRUE(
      covers_once(make_layout(along(0, 2, 4), along(0, 4, 1), along(1, 3, 1)), tuple(8, 3)));
}

// One instruction's tile of A; of B, two instructions': what one ldmatrix.x4 loads.
using Mma = TiledMma<TiledMmaSpec{warp_mma(DType::bf16, DType::f32, 16), 16, 16}>;
template <int Contiguous> using Tile = SharedTile<bfloat16, OperandTile{16, 16, 64, Contiguous}>;

/// lane -> (mn, k) of the first row that it addresses.
template <char Operand, int Contiguous> Tuple row_of(int lane) {
  return Mma::Rows<Operand, Tile<Contiguous>>::value.threads.coordinate(lane);
}

// PTX ISA, ldmatrix: lane l gives the address of row l % 8 of matrix l / 8; mma.m16n8k16: the
// registers of A are the matrices down, then right, those of B right, then down. Of an operand that
// is contiguous along mn, rows lie along mn, and are loaded transposed.
TEST(LdmatrixRows, AreThoseOfTheInstructions) {
  for (int lane = 0; lane < 32; ++lane) {
    int const row = lane % 8, matrix = lane / 8;
    EXPECT_EQ((row_of<'a', 1>(lane)), tuple(row + matrix % 2 * 8, matrix / 2 * 8)) << lane;
    EXPECT_EQ((row_of<'a', 0>(lane)), tuple(matrix % 2 * 8, row + matrix / 2 * 8)) << lane;
    EXPECT_EQ((row_of<'b', 1>(lane)), tuple(row + matrix / 2 * 8, matrix % 2 * 8)) << lane;
    EXPECT_EQ((row_of<'b', 0>(lane)), tuple(matrix / 2 * 8, row + matrix % 2 * 8)) << lane;
  }
}

// PTX ISA, mma.m16n8k16: lane l holds columns 2 (l % 4) and the next of rows l / 4 and l / 4 + 8.
TEST(Accumulator, LiesWhereTheInstructionSays) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int value = 0; value < 8; ++value) {
      int const m = coordinate<0>(Mma::ThreadsC{}, lane) + coordinate<0>(Mma::ValuesC{}, value);
      int const n = coordinate<1>(Mma::ThreadsC{}, lane) + coordinate<1>(Mma::ValuesC{}, value);
      EXPECT_EQ(m, lane / 4 + value / 2 % 2 * 8) << lane << ", " << value;
      EXPECT_EQ(n, lane % 4 * 2 + value % 2 + value / 4 * 8) << lane << ", " << value;
    }
  }
}

// A matrix is a register of each lane: those of 16 x 16 accumulators lie down, then right, and 48
// columns take three stores of four.
TEST(MatrixStore, RowsAreThoseOfTheRegisters) {
  using Store = MatrixStore<TiledMmaSpec{warp_mma(DType::bf16, DType::f32, 16), 16, 48}>;
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(coordinate<0>(Store::Threads{}, lane), lane % 16);
    EXPECT_EQ(coordinate<1>(Store::Threads{}, lane), lane / 16 * 8);
  }
  static_assert(map_size<Store::Values> == 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(coordinate<0>(Store::Values{}, i), 0);
    EXPECT_EQ(coordinate<1>(Store::Values{}, i), 16 * i);
  }
}

TEST(Part, OfATensorIsItsFirstIndices) {
  auto const tensor = identity_tensor<8, 12, 3>();
  auto const part = tegula::part<8, 5>(domain_offset(tensor, 0, 6, 0));
  static_assert(decltype(part)::extent<0> == 8 && decltype(part)::extent<1> == 5 &&
                decltype(part)::extent<2> == 3);
  Coordinate<3> const at = part(7, 4, 2);
  EXPECT_EQ((std::array{at[0], at[1], at[2]}), (std::array{7, 10, 2}));
}

TEST(Part, OfAFragmentIsItsRegisters) {
  // 64 x 88: (2 columns, 2 rows, 11 groups of columns) of each 64 rows, twice.
  using Wide =
      TiledMma<TiledMmaSpec{warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 88), 128, 88}>;
  Wide::Accumulator f;
  for (int i = 0; i < f.size; ++i) f(i) = static_cast<float>(i);
  auto const columns = part<12>(domain_offset(f(_, 1, 0), 32));  // from column 64 on, 24 columns
  static_assert(decltype(columns)::size == 12);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(columns(i), static_cast<float>(44 + 32 + i));
  EXPECT_EQ((count_along<decltype(columns)::Map, 0>), 2);
  EXPECT_EQ((count_along<decltype(columns)::Map, 1>), 6);
  EXPECT_EQ(row_column(columns, 1, 3), columns(7));
  columns(7) = -1.0f;
  EXPECT_EQ(f(44 + 32 + 7), -1.0f);
  Wide::Accumulator const& g = f;
  EXPECT_EQ(part<4>(g(_, 0, 0))(3), 3.0f);
}

TEST(TmaBoxes, OfATileCutShortKeepTheSwizzle) {
  TmaBoxes const whole = tma_boxes(OperandTile{16, 16, 64, 1, 8});
  TmaBoxes const cut = narrowed(whole, 48);
  EXPECT_EQ(cut.swizzle, TmaSwizzle::b128);
  EXPECT_EQ(cut.box(0), 48);
  EXPECT_EQ(cut.box(1), 16);
  EXPECT_EQ(cut.bytes, 16 * 48 * 2);
  EXPECT_THROW(narrowed(whole, 65), layout_error);
  EXPECT_THROW(narrowed(tma_boxes(OperandTile{16, 128, 64, 0}), 8), layout_error);  // of two boxes
  TmaBoxes const along_mn = narrowed(tma_boxes(OperandTile{16, 64, 64, 0}), 40);
  EXPECT_EQ(along_mn.swizzle, TmaSwizzle::b128);
  EXPECT_EQ(along_mn.box(0), 64);
  EXPECT_EQ(along_mn.box(1), 40);
  EXPECT_EQ(along_mn.bytes, 64 * 40 * 2);
}

TEST(TmaBoxes, DescribeTheTensorMapOfMatrices) {
  TmaMatrices const x = {DType::bf16, nullptr, 300, 200, 3, 208, 70000};
  TensorMapDescription const d = describe(x, tma_boxes(OperandTile{16, 128, 64, 1}, 2));
  EXPECT_EQ(d.extents, (std::array<std::int64_t, 5>{200, 300, 3}));
  EXPECT_EQ(d.strides, (std::array<std::int64_t, 4>{416, 140000}));
  EXPECT_EQ(d.box, (std::array<int, 5>{64, 64, 1}));
  TensorMapDescription const t = describe(x, tma_boxes(OperandTile{16, 128, 64, 0}));
  EXPECT_EQ(t.extents, (std::array<std::int64_t, 5>{300, 200, 3}));
  EXPECT_EQ(t.box, (std::array<int, 5>{64, 64, 1}));
}

}  // namespace
}  // namespace tegula
