// Swizzles and swizzled layouts against an oracle that moves bits one by one, and each operation
// against its law.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "refusal.hpp"
#include "tegula/layout/parse.hpp"
#include "tegula/layout/swizzled_layout.hpp"
#include "tegula/layout/text.hpp"

namespace tegula {
namespace {

// CuTe's documented forms for 16-byte rows of 128, 64 and 32 bytes, in bytes.
static_assert(Swizzle(3, 4, 3)(0x80) == 0x90);
static_assert(Swizzle(2, 4, 3)(0x180) == 0x1b0);
static_assert(Swizzle(1, 4, 3)(0x80) == 0x90 && Swizzle(1, 4, 3)(0x100) == 0x100);
static_assert(Swizzle(2, 3, -3)(8) == 8 + 64);
static_assert(inverse(Swizzle(3, 4, 3)) == Swizzle(3, 4, 3));

// Values of these types are template arguments.
template <SwizzledLayout L> struct Tile { static constexpr SwizzledLayout layout = L; };
static_assert(Tile<SwizzledLayout(Swizzle(3, 3, 3), row_major(8, 64))>::layout(1, 0) == 72);
static_assert(offset_of<SwizzledLayout(Swizzle(3, 3, 3), 64, row_major(8, 64))>(1, 3) ==
              128 + (16 ^ 3));
// A layout is recast as one, with numbers of any type.
static_assert(recast("(8,4):(1,8)"_layout, 16, 128) == "(1,4):(1,1)"_layout);
static_assert(offset_of<row_major(8, 64)>(1, 3) == 67);

/// Bit i of the result is bit i of x, exclusive-or bit i + shift where i is in the changed group.
std::int64_t moved_bit_by_bit(int bits, int base, int shift, std::int64_t x) {
  int const first = shift >= 0 ? base : base - shift;
  std::int64_t result = x;
  for (int i = first; i < first + bits; ++i) {
    if ((x >> (i + shift) & 1) != 0) result ^= std::int64_t{1} << i;
  }
  return result;
}

template <class F> void for_all_swizzles(F const& f) {
  for (int bits = 0; bits <= 3; ++bits) {
    for (int base = 0; base <= 4; ++base) {
      for (int shift = -4; shift <= 4; ++shift) {
        if (std::abs(shift) >= bits) f(Swizzle(bits, base, shift));
      }
    }
  }
}

TEST(Swizzle, MovesTheBitsItSays) {
  for_all_swizzles([](Swizzle const& s) {
    for (std::int64_t x = 0; x < 4096; ++x) {
      ASSERT_EQ(s(x), moved_bit_by_bit(s.bits, s.base, s.shift, x)) << to_string(s) << " at " << x;
      ASSERT_EQ(s(s(x)), x) << to_string(s);
      ASSERT_EQ(s(static_cast<std::int32_t>(x)), s(x)) << to_string(s);
      ASSERT_EQ(s(static_cast<std::uint32_t>(x)), s(x)) << to_string(s);
      ASSERT_EQ(s(x + s.period()), s(x) + s.period()) << to_string(s);
      ASSERT_EQ(s(x) / s.block(), x / s.block()) << to_string(s) << " leaves its block at " << x;
    }
  });
}

/// Of types that do not have all of the bits: those are read as 0, and stay.
template <class Integer> void moves_bits_of_its_own() {
  SCOPED_TRACE(8 * sizeof(Integer));
  constexpr int kWidth = 8 * sizeof(Integer);
  std::mt19937_64 random(sizeof(Integer));
  for (int round = 0; round < 20000; ++round) {
    auto const below = [&](int limit) {
      return static_cast<int>(random() % static_cast<unsigned>(limit));
    };
    int const bits = below(8), distance = bits + below(63 - 2 * bits),
              base = below(63 - bits - distance);
    Swizzle const s(bits, base, below(2) == 0 ? distance : -distance);
    auto const x = static_cast<Integer>(random());
    auto const bits_of = [](Integer value) {
      return static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<Integer>>(value));
    };
    std::uint64_t expected = bits_of(x);
    for (int i = base; i < base + bits; ++i) {
      int const read = s.shift > 0 ? i + distance : i, changed = s.shift > 0 ? i : i + distance;
      if (read < kWidth && changed < kWidth) expected ^= (bits_of(x) >> read & 1) << changed;
    }
    ASSERT_EQ(bits_of(s(x)), expected) << to_string(s) << " at " << +x;
    ASSERT_EQ(s(s(x)), x) << to_string(s);
  }
}

static_assert(Swizzle(1, 0, 40)(5) == 5 && Swizzle(1, 0, -40)(5) == 5);
static_assert(Swizzle(1, 0, -40)(std::int64_t{5}) == (std::int64_t{1} << 40) + 5);
static_assert(Swizzle(2, 28, 2)(-1) == ~(3 << 28));

TEST(Swizzle, OfAnyIntegerIsItsOwnInverse) {
  moves_bits_of_its_own<std::int8_t>();
  moves_bits_of_its_own<std::uint16_t>();
  moves_bits_of_its_own<std::int32_t>();
  moves_bits_of_its_own<std::uint32_t>();
  moves_bits_of_its_own<std::int64_t>();
  moves_bits_of_its_own<std::uint64_t>();
}

TEST(Swizzle, RefusesWhatIsNotOne) {
  EXPECT_EQ(sentence([] { Swizzle(3, 3, 2); }),
            "Swizzle(3, 3, 2): the shift is less than the number of bits, so the groups overlap");
  EXPECT_EQ(sentence([] { Swizzle(3, 3, -2); }),
            "Swizzle(3, 3, -2): the shift is less than the number of bits, so the groups overlap");
  EXPECT_EQ(sentence([] { Swizzle(-1, 3, 3); }),
            "Swizzle(-1, 3, 3): the number of bits is negative");
  EXPECT_EQ(sentence([] { Swizzle(3, -1, 3); }), "Swizzle(3, -1, 3): the base is negative");
  EXPECT_EQ(sentence([] { Swizzle(20, 30, 20); }),
            "Swizzle(20, 30, 20): the groups reach above bit 62");
  EXPECT_EQ(sentence([] { Swizzle(20, 22, 20); }), "");
}

TEST(Swizzle, RestatedForOtherWidthsIsTheSameMap) {
  for_all_swizzles([](Swizzle const& s) {
    for (std::int64_t n : {1, 2, 4, 8, 16}) {
      Swizzle const narrow = downcast(s, n);
      for (std::int64_t x = 0; x < 512; ++x) {
        for (std::int64_t k = 0; k < n; ++k)
          ASSERT_EQ(narrow(n * x + k), n * s(x) + k) << to_string(s);
      }
      // A wider element exists as a whole exactly where all its parts move together.
      bool together = true;
      for (std::int64_t x = 0; x < 4096 && together; ++x) together = s(x) == s(x / n * n) + x % n;
      std::string const refusal = sentence([&] {
        Swizzle const wide = upcast(s, n);
        for (std::int64_t x = 0; x < 4096; ++x)
          ASSERT_EQ(wide(x / n), s(x) / n) << to_string(s) << " by " << n;
      });
      ASSERT_EQ(refusal.empty(), together) << to_string(s) << " by " << n << ": " << refusal;
    }
  });
  EXPECT_EQ(recast(Swizzle(3, 3, 3), 16, 8), Swizzle(3, 4, 3));
  EXPECT_EQ(recast(Swizzle(3, 4, 3), 8, 32), Swizzle(3, 2, 3));
  EXPECT_EQ(sentence([] { upcast(Swizzle(3, 1, 3), 4); }),
            "upcast(Sw<3,1,3>, 4): the swizzle reorders the elements inside a wider one");
  EXPECT_EQ(sentence([] { upcast(Swizzle(3, 3, 3), 3); }),
            "upcast(3): the factor must be a power of two");
  EXPECT_EQ(sentence([] { recast(Swizzle(3, 3, 3), 6, 16); }),
            "recast(6, 16): one element width must divide the other");
}

TEST(SwizzledLayout, TextReadsBack) {
  for (char const* text : {"Sw<3,4,3> o (8,64):(64,1)", "Sw<3,4,3> o 16 o (8,64):(64,1)",
                           "Sw<2,0,-3> o -8 o (4,(2,3)):(1,(4,8))", "Sw<0,2,1> o 7:1", "7:1",
                           "Sw<0,0,0> o 3 o 7:1", "Sw<1,0,1> o (4):(1)"}) {
    EXPECT_EQ(to_string(parse_swizzled_layout(text)), text);
  }
  EXPECT_EQ(parse_swizzled_layout("(8,64):(64,1)"), SwizzledLayout(row_major(8, 64)));
  EXPECT_EQ(parse_swizzled_layout(" Sw<3,4,3>o(8,64)"),
            SwizzledLayout(Swizzle(3, 4, 3), col_major(8, 64)));
  EXPECT_EQ(to_string(Swizzle(2, 3, -4)), "Sw<2,3,-4>");
  EXPECT_EQ(sentence([] { parse_swizzled_layout("Sw<3,4> o 8:1"); }),
            "parse(\"Sw<3,4> o 8:1\", column 7): Sw<bits,base,shift> was expected");
  EXPECT_EQ(sentence([] { parse_swizzled_layout("Sw<3,4,3> (8,64)"); }),
            "parse(\"Sw<3,4,3> (8,64)\", column 11): > o was expected after a swizzle");
  EXPECT_EQ(sentence([] { parse_swizzled_layout("Sx o 8:1"); }),
            "parse(\"Sx o 8:1\"): Sw<bits,base,shift> or a layout was expected");
}

TEST(SwizzledLayout, RefusesCoordinates) {
  EXPECT_EQ(
      sentence([] { SwizzledLayout(Swizzle(1, 0, 1), identity_layout(shape(4, 4))); }),
      "SwizzledLayout((4,4):(1@0,1@1)): the layout's values are coordinates, which have no bits to swizzle");
}

TEST(SwizzledLayout, EqualityIsOfEveryPart) {
  SwizzledLayout const s(Swizzle(3, 3, 3), 8, row_major(8, 64));
  EXPECT_EQ(s, SwizzledLayout(Swizzle(3, 3, 3), 8, row_major(8, 64)));
  EXPECT_NE(s, SwizzledLayout(Swizzle(3, 3, 4), 8, row_major(8, 64)));
  EXPECT_NE(s, SwizzledLayout(Swizzle(3, 3, 3), 0, row_major(8, 64)));
  EXPECT_NE(s, SwizzledLayout(Swizzle(3, 3, 3), 8, col_major(8, 64)));
}

Swizzle any_swizzle() {
  int const bits = *rc::gen::inRange(0, 4);
  int const base = *rc::gen::inRange(0, 4);
  int const distance = *rc::gen::inRange(bits, 5);
  return {bits, base, *rc::gen::element(1, -1) * distance};
}

/// A layout of up to three modes with extents up to 8; strides compact, padded, broadcast
/// or anything.
Layout any_layout() {
  Tuple extents;
  Tuple strides;
  int const rank = *rc::gen::inRange(1, 4);
  std::int64_t compact = 1;
  for (int i = 0; i < rank; ++i) {
    std::int64_t const extent = *rc::gen::inRange(1, 9);
    extents.append_leaf(extent);
    strides.append_leaf(*rc::gen::weightedOneOf<std::int64_t>(
        {{3, rc::gen::just(compact)},
         {1, rc::gen::inRange<std::int64_t>(0, 40)},
         {1, rc::gen::element<std::int64_t>(8, 16, 32, 64)}}));
    compact *= extent;
  }
  detail::wrap(extents);
  detail::wrap(strides);
  return layout(extents, strides);
}

SwizzledLayout any_swizzled() {
  return {any_swizzle(),
          *rc::gen::weightedOneOf<std::int64_t>(
              {{2, rc::gen::just<std::int64_t>(0)}, {1, rc::gen::inRange<std::int64_t>(0, 200)}}),
          any_layout()};
}

RC_GTEST_PROP(SwizzledLayoutLaws, IsTheSwizzleAfterTheLayout, ()) {
  SwizzledLayout const s = any_swizzled();
  for (std::int64_t i = 0; i < s.size(); ++i) {
    RC_ASSERT(s(i) == moved_bit_by_bit(s.swizzle.bits, s.swizzle.base, s.swizzle.shift,
                                       s.offset + s.layout(i)));
  }
}

RC_GTEST_PROP(SwizzledLayoutLaws, CosizeIsOneMoreThanTheGreatestOffset, ()) {
  SwizzledLayout const s = any_swizzled();
  std::int64_t greatest = 0;
  for (std::int64_t i = 0; i < s.size(); ++i) greatest = std::max(greatest, s(i));
  RC_ASSERT(cosize(s) == greatest + 1);
}

TEST(SwizzledLayoutCosize, OfManyElementsNeedsFewOfThem) {
  // The last whole block of 2^7 offsets is full, and the swizzle stays inside of blocks.
  EXPECT_EQ(cosize(SwizzledLayout(Swizzle(1, 2, 4), layout(Tuple(3000000000)))), 3000000000);
  // 2^32 rows of a length that is no power of two: the greatest offset is that of the last row's
  // swizzled end.
  SwizzledLayout const rows(Swizzle(3, 0, 3),
                            layout(shape(24, std::int64_t{1} << 32), stride(1, 24)));
  EXPECT_EQ(cosize(rows), std::int64_t{24} << 32);
  // Too many offsets to try, none of which the others determine: refused at once.
  EXPECT_THROW(cosize(SwizzledLayout(Swizzle(1, 0, 50), layout(Tuple(1000000007), Tuple(3)))),
               layout_error);
}

RC_GTEST_PROP(SwizzledLayoutLaws, CompositionCoalesceFlattenAndWithShapeKeepTheMap, ()) {
  SwizzledLayout const s = any_swizzled();
  std::int64_t const step = *rc::gen::inRange<std::int64_t>(1, 5);
  Layout const inner = layout(Tuple(std::max<std::int64_t>(1, s.size() / step)), Tuple(step));
  try {
    SwizzledLayout const composed = composition(s, inner);
    for (std::int64_t i = 0; i < inner.size(); ++i) RC_ASSERT(composed(i) == s(inner(i)));
  } catch (layout_error const&) {
    RC_TAG("refused");
  }
  SwizzledLayout const fewest = coalesce(s);
  SwizzledLayout const flat = flatten(s);
  SwizzledLayout const reshaped = with_shape(s, Tuple(s.size()));
  for (std::int64_t i = 0; i < s.size(); ++i) {
    RC_ASSERT(fewest(i) == s(i));
    RC_ASSERT(flat(i) == s(i));
    RC_ASSERT(reshaped(i) == s(i));
  }
}

RC_GTEST_PROP(SwizzledLayoutLaws, SliceIsTheMapAtTheCoordinate, ()) {
  SwizzledLayout const s = {any_swizzle(), *rc::gen::inRange<std::int64_t>(0, 64),
                            layout(tuple(8, 6), tuple(*rc::gen::inRange<std::int64_t>(1, 64), 1))};
  std::int64_t const row = *rc::gen::inRange<std::int64_t>(0, 8);
  SwizzledLayout const kept = slice(coord(row, _), s);
  RC_ASSERT(kept.size() == 6);
  for (std::int64_t i = 0; i < 6; ++i) RC_ASSERT(kept(i) == s(row, i));
}

RC_GTEST_PROP(SwizzledLayoutLaws, DividesReorderTheMap, ()) {
  SwizzledLayout const s(
      any_swizzle(), 0,
      layout(tuple(8, 12), *rc::gen::element(tuple(12, 1), tuple(1, 8), tuple(16, 1))));
  Tiler const tiler = *rc::gen::element(Tiler(tuple(4, 3)), Tiler(tuple(2, 6)), Tiler(tuple(8, 4)));
  Layout const places = zipped_divide(col_major(8, 12), tiler);
  SwizzledLayout const divided = zipped_divide(s, tiler);
  for (std::int64_t i = 0; i < s.size(); ++i) RC_ASSERT(divided(i) == s(places(i)));
  RC_ASSERT(logical_divide(s, tiler).layout == logical_divide(s.layout, tiler));
  RC_ASSERT(tiled_divide(s, tiler).layout == tiled_divide(s.layout, tiler));
  RC_ASSERT(flat_divide(s, tiler).layout == flat_divide(s.layout, tiler));
  RC_ASSERT(composition(s, tiler).layout == composition(s.layout, tiler));
}

TEST(SwizzledLayout, TileToShapeRepeatsTheAtom) {
  SwizzledLayout const atom(Swizzle(3, 3, 3), row_major(8, 64));
  SwizzledLayout const tile = tile_to_shape(atom, shape(32, 128));
  EXPECT_EQ(to_string(tile), "Sw<3,3,3> o ((8,4),(64,2)):((64,512),(1,2048))");
  EXPECT_EQ(to_string(tile_to_shape(atom, shape(32, 128), tuple(2, 1))),
            "Sw<3,3,3> o ((8,4),(64,2)):((64,1024),(1,512))");
  std::set<std::int64_t> offsets;
  for (std::int64_t m = 0; m < 32; ++m) {
    for (std::int64_t n = 0; n < 128; ++n) {
      EXPECT_EQ(tile(m, n), atom(m % 8, n % 64) + 512 * (m / 8 + 4 * (n / 64)));
      offsets.insert(tile(m, n));
    }
  }
  EXPECT_EQ(offsets.size(), 32U * 128U);
  EXPECT_EQ(*offsets.rbegin(), tile.cosize() - 1);
}

TEST(SwizzledLayout, RecastIsTheSamePlaceInOtherElements) {
  SwizzledLayout const half(Swizzle(3, 3, 3), 64, row_major(8, 64));
  SwizzledLayout const bytes = recast(half, 16, 8);
  EXPECT_EQ(to_string(bytes), "Sw<3,4,3> o 128 o (8,128):(128,1)");
  for (std::int64_t m = 0; m < 8; ++m) {
    for (std::int64_t n = 0; n < 128; ++n) EXPECT_EQ(bytes(m, n), 2 * half(m, n / 2) + n % 2);
  }
  SwizzledLayout const vectors = recast(half, 16, 128);
  EXPECT_EQ(to_string(vectors), "Sw<3,0,3> o 8 o (8,8):(8,1)");
  for (std::int64_t m = 0; m < 8; ++m) {
    for (std::int64_t n = 0; n < 64; ++n) EXPECT_EQ(vectors(m, n / 8), half(m, n) / 8);
  }
  EXPECT_EQ(recast(bytes, 8, 16), half);
  EXPECT_EQ(sentence([&] { upcast(SwizzledLayout(Swizzle(3, 3, 3), 4, row_major(8, 64)), 8); }),
            "upcast(Sw<3,3,3> o 4 o (8,64):(64,1), 8): the offset begins inside a larger element");
}

TEST(SwizzledLayout, OffsetOfAgreesWithTheMap) {
  constexpr SwizzledLayout tile =
      tile_to_shape(SwizzledLayout(Swizzle(3, 3, 3), 512, row_major(8, 64)), shape(16, 192));
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 192; ++n) EXPECT_EQ(offset_of<tile>(m, n), tile(m, n));
  }
  for (int i = 0; i < 16 * 192; ++i) EXPECT_EQ(offset_of<tile>(i), tile(i));
}

}  // namespace
}  // namespace tegula
