#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "broken_kernel.hpp"
#include "checker/copy_shadow.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/sim/tensor_map.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/tiled_copy.hpp"

/// What lies in shared memory: addresses that are not where the layout of a tile puts the
/// element, boxes that are read by another swizzle than the one that laid them out, and copies
/// that nobody reads.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

// Addresses.

constexpr Swizzle kByRow(5, 0, 5);  // the row's bits are XORed into the column's

/// Two warps write rows `First` and `First` + 1, and those `Step` rows on, of a stage.
template <int First, int Step, int Stage, SwizzledLayout L> struct Accesses {
  using Params = Buffers;
  using Tile = SharedTile<float, L>;
  static constexpr int height = static_cast<int>(L.layout[0].size());
  /// (2, 32) -> thread, two rows at a time; a thread's numbers: (1, steps of two rows, 1).
  using Copy =
      TiledCopy<make_tiled_copy(layout(shape(2, 32), stride(32, 1)), tuple(1, 1), height, 32),
                float>;
  struct SharedStorage {
    Tile tile;
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };
  static constexpr int threads = 64;
  static constexpr int made = __LINE__ + 9, line = __LINE__ + 11;

  static auto part(SharedStorage& smem, int thread, SourceLocation where) {
    return partition<typename Copy::Threads, typename Copy::Values, 2>(tensor(smem.tile), thread,
                                                                       where);
  }

  /// From row `First` on: by numbers of threads that the copy has not, and would refuse.
  void operator()(Params const&, SharedStorage& smem) const {
    auto const own = part(smem, thread_idx() + 32 * First, SourceLocation::current());
    own(0, 0, 0, Stage) = 1.0f;
    own(0, Step / 2, 0, Stage) = 1.0f;
  }
};

constexpr SwizzledLayout kStages = {kByRow, 0, layout(tuple(32, 32, 3), tuple(32, 1, 1024))};

TEST(Addresses, ThoseOfTheLayoutAreClean) {
  for (auto const& report :
       {report_of<Accesses<0, 2, 0, kStages>>(), report_of<Accesses<4, 2, 0, kStages>>(),
        report_of<Accesses<8, 16, 2, kStages>>(), report_of<Accesses<1, 4, 1, kStages>>()}) {
    EXPECT_TRUE(report.ok()) << report.text();
  }
}

TEST(Addresses, AStepThatCarriesIntoSwizzledBits) {
  using Kernel = Accesses<1, 2, 2, kStages>;
  Finding const f = only_finding(report_of<Kernel>(), FindingKind::wrong_layout, Kernel::line);
  EXPECT_EQ(f.warp, 1) << "row 1 and 2 make 3 without a carry; row 2 and 2 carry";
  EXPECT_EQ(f.lane, 0);
  EXPECT_EQ(f.count, 32);
  EXPECT_EQ(f.buffer, "tile");
  EXPECT_EQ(f.coordinate, "row 4, column 0 of stage 2 of tile");
  EXPECT_EQ(f.stage, 2);
  EXPECT_EQ(f.other.line, Kernel::made);
  EXPECT_EQ(f.message,
            "row 4, column 0 of stage 2 of tile is byte 8720 of tile by its layout, Sw<5,0,5> o "
            "(32,32,3):(32,1,1024), but the accessor made at checker/copies_test.cpp:" +
                std::to_string(Kernel::made) + " computes byte 8704 of tile");
}

TEST(Addresses, AreNotHeldWithoutTheChecker) {
  auto const report = report_of<Accesses<1, 2, 0, kStages>>({.check = false});
  EXPECT_TRUE(report.ok()) << report.text();
}

/// Names a row that the tile does not have.
struct BeyondTheTile : Accesses<0, 2, 0, kStages> {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const&, SharedStorage& smem) const {
    auto const own = part(smem, thread_idx() + 32 * 31, SourceLocation::current());
    SharedAddr const beyond = own.at(SourceLocation::current(), 0, 15, 0, 0);
    if (thread_idx() > 63) st_shared(beyond, 1.0f);
  }
};

