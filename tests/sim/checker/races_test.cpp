#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "broken_kernel.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/stmatrix.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/vector.hpp"

/// Races in shared memory. Each rule has a kernel that is right, and the same without the one
/// operation that orders its two accesses, which are those on the lines `kOne` and `kOther`.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

constexpr SourceLocation kOne{"checker/races_test.cpp", 1};
constexpr SourceLocation kOther{"checker/races_test.cpp", 2};

/// Base: two warps, words that are all written at first, a tile for copies, and mbarriers.
struct Racing : Broken {
  static constexpr int threads = 64;
  struct SharedStorage {
    alignas(128) std::uint32_t words[128];
    alignas(128) std::uint32_t tile[32];
    Mbarrier full[2];
    template <class F> void name_buffers(F&& name) {
      name("words", words);
      name("tile", tile);
      name("full", full);
    }
  };
  static constexpr int tile_bytes = 128;
  static SharedAddr word(SharedStorage const& smem, int i) {
    return shared_address(&smem.words[i]);
  }
  static SharedAddr tile(SharedStorage const& smem, int i = 0) {
    return shared_address(&smem.tile[i]);
  }
  static SharedAddr full(SharedStorage const& smem, int i = 0) {
    return shared_address(&smem.full[i]);
  }

  /// Everything is written, the mbarriers take `count` arrivals, and all threads know it.
  static void begin(SharedStorage const& smem, int count = 1) {
    for (int i = thread_idx(); i < 128; i += 64) st_shared(word(smem, i), 1u);
    if (warp_id() == 0) st_shared(tile(smem, lane_id()), 1u);
    if (thread_idx() == 0) {
      for (int i = 0; i < 2; ++i) mbarrier_init(full(smem, i), count);
      fence_mbarrier_init();
    }
    fence_proxy_async();
    cta::sync();
  }
  /// This thread loads the tile.
  static void load(SharedStorage const& smem, Params const& p,
                   SourceLocation where = SourceLocation::current()) {
    mbarrier_arrive_expect_tx(full(smem), tile_bytes);
    bulk_load(tile(smem), p.in, tile_bytes, full(smem), where);
  }
};

/// The kernel is clean at every schedule.
template <class Kernel> void expect_clean(sim::Options const& base = {}, Dim3 grid = {1, 1, 1}) {
  for_each_schedule(
      [&](sim::Options const& options) {
        sim::Report const report = report_of<Kernel>(options, grid);
        EXPECT_TRUE(report.ok()) << schedule_text(options) << ": " << report.text();
      },
      base);
}

/// At every schedule the kernel has one finding, of that kind, on one of the two lines and about
/// the other. Returns that of the default schedule.
template <class Kernel>
Finding expect_race(FindingKind kind, sim::Options const& base = {}, Dim3 grid = {1, 1, 1}) {
  for_each_schedule(
      [&](sim::Options const& options) {
        sim::Report const report = report_of<Kernel>(options, grid);
        ASSERT_EQ(report.findings.size(), 1u) << schedule_text(options) << ": " << report.text();
        Finding const& f = report.findings[0];
        EXPECT_EQ(sim::to_string(f.kind), sim::to_string(kind))
            << schedule_text(options) << report.text();
        EXPECT_EQ(f.where.line + f.other.line, kOne.line + kOther.line) << report.text();
        EXPECT_FALSE(f.order.empty()) << report.text();
      },
      base);
  sim::Report const report = report_of<Kernel>(base, grid);
  return report.findings.empty() ? Finding{} : report.findings[0];
}

template <bool Syncs> struct WritesForAnotherWarp : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() == 1) st_shared(word(smem, lane_id()), 7u, kOne);
    if (Syncs) cta::sync();
    if (warp_id() == 0) ld_shared<std::uint32_t>(word(smem, 31 - lane_id()), kOther);
  }
};

