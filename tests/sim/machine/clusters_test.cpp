#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "broken_kernel.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/mbarrier.hpp"

/// Clusters: which CTAs are in one, their barrier, one another's shared memory and mbarriers, and
/// what goes wrong there.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

/// Base: CTAs of two warps in clusters of Ctas x 1 x 1.
template <int Ctas> struct Clustered : Broken {
  static constexpr int threads = 64;
  static constexpr Dim3 cluster = {Ctas, 1, 1};
  struct SharedStorage {
    Mbarrier full[2];
    alignas(16) std::uint32_t data[64];
    template <class F> void name_buffers(F&& name) {
      name("full", full);
      name("data", data);
    }
  };
};

std::string at(int line) { return "(machine/clusters_test.cpp:" + std::to_string(line) + ")"; }

/// Every CTA says who it is, at the place of its index in the grid.
struct WhoAmI : Broken {
  static constexpr Dim3 cluster = {2, 1, 2};
  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() != 0) return;
    Dim3 const block = block_idx();
    Dim3 const grid = grid_dim();
    Dim3 const in_cluster = cluster_cta_id();
    Dim3 const extents = cluster_dim();
    int const index = block.x + grid.x * (block.y + grid.y * block.z);
    int const word = cluster_cta_rank() + 16 * cluster_cta_count() + 256 * in_cluster.x +
                     4096 * in_cluster.y + 65536 * in_cluster.z + (1 << 20) * extents.x +
                     (1 << 23) * extents.y + (1 << 26) * extents.z;
    st_global(p.out + 4 * index, word);
  }
};

TEST(Cluster, CtasKnowTheirPlaceInTheirTileOfTheGrid) {
  Dim3 const grid = {4, 3, 2};
  auto const words = results_of<WhoAmI>({}, grid, 24);
  for (int z = 0; z < grid.z; ++z) {
    for (int y = 0; y < grid.y; ++y) {
      for (int x = 0; x < grid.x; ++x) {
        int const rank = x % 2 + 2 * z;
        int const expected =
            rank + 16 * 4 + 256 * (x % 2) + 65536 * z + (2 << 20) + (1 << 23) + (2 << 26);
        EXPECT_EQ(words[static_cast<std::size_t>(x + 4 * (y + 3 * z))],
                  static_cast<std::uint32_t>(expected));
      }
    }
  }
}

/// The clusters run in the order of their index, and nothing depends on the host's threads.
struct OrderOfClusters : Clustered<2> {
  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() != 0) return;
    std::uint32_t const turn = atom_add(reinterpret_cast<std::uint32_t*>(p.in), 1u);
    st_global(p.out + 4 * turn,
              static_cast<std::uint32_t>(block_idx().x / 2 + 100 * block_idx().y));
  }
};

TEST(Cluster, ClustersRunInOrderOnHoweverManyThreadsOfTheHost) {
  std::vector<std::uint32_t> expected;
  for (std::uint32_t cluster = 0; cluster < 12; ++cluster) {
    for (int cta = 0; cta < 2; ++cta) expected.push_back(cluster % 4 + 100 * (cluster / 4));
  }
  for (int const workers : {1, 3, 8})
    EXPECT_EQ(results_of<OrderOfClusters>({.workers = workers}, {8, 3, 1}, 24), expected);
}

/// Each round, every CTA leaves a number in its shared memory, and adds up all of its peers'.
struct SumsOfPeers : Clustered<4> {
  static constexpr int rounds = 3;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mine = shared_address(&smem.data[thread_idx()]);
    std::uint32_t sum = 0;
    auto const rank = static_cast<std::uint32_t>(cluster_cta_rank());
    for (std::uint32_t round = 0; round < rounds; ++round) {
      st_shared(mine, (round + 1) * 1000 + 10 * rank + static_cast<std::uint32_t>(thread_idx()));
      cluster::sync();
      for (int peer = 0; peer < cluster_cta_count(); ++peer)
        sum += ld_shared_cluster<std::uint32_t>(mapa(mine, peer));
      cluster::arrive();
      cluster::wait();
    }
    st_global(p.out + 4 * (64 * block_idx().x + thread_idx()), sum);
  }
};