TEST(Addresses, OutsideOfTheTileThereAreNone) {
  EXPECT_SAYS(
      only_finding(report_of<BeyondTheTile>(), FindingKind::out_of_bounds, BeyondTheTile::line),
      "element (61, 0, 0) is named, which is outside of the tile's extents, (32, 32, 3)");
}

// Swizzles. 2048 bytes are loaded under one of them and read under another.

struct Maps {
  TensorMap in;
  TensorMap out;
};

/// A map of bf16 with boxes of 2048 bytes, whose rows are as wide as the swizzle.
TensorMap map_of(void* memory, TmaSwizzle swizzle, int box_rows = 0) {
  int const row = swizzle == TmaSwizzle::none ? 64 : span_bytes(swizzle) / 2;
  TensorMapDescription d;
  d.dtype = DType::bf16;
  d.rank = 2;
  d.address = memory;
  d.extents = {row, 2048 / row};
  d.strides = {2 * row};
  d.box = {row, box_rows != 0 ? box_rows : 1024 / row};
  d.swizzle = swizzle;
  return sim::encode(d);
}

constexpr TmaSwizzle kSwizzles[] = {TmaSwizzle::none, TmaSwizzle::b32, TmaSwizzle::b64,
                                    TmaSwizzle::b128};

template <class Kernel>
sim::Report report_of_maps(TensorMap (*in)(void*), TensorMap (*out)(void*),
                           sim::Options options = {}, Dim3 grid = {}) {
  options.throw_on_finding = false;
  sim::Machine machine(options);
  void* const from = machine.allocate(4096, "in");
  void* const to = machine.allocate(4096, "out");
  machine.fill(from, 0, 4096);
  machine.fill(to, 0, 4096);
  return sim::launch<Kernel>(machine, grid, Maps{in(from), out(to)});
}

template <TmaSwizzle S> TensorMap map_with(void* memory) { return map_of(memory, S); }

/// Multiplies by 16 rows of K 16-bit elements, which wgmma reads by a swizzle of 2 K bytes.
/// `Rewritten`: by threads, after the load.
template <int K, bool Rewritten = false> struct MultipliesBy {
  using Params = Maps;
  using Tile = SharedTile<std::uint16_t, swizzled_operand(16, 16, K, 1)>;
  struct SharedStorage {
    union {
      Tile b;
      alignas(1024) std::uint32_t words[512];
    };
    Mbarrier full;
    template <class F> void name_buffers(F&& name) { name("B", b); }
  };
  static constexpr int threads = 128;
  static constexpr int load = __LINE__ + 8, line = __LINE__ + 22;

  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full);
    if (thread_idx() == 0) {
      mbarrier_init(full, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(full, 2048);
      tma_load(shared_address(smem.words), p.in, TmaCoordinate{0, 0}, full);
    }
    cta::sync();
    mbarrier_wait_parity(full, 0);
    if (Rewritten) {
      for (int i = thread_idx(); i < 512; i += threads)
        st_shared(shared_address(&smem.words[i]), 0u);
      fence_proxy_async_shared();
      cta::sync();
    }
    float d[8] = {};
    std::uint32_t const a[4] = {};
    wgmma_fence();
    wgmma<warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 16, Major::k, Major::k,
                        MmaOperands::rs)>(d, a, matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
  }
};

template <int K, bool Rewritten = false>
sim::Report multiplied(TmaSwizzle loaded, sim::Options options = {}) {
  constexpr TensorMap (*maps[])(void*) = {map_with<TmaSwizzle::none>, map_with<TmaSwizzle::b32>,
                                          map_with<TmaSwizzle::b64>, map_with<TmaSwizzle::b128>};
  return report_of_maps<MultipliesBy<K, Rewritten>>(maps[static_cast<int>(loaded)],
                                                    map_with<TmaSwizzle::none>, options);
}