TEST(Races, ABarrierOrdersAWriteBeforeARead) {
  expect_clean<WritesForAnotherWarp<true>>();
  Finding const f = expect_race<WritesForAnotherWarp<false>>(FindingKind::data_race);
  EXPECT_EQ(
      f.message,
      "ld.shared reads element 31 of words, which warp 1 lane 31 wrote by st.shared (checker/races_test.cpp:1), "
      "and nothing orders the two");
  EXPECT_EQ(
      f.order,
      "a cta::sync between them, or an arrival on an mbarrier and a wait for it, would order them");
  EXPECT_EQ("checker/" + documented("WritesForAnotherWarp<false>"),
            sim::to_string(f, "WritesForAnotherWarp<false>"));
  EXPECT_EQ(f.warp, 0);
  EXPECT_EQ(f.other_warp, 1);
  EXPECT_EQ(f.other_lane, 31);
  EXPECT_EQ(f.count, 32);
  EXPECT_TRUE(report_of<WritesForAnotherWarp<false>>({.races = false}).ok());
  EXPECT_TRUE(report_of<WritesForAnotherWarp<false>>({.check = false}).ok());
}

template <bool Syncs> struct OverwritesForAnotherWarp : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() == 1) ld_shared<Vector<float, 4>>(word(smem, 4 * lane_id()), kOne);
    if (Syncs) cta::sync();
    if (warp_id() == 0) st_shared(word(smem, 2 * lane_id()), 7u, kOther);
  }
};

TEST(Races, ABarrierOrdersAReadBeforeAWrite) {
  expect_clean<OverwritesForAnotherWarp<true>>();
  Finding const f = expect_race<OverwritesForAnotherWarp<false>>(FindingKind::data_race);
  EXPECT_SAYS(f, "st.shared writes element 0 of words, which warp 1 lane 0 read by ld.shared (");
}

template <bool Syncs> struct WritesTwice : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() == 0) st_shared(word(smem, lane_id()), 7u, kOne);
    if (Syncs) cta::sync();
    if (warp_id() == 1) st_shared(word(smem, lane_id()), 8u, kOther);
  }
};

TEST(Races, TwoWrites) {
  expect_clean<WritesTwice<true>>();
  expect_race<WritesTwice<false>>(FindingKind::data_race);
}

/// Lanes of a warp pass words to one another: a shuffle orders nothing, bar.warp.sync does.
template <bool Syncs> struct PassesWordsInAWarp : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (lane_id() < 16) st_shared(word(smem, thread_idx()), 7u, kOne);
    warp::shfl(lane_id(), 0);
    if (Syncs) warp::sync();
    if (lane_id() >= 16) ld_shared<std::uint32_t>(word(smem, thread_idx() - 16), kOther);
  }
};

TEST(Races, LanesOfAWarpNeedItsBarrier) {
  expect_clean<PassesWordsInAWarp<true>>();
  Finding const f = expect_race<PassesWordsInAWarp<false>>(FindingKind::data_race);
  EXPECT_EQ(f.order, "a warp::sync between them would order them");
}

/// ... of the lanes that take part in it.
template <std::uint32_t Mask> struct SyncsSomeLanes : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (thread_idx() == 5) st_shared(word(smem, 5), 7u, kOne);
    if ((Mask >> lane_id() & 1) != 0) warp::sync(Mask);
    if (thread_idx() == 6) ld_shared<std::uint32_t>(word(smem, 5), kOther);
  }
};

TEST(Races, ABarrierOfSomeLanesOrdersThose) {
  expect_clean<SyncsSomeLanes<0x60u>>();
  expect_race<SyncsSomeLanes<0x0fu>>(FindingKind::data_race);
}

/// The halves of a word are places of their own.
template <bool Same> struct WritesHalves : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    SharedAddr const first = word(smem, 0);
    if (lane_id() != 0) return;
    if (warp_id() == 0) st_shared(first + 2, std::uint16_t{5}, kOne);
    if (warp_id() == 1) st_shared(first + (Same ? 3 : 1), std::uint8_t{6}, kOther);
  }
};

