// Sizes, strides and offsets up to and beyond 2^62: every operation refuses, or gives a layout that
// keeps the invariant and the operation's law. What is right is computed in 128 bits.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "parsed.hpp"
#include "refusal.hpp"
#include "tegula/layout/algebra.hpp"
#include "tegula/layout/bank_conflicts.hpp"
#include "tegula/layout/draw.hpp"
#include "tegula/layout/swizzled_layout.hpp"
#include "tegula/layout/text.hpp"

namespace tegula {
namespace {

__extension__ typedef __int128 Wide;

constexpr Wide kLimit = Wide{1} << 62;

struct Leaf {
  Wide extent, stride;
};

std::vector<Leaf> leaves_of(Layout const& layout) {
  std::vector<Leaf> leaves;
  for (int i = 0; i < layout.leaves(); ++i)
    leaves.push_back({layout.extents[i], layout.strides[i]});
  return leaves;
}

Wide magnitude(Wide x) { return x < 0 ? -x : x; }

/// The invariant of a Layout (layout.hpp).
bool keeps_invariant(std::vector<Leaf> const& leaves) {
  Wide size = 1;
  Wide reach = 0;
  for (Leaf const& leaf : leaves) {
    if (leaf.extent < 1 || leaf.extent > kLimit || magnitude(leaf.stride) > kLimit) return false;
    size *= leaf.extent;
    if (size > kLimit) return false;
    reach += (leaf.extent - 1) * magnitude(leaf.stride);
    if (reach > kLimit) return false;
  }
  return true;
}

/// The offset at an index; the last leaf is unbounded.
Wide at(std::vector<Leaf> const& leaves, Wide index) {
  Wide offset = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    bool const last = i + 1 == leaves.size();
    offset += (last ? index : index % leaves[i].extent) * leaves[i].stride;
    index /= leaves[i].extent;
  }
  return offset;
}
Wide at(Layout const& layout, Wide index) { return at(leaves_of(layout), index); }

/// Numbers of any magnitude up to a little above 2^62, most of them near powers of two.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  std::int64_t number(int most_bits) {
    std::int64_t const power = std::int64_t{1} << below(most_bits + 1);
    if (one_in(3)) return 1 + below(power);
    return std::max<std::int64_t>(1, power + below(3) - 1);
  }

  Tuple tree(int leaves, std::vector<std::int64_t> const& values) {
    Tuple result;
    for (int i = 0; i < leaves; ++i) result.append_leaf(values[static_cast<std::size_t>(i)]);
    if (leaves > 1) detail::wrap(result);
    return result;
  }

  /// A layout of one to four leaves: compact, compact with gaps, or with any strides; now and then
  /// one that exceeds the invariant, and so is none.
  std::optional<Layout> layout(int most_bits = 62) {
    int const leaves = 1 + static_cast<int>(below(4));
    int bits_left = most_bits;
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> strides;
    for (int i = 0; i < leaves; ++i) {
      int const bits = one_in(20) ? 62 : static_cast<int>(below(bits_left + 1));
      bits_left = std::max(0, bits_left - bits);
      extents.push_back(number(bits));
    }
    bool const compact = one_in(2);
    Wide reached = 1;
    for (int i = 0; i < leaves; ++i) {
      std::int64_t stride = number(62);
      if (compact) {
        if (one_in(6)) reached *= number(4);
        stride = reached > kLimit ? number(62) : static_cast<std::int64_t>(reached);
        if (reached <= kLimit) reached *= extents[static_cast<std::size_t>(i)];
      } else {
        if (one_in(8)) stride = 0;
        if (one_in(8)) stride = -stride;
      }
      strides.push_back(stride);
    }
    std::vector<Leaf> wanted;
    for (std::size_t i = 0; i < extents.size(); ++i) wanted.push_back({extents[i], strides[i]});
    auto const made =
        attempt([&] { return tegula::layout(tree(leaves, extents), tree(leaves, strides)); });
    EXPECT_EQ(made.has_value(), keeps_invariant(wanted)) << extents[0] << ':' << strides[0];
    return made;
  }

 private:
  std::mt19937_64 engine_;
};