template <int K> void holds_for_each_swizzle(TmaSwizzle read) {
  for (TmaSwizzle const loaded : kSwizzles) {
    auto const report = multiplied<K>(loaded);
    if (loaded == read) {
      EXPECT_TRUE(report.ok()) << report.text();
      continue;
    }
    Finding const f = only_finding(report, FindingKind::wrong_layout, MultipliesBy<K>::line);
    EXPECT_EQ(f.buffer, "B");
    EXPECT_EQ(f.other.line, MultipliesBy<K>::load);
    EXPECT_EQ(f.warp, 0);
    EXPECT_EQ(f.lane, -1) << "the warpgroup's";
    EXPECT_TRUE(multiplied<K>(loaded, {.races = false}).findings.size() == 1);
    EXPECT_TRUE(multiplied<K>(loaded, {.check = false}).ok());
  }
}

TEST(Swizzles, WgmmaReadsByTheOneOfTheLoad) {
  holds_for_each_swizzle<16>(TmaSwizzle::b32);
  holds_for_each_swizzle<32>(TmaSwizzle::b64);
  holds_for_each_swizzle<64>(TmaSwizzle::b128);
}

TEST(Swizzles, TheReportNamesBoth) {
  Finding const f = multiplied<64>(TmaSwizzle::b64).findings.at(0);
  EXPECT_EQ(f.message,
            "wgmma.mma_async reads row 4, column 0 of B by the swizzle of 128 bytes, where a "
            "cp.async.bulk.tensor that warp 0 lane 0 issued (checker/copies_test.cpp:" +
                std::to_string(MultipliesBy<64>::load) +
                ") has put other elements, by the swizzle of 64 bytes")
      << "the swizzles agree in rows 0 to 3";
}

TEST(Swizzles, WhatThreadsHaveRewrittenIsTheirs) {
  for (TmaSwizzle const loaded : kSwizzles) {
    auto const report = multiplied<64, true>(loaded);
    EXPECT_TRUE(report.ok()) << report.text();
  }
}

/// Loads 2048 bytes, and stores or adds a box of them.
template <bool Adds> struct LoadsAndStores {
  using Params = Maps;
  struct SharedStorage {
    alignas(1024) std::uint16_t tile[1024];
    Mbarrier full;
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };
  static constexpr int threads = 32;
  static constexpr int line = __LINE__ + 17;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    SharedAddr const full = shared_address(&smem.full), tile = shared_address(smem.tile);
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(full, 2048);
    tma_load(tile, p.in, TmaCoordinate{0, 0}, full);
    mbarrier_wait_parity(full, 0);
    auto const at = TmaCoordinate{0, 0};
    auto const stores = [&](SourceLocation where) {
      if constexpr (Adds) {
        tma_reduce<2, TmaReduce::add>(p.out, at, tile, where);
      } else {
        tma_store(p.out, at, tile, where);
      }
    };
    stores(SourceLocation::current());
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TEST(Swizzles, StoresAndReductionsReadByTheOneOfTheLoad) {
  constexpr auto b64 = map_with<TmaSwizzle::b64>, b128 = map_with<TmaSwizzle::b128>;
  for (auto const& right : {report_of_maps<LoadsAndStores<false>>(b64, b64),
                            report_of_maps<LoadsAndStores<true>>(b128, b128)}) {
    EXPECT_TRUE(right.ok()) << right.text();
  }
  only_finding(report_of_maps<LoadsAndStores<false>>(b64, b128), FindingKind::wrong_layout,
               LoadsAndStores<false>::line);
  Finding const f =
      only_finding(report_of_maps<LoadsAndStores<true>>(b128, map_with<TmaSwizzle::none>),
                   FindingKind::wrong_layout, LoadsAndStores<true>::line);
  EXPECT_SAYS(f, "cp.reduce.async.bulk.tensor reads element 64 of tile by no swizzle");
}

TEST(Swizzles, WhereTheyAgreeNothingIsWrong) {
  // The first four rows of 128 bytes lie as under the swizzle of 64 bytes.
  auto const four = [](void* memory) { return map_of(memory, TmaSwizzle::b128, 4); };
  auto const report = report_of_maps<LoadsAndStores<false>>(map_with<TmaSwizzle::b64>, four);
  EXPECT_TRUE(report.ok()) << report.text();
}

// Copies that nobody reads.

enum class Between { nothing, one_byte, all_lanes, store };

/// Two steps' cp.async into one place; what is done with the first step's in between. `Bytes`: that
/// are copied of 4; the rest is filled.
template <Between B, int Bytes = 4> struct CopiesTwice : Broken {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const place = shared_address(smem.k[0]) + 4u * lane_id();
    for (int step = 0; step < 2; ++step) {
      cta::sync();
      cp_async_ca<4>(place, p.in + 4 * lane_id(), Bytes);
      cp_async_commit_group();
      cp_async_wait_group<0>();
      if (B == Between::one_byte && lane_id() == 7) ld_shared<std::uint8_t>(place + 2);
      if (B == Between::all_lanes) ld_shared<float>(place);
      if (B == Between::store) st_shared(place, 0u);
    }
  }
};

