#include <gtest/gtest.h>

#include "flights.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"

/// A CTA exits after its peers are done with its shared memory: what orders the two.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

struct OfTwo : Flights {
  static constexpr Dim3 cluster = {2, 1, 1};
};

/// A release that CTA 1 makes after it has touched CTA 0's tile, and the wait of CTA 0 for it.
enum class Handed {
  by_each_lane,   ///< every lane that touches it arrives
  by_one_lane,    ///< one arrives, after the warp has met
  by_last_lane,   ///< one arrives, and nothing orders the other lanes' accesses before that
  at_another,     ///< every lane arrives at an mbarrier that nobody waits for, then at this one
  to_one_thread,  ///< as by_each_lane; one thread of CTA 0 waits
  in_the_cta,     ///< as by_each_lane, with .release.cta
  by_nobody,
};

/// Warp 0 of CTA 1 stores to CTA 0's tile, or loads from it.
template <Handed How, bool Stores> struct TouchesAPeer : OfTwo {
  static constexpr int store_line = __LINE__ + 12, load_line = __LINE__ + 13;
  static constexpr int arrivals =
      How == Handed::by_one_lane || How == Handed::by_last_lane ? 1 : 32;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) {
      mbarrier_init(empty(smem, 1), 32), mbarrier_init(empty(smem, 2), arrivals);
      fence_mbarrier_init();
    }
    SharedAddr const word = tile(smem, 0) + 4u * static_cast<SharedAddr>(lane_id());
    if (warp_id() == 0) st_shared(word, 9u);
    cluster::sync();
    if (cluster_cta_rank() == 1 && warp_id() == 0) {
      if (Stores) st_shared_cluster(mapa(word, 0), 5u);
      if (!Stores) ld_shared_cluster<std::uint32_t>(mapa(word, 0));
      arrive(smem);
    }
    if (cluster_cta_rank() != 0 || How == Handed::by_nobody) return;
    if (How != Handed::to_one_thread || thread_idx() == 33)
      mbarrier_wait_parity<MemoryOrder::acquire, Scope::cluster>(empty(smem, 2), 0);
  }

 private:
  void arrive(SharedStorage& smem) const {
    SharedAddr const there = mapa(empty(smem, 2), 0);
    if (How == Handed::by_nobody) return;
    if (How == Handed::by_one_lane) warp::sync();
    if (arrivals == 1 && lane_id() != 31) return;
    if (How == Handed::at_another) mbarrier_arrive_cluster_release(mapa(empty(smem, 1), 0));
    if (How == Handed::in_the_cta) {
      mbarrier_arrive_cluster(there);
    } else {
      mbarrier_arrive_cluster_release(there);
    }
  }
};

template <Handed How, bool Stores> void expect_in_order() {
  for_each_schedule([](sim::Options const& options) {
    sim::Report const report = report_of<TouchesAPeer<How, Stores>>(options, {2, 1, 1});
    EXPECT_TRUE(report.ok()) << schedule_text(options) << report.text();
  });
}

template <Handed How, bool Stores> void expect_exits_early() {
  for_each_schedule([](sim::Options const& options) {
    using Kernel = TouchesAPeer<How, Stores>;
    all_findings(report_of<Kernel>(options, {2, 1, 1}), FindingKind::exited_cta,
                 Stores ? Kernel::store_line : Kernel::load_line);
  });
}

TEST(Peers, AnMbarrierOrdersAStoreBeforeTheExitOfItsCta) {
  expect_in_order<Handed::by_each_lane, true>();
  expect_in_order<Handed::by_one_lane, true>();
  expect_in_order<Handed::at_another, true>();
  expect_in_order<Handed::to_one_thread, true>();
}

TEST(Peers, AnMbarrierOrdersALoadBeforeTheExitOfItsCta) {
  expect_in_order<Handed::by_each_lane, false>();
  expect_in_order<Handed::by_one_lane, false>();
  expect_in_order<Handed::in_the_cta, false>();
}

TEST(Peers, WhatNoArrivalCoversMayComeAfterTheExit) {
  expect_exits_early<Handed::by_last_lane, true>();
  expect_exits_early<Handed::by_last_lane, false>();
  expect_exits_early<Handed::in_the_cta, true>();
  expect_exits_early<Handed::by_nobody, true>();
  expect_exits_early<Handed::by_nobody, false>();
}

/// Without the account of races nothing says whether an mbarrier orders them.
TEST(Peers, WithoutRacesAnAccessIsNotHeldAgainstTheExit) {
  EXPECT_TRUE(
      (report_of<TouchesAPeer<Handed::by_each_lane, true>>({.races = false}, {2, 1, 1})).ok());
}

/// Each CTA, or CTA 0, copies its tile 0 to the other's tile 1. The other has what came, and the
/// first exits: `Meets`, after it has heard of that.
template <bool Both, bool Meets, int Copies = 1> struct CopiesToAPeer : OfTwo {
  static constexpr int line = __LINE__ + 11;
  void operator()(Params const& p, SharedStorage& smem) const {
    bool const sends = Both || cluster_cta_rank() == 0, gets = Both || cluster_cta_rank() == 1;
    make_full(smem, 1);
    if (gets && thread_idx() == 0) mbarrier_arrive_expect_tx(full(smem, 1), Copies * tile_bytes);
    if (warp_id() == 0) st_shared(tile(smem, 0) + 4u * static_cast<SharedAddr>(lane_id()), 9u);
    fence_proxy_async_shared();
    cluster::sync();
    for (int i = 0; sends && thread_idx() == 0 && i < Copies; ++i) {
      int const peer = cluster_cta_rank() ^ 1;
      SharedAddr const to = mapa(tile(smem, 1 + i), peer), done = mapa(full(smem, 1), peer);
      bulk_copy_cluster(to, tile(smem, 0), tile_bytes, done);
    }
    if (gets) {
      mbarrier_wait_parity(full(smem, 1), 0);
      for (int i = 0; thread_idx() == 0 && i < Copies; ++i)
        st_global(p.out + 8 * cluster_cta_rank() + 4 * i,
                  ld_shared<std::uint32_t>(tile(smem, 1 + i)));
    }
    if (Meets) cluster::sync();
  }
};

template <bool Both, int Copies = 1> void expect_source_is_gone() {
  for_each_schedule([](sim::Options const& options) {
    EXPECT_TRUE((report_of<CopiesToAPeer<Both, true, Copies>>(options, {2, 1, 1}).ok()))
        << schedule_text(options);
    using Kernel = CopiesToAPeer<Both, false, Copies>;
    Finding const f =
        only_finding(report_of<Kernel>(options, {2, 1, 1}), FindingKind::exited_cta, Kernel::line);
    EXPECT_NE(f.order.find("a cluster::sync after the wait for element 1 of full"),
              std::string::npos)
        << f.order;
  });
}

TEST(Peers, TheSourceOfACopyExitsBeforeItIsReadAtEverySchedule) {
  expect_source_is_gone<false>();
  expect_source_is_gone<true>();
  expect_source_is_gone<false, 2>();
  expect_source_is_gone<true, 2>();
}

}  // namespace
}  // namespace tegula
