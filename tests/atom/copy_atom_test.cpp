#include "tegula/atom/copy_atom.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tegula/atom/catalogue.hpp"
#include "tegula/layout/text.hpp"

namespace tegula {
namespace {

/// PTX ISA, ldmatrix: after a load without .trans thread t holds, of each 8x8 matrix of 16-bit
/// elements, row t/4, columns 2*(t%4) and 2*(t%4)+1, low half first; with .trans column t/4, rows
/// 2*(t%4) and 2*(t%4)+1. Matrix m's row r is at the address that thread 8m+r gives.
struct MatrixElement {
  int matrix, row, column;
};

MatrixElement held_by(int thread, int half, bool trans) {
  int const group = thread / 4;
  int const pair = 2 * (thread % 4) + half % 2;
  return trans ? MatrixElement{half / 2, pair, group} : MatrixElement{half / 2, group, pair};
}

void expect_matrix_copy(char const* name, int matrices, bool trans, bool store) {
  SCOPED_TRACE(name);
  CopyAtom const atom = copy_atom(name);
  EXPECT_STREQ(copy_name(atom.spec).text, name);
  ASSERT_EQ(atom.threads(), 32);
  Layout const& registers = store ? atom.src : atom.dst;
  Layout const& rows = store ? atom.dst : atom.src;
  EXPECT_EQ(atom.ref, registers);
  ASSERT_EQ(registers[0].size(), 32);
  ASSERT_EQ(registers[1].size(), 32 * matrices);
  ASSERT_EQ(rows[0].size(), 32);
  ASSERT_EQ(rows[1].size(), 128);

  // Which bit of the instruction is bit b of element (matrix, row, column), said by the
  // address side.
  std::set<std::int64_t> addressed;
  for (int thread = 0; thread < 32; ++thread) {
    for (int bit = 0; bit < 128; ++bit) {
      addressed.insert(rows(coord(thread, bit)));
      EXPECT_EQ(rows(coord(thread, bit)), rows(coord(thread % (8 * matrices), bit)));
    }
  }
  EXPECT_EQ(static_cast<int>(addressed.size()), 1024 * matrices);

  std::set<std::int64_t> held;
  for (int thread = 0; thread < 32; ++thread) {
    for (int bit = 0; bit < 32 * matrices; ++bit) {
      MatrixElement const e = held_by(thread, bit / 16, trans);
      ASSERT_EQ(registers(coord(thread, bit)),
                rows(coord(8 * e.matrix + e.row, 16 * e.column + bit % 16)))
          << thread << " " << bit;
      held.insert(registers(coord(thread, bit)));
    }
  }
  EXPECT_EQ(static_cast<int>(held.size()), 1024 * matrices) << "each bit arrives in one place";
}

TEST(CopyAtom, MatrixLoadsAndStoresAreThoseOfThePtxIsa) {
  expect_matrix_copy("SM75_U32x1_LDSM_N", 1, false, false);
  expect_matrix_copy("SM75_U32x2_LDSM_N", 2, false, false);
  expect_matrix_copy("SM75_U32x4_LDSM_N", 4, false, false);
  expect_matrix_copy("SM75_U16x2_LDSM_T", 1, true, false);
  expect_matrix_copy("SM75_U16x4_LDSM_T", 2, true, false);
  expect_matrix_copy("SM75_U16x8_LDSM_T", 4, true, false);
  expect_matrix_copy("SM90_U32x1_STSM_N", 1, false, true);
  expect_matrix_copy("SM90_U32x2_STSM_N", 2, false, true);
  expect_matrix_copy("SM90_U32x4_STSM_N", 4, false, true);
  expect_matrix_copy("SM90_U16x2_STSM_T", 1, true, true);
  expect_matrix_copy("SM90_U16x4_STSM_T", 2, true, true);
  expect_matrix_copy("SM90_U16x8_STSM_T", 4, true, true);
}

TEST(CopyAtom, OneThreadCopiesMoveTheirBitsInOrder) {
  std::map<std::string, std::vector<int>> const widths = {
      {"SM80_CP_ASYNC_CACHEALWAYS", {32, 64, 128}},
      {"SM80_CP_ASYNC_CACHEALWAYS_ZFILL", {32, 64, 128}},
      {"SM80_CP_ASYNC_CACHEGLOBAL", {128}},
      {"SM80_CP_ASYNC_CACHEGLOBAL_ZFILL", {128}},
      {"UniversalCopy", {8, 16, 32, 64, 128}}};
  for (auto const& [base, admitted] : widths) {
    for (int const width : {8, 16, 32, 64, 128}) {
      std::string const name = base + "<uint" + std::to_string(width) + "_t>";
      CopySpec spec;
      if (std::find(admitted.begin(), admitted.end(), width) == admitted.end()) {
        EXPECT_FALSE(find_copy(name, spec)) << name;
        continue;
      }
      CopyAtom const atom = copy_atom(name);
      EXPECT_EQ(atom.threads(), 1);
      EXPECT_EQ(to_string(atom.src), "(1," + std::to_string(width) + "):(0,1)") << name;
      EXPECT_EQ(atom.dst, atom.src);
      EXPECT_EQ(atom.ref, atom.src);
    }
  }
}

TEST(CopyAtom, CopiesOfTilesAreAskedForByOneThread) {
  for (CopyOp const op : {CopyOp::tma_load, CopyOp::tma_multicast, CopyOp::tma_store,
                          CopyOp::tma_reduce, CopyOp::bulk_load, CopyOp::bulk_store}) {
    CopyAtom const atom = copy_atom({op, 8192});
    EXPECT_EQ(atom.threads(), 1);
    for (Layout const& tv : {atom.src, atom.dst, atom.ref})
      EXPECT_EQ(to_string(tv), "(1,8192):(0,1)");
    CopySpec found;
    ASSERT_TRUE(find_copy(copy_name(atom.spec).view(), found));
    EXPECT_EQ(found, (CopySpec{op, 0})) << "the catalogue does not know the tile";
    EXPECT_THROW(copy_atom(found), layout_error);
  }
}

TEST(CopyAtom, AmountsThatNoInstructionMovesAreRefused) {
  auto const refusal = [](CopyOp op, int amount) -> std::string {
    try {
      copy_atom({op, amount});
    } catch (layout_error const& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(CopyOp::ldmatrix, 3),
            "copy(ldmatrix, 3): ldmatrix and stmatrix move 1, 2 or 4 matrices");
  EXPECT_EQ(refusal(CopyOp::stmatrix_trans, 4), "");
  EXPECT_EQ(refusal(CopyOp::cp_async_ca, 16),
            "copy(cp_async_ca, 16): cp.async.ca moves 32, 64 or 128 bits");
  EXPECT_EQ(refusal(CopyOp::cp_async_cg, 64), "copy(cp_async_cg, 64): cp.async.cg moves 128 bits");
  EXPECT_EQ(refusal(CopyOp::universal, 256),
            "copy(universal, 256): a plain copy moves 8, 16, 32, 64 or 128 bits");
  EXPECT_EQ(
      refusal(CopyOp::tma_load, 64),
      "copy(tma_load, 64): one thread asks for a whole tile: the amount is its bits, a multiple of 128");
}

TEST(CopyAtom, WidthsHaveSeveralSpellings) {
  for (char const* name : {"UniversalCopy<64>", "UniversalCopy_64", "UniversalCopy64",
                           "UniversalCopy<cute::uint64_t>"}) {
    EXPECT_STREQ(copy_name(copy_atom(name).spec).text, "UniversalCopy<uint64_t>") << name;
  }
  EXPECT_STREQ(copy_name(copy_atom("UniversalCopy").spec).text, "UniversalCopy<uint128_t>");
  EXPECT_STREQ(copy_name(copy_atom("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL").spec).text,
               "SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>");
  EXPECT_STREQ(copy_name(copy_atom("AutoVectorizingCopyWithAssumedAlignment<32>").spec).text,
               "AutoVectorizingCopyWithAssumedAlignment<32>");
  CopySpec spec;
  for (char const* name : {"", "UniversalCopy<", "UniversalCopy<>", "UniversalCopy<24>",
                           "UniversalCopy<uint64_t", "UniversalCopy<64>>", "UniversalCopyx",
                           "SM75_U32x3_LDSM_N", "SM75_U32x4", "SM80_CP_ASYNC_CACHEGLOBAL<64>"}) {
    EXPECT_FALSE(find_copy(name, spec)) << name;
    EXPECT_THROW(copy_atom(name), layout_error) << name;
  }
}

}  // namespace
}  // namespace tegula