TEST(Races, HalvesOfAWordArePlacesOfTheirOwn) {
  expect_clean<WritesHalves<false>>();
  Finding const f = expect_race<WritesHalves<true>>(FindingKind::data_race);
  EXPECT_EQ(f.coordinate, "byte 3 of element 0 of words");
}

/// bar.arrive releases and bar.sync acquires; bar.arrive acquires nothing.
template <int Consumer> struct NamedBarrier : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() == 0) {
      st_shared(word(smem, lane_id()), 7u, kOne);
      Consumer == 2 ? cta::bar_sync(1, 64) : cta::bar_arrive(1, 64);
    } else {
      if (Consumer == 1) cta::bar_sync(1, 64);
      if (Consumer == 2) cta::bar_arrive(1, 64);
      ld_shared<std::uint32_t>(word(smem, lane_id()), kOther);
      if (Consumer == 0) cta::bar_sync(1, 64);
    }
  }
};

/// Twelve warps read a word, and the one beside it; all, or all but the first, tell warp 0.
template <bool All> struct ManyReaders : Racing {
  static constexpr int threads = 416, counted = All ? threads : threads - 32;
  void operator()(Params const&, SharedStorage& smem) const {
    if (warp_id() < 2)
      begin(smem);
    else
      cta::sync();
    if (warp_id() != 0) {
      for (int i = 0; i < 2; ++i) ld_shared<std::uint32_t>(word(smem, i), kOne);
      if (All || warp_id() != 1) cta::bar_arrive(1, counted);
    } else {
      cta::bar_sync(1, counted);
      if (lane_id() == 0) st_shared(word(smem, 0), 7u, kOther);
    }
  }
};

TEST(Races, ManyReadersAreAllRemembered) {
  expect_clean<ManyReaders<true>>();
  expect_race<ManyReaders<false>>(FindingKind::data_race);
}

TEST(Races, ANamedBarrierIsWaitedForBySyncAlone) {
  expect_clean<NamedBarrier<1>>();
  expect_race<NamedBarrier<0>>(FindingKind::data_race);
  expect_race<NamedBarrier<2>>(FindingKind::data_race);
}

/// An arrival at an mbarrier releases, a wait acquires; by one thread for others that it
/// synchronises with.
template <bool Passes> struct HandsOver : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem, 32);
    if (warp_id() == 0) {
      st_shared(word(smem, lane_id()), 7u, kOne);
      mbarrier_arrive(full(smem));
    } else {
      if (lane_id() == 3) mbarrier_wait_parity(full(smem), 0);
      if (Passes) warp::sync();
      if (lane_id() != 3) ld_shared<std::uint32_t>(word(smem, lane_id()), kOther);
    }
  }
};

TEST(Races, AnMbarrierOrdersThoseWhoWait) {
  expect_clean<HandsOver<true>>();
  expect_race<HandsOver<false>>(FindingKind::data_race);
}

/// Hands words over by an mbarrier, with or without fences between threads beside it.
template <bool Fences> struct HandsOverWithFences : Racing {
  static constexpr int arrival = __LINE__ + 6, wait = arrival + 2;
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem, 32);
    if (warp_id() == 0) {
      st_shared(word(smem, lane_id()), 7u, kOne);
      if (Fences) fence_acq_rel<Scope::cta>();
      mbarrier_arrive(full(smem));
    } else {
      mbarrier_wait_parity(full(smem), 0);
      if (Fences) fence_acq_rel<Scope::cta>();
      ld_shared<std::uint32_t>(word(smem, lane_id()), kOther);
    }
  }
};