TEST(UnreadCopies, ByCpAsync) {
  using Kernel = CopiesTwice<Between::nothing>;
  Finding const f = only_finding(report_of<Kernel>(), FindingKind::unread_copy, Kernel::line);
  EXPECT_EQ(f.count, 1) << "of all lanes together";
  EXPECT_EQ(f.coordinate, "row 0, column 0 of K");
  EXPECT_EQ(f.other.line, Kernel::line);
  EXPECT_EQ(f.message,
            "cp.async writes over what a cp.async of warp 0 lane 0 (checker/copies_test.cpp:" +
                std::to_string(Kernel::line) +
                ") has brought, from row 0, column 0 of K on, and nobody has read any of it");
  auto const unchecked = report_of<Kernel>({.check = false});
  EXPECT_TRUE(unchecked.ok()) << unchecked.text();
}

TEST(UnreadCopies, OneByteThatIsReadIsEnough) {
  for (auto const& report : {report_of<CopiesTwice<Between::one_byte>>(),
                             report_of<CopiesTwice<Between::all_lanes>>()}) {
    EXPECT_TRUE(report.ok()) << report.text();
  }
}

TEST(UnreadCopies, FillsAndWhatThreadsOverwriteNeedNotBeRead) {
  for (auto const& report :
       {report_of<CopiesTwice<Between::nothing, 0>>(), report_of<CopiesTwice<Between::store>>()}) {
    EXPECT_TRUE(report.ok()) << report.text();
  }
}

/// Each lane copies for itself, again and again, and not every lane needs what it has copied. No
/// lane waits for another.
struct LanesByThemselves : Broken {
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const place = shared_address(smem.k[0]) + 4u * lane_id();
    for (int step = 0; step < 4; ++step) {
      cp_async_ca<4>(place, p.in + 4 * lane_id());
      cp_async_commit_group();
      cp_async_wait_group<0>();
      if (lane_id() % 8 == 5) ld_shared<float>(place);
    }
  }
};

TEST(UnreadCopies, PartsAreOneCopyWheneverLanesRun) {
  for (auto const interleaving : {sim::Interleaving::one_warp_ahead, sim::Interleaving::random}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      auto const report =
          report_of<LanesByThemselves>({.interleaving = interleaving, .seed = seed});
      EXPECT_TRUE(report.ok()) << report.text();
    }
  }
}

/// How the first of two loads into one place is read.
enum class ReadBy { nobody, thread, store };

/// Loads a box twice, from row `First` of the tensor on.
template <ReadBy R, int First = 0> struct LoadsTwice {
  using Params = Maps;
  struct SharedStorage {
    alignas(1024) std::uint16_t tile[1024];
    Mbarrier full;
    template <class F> void name_buffers(F&& name) {
      name("tile", tile);
      name("full", full);
    }
  };
  static constexpr int threads = 32;
  static constexpr int line = __LINE__ + 8;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    SharedAddr const full = shared_address(&smem.full), tile = shared_address(smem.tile);
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    for (int step = 0; step < 2; ++step) {
      mbarrier_arrive_expect_tx(full, 2048);
      tma_load(tile, p.in, TmaCoordinate{0, First}, full);
      mbarrier_wait_parity(full, step);
      if (R == ReadBy::thread) ld_shared<std::uint16_t>(tile + 2046);
      if (R == ReadBy::store) {
        tma_store(p.out, TmaCoordinate{0, 0}, tile);
        bulk_commit_group();
        bulk_wait_group<0>();
      }
    }
  }
};

