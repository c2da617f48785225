#include <gtest/gtest.h>

#include "broken_kernel.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/ordered_access.hpp"

/// Threads that wait for others that never come: at warp-wide instructions, at barriers, and for
/// memory to change.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

struct MmaInABranch : Broken {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage&) const {
    std::uint32_t const a[4] = {}, b[2] = {};
    float c[4] = {};
    if (lane_id() % 2 == 0) {
      mma_sync<warp_mma(DType::f16, DType::f32, 16)>(c, a, b, c);
    }
  }
};

TEST(Divergence, LanesThatExitWhileOthersAreAtMmaSync) {
  Finding const f =
      only_finding(report_of<MmaInABranch>(), FindingKind::divergence, MmaInABranch::line);
  EXPECT_EQ(f.warp, 0);
  EXPECT_SAYS(f,
              "mma.sync needs all lanes of the warp, but lane 1 exited while lane 0 waits there");
}

struct LdmatrixOnTwoLines : Broken {
  static constexpr int first_line = __LINE__ + 6;
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const&, SharedStorage& smem) const {
    st_shared(shared_address(smem.k) + 16u * static_cast<SharedAddr>(lane_id()), std::uint64_t{0});
    std::uint32_t r[1];
    if (lane_id() < 16) {
      ldmatrix(r, shared_address(smem.k[0]));
    } else {
      ldmatrix(r, shared_address(smem.k[1]));
    }
  }
};

TEST(Divergence, OneInstructionOnTwoLines) {
  Finding const f = only_finding(report_of<LdmatrixOnTwoLines>(), FindingKind::divergence,
                                 LdmatrixOnTwoLines::line);
  EXPECT_EQ(f.lane, 16);
  EXPECT_EQ(f.other.line, LdmatrixOnTwoLines::first_line);
  EXPECT_SAYS(
      f,
      "ldmatrix is not executed by the lanes of the warp together: lane 16 is at it, but lanes 0-15 wait for it at ldmatrix");
}

struct SyncInABranch : Broken {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const&, SharedStorage&) const {
    if (lane_id() == 0) return;
    cta::sync();
  }
};

TEST(Divergence, BarrierAfterALaneHasExited) {
  Finding const f =
      only_finding(report_of<SyncInABranch>(), FindingKind::divergence, SyncInABranch::line);
  EXPECT_SAYS(f, "bar.sync needs all lanes of the warp, but lane 0 exited");
}

struct ShuffleAcrossPaths : Broken {
  void operator()(Params const&, SharedStorage&) const {
    int v = lane_id();
    if (v < 16) {
      v = warp::shfl_xor(v, 1);
    } else {
      v = warp::shfl_xor(v, 2) + warp::reduce_add(v);
    }
  }
};

TEST(Divergence, ShufflesOnTwoPathsMeetAsTheHardwaresDoAndOneReductionTooManyEndsAlone) {
  // The shuffles have the same mask, so they meet. The reduction then waits for lanes that exit,
  // and goes on without them.
  EXPECT_TRUE(report_of<ShuffleAcrossPaths>().ok());
}

struct ReduceAgainstShuffle : Broken {
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const&, SharedStorage&) const {
    int v = lane_id();
    if (v < 16) {
      v = warp::shfl_xor(v, 1);
    } else {
      v = warp::reduce_add(v);
    }
  }
};

TEST(Divergence, AReductionMeetsAShuffle) {
  Finding const f = only_finding(report_of<ReduceAgainstShuffle>(), FindingKind::divergence,
                                 ReduceAgainstShuffle::line);
  EXPECT_SAYS(
      f,
      "redux.sync is not executed by the lanes of the warp together: lane 16 is at it, but lanes 0-15 wait for it at shfl.sync");
}

struct Barriers : Broken {
  static constexpr int threads = 128;
};

struct OneWarpMissing : Barriers {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage&) const {
    if (warp_id() != 2) cta::sync();
  }
};

TEST(Deadlock, AWarpThatExitsBeforeABarrier) {
  Finding const f =
      only_finding(report_of<OneWarpMissing>(), FindingKind::deadlock, OneWarpMissing::line);
  EXPECT_EQ(f.warp, -1);
  EXPECT_SAYS(f, "warps 0-1, 3 wait at barrier 0 (machine/deadlock_test.cpp:" +
                     std::to_string(OneWarpMissing::line) +
                     "), where 96 of 128 threads have arrived; warp 2 exited");
}

