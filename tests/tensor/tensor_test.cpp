#include "tegula/tensor/tensor.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/numeric/bfloat16.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/identity.hpp"
#include "tegula/tensor/partition.hpp"
#include "tegula/tensor/print.hpp"
#include "tegula/tensor/recast.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula {
namespace {

// ---- views of global memory: addresses against a formula written by hand
// ---------------------------------

SourceLocation here() { return SourceLocation::current(); }

TEST(GlobalTensor, TilesAndSlicesAreWhereTheStridesSay) {
  std::vector<float> memory(100 * 70 * 3);
  // (m, k, batch): k contiguous, rows 70 apart, batches 7000 apart
  auto const t = global_tensor<Axes<Strided, Unit, Strided>>(memory.data(), extents(100, 70, 3),
                                                             strides(70, 1, 7000));
  auto const batch = t(_, _, 2);                       // (m, k)
  auto const tiles = local_tile<32, 16>(batch, 1, _);  // (32, 16, tiles along k)
  static_assert(decltype(tiles)::rank == 3);
  for (int i = 0; i < 32; i += 5) {
    for (int j = 0; j < 16; j += 3) {
      for (int tile = 0; tile < 4; ++tile) {
        float* const expected = memory.data() + 2 * 7000 + (32 + i) * 70 + 16 * tile + j;
        EXPECT_EQ(tiles.at(here(), i, j, tile), expected);
        EXPECT_EQ(tiles(_, _, tile).at(here(), i, j), expected);
        EXPECT_EQ(tiles(i, _, tile).at(here(), j), expected);
        EXPECT_EQ((group_modes<0, 2>(tiles).at(here(), i + 32 * j, tile)), expected);
        EXPECT_EQ(domain_offset(batch, 32 + i, 16 * tile).at(here(), 0, j), expected);
        EXPECT_EQ(whole(tiles).at(here(), i, j, tile), expected);
      }
    }
  }
}

TEST(GlobalTensor, InsideComparesEveryAxisWithItsExtent) {
  std::vector<float> memory(100 * 70);
  // rows 96.., columns 64..
  auto const t = local_tile<32, 16>(matrix<1>(memory.data(), 70, 100, 70), 3, 4);
  auto const base = t.space.base();
  using M = decltype(t)::Map;
  for (int i = 0; i < 32; ++i) {
    for (int j = 0; j < 16; ++j) EXPECT_EQ(base.inside<M>(i, j), 96 + i < 100 && 64 + j < 70);
  }
}

TEST(IdentityTensor, ElementsAreTheirCoordinates) {
  auto const t = identity_tensor<8, 6>();
  auto const part = local_partition<"(4,3):(3,1)"_layout>(t, 7);  // thread 7 is (2, 1)
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      EXPECT_EQ(part(i, j)[0], 2 + 4 * i);
      EXPECT_EQ(part(i, j)[1], 1 + 3 * j);
    }
  }
  std::vector<float> memory(100);
  auto const tile = local_tile<4, 4>(matrix<1>(memory.data(), 10, 10, 10), 1, 2);
  EXPECT_EQ(coordinates_of(tile)(1, 3)[0], 5);
  EXPECT_EQ(coordinates_of(tile)(1, 3)[1], 11);
}

TEST(IdentityTensor, IsSharedAlongAsManyModesAsTheThreadsHave) {
  auto const row = local_partition<"8:1"_layout>(identity_tensor<24>(), 5);
  static_assert(decltype(row)::Map::rank == 1 && decltype(row)::extent<0> == 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(row(i)[0], 5 + 8 * i);
  // by one mode of two, and by three
  auto const rows = local_partition<"4:1"_layout>(identity_tensor<8, 6>(), 3);
  auto const block = local_partition<"(2,3,2):(1,2,6)"_layout>(identity_tensor<4, 6, 4>(), 11);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 6; ++j) {
      EXPECT_EQ(rows(i, j)[0], 3 + 4 * i);
      EXPECT_EQ(rows(i, j)[1], j);
    }
    EXPECT_EQ(block(i, i, i)[0], 1 + 2 * i);
    EXPECT_EQ(block(i, i, i)[1], 2 + 3 * i);
    EXPECT_EQ(block(i, i, i)[2], 1 + 2 * i);
  }
}

