#include "tegula/arch/mbarrier.hpp"

#include <gtest/gtest.h>

#include <string>

#include "broken_kernel.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/cluster.hpp"

/// Mbarriers: phases by arrivals and bytes, waits by parity, and each way to use one wrongly.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

/// Base: four warps, three mbarriers and a word of data for each thread.
struct WithMbarriers : Broken {
  static constexpr int threads = 128;
  struct SharedStorage {
    Mbarrier full[3];
    alignas(16) std::uint32_t data[128];
    template <class F> void name_buffers(F&& name) {
      name("full", full);
      name("data", data);
    }
  };
  static SharedAddr barrier(SharedStorage const& smem, int i) {
    return shared_address(&smem.full[i]);
  }
};

std::string at(int line) { return "(isa/mbarrier_test.cpp:" + std::to_string(line) + ")"; }

/// The warps hand a word round, each to the next, by an mbarrier each way; the phases go on and on.
struct HandsRound : WithMbarriers {
  struct SharedStorage {
    Mbarrier full[4];
    std::uint32_t data;
    template <class F> void name_buffers(F&& name) { name("full", full), name("data", data); }
  };
  static constexpr int rounds = 7;
  void operator()(Params const& p, SharedStorage& smem) const {
    auto const barrier = [&](int i) { return shared_address(&smem.full[i % 4]); };
    SharedAddr const data = shared_address(&smem.data);
    if (thread_idx() < 4) mbarrier_init(barrier(thread_idx()), 32);
    if (thread_idx() == 0) st_shared(data, std::uint32_t{0});
    cta::sync();
    for (int round = 0; round < rounds; ++round) {
      // Warp 0 begins the first round; in the others it waits for warp 3's word.
      if (warp_id() > 0 || round > 0)
        mbarrier_wait_parity(barrier(warp_id()), (warp_id() > 0 ? round : round - 1) % 2);
      if (lane_id() == 0)
        st_shared(data, ld_shared<std::uint32_t>(data) * 5 + static_cast<std::uint32_t>(warp_id()));
      warp::sync();
      mbarrier_arrive(barrier(warp_id() + 1));
    }
    if (thread_idx() == 96) st_global(p.out + 4 * block_idx().x, ld_shared<std::uint32_t>(data));
  }
};

TEST(Mbarrier, WarpsTakeTurnsByPhases) {
  std::uint32_t expected = 0;
  for (int i = 0; i < 4 * HandsRound::rounds; ++i)
    expected = expected * 5 + static_cast<std::uint32_t>(i % 4);
  for_each_schedule([&](sim::Options const& options) {
    EXPECT_EQ(result_of<HandsRound>(options), expected) << schedule_text(options);
  });
}

/// A phase waits for its bytes as for its arrivals, whichever come first.
struct ExpectsBytes : WithMbarriers {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) {
      mbarrier_init(barrier(smem, 0), 2);
      mbarrier_complete_tx(barrier(smem, 0), 48);  // before they are expected
    }
    cta::sync();
    std::uint32_t seen = 0;
    auto const look = [&](int bit) {
      if (mbarrier_test_wait_parity(barrier(smem, 0), 0)) seen |= 1u << bit;
    };
    if (thread_idx() == 0) {
      look(0);
      mbarrier_arrive(barrier(smem, 0));
      look(1);
      // 16 too many have come, no arrival is pending
      mbarrier_arrive_expect_tx(barrier(smem, 0), 32);
      look(2);
      mbarrier_expect_tx(barrier(smem, 0), 80);
      look(3);
      mbarrier_complete_tx(barrier(smem, 0), 60);
      look(4);
      mbarrier_complete_tx(barrier(smem, 0), 4);
      look(5);  // now it is complete
      if (mbarrier_try_wait_parity(barrier(smem, 0), 0)) seen |= 1u << 6;
      if (mbarrier_test_wait_parity(barrier(smem, 0), 1)) seen |= 1u << 7;  // the next one is not
      st_global(p.out, seen);
    }
  }
};

TEST(Mbarrier, APhaseIsCompleteWhenNoArrivalAndNoByteIsPending) {
  for_each_schedule([&](sim::Options const& options) {
    EXPECT_EQ(result_of<ExpectsBytes>(options), 0x60u) << schedule_text(options);
  });
}

