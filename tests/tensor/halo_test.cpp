#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/numeric/half.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/copy.hpp"

/// Copies of tiles that begin before a tensor and end beyond it (all_edges): zeros there, and
/// nothing is written. Rows may be gathered by a table, which is not read where there is no row.
namespace tegula {
namespace {

constexpr int kM = 16, kN = 32;  // of the tile
constexpr int kRows = 11, kColumns = 24;

enum class Through { shared_memory, registers, parts };
enum class Rows { strided, gathered, paged };

template <Rows Kind> struct RowAxis { using Type = Strided; };
template <> struct RowAxis<Rows::gathered> { using Type = Gathered; };
template <> struct RowAxis<Rows::paged> { using Type = Paged<4>; };

/// The tile from element (row, column) on, from `in` to `out`; what arrived between to `seen`.
template <class T, int Vector, Through Way, Rows Kind, bool Whole = false, bool Clipped = true>
struct HaloTile {
  struct Params {
    T const* in;
    T* out;
    T* seen;
    std::int32_t const* table;
    int rows, columns, row, column;
  };
  static constexpr int threads = 64;
  using Tile = SharedTile<T, OperandTile{8 * sizeof(T), kM, kN, 1}>;
  using Copy = TiledCopy<share_rows({.threads = threads, .m = kM, .n = kN, .vector = Vector}), T>;
  struct SharedStorage {
    Tile tile;
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };

  template <class U> static auto tile_of(U* data, Params const& p) {
    auto const all = global_tensor<Axes<typename RowAxis<Kind>::Type, Unit>>(
        data, extents(p.rows, p.columns), strides(kColumns, 1), p.table, 4 * kColumns);
    if constexpr (!Clipped) {
      return local_tile<kM, kN>(domain_offset(all, p.row, p.column), 0, 0);
    } else if constexpr (Whole) {
      return local_tile<kM, kN>(domain_offset(whole_vectors(all_edges(all)), p.row, p.column), 0,
                                0);
    } else {
      return local_tile<kM, kN>(all_edges(domain_offset(all, p.row, p.column)), 0, 0);
    }
  }

