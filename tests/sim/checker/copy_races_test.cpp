#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operand_tiles.hpp"
#include "racing_kernel.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"

/// Races in shared memory with copies and products in flight.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

/// cp.async is waited for by the thread that issued it; others then need a barrier.
template <bool Syncs> struct CopiesForAnotherWarp : Racing {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() == 0) {
      cp_async_ca<4>(word(smem, lane_id()), p.in + 4 * lane_id(), 4, kOne);
      cp_async_commit_group();
      cp_async_wait_group<0>();
    }
    if (Syncs) cta::sync();
    // Without the barrier, this may come before the copies.
    if (warp_id() == 1) ld_shared<std::uint32_t>(word(smem, lane_id()), kOther);
  }
};

TEST(Races, CopiesByCpAsyncAreTheirThreadsWrites) {
  expect_clean<CopiesForAnotherWarp<true>>();
  for_each_schedule([&](sim::Options const& options) {
    sim::Report const report = report_of<CopiesForAnotherWarp<false>>(options);
    EXPECT_FALSE(report.ok());
    for (Finding const& f : report.findings)
      EXPECT_EQ(f.where.line + f.other.line, kOne.line + kOther.line);
  });
}

/// What a bulk load writes is known to those who have waited for its mbarrier, and to whom they
/// pass it on.
template <int Waits> struct ReadsALoad : Racing {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    if (thread_idx() == 0) load(smem, p, kOne);
    if (warp_id() == 0 || Waits == 2) mbarrier_wait_parity(full(smem), 0);
    if (Waits == 1) cta::sync();
    if (warp_id() == 1) ld_shared<std::uint32_t>(tile(smem, lane_id()), kOther);
  }
};

TEST(Races, ALoadIsKnownToThoseWhoWait) {
  expect_clean<ReadsALoad<1>>();
  expect_clean<ReadsALoad<2>>();
  // Whether it has landed or not, and others have waited or not.
  for_each_schedule([&](sim::Options const& options) {
    sim::Report const report = report_of<ReadsALoad<0>>(options);
    EXPECT_FALSE(report.ok());
    for (Finding const& f : report.findings) {
      if (f.where.line == kOne.line) {  // lanes read before the load was issued
        EXPECT_EQ(f.kind, FindingKind::async_overwrite);
        continue;
      }
      EXPECT_EQ(f.kind, FindingKind::async_read_early);
      EXPECT_SAYS(f,
                  "of tile while a cp.async.bulk into it is in flight that warp 0 lane 0 issued");
      EXPECT_EQ(f.other.line, kOne.line);
      EXPECT_EQ(f.order, "a wait for element 0 of full, on which it completes, would order them");
    }
  });
}

/// The lanes of warp 1 read the tile; lane 0 of warp 0 loads over it, after an arrival of lane 0 of
/// warp 1 for all of its warp, which needs a bar.warp.sync before it.
template <bool Syncs, bool Fences = false> struct ArrivesForItsWarp : Racing {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() == 1) {
      ld_shared<std::uint32_t>(tile(smem, lane_id()), kOne);
      if (Fences) fence_proxy_async_shared();
      if (Syncs) warp::sync();
      if (lane_id() == 31) mbarrier_arrive(full(smem, 1));
    } else if (lane_id() == 0) {
      mbarrier_wait_parity(full(smem, 1), 0);
      load(smem, p, kOther);
    }
    mbarrier_wait_parity(full(smem), 0);
  }
};

TEST(Races, AnArrivalForAWarpComesAfterItsBarrier) {
  expect_clean<ArrivesForItsWarp<true>>();
  Finding const f = report_of<ArrivesForItsWarp<false>>().findings.at(0);
  EXPECT_EQ(f.kind, FindingKind::async_overwrite);
  EXPECT_EQ(f.where.line, kOther.line);
  EXPECT_SAYS(
      f,
      "cp.async.bulk writes element 0 of tile, which warp 1 lane 0 reads by ld.shared (checker/races_test.cpp:1)");
}

TEST(Races, StrictlyAnOverwriteByTheAsynchronousProxyNeedsItsFence) {
  sim::Options const strict{.strict = {.proxies = true}};
  expect_clean<ArrivesForItsWarp<true, true>>(strict);
  Finding const f = expect_race<ArrivesForItsWarp<true>>(FindingKind::proxy_race, strict);
  EXPECT_SAYS(f, "cp.async.bulk writes element 0 of tile, which warp 1 lane 0 read by ld.shared (");
  EXPECT_SAYS(f, "), without one after that");
}

/// A bulk store's source is free for the thread that has waited for its group, and those who come
/// after it.
template <bool Syncs> struct OverwritesAStoresSource : Racing {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    if (thread_idx() == 0) {
      bulk_store(p.out, tile(smem), tile_bytes, kOne);
      bulk_commit_group();
      bulk_wait_group_read<0>();
      st_shared(tile(smem), 3u);
      mbarrier_arrive(full(smem));
    }
    if (Syncs) mbarrier_wait_parity(full(smem), 0);
    if (warp_id() == 1) st_shared(tile(smem, lane_id()), 7u, kOther);
  }
};

