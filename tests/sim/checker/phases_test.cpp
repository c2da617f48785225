#include "mended_kernel.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/sim/explore.hpp"

/// Waits that pass too early: for a phase that was consumed before, and by a try whose answer
/// is ignored.
namespace tegula {
namespace {

using sim::FindingKind;

/// A ring of two stages of a row of words, which warp 0 fills and warp 1 reads.
struct Ring : Broken {
  static constexpr int threads = 64, stages = 2, row_bytes = 128;
  struct SharedStorage {
    alignas(128) std::uint32_t rows[stages][32];
    alignas(128) std::uint32_t resident[32];
    Mbarrier full[stages];
    Mbarrier empty[stages];
    Mbarrier resident_full;
    template <class F> void name_buffers(F&& name) {
      name("rows", rows);
      name("resident", resident);
      name("full", full);
      name("empty", empty);
      name("resident_full", resident_full);
    }
  };
  static void begin(SharedStorage& smem, int readers) {
    if (thread_idx() == 0) {
      for (int s = 0; s < stages; ++s) {
        mbarrier_init(shared_address(&smem.full[s]), 1);
        mbarrier_init(shared_address(&smem.empty[s]), readers);
      }
      mbarrier_init(shared_address(&smem.resident_full), 1);
      fence_mbarrier_init();
    }
    cta::sync();
  }
  static void load(Params const& p, SharedStorage& smem, int stage, int row) {
    mbarrier_arrive_expect_tx(shared_address(&smem.full[stage]), row_bytes);
    bulk_load(shared_address(&smem.rows[stage][0]), p.in + row_bytes * row, row_bytes,
              shared_address(&smem.full[stage]));
  }
  static void keep(Params const& p, SharedStorage const& smem, int stage, int row) {
    st_global(p.out + row_bytes * row + 4 * lane_id(),
              ld_shared<std::uint32_t>(shared_address(&smem.rows[stage][lane_id()])));
  }
};

enum class Arrives : std::uint8_t { every_lane, one_lane };

/// Each tile begins with stage 0, and, where it is broken, with parity 0.
template <bool Mended, Arrives How, int Tiles = 2> struct RestartsPhases : Ring {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem, How == Arrives::every_lane ? 32 : 1);
    for (int tile = 0; tile < Tiles; ++tile) {
      int const parity = Mended ? tile % 2 : 0;
      for (int s = 0; s < stages; ++s) {
        if (thread_idx() == 0) {
          mbarrier_wait_parity(shared_address(&smem.empty[s]), parity ^ 1);
          load(p, smem, s, stages * tile + s);
        } else if (warp_id() == 1) {
          mbarrier_wait_parity(shared_address(&smem.full[s]), parity);
          keep(p, smem, s, stages * tile + s);
          if (How == Arrives::one_lane) warp::sync();
          if (How == Arrives::every_lane || lane_id() == 0)
            mbarrier_arrive(shared_address(&smem.empty[s]));
        }
      }
    }
  }
};

TEST(Phases, AStageThatIsConsumedTwiceIsFound) {
  std::string const advice = "a wait for phase 1, of parity 1, would see what comes next";
  sim::Finding const f = finding_that_advises<RestartsPhases<false, Arrives::every_lane>>(
      FindingKind::mbarrier_misuse, advice);
  EXPECT_SAYS(
      f,
      "a wait for element 0 of full passes on phase 0, for which warp 1 lane 0 has waited before (");
  EXPECT_SAYS(f, "given back since by mbarrier.arrive on element 0 of empty (");
  finding_that_advises<RestartsPhases<false, Arrives::one_lane>>(FindingKind::mbarrier_misuse,
                                                                 advice);
  for (sim::Options const& schedule : every_schedule(4)) {
    EXPECT_FALSE((report_of<RestartsPhases<false, Arrives::one_lane>>(schedule).ok()))
        << schedule_text(schedule);
  }
  expect_silent<RestartsPhases<true, Arrives::every_lane, 3>>();
  expect_silent<RestartsPhases<true, Arrives::one_lane, 3>>();
}

/// A row that stays while the ring goes round: each step waits for it once more, and rightly so. It
/// is loaded after the wait for a stage, as the stage is.
template <bool StageFirst> struct WaitsForWhatStays : Ring {
  static constexpr int steps = 6;
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem, 32);
    for (int step = 0; step < steps; ++step) {
      int const s = step % stages, parity = step / stages % 2;
      if (thread_idx() == 0) {
        mbarrier_wait_parity(shared_address(&smem.empty[s]), parity ^ 1);
        if (StageFirst) load(p, smem, s, step);
        if (step == 0) {
          mbarrier_arrive_expect_tx(shared_address(&smem.resident_full), row_bytes);
          bulk_load(shared_address(&smem.resident[0]), p.in, row_bytes,
                    shared_address(&smem.resident_full));
        }
        if (!StageFirst) load(p, smem, s, step);
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(shared_address(&smem.resident_full), 0);
        mbarrier_wait_parity(shared_address(&smem.full[s]), parity);
        keep(p, smem, s, step);
        st_global(p.out + row_bytes * (8 + step) + 4 * lane_id(),
                  ld_shared<std::uint32_t>(shared_address(&smem.resident[lane_id()])));
        mbarrier_arrive(shared_address(&smem.empty[s]));
      }
    }
  }
};

TEST(Phases, WhatStaysMayBeWaitedForAgain) {
  expect_silent<WaitsForWhatStays<true>>();
  expect_silent<WaitsForWhatStays<false>>();
}