constexpr int kRounds = 20000;

/// Holds a result, where there is one, to the invariant.
void sound(std::optional<Layout> const& result, std::string const& what) {
  if (!result) return;
  ASSERT_TRUE(keeps_invariant(leaves_of(*result))) << what << " = " << to_string(*result);
  Wide size = 1;
  for (Leaf const& leaf : leaves_of(*result)) size *= leaf.extent;
  ASSERT_TRUE(size == result->size()) << what;
}

TEST(Range, OffsetsAreRightOrRefused) {
  Random random(1);
  for (int round = 0; round < kRounds; ++round) {
    auto const a = random.layout();
    if (!a) continue;
    std::int64_t const index = random.one_in(4) ? random.number(62) : random.below(a->size());
    auto const offset = attempt([&] { return (*a)(index); });
    ASSERT_TRUE(offset || index >= a->size()) << to_string(*a) << " at " << index;
    ASSERT_TRUE(!offset || *offset == at(*a, index)) << to_string(*a) << " at " << index;
    auto const coordinate = attempt([&] { return idx2crd(index, a->shape()); });
    if (coordinate) {
      auto const back = attempt([&] { return crd2idx(*coordinate, *a); });
      ASSERT_TRUE(back.has_value() && *back == at(*a, index)) << to_string(*a) << " at " << index;
    }
    std::int64_t const wanted = random.one_in(2) ? -random.number(62) : random.number(62);
    auto const found = attempt([&] { return idx2crd(wanted, a->shape(), a->stride()); });
    if (!found) continue;
    for (int i = 0; i < a->leaves(); ++i)
      ASSERT_TRUE(found->values[i] >= 0 && found->values[i] < a->extents[i]) << to_string(*found);
    ASSERT_EQ(crd2idx(*found, *a), wanted);
  }
}

TEST(Range, SimplerLayoutsAreTheSameFunction) {
  Random random(2);
  for (int round = 0; round < kRounds; ++round) {
    auto const a = random.layout();
    if (!a) continue;
    Layout const simple = coalesce(*a);
    sound(simple, "coalesce " + to_string(*a));
    for (int i = 0; i < 4; ++i) {
      std::int64_t const index = random.below(a->size());
      ASSERT_TRUE(at(simple, index) == at(*a, index)) << to_string(*a);
    }
    sound(filter(*a), "filter");
    sound(nullspace(*a), "nullspace");
    sound(flatten(*a), "flatten");
  }
}

TEST(Range, CompositionsKeepTheLaw) {
  Random random(3);
  int made = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto const a = random.layout();
    auto const b = random.layout();
    if (!a || !b) continue;
    auto const result = attempt([&] { return composition(*a, *b); });
    sound(result, to_string(*a) + " o " + to_string(*b));
    if (!result) continue;
    ++made;
    for (int i = 0; i < 8; ++i) {
      std::int64_t const index = random.below(b->size());
      Tuple const coordinate = idx2crd(index, b->shape());
      ASSERT_TRUE((*result)(coordinate) == at(*a, at(*b, index)))
          << to_string(*a) << " o " << to_string(*b);
    }
  }
  EXPECT_GT(made, kRounds / 20);
}

TEST(Range, ComplementsTileTheIntegers) {
  Random random(4);
  int made = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto const a = random.layout();
    if (!a) continue;
    std::int64_t const target =
        random.one_in(50) ? std::numeric_limits<std::int64_t>::max() : random.number(62);
    auto const result = attempt([&] { return complement(*a, target); });
    sound(result, "complement " + to_string(*a));
    if (!result) continue;
    ++made;
    std::vector<Leaf> both = leaves_of(filter(*a));
    for (Leaf const& leaf : leaves_of(*result)) both.push_back(leaf);
    Wide covered = 1;
    for (bool grown = true; grown;) {
      grown = false;
      for (Leaf const& leaf : both) {
        if (leaf.extent == 1 || leaf.stride != covered) continue;
        covered *= leaf.extent;
        grown = true;
      }
    }
    Wide size = 1;
    for (Leaf const& leaf : both) size *= leaf.extent;
    ASSERT_TRUE(covered == size && covered >= target) << to_string(*a) << " to " << target;
  }
  EXPECT_GT(made, kRounds / 20);
}