TEST(Recast, NarrowerAndWiderElementsOfTheSameMemory) {
  std::vector<float> memory(64 * 32);
  auto const t = local_tile<16, 8>(matrix<1>(memory.data(), 32, 64, 32), 1, _);  // (16, 8, 4)
  auto const narrow = recast<std::uint16_t>(t);
  auto const wide = recast<double>(t);
  static_assert(decltype(narrow)::extent<1> == 16 && decltype(wide)::extent<1> == 4);
  for (int i = 0; i < 16; ++i) {
    for (int tile = 0; tile < 4; ++tile) {
      auto const* const bytes = reinterpret_cast<char const*>(t.at(here(), i, 6, tile));
      EXPECT_EQ(reinterpret_cast<char const*>(narrow.at(here(), i, 12, tile)), bytes);
      EXPECT_EQ(reinterpret_cast<char const*>(wide.at(here(), i, 3, tile)), bytes);
    }
  }
}

TEST(Print, SpaceMapAndShape) {
  std::vector<float> memory(100 * 64);
  auto const m = matrix<1>(static_cast<float const*>(memory.data()), 64, 100, 64);
  EXPECT_EQ(
      to_string(local_tile<32, 16>(m, 1, _)),
      "global memory, const f32, axes (strided, unit), extents (100, 64), base at (32, 0), clipped: "
      "(32,16,?):(1@0,1@1,16@1)");
  EXPECT_EQ(to_string(identity_tensor<3, 4>()), "coordinates from (0, 0): (3,4):(1@0,1@1)");
  EXPECT_EQ(to_string(Fragment<bfloat16, identity_map<4, 2>>{}),
            "registers, bf16, 4 of a thread: (4,2):(1@0,1@1)");
}

// ---- on the simulated machine -------------------------------------------------------------------

template <class Kernel> sim::Report run(sim::Machine& machine, typename Kernel::Params const& p) {
  return sim::launch<Kernel>(machine, Dim3{1, 1, 1}, p);
}
template <class T>
T* device(sim::Machine& machine, std::vector<T> const& values, char const* name) {
  auto* const p = static_cast<T*>(machine.allocate(values.size() * sizeof(T), name));
  machine.upload(p, values.data(), values.size() * sizeof(T));
  return p;
}
template <class T> std::vector<T> back(sim::Machine& machine, T const* p, std::size_t count) {
  std::vector<T> values(count);
  machine.download(values.data(), p, count * sizeof(T));
  return values;
}

/// Rows of a matrix, gathered by a table or out of pages, through a swizzled tile to a matrix.
template <class Axis> struct GatherRows {
  struct Params {
    float const* rows;
    std::int32_t const* table;
    float* out;
    int count;
    std::int64_t page_stride;
  };
  static constexpr int threads = 64;
  using Tile = SharedTile<float, OperandTile{32, 16, 32, 1}>;
  using Copy = TiledCopy<share_rows({.threads = 64, .m = 16, .n = 32, .vector = 4}), float>;
  struct SharedStorage {
    Tile tile;
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    auto const m = global_tensor<Axes<Axis, Unit>>(p.rows, extents(p.count, 32), strides(32, 1),
                                                   p.table, p.page_stride);
    auto const out = matrix<1>(p.out, 32, p.count, 32);
    for (int block = 0; 16 * block < p.count; ++block) {
      copy(Copy{thread_idx()}, local_tile<16, 32>(m, block, 0), tensor(smem.tile));
      cp_async_wait_all();
      cta::sync();
      copy(Copy{thread_idx()}, tensor(smem.tile), local_tile<16, 32>(out, block, 0));
      cta::sync();
    }
  }
};

