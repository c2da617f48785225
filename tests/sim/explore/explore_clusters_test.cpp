#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "schedules.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/cluster_launch_control.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/sim/explore.hpp"
#include "tegula/sim/launch.hpp"

/// Explorations of several clusters: how many orders their steps have among each other, and what
/// only some of them show.
namespace tegula {
namespace {

struct Counters {
  std::uint32_t* words;  ///< all 0
  int tiles;
};
constexpr std::size_t kCounterBytes = 256;

sim::Options blackwell_of(int multiprocessors) {
  return {.generation = sim::Generation::sm100, .multiprocessors = multiprocessors};
}

/// Explores a kernel on a machine of its own, a grid of so many CTAs; the result is all words.
template <class Kernel>
sim::Exploration explore_grid(int ctas, sim::Options const& machine_options,
                              sim::ExploreOptions options = {}) {
  sim::Machine machine(machine_options);
  auto* const words = static_cast<std::uint32_t*>(machine.allocate(kCounterBytes, "words"));
  options.result = [&] {
    std::vector<std::byte> bytes(kCounterBytes);
    machine.download(bytes.data(), words, bytes.size());
    return bytes;
  };
  return sim::explore(
      machine,
      [&] {
        machine.fill(words, 0, kCounterBytes);
        sim::launch<Kernel>(machine, {ctas, 1, 1}, {words, ctas});
      },
      options);
}

/// All interleavings, and those that differ in steps that do not commute, have these orders.
template <class Kernel>
void expect_orders(std::int64_t orders, int ctas, sim::Options const& options,
                   bool refusals = false) {
  sim::Exploration const reduced = explore_grid<Kernel>(ctas, options, {.refusals = refusals});
  EXPECT_TRUE(reduced.complete && reduced.findings.empty()) << reduced.text();
  EXPECT_EQ(reduced.orders, orders) << reduced.text();
  sim::Exploration const all = explore_grid<Kernel>(
      ctas, options, {.max_executions = 1 << 18, .refusals = refusals, .reduce = false});
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(all.orders, orders) << all.text();
  EXPECT_EQ(all.differs.has_value(), reduced.differs.has_value());
}

/// A thread of each CTA adds `Times` times: to one word for all, or to one for each CTA.
template <int Times, bool Same> struct AddsOfEach {
  using Params = Counters;
  static constexpr int threads = 32;
  struct SharedStorage {};
  TEGULA_DEVICE void operator()(Counters const& p, SharedStorage&) const {
    if (thread_idx() != 0) return;
    for (int i = 0; i < Times; ++i) atom_add(p.words + (Same ? 0 : block_idx().x), 1u);
  }
};

TEST(ExploreClusters, HaveTheOrdersOfThreadsThatDoTheSame) {
  expect_orders<AddsOfEach<1, true>>(2, 2, {});
  expect_orders<AddsOfEach<2, true>>(6, 2, {});
  expect_orders<AddsOfEach<1, true>>(6, 3, {});
  expect_orders<AddsOfEach<2, false>>(1, 2, {});
  expect_orders<AddsOfEach<2, false>>(1, 4, {});
}

/// Two CTAs of a cluster meet, and each tells its number to the CTA of its rank in the grid's other
/// cluster: one adds, one reads.
struct TwoClusters {
  using Params = Counters;
  static constexpr int threads = 32;
  static constexpr Dim3 cluster = {2, 1, 1};
  struct SharedStorage {};
  TEGULA_DEVICE void operator()(Counters const& p, SharedStorage&) const {
    cluster::sync();
    if (thread_idx() == 0) {
      int const rank = cluster_cta_rank();
      atom_add(p.words + rank, 1u);
    }
    cluster::sync();
  }
};

// Of each rank one pair of steps that does not commute, and each cluster has a barrier of its own.
TEST(ExploreClusters, EachHasABarrierOfItsOwn) {
  sim::Exploration const e = explore_grid<TwoClusters>(4, {});
  EXPECT_TRUE(e.complete && e.ok()) << e.text();
  EXPECT_EQ(e.orders, 4) << e.text();
}

/// What a CTA under cluster launch control does: one thread, which asks for a tile after the other.
struct Asks {
  using Params = Counters;
  static constexpr int threads = 32;
  static constexpr bool cluster_launch_control = true;
  struct SharedStorage {
    alignas(16) std::uint32_t answer[4];
    Mbarrier full;
    template <class F> void name_buffers(F&& name) {
      name("answer", answer);
      name("full", full);
    }
  };
  TEGULA_DEVICE static void begin(SharedStorage const& smem) {
    mbarrier_init(shared_address(&smem.full), 1);
    fence_mbarrier_init();
  }
  TEGULA_DEVICE static void ask(SharedStorage const& smem) {
    mbarrier_arrive_expect_tx(shared_address(&smem.full), 16);
    clusterlaunchcontrol_try_cancel(shared_address(smem.answer), shared_address(&smem.full));
  }
  /// The answer to the request of that number; -1: there is none.
  TEGULA_DEVICE static int answer(SharedStorage const& smem, int request) {
    mbarrier_wait_parity(shared_address(&smem.full), request % 2);
    CancelledCluster const answer = clusterlaunchcontrol_query_cancel(shared_address(smem.answer));
    fence_proxy_async_shared();
    return answer.cancelled ? answer.first_cta.x : -1;
  }
};

/// Each tile's word says which CTA computed it.
struct SaysWho : Asks {
  TEGULA_DEVICE void operator()(Counters const& p, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    begin(smem);
    int tile = block_idx().x;
    for (int request = 0; tile >= 0; ++request) {
      st_global(p.words + tile, static_cast<std::uint32_t>(1 + block_idx().x));
      ask(smem);
      tile = answer(smem, request);
    }
  }
};

// Two places. Of two tiles: the second starts before the first CTA asks, or is what it gets. What
// asks in vain, in which order, is all the same.
TEST(ExploreClusters, EveryAnswerIsGivenUnderLaunchControl) {
  expect_orders<SaysWho>(1, 1, blackwell_of(2));
  expect_orders<SaysWho>(1, 3, blackwell_of(1));
  expect_orders<SaysWho>(2, 2, blackwell_of(2));
}

/// All who computed what, in some order: the words of each result that comes up.
template <class Kernel>
std::set<std::vector<std::uint32_t>> results_of(int ctas, int places, bool refusals = false) {
  sim::Machine machine(blackwell_of(places));
  auto* const words = static_cast<std::uint32_t*>(machine.allocate(kCounterBytes, "words"));
  std::set<std::vector<std::uint32_t>> results;
  sim::Exploration const e =
      sim::explore(machine,
                   [&] {
                     machine.fill(words, 0, kCounterBytes);
                     sim::launch<Kernel>(machine, {ctas, 1, 1}, {words, ctas});
                     std::vector<std::uint32_t> result(static_cast<std::size_t>(ctas));
                     machine.download(result.data(), words, 4 * result.size());
                     results.insert(std::move(result));
                   },
                   {.refusals = refusals});
  EXPECT_TRUE(e.complete && e.findings.empty()) << e.text();
  EXPECT_GE(e.orders, static_cast<std::int64_t>(results.size()));
  return results;
}

// Three tiles: each is its own CTA's, or that of one before it, which asks until none is left.
TEST(ExploreClusters, EveryCtaMayComputeWhatIsLeft) {
  using Tiles = std::vector<std::uint32_t>;
  std::set<Tiles> expected = {{1, 1, 1}, {1, 1, 3}, {1, 2, 1}, {1, 2, 2}};
  EXPECT_EQ(results_of<SaysWho>(3, 2), expected);
  expected.insert({1, 2, 3});
  EXPECT_EQ(results_of<SaysWho>(3, 3), expected);
}

// A cluster's requests are refused from one of them on, or never. Of one tile there is one request:
// two orders. Of two tiles in one place the first request is refused, and the second cluster has
// two orders of its own; or it is not, and the second request finds nobody, again in two.
TEST(ExploreClusters, RequestsAreRefusedThoughClustersWait) {
  expect_orders<SaysWho>(2, 1, blackwell_of(2), true);
  expect_orders<SaysWho>(4, 2, blackwell_of(1), true);
  using Tiles = std::vector<std::uint32_t>;
  EXPECT_EQ(results_of<SaysWho>(2, 1), (std::set<Tiles>{{1, 1}}));
  EXPECT_EQ(results_of<SaysWho>(2, 1, true), (std::set<Tiles>{{1, 1}, {1, 2}}));
  EXPECT_EQ(results_of<SaysWho>(3, 2, true),
            (std::set<Tiles>{{1, 1, 1}, {1, 1, 3}, {1, 2, 1}, {1, 2, 2}, {1, 2, 3}}));
}

/// Who is told that there is no cluster takes it that all have started, and waits for their tiles.
struct WaitsForAll : Asks {
  TEGULA_DEVICE void operator()(Counters const& p, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    begin(smem);
    int tile = block_idx().x;
    for (int request = 0; tile >= 0; ++request) {
      atom_add(p.words, 1u);
      ask(smem);
      tile = answer(smem, request);
    }
    while (atom_add(p.words, 0u) != static_cast<std::uint32_t>(p.tiles)) {
    }
  }
};

TEST(ExploreClusters, FindWhatOnlyARefusalShows) {
  sim::Exploration const without = explore_grid<WaitsForAll>(2, blackwell_of(1));
  EXPECT_TRUE(without.complete && without.ok()) << without.text();
  sim::Exploration const e = explore_grid<WaitsForAll>(2, blackwell_of(1), {.refusals = true});
  EXPECT_TRUE(e.complete) << e.text();
  ASSERT_EQ(e.findings.size(), 1u) << e.text();
  EXPECT_EQ(e.findings.front().finding.kind, sim::FindingKind::deadlock);

  // Its choices, as text, lead there again.
  std::string const choices = e.findings.front().choices.text();
  EXPECT_EQ(choices.find("sync refusals "), 0u) << choices;
  sim::Options options = blackwell_of(1);
  options.throw_on_finding = false;
  options.choices = sim::Choices::parse(choices);
  EXPECT_EQ(*options.choices, e.findings.front().choices);
  sim::Machine machine(options);
  auto* const words = static_cast<std::uint32_t*>(machine.allocate(kCounterBytes, "words"));
  machine.fill(words, 0, kCounterBytes);
  sim::Report const report = sim::launch<WaitsForAll>(machine, {2, 1, 1}, {words, 2});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings.front().message, e.findings.front().finding.message);
}

/// A chain: a CTA asks for its next tile before it computes the present one, which it may when the
/// tile before it is there; or, with the mistake, when the one behind it is.
template <bool Mistaken> struct Chain : Asks {
  TEGULA_DEVICE void operator()(Counters const& p, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    begin(smem);
    int tile = block_idx().x;
    for (int request = 0; tile >= 0; ++request) {
      ask(smem);
      int const needed = Mistaken ? tile + 1 : tile - 1;
      if (needed >= 0 && needed < p.tiles) {
        while (atom_add(p.words + needed, 0u) == 0) {
        }
      }
      atom_add(p.words + tile, 1u);
      tile = answer(smem, request);
    }
  }
};

// A CTA that has taken the tile that it waits for waits for ever. On the machine the CTAs of this
// grid are there from the beginning on, so none is taken, whatever the schedule.
TEST(ExploreClusters, FindWhatNoScheduleShows) {
  for (sim::Options const& options : every_schedule(8, blackwell_of(2))) {
    sim::Machine machine(options);
    auto* const words = static_cast<std::uint32_t*>(machine.allocate(kCounterBytes, "words"));
    machine.fill(words, 0, kCounterBytes);
    EXPECT_NO_THROW((sim::launch<Chain<true>>(machine, {2, 1, 1}, {words, 2})));
  }
  sim::Exploration const e = explore_grid<Chain<true>>(2, blackwell_of(2));
  EXPECT_TRUE(e.complete) << e.text();
  ASSERT_EQ(e.findings.size(), 1u) << e.text();
  EXPECT_EQ(e.findings.front().finding.kind, sim::FindingKind::deadlock);
  EXPECT_GT(e.orders, 1);

  // Its choices lead there again.
  sim::Options options = blackwell_of(2);
  options.throw_on_finding = false;
  options.choices = sim::Choices::parse(e.findings.front().choices.text());
  sim::Machine machine(options);
  auto* const words = static_cast<std::uint32_t*>(machine.allocate(kCounterBytes, "words"));
  machine.fill(words, 0, kCounterBytes);
  sim::Report const report = sim::launch<Chain<true>>(machine, {2, 1, 1}, {words, 2});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings.front().message, e.findings.front().finding.message);
}

