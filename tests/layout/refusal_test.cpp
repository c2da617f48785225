// What the algebra refuses, with which sentence, and what it does at its limits.
#include "refusal.hpp"

#include <gtest/gtest.h>

#include <string>

#include "parsed.hpp"
#include "tegula/layout/algebra.hpp"
#include "tegula/layout/text.hpp"

namespace tegula {
namespace {

TEST(Refusals, Composition) {
  EXPECT_EQ(
      sentence([] { composition(L("(4,2):(1,8)"), L("3:2")); }),
      "composition((4,2):(1,8), 3:2): a leaf of B splits unevenly at A's modes; no layout is A(B(i))");
  EXPECT_EQ(
      sentence([] { composition(L("(4,2):(1,8)"), L("(3,2):(1,3)")); }),
      "composition((4,2):(1,8), (3,2):(1,3)): B's leaves carry into each other in A's modes; no layout is A(B(i))");
  EXPECT_EQ(
      sentence([] { composition(L("(4,2):(1,8)"), L("4:-1")); }),
      "composition((4,2):(1,8), 4:-1): B has a negative stride, and A has no negative indices");
  EXPECT_EQ(to_string(composition(L("8:3"), L("4:-1"))), "4:-3");
  EXPECT_EQ(
      sentence([] { composition(L("(4,2):(1,8)"), L("(2,2):(1@0,1@2)")); }),
      "composition((4,2):(1,8), (2,2):(1@0,1@2)): B has a stride along an axis that A has no mode for");
  EXPECT_EQ(
      sentence([] { composition(L("(4,2):(1,8)"), L("(2,2):(1@0,1)")); }),
      "composition((4,2):(1,8), (2,2):(1@0,1)): B has integer strides among coordinate strides");
  EXPECT_EQ(
      sentence([] { composition(identity_layout(shape(4, 8)), L("4:5")); }),
      "composition((4,8):(1@0,1@1), 4:5): a stride of the result would go along several axes");
}

TEST(Refusals, CompositionWithCoordinateStrides) {
  // B's values are coordinates of A: d@k is d steps in mode k.
  EXPECT_EQ(to_string(composition(L("(16,8):(8,1)"), L("((4,8),2):((2@1,1@0),8@0)"))),
            "((4,8),2):((2,8),64)");
  EXPECT_EQ(to_string(composition(L("((2,4),8):((1,100),2)"), L("4:2@0"))), "4:100");
  // A's values are coordinates: where in the problem something is.
  EXPECT_EQ(
      to_string(composition(identity_layout(shape(16, 8)), L("((4,8),(2,2)):((32,1),(16,8))"))),
      "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))");
  EXPECT_EQ(to_string(composition(identity_layout(shape(16, 8)), L("((4,8),(2,2)):((32,1),(16,8))"))
                          .coordinate(coord(5, 2))),
            "(9,2)");
  EXPECT_EQ(to_string(identity_layout(shape(16, shape(2, 4))).coshape()), "(16,8)");
  EXPECT_EQ(to_string(L("(4,8):(8,1)").coshape()), "32");
  // Two leaves within one mode of A carry into each other there.
  EXPECT_NE(
      sentence([] { composition(L("((4,4),8):((1,16),4)"), L("(2,2):(1@0,3@0)")); }).find("carry"),
      std::string::npos);
}

TEST(Refusals, OppositeCarriesCancel) {
  // A jumps by +3 at 2 and by -3 at 4; B only ever crosses both at once, so the composition exists.
  Layout const a = L("(2,2,4):(1,5,7)");
  EXPECT_EQ(a(3) + a(1), a(4));
  EXPECT_EQ(to_string(composition(a, L("(2,2):(3,1)"))), "(2,2):(6,1)");
  EXPECT_NE(sentence([] { composition(L("(2,2,4):(1,5,7)"), L("(2,2):(1,1)")); }), "");
}

TEST(Refusals, Complement) {
  EXPECT_EQ(
      sentence([] { complement(L("(2,2):(1,3)"), 12); }),
      "complement((2,2):(1,3), 12): a stride is no multiple of the run below it, so nothing fills the gap");
  EXPECT_EQ(sentence([] { complement(L("4:-1"), 12); }),
            "complement(4:-1, 12): a stride is negative, so the layout leaves [0, cotarget)");
  EXPECT_EQ(to_string(complement(L("4:0"), 12)), "12:1");
  EXPECT_EQ(to_string(complement(L("4:2"), 5)), "2:1");
}

TEST(Refusals, LeftInverse) {
  EXPECT_EQ(
      sentence([] { left_inverse(L("(2,2):(1,1)")); }),
      "left_inverse((2,2):(1,1)): two leaves overlap, so an offset belongs to several indices");
  EXPECT_EQ(
      sentence([] { left_inverse(L("(2,2):(2,5)")); }),
      "left_inverse((2,2):(2,5)): a stride is no multiple of the one below, so an offset has no digits");
  EXPECT_EQ(to_string(left_inverse(L("(2,2):(1,3)"))), "(3,2):(1,2)");
}

TEST(Refusals, Recast) {
  EXPECT_EQ(sentence([] { upcast(L("4:3"), 2); }),
            "upcast(4:3, 2): a stride neither divides n nor is a multiple of it");
  EXPECT_EQ(sentence([] { upcast(L("(2,2):(1,1)"), 2); }),
            "upcast((2,2):(1,1), 2): leaves overlap or carry inside one larger element");
  EXPECT_EQ(
      sentence([] { downcast(L("4:2"), 2); }),
      "downcast(4:2, 2): no leaf has stride 1, so the smaller elements have no leaf to go to");
  EXPECT_EQ(to_string(recast(L("(8,4):(1,8)"), 16, 128)), "(1,4):(1,1)");
  EXPECT_EQ(to_string(recast(L("(8,4):(1,8)"), 16, 8)), "(16,4):(1,16)");
  EXPECT_EQ(to_string(recast(L("(6,4):(1,6)"), 16, 24)), "(4,4):(1,4)");
}

TEST(Refusals, ShapesAndModes) {
  EXPECT_NE(sentence([] { L("(4,8):(1,4)")[2]; }).find("no such mode"), std::string::npos);
  EXPECT_NE(sentence([] { layout(shape(4, 8), stride(1)); }).find("not congruent"),
            std::string::npos);
  EXPECT_NE(sentence([] {
              L("(4,8)")
              (coord(1, 2, 3));
            }).find("not a coarsening"),
            std::string::npos);
  EXPECT_NE(sentence([] { L("(4,8)")(1, 2, 3); }).find("one index per mode"), std::string::npos);
  EXPECT_NE(sentence([] { L("(4,8)")(-1); }).find("negative"), std::string::npos);
  EXPECT_NE(sentence([] { identity_layout(shape(4, 8))(3); }).find("coordinate"),
            std::string::npos);
  EXPECT_NE(sentence([] { identity_layout(shape(4, 8)).cosize(); }).find("coshape"),
            std::string::npos);
  EXPECT_NE(sentence([] { zipped_divide(L("8:1"), make_tile(2, 2)); }).find("more modes"),
            std::string::npos);
  EXPECT_NE(sentence([] { idx2crd(32, shape(4, 8)); }).find("outside the shape"),
            std::string::npos);
  EXPECT_NE(sentence([] { tile_to_shape(L("(3,2)"), shape(8, 8)); }).find("does not divide"),
            std::string::npos);
  EXPECT_NE(sentence([] { slice(coord(_, 1, 1), L("(4,8)")); }).find("not a coarsening"),
            std::string::npos);
  EXPECT_NE(sentence([] { append(L("(4,8)"), 1); }).find("more modes"), std::string::npos);
}

// By the name of the operation that was called, not of what it is made of.
TEST(Refusals, NameTheOperation) {
  Layout const a = L("(4,4):(1,4)");
  Tiler const three = make_tile(4, 4, 4);
  std::string const why = "((4,4):(1,4), <4:1,4:1,4:1>): the tiler has more modes than the layout";
  EXPECT_EQ(sentence([&] { zipped_divide(a, three); }), "zipped_divide" + why);
  EXPECT_EQ(sentence([&] { tiled_divide(a, three); }), "tiled_divide" + why);
  EXPECT_EQ(sentence([&] { flat_divide(a, three); }), "flat_divide" + why);
  EXPECT_EQ(sentence([&] { zipped_product(a, three); }), "zipped_product" + why);
  EXPECT_EQ(sentence([&] { tiled_product(a, three); }), "tiled_product" + why);
  EXPECT_EQ(sentence([&] { flat_product(a, three); }), "flat_product" + why);
  EXPECT_EQ(sentence([] { complement(identity_layout(shape(4, 4))); }),
            "complement((4,4):(1@0,1@1)): the layout's values are coordinates, not integers");
}

TEST(Refusals, Limits) {
  EXPECT_NE(sentence([] { L("(4611686018427387904,2)"); }).find("2^62"), std::string::npos);
  EXPECT_NE(sentence([] { L("(2,2):(4611686018427387904,4611686018427387904)"); }).find("2^62"),
            std::string::npos);
  EXPECT_NE(sentence([] { composition(L("8:1000000000000000000"), L("64:1")); }).find("2^62"),
            std::string::npos);
  Layout const many = L("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)");
  EXPECT_NE(sentence([&] { append(many, many); }).find("more than 32 leaves"), std::string::npos);
  Layout deep = L("1:0");
  for (int i = 0; i < kMaxDepth; ++i) deep = make_layout(deep);
  EXPECT_NE(sentence([&] { make_layout(deep); }).find("15 deep"), std::string::npos);
  // Large but within the limits.
  EXPECT_EQ(
      to_string(composition(L("(1048576,1048576):(1048576,1)"), L("(1024,1024):(1048576,1024)"))),
      "(1024,1024):(1,1073741824)");
}

// offset_of is the form for kernels: the same function, unrolled.
static_assert(offset_of<"((4,8),(2,2)):((32,1),(16,8))"_layout>(37) ==
              "((4,8),(2,2)):((32,1),(16,8))"_layout(37));
static_assert(offset_of<"((4,8),(2,2)):((32,1),(16,8))"_layout>(5, 2) ==
              "((4,8),(2,2)):((32,1),(16,8))"_layout(5, 2));
static_assert(offset_of<"(4,8,2):(-1,0,100)"_layout>(3, 5, 1) == 97);
static_assert(offset_of<"1:0"_layout>(0) == 0);

}  // namespace
}  // namespace tegula