/// A wait for the parity of the phase before the first one returns at once, as a producer's first
/// round wants.
struct FirstWaitOfAProducer : WithMbarriers {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(barrier(smem, 1), 1);
    cta::sync();
    mbarrier_wait_parity(barrier(smem, 1), 1);
    if (thread_idx() == 0) st_global(p.out, 1u);
  }
};

TEST(Mbarrier, ThePhaseBeforeTheFirstCountsAsComplete) {
  EXPECT_EQ(result_of<FirstWaitOfAProducer>({}), 1u);
}

/// One warp polls without waiting while another works.
struct Polls : WithMbarriers {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(barrier(smem, 0), 32);
    if (thread_idx() == 1) mbarrier_init(barrier(smem, 1), 32);
    cta::sync();
    if (warp_id() == 3) {
      std::uint32_t polls = 0;
      // Two barriers in turn, neither of which anybody arrives at before the other warp has run.
      while (!mbarrier_test_wait_parity(barrier(smem, 0), 0) ||
             !mbarrier_test_wait_parity(barrier(smem, 1), 0))
        ++polls;
      if (lane_id() == 31)
        st_global(p.out, polls > 0 ? 1u : 0u);  // it came last to the barrier, and runs first
    }
    if (warp_id() == 0) {
      mbarrier_arrive(barrier(smem, 1));
      warp::sync();
      mbarrier_arrive(barrier(smem, 0));
    }
  }
};

TEST(Mbarrier, AThreadThatPollsLetsOthersRun) { EXPECT_EQ(result_of<Polls>({}), 1u); }

struct Reuses : WithMbarriers {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (warp_id() > 0) return;
    SharedAddr const address = shared_address(&smem.full[0]);
    if (lane_id() == 0) mbarrier_init(address, 32);
    warp::sync();
    mbarrier_arrive(address);
    mbarrier_wait_parity(address, 0);
    warp::sync();
    if (lane_id() == 0) {
      mbarrier_inval(address);
      st_shared(address, std::uint32_t{17});
      st_global(p.out, ld_shared<std::uint32_t>(address));
    }
  }
};

TEST(Mbarrier, ItsMemoryIsFreeOnceItIsInvalidated) { EXPECT_EQ(result_of<Reuses>({}), 17u); }

TEST(Mbarrier, ALaunchLeavesNoneBehind) {
  sim::Machine machine({.workers = 1});
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                        static_cast<char*>(machine.allocate(4096, "out"))};
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(sim::launch<HandsRound>(machine, {2, 1, 1}, buffers).ok());
}

struct UsedBeforeInit : WithMbarriers {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 33) mbarrier_arrive(barrier(smem, 2));
  }
};

TEST(MbarrierChecker, UsedBeforeItsInit) {
  Finding const f =
      only_finding(report_of<UsedBeforeInit>(), FindingKind::mbarrier_misuse, UsedBeforeInit::line);
  EXPECT_EQ(f.warp, 1);
  EXPECT_EQ(f.lane, 1);
  EXPECT_EQ(f.buffer, "full");
  EXPECT_SAYS(
      f, "mbarrier.arrive on element 2 of full, which is no mbarrier: nobody has initialised it");
}

struct WaitsBeforeInit : WithMbarriers {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage& smem) const {
    if (warp_id() == 0) mbarrier_wait_parity(barrier(smem, 0), 0);
  }
};

TEST(MbarrierChecker, WaitedForBeforeItsInit) {
  Finding const f = only_finding(report_of<WaitsBeforeInit>(), FindingKind::mbarrier_misuse,
                                 WaitsBeforeInit::line);
  EXPECT_EQ(f.count, 32);
}

struct InitialisedTwice : WithMbarriers {
  static constexpr int first_line = __LINE__ + 4;
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    mbarrier_init(barrier(smem, 1), 1);
    mbarrier_init(barrier(smem, 1), 2);
  }
};

TEST(MbarrierChecker, InitOfALiveOne) {
  Finding const f = only_finding(report_of<InitialisedTwice>(), FindingKind::mbarrier_misuse,
                                 InitialisedTwice::line);
  EXPECT_EQ(f.other.line, InitialisedTwice::first_line);
  EXPECT_SAYS(f, "mbarrier.init of element 1 of full, which is an mbarrier already " +
                     at(InitialisedTwice::first_line) + ": it must be invalidated first");
}

