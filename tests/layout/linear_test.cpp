// Linear layouts over F2 against their definition, and address splits against the offsets they
// stand for.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "refusal.hpp"
#include "tegula/layout/address_split.hpp"
#include "tegula/layout/linear_layout.hpp"
#include "tegula/layout/swizzled_layout.hpp"

namespace tegula {
namespace {

static_assert(linear_layout(SwizzledLayout(Swizzle(3, 3, 3), row_major(8, 64))).columns[0] == 72);
static_assert(composition(linear_layout(Swizzle(3, 4, 3), 10),
                          linear_layout(Swizzle(3, 4, 3), 10)) == linear_identity(10));

LinearLayout any_map(int inputs, int outputs) {
  LinearLayout map;
  map.inputs = inputs;
  map.outputs = outputs;
  for (int i = 0; i < inputs; ++i)
    map.columns[i] = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << outputs);
  return map;
}

std::set<std::uint64_t> values_of(LinearLayout const& map) {
  std::set<std::uint64_t> values;
  for (std::uint64_t x = 0; x < std::uint64_t{1} << map.inputs; ++x) values.insert(map(x));
  return values;
}

TEST(LinearLayout, TakesExactlyTheLinearLayouts) {
  int taken = 0;
  for (std::int64_t e0 : {1, 2, 4, 8}) {
    for (std::int64_t e1 : {1, 2, 3, 4}) {
      for (std::int64_t d0 = 0; d0 <= 12; ++d0) {
        for (std::int64_t d1 = 0; d1 <= 12; ++d1) {
          Layout const l = layout(tuple(e0, e1), tuple(d0, d1));
          bool linear = e1 != 3;
          for (std::int64_t x = 0; x < l.size() && linear; ++x) {
            for (std::int64_t y = 0; y < l.size() && linear; ++y)
              linear = l(x ^ y) == (l(x) ^ l(y));
          }
          std::string const refusal = sentence([&] {
            LinearLayout const map = linear_layout(l);
            ASSERT_EQ(1 << map.inputs, l.size());
            for (std::int64_t x = 0; x < l.size(); ++x)
              ASSERT_EQ(map(static_cast<std::uint64_t>(x)), static_cast<std::uint64_t>(l(x)));
            ++taken;
          });
          ASSERT_EQ(refusal.empty(), linear)
              << e0 << "," << e1 << ":" << d0 << "," << d1 << " " << refusal;
        }
      }
    }
  }
  EXPECT_GT(taken, 500);
}

TEST(LinearLayout, RefusalsAreSentences) {
  EXPECT_EQ(sentence([] { linear_layout(layout(tuple(3, 4))); }),
            "linear_layout((3,4):(1,3)): an extent is not a power of two");
  EXPECT_EQ(sentence([] { linear_layout(layout(tuple(4, 4), tuple(-1, 4))); }),
            "linear_layout((4,4):(-1,4)): a stride is negative");
  EXPECT_EQ(
      sentence([] { linear_layout(layout(tuple(4, 4), tuple(1, 2))); }),
      "linear_layout((4,4):(1,2)): two index bits share a bit of the offset, so that sums carry");
  EXPECT_EQ(
      sentence([] { linear_layout(SwizzledLayout(Swizzle(1, 0, 1), 2, col_major(4, 4))); }),
      "linear_layout(Sw<1,0,1> o 2 o (4,4):(1,4)): the offset is not zero, so that 0 is not mapped to 0");
  EXPECT_EQ(sentence([] { linear_layout(Swizzle(3, 3, 3), 8); }),
            "linear_layout(Sw<3,3,3>, 8): the swizzle reaches above the bits given");
  EXPECT_EQ(
      sentence([] { composition(linear_identity(3), linear_identity(4)); }),
      "composition(4, 3): the inner linear map has more output bits than the outer has input bits");
  EXPECT_EQ(
      sentence([] {
        right_inverse(linear_layout({1, 2, 3}, 3));
      }),
      "right_inverse(2, 3): the linear map is not surjective: of rank less than its output bits");
  EXPECT_EQ(
      sentence([] {
        left_inverse(linear_layout({1, 2, 3}, 3));
      }),
      "left_inverse(2, 3): the linear map is not injective: its rank is less than its input bits");
  EXPECT_EQ(sentence([] {
              linear_layout({1, 8}, 3);
            }),
            "linear_layout(3): a column has a bit above the output bits");
  EXPECT_EQ(sentence([] { concat(linear_identity(30), linear_identity(30)); }),
            "concat(30, 30): at most 48 input bits are held");
  EXPECT_EQ(sentence([] { product(linear_identity(30), linear_identity(30)); }),
            "product(30, 30): at most 48 output bits are held");
  EXPECT_EQ(sentence([] {
              layout_of(linear_layout({1, 3}));
            }),
            "layout_of(): two columns share a bit: a layout adds where the map exclusive-ors");
}

RC_GTEST_PROP(LinearLayoutLaws, IsLinear, ()) {
  LinearLayout const map = any_map(*rc::gen::inRange(0, 9), *rc::gen::inRange(0, 9));
  std::uint64_t const x = *rc::gen::inRange<std::uint64_t>(0, 512);
  std::uint64_t const y = *rc::gen::inRange<std::uint64_t>(0, 512);
  RC_ASSERT(map(x ^ y) == (map(x) ^ map(y)));
}

RC_GTEST_PROP(LinearLayoutLaws, CompositionConcatAndProduct, ()) {
  int const middle = *rc::gen::inRange(1, 8);
  LinearLayout const a = any_map(middle, *rc::gen::inRange(1, 8));
  LinearLayout const b = any_map(*rc::gen::inRange(1, 7), middle);
  LinearLayout const c = any_map(*rc::gen::inRange(1, 7), a.outputs);
  LinearLayout const both = concat(b, any_map(2, middle));
  for (std::uint64_t x = 0; x < std::uint64_t{1} << b.inputs; ++x) {
    RC_ASSERT(composition(a, b)(x) == a(b(x)));
    RC_ASSERT(both(x) == b(x));
    for (std::uint64_t y = 0; y < std::uint64_t{1} << c.inputs; ++y) {
      RC_ASSERT(product(b, c)(x | y << b.inputs) == (b(x) | c(y) << b.outputs));
      RC_ASSERT(concat(composition(a, b), c)(x | y << b.inputs) == (a(b(x)) ^ c(y)));
    }
  }
}

RC_GTEST_PROP(LinearLayoutLaws, ImageAndKernelAreThoseOfTheTable, ()) {
  LinearLayout const map = any_map(*rc::gen::inRange(0, 8), *rc::gen::inRange(0, 8));
  RC_ASSERT(values_of(image(map)) == values_of(map));
  RC_ASSERT(image(map).inputs == rank(map));
  RC_ASSERT(injective(image(map)) && injective(kernel(map)));
  std::set<std::uint64_t> zeros;
  for (std::uint64_t x = 0; x < std::uint64_t{1} << map.inputs; ++x) {
    if (map(x) == 0) zeros.insert(x);
  }
  RC_ASSERT(values_of(kernel(map)) == zeros);
  RC_ASSERT(injective(map) == (values_of(map).size() == std::size_t{1} << map.inputs));
  RC_ASSERT(surjective(map) == (values_of(map).size() == std::size_t{1} << map.outputs));
}

RC_GTEST_PROP(LinearLayoutLaws, InversesInvertOrRefuse, ()) {
  LinearLayout const map = any_map(*rc::gen::inRange(1, 8), *rc::gen::inRange(1, 8));
  std::string const right = sentence(
      [&] { RC_ASSERT(composition(map, right_inverse(map)) == linear_identity(map.outputs)); });
  RC_ASSERT((right.empty()) == surjective(map));
  std::string const left = sentence(
      [&] { RC_ASSERT(composition(left_inverse(map), map) == linear_identity(map.inputs)); });
  RC_ASSERT((left.empty()) == injective(map));
}

TEST(LinearLayout, WithoutSharedBitsIsALayoutAgain) {
  for (Layout const& l :
       {row_major(8, 64), col_major(4, 4), layout(tuple(4, tuple(2, 8)), tuple(2, tuple(64, 8))),
        layout(Tuple(1))}) {
    Layout const back = layout_of(linear_layout(l));
    EXPECT_EQ(linear_layout(back), linear_layout(l));
    EXPECT_EQ(back, coalesce(l));
  }
}

/// The definition of an address split, at every thread and step.
void expect_splits(AddressSplit const& split, SwizzledLayout const& memory,
                   Layout const& threads_steps, int bytes) {
  std::int64_t const threads = threads_steps[0].size();
  ASSERT_EQ(split.steps, threads_steps[1].size());
  for (std::int64_t t = 0; t < threads; ++t) {
    auto const first = static_cast<std::uint32_t>(memory(threads_steps(t)) * bytes);
    for (int step = 0; step < split.steps; ++step) {
      auto const offset =
          static_cast<std::uint32_t>(memory(threads_steps(t + step * threads)) * bytes);
      ASSERT_EQ((first ^ split.xor_part(step)) + split.add_part(step), offset)
          << "thread " << t << ", step " << step;
      ASSERT_EQ(split(first, step), offset);
    }
  }
}

/// ldmatrix rows of a (rows, columns) tile: 16 rows by two halves of 16 columns; steps along
/// columns, then rows.
Layout matrix_rows(int rows, int columns) {
  return layout(tuple(tuple(16, 2), tuple(columns / 16, rows / 16)),
                tuple(tuple(1, 8 * rows), tuple(16 * rows, 16)));
}

TEST(AddressSplit, HoldsForEveryThreadAndStep) {
  for (int columns : {32, 64, 128}) {
    for (int rows : {16, 32, 64}) {
      Layout const steps = matrix_rows(rows, columns);
      if (steps[1].size() > AddressSplit::kMaxSteps) continue;
      for (int bits = 0; bits <= 3; ++bits) {
        if (8 << bits > columns) continue;
        for (int bytes : {1, 2, 4}) {
          SwizzledLayout const atom(Swizzle(bits, 3, 3), row_major(8, 8 << bits));
          for (SwizzledLayout const& memory :
               {SwizzledLayout(Swizzle(bits, 3, 3), row_major(rows, columns)),
                tile_to_shape(atom, shape(rows, columns))}) {
            AddressSplit const split = address_split(memory, steps, bytes);
            expect_splits(split, memory, steps, bytes);
            // The one of the linear map, whose addends share no bit with what threads use.
            SwizzledLayout const in_bytes(
                downcast(memory.swizzle, bytes),
                composition(layout(Tuple(memory.cosize()), Tuple(bytes)), memory.layout));
            LinearLayout const map = composition(linear_layout(in_bytes), linear_layout(steps));
            AddressSplit const linear = address_split(map, 5);
            expect_splits(linear, memory, steps, bytes);
            for (int step = 0; step < linear.steps; ++step) {
              EXPECT_EQ(linear.xor_part(step) & ~linear.thread_bits, 0U);
              EXPECT_EQ(linear.add_part(step) & linear.thread_bits, 0U);
            }
          }
        }
      }
    }
  }
}

TEST(AddressSplit, WithoutASwizzleIsAnAddition) {
  for (Layout const& memory :
       {row_major(64, 64), layout(tuple(64, 64), tuple(72, 1)), row_major(64, 96)}) {
    int const columns = static_cast<int>(memory[1].size());
    AddressSplit const split = address_split(memory, matrix_rows(64, columns), 2);
    expect_splits(split, memory, matrix_rows(64, columns), 2);
    for (int step = 0; step < split.steps; ++step) EXPECT_EQ(split.xor_part(step), 0U);
  }
}

TEST(AddressSplit, ThreeBlocksOfColumnsAreNotLinearButSplit) {
  SwizzledLayout const memory =
      tile_to_shape(SwizzledLayout(Swizzle(2, 3, 3), row_major(8, 32)), shape(64, 96));
  Layout const steps = matrix_rows(64, 96);
  EXPECT_NE(sentence([&] { linear_layout(memory); }), "");
  AddressSplit const split = address_split(memory, steps, 2);
  expect_splits(split, memory, steps, 2);
  EXPECT_EQ(split.xor_part(1), 32U);           // 16 columns on, within a block of 32
  EXPECT_EQ(split.add_part(2), 64U * 32 * 2);  // the next block
}

TEST(AddressSplit, RefusesWhatHasNone) {
  // Rows of 96 elements carry into the bits that the swizzle reads, differently for each thread.
  SwizzledLayout const memory(Swizzle(3, 3, 3), row_major(64, 96));
  EXPECT_EQ(
      sentence([&] { address_split(memory, matrix_rows(64, 96), 2); }),
      "address_split(Sw<3,3,3> o (64,96):(96,1), ((16,2),(6,4)):((1,512),(1024,16)), 2): a step is not an exclusive-or and an "
      "addition common to all threads");
  EXPECT_EQ(sentence([] { address_split(row_major(8, 8), Layout(layout(Tuple(8))), 2); }),
            "address_split(8:1): the second operand must have the modes (thread, step)");
  EXPECT_EQ(sentence([] { address_split(row_major(8, 128), layout(tuple(8, 128)), 2); }),
            "address_split((8,128):(1,8)): more than 64 steps (AddressSplit::kMaxSteps)");
}

}  // namespace
}  // namespace tegula
