#include <gtest/gtest.h>

#include <string>

#include "flights.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"

/// Operations in flight: what may be touched meanwhile, which fences they need, and that a CTA must
/// not exit before them.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

std::string at(int line) {
  return "(checker/in_flight_checker_test.cpp:" + std::to_string(line) + ")";
}

template <int Kind> struct TouchesALoad : Flights {
  static constexpr int load_line = __LINE__ + 4;
  static constexpr int line = __LINE__ + (Kind == 0 ? 7 : 8);
  void operator()(Params const& p, SharedStorage& smem) const {
    make_full(smem, 0);
    if (thread_idx() == 0) load(smem, 0, p.in);
    cta::sync();
    if (warp_id() == 0) return;
    if (lane_id() == 1)
      Kind == 0 ? (void)ld_shared<std::uint32_t>(tile(smem, 0) + 20)
                : st_shared(tile(smem, 0) + 20, 1u);
    warp::sync();
    mbarrier_wait_parity(full(smem, 0), 0);
  }
};

TEST(InFlightChecker, TouchingWhatALoadIsToWriteAtEverySchedule) {
  for_each_schedule([](sim::Options const& options) {
    Finding const read = only_finding(report_of<TouchesALoad<0>>(options),
                                      FindingKind::async_read_early, TouchesALoad<0>::line);
    EXPECT_EQ(read.other.line, TouchesALoad<0>::load_line);
    EXPECT_EQ(read.coordinate, "row 0, column 5 of tile");
    EXPECT_SAYS(
        read,
        "ld.shared reads row 0, column 5 of tile while a cp.async.bulk into it is in flight that warp 0 lane 0 issued " +
            at(TouchesALoad<0>::load_line));
    only_finding(report_of<TouchesALoad<1>>(options), FindingKind::async_overwrite,
                 TouchesALoad<1>::line);
  });
}

/// A ring of one stage, five times round: warp 0 loads, warps 1 and 2 read. The ring waits for warp
/// 1; for warp 2, too, where it is `Counted`. A wait for parity that comes two phases late succeeds
/// like one in time.
template <bool Counted> struct RunsAhead : Broken {
  static constexpr int threads = 96;
  struct SharedStorage {
    alignas(128) std::uint32_t tile[32];
    Mbarrier full;
    Mbarrier empty;
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full), empty = shared_address(&smem.empty);
    if (thread_idx() == 0) {
      mbarrier_init(full, 1);
      mbarrier_init(empty, Counted ? 64 : 32);
      fence_mbarrier_init();
    }
    cta::sync();
    for (int round = 0; round < 5; ++round) {
      if (thread_idx() == 0) {
        mbarrier_wait_parity(empty, ~round & 1);
        mbarrier_arrive_expect_tx(full, 128);
        bulk_load(shared_address(smem.tile), p.in + 128 * round, 128, full);
      }
      if (warp_id() == 0) continue;
      mbarrier_wait_parity(full, round & 1);
      ld_shared<std::uint32_t>(shared_address(smem.tile) + static_cast<SharedAddr>(4 * lane_id()));
      if (Counted || warp_id() == 1) mbarrier_arrive(empty);
    }
  }
};

TEST(InFlightChecker, AReaderThatTheRingDoesNotWaitForIsFoundAtEverySchedule) {
  for_each_schedule([](sim::Options const& options) {
    EXPECT_TRUE(report_of<RunsAhead<true>>(options).ok())
        << report_of<RunsAhead<true>>(options).text();
    EXPECT_FALSE(report_of<RunsAhead<false>>(options).ok());
  });
}

template <bool Waits> struct OverwritesAStore : Flights {
  static constexpr int store_line = __LINE__ + 5;
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    for (SharedAddr i = 0; i < 32; ++i) st_shared(tile(smem, 2) + 4 * i, i);
    fence_proxy_async_shared(), bulk_store(p.out, tile(smem, 2), tile_bytes);
    bulk_commit_group();
    if (Waits) bulk_wait_group_read<0>();
    st_shared(tile(smem, 2) + 124, 0u);
    bulk_wait_group<0>();
  }
};

