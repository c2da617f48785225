#include <gtest/gtest.h>

#include "broken_kernel.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/grid_dependency.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/stmatrix.hpp"

/// What the machine says of stmatrix, elect.sync, setmaxnreg and griddepcontrol used wrongly, and
/// what it counts of them used rightly.
namespace tegula {
namespace {

using sim::FindingKind;

constexpr std::uint32_t kRegisters[4] = {};

/// stmatrix of four matrices whose rows are Stride bytes apart.
template <int Stride> struct StmatrixRows : Broken {
  struct SharedStorage {
    alignas(1024) std::uint32_t words[4096];
  };
  void operator()(Params const&, SharedStorage& smem) const {
    stmatrix<4>(shared_address(smem.words) + static_cast<SharedAddr>(Stride * lane_id()),
                kRegisters);
  }
};

TEST(HopperCounters, StmatrixCountsBankConflictsAsLdmatrix) {
  auto const expect = [](sim::Report const& report, int wavefronts, int conflicts) {
    auto const line = report.instruction("stmatrix");
    EXPECT_EQ(line.instructions, 1);
    EXPECT_EQ(line.shared_bytes, 512);
    EXPECT_EQ(line.shared_wavefronts, wavefronts);
    EXPECT_EQ(line.bank_conflicts, conflicts);
  };
  expect(report_of<StmatrixRows<16>>(), 4, 0);
  expect(report_of<StmatrixRows<32>>(), 8, 4);
  expect(report_of<StmatrixRows<64>>(), 16, 12);
  expect(report_of<StmatrixRows<128>>(), 32, 28);
  expect(report_of<StmatrixRows<144>>(), 4, 0);
}

/// Two matrices: the addresses of lanes 16 to 31 are not looked at.
struct StmatrixOfTwo : Broken {
  void operator()(Params const&, SharedStorage& smem) const {
    int const lane = lane_id();
    stmatrix<2>(lane < 16 ? shared_address(&smem.k[lane][0]) : 0xdeadbeefu, {1, 2});
  }
};

TEST(HopperCounters, StmatrixIgnoresTheAddressesOfLanesBeyondItsMatrices) {
  auto const report = report_of<StmatrixOfTwo>();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(report.instruction("stmatrix").shared_bytes, 256);
  EXPECT_EQ(report.instruction("stmatrix").shared_wavefronts, 8);  // rows of 64 bytes
}

struct StmatrixMisaligned : Broken {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const&, SharedStorage& smem) const {
    int const lane = lane_id();
    stmatrix<1>(shared_address(&smem.k[lane % 8][lane == 3 ? 4 : 0]), {0});
  }
};

TEST(HopperChecker, StmatrixOfAMisalignedRow) {
  auto const finding = only_finding(report_of<StmatrixMisaligned>(), FindingKind::misaligned,
                                    StmatrixMisaligned::line);
  EXPECT_EQ(finding.lane, 3);
  EXPECT_EQ(finding.coordinate, "row 3, column 4 of K");
  EXPECT_SAYS(finding, "stmatrix of 16 bytes");
}

struct StmatrixOutOfBounds : Broken {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const&, SharedStorage& smem) const {
    int const lane = lane_id();
    stmatrix<4>(shared_address(&smem.k[lane % 16][0]) + (lane == 31 ? 64 : 0), kRegisters);
  }
};

TEST(HopperChecker, StmatrixOutsideOfSharedMemory) {
  auto const finding = only_finding(report_of<StmatrixOutOfBounds>(), FindingKind::out_of_bounds,
                                    StmatrixOutOfBounds::line);
  EXPECT_EQ(finding.lane, 31);
}

/// A row that a copy in flight is to write.
struct StmatrixOverACopy : Broken {
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    // Lane 0 copies into row 5; its group is not waited for.
    if (lane == 0) cp_async_cg(shared_address(&smem.k[5][0]), p.in);
    warp::sync();
    stmatrix<1>(shared_address(&smem.k[lane % 8][0]), {0});
    cp_async_wait_all();
  }
};

