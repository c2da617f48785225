// Bank conflicts against an oracle that serves each phase word by word, against facts known from
// the hardware, and derived swizzles against a search over all of them.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "refusal.hpp"
#include "tegula/layout/derive_swizzle.hpp"
#include "tegula/layout/parse.hpp"
#include "tegula/layout/swizzled_layout.hpp"
#include "tegula/layout/text.hpp"

namespace tegula {
namespace {

/// ldmatrix.x4 on a (rows, columns) tile of 16-bit elements: (row address, element of the row and
/// steps). 16 rows by two halves of 16 columns; steps along columns, then down the rows.
constexpr Layout matrix_rows(int rows, int columns) {
  return layout(tuple(tuple(16, 2), tuple(8, columns / 16, rows / 16)),
                tuple(tuple(1, 8 * rows), tuple(rows, 16 * rows, 16)));
}

/// Copies of `vector` elements a thread, threads along the rows of the tile first, then down it, as
/// a tile is written from global memory.
constexpr Layout row_copies(int rows, int columns, int threads, int vector) {
  int const across = columns / vector;
  return layout(tuple(tuple(across, threads / across), tuple(vector, rows * across / threads)),
                tuple(tuple(vector * rows, 1), tuple(rows, threads / across)));
}

// What a kernel writes: values are template arguments, and conflicts are constant expressions.
template <SwizzledLayout L> struct Tile {
  static_assert(bank_conflicts(matrix_access(matrix_rows(64, 64), 16), L) == 0);
  static_assert(bank_conflicts(vector_access(row_copies(64, 64, 128, 8), 16, 16), L) == 0);
};
template struct Tile<SwizzledLayout(Swizzle(3, 3, 3), row_major(64, 64))>;
template struct Tile<tile_to_shape(SwizzledLayout(Swizzle(3, 3, 3), row_major(8, 64)),
                                   shape(64, 64))>;
template struct Tile<layout(tuple(64, 64), tuple(72, 1))>;
static_assert(derive_swizzle(matrix_access(matrix_rows(64, 64), 16), row_major(64, 64)) ==
              Swizzle(3, 3, 3));

/// Lanes of a phase share words; each bank serves one word a wavefront.
int wavefronts_by_word(std::vector<std::int64_t> const& addresses, int bytes) {
  std::size_t const phase = bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
  int total = 0;
  for (std::size_t first = 0; first < addresses.size(); first += phase) {
    std::map<std::int64_t, std::set<std::int64_t>> words;
    for (std::size_t lane = first; lane < std::min(first + phase, addresses.size()); ++lane) {
      for (std::int64_t byte = addresses[lane]; byte < addresses[lane] + bytes; ++byte)
        words[byte / 4 % 32].insert(byte / 4);
    }
    std::size_t worst = 0;
    for (auto const& [bank, distinct] : words) worst = std::max(worst, distinct.size());
    total += static_cast<int>(worst);
  }
  return total;
}

/// Every instruction of an access one after the other, straight from its definition. Wavefronts of
/// -1: some vector is not contiguous or not aligned.
BankReport report_by_instruction(SharedAccess const& access, SwizzledLayout const& memory) {
  BankReport report;
  std::int64_t const threads = access.threads_values[0].size();
  std::int64_t const values = access.threads_values[1].size();
  std::int64_t const lanes = std::min<std::int64_t>(threads, access.lanes);
  for (std::int64_t value = 0; value < values; value += access.vector()) {
    for (std::int64_t first = 0; first < threads; first += lanes) {
      std::vector<std::int64_t> addresses;
      for (std::int64_t thread = first; thread < first + lanes; ++thread) {
        std::int64_t const address =
            memory(access.threads_values(thread + value * threads)) * access.element_bits / 8;
        for (int i = 0; i < access.vector(); ++i) {
          if (memory(access.threads_values(thread + (value + i) * threads)) * access.element_bits /
                  8 !=
              address + i * access.element_bits / 8) {
            return {.wavefronts = -1};
          }
        }
        if (address % access.bytes != 0) return {.wavefronts = -1};
        addresses.push_back(address);
      }
      ++report.instructions;
      report.wavefronts += wavefronts_by_word(addresses, access.bytes);
      int const phase = access.bytes == 16 ? 8 : access.bytes == 8 ? 16 : 32;
      report.ideal += static_cast<int>((lanes + phase - 1) / phase);
    }
  }
  return report;
}

RC_GTEST_PROP(Wavefronts, AgreeWithServingWordByWord, ()) {
  int const bytes = *rc::gen::element(1, 2, 4, 8, 16);
  int const lanes = *rc::gen::element(1, 8, 16, 24, 32);
  int const span = *rc::gen::element(32, 128, 512, 4096);
  auto addresses = *rc::gen::container<std::vector<std::int64_t>>(
      static_cast<std::size_t>(lanes), rc::gen::inRange<std::int64_t>(0, span));
  for (std::int64_t& address : addresses) address -= address % bytes;
  RC_ASSERT(wavefronts(addresses.data(), lanes, bytes) == wavefronts_by_word(addresses, bytes));
}

TEST(Wavefronts, KnownPatterns) {
  struct Pattern {
    int lanes, bytes, stride, expected;
  };
  for (Pattern const& p : {Pattern{32, 4, 4, 1},
                           {32, 4, 0, 1},
                           {32, 4, 8, 2},
                           {32, 4, 128, 32},
                           {32, 4, 132, 1},
                           {32, 2, 2, 1},
                           {32, 1, 1, 1},
                           {32, 8, 8, 2},
                           {32, 16, 16, 4},
                           {8, 16, 16, 1},
                           {8, 16, 128, 8},
                           {16, 16, 128, 16},
                           {32, 16, 128, 32},
                           {32, 16, 144, 4},
                           {32, 16, 32, 8},
                           {32, 8, 16, 4}}) {
    std::vector<std::int64_t> addresses;
    for (int lane = 0; lane < p.lanes; ++lane)
      addresses.push_back(static_cast<std::int64_t>(lane) * p.stride);
    EXPECT_EQ(wavefronts(addresses.data(), p.lanes, p.bytes), p.expected)
        << p.lanes << " lanes of " << p.bytes << " bytes, stride " << p.stride;
  }
}

TEST(BankConflicts, KnownTiles) {
  SharedAccess const rows = matrix_access(matrix_rows(64, 64), 16);
  SharedAccess const stores = vector_access(row_copies(64, 64, 128, 8), 16, 16);
  // Rows of 128 bytes: the eight rows of a matrix lie in the same four banks, eight wavefronts
  // where one would do.
  EXPECT_EQ(bank_report(rows, row_major(64, 64)), (BankReport{16, 16 * 32, 16 * 4}));
  EXPECT_EQ(bank_conflicts(stores, row_major(64, 64)), 0);  // a quarter-warp writes one whole row
  EXPECT_EQ(bank_conflicts(rows, SwizzledLayout(Swizzle(3, 3, 3), row_major(64, 64))), 0);
  EXPECT_EQ(bank_conflicts(stores, SwizzledLayout(Swizzle(3, 3, 3), row_major(64, 64))), 0);
  EXPECT_EQ(bank_conflicts(rows, layout(tuple(64, 64), tuple(72, 1))), 0);  // padded by 16 bytes
  // Half a swizzle leaves half the conflicts: 4 rows and 2 rows to a bank.
  EXPECT_EQ(bank_report(rows, SwizzledLayout(Swizzle(1, 3, 3), row_major(64, 64))).wavefronts,
            16 * 4 * 4);
  EXPECT_EQ(bank_report(rows, SwizzledLayout(Swizzle(2, 3, 3), row_major(64, 64))).wavefronts,
            16 * 4 * 2);
  // Rows of 64 bytes need two bits, rows of 32 bytes one.
  EXPECT_EQ(bank_report(matrix_access(matrix_rows(64, 32), 16), row_major(64, 32)).wavefronts,
            8 * 4 * 4);
  EXPECT_EQ(bank_conflicts(matrix_access(matrix_rows(64, 32), 16),
                           SwizzledLayout(Swizzle(2, 3, 3), row_major(64, 32))),
            0);
  EXPECT_EQ(bank_report(matrix_access(matrix_rows(64, 16), 16), row_major(64, 16)).wavefronts,
            4 * 4 * 2);
  EXPECT_EQ(bank_conflicts(matrix_access(matrix_rows(64, 16), 16),
                           SwizzledLayout(Swizzle(1, 3, 3), row_major(64, 16))),
            0);
  // x2 and x1 are 16 and 8 addresses.
  Layout const eight = parse_layout("(8,(8,8)):(1,(8,64))");
  EXPECT_EQ(bank_report(matrix_access(eight, 16, 1), row_major(8, 64)), (BankReport{8, 64, 8}));
  Layout const sixteen = parse_layout("((8,2),(8,4)):((1,64),(8,128))");
  EXPECT_EQ(bank_report(matrix_access(sixteen, 16, 2), row_major(8, 64)), (BankReport{4, 64, 8}));
}

TEST(BankConflicts, ATransposeThroughSharedMemory) {
  // A warp writes rows of a 32 x 32 tile of 4-byte elements and reads columns.
  SharedAccess const columns = vector_access(parse_layout("(32,32):(1,32)"), 32, 4);
  SharedAccess const rows = vector_access(parse_layout("(32,32):(32,1)"), 32, 4);
  EXPECT_EQ(bank_conflicts(rows, row_major(32, 32)), 0);
  EXPECT_EQ(bank_conflicts(columns, row_major(32, 32)), 32 * 31);
  EXPECT_EQ(bank_conflicts(columns, layout(tuple(32, 32), tuple(33, 1))), 0);
  EXPECT_EQ(bank_conflicts(columns, SwizzledLayout(Swizzle(5, 0, 5), row_major(32, 32))), 0);
  EXPECT_EQ(bank_conflicts(rows, SwizzledLayout(Swizzle(5, 0, 5), row_major(32, 32))), 0);
  EXPECT_EQ(derive_swizzle({rows, columns}, row_major(32, 32)), Swizzle(5, 0, 5));
}

TEST(BankConflicts, RefusesWhatIsNoVector) {
  SharedAccess const stores = vector_access(row_copies(64, 64, 128, 8), 16, 16);
  EXPECT_EQ(
      sentence([&] { bank_conflicts(stores, col_major(64, 64)); }),
      "bank_conflicts(((8,16),(8,4)):((512,1),(64,16)), (64,64):(1,64)): the elements of one lane's vector are not contiguous in memory");
  EXPECT_EQ(
      sentence(
          [&] { bank_conflicts(stores, SwizzledLayout(Swizzle(3, 0, 6), row_major(64, 64))); }),
      "bank_conflicts(((8,16),(8,4)):((512,1),(64,16)), Sw<3,0,6> o (64,64):(64,1)): the elements of one lane's vector are not "
      "contiguous in memory");
  EXPECT_EQ(
      sentence([&] { bank_conflicts(stores, layout(tuple(64, 64), tuple(68, 1))); }),
      "bank_conflicts(((8,16),(8,4)):((512,1),(64,16)), (64,64):(68,1), 16): a lane's vector is not aligned to its own width");
  EXPECT_EQ(
      sentence([] {
        bank_conflicts(vector_access(parse_layout("(32,4):(4,1)"), 16, 16),
                       Layout(layout(Tuple(128))));
      }),
      "bank_conflicts((32,4):(4,1), 8): the values of a thread must be a whole number of vectors");
  EXPECT_EQ(
      sentence([] {
        bank_conflicts(vector_access(parse_layout("(48,4):(4,1)"), 16, 8),
                       Layout(layout(Tuple(192))));
      }),
      "bank_conflicts((48,4):(4,1), 32): the threads must be a whole number of instructions' lanes");
  EXPECT_EQ(sentence([] {
              bank_conflicts(vector_access(parse_layout("32:1"), 16, 8),
                             Layout(layout(Tuple(192))));
            }),
            "bank_conflicts(32:1): an access has the modes (thread, value)");
  EXPECT_EQ(sentence([] {
              bank_conflicts(vector_access(parse_layout("(32,4):(4,1)"), 16, 12),
                             Layout(layout(Tuple(192))));
            }),
            "bank_conflicts(12): a lane moves 1, 2, 4, 8 or 16 bytes");
  EXPECT_EQ(sentence([] { matrix_access(parse_layout("(32,8):(8,1)"), 16, 3); }),
            "matrix_access(3): 1, 2 or 4 matrices");
}

/// Coordinates of a tile, as kernels place their threads: ldmatrix rows along axis 0, halves along
/// axis 1.
Layout placed(std::vector<std::int64_t> const& extents, std::vector<std::int64_t> const& steps,
              std::vector<int> const& axes) {
  Layout result;
  for (std::size_t i = 0; i < extents.size(); ++i)
    result.append_leaf(extents[i], {steps[i], axes[i]});
  if (extents.size() > 1) detail::wrap(result);
  return result;
}

TEST(CoordinateAccess, IsTheAccessAtThoseCoordinates) {
  Layout const rows = placed({8, 2, 2}, {1, 8, 8}, {0, 0, 1});
  Layout const steps = placed({4, 4}, {16, 16}, {0, 1});
  SharedAccess const access = coordinate_access(rows, steps, 1, shape(64, 64), 16, 16);
  EXPECT_EQ(to_string(access.threads_values), "((8,2,2),(8,(4,4))):((1,8,512),(64,(16,1024)))");
  SwizzledLayout const memory(Swizzle(3, 3, 3), row_major(64, 64));
  EXPECT_EQ(bank_report(access, memory),
            bank_report(matrix_access(matrix_rows(64, 64), 16), memory));
  // One instruction; a tile with stages, of nested modes.
  EXPECT_EQ(
      bank_report(coordinate_access(rows, Layout(), 1, shape(64, 64), 16, 16), row_major(64, 64)),
      (BankReport{1, 32, 4}));
  SharedAccess const staged = coordinate_access(rows, placed({4, 2, 3}, {16, 16, 1}, {0, 1, 2}), 1,
                                                shape(64, shape(16, 2), 3), 16, 16);
  SwizzledLayout const stages(Swizzle(1, 3, 3), parse_layout("(64,(16,2),3):(16,(1,1024),2048)"));
  EXPECT_EQ(bank_report(staged, stages), (BankReport{24, 96, 96}));
  EXPECT_EQ(bank_report(staged, stages), report_by_instruction(staged, stages));
}

TEST(CoordinateAccess, RefusesCoordinatesOutsideTheTile) {
  Layout const rows = placed({8, 2, 2}, {1, 8, 8}, {0, 0, 1});
  EXPECT_EQ(
      sentence([&] { coordinate_access(rows, placed({4}, {16}, {0}), 1, shape(48, 64), 16, 16); }),
      "coordinate_access((8,2,2):(1@0,8@0,8@1), 4:16@0, (48,64)): an access leaves the tile");
  EXPECT_EQ(sentence([&] { coordinate_access(rows, Layout(), 1, shape(64, 8), 16, 16); }),
            "coordinate_access((8,2,2):(1@0,8@0,8@1), ():(), (64,8)): an access leaves the tile");
  EXPECT_EQ(
      sentence([&] { coordinate_access(rows, placed({4}, {1}, {2}), 1, shape(64, 64), 16, 16); }),
      "coordinate_access(4:1@2, (64,64)): a stride is not along a mode of the tile, or negative");
  EXPECT_EQ(
      sentence(
          [&] { coordinate_access(parse_layout("32:1"), Layout(), 1, shape(64, 64), 16, 16); }),
      "coordinate_access(32:1, (64,64)): a stride is not along a mode of the tile, or negative");
}

TEST(CoordinateAccess, RowsOfThreeBlocksReadInBlocks) {
  // Pieces of 16 bytes counted along rows of 96 elements cross the blocks of 32 in which the
  // swizzle works; counted within a block they are free of conflicts.
  SwizzledLayout const memory(Swizzle(2, 3, 3), parse_layout("(128,(32,3)):(32,(1,4096))"));
  EXPECT_EQ(bank_report(coordinate_access(placed({12, 128}, {8, 1}, {1, 0}), Layout(), 1,
                                          memory.shape(), 16, 16),
                        memory),
            (BankReport{48, 320, 192}));
  EXPECT_EQ(bank_report(coordinate_access(placed({4, 128, 3}, {8, 1, 32}, {1, 0, 1}), Layout(), 1,
                                          memory.shape(), 16, 16),
                        memory),
            (BankReport{48, 192, 192}));
}

/// Accesses and tiles of the kinds kernels have, and near misses: powers of two and not, padded,
/// swizzled, offset, blocked by three.
struct Case {
  SharedAccess access;
  SwizzledLayout memory;
};

Case any_case() {
  int const element_bits = *rc::gen::element(8, 16, 32);
  int const bytes = *rc::gen::element(1, 2, 4, 8, 16);
  int const vector = std::max(1, bytes * 8 / element_bits);
  int const rows = *rc::gen::element(8, 16, 24, 32, 64);
  int const columns = vector * *rc::gen::element(2, 3, 4, 6, 8);
  int const padding =
      *rc::gen::weightedElement<int>({{4, 0}, {1, vector}, {1, 1}, {1, 3 * vector}});
  Layout memory = layout(tuple(rows, columns), tuple(columns + padding, 1));
  if (*rc::gen::weightedElement<bool>({{3, false}, {1, true}}))
    memory = tile_to_shape(row_major(8, vector * 2), shape(rows, columns - columns % (2 * vector)));
  if (*rc::gen::weightedElement<bool>({{5, false}, {1, true}}))
    memory = col_major(rows, memory[1].size());
  int const bits = *rc::gen::inRange(0, 4);
  int const base = *rc::gen::inRange(0, 5);
  Swizzle const swizzle(bits, base, *rc::gen::element(1, 1, -1) * *rc::gen::inRange(bits, 5));
  std::int64_t const offset =
      *rc::gen::weightedElement<std::int64_t>({{4, 0}, {1, vector}, {1, 4096}});

  // Threads along the rows or down the columns; every thread a vector along the row; steps over
  // what is left.
  std::int64_t const across = memory[1].size() / vector;
  std::int64_t const vectors = rows * across;
  bool const down = *rc::gen::arbitrary<bool>();
  Layout const cells = down ? layout(tuple(rows, across), tuple(1, rows * vector))
                            : layout(tuple(across, rows), tuple(rows * vector, 1));
  std::int64_t threads = *rc::gen::element<std::int64_t>(8, 16, 32, 64);
  while (vectors % threads != 0) threads /= 2;
  int const lanes = bytes == 16 ? *rc::gen::element(8, 16, 32) : 32;
  Layout tv = make_layout(Layout(layout(Tuple(1), Tuple(0))), Layout(layout(Tuple(1), Tuple(0))));
  try {
    Layout const split = composition(cells, layout(tuple(threads, vectors / threads)));
    tv = make_layout(split[0], make_layout(layout(Tuple(vector), Tuple(rows)), split[1]));
  } catch (layout_error const&) {
    RC_DISCARD("threads do not divide the cells");
  }
  if (threads > lanes && threads % lanes != 0) RC_DISCARD("not a whole number of instructions");
  return {{.threads_values = tv,
           .element_bits = element_bits,
           .bytes = std::max(bytes, element_bits / 8),
           .lanes = lanes},
          {swizzle, offset, memory}};
}

RC_GTEST_PROP(BankReport, AgreesWithEveryInstructionByItself, ()) {
  Case const c = any_case();
  BankReport const expected = report_by_instruction(c.access, c.memory);
  std::string const refusal =
      sentence([&] { RC_ASSERT(bank_report(c.access, c.memory) == expected); });
  RC_ASSERT((refusal.empty()) == (expected.wavefronts >= 0));
  std::int64_t addresses[32];
  detail::AccessShape const shape = detail::access_shape(c.access);
  bool const uniform = detail::uniform_addresses(c.access, shape, c.memory, addresses);
  RC_CLASSIFY(uniform, "one instruction stands for all");
  RC_CLASSIFY(!uniform && expected.wavefronts >= 0, "every instruction evaluated");
  RC_CLASSIFY(expected.wavefronts < 0, "refused");
}

TEST(BankReport, OneInstructionStandsForAllInKernels) {
  // What keeps static_assert cheap: the tiles of kernels take the short way.
  std::int64_t addresses[32];
  auto const uniform = [&](SharedAccess const& access, SwizzledLayout const& memory) {
    EXPECT_EQ(bank_report(access, memory), report_by_instruction(access, memory));
    return detail::uniform_addresses(access, detail::access_shape(access), memory, addresses);
  };
  SwizzledLayout const atom(Swizzle(3, 3, 3), row_major(8, 64));
  EXPECT_TRUE(
      uniform(matrix_access(matrix_rows(128, 64), 16), tile_to_shape(atom, shape(128, 64))));
  EXPECT_TRUE(
      uniform(matrix_access(matrix_rows(128, 64), 16), layout(tuple(128, 64), tuple(72, 1))));
  EXPECT_TRUE(
      uniform(matrix_access(matrix_rows(128, 96), 16), layout(tuple(128, 96), tuple(104, 1))));
  SwizzledLayout const blocked =
      tile_to_shape(SwizzledLayout(Swizzle(2, 3, 3), row_major(8, 32)), shape(128, 96));
  EXPECT_TRUE(uniform(matrix_access(matrix_rows(128, 96), 16), blocked));
  EXPECT_EQ(bank_conflicts(matrix_access(matrix_rows(128, 96), 16), blocked), 0);
  EXPECT_FALSE(uniform(matrix_access(matrix_rows(64, 96), 16),
                       SwizzledLayout(Swizzle(3, 3, 3), row_major(64, 96))));
}

TEST(DeriveSwizzle, FindsTheKnownOnes) {
  EXPECT_EQ(derive_swizzle(matrix_access(matrix_rows(64, 64), 16), row_major(64, 64)),
            Swizzle(3, 3, 3));
  EXPECT_EQ(derive_swizzle(matrix_access(matrix_rows(64, 32), 16), row_major(64, 32)),
            Swizzle(2, 3, 3));
  EXPECT_EQ(derive_swizzle(matrix_access(matrix_rows(64, 16), 16), row_major(64, 16)),
            Swizzle(1, 3, 3));
  EXPECT_EQ(derive_swizzle(matrix_access(matrix_rows(64, 128), 16), row_major(64, 128)),
            Swizzle(3, 3, 4));
  EXPECT_EQ(derive_swizzle({matrix_access(matrix_rows(64, 64), 16),
                            vector_access(row_copies(64, 64, 128, 8), 16, 16)},
                           row_major(64, 64)),
            Swizzle(3, 3, 3));
  EXPECT_EQ(derive_swizzle(vector_access(row_copies(64, 64, 128, 8), 16, 16), row_major(64, 64)),
            Swizzle());
  EXPECT_EQ(
      derive_swizzle(matrix_access(matrix_rows(64, 64), 16), layout(tuple(64, 64), tuple(72, 1))),
      Swizzle());
}

RC_GTEST_PROP(DeriveSwizzle, IsTheSmallestThatServesEveryAccess, ()) {
  int const columns = *rc::gen::element(16, 32, 64);
  int const rows = *rc::gen::element(16, 32, 64);
  Layout const tile = row_major(rows, columns);
  std::vector<SharedAccess> accesses;
  accesses.push_back(matrix_access(matrix_rows(rows, columns), 16));
  int const vector = *rc::gen::element(2, 4, 8);
  accesses.push_back(
      vector_access(row_copies(rows, columns, 32, vector), 16, *rc::gen::element(4, 2 * vector)));
  if (*rc::gen::weightedElement<bool>({{3, false}, {1, true}})) {
    accesses.push_back(
        vector_access(layout(tuple(rows, columns), tuple(1, rows)), 16, 2));  // down the columns
    accesses.back().lanes = std::min(rows, 32);
  }
  auto const serves = [&](Swizzle const& swizzle) {
    return std::all_of(accesses.begin(), accesses.end(), [&](SharedAccess const& access) {
      BankReport const report = report_by_instruction(access, SwizzledLayout(swizzle, tile));
      return report.wavefronts == report.ideal;
    });
  };
  // Fewest bits, then lowest base, then least |shift|, positive first; offsets stay inside
  // the tile.
  bool found = serves(Swizzle());
  Swizzle smallest;
  for (int bits = 1; bits <= 5 && !found; ++bits) {
    for (int base = 0; base <= 12 && !found; ++base) {
      for (int distance = bits; distance <= 12 && !found; ++distance) {
        for (int sign : {1, -1}) {
          Swizzle const swizzle(bits, base, sign * distance);
          if (found || swizzle.period() > tile.size()) continue;
          if (serves(swizzle)) {
            found = true;
            smallest = swizzle;
          }
        }
      }
    }
  }
  std::string const refusal = sentence([&] {
    RC_ASSERT(derive_swizzle(accesses.data(), static_cast<int>(accesses.size()), tile) == smallest);
  });
  RC_ASSERT((refusal.empty()) == found);
  RC_CLASSIFY(found && smallest.identity(), "none needed");
  RC_CLASSIFY(found && !smallest.identity(), "found");
  RC_CLASSIFY(!found, "refused");
}

TEST(DeriveSwizzle, NamesTheAccessThatCannotBeServed) {
  // Two lanes of one instruction in the same bank at the distance of the whole tile: nothing above
  // to swizzle with.
  SharedAccess const rows = matrix_access(matrix_rows(64, 64), 16);
  SharedAccess const hopeless = vector_access(parse_layout("(32,2):(64,32)"), 32, 4);
  EXPECT_EQ(
      sentence([&] {
        derive_swizzle({vector_access(parse_layout("(32,64):(1,32)"), 32, 4), hopeless},
                       layout(Tuple(2048), Tuple(32)));
      }),
      "derive_swizzle(0, (32,64):(1,32), 2048:32): no swizzle makes this access conflict-free");
  // Rows of 64-byte elements' halves, and the same rows at twice the distance, want
  // different shifts.
  SharedAccess const near = vector_access(parse_layout("(32,1):(32,0)"), 32, 4);
  SharedAccess const far = vector_access(parse_layout("(32,1):(64,0)"), 32, 4);
  SharedAccess const mixed = vector_access(parse_layout("(32,1):(1,0)"), 32, 4);
  EXPECT_EQ(
      sentence([&] {
        derive_swizzle({near, far, mixed}, layout(Tuple(2048)));
      }),
      "derive_swizzle(2048:1): each access has a swizzle of its own, but no single one serves all");
  EXPECT_EQ(sentence([&] { derive_swizzle(rows, col_major(64, 64)); }).find("bank_conflicts("), 0U);
}

}  // namespace
}  // namespace tegula