struct CrossedBarriers : Barriers {
  void operator()(Params const&, SharedStorage&) const {
    if (warp_id() > 1) return;
    if (warp_id() == 0) {
      cta::bar_sync(1, 64);
      cta::bar_sync(2, 64);
    } else {
      cta::bar_sync(2, 64);
      cta::bar_sync(1, 64);
    }
  }
};

TEST(Deadlock, TwoWarpsThatTakeTwoBarriersInOppositeOrder) {
  sim::Report const report = report_of<CrossedBarriers>();
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  Finding const& f = report.findings[0];
  EXPECT_EQ(sim::to_string(f.kind), "deadlock");
  EXPECT_SAYS(f, "warp 0 waits at barrier 1 (");
  EXPECT_SAYS(f, "warp 1 waits at barrier 2 (");
  EXPECT_SAYS(f, "where 32 of 64 threads have arrived");
  EXPECT_SAYS(f, "warps 2-3 exited");
}

struct LanesThatWaitInACircle : Broken {
  void operator()(Params const&, SharedStorage&) const {
    // Lane 0 waits for 1, 1 for 2, 2 for 0.
    if (lane_id() == 0) warp::sync(0b011);
    if (lane_id() == 1) warp::sync(0b110);
    if (lane_id() == 2) warp::sync(0b101);
  }
};

TEST(Deadlock, LanesThatWaitInACircle) {
  sim::Report const report = report_of<LanesThatWaitInACircle>();
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(sim::to_string(report.findings[0].kind), "deadlock");
  EXPECT_SAYS(report.findings[0], "lane 1 of warp 0 waits at bar.warp.sync");
  EXPECT_SAYS(report.findings[0], "for lane 2");
}

struct SpinsForever : Barriers {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const& p, SharedStorage&) const {
    if (warp_id() == 1) {
      while (ld_global<int>(p.in) == 0) {
      }
    }
    cta::sync();
  }
};

TEST(Deadlock, ThreadsThatWaitForMemoryThatNobodyChanges) {
  sim::Report const report = report_of<SpinsForever>({.check = false, .count = false});
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(sim::to_string(report.findings[0].kind), "deadlock");
  EXPECT_SAYS(
      report.findings[0],
      "every thread that runs reads the same memory again and again, and nobody changes it; warps 0, 2-3 wait at barrier 0");
  std::string const place = "machine/deadlock_test.cpp:" + std::to_string(SpinsForever::line);
  EXPECT_SAYS(report.findings[0], "lanes 0-31 of warp 1 read at " + place + ": byte 0 of in");
}

struct SpinsUntilAnotherWarpStores : Barriers {
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const& p, SharedStorage&) const {
    if (warp_id() == 0) {
      while (ld_global<int>(p.in) == 0) {
      }
    }
    if (thread_idx() == 100) st_global(p.in, 1);
    cta::sync();
  }
};

TEST(Deadlock, AThreadThatWaitsForAnotherWarpsStoreGetsIt) {
  EXPECT_TRUE(report_of<SpinsUntilAnotherWarpStores>({.races = false}).ok());
  all_findings(report_of<SpinsUntilAnotherWarpStores>(), FindingKind::data_race,
               SpinsUntilAnotherWarpStores::line);
}

/// One thread is caught in a loop that changes something in each round.
enum class Loop { stores, polls_and_stores, adds, meets, ends };
template <Loop How> struct LoopsForEver : Barriers {
  static constexpr int first_line = __LINE__ + 3, last_line = __LINE__ + 15;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const word = shared_address(smem.k);
    if (How == Loop::meets && warp_id() == 1) {
      for (;;) warp::sync();
    }
    if (thread_idx() == 32) {
      int i = 0;
      while (How == Loop::ends && i < 900) st_shared(word, ++i);
      while (How == Loop::stores) st_shared(word, ++i);
      while (How == Loop::polls_and_stores &&
             ld_global_relaxed<int, Scope::gpu>(reinterpret_cast<int*>(p.in)) == 0)
        st_shared(word, ++i);
      while (How == Loop::adds && atom_add(reinterpret_cast<int*>(p.in), 1) >= 0) {
      }
    }
    cta::sync();
  }
};

