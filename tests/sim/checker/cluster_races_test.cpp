#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "racing_kernel.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/discard.hpp"

/// Races in shared memory between the CTAs of a cluster.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

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

/// CTA 1 uses its tile and tells CTA 0, which loads over it: it has read it (strictly, the arrival
/// has too narrow a scope), or it has written it, fenced that, and discards it. Or a part of this
/// is missing, or comes too late.
enum class Use { reads, discards, lacks_fence, lacks_discard, discards_late };
template <Use U> struct HandsATileToItsPeer : RacingPair {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem, 32);
    cluster::sync();
    if (warp_id() == 0 && cluster_cta_rank() == 1) {
      SharedAddr const own = tile(smem, lane_id()), peers = mapa(full(smem, 1), 0);
      if (U == Use::reads) {
        ld_shared<std::uint32_t>(own, kOne);
      } else {
        st_shared(own, 5u, kOne);
        if (U != Use::lacks_fence) fence_proxy_async_shared();
        if (U == Use::discards || U == Use::lacks_fence) discard_shared(own, 4);
      }
      mbarrier_arrive_cluster(peers);
      if (U == Use::discards_late) discard_shared(own, 4);
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
  EXPECT_TRUE(report_of<HandsATileToItsPeer<Use::reads>>({}, {2, 1, 1}).ok());
  sim::Report const strict =
      report_of<HandsATileToItsPeer<Use::reads>>({.strict = {.scopes = true}}, {2, 1, 1});
  ASSERT_EQ(strict.findings.size(), 1u) << strict.text();
  EXPECT_EQ(strict.findings[0].kind, FindingKind::async_overwrite);
}

TEST(Races, AnArrivalAtAPeersMbarrierTellsOfWhatIsDiscarded) {
  sim::Report const whole = report_of<HandsATileToItsPeer<Use::discards>>({}, {2, 1, 1});
  EXPECT_TRUE(whole.ok()) << whole.text();
  expect_race<HandsATileToItsPeer<Use::lacks_fence>>(FindingKind::data_race, {}, {2, 1, 1});
  expect_race<HandsATileToItsPeer<Use::lacks_discard>>(FindingKind::data_race, {}, {2, 1, 1});
  EXPECT_FALSE(report_of<HandsATileToItsPeer<Use::discards_late>>({}, {2, 1, 1}).ok());
}

/// The bytes hold NaN then, and may be read.
struct ReadsWhatIsDiscarded : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    st_shared(word(smem, 0), 5u);
    discard_shared(word(smem, 0), 4);
    if (ld_shared<std::uint32_t>(word(smem, 0)) != 0xffffffff) trap();
  }
};

struct DiscardsBeyond : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) discard_shared(word(smem, 0), sizeof(smem) + 4096);
  }
};

TEST(Checker, DiscardedSharedMemory) {
  EXPECT_TRUE(report_of<ReadsWhatIsDiscarded>().ok());
  sim::Report const beyond = report_of<DiscardsBeyond>();
  ASSERT_EQ(beyond.findings.size(), 1u) << beyond.text();
  EXPECT_EQ(beyond.findings[0].kind, FindingKind::out_of_bounds);
}

}  // namespace
}  // namespace tegula