/// A relaxed arrival, or wait, orders what a fence between threads beside it does.
TEST(Races, RelaxedArrivalsAndWaitsNeedAFence) {
  auto const relaxed = [](int line, Operation operation) {
    return sim::Mutant{"checker/races_test.cpp", line, operation, Mutation::weakened};
  };
  using With = HandsOverWithFences<true>;
  using Without = HandsOverWithFences<false>;
  for_each_schedule([&](sim::Options options) {
    EXPECT_TRUE(report_of<Without>(options).ok()) << schedule_text(options);
    for (auto const& [with, without] :
         {std::pair(relaxed(With::arrival, Operation::mbarrier_arrive),
                    relaxed(Without::arrival, Operation::mbarrier_arrive)),
          std::pair(relaxed(With::wait, Operation::mbarrier_wait),
                    relaxed(Without::wait, Operation::mbarrier_wait))}) {
      options.mutant = with;
      EXPECT_TRUE(report_of<With>(options).ok()) << schedule_text(options);
      options.mutant = without;
      EXPECT_FALSE(report_of<Without>(options).ok()) << schedule_text(options);
    }
  });
}

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
  struct SharedStorage {
    TileA a;
    TileB b;
    Mbarrier full;
    Mbarrier empty;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("full", full);
      name("empty", empty);
    }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    for (SharedAddr at = 4u * static_cast<SharedAddr>(thread_idx()); at < sizeof(smem.a.data);
         at += 640)
      st_shared(shared_address(smem.a.data) + at, 0u);
    for (SharedAddr at = 4u * static_cast<SharedAddr>(thread_idx()); at < sizeof(smem.b.data);
         at += 640)
      st_shared(shared_address(smem.b.data) + at, 0u);
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

/// Base: two CTAs of a cluster.
struct RacingPair : Racing {
  static constexpr Dim3 cluster = {2, 1, 1};
};

/// CTA 0 writes its peer's memory; the barrier of the cluster orders that if the arrival releases.
template <int Kind> struct WritesPeersWords : RacingPair {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    cluster::sync();
    if (cluster_cta_rank() == 0) st_shared_cluster(mapa(word(smem, thread_idx()), 1), 5u, kOne);
    if (Kind == 0) fence_acq_rel<Scope::gpu>();
    if (Kind == 2) {
      cluster::arrive();
    } else {
      cluster::arrive_relaxed();
    }
    cluster::wait();
    if (cluster_cta_rank() == 1) ld_shared<std::uint32_t>(word(smem, thread_idx()), kOther);
  }
};

TEST(Races, TheClustersBarrierOrdersWhatWasReleased) {
  expect_clean<WritesPeersWords<0>>({}, {2, 1, 1});
  expect_clean<WritesPeersWords<2>>({}, {2, 1, 1});
  Finding const f = expect_race<WritesPeersWords<1>>(FindingKind::data_race, {}, {2, 1, 1});
  EXPECT_SAYS(
      f,
      "ld.shared reads element 0 of words, which warp 0 lane 0 of CTA 0 of the cluster wrote by "
      "st.shared::cluster (");
  EXPECT_EQ(
      f.order,
      "a cluster::sync between them, or an mbarrier_arrive_cluster_release and, after the wait for it, a fence_acq_rel<Scope::gpu>, would order them");
}

/// fence.mbarrier_init and a relaxed arrival make known an init, and nothing else.
template <bool Fence, bool Reads> struct KnowsPeersInit : RacingPair {
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) {
      st_shared(word(smem, 0), 5u, kOne);
      mbarrier_init(full(smem), 1, kOne);
      if (Fence) fence_mbarrier_init();
    }
    cluster::arrive_relaxed();
    cluster::wait();
    int const peer = 1 - cluster_cta_rank();
    if (Reads && thread_idx() == 32)
      ld_shared_cluster<std::uint32_t>(mapa(word(smem, 0), peer), kOther);
    if (!Reads && thread_idx() == 32) mbarrier_arrive_cluster(mapa(full(smem), peer), kOther);
    cluster::sync();
  }
};