TEST(Range, InversesInvert) {
  Random random(5);
  int made = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto const a = random.layout();
    if (!a) continue;
    auto const right = attempt([&] { return right_inverse(*a); });
    sound(right, "right_inverse " + to_string(*a));
    auto const left = attempt([&] { return left_inverse(*a); });
    sound(left, "left_inverse " + to_string(*a));
    made += left.has_value();
    for (int i = 0; i < 4; ++i) {
      if (right) {
        std::int64_t const index = random.below(right->size());
        ASSERT_TRUE(at(*a, at(*right, index)) == index) << to_string(*a);
      }
      if (left) {
        Wide const offset = at(*a, random.below(a->size()));
        ASSERT_TRUE(at(*a, at(*left, offset)) == offset) << to_string(*a);
      }
    }
  }
  EXPECT_GT(made, kRounds / 20);
}

TEST(Range, DividesAndProductsAreSoundOrRefused) {
  Random random(6);
  int made = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto const a = random.layout(40);
    auto const b = random.layout(random.one_in(2) ? 20 : 62);
    if (!a || !b) continue;
    std::string const what = to_string(*a) + " and " + to_string(*b);
    Tiler const tiler =
        a->rank() > 1 && random.one_in(2) ? make_tile(*b, random.number(40)) : Tiler(*b);
    auto const divided = attempt([&] { return logical_divide(*a, tiler); });
    sound(divided, "divide " + what);
    made += divided.has_value();
    sound(attempt([&] { return zipped_divide(*a, tiler); }), "zipped_divide " + what);
    sound(attempt([&] { return flat_divide(*a, tiler); }), "flat_divide " + what);
    sound(attempt([&] { return composition(*a, tiler); }), "composition by mode " + what);
    sound(attempt([&] { return logical_product(*a, tiler); }), "product " + what);
    sound(attempt([&] { return tiled_product(*a, tiler); }), "tiled_product " + what);
    sound(attempt([&] { return blocked_product(*a, *b); }), "blocked_product " + what);
    sound(attempt([&] { return raked_product(*a, *b); }), "raked_product " + what);
    sound(attempt([&] { return append(*a, *b); }), "append " + what);
    sound(attempt([&] { return replace(*a, 0, *b); }), "replace " + what);
    sound(attempt([&] { return select(*a, 0, 0, 0); }), "select " + what);
    sound(attempt([&] { return row_major(random.number(62), random.number(62)); }), "row_major");
    sound(attempt([&] {
            return identity_layout(tuple(random.number(62), tuple(random.number(62), 3)));
          }),
          "identity_layout");
    Tuple const shape = random.tree(2, {random.number(62), random.number(62)});
    sound(attempt([&] { return tile_to_shape(*a, shape); }), "tile_to_shape " + what);
    sound(attempt([&] { return with_shape(*a, shape); }), "with_shape " + what);
  }
  EXPECT_GT(made, kRounds / 100);
}

TEST(Range, RecastsAreSoundOrRefused) {
  Random random(7);
  for (int round = 0; round < kRounds; ++round) {
    auto const a = random.layout();
    auto const b = random.layout();
    if (!a || !b) continue;
    std::int64_t const n =
        random.one_in(50) ? std::numeric_limits<std::int64_t>::max() : random.number(62);
    sound(attempt([&] { return upcast(*a, n); }), "upcast " + to_string(*a));
    auto const down = attempt([&] { return downcast(*a, n); });
    sound(down, "downcast " + to_string(*a));
    ASSERT_TRUE(!down || Wide{down->size()} == Wide{a->size()} * n);
    sound(attempt([&] { return recast(*a, n, random.number(62)); }), "recast " + to_string(*a));
    auto const common = attempt([&] { return max_common_layout(*a, *b); });
    sound(common, "max_common_layout " + to_string(*a) + " and " + to_string(*b));
    for (int i = 0; common && i < 4; ++i) {
      Wide const index = at(*common, random.below(common->size()));
      ASSERT_TRUE(index < a->size() && index < b->size() && at(*a, index) == at(*b, index));
    }
  }
}

