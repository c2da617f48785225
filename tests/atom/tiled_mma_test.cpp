#include "tegula/atom/tiled_mma.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tegula/atom/catalogue.hpp"
#include "tegula/layout/parse.hpp"
#include "tegula/layout/text.hpp"

namespace tegula {
namespace {

/// A tiled MMA said a second time, without the layout algebra.
struct Expected {
  MmaAtom atom;
  Layout atoms;               // rank 3
  std::vector<Layout> order;  // of M, N, K: position in atom order -> position in the tile

  int extent(int mode) const {
    return static_cast<int>(order[static_cast<std::size_t>(mode)].size());
  }

  /// The flat index into the tile of operand (first, second) of value `value` of thread `thread`.
  /// Values run over the atom's, then over the atoms along `first`, then over those along `second`;
  /// atoms along a mode go to groups of threads first.
  std::int64_t element(Layout const& fragment, int first, int second, int thread, int value) const {
    int group_at[3] = {-1, -1, -1};
    for (int m = 0; m < atoms[0].size(); ++m) {
      for (int n = 0; n < atoms[1].size(); ++n) {
        for (int k = 0; k < atoms[2].size(); ++k) {
          if (atoms(coord(m, n, k)) == thread / atom.threads()) {
            group_at[0] = m;
            group_at[1] = n;
            group_at[2] = k;
          }
        }
      }
    }
    int const atom_extents[3] = {atom.spec.m, atom.spec.n, atom.spec.k};
    int const atom_values = static_cast<int>(fragment[1].size());
    std::int64_t const in_atom = fragment(coord(thread % atom.threads(), value % atom_values));
    int rest = value / atom_values;
    std::int64_t position[2] = {};
    int const which[2] = {first, second};
    for (int i = 0; i < 2; ++i) {
      int const mode = which[i];
      int const groups = static_cast<int>(atoms[mode].size());
      int const rests = extent(mode) / (atom_extents[mode] * groups);
      std::int64_t const within =
          i == 0 ? in_atom % atom_extents[first] : in_atom / atom_extents[first];
      std::int64_t const atom_order =
          within + atom_extents[mode] * (group_at[mode] + groups * (rest % rests));
      rest /= rests;
      position[i] = order[static_cast<std::size_t>(mode)](atom_order);
    }
    return position[0] + extent(first) * position[1];
  }
};

void expect_operand(Expected const& expected, Layout const& tv, Layout const& fragment, int first,
                    int second) {
  int const threads = static_cast<int>(tv[0].size());
  ASSERT_EQ(threads, expected.atom.threads() * expected.atoms.size());
  int const unused = 3 - first - second;
  ASSERT_EQ(tv.size(), static_cast<std::int64_t>(expected.extent(first)) * expected.extent(second) *
                           expected.atoms[unused].size());
  EXPECT_TRUE(covers_with_repeats(tv, expected.extent(first) * expected.extent(second)))
      << to_string(tv);
  for (int thread = 0; thread < threads; ++thread) {
    for (int value = 0; value < tv[1].size(); ++value) {
      ASSERT_EQ(tv(coord(thread, value)), expected.element(fragment, first, second, thread, value))
          << to_string(tv) << " thread " << thread << " value " << value;
    }
  }
}

TEST(MmaTiling, EachThreadHoldsWhatItsGroupsAndTheOrderSay) {
  for (char const* name : {"SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x8_F32TF32TF32F32_TN",
                           "SM80_16x8x32_S32S8U8S32_TN", "SM80_8x8x4_F64F64F64F64_TN"}) {
    MmaAtom const atom = mma_atom(name);
    for (char const* atoms_text :
         {"(1,1,1)", "(2,2,1)", "(4,1,1)", "(1,4,1)", "(2,2,1):(2,1,4)", "(2,1,2)", "(1,2,2)",
          "(2,2,2):(4,1,2)", "((2,2),2,1):((1,4),2,8)", "(2,3,1)", "(2)", "(2,2)"}) {
      Layout const atoms = append(parse_layout(atoms_text), 3);
      int const m = static_cast<int>(atom.spec.m * atoms[0].size());
      int const n = static_cast<int>(atom.spec.n * atoms[1].size());
      int const k = static_cast<int>(atom.spec.k * atoms[2].size());
      std::vector<Tiler> const tiles = {
          make_tile(_, _, _),
          make_tile(m, n, k),
          make_tile(2 * m, 4 * n, 2 * k),
          make_tile(_, 2 * n),
          make_tile(_, layout(shape(8, n / 8, 2), stride(1, 16, 8)), _),
          make_tile(layout(shape(m / 2, 2), stride(2, 1)),
                    layout(shape(2, 4, n / 8), stride(1, n / 4, 2)), 2 * k),
      };
      for (Tiler const& tile : tiles) {
        SCOPED_TRACE(std::string(name) + " " + atoms_text + " " + to_string(tile));
        MmaTiling const mma = make_tiled_mma(atom, parse_layout(atoms_text), tile);
        Expected expected{.atom = atom, .atoms = atoms, .order = {}};
        int const defaults[3] = {m, n, k};
        for (int mode = 0; mode < 3; ++mode) {
          bool const left = mode >= tile.rank() || tile[mode].is_underscore();
          expected.order.push_back(left ? layout(defaults[mode]) : tile[mode].layout());
          EXPECT_EQ(mma.extent(mode), expected.order.back().size());
        }
        EXPECT_EQ(mma.threads(), atom.threads() * atoms.size());
        expect_operand(expected, mma.a(), atom.a, 0, 2);
        expect_operand(expected, mma.b(), atom.b, 1, 2);
        expect_operand(expected, mma.c(), atom.c, 0, 1);
      }
    }
  }
}

TEST(MmaTiling, PartitionsATensorOfManyTiles) {
  // A thread's part of a (64,48) tensor is its part of the (32,16) tile, repeated over the tiles.
  MmaTiling const mma = make_tiled_mma(mma_atom("SM80_16x8x16_F32F16F16F32_TN"),
                                       layout(shape(2, 1, 1)), make_tile(32, 8, 16));
  Layout const tensor = layout(shape(64, 48), stride(48, 1));
  Layout const parts = mma.partition_a(tensor);  // ((lane,(2,1)),(8,(2,3)))
  ASSERT_EQ(parts[0].size(), 64);
  ASSERT_EQ(parts[1].size(), 8 * 2 * 3);
  Layout const tv = mma.a();
  for (int thread = 0; thread < 64; ++thread) {
    for (int value = 0; value < 8; ++value) {
      for (int tile_m = 0; tile_m < 2; ++tile_m) {
        for (int tile_k = 0; tile_k < 3; ++tile_k) {
          std::int64_t const in_tile = tv(coord(thread, value));
          std::int64_t const expected =
              tensor(coord(in_tile % 32 + 32 * tile_m, in_tile / 32 + 16 * tile_k));
          ASSERT_EQ(parts(coord(thread, value + 8 * (tile_m + 2 * tile_k))), expected);
        }
      }
    }
  }
}

TEST(MmaTiling, WarpgroupsAlongM) {
  MmaTiling const mma =
      make_tiled_mma(mma_atom("SM90_64x96x16_F32BF16BF16_RS"), layout(shape(2, 1, 1)));
  EXPECT_EQ(mma.threads(), 256);
  EXPECT_EQ(mma.tile(), shape(128, 96, 16));
  EXPECT_TRUE(covers_once(mma.c(), 128 * 96));
  EXPECT_TRUE(covers_once(mma.a(), 128 * 16));
  EXPECT_TRUE(covers_with_repeats(mma.b(), 96 * 16));
  // Thread 128 + 32 + 5 is lane 5 of the second warpgroup's second warp: row 64 + 16 + 1, column 2.
  EXPECT_EQ(mma.c()(coord(128 + 32 + 5, 0)), 64 + 16 + 1 + 128 * 2);
}

TEST(MmaTiling, IsAConstantExpressionAndATemplateArgument) {
  static constexpr MmaTiling mma = make_tiled_mma(mma_atom("SM80_16x8x16_F32F16F16F32_TN"),
                                                  layout(shape(2, 2, 1)), make_tile(32, 32, 16));
  static_assert(mma.threads() == 128 && mma.tile() == shape(32, 32, 16));
  constexpr Layout c = mma.c();
  static_assert(covers_once(c, 32 * 32));
  EXPECT_EQ(to_string(mma.a()), "((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0)))");
  EXPECT_EQ(to_string(mma.b()), "((4,8,2,2),((2,2),(2,1))):((64,1,0,8),((32,256),(16,0)))");
  EXPECT_EQ(to_string(c), "((4,8,2,2),((2,2),(1,2))):((64,1,16,256),((32,8),(0,512)))");
}

TEST(MmaTiling, WhatDoesNotFitIsRefusedWithASentence) {
  MmaAtom const atom = mma_atom("SM80_16x8x16_F32F16F16F32_TN");
  auto const refusal = [&](char const* atoms, Tiler const& tile) -> std::string {
    try {
      make_tiled_mma(atom, parse_layout(atoms), tile);
    } catch (layout_error const& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("(2,2,1)", make_tile(32, 32, 16)), "");
  EXPECT_THAT(refusal("(2,2,1,1)", make_tile(_, _, _)),
              testing::HasSubstr("more than three modes"));
  EXPECT_THAT(refusal("(2,2,1):(1,3,0)", make_tile(_, _, _)), testing::HasSubstr("each once"));
  EXPECT_THAT(refusal("(2,2,1):(1,1,0)", make_tile(_, _, _)), testing::HasSubstr("each once"));
  EXPECT_THAT(refusal("(2,2,1)", make_tile(48, 16, 16)), testing::HasSubstr("no multiple"));
  EXPECT_THAT(refusal("(2,2,1)", make_tile(16, 16, 16)), testing::HasSubstr("no multiple"));
  EXPECT_THAT(refusal("(1,1,1)", make_tile(16, layout(shape(8, 2), stride(1, 16)), 16)),
              testing::HasSubstr("one to one"));
  EXPECT_THAT(refusal("(1,1,1)", make_tile(16, 8, 16, 1)),
              testing::HasSubstr("more than three modes"));
  EXPECT_THAT(refusal("(1,1,1)", make_tile(std::int64_t{1} << 32, 8, 16)),
              testing::HasSubstr("a tile has at most 2^31 - 1 of them"));
  EXPECT_THAT(refusal("(134217728,1,1)", make_tile(_, _, _)),
              testing::HasSubstr("a tile has at most 2^31 - 1 of them"));
}

TEST(Coverage, IsWhatCountingSays) {
  // All layouts of two modes with extents and strides up to 4 and 6.
  for (int e0 = 1; e0 <= 4; ++e0) {
    for (int e1 = 1; e1 <= 4; ++e1) {
      for (int d0 = 0; d0 <= 6; ++d0) {
        for (int d1 = 0; d1 <= 6; ++d1) {
          Layout const l = layout(shape(e0, e1), stride(d0, d1));
          for (int elements = 1; elements <= 16; ++elements) {
            std::vector<int> count(64);
            for (int i = 0; i < l.size(); ++i) {
              ++count[static_cast<std::size_t>(l(i))];
            }
            auto const end = count.begin() + elements;
            bool const nothing_beyond = std::all_of(end, count.end(), [](int c) { return c == 0; });
            bool const once =
                nothing_beyond && std::all_of(count.begin(), end, [](int c) { return c == 1; });
            EXPECT_EQ(covers_once(l, elements), once) << to_string(l) << " " << elements;
            // Repeats only along stride 0 are repeats of the whole.
            int const repeats = (d0 == 0 ? e0 : 1) * (d1 == 0 ? e1 : 1);
            bool const even = nothing_beyond &&
                              std::all_of(count.begin(), end, [&](int c) { return c == repeats; });
            EXPECT_EQ(covers_with_repeats(l, elements), even) << to_string(l) << " " << elements;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tegula
