#include "tegula/atom/tiled_copy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tegula/atom/catalogue.hpp"
#include "tegula/layout/parse.hpp"
#include "tegula/layout/text.hpp"

namespace tegula {
namespace {

/// In the copy by threads and values, thread threads(tm, tn) moves a block of adjacent elements,
/// value values(i, j) being element (i, j) of it.
void expect_by_blocks(char const* atom, int bits, char const* threads_text,
                      char const* values_text) {
  SCOPED_TRACE(std::string(atom) + " " + threads_text + " " + values_text);
  Layout const threads = append(parse_layout(threads_text), 2);
  Layout const values = append(parse_layout(values_text), 2);
  CopyTiling const copy = make_tiled_copy(copy_atom(atom), bits, threads, values);
  std::int64_t const block_m = values[0].size();
  std::int64_t const block_n = values[1].size();
  std::int64_t const tile_m = block_m * threads[0].size();
  ASSERT_EQ(copy.tile(), shape(tile_m, block_n * threads[1].size()));
  ASSERT_EQ(copy.threads(), threads.size());
  EXPECT_TRUE(covers_once(copy.src(), tile_m * block_n * threads[1].size()));
  for (int tm = 0; tm < threads[0].size(); ++tm) {
    for (int tn = 0; tn < threads[1].size(); ++tn) {
      for (int i = 0; i < block_m; ++i) {
        for (int j = 0; j < block_n; ++j) {
          Tuple const at = coord(threads(coord(tm, tn)), values(coord(i, j)));
          std::int64_t const element = (i + block_m * tm) + tile_m * (j + block_n * tn);
          ASSERT_EQ(copy.src()(at), element);
          ASSERT_EQ(copy.dst()(at), element);
        }
      }
    }
  }
}

TEST(CopyTiling, ByThreadsAndValuesEachThreadMovesItsBlock) {
  expect_by_blocks("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", 16, "(16,8):(8,1)", "(1,8)");
  expect_by_blocks("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", 32, "(16,8):(8,1)", "(1,4)");
  expect_by_blocks("SM80_CP_ASYNC_CACHEALWAYS<uint64_t>", 16, "(32,4)", "(4,1)");
  expect_by_blocks("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>", 32, "(4,8):(1,4)", "(2,3):(3,1)");
  expect_by_blocks("UniversalCopy<uint16_t>", 16, "(8,(4,4)):(16,(1,4))", "(2,2)");
  expect_by_blocks("UniversalCopy<uint128_t>", 8, "32:1", "16:1");
  expect_by_blocks("AutoVectorizingCopyWithAssumedAlignment<128>", 16, "(16,2):(2,1)", "(1,8)");
}

/// The place of a 16-bit element in the registers that a matrix load fills: element (row, column)
/// of matrix q is half column % 2 of register q of thread 4 * row + column / 2, and with .trans the
/// same with row and column exchanged (PTX ISA, ldmatrix).
struct Register {
  int thread, value;
};
Register holder(int q, int row, int column, bool trans) {
  if (trans) {
    std::swap(row, column);
  }
  return {4 * row + column / 2, 2 * q + column % 2};
}

/// What the row addresses of ldmatrix (stmatrix) must be so that the registers hold the MMA's
/// operand: address lane i of warp w names row i % 8 of matrix i / 8, whose elements are those that
/// the MMA wants in the registers where they arrive.
void expect_matrix_copy(char const* name, int matrices, bool trans, bool store,
                        CopyTiling const& copy, Layout const& operand) {
  SCOPED_TRACE(std::string(name) + " " + to_string(operand));
  Layout const addresses = store ? copy.dst() : copy.src();
  Layout const registers = store ? copy.src() : copy.dst();
  ASSERT_EQ(addresses[0].size(), operand[0].size());
  ASSERT_EQ(registers.size(), operand.size());
  ASSERT_EQ(addresses[1][0].size(), 8);
  int const warps = static_cast<int>(operand[0].size() / 32);
  int const instructions = static_cast<int>(operand[1].size() / (2 * matrices));
  ASSERT_EQ(addresses[1][1].size(), instructions);
  for (int i = 0; i < operand.size(); ++i) {
    ASSERT_EQ(registers(i), operand(i));
  }
  for (int warp = 0; warp < warps; ++warp) {
    for (int instruction = 0; instruction < instructions; ++instruction) {
      for (int q = 0; q < matrices; ++q) {
        for (int row = 0; row < 8; ++row) {
          for (int column = 0; column < 8; ++column) {
            Register const r = holder(q, row, column, trans);
            std::int64_t const wanted =
                operand(coord(32 * warp + r.thread, r.value + 2 * matrices * instruction));
            ASSERT_EQ(addresses(coord(32 * warp + 8 * q + row, coord(column, instruction))), wanted)
                << "warp " << warp << " instruction " << instruction << " matrix " << q << " row "
                << row << " column " << column;
          }
        }
      }
    }
  }
}

TEST(CopyTiling, MatrixLoadsBringEachThreadItsOperand) {
  MmaAtom const atom = mma_atom("SM80_16x8x16_F32F16F16F32_TN");
  for (char const* atoms : {"(1,1,1)", "(4,1,1)", "(2,2,1)", "(2,4,1):(4,1,8)"}) {
    Layout const groups = parse_layout(atoms);
    int const n = static_cast<int>(8 * groups[1].size());
    for (MmaTiling const& mma :
         {make_tiled_mma(atom, groups), make_tiled_mma(atom, groups, make_tile(_, 2 * n, 32)),
          make_tiled_mma(atom, groups,
                         make_tile(_, layout(shape(8, n / 8, 2), stride(1, 16, 8)), _))}) {
      for (int const matrices : {1, 2, 4}) {
        std::string const count = std::to_string(matrices);
        std::string const twice = std::to_string(2 * matrices);
        for (bool const trans : {false, true}) {
          std::string const load =
              trans ? "SM75_U16x" + twice + "_LDSM_T" : "SM75_U32x" + count + "_LDSM_N";
          std::string const store =
              trans ? "SM90_U16x" + twice + "_STSM_T" : "SM90_U32x" + count + "_STSM_N";
          expect_matrix_copy(load.c_str(), matrices, trans, false,
                             make_tiled_copy_a(copy_atom(load), 16, mma), mma.a());
          if (mma.b()[1].size() % (2 * matrices) == 0) {
            expect_matrix_copy(load.c_str(), matrices, trans, false,
                               make_tiled_copy_b(copy_atom(load), 16, mma), mma.b());
          }
          if (mma.c()[1].size() % (2 * matrices) == 0) {
            expect_matrix_copy(store.c_str(), matrices, trans, true,
                               make_tiled_copy_c(copy_atom(store), 16, mma), mma.c());
          }
        }
      }
    }
  }
}

TEST(CopyTiling, WithFewerMatricesTheFurtherLanesRepeatTheAddresses) {
  MmaTiling const mma =
      make_tiled_mma(mma_atom("SM80_16x8x16_F32F16F16F32_TN"), layout(shape(2, 2, 1)));
  for (int const matrices : {1, 2}) {
    Layout const src =
        make_tiled_copy_a(copy_atom(CopySpec{CopyOp::ldmatrix, matrices}), 16, mma).src();
    for (int thread = 0; thread < 128; ++thread) {
      int const stands_for = thread / 32 * 32 + thread % 32 % (8 * matrices);
      EXPECT_EQ(src(coord(thread, 0)), src(coord(stands_for, 0)));
    }
  }
}

/// Law of retile: with the fragment of a tiled MMA in registers numbered 0, 1, ..., what the
/// copy calls value v of instruction x is the register that holds the element which the copy
/// moves there.
TEST(CopyTiling, RetileFindsTheRegistersOfTheFragment) {
  MmaAtom const atom = mma_atom("SM80_16x8x16_F32F16F16F32_TN");
  for (char const* atoms : {"(4,1,1)", "(2,2,1)"}) {
    Layout const groups = parse_layout(atoms);
    int const m = static_cast<int>(16 * groups[0].size());
    int const n = static_cast<int>(8 * groups[1].size());
    for (Tiler const& tile :
         {make_tile(_, 2 * n, _), make_tile(_, layout(shape(8, n / 8, 2), stride(1, 16, 8)), 32)}) {
      SCOPED_TRACE(std::string(atoms) + " " + to_string(tile));
      MmaTiling const mma = make_tiled_mma(atom, groups, tile);
      Layout const tensor = layout(shape(4 * m, 64));  // (M,K), or (N,K)
      for (bool const is_a : {true, false}) {
        Layout const parts = is_a ? mma.partition_a(tensor) : mma.partition_b(tensor);
        // ((lane, groups), (values, (rest, rest))); the registers hold a thread's part in
        // this order.
        Layout const per_thread = make_layout(parts[1][0], parts[1][1][0], parts[1][1][1]);
        Layout const fragment =
            layout(shape(per_thread[0].size(), per_thread[1].size(), per_thread[2].size()));
        CopyAtom const load = copy_atom("SM75_U32x4_LDSM_N");
        CopyTiling const copy =
            is_a ? make_tiled_copy_a(load, 16, mma) : make_tiled_copy_b(load, 16, mma);
        Layout const view = copy.retile(fragment);  // ((value, instruction), M, K) -> register
        // (thread, (value, instruction), (M, K)) -> element
        Layout const moved = copy.partition_dst(tensor);
        ASSERT_EQ(view.rank(), 3);
        ASSERT_EQ(view.size(), fragment.size());
        ASSERT_EQ(view[0].size(), moved[1].size());
        ASSERT_EQ(view[1].size() * view[2].size(), moved[2].size());
        for (int thread = 0; thread < copy.threads(); ++thread) {
          // The element in each register, by way of the MMA: lanes and groups of the thread.
          Layout const own = is_a ? mma.a() : mma.b();
          std::int64_t const first = own(coord(thread, 0));
          int const rows = is_a ? mma.extent(0) : mma.extent(1);
          std::int64_t const origin = tensor(coord(first % rows, first / rows));
          std::set<std::int64_t> registers;
          for (int v = 0; v < view[0].size(); ++v) {
            for (int rest = 0; rest < moved[2].size(); ++rest) {
              std::int64_t const r = view(coord(v, rest % view[1].size(), rest / view[1].size()));
              registers.insert(r);
              ASSERT_EQ(moved(coord(thread, v, rest)), origin + per_thread(r))
                  << "thread " << thread << " value " << v << " rest " << rest;
            }
          }
          ASSERT_EQ(static_cast<std::int64_t>(registers.size()), fragment.size());
        }
      }
    }
  }
}

TEST(CopyTiling, IsAConstantExpression) {
  static constexpr MmaTiling mma = make_tiled_mma(mma_atom("SM80_16x8x16_F32F16F16F32_TN"),
                                                  layout(shape(2, 2, 1)), make_tile(32, 32, 16));
  static constexpr CopyTiling copy = make_tiled_copy_b(copy_atom("SM75_U32x4_LDSM_N"), 16, mma);
  static_assert(copy.threads() == 128 && copy.atom_values() == 8 && copy.tile() == shape(32, 16));
  constexpr Layout src = copy.src();
  static_assert(covers_with_repeats(src, 32 * 16));
  EXPECT_EQ(src[1].size(), 8);
}

TEST(CopyTiling, WhatDoesNotFitIsRefusedWithASentence) {
  auto const refusal = [](auto const& make) -> std::string {
    try {
      make();
    } catch (layout_error const& error) {
      return error.what();
    }
    return "";
  };
  CopyAtom const wide = copy_atom("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>");
  CopyAtom const narrow = copy_atom("UniversalCopy<uint16_t>");
  CopyAtom const matrices = copy_atom("SM75_U32x4_LDSM_N");
  using testing::HasSubstr;
  EXPECT_EQ(refusal([&] { make_tiled_copy(wide, 16, layout(32), layout(8)); }), "");
  EXPECT_THAT(refusal([&] { make_tiled_copy(wide, 16, layout(32), layout(4)); }),
              HasSubstr("no multiple"));
  EXPECT_THAT(refusal([&] { make_tiled_copy(narrow, 32, layout(32), layout(4)); }),
              HasSubstr("a whole number of elements"));
  EXPECT_THAT(
      refusal([&] { make_tiled_copy(copy_atom("SM75_U16x8_LDSM_T"), 32, layout(32), layout(4)); }),
      HasSubstr("splits elements"));
  EXPECT_THAT(refusal([&] { make_tiled_copy(narrow, 0, layout(32), layout(4)); }),
              HasSubstr("a whole number of elements"));
  EXPECT_THAT(refusal([&] { make_tiled_copy(matrices, 16, layout(16), layout(8)); }),
              HasSubstr("the threads are no multiple"));
  EXPECT_THAT(refusal([&] { make_tiled_copy(narrow, 16, layout(32, 2), layout(4)); }),
              HasSubstr("number the threads"));
  EXPECT_THAT(refusal([&] { make_tiled_copy(narrow, 16, layout(32), layout(4, 0)); }),
              HasSubstr("number the values"));
  EXPECT_THAT(refusal([&] { make_tiled_copy(narrow, 16, layout(shape(2, 2, 2)), layout(1)); }),
              HasSubstr("at most two modes"));
  MmaTiling const mma = make_tiled_mma(mma_atom("SM80_16x8x16_F32F16F16F32_TN"), layout(1));
  EXPECT_THAT(refusal([&] { make_tiled_copy_b(matrices, 16, mma); }), HasSubstr("no multiple"));
  // 2^32 + 4 rows, which an int would take for 4.
  EXPECT_THAT(refusal([&] {
                make_tiled_copy(narrow, 16, layout(32), layout((std::int64_t{1} << 27) + 4));
              }),
              HasSubstr("a tile has at most 2^31 - 1 of them"));
}

}  // namespace
}  // namespace tegula