TEST(UnreadCopies, ByTma) {
  constexpr auto map = map_with<TmaSwizzle::b128>;
  using Kernel = LoadsTwice<ReadBy::nobody>;
  Finding const f =
      only_finding(report_of_maps<Kernel>(map, map), FindingKind::unread_copy, Kernel::line);
  EXPECT_EQ(
      f.message,
      "cp.async.bulk.tensor writes over what a cp.async.bulk.tensor of warp 0 lane 0 (checker/copies_test.cpp:" +
          std::to_string(Kernel::line) +
          ") has brought, from element 0 of tile on, and nobody has read any of it");
  for (auto const& report : {report_of_maps<LoadsTwice<ReadBy::thread>>(map, map),
                             report_of_maps<LoadsTwice<ReadBy::store>>(map, map)}) {
    EXPECT_TRUE(report.ok()) << report.text();
  }
}

/// A box goes to both CTAs of a cluster, twice; CTA 0 reads it, and CTA 1 if it `Reads`.
template <bool Reads> struct MulticastsTwice {
  using Params = Maps;
  using SharedStorage = LoadsTwice<ReadBy::nobody>::SharedStorage;
  static constexpr int threads = 32;
  static constexpr Dim3 cluster = {2, 1, 1};
  static constexpr int line = __LINE__ + 10;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full), tile = shared_address(smem.tile);
    int const rank = cluster_cta_rank();
    if (thread_idx() == 0) mbarrier_init(full, 1);
    if (thread_idx() == 0) fence_mbarrier_init();
    tegula::cluster::sync();
    for (int step = 0; step < 2; ++step) {
      if (thread_idx() == 0) mbarrier_arrive_expect_tx(full, 2048);
      if (thread_idx() == 0 && rank == 0)
        tma_load_multicast(tile, p.in, TmaCoordinate{0, 0}, full, std::uint16_t{3});
      mbarrier_wait_parity(full, step);
      if (rank == 0 || Reads) ld_shared<std::uint16_t>(tile + 2u * thread_idx());
      tegula::cluster::sync();
    }
  }
};

TEST(UnreadCopies, InEachCtaOfAMulticast) {
  constexpr auto map = map_with<TmaSwizzle::b128>;
  auto const read = report_of_maps<MulticastsTwice<true>>(map, map, {}, {2, 1, 1});
  EXPECT_TRUE(read.ok()) << read.text();
  using Kernel = MulticastsTwice<false>;
  Finding const f = only_finding(report_of_maps<Kernel>(map, map, {}, {2, 1, 1}),
                                 FindingKind::unread_copy, Kernel::line);
  EXPECT_SAYS(f,
              "from element 0 of tile of CTA 1 of the cluster on, and nobody has read any of it");
}

TEST(UnreadCopies, ABoxOutsideOfTheTensorIsAFill) {
  constexpr auto map = map_with<TmaSwizzle::b128>;
  auto const outside = report_of_maps<LoadsTwice<ReadBy::nobody, 32>>(map, map);
  EXPECT_TRUE(outside.ok()) << outside.text();
  EXPECT_FALSE((report_of_maps<LoadsTwice<ReadBy::nobody, 15>>(map, map).ok()))
      << "one row is inside";
}

// The shadow by itself.

using sim::Copy;
using sim::CopyShadow;
using sim::Instruction;
using sim::Overwrite;

Overwrite const kBy{Instruction::cp_async_bulk, {}, 0, 0};