  void operator()(Params const& p, SharedStorage& smem) const {
    Copy const by{thread_idx()};
    auto const in = tile_of(p.in, p);
    auto const out = tile_of(p.out, p);
    auto const seen = local_tile<kM, kN>(matrix<1>(p.seen, kN, kM, kN), 0, 0);
    if constexpr (Way == Through::registers) {
      auto values = make_fragment_like(by.partition(in));
      copy(by, in, values);
      copy(by, values, seen);
      copy(by, values, out);
    } else if constexpr (Way == Through::parts) {
      constexpr Layout kThreads = "(4,16):(16,1)"_layout;
      auto const part = local_partition<kThreads>(in, thread_idx());
      copy(part, local_partition<kThreads>(seen, thread_idx()));
      copy(part, local_partition<kThreads>(out, thread_idx()));
    } else {
      copy(by, in, tensor(smem.tile));
      cp_async_wait_all();
      cta::sync();
      copy(by, tensor(smem.tile), seen);
      copy(by, tensor(smem.tile), out);
    }
  }
};

template <class T> T number_of(int i) {
  if constexpr (sizeof(T) == 4) {
    return static_cast<T>(i);
  } else {
    return T{static_cast<decltype(T::bits)>(i)};
  }
}

template <class Kernel, class T, Rows Kind> struct Halo {
  static constexpr int kPages = (kRows + 3) / 4;
  sim::Machine machine{{.throw_on_finding = false}};
  /// Row i of the tensor is row lies_at[i] of memory.
  std::vector<int> lies_at;
  std::vector<T> out = std::vector<T>(std::size_t{4 * kPages * kColumns}, number_of<T>(999)),
                 seen = std::vector<T>(std::size_t{kM * kN}, number_of<T>(999));
  sim::Report report;

  Halo(int rows, int columns, int row, int column) {
    std::vector<std::int32_t> table;
    int const entries = Kind == Rows::gathered ? rows : Kind == Rows::paged ? (rows + 3) / 4 : 1;
    for (int i = 0; i < entries; ++i)
      table.push_back(Kind == Rows::gathered ? (5 * i + 3) % kRows : kPages - 1 - i);
    for (int i = 0; i < rows; ++i) {
      auto const entry = [&](int at) { return table[static_cast<std::size_t>(at)]; };
      lies_at.push_back(Kind == Rows::gathered ? entry(i)
                        : Kind == Rows::paged  ? 4 * entry(i / 4) + i % 4
                                               : i);
    }
    std::vector<T> in;
    for (int i = 0; i < 4 * kPages * kColumns; ++i) in.push_back(number_of<T>(1 + i));
    T* const d_out = device(out, "out");
    T* const d_seen = device(seen, "seen");
    report = sim::launch<Kernel>(
        machine, {1, 1, 1},
        {device(in, "in"), d_out, d_seen, device(table, "table"), rows, columns, row, column});
    machine.download(out.data(), d_out, out.size() * sizeof(T));
    machine.download(seen.data(), d_seen, seen.size() * sizeof(T));
  }
  template <class U> U* device(std::vector<U> const& values, char const* name) {
    U* const p = static_cast<U*>(machine.allocate(values.size() * sizeof(U), name));
    machine.upload(p, values.data(), values.size() * sizeof(U));
    return p;
  }
};

template <class T> bool is_number(T value, int i) {
  T const expected = number_of<T>(i);
  return std::memcmp(&value, &expected, sizeof(T)) == 0;
}

/// At begins before the tensor, in it and beyond it; columns are multiples of the vector.
template <class T, int Vector, Through Way, Rows Kind, bool Whole = false> void check_halo() {
  using Kernel = HaloTile<T, Vector, Way, Kind, Whole>;
  for (int const row : {-20, -16, -9, -1, 0, 3, 12}) {
    for (int const column : {-40, -32, -8, 0, 16, 24}) {
      int const rows = kRows - (row & 1), columns = kColumns - (Whole ? 0 : column & 8 ? 3 : 0);
      Halo<Kernel, T, Kind> const run(rows, columns, row, column);
      ASSERT_TRUE(run.report.findings.empty()) << row << ", " << column << run.report.text();
      std::vector<int> expected(run.out.size(), 999);
      for (int i = 0; i < kM; ++i) {
        for (int j = 0; j < kN; ++j) {
          int const r = row + i, c = column + j;
          bool const inside = r >= 0 && r < rows && c >= 0 && c < columns;
          int const at = inside ? run.lies_at[static_cast<std::size_t>(r)] * kColumns + c : 0;
          if (inside) expected[static_cast<std::size_t>(at)] = 1 + at;
          ASSERT_TRUE(
              is_number(run.seen[static_cast<std::size_t>(i * kN + j)], inside ? 1 + at : 0))
              << i << ", " << j << " from " << row << ", " << column;
        }
      }
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_TRUE(is_number(run.out[i], expected[i])) << i << " from " << row << ", " << column;
    }
  }
}

TEST(AllEdges, AreClippedByCpAsync) {
  check_halo<float, 4, Through::shared_memory, Rows::strided>();
  check_halo<float, 1, Through::shared_memory, Rows::strided>();
  check_halo<half, 8, Through::shared_memory, Rows::strided>();
  check_halo<half, 1, Through::shared_memory, Rows::strided>();
  check_halo<float, 4, Through::shared_memory, Rows::strided, true>();
}
TEST(AllEdges, AreClippedInRegisters) {
  check_halo<float, 4, Through::registers, Rows::strided>();
  check_halo<half, 8, Through::registers, Rows::strided, true>();
  check_halo<float, 1, Through::parts, Rows::strided>();
}
TEST(AllEdges, AreClippedOfGatheredRows) {
  check_halo<float, 4, Through::shared_memory, Rows::gathered>();
  check_halo<half, 8, Through::shared_memory, Rows::paged>();
  check_halo<half, 8, Through::shared_memory, Rows::paged, true>();
  check_halo<float, 2, Through::registers, Rows::gathered>();
  check_halo<float, 4, Through::registers, Rows::paged>();
  check_halo<float, 1, Through::parts, Rows::gathered>();
  check_halo<float, 1, Through::parts, Rows::paged>();
}

// An ordinary tensor ends within the tile, and its table with it.
TEST(EdgeOfGatheredRows, ReadsNoEntryBeyondTheTable) {
  for (int const row : {0, 5}) {
    EXPECT_TRUE((Halo<HaloTile<float, 4, Through::shared_memory, Rows::gathered, false, false>,
                      float, Rows::gathered>(kRows, kColumns, row, 0)
                     .report.findings.empty()));
    EXPECT_TRUE((Halo<HaloTile<half, 8, Through::shared_memory, Rows::paged, false, false>, half,
                      Rows::paged>(kRows, kColumns, row, 0)
                     .report.findings.empty()));
    EXPECT_TRUE((Halo<HaloTile<float, 4, Through::registers, Rows::gathered, false, false>, float,
                      Rows::gathered>(kRows, kColumns, row, 0)
                     .report.findings.empty()));
  }
}

template <class Kernel, class T, Rows Kind>
void expect_found(int row, int column, std::string const& words) {
  Halo<Kernel, T, Kind> const run(kRows, kColumns, row, column);
  EXPECT_NE(run.report.text().find(words), std::string::npos) << run.report.text();
}

TEST(EdgeOfATensor, BeforeItsBeginningIsFound) {
  std::string const words =
      "lies before the beginning of a tensor that is clipped at its end alone";
  expect_found<HaloTile<float, 4, Through::shared_memory, Rows::strided, false, false>, float,
               Rows::strided>(2, -8, "coordinate (2, -8) " + words);
  expect_found<HaloTile<float, 4, Through::registers, Rows::strided, false, false>, float,
               Rows::strided>(-1, 0, "coordinate (-1, 0) " + words);
  expect_found<HaloTile<float, 1, Through::parts, Rows::strided, false, false>, float,
               Rows::strided>(3, -16, words);
}

TEST(AllEdges, ThatCutAVectorAreFound) {
  expect_found<HaloTile<float, 4, Through::shared_memory, Rows::strided>, float, Rows::strided>(
      0, -2, "the beginning of a tensor cuts a vector");
  expect_found<HaloTile<float, 4, Through::registers, Rows::strided, true>, float, Rows::strided>(
      0, -2, "the beginning of a tensor cuts a vector");
}

}  // namespace
}  // namespace tegula
