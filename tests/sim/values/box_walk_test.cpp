#include "values/box_walk.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "refusal.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/tma_box.hpp"
#include "tma_cases.hpp"

namespace tegula {
namespace {

using sim::BoxWalk;
using sim::TmaRow;
using tma_test::Case;
using tma_test::Element;

/// The walk's elements, in its order.
std::vector<Element> walked(Case const& c) {
  std::vector<Element> elements;
  BoxWalk const box(c.map, c.coordinate.data());
  int const bytes = box.element_bytes();
  box.for_each_row([&](TmaRow const& row) {
    for (int at = 0; at < box.row_bytes(); at += bytes) {
      bool const inside = row.begin <= at && at < row.end;
      auto const linear =
          static_cast<std::uint32_t>(c.shared_offset + row.index * box.row_pitch() + at);
      bool const stored = row.begin <= at && at < sim::stored_end(row);
      elements.push_back({inside ? row.offset + at - row.begin : -1,
                          stored ? row.offset + at - row.begin : -1,
                          static_cast<int>(sim::swizzled(c.map.swizzle, linear))});
    }
  });
  return elements;
}

TEST(BoxWalk, FindsEveryElementWhereTheOracleHasIt) {
  std::vector<Case> const cases = tma_test::cases();
  ASSERT_GT(cases.size(), 500u);
  for (Case const& c : cases) {
    std::vector<Element> const expected = tma_test::elements_of(c), actual = walked(c);
    ASSERT_EQ(actual.size(), expected.size()) << c.name;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(actual[i].global, expected[i].global) << c.name << ", element " << i;
      ASSERT_EQ(actual[i].stored, expected[i].stored) << c.name << ", element " << i;
      ASSERT_EQ(actual[i].shared, expected[i].shared) << c.name << ", element " << i;
    }
    BoxWalk const box(c.map, c.coordinate.data());
    EXPECT_EQ(box.bytes(), static_cast<int>(expected.size() * c.element_bytes())) << c.name;
    EXPECT_EQ(box.bytes(), box_bytes(c.map)) << c.name;
    EXPECT_LE(c.shared_offset + box.shared_bytes(), tma_test::kDumpBytes) << c.name;
  }
}

/// The boxes of a tile, loaded one beside the other, put each element where the tile's layout
/// has it.
TEST(TmaTile, BoxesLayOutTheTilesOfSwizzledOperand) {
  int tiles = 0;
  for (int const bits : {8, 16, 32}) {
    for (int const contiguous : {0, 1}) {
      for (int const mn : {16, 24, 32, 64, 96, 128, 256}) {
        for (int const k : {16, 32, 64, 128}) {
          int const extent = contiguous == 0 ? mn : k, rows = contiguous == 0 ? k : mn;
          if (extent * bits % 128 != 0) continue;
          SwizzledLayout const layout = swizzled_operand(bits, mn, k, contiguous, 3);
          // Blocks and stages are whole periods of the swizzle.
          if (rows * bits * layout.layout[contiguous].extents[0] %
                  (8 * 128 << layout.swizzle.bits) !=
              0)
            continue;
          TmaBox const box = tma_box(layout, bits, contiguous);
          int const bytes = bits / 8;
          EXPECT_EQ(box.stage_bytes, mn * k * bytes);
          EXPECT_EQ(box.contiguous_extent * box.count, extent);
          for (int i = 0; i < extent; ++i) {
            for (int j = 0; j < rows; ++j) {
              std::uint32_t const linear = static_cast<std::uint32_t>(
                  box.distance * (i / box.contiguous_extent) +
                  (j * box.contiguous_extent + i % box.contiguous_extent) * bytes);
              std::int64_t const expected =
                  (contiguous == 0 ? layout(i, j, 0) : layout(j, i, 0)) * bytes;
              ASSERT_EQ(sim::swizzled(box.swizzle, linear), expected)
                  << bits << " " << contiguous << " " << mn << "x" << k;
            }
          }
          ++tiles;
        }
      }
    }
  }
  EXPECT_GT(tiles, 80);
}

/// What the refusal of a tile says.
std::string refusal(SwizzledLayout const& tile, int bits, int contiguous) {
  return sentence([&] { static_cast<void>(tma_box(tile, bits, contiguous)); });
}

TEST(TmaTile, RefusesWhatNoBoxLaysOut) {
  EXPECT_NE(refusal({row_major(64, 96)}, 16, 0).find("each axis must be one run"),
            std::string::npos);
  EXPECT_NE(refusal({layout(tuple(64, 32), tuple(40, 1))}, 16, 1).find("without a gap"),
            std::string::npos);
  EXPECT_NE(refusal({row_major(64, 4)}, 16, 1).find("multiple of 16 bytes"), std::string::npos);
  EXPECT_NE(refusal({row_major(512, 32)}, 16, 1).find("at most 256"), std::string::npos);
  EXPECT_NE(refusal({Swizzle(3, 3, 3), row_major(64, 32)}, 16, 1).find("as wide as"),
            std::string::npos);
  EXPECT_NE(refusal({Swizzle(3, 4, 3), row_major(64, 64)}, 16, 1).find("16-byte pieces"),
            std::string::npos);
  EXPECT_NE(refusal(swizzled_operand(16, 12, 64, 1, 2), 16, 1).find("swizzle's period"),
            std::string::npos);
  EXPECT_NE(refusal(swizzled_operand(16, 64, 64, 1), 12, 1).find("8, 16, 32 or 64 bits"),
            std::string::npos);
  EXPECT_EQ(refusal(swizzled_operand(16, 64, 64, 1), 16, 1), "");
}

}  // namespace
}  // namespace tegula