struct ArrivesTooOften : WithMbarriers {
  static constexpr int init_line = __LINE__ + 3, line = init_line + 3;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    mbarrier_init(barrier(smem, 0), 2);
    mbarrier_expect_tx(barrier(smem, 0), 16);
    mbarrier_arrive(barrier(smem, 0)), mbarrier_arrive(barrier(smem, 0));
    mbarrier_arrive(barrier(smem, 0));
  }
};

TEST(MbarrierChecker, MoreArrivalsThanItsCount) {
  Finding const f = only_finding(report_of<ArrivesTooOften>(), FindingKind::mbarrier_misuse,
                                 ArrivesTooOften::line);
  EXPECT_SAYS(
      f,
      "mbarrier.arrive on element 0 of full, which has had the 2 arrivals of a phase that its init " +
          at(ArrivesTooOften::init_line) +
          " says (it waits for 16 bytes): its count is too small, or this arrival is one too many");
}

template <int Expected, int Completed> struct ExpectedBytes : WithMbarriers {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    mbarrier_init(barrier(smem, 0), 1);
    for (int i = 0; i < 2; ++i) {
      if (Expected != 0) mbarrier_expect_tx(barrier(smem, 0), Expected);
      if (Completed != 0) mbarrier_complete_tx(barrier(smem, 0), Completed);
    }
  }
};

TEST(MbarrierChecker, MoreBytesThanItCounts) {
  sim::Report const expected = report_of<ExpectedBytes<(1 << 20) - 1, 0>>();
  ASSERT_EQ(expected.findings.size(), 1u) << expected.text();
  EXPECT_EQ(sim::to_string(expected.findings[0].kind), "mbarrier_misuse");
  EXPECT_SAYS(
      expected.findings[0],
      "mbarrier.expect_tx brings element 0 of full to 2097150 pending bytes: the count must stay between "
      "-1048575 and 1048575");
  sim::Report const completed = report_of<ExpectedBytes<0, 600'000>>();
  ASSERT_EQ(completed.findings.size(), 1u) << completed.text();
  EXPECT_SAYS(completed.findings[0],
              "mbarrier.complete_tx brings element 0 of full to -1200000 pending bytes");
  EXPECT_TRUE((report_of<ExpectedBytes<(1 << 20) - 1, (1 << 20) - 1>>().ok()));
}

template <int Count, int Bytes, int Parity> struct Operands : WithMbarriers {
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    mbarrier_init(barrier(smem, 0), Count);
    mbarrier_expect_tx(barrier(smem, 0), Bytes);
    mbarrier_wait_parity(barrier(smem, 0), Parity);
  }
};

TEST(MbarrierChecker, OperandsThatItDoesNotTake) {
  auto const says = [](sim::Report const& report, char const* text) {
    ASSERT_EQ(report.findings.size(), 1u) << report.text();
    EXPECT_EQ(sim::to_string(report.findings[0].kind), "invalid_operand");
    EXPECT_SAYS(report.findings[0], text);
  };
  says(report_of<Operands<0, 0, 0>>(),
       "mbarrier.init of element 0 of full for 0 arrivals: the count must be 1 to 1048575");
  says(report_of<Operands<1 << 20, 0, 0>>(), "for 1048576 arrivals");
  says(report_of<Operands<1, -1, 0>>(),
       "mbarrier.expect_tx of -1 bytes on element 0 of full: it takes 0 to 1048575");
  says(report_of<Operands<1, 1 << 20, 0>>(), "mbarrier.expect_tx of 1048576 bytes");
  says(report_of<Operands<1, 0, 2>>(),
       "mbarrier.try_wait for the phase of parity 2: a parity is 0 or 1");
}

struct MisalignedMbarrier : WithMbarriers {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(barrier(smem, 0) + 4, 1);
  }
};

TEST(MbarrierChecker, MisalignedAddress) {
  Finding const f = only_finding(report_of<MisalignedMbarrier>(), FindingKind::misaligned,
                                 MisalignedMbarrier::line);
  EXPECT_SAYS(f,
              "mbarrier.init on an mbarrier at shared address 0x404, 4 bytes past a multiple of 8");
}

struct MbarrierOutOfBounds : WithMbarriers {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(barrier(smem, 0) + sizeof(SharedStorage), 1);
  }
};

TEST(MbarrierChecker, AddressOutsideOfSharedMemory) {
  only_finding(report_of<MbarrierOutOfBounds>(), FindingKind::out_of_bounds,
               MbarrierOutOfBounds::line);
}