TEST(Range, SwizzledLayoutsStayInRange) {
  Random random(8);
  for (int round = 0; round < kRounds / 10; ++round) {
    auto const a = random.layout(12);
    if (!a) continue;
    int const bits = static_cast<int>(random.below(8));
    Swizzle const swizzle(bits, static_cast<int>(random.below(40)),
                          bits + static_cast<int>(random.below(8)));
    std::int64_t const offset = random.one_in(2) ? 0 : random.number(62);
    auto const swizzled = attempt([&] { return SwizzledLayout(swizzle, offset, *a); });
    if (!swizzled) continue;
    auto const cosize = attempt([&] { return swizzled->cosize(); });
    for (int i = 0; i < 4; ++i) {
      std::int64_t const index = random.below(a->size());
      std::int64_t const value = (*swizzled)(index);
      ASSERT_TRUE(value == swizzle(static_cast<std::int64_t>(offset + at(*a, index))));
      ASSERT_TRUE(!cosize || value < *cosize) << to_string(*swizzled);
    }
  }
}

TEST(Range, TheExamplesThatWereFound) {
  EXPECT_EQ(sentence([] { left_inverse(L("2:4611686018427387904")); }),
            "arithmetic(4611686018427387904, 2): a size or an offset exceeds 2^62");
  EXPECT_EQ(
      sentence([] { logical_product(L("(1,1):(0,0)"), parse_tiler("<4294967296,4294967296>")); }),
      "arithmetic(4294967296, 4294967296): a size or an offset exceeds 2^62");
  EXPECT_EQ(sentence([] { L("4:1@4294967297"); }),
            "parse(\"4:1@4294967297\", column 15): an axis is not between 0 and 14");
  EXPECT_EQ(to_string(coalesce(L("(2,2):(4611686018427387904,0)"))),
            "(2,2):(4611686018427387904,0)");
  EXPECT_EQ(sentence([] { crd2idx(Tuple(std::int64_t{1} << 40), L("4:4294967296")); }),
            "arithmetic(1099511627776, 4294967296): a size or an offset exceeds 2^62");
  EXPECT_EQ(sentence([] { select(L("(2,3):(1,2)"), std::int64_t{1} << 32); }),
            "select((2,3):(1,2), 4294967296): there is no such mode: its number is at least 0 and "
            "less than the rank");
  EXPECT_EQ(sentence([] { Swizzle(1, 0, std::numeric_limits<int>::min()); }),
            "Swizzle(1, 0, -2147483648): the groups reach above bit 62");
  EXPECT_EQ(sentence([] { identity_layout(tuple(1 << 30, 1 << 30, 1 << 30)); }),
            "arithmetic(1152921504606846976, 1073741824): a size or an offset exceeds 2^62");
}

TEST(Range, CompositionByModeKeepsTheModesThatTheTilerDoesNotName) {
  EXPECT_EQ(to_string(composition(L("(2,7,4,6,6):(1,2,14,56,336)"), parse_tiler("<1,7:1>"))),
            "(1,7,4,6,6):(1,2,14,56,336)");
  EXPECT_EQ(to_string(composition(L("((2,3),4):((1,2),6)"), parse_tiler("<<2>>"))),
            "((2,3),4):((1,2),6)");
}

