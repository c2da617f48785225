// Kernels with one mistake each, as engineers make them, beside the same ones without it: the
// mistake is found by a default run, the sentence names what is missing, the other is clean.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "broken_kernel.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/ordered_access.hpp"
#include "tegula/arch/reduction.hpp"
#include "tegula/arch/tma.hpp"

namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

std::string at_line(int line) { return "checker/kernel_pairs_test.cpp:" + std::to_string(line); }

template <int Threads, int Ctas = 1> struct PairOfKernels {
  using Params = Buffers;
  struct SharedStorage {
    alignas(128) float tile[256];
    std::uint32_t word[32];
    Mbarrier full;
    Mbarrier empty;
    template <class F> void name_buffers(F&& name) {
      name("tile", tile);
      name("word", word);
      name("full", full);
      name("empty", empty);
    }
  };
  static constexpr int threads = Threads;
  static constexpr Dim3 grid = {Ctas, 1, 1};

  static SharedAddr address(Mbarrier const& mbarrier) { return shared_address(&mbarrier); }
  /// Both mbarriers, for one arrival each.
  static void init(SharedStorage const& smem) {
    if (thread_idx() == 0) {
      mbarrier_init(address(smem.full), 1);
      mbarrier_init(address(smem.empty), 1);
      fence_mbarrier_init();
    }
    cta::sync();
  }
  static std::uint32_t* counter(Params const& p) { return reinterpret_cast<std::uint32_t*>(p.in); }
  static char* place(Params const& p) { return p.out + 4 * thread_idx() + 512 * block_idx().x; }
};
template <class Kernel> sim::Report report_of_pair(sim::Options options = {}) {
  return report_of<Kernel>(options, Kernel::grid);
}

/// Counters of which one warp clears all, and both add to each.
template <bool Right> struct CountersAreCleared : PairOfKernels<64> {
  static constexpr int clear_line = __LINE__ + 2, line = __LINE__ + 4;
  void operator()(Params const&, SharedStorage& smem) const {
    if (warp_id() == 0) st_shared(shared_address(&smem.word[lane_id()]), 0u);
    if (Right) cta::sync();
    red_shared_add<Scope::cta>(shared_address(&smem.word[thread_idx() % 7]), 1u);
  }
};

TEST(KernelPairs, AtomicsOfOthersDoNotHideTheWriteBeforeThem) {
  EXPECT_TRUE(report_of_pair<CountersAreCleared<true>>().ok());
  using Wrong = CountersAreCleared<false>;
  Finding const f = only_finding(report_of_pair<Wrong>(), FindingKind::data_race, Wrong::line);
  EXPECT_EQ(f.other.line, Wrong::clear_line);
}

/// A second expect_tx behind the copy that the first one waits for.
template <bool Right> struct ExpectsBehindTheCopy : PairOfKernels<32> {
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    if (thread_idx() == 0) {
      if (Right) mbarrier_expect_tx(address(smem.full), 64);
      mbarrier_arrive_expect_tx(address(smem.full), 64);
      bulk_load(shared_address(smem.tile), p.in, 64, address(smem.full));
      if (!Right) mbarrier_expect_tx(address(smem.full), 64);
      bulk_load(shared_address(smem.tile + 16), p.in, 64, address(smem.full));
    }
    mbarrier_wait_parity(address(smem.full), 0);
    st_global(p.out + 4 * lane_id(), ld_shared<float>(shared_address(&smem.tile[lane_id()])));
  }
};
/// Bytes may be expected after the arrival, as long as those that were are not on their way.
struct ExpectsAfterTheArrival : PairOfKernels<32> {
  void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(address(smem.full), 64);
      mbarrier_expect_tx(address(smem.full), 64);
      bulk_load(shared_address(smem.tile), p.in, 64, address(smem.full));
      bulk_load(shared_address(smem.tile + 16), p.in, 64, address(smem.full));
    }
    mbarrier_wait_parity(address(smem.full), 0);
    st_global(p.out + 4 * lane_id(), ld_shared<float>(shared_address(&smem.tile[lane_id()])));
  }
};