TEST(IndexedAxes, GatheredRows) {
  using Kernel = GatherRows<Gathered>;
  constexpr int rows = 50, count = 37;
  std::vector<float> in(rows * 32);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  std::vector<std::int32_t> table(count + 16, 0);
  for (int i = 0; i < count; ++i) table[static_cast<std::size_t>(i)] = i * 13 % rows;
  sim::Machine machine;
  float* const out = device(machine, std::vector<float>(count * 32, -1.0f), "out");
  sim::Report const report = run<Kernel>(
      machine, {device(machine, in, "in"), device(machine, table, "table"), out, count, 0});
  EXPECT_TRUE(report.findings.empty()) << report.text();
  auto const got = back(machine, out, count * 32);
  for (int i = 0; i < count * 32; ++i)
    ASSERT_EQ(got[static_cast<std::size_t>(i)],
              static_cast<float>(table[static_cast<std::size_t>(i / 32)] * 32 + i % 32))
        << i;
}

TEST(IndexedAxes, PagesOfRows) {
  using Kernel = GatherRows<Paged<8>>;
  constexpr int pages = 9, count = 45;  // 8 rows a page, of which 10 are allocated
  std::vector<float> in(pages * 10 * 32);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  std::vector<std::int32_t> const table = {4, 0, 7, 2, 8, 1, 0, 0};
  sim::Machine machine;
  float* const out = device(machine, std::vector<float>(count * 32, -1.0f), "out");
  sim::Report const report = run<Kernel>(
      machine, {device(machine, in, "in"), device(machine, table, "table"), out, count, 320});
  EXPECT_TRUE(report.findings.empty()) << report.text();
  auto const got = back(machine, out, count * 32);
  for (int i = 0; i < count * 32; ++i) {
    int const row = i / 32, page = table[static_cast<std::size_t>(row / 8)];
    ASSERT_EQ(got[static_cast<std::size_t>(i)],
              static_cast<float>(page * 320 + row % 8 * 32 + i % 32))
        << i;
  }
}

/// Through a tile to global memory where a predicate on coordinates holds.
struct CopyIf {
  struct Params {
    float const* in;
    float* out;
  };
  static constexpr int threads = 32;
  using Tile = SharedTile<float, OperandTile{32, 16, 16, 1}>;
  using Copy = TiledCopy<share_rows({.threads = 32, .m = 16, .n = 16, .vector = 1}), float>;
  struct SharedStorage {
    Tile tile;
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    auto const in = local_tile<16, 16>(matrix<1>(p.in, 32, 32, 32), 1, 1);
    auto const out = local_tile<16, 16>(matrix<1>(p.out, 32, 32, 32), 1, 1);
    copy_if(
        Copy{thread_idx()}, [](Coordinate<2> at) { return (at[0] + at[1]) % 2 == 0; }, in,
        tensor(smem.tile));
    cp_async_wait_all();
    cta::sync();
    copy_if(
        Copy{thread_idx()}, [](Coordinate<2> at) { return at[0] >= at[1]; }, tensor(smem.tile),
        out);
  }
};

TEST(CopyIf, PredicatesSeeCoordinatesOfTheMatrix) {
  std::vector<float> in(32 * 32);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i + 1);
  sim::Machine machine;
  float* const out = device(machine, std::vector<float>(32 * 32, -1.0f), "out");
  sim::Report const report = run<CopyIf>(machine, {device(machine, in, "in"), out});
  EXPECT_TRUE(report.findings.empty()) << report.text();
  auto const got = back(machine, out, 32 * 32);
  for (int i = 0; i < 32; ++i) {
    for (int j = 0; j < 32; ++j) {
      bool const written = i >= 16 && j >= 16 && i >= j;
      float const expected = !written           ? -1.0f
                             : (i + j) % 2 == 0 ? in[static_cast<std::size_t>(i * 32 + j)]
                                                : 0.0f;
      ASSERT_EQ(got[static_cast<std::size_t>(i * 32 + j)], expected) << i << " " << j;
    }
  }
}