TEST(Cluster, PeersReadOneAnothersSharedMemoryBetweenBarriers) {
  for_each_schedule([](sim::Options const& options) {
    auto const words = results_of<SumsOfPeers>(options, {8, 1, 1}, 512);
    for (std::size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(words[i], 4 * 6000 + 3 * 60 + 12 * (i % 64)) << schedule_text(options);
  });
}

/// CTA 0 writes its peer's shared memory; the cluster's barrier orders the two.
struct WritesPeer : Clustered<2> {
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mine = shared_address(&smem.data[thread_idx()]);
    cluster::sync();
    if (cluster_cta_rank() == 0)
      st_shared_cluster(mapa(mine, 1), static_cast<std::uint32_t>(7 * thread_idx()));
    cluster::sync();
    if (cluster_cta_rank() == 1)
      st_global(p.out + 4 * thread_idx(), ld_shared<std::uint32_t>(mine));
  }
};

TEST(Cluster, StoresToAPeersSharedMemory) {
  for_each_schedule([](sim::Options const& options) {
    auto const words = results_of<WritesPeer>(options, {2, 1, 1}, 64);
    for (std::size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(words[i], 7 * i) << schedule_text(options);
  });
}

/// Every thread of every CTA sends two words to the CTA after it, by st.async, and waits for
/// its own.
struct SendsRound : Clustered<8> {
  struct SharedStorage {
    Mbarrier full;
    alignas(16) std::uint64_t data[64];
    template <class F> void name_buffers(F&& name) { name("full", full), name("data", data); }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full);
    SharedAddr const mine = shared_address(&smem.data[thread_idx()]);
    int const rank = cluster_cta_rank();
    int const next = (rank + 1) % cluster_cta_count();
    if (thread_idx() == 0) {
      mbarrier_init(full, 1);
      fence_mbarrier_init();
    }
    cluster::sync();
    if (thread_idx() == 0) mbarrier_arrive_expect_tx(full, 8 * threads);
    st_async(mapa(mine, next), static_cast<std::uint64_t>(100 * rank + thread_idx()),
             mapa(full, next));
    mbarrier_wait_parity(full, 0);
    // The first cluster's sums are looked at.
    if (block_idx().x < 8) {
      st_global(p.out + 4 * (64 * rank + thread_idx()),
                static_cast<std::uint32_t>(ld_shared<std::uint64_t>(mine)));
    }
    cluster::sync();
  }
};

TEST(Cluster, AsyncStoresCompleteOnThePeersMbarrier) {
  for_each_schedule([](sim::Options const& options) {
    auto const words = results_of<SendsRound>(options, {8, 1, 1}, 512);
    for (std::size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(words[i], 100 * ((i / 64 + 7) % 8) + i % 64) << schedule_text(options);
  });
}

/// Consumers of all CTAs free the leader's buffer by arriving at its mbarrier: address with and
/// without a rank.
struct ArrivesAtLeader : Clustered<4> {
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const empty = shared_address(&smem.full[1]);
    if (thread_idx() == 0 && cluster_cta_rank() == 0) {
      mbarrier_init(empty, 4 * threads);
      fence_mbarrier_init();
    }
    cluster::sync();
    for (int round = 0; round < 3; ++round) {
      if (cluster_cta_rank() == 0 && warp_id() == 1) {
        mbarrier_arrive(empty);
      } else {
        mbarrier_arrive_cluster(mapa(empty, 0));
      }
      if (cluster_cta_rank() == 0) mbarrier_wait_parity(empty, round % 2);
      cluster::sync();
    }
    if (cluster_cta_rank() == 0 && thread_idx() == 5) st_global(p.out, 1u);
  }
};

TEST(Cluster, ArrivalsFromAllOverTheCluster) {
  for_each_schedule([](sim::Options const& options) {
    EXPECT_EQ((result_of<ArrivesAtLeader>(options, {4, 1, 1})), 1u) << schedule_text(options);
  });
}