TEST(InFlightChecker, WritingWhatAStoreHasNotReadAtEverySchedule) {
  for_each_schedule([](sim::Options const& options) {
    EXPECT_TRUE(report_of<OverwritesAStore<true>>(options).ok());
    Finding const f = only_finding(report_of<OverwritesAStore<false>>(options),
                                   FindingKind::async_overwrite, OverwritesAStore<false>::line);
    EXPECT_EQ(f.other.line, OverwritesAStore<false>::store_line);
    EXPECT_SAYS(
        f,
        "st.shared writes row 2, column 31 of tile while a cp.async.bulk that reads it is in flight that warp 0 lane 0 issued");
  });
}

/// The fence is the writer's, the issuer's, or nobody's.
template <int Fence> struct FencesAStore : Flights {
  static constexpr int store_line = __LINE__ + 3, line = store_line + 4;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (Fence == 3 && warp_id() == 0) fence_proxy_async_shared();  // too early
    if (warp_id() == 0) st_shared(tile(smem, 0) + 4u * static_cast<SharedAddr>(lane_id()), 7u);
    if (Fence == 1 && warp_id() == 0) fence_proxy_async_shared();
    cta::sync();
    if (Fence == 2 && thread_idx() == 32) fence_proxy_async();
    if (thread_idx() == 32) bulk_store(p.out, tile(smem, 0), tile_bytes);
    if (thread_idx() == 32) bulk_commit_group(), bulk_wait_group<0>();
  }
};

TEST(InFlightChecker, AStoreOfWhatWasWrittenWithoutAFenceBetweenTheProxies) {
  for_each_schedule([](sim::Options const& options) {
    EXPECT_TRUE(report_of<FencesAStore<1>>(options).ok());
    EXPECT_TRUE(report_of<FencesAStore<2>>(options).ok());
    only_finding(report_of<FencesAStore<3>>(options), FindingKind::proxy_race,
                 FencesAStore<3>::line);
    Finding const f = only_finding(report_of<FencesAStore<0>>(options), FindingKind::proxy_race,
                                   FencesAStore<0>::line);
    EXPECT_EQ(f.coordinate, "row 0, column 0 of tile");
    EXPECT_EQ(f.warp, 1);
    EXPECT_EQ(f.other.line, FencesAStore<0>::store_line);
    EXPECT_SAYS(
        f, "cp.async.bulk reads row 0, column 0 of tile, which warp 0 lane 0 wrote by st.shared " +
               at(FencesAStore<0>::store_line) + " without a fence.proxy.async after that");
  });
}

/// Only what was written after the last fence counts.
struct FencesAllButOne : Flights {
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (warp_id() != 0) return;
    st_shared(tile(smem, 0) + 4u * static_cast<SharedAddr>(lane_id()), 7u);
    fence_proxy_async_shared(), warp::sync();
    if (lane_id() == 9) st_shared(tile(smem, 0) + 4u * 3, 8u);
    warp::sync();
    if (lane_id() == 0) bulk_store(p.out, tile(smem, 0), tile_bytes);
    if (lane_id() == 0) bulk_commit_group(), bulk_wait_group<0>();
  }
};

TEST(InFlightChecker, NamesWhoWroteAfterItsFence) {
  Finding const f =
      only_finding(report_of<FencesAllButOne>(), FindingKind::proxy_race, FencesAllButOne::line);
  EXPECT_SAYS(f, "reads row 0, column 3 of tile, which warp 0 lane 9 wrote");
}

/// A load over what the generic proxy wrote needs the fence, too; over what a load wrote it
/// needs none.
template <bool Fence> struct LoadsOver : Flights {
  static constexpr int line = __LINE__ + 8;
  void operator()(Params const& p, SharedStorage& smem) const {
    make_full(smem, 0);
    if (thread_idx() != 0) return;
    st_shared(tile(smem, 0), 1u);
    if (Fence) fence_proxy_async_shared();
    for (int round = 0; round < 2; ++round) {
      mbarrier_arrive_expect_tx(full(smem, 0), tile_bytes);
      bulk_load(tile(smem, 0), p.in, tile_bytes, full(smem, 0));
      mbarrier_wait_parity(full(smem, 0), round);
      ld_shared<std::uint32_t>(tile(smem, 0));
    }
  }
};

