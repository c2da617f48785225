#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/numeric/half.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/copy.hpp"

/// Copies whose vectors an edge of the tensor cuts: zeros beyond it, and nothing written there.
namespace tegula {
namespace {

constexpr int kAcross = 16, kAlong = 32;  // of the tile
constexpr int kPitch = 40;  // from row to row: what lies beyond a row is a neighbour's

enum class Through { shared_memory, registers };

/// A tile from `in` to `out`, matrices whose edges lie within it, and what arrived between them to
/// `seen`. `Whole`: the vectors are said to be whole. `Some`: those of a checkerboard are wanted.
template <class T, int Vector, int UnitAxis, Through Way, bool Whole = false, bool Some = false>
struct CopyAtEdge {
  struct Params {
    T const* in;
    T* out;
    T* seen;
    int across, along;
  };
  static constexpr int threads = 64;
  static constexpr int m = UnitAxis == 1 ? kAcross : kAlong, n = UnitAxis == 1 ? kAlong : kAcross;
  using Tile = SharedTile<T, OperandTile{8 * sizeof(T), m, n, UnitAxis}>;
  using Copy =
      TiledCopy<share_rows(
                    {.threads = threads, .m = m, .n = n, .vector = Vector, .contiguous = UnitAxis}),
                T>;
  struct SharedStorage {
    Tile tile;
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };

  template <class U> static auto tile_of(U* data, int across, int along) {
    auto const all = UnitAxis == 1 ? matrix<UnitAxis>(data, kPitch, across, along)
                                   : matrix<UnitAxis>(data, kPitch, along, across);
    if constexpr (Whole) {
      return local_tile<m, n>(whole_vectors(all), 0, 0);
    } else {
      return local_tile<m, n>(all, 0, 0);
    }
  }
  static bool wanted(int across, int along) { return !Some || (across + along / Vector) % 2 == 0; }