/// Warps that exit are not waited for at the cluster's barrier, before and after they would
/// have arrived.
struct SomeExit : Clustered<2> {
  void operator()(Params const& p, SharedStorage&) const {
    if (cluster_cta_rank() == 1 && warp_id() == 1) return;
    cluster::arrive();
    if (cluster_cta_rank() == 1) return;
    cluster::wait();
    cluster::sync();
    if (thread_idx() == 0) st_global(p.out, 3u);
  }
};

TEST(Cluster, WarpsThatHaveExitedAreNotWaitedFor) {
  for_each_schedule([](sim::Options const& options) {
    EXPECT_EQ((result_of<SomeExit>(options, {2, 1, 1})), 3u) << schedule_text(options);
  });
}

/// A CTA alone is a cluster of one.
struct Alone : Broken {
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const k = shared_address(&smem.k[lane_id() / 16][2 * (lane_id() % 16)]);
    cluster::sync();
    st_shared_cluster(mapa(k, 0), static_cast<std::uint32_t>(lane_id()));
    if (lane_id() == 9) {
      st_global(p.out + 4 * block_idx().x,
                ld_shared<std::uint32_t>(k) + 100 * static_cast<std::uint32_t>(cluster_cta_rank()) +
                    1000 * static_cast<std::uint32_t>(cluster_cta_count()));
    }
  }
};

TEST(Cluster, ACtaWithoutPeersIsAClusterOfOne) { EXPECT_EQ(result_of<Alone>({}), 1009u); }

TEST(Cluster, ASeedGivesOneReportOnHoweverManyThreadsOfTheHost) {
  auto const report = [](std::uint64_t seed, int workers) {
    return report_of<SendsRound>({.completion = sim::Completion::random,
                                  .interleaving = sim::Interleaving::random,
                                  .seed = seed,
                                  .workers = workers},
                                 {32, 1, 1});
  };
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    sim::Report const one = report(seed, 1);
    EXPECT_TRUE(one.ok()) << one.text();
    EXPECT_EQ(report(seed, 4).json(), one.json());
  }
}

/// Ends in the middle of everything: operations in flight, waits, arrivals.
struct TrapsInTheMiddle : SendsRound {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (cluster_cta_rank() == 3 && warp_id() == 1) {
      cluster::sync();
      if (lane_id() == 5) trap();
    }
    SendsRound::operator()(p, smem);
  }
};

TEST(Cluster, TheMachineGoesOnWithClustersOfAnySizeAfterAFailedLaunch) {
  for_each_schedule(
      [](sim::Options const& options) {
        sim::Machine machine(options);
        Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                              static_cast<char*>(machine.allocate(4096, "out"))};
        machine.fill(buffers.in, 0, 4096);
        for (int i = 0; i < 2; ++i) {
          sim::Report const failed = sim::launch<TrapsInTheMiddle>(machine, {16, 1, 1}, buffers);
          ASSERT_EQ(failed.findings.size(), 1u) << failed.text();
          EXPECT_EQ(sim::to_string(failed.findings[0].kind), "trap");
          EXPECT_EQ(failed.findings[0].cta, (Dim3{3, 0, 0}));
          EXPECT_EQ(failed.findings[0].count, 2) << "once in each cluster";
          EXPECT_TRUE(sim::launch<SendsRound>(machine, {16, 1, 1}, buffers).ok());
          EXPECT_TRUE(sim::launch<Alone>(machine, {5, 1, 1}, buffers).ok());
          EXPECT_TRUE(sim::launch<ArrivesAtLeader>(machine, {4, 1, 1}, buffers).ok());
        }
      },
      {.throw_on_finding = false});
}

template <int X, int Y, int Z> struct Extents : Broken {
  static constexpr Dim3 cluster = {X, Y, Z};
  void operator()(Params const&, SharedStorage&) const {}
};