TEST(InFlightChecker, ALoadOverWhatWasWrittenWithoutAFence) {
  EXPECT_TRUE(report_of<LoadsOver<true>>().ok());
  Finding const f =
      only_finding(report_of<LoadsOver<false>>(), FindingKind::proxy_race, LoadsOver<false>::line);
  EXPECT_EQ(f.count, 1);
  EXPECT_SAYS(f, "cp.async.bulk writes row 0, column 0 of tile, which warp 0 lane 0 wrote");
}

template <int Fence> struct InitWithoutFence : Flights {
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(full(smem, 1), 1);
    if (thread_idx() == 0 && Fence == 1) fence_mbarrier_init();
    if (thread_idx() == 0 && Fence == 2) fence_proxy_async();
    cta::sync();
    if (thread_idx() == 32) mbarrier_arrive_expect_tx(full(smem, 1), tile_bytes);
    if (thread_idx() == 32) bulk_load(tile(smem, 1), p.in, tile_bytes, full(smem, 1));
    mbarrier_wait_parity(full(smem, 1), 0);
  }
};

TEST(InFlightChecker, AnMbarrierWhoseInitTheAsynchronousProxyMayNotSee) {
  EXPECT_TRUE(report_of<InitWithoutFence<1>>().ok());
  EXPECT_TRUE(report_of<InitWithoutFence<2>>().ok());
  Finding const f = only_finding(report_of<InitWithoutFence<0>>(), FindingKind::proxy_race,
                                 InitWithoutFence<0>::line);
  EXPECT_EQ(f.other.line, InitWithoutFence<0>::line - 5);
  EXPECT_SAYS(
      f,
      "cp.async.bulk completes on element 1 of full, whose init " +
          at(InitWithoutFence<0>::line - 5) +
          " no fence.mbarrier_init or fence.proxy.async has made visible to the asynchronous proxy");
}

struct CompletesOnNoMbarrier : Flights {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) bulk_load(tile(smem, 0), p.in, tile_bytes, full(smem, 3));
  }
};

TEST(InFlightChecker, ALoadThatCompletesOnNoMbarrier) {
  Finding const f =
      only_finding(report_of<CompletesOnNoMbarrier>({.completion = sim::Completion::first}),
                   FindingKind::mbarrier_misuse, CompletesOnNoMbarrier::line);
  EXPECT_SAYS(
      f, "cp.async.bulk on element 3 of full, which is no mbarrier: nobody has initialised it");
}

struct LoadsAndExits : Flights {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const& p, SharedStorage& smem) const {
    make_full(smem, 0);
    if (thread_idx() == 0) load(smem, 0, p.in);
  }
};

TEST(ExitChecker, ALoadThatNobodyWaitsForAtEverySchedule) {
  for_each_schedule([](sim::Options const& options) {
    Finding const f = only_finding(report_of<LoadsAndExits>(options), FindingKind::exited_cta,
                                   LoadsAndExits::line);
    EXPECT_SAYS(
        f,
        "the CTA exits while a cp.async.bulk into its shared memory, from row 0, column 0 of tile on, has not been waited for");
    EXPECT_EQ(f.order, "a wait for element 0 of full, on which it completes, would order them");
  });
}

template <bool Waits> struct StoresAndExits : Flights {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (warp_id() == 0) st_shared(tile(smem, 0) + 4u * static_cast<SharedAddr>(lane_id()), 9u);
    fence_proxy_async_shared(), cta::sync();
    if (thread_idx() == 0) bulk_store(p.out, tile(smem, 0), tile_bytes), bulk_commit_group();
    if (Waits && thread_idx() == 0) bulk_wait_group_read<0>();
  }
};