template <Loop How> void expect_loop_is_found() {
  for (sim::Interleaving const interleaving :
       {sim::Interleaving::one_warp_ahead, sim::Interleaving::round_robin,
        sim::Interleaving::random}) {
    sim::Report const report =
        report_of<LoopsForEver<How>>({.interleaving = interleaving, .most_steps = 1000});
    ASSERT_EQ(report.findings.size(), 1u) << report.text();
    Finding const& f = report.findings[0];
    EXPECT_EQ(sim::to_string(f.kind), "deadlock");
    EXPECT_GE(f.where.line, LoopsForEver<How>::first_line);
    EXPECT_LE(f.where.line, LoopsForEver<How>::last_line);
    EXPECT_EQ(f.warp, 1);
    EXPECT_SAYS(f, "a loop that does not end: this thread has executed 1000 instructions");
    EXPECT_SAYS(f, " at barrier 0 (machine/deadlock_test.cpp:");
  }
}

TEST(Deadlock, ALoopThatChangesSomethingAndNeverEnds) {
  expect_loop_is_found<Loop::stores>();
  expect_loop_is_found<Loop::polls_and_stores>();
  expect_loop_is_found<Loop::adds>();
  expect_loop_is_found<Loop::meets>();
  EXPECT_TRUE(report_of<LoopsForEver<Loop::ends>>({.most_steps = 1000}).ok());
}

struct CountsDisagree : Barriers {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage&) const {
    if (warp_id() == 0) {
      cta::bar_arrive(3, 64);
    } else if (warp_id() == 1) {
      cta::bar_sync(3, 96);
    }
  }
};

TEST(InvalidOperand, WarpsThatExpectDifferentCounts) {
  Finding const f =
      only_finding(report_of<CountsDisagree>(), FindingKind::invalid_operand, CountsDisagree::line);
  EXPECT_SAYS(f, "barrier 3 counts 96 threads here, but 64 at machine/deadlock_test.cpp:");
  EXPECT_SAYS(f, "where 32 have arrived");
}

template <int Id, int Threads> struct Counts : Barriers {
  void operator()(Params const&, SharedStorage&) const { cta::bar_sync(Id, Threads); }
};

TEST(InvalidOperand, BarriersThatDoNotExistAndCountsThatCannotBe) {
  auto const says = [](sim::Report const& report, char const* text) {
    ASSERT_EQ(report.findings.size(), 1u);
    EXPECT_EQ(sim::to_string(report.findings[0].kind), "invalid_operand");
    EXPECT_SAYS(report.findings[0], text);
  };
  says(report_of<Counts<16, 128>>(), "barrier 16 does not exist: there are 16, from 0");
  says(report_of<Counts<-1, 128>>(), "barrier -1 does not exist");
  says(
      report_of<Counts<1, 48>>(),
      "counts 48 threads: the count must be a multiple of 32, at least 32 and at most the CTA's 128");
  says(report_of<Counts<1, 0>>(), "counts 0 threads");
  says(report_of<Counts<1, 160>>(), "counts 160 threads");
}

struct LeavesAMeeting : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() < 4) return;
    bool const all = warp::all(lane_id() >= 4);
    if (lane_id() == 4 && !all) trap();
    st_global(p.out + 128 * block_idx().x + 4 * lane_id(), warp::shfl(lane_id(), 31));
  }
};

TEST(Divergence, VotesAndShufflesGoOnWithoutTheLanesThatExited) {
  EXPECT_TRUE(report_of<LeavesAMeeting>().ok());
}

// A failed launch must not leave anything behind in the fibers that the next one uses.
TEST(Deadlock, TheMachineGoesOnAfterAFailedLaunch) {
  sim::Machine machine({.throw_on_finding = false, .workers = 1});
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                        static_cast<char*>(machine.allocate(4096, "out"))};
  machine.fill(buffers.in, 0, 4096);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(sim::launch<OneWarpMissing>(machine, {2, 1, 1}, buffers).ok());
    EXPECT_FALSE(sim::launch<MmaInABranch>(machine, {2, 1, 1}, buffers).ok());
    EXPECT_TRUE(sim::launch<LeavesAMeeting>(machine, {2, 1, 1}, buffers).ok());
  }
}

}  // namespace
}  // namespace tegula