TEST(Cluster, LaunchesThatAGpuWouldRefuse) {
  auto const refuses = [](auto&& launch, char const* text) {
    try {
      launch();
      ADD_FAILURE() << "was accepted, and not refused with: " << text;
    } catch (std::invalid_argument const& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
    }
  };
  refuses(
      [] {
        report_of<Extents<3, 3, 1>>({}, {9, 9, 1});
      },
      "clusters of 3 x 3 x 1 CTAs; a cluster has 1 to 8");
  refuses(
      [] {
        report_of<Extents<0, 1, 1>>({}, {4, 1, 1});
      },
      "clusters of 0 x 1 x 1 CTAs; a cluster has 1 to 8");
  refuses(
      [] {
        report_of<Extents<2, 1, 1>>({}, {5, 1, 1});
      },
      "the grid (5, 1, 1) must be a multiple of the cluster (2, 1, 1) along each axis");
  refuses(
      [] {
        report_of<Extents<1, 1, 2>>({}, {2, 2, 1});
      },
      "must be a multiple of the cluster (1, 1, 2)");
  refuses(
      [] {
        report_of<Extents<2, 1, 1>>({.generation = sim::Generation::sm80}, {2, 1, 1});
      },
      "clusters of 2 x 1 x 1 CTAs; the simulated GPU, an sm_80, has none");
  EXPECT_TRUE((report_of<Extents<2, 2, 2>>({}, {4, 2, 2}).ok()));
}

TEST(Cluster, ProgressCountsCtas) {
  std::vector<std::int64_t> done;
  report_of<Extents<2, 1, 1>>({.workers = 1,
                               .progress =
                                   [&](std::int64_t now, std::int64_t all) {
                                     EXPECT_EQ(all, 6);
                                     done.push_back(now);
                                   }},
                              {6, 1, 1});
  EXPECT_EQ(done, (std::vector<std::int64_t>{2, 4, 6}));
}

struct ReadsUnwrittenPeer : Clustered<2> {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage& smem) const {
    cluster::sync();
    if (cluster_cta_rank() == 1 && thread_idx() == 40) {
      SharedAddr const peers = mapa(shared_address(&smem.data[3]), 0);
      ld_shared_cluster<std::uint32_t>(peers);
    }
    cluster::sync();
  }
};

TEST(ClusterChecker, NamesThePeerWhoseMemoryNobodyWrote) {
  Finding const f = only_finding(report_of<ReadsUnwrittenPeer>({}, {4, 1, 1}),
                                 FindingKind::uninitialized_read, ReadsUnwrittenPeer::line);
  EXPECT_EQ(f.cta, (Dim3{1, 0, 0})) << "the CTA that reads";
  EXPECT_EQ(f.warp, 1);
  EXPECT_EQ(f.lane, 8);
  EXPECT_EQ(f.coordinate, "element 3 of data of CTA 0 of the cluster");
  EXPECT_EQ(f.count, 2);
  EXPECT_SAYS(
      f,
      "ld.shared::cluster reads element 3 of data of CTA 0 of the cluster, which nobody has written");
}

struct PeerThatIsNotThere : Clustered<2> {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage& smem) const {
    if (cluster_cta_rank() == 0 && thread_idx() == 0) mapa(shared_address(&smem.data[0]), 2);
  }
};

TEST(ClusterChecker, MapaToAPeerThatIsNotThere) {
  Finding const f = only_finding(report_of<PeerThatIsNotThere>({}, {2, 1, 1}),
                                 FindingKind::invalid_operand, PeerThatIsNotThere::line);
  EXPECT_SAYS(f, "mapa to CTA 2 of the cluster, which has 2");
}

struct AddressOfNobody : Clustered<2> {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const&, SharedStorage& smem) const {
    SharedAddr const address = shared_address(&smem.data[0]) | 9u << 24;
    if (cluster_cta_rank() == 0 && thread_idx() == 0) st_shared_cluster(address, 1u);
    cluster::sync();
  }
};

TEST(ClusterChecker, AddressOfACtaThatIsNotThere) {
  Finding const f = only_finding(report_of<AddressOfNobody>({}, {2, 1, 1}),
                                 FindingKind::out_of_bounds, AddressOfNobody::line);
  EXPECT_SAYS(f, "st.shared::cluster to shared memory of CTA 8 of the cluster, which has 2");
}

struct ArrivesTwice : Clustered<2> {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const&, SharedStorage&) const {
    cluster::arrive();
    if (cluster_cta_rank() == 1) cluster::arrive();
    cluster::wait();
  }
};

