#include "tegula/sim/explore.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "broken_kernel.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/ordered_access.hpp"
#include "tegula/arch/reduction.hpp"
#include "tegula/arch/tma.hpp"

/// Explorations: how many orders small kernels have, that each is covered once, and what only
/// some show.
namespace tegula {
namespace {

using sim::Exploration;
using sim::ExploreOptions;

/// Explores a kernel on a machine of its own; the result is `out`.
template <class Kernel>
Exploration explore(ExploreOptions options = {}, sim::Options machine_options = {},
                    Dim3 grid = {}) {
  sim::Machine machine(std::move(machine_options));
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                        static_cast<char*>(machine.allocate(4096, "out"))};
  options.result = [&] {
    std::vector<std::byte> bytes(4096);
    machine.download(bytes.data(), buffers.out, bytes.size());
    return bytes;
  };
  return sim::explore(
      machine,
      [&] {
        machine.fill(buffers.in, 0, 4096);
        machine.fill(buffers.out, 0, 4096);
        sim::launch<Kernel>(machine, grid, buffers);
      },
      options);
}

/// Every order of all steps, and every order that differs in steps that do not commute: the same.
template <class Kernel> void expect_orders(std::int64_t orders, bool against_all = true) {
  Exploration const reduced = explore<Kernel>();
  EXPECT_TRUE(reduced.complete);
  EXPECT_EQ(reduced.orders, orders) << reduced.text();
  if (!reduced.accesses) {
    EXPECT_EQ(reduced.executions, orders) << "each order once";
  }
  if (!against_all) return;
  Exploration const all = explore<Kernel>({.max_executions = 1 << 20, .reduce = false});
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(all.orders, orders) << all.text();
  EXPECT_EQ(all.differs.has_value(), reduced.differs.has_value());
  EXPECT_EQ(all.findings.size(), reduced.findings.size());
}

std::uint32_t* word(char* buffer, int i) { return reinterpret_cast<std::uint32_t*>(buffer) + i; }

/// Two threads write the same again and again, by a store or by a reduction: that is no polling.
template <bool Stores> struct Repeats : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() >= 2) return;
    for (int i = 0; i < 3; ++i) {
      if constexpr (Stores) {
        st_global_relaxed<Scope::gpu>(word(p.in, 0), 1u);
      } else {
        red_or(word(p.in, 0), 1u);
      }
    }
  }
};

TEST(Explore, WhoWritesTheSameAgainPollsNothing) {
  expect_orders<Repeats<true>>(20);  // 6 over 3
  expect_orders<Repeats<false>>(20);
}

/// `Threads` threads add `Times` times each: to the same word, or each to its own.
template <int Threads, int Times, bool Same> struct Adds : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() >= Threads) return;
    for (int i = 0; i < Times; ++i) atom_add(word(p.in, Same ? 0 : thread_idx()), 1u);
  }
};

TEST(Explore, StepsThatDoNotCommuteHaveAsManyOrdersAsInterleavings) {
  expect_orders<Adds<1, 3, true>>(1);
  expect_orders<Adds<2, 1, true>>(2);
  expect_orders<Adds<2, 2, true>>(6);
  expect_orders<Adds<3, 1, true>>(6);
  expect_orders<Adds<2, 3, true>>(20);
  expect_orders<Adds<3, 2, true>>(90);
}

TEST(Explore, StepsThatCommuteHaveOneOrder) {
  expect_orders<Adds<2, 2, false>>(1);
  expect_orders<Adds<4, 1, false>>(1);
  expect_orders<Adds<32, 4, false>>(1, false);
}

/// Two pairs of threads, each pair with a word of its own.
struct TwoPairs : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() < 4) atom_add(word(p.in, thread_idx() / 2), 1u);
  }
};

TEST(Explore, IndependentPairsMultiply) { expect_orders<TwoPairs>(4); }

/// Kernels with mbarriers, a tile of 128 bytes for each of four stages, and threads that are warps'
/// first lanes.
struct Rings {
  using Params = Buffers;
  struct SharedStorage {
    alignas(128) std::uint32_t tile[4][32];
    Mbarrier full[4];
    Mbarrier empty[4];
    template <class F> void name_buffers(F&& name) {
      name("tile", tile), name("full", full), name("empty", empty);
    }
  };
  static constexpr int threads = 64;