TEST(Races, AStoresSourceIsFreeForThoseWhoComeAfterItsWait) {
  expect_clean<OverwritesAStoresSource<true>>();
  for_each_schedule([&](sim::Options const& options) {
    for (Finding const& f : report_of<OverwritesAStoresSource<false>>(options).findings) {
      if (f.kind == FindingKind::data_race)
        continue;  // the writes came before the store, or its thread's own
      EXPECT_EQ(f.kind, FindingKind::async_overwrite);
      EXPECT_SAYS(f, "st.shared writes element ");
      EXPECT_EQ(f.other.line, kOne.line);
    }
  });
  EXPECT_FALSE(report_of<OverwritesAStoresSource<false>>().ok());
}

/// Two loads of which the phase counts the bytes of one.
template <bool CountsBoth> struct ExpectsTooLittle : Racing {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(full(smem), CountsBoth ? 128 : 64);
      bulk_load(tile(smem), p.in, 64, full(smem), kOne);
      bulk_load(tile(smem, 16), p.in + 64, 64, full(smem), kOne);
    }
    mbarrier_wait_parity(full(smem), 0);
    if (warp_id() == 0) ld_shared<std::uint32_t>(tile(smem, lane_id()), kOther);
    if (!CountsBoth) {
      cta::sync();
      if (thread_idx() == 0) mbarrier_arrive_expect_tx(full(smem), 64);
      mbarrier_wait_parity(full(smem), 1);
    }
  }
};

TEST(Races, BytesThatAPhaseDoesNotCountAreReadEarly) {
  expect_clean<ExpectsTooLittle<true>>();
  Finding const f = expect_race<ExpectsTooLittle<false>>(FindingKind::async_read_early);
  EXPECT_EQ(f.count, 16);
}

/// wgmma reads its operands for four warps, each of which waits and tells the one that loads
/// over them.
template <int Arriving, bool Waits = true> struct LoadsOverAnOperand : Broken {
  static constexpr int threads = 160;
  using TileA = SharedTile<std::uint16_t, swizzled_operand(16, 64, 64, 1)>;
  using TileB = SharedTile<std::uint16_t, swizzled_operand(16, 16, 64, 1)>;
  struct SharedStorage : OperandTiles<TileA, TileB> {
    Mbarrier full;
    Mbarrier empty;
    template <class F> void name_buffers(F&& name) {
      OperandTiles<TileA, TileB>::name_buffers(name);
      name("full", full);
      name("empty", empty);
    }
  };
  template <class Tile> static void clear(Tile const& tile) {
    for (int at = 4 * thread_idx(); at < static_cast<int>(sizeof(tile.data)); at += 4 * threads)
      st_shared(shared_address(tile.data) + static_cast<SharedAddr>(at), 0u);
  }
  void operator()(Params const& p, SharedStorage& smem) const {
    clear(smem.a);
    clear(smem.b);
    SharedAddr const full = shared_address(&smem.full);
    SharedAddr const empty = shared_address(&smem.empty);
    if (thread_idx() == 0)
      mbarrier_init(full, 1), mbarrier_init(empty, Arriving), fence_mbarrier_init();
    fence_proxy_async_shared();
    cta::sync();
    if (warp_id() == 4) {
      if (lane_id() == 0) {
        mbarrier_wait_parity(empty, 0);
        mbarrier_arrive_expect_tx(full, 2048);
        bulk_load(shared_address(smem.b.data), p.in, 2048, full, kOther);
      }
      mbarrier_wait_parity(full, 0);
      return;
    }
    float d[8] = {};
    wgmma_fence();
    wgmma<warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 16)>(
        d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), false, kOne);
    wgmma_commit_group();
    if (Waits) wgmma_wait_group<0>();
    if (lane_id() == 7 && warp_id() < Arriving) mbarrier_arrive(empty);
    wgmma_wait_group<0>();
  }
};

TEST(Races, EachWarpOfAWarpgroupTellsThatItsWgmmaHasRead) {
  expect_clean<LoadsOverAnOperand<4>>();
  Finding const f = expect_race<LoadsOverAnOperand<3>>(FindingKind::async_overwrite);
  EXPECT_SAYS(f,
              "cp.async.bulk writes row 0, column 0 of B, which warp 3 reads by wgmma.mma_async (");
  EXPECT_EQ(
      f.order,
      "an arrival of warp 3 on an mbarrier after its wgmma_wait_group, and a wait for it, would order "
      "them");
  EXPECT_EQ(f.other_warp, 3);
  EXPECT_EQ(f.other_lane, -1);
  // Its group was not waited for at all.
  sim::Report const unwaited = report_of<LoadsOverAnOperand<4, false>>();
  ASSERT_EQ(unwaited.findings.size(), 1u) << unwaited.text();
  EXPECT_EQ(unwaited.findings[0].kind, FindingKind::async_overwrite);
}

}  // namespace
}  // namespace tegula