int lost(CopyShadow& shadow, CopyShadow::Id id, std::uint32_t offset, std::uint32_t n,
         Overwrite by = kBy) {
  int count = 0;
  shadow.bring(id, offset, n, by, [&](Copy const&) { ++count; });
  return count;
}

TEST(CopyShadow, ACopyIsLostWithItsLastWord) {
  CopyShadow shadow;
  shadow.reset(1024);
  Copy const copy{.instruction = Instruction::cp_async_bulk, .where = {"a", 1}, .fetches = true};
  auto const first = shadow.add(copy);
  EXPECT_EQ(lost(shadow, first, 16, 32), 0);
  EXPECT_EQ(shadow.at(12), nullptr);
  ASSERT_NE(shadow.at(47), nullptr);
  EXPECT_EQ(shadow.at(48), nullptr);
  auto const second = shadow.add(copy);
  EXPECT_EQ(lost(shadow, second, 0, 44), 0) << "a word of it is left";
  EXPECT_EQ(lost(shadow, second, 44, 4), 1);
  shadow.read(3, 1);
  EXPECT_EQ(lost(shadow, 0, 0, 48), 0) << "it has been read";
  EXPECT_EQ(shadow.at(20), nullptr);
}

TEST(CopyShadow, ThreadsTakeWordsFromCopies) {
  CopyShadow shadow;
  shadow.reset(64);
  Copy const copy{.instruction = Instruction::cp_async_bulk, .where = {"a", 1}, .fetches = true};
  lost(shadow, shadow.add(copy), 0, 16);
  shadow.write(0, 12);
  EXPECT_EQ(shadow.at(8), nullptr);
  EXPECT_NE(shadow.at(12), nullptr);
  EXPECT_EQ(lost(shadow, shadow.add(copy), 12, 4), 1);
  shadow.write(13, 1);  // a byte of the only word
  EXPECT_EQ(shadow.at(12), nullptr);
  lost(shadow, shadow.add(copy), 0, 16);
  shadow.write(2, 1);
  EXPECT_EQ(lost(shadow, 0, 0, 16), 0) << "the rest of a word may be meant";
}

TEST(CopyShadow, AnOverwriteOutOfOrderLosesNothing) {
  CopyShadow shadow;
  shadow.reset(64);
  Copy const copy{.instruction = Instruction::cp_async_bulk, .where = {"a", 1}, .fetches = true};
  lost(shadow, shadow.add(copy), 0, 16);
  EXPECT_EQ(lost(shadow, shadow.add(copy), 0, 16, {}), 0);
}

/// The lines of copies by cp.async that were lost.
std::string lost_parts(CopyShadow& shadow) {
  std::string lines;
  shadow.for_each_lost(
      [&](Copy const& copy, Overwrite const&) { lines += std::to_string(copy.where.line) + " "; });
  return lines;
}

TEST(CopyShadow, PartsOfALineAndAGroupAreOneCopy) {
  CopyShadow shadow;
  shadow.reset(64);
  Overwrite const by{Instruction::cp_async, {}, 0, 0};
  auto const part = [&](int line, std::uint32_t group, std::uint32_t offset, bool fetches = true) {
    Copy const copy{.instruction = Instruction::cp_async, .where = {"a", line}, .fetches = fetches};
    EXPECT_EQ(lost(shadow, shadow.add_part(copy, group), offset, 16, by), 0) << "known at the end";
  };
  part(1, 0, 0), part(2, 0, 16), part(3, 0, 32, false);
  part(1, 1, 0), part(2, 1, 16), part(3, 1, 32);
  EXPECT_EQ(lost_parts(shadow), "1 2 ") << "line 3 has only filled";
  // A thread that comes late has another part of the first, and reads it.
  part(1, 0, 48);
  shadow.read(50, 1);
  EXPECT_EQ(lost_parts(shadow), "2 ");
  part(1, 2, 48);  // its entry goes, and what was read stays read
  EXPECT_EQ(lost_parts(shadow), "2 ");
}

}  // namespace
}  // namespace tegula