  TEGULA_DEVICE static void init(SharedStorage& smem, int stages, int arrivals) {
    if (thread_idx() == 0) {
      for (int i = 0; i < stages; ++i) {
        mbarrier_init(shared_address(&smem.full[i]), 1);
        mbarrier_init(shared_address(&smem.empty[i]), arrivals);
      }
      fence_mbarrier_init();
    }
    cta::sync();
  }
};

/// `Threads` threads arrive, and one polls or waits.
template <int Threads, bool Polls> struct ArrivalsAndALook : Rings {
  void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 1, Threads);
    SharedAddr const barrier = shared_address(&smem.empty[0]);
    if (thread_idx() < Threads) mbarrier_arrive(barrier);
    if (thread_idx() != 32) return;
    bool complete = true;
    if (Polls)
      complete = mbarrier_test_wait_parity(barrier, 0);
    else
      mbarrier_wait_parity(barrier, 0);
    st_global(p.out, complete ? 1u : 2u);
  }
};

TEST(Explore, ArrivalsCommuteAndAPollIsBeforeOrAfterTheLast) {
  expect_orders<ArrivalsAndALook<1, true>>(2);
  expect_orders<ArrivalsAndALook<2, true>>(2);
  expect_orders<ArrivalsAndALook<4, true>>(2);
  expect_orders<ArrivalsAndALook<32, true>>(2, false);
  expect_orders<ArrivalsAndALook<4, false>>(1);
  EXPECT_TRUE((explore<ArrivalsAndALook<2, true>>().differs.has_value()));
  EXPECT_FALSE((explore<ArrivalsAndALook<2, false>>().differs.has_value()));
}

/// The thread that polls is the first one, which the machine runs first.
struct PollsFirst : Rings {
  void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 1, 2);
    SharedAddr const barrier = shared_address(&smem.empty[0]);
    if (thread_idx() == 0) st_global(p.out, mbarrier_test_wait_parity(barrier, 0) ? 1u : 2u);
    if (thread_idx() == 32 || thread_idx() == 33) mbarrier_arrive(barrier);
  }
};

TEST(Explore, APollThatComesFirstMayComeLast) {
  expect_orders<PollsFirst>(2);
  EXPECT_TRUE(explore<PollsFirst>().differs.has_value());
}

/// More arrivals than the phase counts: which of them make a phase is an order.
template <int Threads, int Count> struct Overarrives : Rings {
  void operator()(Params const&, SharedStorage& smem) const {
    init(smem, 1, Count);
    if (thread_idx() < Threads) mbarrier_arrive(shared_address(&smem.empty[0]));
  }
};

TEST(Explore, ArrivalsOfDifferentPhasesDoNotCommute) {
  expect_orders<Overarrives<3, 2>>(3);
  expect_orders<Overarrives<4, 2>>(6);
  expect_orders<Overarrives<3, 1>>(6);
}

/// A thread expects bytes and another arrives: the phase may end before the bytes are expected.
struct ExpectsBesideAnArrival : Rings {
  void operator()(Params const&, SharedStorage& smem) const {
    init(smem, 1, 1);
    SharedAddr const barrier = shared_address(&smem.empty[0]);
    if (thread_idx() == 0) mbarrier_expect_tx(barrier, 16), mbarrier_complete_tx(barrier, 16);
    if (thread_idx() == 32) mbarrier_arrive(barrier);
  }
};

TEST(Explore, AnExpectationDoesNotCommuteWithAnArrival) {
  expect_orders<ExpectsBesideAnArrival>(2);
}