TEST(Races, AFenceOfMbarrierInitAndARelaxedArrivalMakeItKnown) {
  expect_clean<KnowsPeersInit<true, false>>({}, {2, 1, 1});
  Finding const f =
      expect_race<KnowsPeersInit<false, false>>(FindingKind::mbarrier_misuse, {}, {2, 1, 1});
  EXPECT_SAYS(f, ", before which nothing orders its init by warp 0 lane 0 of CTA ");
  expect_race<KnowsPeersInit<true, true>>(FindingKind::data_race, {}, {2, 1, 1});
}

/// CTA 0 writes its peer's memory and arrives at its mbarrier: at the scope of the CTA, or of the
/// cluster; a wait acquires at the scope of the CTA, and a fence after it at the GPU's.
template <bool Wide, bool Fences> struct SendsToItsPeer : RacingPair {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem, 64);
    cluster::sync();
    if (cluster_cta_rank() == 0) {
      st_shared_cluster(mapa(word(smem, thread_idx()), 1), 5u, kOne);
      SharedAddr const there = mapa(full(smem), 1);
      Wide ? mbarrier_arrive_cluster_release(there) : mbarrier_arrive_cluster(there);
    } else {
      mbarrier_wait_parity(full(smem), 0);
      if (Fences) fence_acq_rel<Scope::gpu>();
      ld_shared<std::uint32_t>(word(smem, thread_idx()), kOther);
    }
    cluster::sync();
  }
};

TEST(Races, AnArrivalAtAPeersMbarrierReleasesAtItsScope) {
  expect_clean<SendsToItsPeer<true, true>>({}, {2, 1, 1});
  expect_race<SendsToItsPeer<false, true>>(FindingKind::data_race, {}, {2, 1, 1});
  expect_race<SendsToItsPeer<true, false>>(FindingKind::data_race, {}, {2, 1, 1});
}

/// CTA 1 reads its tile and tells CTA 0, which loads over it. (Strictly, at too narrow a scope.)
struct FreesATileForItsPeer : RacingPair {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem, 32);
    cluster::sync();
    if (warp_id() == 0 && cluster_cta_rank() == 1) {
      ld_shared<std::uint32_t>(tile(smem, lane_id()), kOne);
      mbarrier_arrive_cluster(mapa(full(smem, 1), 0));
      mbarrier_arrive(full(smem));
      if (lane_id() == 0) mbarrier_expect_tx(full(smem), tile_bytes);
    }
    if (thread_idx() == 0 && cluster_cta_rank() == 0) {
      mbarrier_wait_parity(full(smem, 1), 0);
      bulk_load(mapa(tile(smem), 1), p.in, tile_bytes, mapa(full(smem), 1), kOther);
    }
    cluster::sync();
    if (cluster_cta_rank() == 1) mbarrier_wait_parity(full(smem), 0);
  }
};

TEST(Races, AnArrivalAtAPeersMbarrierTellsOfReads) {
  EXPECT_TRUE(report_of<FreesATileForItsPeer>({}, {2, 1, 1}).ok());
  sim::Report const strict =
      report_of<FreesATileForItsPeer>({.strict = {.scopes = true}}, {2, 1, 1});
  ASSERT_EQ(strict.findings.size(), 1u) << strict.text();
  EXPECT_EQ(strict.findings[0].kind, FindingKind::async_overwrite);
}

/// stmatrix writes for the lanes that hold the elements, ldmatrix reads for those that get them.
template <bool Others, bool Syncs> struct MovesAMatrix : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() != 0) return;
    std::uint32_t r[1] = {static_cast<std::uint32_t>(lane_id())};
    int const row = lane_id() % 8;
    stmatrix<1>(word(smem, 4 * row), r, kOne);
    if (Syncs) warp::sync();
    ldmatrix<1>(r, word(smem, 4 * (Others ? 7 - row : row)), kOther);
  }
};

TEST(Races, LanesOfAMatrixInstructionAccessTheirElements) {
  expect_clean<MovesAMatrix<false, false>>();
  expect_clean<MovesAMatrix<true, true>>();
  expect_race<MovesAMatrix<true, false>>(FindingKind::data_race);
}

}  // namespace
}  // namespace tegula