TEST(HopperChecker, StmatrixOverACopyInFlight) {
  auto const finding = only_finding(report_of<StmatrixOverACopy>(), FindingKind::async_overwrite,
                                    StmatrixOverACopy::line);
  EXPECT_EQ(finding.coordinate, "row 5, column 0 of K");
}

struct StmatrixDiverged : Broken {
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const&, SharedStorage& smem) const {
    SharedAddr const row = shared_address(&smem.k[lane_id() % 16][0]);
    if (lane_id() < 16) {
      stmatrix<1>(row, {0});
    } else {
      stmatrix<1, true>(row, {0});
    }
  }
};

TEST(HopperChecker, StmatrixThatTheLanesDoNotExecuteTogether) {
  auto const finding =
      only_finding(report_of<StmatrixDiverged>(), FindingKind::divergence, StmatrixDiverged::line);
  EXPECT_SAYS(finding, "stmatrix is not executed by the lanes of the warp together");
}

/// Lanes 0 to 4 have exited: the lowest lane that is left is elected.
struct ElectAmongTheRest : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    int const lane = lane_id();
    if (lane < 5) return;
    if (warp::elect_one()) st_global(p.out, static_cast<std::uint32_t>(lane));
  }
};

TEST(HopperChecker, ElectLeavesOutLanesThatHaveExited) {
  sim::Machine machine;
  Buffers const buffers{nullptr, static_cast<char*>(machine.allocate(4, "out"))};
  auto const report = sim::launch<ElectAmongTheRest>(machine, {}, buffers);
  std::uint32_t elected = 0;
  machine.download(&elected, buffers.out, 4);
  EXPECT_EQ(elected, 5u);
  EXPECT_EQ(report.instruction("elect.sync").instructions, 1);
}

/// A thread that looks whether others have arrived, gives up, and arrives itself.
struct TryThenArrive : Broken {
  struct SharedStorage {
    Mbarrier barrier;
    template <class F> void name_buffers(F&& name) { name("barrier", barrier); }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    if (lane_id() != 0) return;
    SharedAddr const barrier = shared_address(&smem.barrier);
    mbarrier_init(barrier, 1);
    int tries = 0;
    while (!mbarrier_try_wait_parity(barrier, 0)) {
      if (++tries == 3) mbarrier_arrive(barrier);
    }
    st_global(p.out, static_cast<std::uint32_t>(tries));
  }
};

TEST(HopperChecker, TryWaitGivesUpWhereNobodyElseCanRun) {
  auto const report = report_of<TryThenArrive>();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(report.instruction("mbarrier.try_wait").instructions, 4);
}

/// One that tries for ever.
struct TryForEver : TryThenArrive {
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const&, SharedStorage& smem) const {
    SharedAddr const barrier = shared_address(&smem.barrier);
    if (lane_id() == 0) mbarrier_init(barrier, 33);
    warp::sync();
    mbarrier_arrive(barrier);
    while (!mbarrier_try_wait_parity(barrier, 0)) {
    }
  }
};

TEST(HopperChecker, TryWaitForEverIsADeadlock) {
  auto const finding =
      only_finding(report_of<TryForEver>(), FindingKind::deadlock, TryForEver::line);
  EXPECT_SAYS(finding, "element 0 of barrier");
  EXPECT_SAYS(finding, "1 of 33 arrivals");
}

/// Base of the kernels whose warpgroups pass registers on: 65536 registers are 168 for each
/// of 384 threads.
struct ThreeWarpgroups : Broken {
  static constexpr int threads = 384;
  static constexpr int min_ctas_per_sm = 1;
};

struct IncWithoutDec : ThreeWarpgroups {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage&) const {
    if (thread_idx() >= 128 && thread_idx() < 256) setmaxnreg_inc<240>();
  }
};