/// A producer fills a ring of `Stages` stages by copies, `Steps` times; a consumer reads.
template <int Stages, int Steps, bool WaitsForEmpty = true> struct Ring : Rings {
  void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, Stages, 1);
    if (thread_idx() == 0) {
      for (int i = 0; i < Steps; ++i) {
        int const stage = i % Stages;
        SharedAddr const full = shared_address(&smem.full[stage]);
        if (WaitsForEmpty)
          mbarrier_wait_parity(shared_address(&smem.empty[stage]), (i / Stages + 1) % 2);
        mbarrier_arrive_expect_tx(full, 128);
        bulk_load(shared_address(&smem.tile[stage][0]), p.in + 128 * i, 128, full);
      }
    }
    if (thread_idx() == 32) {
      std::uint32_t sum = 0;
      for (int i = 0; i < Steps; ++i) {
        int const stage = i % Stages;
        mbarrier_wait_parity(shared_address(&smem.full[stage]), i / Stages % 2);
        sum += ld_shared<std::uint32_t>(shared_address(&smem.tile[stage][0]));
        mbarrier_arrive(shared_address(&smem.empty[stage]));
      }
      st_global(p.out, sum);
    }
  }
};

TEST(Explore, ARingHasOneOrder) {
  expect_orders<Ring<1, 3>>(1);
  expect_orders<Ring<2, 3>>(1);
  expect_orders<Ring<2, 4>>(1, false);
  expect_orders<Ring<4, 6>>(1, false);
}

TEST(Explore, ARingWithoutItsEmptyBarrierHasFaultsInSomeOrders) {
  Exploration const e = explore<Ring<2, 4, false>>();
  EXPECT_TRUE(e.complete);
  EXPECT_GT(e.orders, 2);
  std::set<sim::FindingKind> kinds;
  for (auto const& found : e.findings) kinds.insert(found.finding.kind);
  EXPECT_TRUE(kinds.contains(sim::FindingKind::deadlock)) << e.text();
  EXPECT_TRUE(kinds.contains(sim::FindingKind::async_overwrite)) << e.text();
}

/// Two warps take turns, ordered by two named barriers.
struct PingPong : Rings {
  void operator()(Params const& p, SharedStorage&) const {
    int const warp = warp_id();
    if (warp == 1) cta::bar_arrive(1, 64);
    for (int turn = 0; turn < 3; ++turn) {
      cta::bar_sync(1 + warp, 64);
      if (lane_id() == 0)
        st_global(word(p.out, 0), ld_global<std::uint32_t>(word(p.out, 0)) * 3u + 1u +
                                      static_cast<std::uint32_t>(warp));
      if (turn < 2 || warp == 0) cta::bar_arrive(2 - warp, 64);
    }
  }
};

TEST(Explore, TurnsOrderedByNamedBarriersHaveOneOrder) { expect_orders<PingPong>(1); }

/// A warp that does not wait its turn: a barrier counts it where another warp should have been.
struct ArrivesTwice : Rings {
  static constexpr int threads = 96;
  void operator()(Params const&, SharedStorage&) const {
    if (warp_id() == 0) cta::bar_arrive(1, 64), cta::bar_arrive(1, 64);
    if (warp_id() > 0) cta::bar_sync(1, 64);
  }
};

TEST(Explore, ArrivalsAtANamedBarrierCountForOnePhaseOrAnother) {
  Exploration const e = explore<ArrivesTwice>();
  EXPECT_TRUE(e.complete);
  EXPECT_EQ(e.orders, explore<ArrivesTwice>({.reduce = false}).orders) << e.text();
  EXPECT_GT(e.orders, 1);
}

/// Two threads take six numbers each, in one of 924 orders. One of them is a fault.
struct Needle : Broken {
  static constexpr int threads = 64;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    bool found = true;
    for (std::uint32_t i = 0; i < 6; ++i) {
      std::uint32_t const number = atom_add(word(p.in, 0), 1u);
      found = found && number == 2 * i + i % 2;
    }
    if (found) trap();
  }
};

TEST(Explore, FindsWhatSeedsOfRandomSchedulesMiss) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (auto const interleaving : {sim::Interleaving::random, sim::Interleaving::one_warp_behind})
      EXPECT_TRUE(report_of<Needle>({.interleaving = interleaving, .seed = seed}).ok());
  }
  Exploration const e = explore<Needle>();
  EXPECT_TRUE(e.complete);
  EXPECT_EQ(e.orders, 924);
  ASSERT_EQ(e.findings.size(), 1u) << e.text();
  EXPECT_EQ(e.findings[0].finding.kind, sim::FindingKind::trap);
  EXPECT_FALSE(report_of<Needle>({.choices = e.findings[0].choices}).ok());
}

