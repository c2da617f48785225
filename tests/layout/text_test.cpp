// Parsing and printing: what reads, what does not and where, and that literals are
// constant expressions.
#include "tegula/layout/text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "refusal.hpp"
#include "tegula/layout/parse.hpp"

namespace tegula {
namespace {

static_assert("8"_layout == col_major(8)[0]);
static_assert("(4,8)"_layout == col_major(4, 8));
static_assert("(4,8):(8,1)"_layout == row_major(4, 8));
static_assert("((2,2),8):((1,16),2)"_layout.rank() == 2);
static_assert("(16,8):(1@0,1@1)"_layout == identity_layout(shape(16, 8)));
static_assert("<4,_,<8:2,2>>"_tile == make_tile(4, _, make_tile("8:2"_layout, 2)));
static_assert(parse_tuple("(_,(2,-3))") == tuple(_, tuple(2, -3)));

template <Layout L> struct Tagged { static constexpr std::int64_t size = L.size(); };
// The same layout, however it was made, is the same template argument.
static_assert(std::is_same_v<Tagged<"(4,8):(8,1)"_layout>, Tagged<row_major(4, 8)>>);
static_assert(!std::is_same_v<Tagged<"4:1"_layout>, Tagged<"(4):(1)"_layout>>);

std::string sentence(char const* text, bool tiler = false) {
  return tegula::sentence([&] {
    if (tiler) {
      parse_tiler(text);
    } else {
      parse_layout(text);
    }
  });
}

TEST(Text, ReadsFromStringsAndViews) {
  EXPECT_EQ(to_string(parse_layout(std::string("(4,(3,6)):(1,(4,12))"))), "(4,(3,6)):(1,(4,12))");
  EXPECT_EQ(to_string(parse_layout(std::string_view("  ( 4 , 8 ) : ( 8 , -1 ) "))), "(4,8):(8,-1)");
  EXPECT_EQ(to_string(parse_layout("()")), "():()");
  EXPECT_EQ(to_string(parse_layout("((4)):((1))")), "((4)):((1))");
  EXPECT_EQ(to_string(parse_layout("(2,(3,4))")), "(2,(3,4)):(1,(2,6))");
  EXPECT_EQ(to_string(parse_layout("(2,3):(2@1,0)")), "(2,3):(2@1,0)");
  EXPECT_EQ(to_string(parse_tiler("< 4 , (2,2) , _ , <3:2,1> >")), "<4:1,(2,2):(1,2),_,<3:2,1:1>>");
  EXPECT_EQ(to_string(parse_tiler("8:2")), "8:2");
  EXPECT_EQ(to_string(parse_tuple("(_,_)")), "(_,_)");
}

TEST(Text, ErrorsNameThePlaceAndWhatWasExpected) {
  EXPECT_EQ(sentence(""), "parse(\"\", column 1): an integer was expected");
  EXPECT_EQ(sentence("(4,8"), "parse(\"(4,8\", column 5): a comma or ) was expected in a tuple");
  EXPECT_EQ(sentence("(4,)"), "parse(\"(4,)\", column 4): an integer was expected");
  EXPECT_EQ(sentence("4:1)"),
            "parse(\"4:1)\", column 4): something follows where the text should end");
  EXPECT_EQ(sentence("(4,8):1"),
            "parse(\"(4,8):1\", column 8): the strides are not nested as the shape is");
  EXPECT_EQ(sentence("(4,8):((1,4))"),
            "parse(\"(4,8):((1,4))\", column 14): the strides are not nested as the shape is");
  EXPECT_EQ(sentence("4:(1,2)"), "parse(\"4:(1,2)\", column 6): more strides than extents");
  EXPECT_EQ(sentence("4:1@15"), "parse(\"4:1@15\", column 7): an axis is not between 0 and 14");
  EXPECT_EQ(sentence("99999999999999999999"),
            "parse(\"99999999999999999999\", column 19): an integer exceeds 2^62");
  EXPECT_EQ(sentence("<4,8", true),
            "parse(\"<4,8\", column 5): a comma or > was expected in a tiler");
  EXPECT_EQ(sentence("0:1"), "layout(0): an extent is less than 1");
  EXPECT_EQ(sentence("(4,_)"), "layout(_): an extent is less than 1");
  EXPECT_NE(sentence("(((((((((((((((((1)))))))))))))))))").find("15 deep"), std::string::npos);
  EXPECT_NE(
      sentence("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)").find("32"),
      std::string::npos);
}

TEST(Text, LongestTextsAreWhole) {
  std::string shape = "((((((((((((((";
  for (int i = 0; i < 32; ++i) shape += (i > 0 ? "," : "") + std::string("1");
  shape += "))))))))))))))";
  std::string strides = "((((((((((((((";
  for (int i = 0; i < 32; ++i) strides += (i > 0 ? "," : "") + std::string("-4000000000000000000");
  strides += "))))))))))))))";
  EXPECT_EQ(to_string(parse_layout(shape + ":" + strides)), shape + ":" + strides);
  // An error's text is bounded, and says so.
  try {
    parse_layout(shape + ":" + strides).operator[](7);
    FAIL();
  } catch (layout_error const& error) {
    EXPECT_LT(std::string(error.what()).size(), static_cast<std::size_t>(layout_error::kCapacity));
  }
}

}  // namespace
}  // namespace tegula