/// A tile of halves written as such and read as words, through a swizzle.
struct RecastTile {
  struct Params {
    std::uint32_t* out;
  };
  static constexpr int threads = 32;
  using Tile = SharedTile<bfloat16, OperandTile{16, 8, 64, 1}>;
  struct SharedStorage {
    Tile tile;
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    // (1, 16)
    auto const mine = local_partition<"(8,4):(4,1)"_layout>(tensor(smem.tile), thread_idx());
    for (int j = 0; j < 16; ++j)
      mine(0, j) =
          bfloat16{static_cast<std::uint16_t>(thread_idx() / 4 * 64 + thread_idx() % 4 + 4 * j)};
    warp::sync();
    auto const words =
        local_partition<"(8,4):(4,1)"_layout>(recast<std::uint32_t>(tensor(smem.tile)),
                                              thread_idx());  // (1, 8)
    auto const out = local_partition<"(8,4):(4,1)"_layout>(
        local_tile<8, 32>(matrix<1>(p.out, 32, 8, 32), 0, 0), thread_idx());
    for (int j = 0; j < 8; ++j) out(0, j) = static_cast<std::uint32_t>(words(0, j));
  }
};

TEST(Recast, ASwizzledTileOfHalvesAsWords) {
  sim::Machine machine;
  std::uint32_t* const out = device(machine, std::vector<std::uint32_t>(256, 0), "out");
  sim::Report const report = run<RecastTile>(machine, {out});
  EXPECT_TRUE(report.findings.empty()) << report.text();
  auto const got = back(machine, out, 256);
  for (std::uint32_t i = 0; i < 256; ++i) ASSERT_EQ(got[i], (2 * i) | (2 * i + 1) << 16);
}

/// Accumulators read before their wgmma has been waited for; with Waits, after.
template <bool Waits> struct AccumulatorsInFlight {
  struct Params {
    float* out;
  };
  static constexpr int threads = 128;
  using Mma = TiledMma<TiledMmaSpec{warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 8)}>;
  using TileA = SharedTile<bfloat16, OperandTile{16, 64, 64, 1}>;
  using TileB = SharedTile<bfloat16, OperandTile{16, 8, 64, 1}>;
  struct SharedStorage {
    TileA a;
    TileB b;
    template <class F> void name_buffers(F&& name) { name("A", a), name("B", b); }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    auto const mine = local_partition<"(32,4):(4,1)"_layout>(tensor(smem.a), thread_idx());
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 16; ++j) mine(i, j) = bfloat16{0x3f80};
    if (thread_idx() < 32) {
      auto const others = local_partition<"(8,4):(4,1)"_layout>(tensor(smem.b), thread_idx());
      for (int j = 0; j < 16; ++j) others(0, j) = bfloat16{0x3f80};
    }
    fence_proxy_async_shared();
    cta::sync();
    typename Mma::Accumulator tCrC;
    wgmma_fence();
    gemm(Mma{thread_idx()}, Mma{thread_idx()}.partition_a(tensor(smem.a)),
         Mma{thread_idx()}.partition_b(tensor(smem.b)), tCrC, false);
    wgmma_commit_group();
    if (Waits) wgmma_wait_group<0>();
    float const early = tCrC(0);
    wgmma_wait_group<0>();
    st_global(p.out + thread_idx(), early);
  }
};

TEST(Fragment, AnAccessToRegistersInFlightIsAFinding) {
  sim::Machine machine;
  float* const out = device(machine, std::vector<float>(128, 0), "out");
  sim::Report const right = run<AccumulatorsInFlight<true>>(machine, {out});
  EXPECT_TRUE(right.findings.empty()) << right.text();
  EXPECT_EQ(back(machine, out, 1)[0], 64.0f);
  sim::Options options;
  options.throw_on_finding = false;
  sim::Machine other(options);
  float* const wrong_out = device(other, std::vector<float>(128, 0), "out");
  sim::Report const wrong = run<AccumulatorsInFlight<false>>(other, {wrong_out});
  ASSERT_FALSE(wrong.findings.empty());
  sim::Finding const& finding = wrong.findings[0];
  EXPECT_EQ(finding.kind, sim::FindingKind::register_race);
  EXPECT_NE(finding.message.find("d[0], row "), std::string::npos) << finding.message;
  EXPECT_NE(
      finding.message.find("is accessed while the wgmma.mma_async of tensor/tensor_test.cpp:"),
      std::string::npos)
      << finding.message;
}

}  // namespace
}  // namespace tegula