TEST(Range, ATilerOfFewerModesIsTheOneThatLeavesTheOthers) {
  auto const is_left = [](std::string const& layout, std::string const& fewer,
                          std::string const& all) {
    EXPECT_EQ(to_string(composition(L(layout.c_str()), parse_tiler(fewer))),
              to_string(composition(L(layout.c_str()), parse_tiler(all))))
        << layout << " o " << fewer;
  };
  for (std::string const layout :
       {"(4,6,8):(1,4,24)", "(4,6,8):(48,8,1)", "(4,(2,3),(2,4)):(3,(12,24),(0,72))"}) {
    for (std::string const first : {"1", "2", "4", "4:1", "2:2", "(2,2):(2,1)"}) {
      is_left(layout, "<" + first + ">", "<" + first + ",_,_>");
      for (std::string const second : {"1", "3:2", "6"})
        is_left(layout, "<" + first + "," + second + ">", "<" + first + "," + second + ",_>");
    }
  }
  is_left("((4,6),(8,2)):((1,4),(24,192))", "<<2>>", "<<2,_>,_>");
  is_left("((4,6),(8,2)):((1,4),(24,192))", "<_,<4:2>>", "<_,<4:2,_>>");
}

TEST(Range, IndicesOfNegativeStrides) {
  EXPECT_EQ(to_string(idx2crd(-5, tuple(4, 4), tuple(-1, -4))), "(1,1)");
  EXPECT_NE(
      sentence([] { idx2crd(5, tuple(4, 4), tuple(-1, 4)); }).find("no coordinate of shape:stride"),
      std::string::npos);
  // By brute force: what is found is a coordinate with that offset.
  for (int first = -5; first <= 5; ++first) {
    for (int second = -5; second <= 5; ++second) {
      Layout const a = layout(tuple(3, 4), tuple(first, second));
      for (int index = -20; index <= 20; ++index) {
        auto const found = attempt([&] { return idx2crd(index, a.shape(), a.stride()); });
        if (!found) continue;
        ASSERT_TRUE(found->values[0] >= 0 && found->values[0] < 3 && found->values[1] >= 0 &&
                    found->values[1] < 4);
        ASSERT_EQ(found->values[0] * first + found->values[1] * second, index);
      }
    }
  }
}

TEST(Range, LongSearchesEnd) {
  // The longest vector of two layouts whose leaves carry into each other, found without trying
  // every length.
  Layout const a = L("(1099511627776,3):(1,1099511627777)");
  Layout const b = L("(3,1099511627776):(1,3)");
  EXPECT_EQ(max_common_vector(a, b), std::int64_t{1} << 40);
  EXPECT_EQ(max_common_vector(b, a), std::int64_t{1} << 40);
  // A swizzle over 2^24 offsets is looked at one by one.
  std::string extents = "2";
  std::string strides = "3";
  for (int i = 1; i < 24; ++i) extents += ",2", strides += "," + std::to_string(3 + 2 * i);
  SwizzledLayout const many(Swizzle(3, 1, 40), L(("(" + extents + "):(" + strides + ")").c_str()));
  EXPECT_GT(cosize(many), 1);
}

TEST(Range, NestedTilersAreRefusedNotFollowed) {
  EXPECT_EQ(sentence([] { parse_tiler(std::string(100000, '<')); }),
            "parse(\"" + std::string(90, '<') +
                "...\", column 17): angle brackets nest more than 15 deep");
  EXPECT_EQ(sentence([] { parse_layout(std::string("(4,\n\x1b)")); }),
            "parse(\"(4,\\x0a\\x1b)\", column 4): an integer was expected");
}

TEST(Range, BanksOfFarElements) {
  EXPECT_EQ(bank_of_element((std::int64_t{1} << 62) + 2, 16), 1);
  EXPECT_EQ(bank_of_element(-1, 32), 31);
  EXPECT_EQ(draw_banks(L("2:4611686018427387904"), 16).panels[0].cells[1].text, "0");
  EXPECT_NE(sentence([] {
              bank_conflicts(vector_access(L("(32,1099511627776):(1,32)"), 16, 2), L("32:1"));
            }).find("at most 2^20 instructions"),
            std::string::npos);
}

}  // namespace
}  // namespace tegula
