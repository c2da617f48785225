// Values published in CuTe's documentation (CUTLASS, media/docs/cpp/cute/02_layout_algebra.md and
// 01_layout.md) or worked out by hand, most of them twice: as constant expressions, and as texts.
#include <gtest/gtest.h>

#include "parsed.hpp"
#include "tegula/layout/algebra.hpp"
#include "tegula/layout/text.hpp"

namespace tegula {
namespace {

static_assert(composition(row_major(16, 8), "((4,8),(2,2)):((32,1),(16,8))"_layout)(coord(5, 2)) ==
              74);
static_assert(coalesce("(2,(1,6)):(1,(6,2))"_layout) == "12:1"_layout);
static_assert(composition("(6,2):(8,2)"_layout, "(4,3):(3,1)"_layout) ==
              "((2,2),3):((24,2),8)"_layout);
static_assert(complement("(2,2):(1,6)"_layout, 24) == "(3,2):(2,12)"_layout);
static_assert(offset_of<"(4,(2,4)):(8,(1,2))"_layout>(1, 3) == 11);

TEST(KnownValues, Coalesce) {
  EXPECT_EQ(to_string(coalesce(L("(2,(1,6)):(1,(6,2))"))), "12:1");
  EXPECT_EQ(to_string(coalesce(L("(2,(1,6)):(1,(6,2))"), tuple(1, 1))), "(2,6):(1,2)");
}

TEST(KnownValues, Composition) {
  EXPECT_EQ(to_string(composition(L("(6,2):(8,2)"), L("(4,3):(3,1)"))), "((2,2),3):((24,2),8)");
  EXPECT_EQ(to_string(composition(L("20:2"), L("(5,4):(4,1)"))), "(5,4):(8,2)");
  EXPECT_EQ(to_string(composition(L("(10,2):(16,4)"), L("(5,4):(1,5)"))), "(5,(2,2)):(16,(80,4))");
  EXPECT_EQ(to_string(composition(L("(12,(4,8)):(59,(13,1))"), parse_tiler("<3:4,8:2>"))),
            "(3,(2,4)):(236,(26,1))");
  EXPECT_EQ(to_string(composition(L("(12,(4,8)):(59,(13,1))"), parse_tiler("<3,8>"))),
            "(3,(4,2)):(59,(13,1))");
}

TEST(KnownValues, CompositionThatCuteGetsWrong) {
  // CuTe's R(2) is 1 where A(B(2)) is 5.
  try {
    composition(L("(3,4):(4,1)"), L("4:2"));
    FAIL() << "not refused";
  } catch (layout_error const& error) {
    EXPECT_STREQ(
        error.what(),
        "composition((3,4):(4,1), 4:2): B's leaves carry into each other in A's modes; no layout is A(B(i))");
  }
}

TEST(KnownValues, Complement) {
  EXPECT_EQ(to_string(complement(L("4:1"), 24)), "6:4");
  EXPECT_EQ(to_string(complement(L("6:4"), 24)), "4:1");
  EXPECT_EQ(to_string(complement(L("(4,6):(1,4)"), 24)), "1:0");
  EXPECT_EQ(to_string(complement(L("4:2"), 24)), "(2,3):(1,8)");
  EXPECT_EQ(to_string(complement(L("(2,4):(1,6)"), 24)), "3:2");
  EXPECT_EQ(to_string(complement(L("(2,2):(1,6)"), 24)), "(3,2):(2,12)");
}

TEST(KnownValues, RightInverseOfLeavesThatOverlap) {
  // One function, by two layouts: as CuTe coalesces first, what ends the chain is (4,6):(1,2).
  for (char const* const text : {"(4,2,3):(1,2,4)", "(4,6):(1,2)"}) {
    EXPECT_EQ(to_string(right_inverse(L(text))), "4:1");
    EXPECT_EQ(to_string(max_common_layout(L(text), L(text))), "4:1");
  }
  EXPECT_EQ(to_string(right_inverse(L("(4,2,3):(1,2,12)"))), "4:1");
  EXPECT_EQ(to_string(right_inverse(L("(4,2,7,3):(1,2,9,4)"))), "(4,3):(1,56)");
}

TEST(KnownValues, CastsToTheSameSizeAreTheLayout) {
  for (char const* const text : {"3:2", "(3,4):(2,-5)", "(2,(3,1)):(0,(7,1))", "4:1"}) {
    EXPECT_EQ(downcast(L(text), 1), L(text));
    EXPECT_EQ(upcast(L(text), 1), L(text));
    EXPECT_EQ(recast(L(text), 16, 16), L(text));
  }
}

TEST(KnownValues, Divide) {
  EXPECT_EQ(to_string(logical_divide(L("(4,2,3):(2,1,8)"), L("4:2"))),
            "((2,2),(2,3)):((4,1),(2,8))");
  Layout const a = L("(9,(4,8)):(59,(13,1))");
  Tiler const tiler = parse_tiler("<3:3,(2,4):(1,8)>");
  EXPECT_EQ(to_string(logical_divide(a, tiler)),
            "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))");
  EXPECT_EQ(to_string(zipped_divide(a, tiler)), "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))");
  EXPECT_EQ(to_string(tiled_divide(a, tiler)), "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))");
  EXPECT_EQ(to_string(flat_divide(a, tiler)), "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))");
}

TEST(KnownValues, Product) {
  EXPECT_EQ(to_string(logical_product(L("(2,2):(4,1)"), L("6:1"))), "((2,2),(2,3)):((4,1),(2,8))");
  EXPECT_EQ(to_string(logical_product(L("(2,2):(4,1)"), L("(4,2):(2,1)"))),
            "((2,2),(4,2)):((4,1),(8,2))");
  EXPECT_EQ(to_string(blocked_product(L("(2,5):(5,1)"), L("(3,4):(1,3)"))),
            "((2,3),(5,4)):((5,10),(1,30))");
  EXPECT_EQ(to_string(raked_product(L("(2,5):(5,1)"), L("(3,4):(1,3)"))),
            "((3,2),(4,5)):((10,5),(30,1))");
}

}  // namespace
}  // namespace tegula