TEST(ExitChecker, AStoreWhoseSourceIsNotReadAtEverySchedule) {
  for_each_schedule([](sim::Options const& options) {
    Finding const f = only_finding(report_of<StoresAndExits<false>>(options),
                                   FindingKind::exited_cta, StoresAndExits<false>::line);
    EXPECT_SAYS(
        f,
        "the CTA exits while a cp.async.bulk out of its shared memory, from row 0, column 0 of tile on, has not been waited for");
    EXPECT_EQ(f.order.find("a bulk_wait_group_read by the thread that issued it"), 0u);
    // Once it is read, the CTA may go: the store arrives all the same.
    EXPECT_EQ(result_of<StoresAndExits<true>>(options), 9u) << schedule_text(options);
  });
}

struct Pairs : Flights {
  static constexpr Dim3 cluster = {2, 1, 1};
};

/// CTA 1 arrives at CTA 0's mbarrier, which is right only where CTA 0 waits for that, or for
/// the cluster.
template <int Waits> struct ArrivesAndIsGone : Pairs {
  static constexpr int line = __LINE__ + 8;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) {
      mbarrier_init(empty(smem, 2), 1);
      fence_mbarrier_init();
    }
    cluster::sync();
    if (cluster_cta_rank() == 1 && thread_idx() == 32)
      mbarrier_arrive_cluster(mapa(empty(smem, 2), 0));
    if (Waits == 1 && cluster_cta_rank() == 0) mbarrier_wait_parity(empty(smem, 2), 0);
    if (Waits == 2) cluster::sync();
  }
};

TEST(ExitChecker, AnArrivalOfAPeerThatNobodyWaitsForAtEverySchedule) {
  for_each_schedule([](sim::Options const& options) {
    EXPECT_TRUE(report_of<ArrivesAndIsGone<1>>(options, {2, 1, 1}).ok()) << schedule_text(options);
    EXPECT_TRUE(report_of<ArrivesAndIsGone<2>>(options, {2, 1, 1}).ok()) << schedule_text(options);
    Finding const f = only_finding(report_of<ArrivesAndIsGone<0>>(options, {2, 1, 1}),
                                   FindingKind::exited_cta, ArrivesAndIsGone<0>::line);
    EXPECT_EQ(f.cta, (Dim3{1, 0, 0})) << "who arrives";
    EXPECT_EQ(f.warp, 1);
  });
}

/// CTA 1 reads CTA 0's tile; the cluster's barrier comes after that, or only before.
template <bool Waits> struct ReadsAndIsGone : Pairs {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage& smem) const {
    if (warp_id() == 0) st_shared(tile(smem, 0) + 4u * static_cast<SharedAddr>(lane_id()), 9u);
    cluster::sync();
    if (cluster_cta_rank() == 1 && warp_id() == 0)
      ld_shared_cluster<std::uint32_t>(mapa(tile(smem, 0), 0));
    if (Waits) cluster::arrive(), cluster::wait();
  }
};

TEST(ExitChecker, ALoadFromAPeerThatMayBeGoneAtEverySchedule) {
  for_each_schedule([](sim::Options const& options) {
    EXPECT_TRUE(report_of<ReadsAndIsGone<true>>(options, {2, 1, 1}).ok()) << schedule_text(options);
    all_findings(report_of<ReadsAndIsGone<false>>(options, {2, 1, 1}), FindingKind::exited_cta,
                 ReadsAndIsGone<false>::line);
  });
}

struct ReachesTheGone : Pairs {
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const& p, SharedStorage& smem) const {
    cluster::sync();
    if (cluster_cta_rank() == 0) return;
    if (thread_idx() != 0) return;
    while (ld_global<std::uint32_t>(p.in) == 1) st_global(p.in, 0u);
    st_shared_cluster(mapa(tile(smem, 3), 0), 5u);
  }
};

TEST(ExitChecker, AccessToAPeerThatIsGone) {
  Finding const f = only_finding(report_of<ReachesTheGone>({}, {2, 1, 1}), FindingKind::exited_cta,
                                 ReachesTheGone::line);
  EXPECT_EQ(f.cta, (Dim3{1, 0, 0}));
}

}  // namespace
}  // namespace tegula