TEST(KernelPairs, BytesAreExpectedBeforeThePhaseMayBeOver) {
  EXPECT_TRUE(report_of_pair<ExpectsBehindTheCopy<true>>().ok());
  EXPECT_TRUE(report_of_pair<ExpectsAfterTheArrival>().ok());
  using Wrong = ExpectsBehindTheCopy<false>;
  Finding const f =
      only_finding(report_of_pair<Wrong>(), FindingKind::mbarrier_misuse, Wrong::line);
  EXPECT_SAYS(f,
              "mbarrier.expect_tx of 64 bytes on element 0 of full when the phase has had its "
              "arrivals, and what it expects is in flight: the phase may be over before");
}

/// A ring of one stage, given back on `empty`, or by mistake on the mbarrier that brings the bytes.
template <bool Right> struct GivesBackOnFull : PairOfKernels<64> {
  static constexpr int arrive_line = __LINE__ + 14;
  void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    constexpr int steps = 3;
    if (warp_id() == 0 && lane_id() == 0) {
      for (int i = 0; i < steps; ++i) {
        if (i > 0) mbarrier_wait_parity(address(smem.empty), (i - 1) % 2);
        mbarrier_arrive_expect_tx(address(smem.full), 64);
        bulk_load(shared_address(smem.tile), p.in + 64 * i, 64, address(smem.full));
      }
    } else if (warp_id() == 1 && lane_id() == 0) {
      for (int i = 0; i < steps; ++i) {
        mbarrier_wait_parity(address(smem.full), i % 2);
        st_global(p.out + 4 * i, ld_shared<float>(shared_address(smem.tile)));
        mbarrier_arrive(address(Right ? smem.empty : smem.full));
      }
    }
  }
};

TEST(KernelPairs, ADeadlockNamesTheArrivalOfAConsumerOnWhatItWaitsFor) {
  EXPECT_TRUE(report_of_pair<GivesBackOnFull<true>>().ok());
  using Wrong = GivesBackOnFull<false>;
  sim::Report const report = report_of_pair<Wrong>();
  auto const deadlock = std::ranges::find(report.findings, FindingKind::deadlock, &Finding::kind);
  ASSERT_NE(deadlock, report.findings.end());
  EXPECT_SAYS(*deadlock, "warp 1 lane 0 has arrived on mbarrier element 0 of full (" +
                             at_line(Wrong::arrive_line) + "), whose bytes it waits for itself");
}

/// cp.async.mbarrier.arrive adds the arrival that it makes.
template <bool Right> struct ArrivalOfACopy : PairOfKernels<64> {
  static constexpr int line = __LINE__ + 12, arrive_line = __LINE__ + 9;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(address(smem.full), 32);
    cta::sync();
    if (warp_id() == 0) {
      cp_async_ca<4>(shared_address(&smem.tile[lane_id()]), p.in + 4 * lane_id());
      if (Right) {
        cp_async_mbarrier_arrive_noinc(address(smem.full));
      } else {
        cp_async_mbarrier_arrive(address(smem.full));
      }
    } else {
      mbarrier_wait_parity(address(smem.full), 0);
      st_global(p.out + 4 * lane_id(), ld_shared<float>(shared_address(&smem.tile[lane_id()])));
    }
  }
};

TEST(KernelPairs, AnArrivalThatBringsItsOwnCountIsNamed) {
  EXPECT_TRUE(report_of_pair<ArrivalOfACopy<true>>().ok());
  using Wrong = ArrivalOfACopy<false>;
  Finding const f = only_finding(report_of_pair<Wrong>(), FindingKind::deadlock, Wrong::line);
  EXPECT_SAYS(f, "which lacks 32 of 32 arrivals: a cp.async.mbarrier.arrive (" +
                     at_line(Wrong::arrive_line) +
                     ") makes an arrival that it has added to the count, and "
                     "cp_async_mbarrier_arrive_noinc one of those that init has counted");
}