TEST(HopperChecker, SetmaxnregThatNobodyFreesRegistersForIsADeadlock) {
  auto const finding =
      only_finding(report_of<IncWithoutDec>(), FindingKind::deadlock, IncWithoutDec::line);
  EXPECT_SAYS(finding, "warpgroup 1 waits at setmaxnreg");
  EXPECT_SAYS(finding, "for 9216 registers more, where 0 of the CTA's 64512 are free");
}

/// What one warpgroup frees is enough for the first of the two others.
struct IncTwiceDecOnce : ThreeWarpgroups {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage&) const {
    if (thread_idx() < 128) {
      setmaxnreg_dec<96>();
    } else {
      setmaxnreg_inc<240>();
    }
  }
};

TEST(HopperChecker, SetmaxnregOfWhichOneMustWaitForEver) {
  auto const finding =
      only_finding(report_of<IncTwiceDecOnce>(), FindingKind::deadlock, IncTwiceDecOnce::line);
  EXPECT_SAYS(finding, "for 9216 registers more, where 0 of the CTA's 64512 are free");
}

struct DecAboveTheCount : ThreeWarpgroups {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage&) const {
    if (thread_idx() < 128) setmaxnreg_dec<176>();
  }
};

TEST(HopperChecker, SetmaxnregDecAboveTheCount) {
  auto const finding = only_finding(report_of<DecAboveTheCount>(), FindingKind::invalid_operand,
                                    DecAboveTheCount::line);
  EXPECT_SAYS(finding,
              "setmaxnreg.dec to 176 registers a thread, above the 168 that the warpgroup has");
}

struct IncBelowTheCount : ThreeWarpgroups {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage&) const {
    if (thread_idx() >= 128) return;
    setmaxnreg_dec<160>();
    cta::bar_sync(1, 128);
    setmaxnreg_inc<152>();
  }
};

TEST(HopperChecker, SetmaxnregIncBelowTheCount) {
  auto const finding = only_finding(report_of<IncBelowTheCount>(), FindingKind::invalid_operand,
                                    IncBelowTheCount::line);
  EXPECT_SAYS(finding,
              "setmaxnreg.inc to 152 registers a thread, below the 160 that the warpgroup has");
}

enum class Between { nothing, barrier_of_the_warpgroup, mbarrier, barrier_of_two_warps, shuffle };

/// The producer's warpgroup gives registers away twice.
template <Between B> struct TwiceDown : ThreeWarpgroups {
  struct SharedStorage {
    Mbarrier all;
  };
  static constexpr int first_line = __LINE__ + 7;
  static constexpr int line = __LINE__ + 14;
  void operator()(Params const&, SharedStorage& smem) const {
    SharedAddr const all = shared_address(&smem.all);
    if (thread_idx() == 0) mbarrier_init(all, 4);
    cta::sync();
    if (thread_idx() >= 128) return;
    setmaxnreg_dec<160>();
    if constexpr (B == Between::barrier_of_the_warpgroup) cta::bar_sync(1, 128);
    if constexpr (B == Between::mbarrier) {
      if (lane_id() == 0) mbarrier_arrive(all);
      if (lane_id() == 7) mbarrier_wait_parity(all, 0);
    }
    if constexpr (B == Between::barrier_of_two_warps) cta::bar_sync(2 + warp_id() / 2, 64);
    if constexpr (B == Between::shuffle) warp::shfl(0, 0);
    setmaxnreg_dec<40>();
  }
};