/// Two halves of a stage are given back one after the other, each after a wait: both arrivals count
/// for the same phase.
struct GivesBackInHalves : Ring {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem, 64);
    for (int step = 0; step < 6; ++step) {
      int const s = step % stages, parity = step / stages % 2;
      if (thread_idx() == 0) {
        mbarrier_wait_parity(shared_address(&smem.empty[s]), parity ^ 1);
        load(p, smem, s, step);
      } else if (warp_id() == 1) {
        for (int half = 0; half < 2; ++half) {
          mbarrier_wait_parity(shared_address(&smem.full[s]), parity);
          if (lane_id() / 16 == half) keep(p, smem, s, step);
          mbarrier_arrive(shared_address(&smem.empty[s]));
        }
      }
    }
  }
};

TEST(Phases, AStageMayBeGivenBackInParts) { expect_silent<GivesBackInHalves>(); }

/// What has the lanes of a warp come to a wait before one of them arrives for all.
enum class Meets : std::uint8_t { never, at_a_barrier, at_a_shuffle };

/// One lane of warp 1 reads and gives back; the others only wait.
template <Meets Where> struct OneArrivesForAll : Ring {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem, 1);
    for (int step = 0; step < 6; ++step) {
      int const s = step % stages, parity = step / stages % 2;
      if (thread_idx() == 0) {
        mbarrier_wait_parity(shared_address(&smem.empty[s]), parity ^ 1);
        load(p, smem, s, step);
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(shared_address(&smem.full[s]), parity);
        if (Where == Meets::at_a_barrier) warp::sync();
        if (Where == Meets::at_a_shuffle) warp::shfl(step, 0);
        if (lane_id() != 0) continue;
        keep(p, smem, s, step);
        mbarrier_arrive(shared_address(&smem.empty[s]));
      }
    }
  }
};

TEST(Phases, ALaneMayComeTooLateWhereAnotherArrivesForIt) {
  sim::Finding const f = finding_that_advises<OneArrivesForAll<Meets::never>>(
      FindingKind::mbarrier_misuse,
      "a warp::sync after the wait, before what lane 0 does then, would order them");
  EXPECT_SAYS(f, "a wait for phase 0 of element 0 of full may come when phase 1 is complete, too");
  EXPECT_EQ(f.lane, 1);
  for (sim::Options const& schedule : every_schedule(4)) {
    EXPECT_FALSE((report_of<OneArrivesForAll<Meets::never>>(schedule).ok()))
        << schedule_text(schedule);
  }
  expect_silent<OneArrivesForAll<Meets::at_a_barrier>>();
  // It orders no memory; but nobody passes it before all lanes have come.
  expect_silent<OneArrivesForAll<Meets::at_a_shuffle>>();
}

/// Lane 0 of warp 2 waits for each row, too, and nobody waits for it unless it arrives.
template <bool Arrives> struct Watches : Ring {
  static constexpr int threads = 96;
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem, Arrives ? 33 : 32);
    for (int step = 0; step < 6; ++step) {
      int const s = step % stages, parity = step / stages % 2;
      if (thread_idx() == 0) {
        mbarrier_wait_parity(shared_address(&smem.empty[s]), parity ^ 1);
        load(p, smem, s, step);
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(shared_address(&smem.full[s]), parity);
        keep(p, smem, s, step);
        mbarrier_arrive(shared_address(&smem.empty[s]));
      } else if (thread_idx() == 64) {
        mbarrier_wait_parity(shared_address(&smem.full[s]), parity);
        if (Arrives) mbarrier_arrive(shared_address(&smem.empty[s]));
      }
    }
  }
};

TEST(Phases, AThreadMayComeTooLateWhereNobodyWaitsForIt) {
  sim::Finding const f = finding_that_advises<Watches<false>>(
      FindingKind::mbarrier_misuse,
      "an arrival after the wait, without which phase 1 is not complete, would order them");
  EXPECT_EQ(f.warp, 2);
  expect_silent<Watches<true>>();
}

enum class By : std::uint8_t { copy, arrival };

/// A wait that asks once, and goes on whatever the answer is.
template <bool Mended, By Whom> struct IgnoresTheAnswer : Ring {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem, 1);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (warp_id() == 0) {
      if (Whom == By::copy) {
        if (lane_id() == 0) load(p, smem, 0, 0);
      } else {
        st_shared(shared_address(&smem.rows[0][lane_id()]), 1u);
        warp::sync();
        if (lane_id() == 0) mbarrier_arrive(full);
      }
      return;
    }
    while (!mbarrier_try_wait_parity(full, 0) && Mended) {
    }
    keep(p, smem, 0, 0);
  }
};

TEST(Phases, ATryMayEndTooEarly) {
  EXPECT_FALSE((report_of<IgnoresTheAnswer<false, By::copy>>().ok()));
  expect_silent<IgnoresTheAnswer<true, By::copy>>();
  expect_silent<IgnoresTheAnswer<true, By::arrival>>();
  int found = 0;
  for (sim::Options const& schedule : every_schedule(4))
    found += !report_of<IgnoresTheAnswer<false, By::arrival>>(schedule).ok();
  EXPECT_GT(found, 0) << "an arrival may have come before";
}

TEST(Phases, EveryOrderHasOneWhereATryEndsTooEarly) {
  sim::Machine machine;
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                        static_cast<char*>(machine.allocate(4096, "out"))};
  machine.fill(buffers.in, 0, 4096);
  auto const explored = [&]<class Kernel>(Kernel*) {
    return sim::explore(machine,
                        [&] {
                          sim::launch<Kernel>(machine, {1, 1, 1}, buffers);
                        },
                        {.max_executions = 50});
  };
  EXPECT_FALSE(explored(static_cast<IgnoresTheAnswer<false, By::arrival>*>(nullptr)).ok());
  EXPECT_TRUE(explored(static_cast<IgnoresTheAnswer<true, By::copy>*>(nullptr)).ok());
}

}  // namespace
}  // namespace tegula