TEST(ClusterChecker, ArrivingTwice) {
  Finding const f = only_finding(report_of<ArrivesTwice>({}, {2, 1, 1}),
                                 FindingKind::invalid_operand, ArrivesTwice::line);
  EXPECT_SAYS(f, "barrier.cluster.arrive by a warp that has arrived " + at(ArrivesTwice::line - 1) +
                     " and has not waited since");
}

struct WaitsWithoutArriving : Clustered<2> {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage&) const {
    if (warp_id() == 0) cluster::wait();
  }
};

TEST(ClusterChecker, WaitingWithoutHavingArrived) {
  Finding const f = only_finding(report_of<WaitsWithoutArriving>({}, {2, 1, 1}),
                                 FindingKind::invalid_operand, WaitsWithoutArriving::line);
  EXPECT_SAYS(f, "barrier.cluster.wait by a warp that has not arrived since it waited last");
}

struct SomeLanesArrive : Clustered<2> {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage&) const {
    if (thread_idx() != 3) cluster::arrive();
  }
};

TEST(ClusterChecker, ArrivingNotAllTogether) {
  Finding const f = only_finding(report_of<SomeLanesArrive>({}, {2, 1, 1}), FindingKind::divergence,
                                 SomeLanesArrive::line);
  EXPECT_SAYS(f, "barrier.cluster.arrive needs all lanes of the warp, but lane 3 exited");
}

struct RemoteOperand : Clustered<2> {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const&, SharedStorage& smem) const {
    cluster::sync();
    if (cluster_cta_rank() == 0 && thread_idx() == 0)
      mbarrier_wait_parity(mapa(shared_address(&smem.full[0]), 1), 0);
    cluster::sync();
  }
};

TEST(ClusterChecker, WaitingAtAPeersMbarrier) {
  Finding const f = only_finding(report_of<RemoteOperand>({}, {2, 1, 1}),
                                 FindingKind::invalid_operand, RemoteOperand::line);
  EXPECT_SAYS(
      f,
      "mbarrier.try_wait on an mbarrier of CTA 1 of the cluster: it takes only the CTA's own (shared::cta)");
}

struct SendsElsewhere : Clustered<4> {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage& smem) const {
    cluster::sync();
    SharedAddr const data = shared_address(&smem.data[0]);
    if (cluster_cta_rank() == 0 && thread_idx() == 0)
      st_async(mapa(data, 1), 5u, mapa(shared_address(&smem.full[0]), 2));
    cluster::sync();
  }
};

TEST(ClusterChecker, AsyncStoreWithAnMbarrierOfAThirdCta) {
  Finding const f = only_finding(report_of<SendsElsewhere>({}, {4, 1, 1}),
                                 FindingKind::invalid_operand, SendsElsewhere::line);
  EXPECT_SAYS(
      f,
      "st.async to CTA 1 of the cluster completes on an mbarrier of CTA 2: it must be the same one");
}

struct OneCtaMissing : Clustered<2> {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(shared_address(&smem.full[0]), 1);
    cta::sync();
    if (cluster_cta_rank() == 0) {
      cluster::sync();
    } else {
      mbarrier_wait_parity(shared_address(&smem.full[0]), 0);
    }
  }
};

TEST(ClusterDeadlock, NamesWhoWaitsInWhichCta) {
  for_each_schedule([](sim::Options const& options) {
    Finding const f = only_finding(report_of<OneCtaMissing>(options, {2, 1, 1}),
                                   FindingKind::deadlock, OneCtaMissing::line);
    EXPECT_EQ(f.cta, (Dim3{0, 0, 0}));
    EXPECT_SAYS(
        f,
        "in CTA 0 of the cluster, warps 0-1 wait at the cluster's barrier " +
            at(OneCtaMissing::line) +
            ", where 2 of 4 warps have arrived; in CTA 1 of the cluster, warps 0-1 wait at mbarrier element 0 of full");
    EXPECT_SAYS(
        f, at(OneCtaMissing::line + 2) + " for the phase of parity 0, which lacks 1 of 1 arrival");
  });
}

}  // namespace
}  // namespace tegula