/// Reads what another thread writes without anything between: one order shows the value, the other
/// does not.
struct Races : Rings {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) st_shared(shared_address(&smem.tile[0][0]), 5u);
    cta::sync();
    if (thread_idx() == 0) st_shared(shared_address(&smem.tile[0][0]), 6u);
    if (thread_idx() == 32)
      st_global(p.out, ld_shared<std::uint32_t>(shared_address(&smem.tile[0][0])));
  }
};

TEST(Explore, LoadsAndStoresAreStepsWhereTheyRace) {
  Exploration const e = explore<Races>();
  EXPECT_TRUE(e.accesses);
  EXPECT_TRUE(e.complete);
  EXPECT_EQ(e.orders, 2);
  EXPECT_TRUE(e.differs.has_value());
}

/// The store buffering test: x = 1, r = y beside y = 1, s = x. Memory is sequentially consistent,
/// so r = s = 0 does not happen, and four orders of the two pairs of conflicts are three outcomes.
struct StoreBuffering : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    int const lane = thread_idx();
    if (lane >= 2) return;
    st_global(word(p.in, lane), 1u);
    st_global(word(p.out, lane), ld_global<std::uint32_t>(word(p.in, 1 - lane)));
  }
};

TEST(Explore, TheStoreBufferingTestHasThreeOrders) {
  Exploration const e = explore<StoreBuffering>();
  EXPECT_TRUE(e.complete);
  EXPECT_EQ(e.orders, 3) << e.text();
  EXPECT_EQ(explore<StoreBuffering>({.reduce = false}).orders, 3);
}

/// Three threads, two words: what a thread reads decides nothing, but two of them also read.
struct ReadersAndWriters : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    int const lane = thread_idx();
    if (lane == 0) st_global(word(p.in, 0), 1u), st_global(word(p.in, 1), 1u);
    if (lane == 1)
      st_global(word(p.out, 1),
                ld_global<std::uint32_t>(word(p.in, 1)) + ld_global<std::uint32_t>(word(p.in, 0)));
    if (lane == 2) st_global(word(p.in, 0), ld_global<std::uint32_t>(word(p.in, 1)) + 2u);
  }
};

TEST(Explore, RacesHaveAsManyOrdersWithTheReductionAsWithoutIt) {
  Exploration const reduced = explore<ReadersAndWriters>();
  Exploration const all = explore<ReadersAndWriters>({.max_executions = 1 << 20, .reduce = false});
  EXPECT_TRUE(reduced.complete && all.complete);
  EXPECT_TRUE(reduced.accesses && all.accesses);
  EXPECT_EQ(reduced.orders, all.orders) << reduced.text();
  EXPECT_LT(reduced.executions, all.executions / 10);
}

/// A flag by plain loads: the waiting thread polls what nobody orders.
struct Flag : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() == 0) st_global(word(p.in, 0), 1u);
    if (thread_idx() != 1) return;
    while (ld_global<std::uint32_t>(word(p.in, 0)) == 0) {
    }
    st_global(p.out, 1u);
  }
};

TEST(Explore, AThreadThatPollsWaitsForWhatItPolls) {
  Exploration const e = explore<Flag>();
  EXPECT_TRUE(e.complete);
  EXPECT_EQ(e.orders, 2) << "it polls once before, or not\n" << e.text();
  EXPECT_FALSE(e.differs.has_value());
}

/// A CTA reads a peer's memory, and the peer may be gone; or both stay until that is done.
template <bool Stays> struct ReadsAPeer : Broken {
  static constexpr Dim3 cluster = {2, 1, 1};
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const tile = shared_address(&smem.k[0][0]);
    if (thread_idx() == 0) st_shared(tile, 9u);
    cluster::sync();
    if (cluster_cta_rank() == 1 && thread_idx() == 0)
      st_global(p.out, ld_shared_cluster<std::uint32_t>(mapa(tile, 0)));
    if (Stays) cluster::sync();
  }
};