/// The last CTA to come adds up: one thread counts, all fence after the barrier.
template <bool Fences> struct EveryThreadFencesAfterTheCount : PairOfKernels<64, 3> {
  static constexpr int count_line = __LINE__ + 5, line = __LINE__ + 11;
  void operator()(Params const& p, SharedStorage& smem) const {
    st_global(place(p), 1.0f);
    fence_acq_rel<Scope::gpu>();
    cta::sync();
    if (thread_idx() == 0) st_shared(shared_address(smem.word), atom_add(counter(p), 1u));
    cta::sync();
    if (ld_shared<std::uint32_t>(shared_address(smem.word)) != 2) return;
    if (Fences) fence_acq_rel<Scope::gpu>();
    float sum = 0;
    // each thread what others have stored
    for (int i = 0; i < 3; ++i) sum += ld_global<float>(p.out + 512 * i + 4 * (63 - thread_idx()));
    st_global(p.out + 2048 + 4 * thread_idx(), sum);
  }
};

TEST(KernelPairs, AFenceOfEachThreadAcquiresWhatAnotherHasSeen) {
  using Right = EveryThreadFencesAfterTheCount<true>;
  EXPECT_TRUE(report_of_pair<Right>().ok()) << report_of_pair<Right>().text();
  EXPECT_FALSE(report_of_pair<Right>({.strict = {.fences = true}}).ok());
  using Wrong = EveryThreadFencesAfterTheCount<false>;
  Finding const f = only_finding(report_of_pair<Wrong>(), FindingKind::data_race, Wrong::line);
  EXPECT_EQ(f.order, "a fence_acq_rel<Scope::gpu> after the atom at " + at_line(Wrong::count_line) +
                         ", before the barrier that lets the others go on, would order them");
}

/// What one CTA stores, another reads after a flag.
enum class Mistake { none, polls_relaxed, unlocks, read_wait, released_early };
template <Mistake M> struct ToldByAFlag : PairOfKernels<32, 2> {
  static constexpr int fence_line = __LINE__ + 6, flag_line = __LINE__ + 19,
                       poll_line = __LINE__ + 24, line = __LINE__ + 30;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (lane_id() != 0) return;
    std::uint32_t* const flag = counter(p);
    if (block_idx().x == 0) {
      if constexpr (M == Mistake::unlocks) fence_acq_rel<Scope::gpu>();
      if constexpr (M == Mistake::read_wait) {
        st_shared(shared_address(smem.tile), Words4{});
        fence_proxy_async();
        bulk_store(p.out, shared_address(smem.tile), 16);
        bulk_commit_group();
        bulk_wait_group_read<0>();
      } else if constexpr (M != Mistake::released_early) {
        st_global(p.out, 1.0f);
      }
      if constexpr (M == Mistake::unlocks) {
        atom_exch(flag, 1u);
      } else {
        st_global_release<Scope::gpu>(flag, 1u);
      }
      if constexpr (M == Mistake::released_early) st_global(p.out, 1.0f);
      bulk_wait_group<0>();
    } else {
      if constexpr (M == Mistake::polls_relaxed) {
        while (ld_global_relaxed<std::uint32_t, Scope::gpu>(flag) == 0) {
        }
      } else {
        while (ld_global_acquire<std::uint32_t, Scope::gpu>(flag) == 0) {
        }
      }
      st_global(p.out + 1024, ld_global<float>(p.out));
    }
  }
  struct Words4 {
    std::uint32_t x[4] = {};
  };
};

template <Mistake M> std::string order_of() {
  Finding const f =
      only_finding(report_of_pair<ToldByAFlag<M>>(), FindingKind::data_race, ToldByAFlag<M>::line);
  return f.order;
}