TEST(HopperChecker, AWarpgroupSynchronisesBetweenTwoSetmaxnreg) {
  EXPECT_TRUE(report_of<TwiceDown<Between::barrier_of_the_warpgroup>>().ok());
  EXPECT_TRUE(report_of<TwiceDown<Between::mbarrier>>().ok());
  EXPECT_TRUE(report_of<TwiceDown<Between::nothing>>({.races = false}).ok());
  auto const finding = only_finding(report_of<TwiceDown<Between::nothing>>(),
                                    FindingKind::register_race, TwiceDown<Between::nothing>::line);
  EXPECT_SAYS(
      finding,
      "setmaxnreg.dec by a warpgroup whose warps have not synchronised since their setmaxnreg.dec (");
  EXPECT_EQ(finding.other.line, TwiceDown<Between::nothing>::first_line);
  EXPECT_EQ(finding.order, "a cta::bar_sync of the warpgroup between them would order them");
  only_finding(report_of<TwiceDown<Between::barrier_of_two_warps>>(), FindingKind::register_race,
               TwiceDown<Between::nothing>::line);
  only_finding(report_of<TwiceDown<Between::shuffle>>(), FindingKind::register_race,
               TwiceDown<Between::nothing>::line);
}

/// Up and down again, with the counts that are there.
struct RegistersBackAndForth : ThreeWarpgroups {
  void operator()(Params const&, SharedStorage&) const {
    int const warpgroup = thread_idx() / 128;
    for (int round = 0; round < 3; ++round) {
      if (warpgroup == round) {
        setmaxnreg_dec<88>();
      } else {
        setmaxnreg_inc<208>();
      }
      cta::sync();
      if (warpgroup == round) {
        setmaxnreg_inc<168>();
      } else {
        setmaxnreg_dec<168>();
      }
      cta::sync();
    }
  }
};

TEST(HopperChecker, SetmaxnregTakesWhatOthersFree) {
  for (auto const interleaving : {sim::Interleaving::one_warp_ahead, sim::Interleaving::round_robin,
                                  sim::Interleaving::random}) {
    auto const report = report_of<RegistersBackAndForth>({.interleaving = interleaving});
    EXPECT_TRUE(report.ok()) << report.text();
    auto const executions = [&](char const* name) { return report.instruction(name).instructions; };
    EXPECT_EQ(executions("setmaxnreg.inc") + executions("setmaxnreg.dec"), 3 * 2 * 3 * 4)
        << "each warp counts one";
  }
}

/// Warp 1 of the warpgroup takes another path.
struct WarpgroupDiverged : ThreeWarpgroups {
  void operator()(Params const&, SharedStorage&) const {
    if (warp_id() == 1) {
      setmaxnreg_dec<40>();
    } else if (warp_id() < 4) {
      setmaxnreg_dec<32>();
    }
  }
};

TEST(HopperChecker, SetmaxnregThatTheWarpsOfAWarpgroupDoNotExecuteTogether) {
  auto const report = report_of<WarpgroupDiverged>();
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].kind, FindingKind::divergence);
  EXPECT_SAYS(report.findings[0], "setmaxnreg");
}

struct NoWholeWarpgroup : Broken {
  static constexpr int threads = 64;
  void operator()(Params const&, SharedStorage&) const { setmaxnreg_dec<40>(); }
};

TEST(HopperChecker, SetmaxnregInACtaWithoutWholeWarpgroups) {
  auto const report = report_of<NoWholeWarpgroup>();
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_SAYS(report.findings[0], "setmaxnreg");
}

struct CountedNoOps : Broken {
  void operator()(Params const&, SharedStorage&) const {
    griddepcontrol_wait();
    fence_proxy_async();
    fence_proxy_async_shared();
    fence_mbarrier_init();
    warp::sync();
    griddepcontrol_launch_dependents();
  }
};

TEST(HopperCounters, FencesAndGridDependencyAreCounted) {
  auto const report = report_of<CountedNoOps>();
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(report.instruction("griddepcontrol.wait").instructions, 1);
  EXPECT_EQ(report.instruction("griddepcontrol.launch_dependents").instructions, 1);
  EXPECT_EQ(report.instruction("fence.proxy.async").instructions, 2);
  EXPECT_EQ(report.instruction("fence.mbarrier_init").instructions, 1);
}

}  // namespace
}  // namespace tegula