struct ReadsMbarrier : WithMbarriers {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(barrier(smem, 0), 1);
    cta::sync();
    if (thread_idx() == 7) ld_shared<std::uint32_t>(barrier(smem, 0) + 4);
  }
};

TEST(MbarrierChecker, ReadAsMemory) {
  Finding const f =
      only_finding(report_of<ReadsMbarrier>(), FindingKind::mbarrier_misuse, ReadsMbarrier::line);
  EXPECT_EQ(f.other.line, ReadsMbarrier::line - 2);
  EXPECT_SAYS(f, "ld.shared reads byte 4 of element 0 of full, which is an mbarrier " +
                     at(ReadsMbarrier::line - 2) + ": only mbarrier instructions may touch it");
}

struct WritesMbarrier : WithMbarriers {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(barrier(smem, 0), 1);
    cta::sync();
    if (thread_idx() == 7) st_shared(barrier(smem, 0), std::uint32_t{0});
  }
};

TEST(MbarrierChecker, WrittenAsMemory) {
  only_finding(report_of<WritesMbarrier>(), FindingKind::mbarrier_misuse, WritesMbarrier::line);
}

struct InvalidatedWhileWaitedFor : WithMbarriers {
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(barrier(smem, 0), 1);
    cta::sync();
    if (thread_idx() < 31) {
      mbarrier_wait_parity(barrier(smem, 0), 0);
    } else if (thread_idx() == 31) {
      mbarrier_inval(barrier(smem, 0));
    }
  }
};

TEST(MbarrierChecker, InvalidatedWhileThreadsWaitAtIt) {
  Finding const f = only_finding(report_of<InvalidatedWhileWaitedFor>(),
                                 FindingKind::mbarrier_misuse, InvalidatedWhileWaitedFor::line);
  EXPECT_SAYS(f, "mbarrier.inval of element 0 of full while threads wait at it");
}

struct WrongParity : WithMbarriers {
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) {
      mbarrier_init(barrier(smem, 1), 2);
      mbarrier_arrive_expect_tx(barrier(smem, 1), 8192);
    }
    cta::sync();
    if (warp_id() > 0) mbarrier_wait_parity(barrier(smem, 1), 0);
  }
};

TEST(MbarrierDeadlock, NamesTheWaitersAndWhatThePhaseLacks) {
  for_each_schedule([&](sim::Options const& options) {
    Finding const f =
        only_finding(report_of<WrongParity>(options), FindingKind::deadlock, WrongParity::line);
    EXPECT_EQ(
        f.message,
        "warps 1-3 wait at mbarrier element 1 of full " + at(WrongParity::line) +
            " for the phase of parity 0, which lacks 1 of 2 arrivals and 8192 bytes; warp 0 exited");
  });
}

struct TooManyBytes : WithMbarriers {
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) {
      mbarrier_init(barrier(smem, 0), 1);
      mbarrier_arrive_expect_tx(barrier(smem, 0), 16);
      mbarrier_complete_tx(barrier(smem, 0), 24);
    }
    if (thread_idx() == 0) mbarrier_wait_parity(barrier(smem, 0), 0);
  }
};

TEST(MbarrierDeadlock, NamesTheBytesThatAreTooMany) {
  // The phase of the arrival never completes: its bytes come to -8.
  Finding const f =
      only_finding(report_of<TooManyBytes>(), FindingKind::deadlock, TooManyBytes::line);
  EXPECT_EQ(
      f.message,
      "lane 0 of warp 0 waits at mbarrier element 0 of full " + at(TooManyBytes::line) +
          " for the phase of parity 0, which has 8 bytes more than it expects; warps 1-3 exited");
}

struct PollsForever : WithMbarriers {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(barrier(smem, 0), 1);
    cta::sync();
    if (warp_id() == 2) {
      while (!mbarrier_test_wait_parity(barrier(smem, 0), 0)) {
      }
    }
  }
};

TEST(MbarrierDeadlock, PollingForAPhaseThatNeverCompletes) {
  Finding const f = only_finding(report_of<PollsForever>({.count = false}), FindingKind::deadlock,
                                 PollsForever::line);
  EXPECT_SAYS(f, "nobody changes it; warp 2 tests mbarrier element 0 of full " +
                     at(PollsForever::line) +
                     " for the phase of parity 0, which lacks 1 of 1 arrival; warps 0-1, 3 exited");
}

}  // namespace
}  // namespace tegula