  void operator()(Params const& p, SharedStorage& smem) const {
    Copy const by{thread_idx()};
    auto const in = tile_of(p.in, p.across, p.along);
    auto const out = tile_of(p.out, p.across, p.along);
    auto const seen = tile_of(p.seen, kAcross, kAlong);
    auto const predicate = [](Coordinate<2> at) { return wanted(at[1 - UnitAxis], at[UnitAxis]); };
    if constexpr (Way == Through::registers) {
      auto values = make_fragment_like(by.partition(in));
      copy_if(by, predicate, in, values);
      copy(by, values, seen);
      copy_if(by, predicate, values, out);
    } else {
      copy_if(by, predicate, in, tensor(smem.tile));
      cp_async_wait_all();
      cta::sync();
      copy(by, tensor(smem.tile), seen);
      copy_if(by, predicate, tensor(smem.tile), out);
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
template <> std::uint8_t number_of<std::uint8_t>(int i) { return static_cast<std::uint8_t>(i); }
template <class T> bool is_number(T value, int i) {
  T const expected = number_of<T>(i);
  return std::memcmp(&value, &expected, sizeof(T)) == 0;
}

template <class Kernel> struct Run;
template <class T, int Vector, int UnitAxis, Through Way, bool Whole, bool Some>
struct Run<CopyAtEdge<T, Vector, UnitAxis, Way, Whole, Some>> {
  using Kernel = CopyAtEdge<T, Vector, UnitAxis, Way, Whole, Some>;

  sim::Machine machine{{.throw_on_finding = false}};
  std::vector<T> out = std::vector<T>(std::size_t{kAcross * kPitch}, number_of<T>(255)), seen = out;
  sim::Report report;

  Run(int across, int along) {
    std::vector<T> in;
    for (int i = 0; i < kAcross * kPitch; ++i) in.push_back(number_of<T>(1 + i % 250));
    T* const d_in = device(in, "in");
    T* const d_out = device(out, "out");
    T* const d_seen = device(seen, "seen");
    report = sim::launch<Kernel>(machine, {1, 1, 1}, {d_in, d_out, d_seen, across, along});
    machine.download(out.data(), d_out, out.size() * sizeof(T));
    machine.download(seen.data(), d_seen, seen.size() * sizeof(T));
  }
  T* device(std::vector<T> const& values, char const* name) {
    T* const p = static_cast<T*>(machine.allocate(values.size() * sizeof(T), name));
    machine.upload(p, values.data(), values.size() * sizeof(T));
    return p;
  }
};

/// At every place of the edge along the rows, or at those that are multiples of `unit`.
template <class Kernel> void check_edges(int unit = 1) {
  for (int along = 0; along <= kAlong; along += unit) {
    int const across = kAcross - along % 3;
    Run<Kernel> const run(across, along);
    ASSERT_TRUE(run.report.findings.empty()) << along << ": " << run.report.text();
    for (int i = 0; i < kAcross; ++i) {
      for (int j = 0; j < kPitch; ++j) {
        bool const wanted = i < across && j < along && Kernel::wanted(i, j);
        int const at = i * kPitch + j, value = 1 + at % 250;
        ASSERT_TRUE(is_number(run.seen[static_cast<std::size_t>(at)], j >= kAlong ? 255
                                                                      : wanted    ? value
                                                                                  : 0))
            << "seen at " << i << ", " << j << " of " << along;
        ASSERT_TRUE(is_number(run.out[static_cast<std::size_t>(at)], wanted ? value : 255))
            << "out at " << i << ", " << j << " of " << along;
      }
    }
  }
}

TEST(EdgeOfATensor, CutsVectorsOfCpAsync) {
  check_edges<CopyAtEdge<float, 4, 1, Through::shared_memory>>();
  check_edges<CopyAtEdge<float, 2, 1, Through::shared_memory>>();
  check_edges<CopyAtEdge<float, 4, 0, Through::shared_memory>>();
  check_edges<CopyAtEdge<half, 2, 1, Through::shared_memory>>();
  check_edges<CopyAtEdge<half, 8, 0, Through::shared_memory>>();
  check_edges<CopyAtEdge<std::uint8_t, 8, 1, Through::shared_memory>>();
}

TEST(EdgeOfATensor, CutsVectorsThatPassThroughARegister) {
  check_edges<CopyAtEdge<std::uint8_t, 2, 1, Through::shared_memory>>();
  check_edges<CopyAtEdge<half, 1, 1, Through::shared_memory>>();
}

TEST(EdgeOfATensor, CutsVectorsOfRegisters) {
  check_edges<CopyAtEdge<float, 4, 1, Through::registers>>();
  check_edges<CopyAtEdge<float, 2, 0, Through::registers>>();
  check_edges<CopyAtEdge<half, 8, 1, Through::registers>>();
  check_edges<CopyAtEdge<std::uint8_t, 4, 0, Through::registers>>();
}

TEST(EdgeOfATensor, CutsVectorsThatAreWanted) {
  check_edges<CopyAtEdge<float, 4, 1, Through::shared_memory, false, true>>();
  check_edges<CopyAtEdge<half, 8, 0, Through::registers, false, true>>();
}

TEST(EdgeOfATensor, CutsNoWholeVectors) {
  check_edges<CopyAtEdge<float, 4, 1, Through::shared_memory, true>>(4);
  check_edges<CopyAtEdge<half, 8, 0, Through::shared_memory, true>>(8);
  check_edges<CopyAtEdge<std::uint8_t, 2, 1, Through::shared_memory, true>>(2);
  check_edges<CopyAtEdge<float, 2, 1, Through::registers, true>>(2);
}

/// The launch ends with a finding that says so, and names the copy's line.
template <class Kernel> void check_cut(int along, char const* vector_and_inside) {
  Run<Kernel> const run(kAcross, along);
  std::string const text = run.report.text();
  EXPECT_NE(text.find("the edge of a tensor of whole vectors (whole_vectors) cuts a vector"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("edge_copy_test.cpp:"), std::string::npos) << text;
  EXPECT_NE(text.find(vector_and_inside), std::string::npos) << text;
}

TEST(EdgeOfATensor, IsFoundWhereItCutsAWholeVector) {
  check_cut<CopyAtEdge<float, 4, 1, Through::shared_memory, true>>(30, "2 of 4 elements");
  check_cut<CopyAtEdge<std::uint8_t, 2, 0, Through::shared_memory, true>>(31, "1 of 2 elements");
  check_cut<CopyAtEdge<half, 8, 1, Through::registers, true>>(3, "3 of 8 elements");
}

}  // namespace
}  // namespace tegula
