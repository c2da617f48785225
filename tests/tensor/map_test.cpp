#include "tegula/tensor/map.hpp"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "refusal.hpp"
#include "tegula/layout/text.hpp"
#include "tegula/tensor/partition.hpp"
#include "tegula/tensor/tiled_copy.hpp"

/// Maps as types: one form for equal maps, and the coordinates of the layout that they were
/// made from.
namespace tegula {
namespace {

#define TEGULA_TEST_SOURCE(NAME, TEXT)    \
  struct NAME {                           \
    static constexpr Layout value = TEXT; \
  }

TEGULA_TEST_SOURCE(Accumulator, "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))"_layout);
TEGULA_TEST_SOURCE(Tile, "(128,64,4):(1@0,1@1,64@1)"_layout);
TEGULA_TEST_SOURCE(Odd, "((3,5),7):((2@0,7@2),3@1)"_layout);
TEGULA_TEST_SOURCE(Repeats, "((2,4,2),(3,2)):((1@0,0,2@0),(0,1@1))"_layout);
TEGULA_TEST_SOURCE(Splits, "((2,4,8),2):((1@0,2@0,8@0),1@1)"_layout);
TEGULA_TEST_SOURCE(One, "(1,1):(0,0)"_layout);
TEGULA_TEST_SOURCE(Nested, "(((2,4),(8,1)),2):(((1@0,2@0),(8@0,0)),1@1)"_layout);
TEGULA_TEST_SOURCE(Outer, "((8,4),(4,8)):((1@1,16@0),(1@0,8@1))"_layout);
TEGULA_TEST_SOURCE(Inner, "((4,8),(2,4)):((8@0,4@1),(4@0,1@1))"_layout);
TEGULA_TEST_SOURCE(Bare, "32:1@0"_layout);

/// coordinate<Axis>(map, i, j...) and of the flat index, against the layout's own.
template <class Source> void check_coordinates() {
  using M = MapOf<Source>;
  constexpr Layout layout = Source::value;
  SCOPED_TRACE(to_string(layout) + " as " + to_string(M::layout));
  ASSERT_EQ(map_size<M>, layout.size());
  for (int i = 0; i < layout.size(); ++i) {
    Tuple const expected = layout.has_axes() ? layout.coordinate(i) : tuple(0);
    auto const at = [&](int axis) { return axis < expected.count ? expected.values[axis] : 0; };
    EXPECT_EQ(coordinate<0>(M{}, i), at(0));
    EXPECT_EQ(coordinate<1>(M{}, i), at(1));
    EXPECT_EQ(coordinate<2>(M{}, i), at(2));
    if constexpr (M::rank == 2) {
      int const first = i % mode_size<mode_at<0, M>>, second = i / mode_size<mode_at<0, M>>;
      EXPECT_EQ(coordinate<0>(M{}, first, second), at(0));
      EXPECT_EQ(coordinate<1>(M{}, first, second), at(1));
    }
    EXPECT_EQ(coordinate<0>(group_t<M>{}, i), at(0));
    EXPECT_EQ(coordinate<1>(flatten_t<group_t<M>>{}, i), at(1));
  }
}

TEST(Map, CoordinatesAreTheLayouts) {
  check_coordinates<Accumulator>();
  check_coordinates<Tile>();
  check_coordinates<Odd>();
  check_coordinates<Repeats>();
  check_coordinates<Splits>();
  check_coordinates<One>();
  check_coordinates<Bare>();
}

TEST(Map, EqualMapsAreOneType) {
  static_assert(std::is_same_v<MapOf<Nested>, MapOf<Splits>>);
  static_assert(std::is_same_v<MapOf<Splits>, Map<Mode<Along<0, 64, 1>>, Mode<Along<1, 2, 1>>>>);
  static_assert(
      std::is_same_v<identity_map<128, 64>, Map<Mode<Along<0, 128, 1>>, Mode<Along<1, 64, 1>>>>);
  static_assert(std::is_same_v<MapOf<One>, Map<Mode<>, Mode<>>>);
}

TEST(Map, CompositionLeadsThroughTheOuterMap) {
  using Both = compose_t<MapOf<Outer>, MapOf<Inner>>;
  for (int i = 0; i < map_size<Both>; ++i) {
    int const m = coordinate<0>(MapOf<Inner>{}, i), n = coordinate<1>(MapOf<Inner>{}, i);
    EXPECT_EQ(coordinate<0>(Both{}, i), coordinate<0>(MapOf<Outer>{}, m, n));
    EXPECT_EQ(coordinate<1>(Both{}, i), coordinate<1>(MapOf<Outer>{}, m, n));
  }
}

/// Threads and values of a partition name each element of the tensor once.
template <Layout Threads, class M, int... Modes> void check_partition() {
  using Shares = detail::LocalPartition<Threads, M, Modes...>;
  SCOPED_TRACE(to_string(Threads));
  std::vector<int> seen(static_cast<std::size_t>(map_size<M>));
  for (int t = 0; t < Threads.size(); ++t) {
    // the thread's coordinate in the threads' shape, by search
    for (int v = 0; v < map_size<typename Shares::Values>; ++v) {
      int const m =
          coordinate<0>(typename Shares::Begins{}, t) + coordinate<0>(typename Shares::Values{}, v);
      int const n =
          coordinate<1>(typename Shares::Begins{}, t) + coordinate<1>(typename Shares::Values{}, v);
      ++seen[static_cast<std::size_t>(m + mode_size<mode_at<0, M>> * n)];
      EXPECT_EQ(Threads(m % Threads[0].size(), n % Threads[1].size()), t);
    }
  }
  for (int const count : seen) EXPECT_EQ(count, 1);
}

TEST(LocalPartition, SharesEachElementOnceAsTheThreadsLie) {
  check_partition<"(8,4):(1,8)"_layout, identity_map<32, 16>, 0, 1>();
  check_partition<"(8,4):(4,1)"_layout, identity_map<8, 16>, 0, 1>();
  check_partition<"((2,4),(2,2)):((1,8),(2,4))"_layout, identity_map<16, 4>, 0, 1>();
}

TEST(LocalPartition, OneModeOfTheThreads) {
  constexpr Layout threads = "(16,8):(1,16)"_layout;
  using Rows = detail::LocalPartition<threads, identity_map<64, 8>, 0, X>;
  using Columns = detail::LocalPartition<threads, identity_map<64, 8>, 1, X>;
  for (int t = 0; t < 128; ++t) {
    EXPECT_EQ(coordinate<0>(Rows::Begins{}, t), t % 16);
    EXPECT_EQ(coordinate<0>(Columns::Begins{}, t), t / 16);
    EXPECT_EQ(coordinate<1>(Columns::Begins{}, t), 0);
  }
  EXPECT_EQ(map_size<Rows::Values>, 4 * 8);
  EXPECT_EQ(map_size<Columns::Values>, 8 * 8);
}

TEST(TiledCopySpec, CoversTheTileOrSaysWhyNot) {
  for (int threads : {32, 96, 128, 256}) {
    for (int vector : {1, 2, 4, 8}) {
      for (int contiguous : {0, 1}) {
        for (int rows : {16, 24, 64}) {
          RowShares const s{.threads = threads,
                            .m = contiguous == 1 ? rows : 64,
                            .n = contiguous == 1 ? 64 : rows,
                            .vector = vector,
                            .contiguous = contiguous,
                            .block = 32};
          int const pieces = 32 / vector;
          bool const fits = threads % pieces == 0 && rows % (threads / pieces) == 0;
          EXPECT_EQ(sentence([&] { share_rows(s); }).empty(), fits)
              << threads << " " << vector << " " << rows;
        }
      }
    }
  }
  EXPECT_EQ(sentence([] { share_rows({.threads = 96, .m = 64, .n = 64, .vector = 8}); }),
            "TiledCopy(12, 1, 64): the rows copied at once must divide the tile's");
  EXPECT_EQ(sentence([] { share_rows({.threads = 128, .m = 64, .n = 60, .vector = 8}); }),
            "TiledCopy(8, 60, 60): vectors must divide a block, and blocks the contiguous extent");
  EXPECT_EQ(
      sentence([] { make_tiled_copy("(32,8):(1,32)"_layout, tuple(4, 2)); }),
      "TiledCopy((32,8):(1,32), (4,2)): a thread's values must be neighbours along one axis: one extent is 1");
}

}  // namespace
}  // namespace tegula