TEST(KernelPairs, TheRemedyOfAFlagNamesWhatIsMissing) {
  EXPECT_TRUE(report_of_pair<ToldByAFlag<Mistake::none>>().ok());
  using Lines = ToldByAFlag<Mistake::none>;
  EXPECT_EQ(order_of<Mistake::polls_relaxed>(),
            "a fence_acq_rel<Scope::gpu> between the ld.relaxed at " + at_line(Lines::poll_line) +
                " and the second access would order them");
  EXPECT_EQ(order_of<Mistake::unlocks>(),
            "a fence_acq_rel<Scope::gpu> between the first access, which follows the fence at " +
                at_line(Lines::fence_line) + ", and the atomic after it would order them");
  EXPECT_EQ(order_of<Mistake::read_wait>(),
            "a bulk_wait_group<0> by warp 0 lane 0, which issued the first access, before the "
            "st.release at " +
                at_line(Lines::flag_line) + " would order them");
  EXPECT_EQ(order_of<Mistake::released_early>(),
            "the first access, which follows the st.release at " + at_line(Lines::flag_line) +
                ", before that would order them");
}

/// The source of a copy to the peer is written again.
template <bool Right> struct SourceOfAPeerCopy : PairOfKernels<32, 2> {
  static constexpr Dim3 cluster = {2, 1, 1};
  static constexpr int line = __LINE__ + 13;
  void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    cluster::sync();
    if (cluster_cta_rank() == 0) {
      st_shared(shared_address(&smem.tile[lane_id()]), 1.0f);
      fence_proxy_async_shared();
      warp::sync();
      if (lane_id() == 0)
        bulk_copy_cluster(mapa(shared_address(smem.tile), 1), shared_address(smem.tile), 128,
                          mapa(address(smem.full), 1));
      if (Right) mbarrier_wait_parity(address(smem.empty), 0);
      warp::sync();
      st_shared(shared_address(&smem.tile[lane_id()]), 2.0f);
    } else {
      if (lane_id() == 0) mbarrier_arrive_expect_tx(address(smem.full), 128);
      mbarrier_wait_parity(address(smem.full), 0);
      st_global(p.out + 4 * lane_id(), ld_shared<float>(shared_address(&smem.tile[lane_id()])));
      warp::sync();
      if (lane_id() == 0) mbarrier_arrive_cluster(mapa(address(smem.empty), 0));
    }
    cluster::sync();
  }
};

TEST(KernelPairs, ThePeerSaysThatACopyHasReadItsSource) {
  EXPECT_TRUE(report_of_pair<SourceOfAPeerCopy<true>>().ok());
  using Wrong = SourceOfAPeerCopy<false>;
  Finding const f =
      only_finding(report_of_pair<Wrong>(), FindingKind::async_overwrite, Wrong::line);
  EXPECT_EQ(f.order,
            "a wait for element 0 of full of CTA 1 of the cluster, on which it completes, by a "
            "thread of that CTA, an arrival of its on an mbarrier of CTA 0 after that, and a wait "
            "for it there would order them");
}

/// A tile is stored without a barrier after the writes of another warp: which of them comes first
/// nothing says, and the sentence has both ways.
struct StoresBeforeTheWrite : PairOfKernels<64> {
  static constexpr int line = __LINE__ + 12;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() < 32) st_shared(shared_address(&smem.tile[lane_id()]), 1.0f);
    fence_proxy_async_shared();
    cta::sync();
    if (warp_id() == 1) {
      if (lane_id() == 0) bulk_store(p.out, shared_address(smem.tile), 128);
      bulk_commit_group();
      cta::bar_sync(1, 64);
      bulk_wait_group<0>();
    } else {
      // The warp with the greater index is ahead.
      st_shared(shared_address(&smem.tile[lane_id()]), 2.0f);
      fence_proxy_async_shared();
      cta::bar_arrive(1, 64);
    }
  }
};

TEST(KernelPairs, BothWaysAreNamedWhereNothingSaysWhichComesFirst) {
  Finding const f = only_finding(report_of_pair<StoresBeforeTheWrite>(),
                                 FindingKind::async_overwrite, StoresBeforeTheWrite::line);
  EXPECT_EQ(f.order,
            "a bulk_wait_group_read by the thread that issued it, and then a barrier or an "
            "mbarrier's phase for other threads, would order them; where the cp.async.bulk is to "
            "read what is written, a barrier between the two would");
}

}  // namespace
}  // namespace tegula