TEST(ExploreClusters, OfAChainIsCleanInEveryOrder) {
  for (int const tiles : {2, 3, 4}) {
    sim::Exploration const e = explore_grid<Chain<false>>(tiles, blackwell_of(2));
    EXPECT_TRUE(e.complete && e.ok()) << e.text();
    EXPECT_GT(e.orders, tiles == 2 ? 1 : 2) << e.text();
  }
}

// Beyond the bound the machine runs the clusters to their end, which wait for each other.
TEST(ExploreClusters, BoundsAreKeptAndTold) {
  for (std::int64_t const steps : {0, 1, 5, 9}) {
    sim::Exploration const e = explore_grid<Chain<false>>(3, blackwell_of(2), {.max_steps = steps});
    EXPECT_FALSE(e.complete) << e.text();
    EXPECT_TRUE(e.findings.empty()) << e.text();
    EXPECT_LE(e.steps, steps);
  }
  EXPECT_FALSE(explore_grid<Chain<false>>(3, blackwell_of(2), {.max_executions = 1}).complete);
}

/// A cooperative grid, whose CTAs meet at a counter, and then read what the others have written.
struct MeetsAtACounter {
  using Params = Counters;
  static constexpr int threads = 32;
  static constexpr bool cooperative = true;
  struct SharedStorage {};
  TEGULA_DEVICE void operator()(Counters const& p, SharedStorage&) const {
    if (thread_idx() != 0) return;
    st_global(p.words + 1 + block_idx().x, static_cast<std::uint32_t>(block_idx().x + 5));
    fence_acq_rel<Scope::gpu>();
    atom_add(p.words, 1u);
    while (atom_add(p.words, 0u) != static_cast<std::uint32_t>(p.tiles)) {
    }
    fence_acq_rel<Scope::gpu>();
    std::uint32_t sum = 0;
    for (int i = 0; i < p.tiles; ++i) sum += ld_global<std::uint32_t>(p.words + 1 + i);
    st_global(p.words + 32 + block_idx().x, sum);
  }
};

TEST(ExploreClusters, CooperativeOnesMeet) {
  sim::Exploration const e = explore_grid<MeetsAtACounter>(2, {.multiprocessors = 2});
  EXPECT_TRUE(e.complete && e.ok()) << e.text();
  EXPECT_FALSE(e.accesses);
  EXPECT_GE(e.orders, 2) << e.text();
}

/// The first CTA ends in a finding; the second goes on.
struct OneIsEnded {
  using Params = Counters;
  static constexpr int threads = 32;
  struct SharedStorage {};
  TEGULA_DEVICE void operator()(Counters const& p, SharedStorage&) const {
    if (thread_idx() != 0) return;
    atom_add(p.words, 1u);
    if (block_idx().x == 0) st_global(p.words + (1 << 20), 1u);
    atom_add(p.words + 1, 1u);
  }
};

TEST(ExploreClusters, OneThatIsEndedLeavesTheOthers) {
  sim::Exploration const e = explore_grid<OneIsEnded>(2, {});
  EXPECT_TRUE(e.complete) << e.text();
  ASSERT_EQ(e.findings.size(), 1u) << e.text();
  EXPECT_EQ(e.findings.front().finding.kind, sim::FindingKind::out_of_bounds);
}

}  // namespace
}  // namespace tegula