TEST(Explore, ACtaThatEndsBeforeOrAfterItsPeersAccess) {
  Exploration const gone = explore<ReadsAPeer<false>>({}, {}, {2, 1, 1});
  EXPECT_TRUE(gone.complete);
  EXPECT_EQ(gone.orders, 2) << gone.text();
  EXPECT_TRUE(gone.differs.has_value());
  ASSERT_FALSE(gone.findings.empty());
  for (auto const& found : gone.findings)
    EXPECT_EQ(found.finding.kind, sim::FindingKind::exited_cta);
  Exploration const stays = explore<ReadsAPeer<true>>({}, {}, {2, 1, 1});
  EXPECT_TRUE(stays.complete && stays.ok()) << stays.text();
  EXPECT_EQ(stays.orders, 1);
  EXPECT_NE(stays.text().find("the only order of what synchronises"), std::string::npos)
      << stays.text();
  EXPECT_NE(gone.text().find("all 2 orders of what synchronises"), std::string::npos)
      << gone.text();
}

TEST(Explore, ChoicesReplayAnOrderExactly) {
  Exploration const e = explore<Ring<2, 4, false>>();
  for (auto const& found : e.findings) {
    sim::Choices const choices = sim::Choices::parse(found.choices.text());
    EXPECT_EQ(choices, found.choices);
    sim::Report const report = report_of<Ring<2, 4, false>>({.choices = choices});
    bool again = false;
    for (sim::Finding const& f : report.findings)
      again |= sim::to_string(f, "") == sim::to_string(found.finding, "");
    EXPECT_TRUE(again) << found.choices.text() << "\n" << report.text();
  }
}

/// Why a launch of Ring with these choices is refused.
std::string refusal_of(std::string const& choices) {
  try {
    report_of<Ring<2, 4>>({.choices = sim::Choices::parse(choices)});
  } catch (std::invalid_argument const& error) {
    return error.what();
  }
  return "";
}

TEST(Explore, ChoicesThatTheKernelDoesNotHaveAreRefused) {
  EXPECT_EQ(refusal_of("sync"), "") << "the machine's own";
  for (std::string const choice :
       {"0:t5", "0:t64", "0:w2", "0:g1", "0:o0.7", "0:o5000.0", "100000:t0"})
    EXPECT_THAT(refusal_of("sync " + choice),
                testing::AllOf(testing::StartsWith("launch of "),
                               testing::HasSubstr("in \"sync " + choice + "\"")));
  EXPECT_THAT(refusal_of("sync 3:t32 3:t0"), testing::HasSubstr("in \"sync 3:t"));
}

TEST(Explore, BoundsAreKeptAndTold) {
  Exploration const few = explore<Adds<3, 2, true>>({.max_executions = 20});
  EXPECT_EQ(few.executions, 20);
  EXPECT_EQ(few.orders, 20);
  EXPECT_FALSE(few.complete);
  Exploration const spread = explore<Adds<3, 2, true>>({.max_executions = 20, .seed = 3});
  EXPECT_EQ(spread.orders, 20);
  Exploration const shallow = explore<Adds<3, 2, true>>({.max_steps = 3});
  EXPECT_FALSE(shallow.complete);
}

TEST(Explore, RefusesMoreThanOneClusterAndMoreThanOneLaunch) {
  EXPECT_THROW(explore<TwoPairs>({}, {}, {33, 1, 1}), std::invalid_argument);
  sim::Machine machine;
  EXPECT_THROW(sim::explore(machine, [] {}), std::invalid_argument);
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")), nullptr};
  machine.fill(buffers.in, 0, 4096);
  EXPECT_THROW(sim::explore(machine,
                            [&] {
                              sim::launch<TwoPairs>(machine, {}, buffers);
                              sim::launch<TwoPairs>(machine, {}, buffers);
                            }),
               std::invalid_argument);
  EXPECT_TRUE(sim::launch<TwoPairs>(machine, {2, 1, 1}, buffers).ok())
      << "the machine is as before";
  EXPECT_THROW(sim::Choices::parse("sync 3"), std::invalid_argument);
  EXPECT_THROW(sim::Choices::parse("all"), std::invalid_argument);
}

}  // namespace
}  // namespace tegula
