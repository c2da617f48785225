#include "machine/in_flight.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "flights.hpp"
#include "isa/current_cta.hpp"
#include "machine/cluster.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"

/// Operations in flight: when they take effect.
namespace tegula {
namespace {

/// A producer warp fills a ring of three tiles, a consumer warp doubles them and stores them from
/// a fourth.
struct Ring : Flights {
  static constexpr int stages = 3, steps = 10;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) {
      for (int i = 0; i < stages; ++i)
        mbarrier_init(full(smem, i), 1), mbarrier_init(empty(smem, i), 32);
      fence_mbarrier_init();
    }
    cta::sync();
    if (warp_id() == 0) {
      if (lane_id() != 0) return;
      for (int step = 0; step < steps; ++step) {
        int const stage = step % stages;
        mbarrier_wait_parity(empty(smem, stage), (step / stages + 1) % 2);
        load(smem, stage, p.in + step * tile_bytes);
      }
      return;
    }
    SharedAddr const out = tile(smem, 3) + 4u * static_cast<SharedAddr>(lane_id());
    for (int step = 0; step < steps; ++step) {
      int const stage = step % stages;
      mbarrier_wait_parity(full(smem, stage), step / stages % 2);
      auto const word =
          ld_shared<std::uint32_t>(tile(smem, stage) + 4u * static_cast<SharedAddr>(lane_id()));
      mbarrier_arrive(empty(smem, stage));
      if (lane_id() == 0) bulk_wait_group_read<0>();  // the tile that is stored is free
      warp::sync();
      st_shared(out, 2 * word);
      fence_proxy_async_shared();
      warp::sync();
      if (lane_id() == 0) {
        bulk_store(p.out + step * tile_bytes, tile(smem, 3), tile_bytes);
        bulk_commit_group();
      }
    }
    if (lane_id() == 0) bulk_wait_group<0>();
  }
};

TEST(InFlight, ARingOfLoadsAndStoresAtEverySchedule) {
  for_each_schedule([](sim::Options const& options) {
    auto const words = results_of<Ring>(options, {1, 1, 1}, 32 * Ring::steps);
    for (std::size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(words[i], 2 * i) << schedule_text(options);
  });
}

/// Whether a load has landed shows in nothing but its mbarrier: what a thread that polls counts.
struct PollsForALoad : Flights {
  void operator()(Params const& p, SharedStorage& smem) const {
    make_full(smem, 0);
    if (thread_idx() != 0) return;
    load(smem, 0, p.in);
    std::uint32_t polls = 0;
    while (!mbarrier_test_wait_parity(full(smem, 0), 0)) ++polls;
    st_global(p.out, polls);
  }
};

TEST(InFlight, LandsAtOnceOrWhenNobodyElseCanGoOn) {
  EXPECT_EQ(result_of<PollsForALoad>({.completion = sim::Completion::first}), 0u);
  EXPECT_GT(result_of<PollsForALoad>({.completion = sim::Completion::last}), 16u);
}

/// The bytes of a bulk store are read, and written, when each is waited for at the latest.
struct StoresTwice : Flights {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    auto const fill = [&](std::uint32_t value) {
      for (SharedAddr i = 0; i < 32; ++i) st_shared(tile(smem, 0) + 4 * i, value + i);
      fence_proxy_async_shared();
    };
    fill(100);
    bulk_store(p.out, tile(smem, 0), tile_bytes);
    bulk_commit_group();
    bulk_wait_group_read<0>();
    fill(200);
    bulk_store(p.out + tile_bytes, tile(smem, 0), tile_bytes);
    bulk_commit_group();
    bulk_wait_group<1>();
    std::uint32_t const first = ld_global<std::uint32_t>(p.out);
    bulk_wait_group<0>();
    st_global(p.out + 2 * tile_bytes, first + 1000 * ld_global<std::uint32_t>(p.out + tile_bytes));
  }
};

TEST(InFlight, AStoresSourceIsFreeOnceItIsRead) {
  for_each_schedule([](sim::Options const& options) {
    auto const words = results_of<StoresTwice>(options, {1, 1, 1}, 65);
    EXPECT_EQ(words[31], 131u) << schedule_text(options);
    EXPECT_EQ(words[63], 231u) << schedule_text(options);
    EXPECT_EQ(words[64], 200100u) << schedule_text(options);
  });
}

/// An operation of this test's own: calls functions when it reads and lands.
class Calls final : public sim::InFlight {
 public:
  Calls(sim::Cta const& cta, SourceLocation where, std::function<void()> read,
        std::function<void()> land)
      : InFlight(sim::Instruction::cp_async_bulk, cta, where),
        read_(std::move(read)),
        land_(std::move(land)) {}
  void read(sim::Cluster&) override { read_(); }
  void land(sim::Cluster&) override { land_(); }

 private:
  std::function<void()> read_;
  std::function<void()> land_;
};

/// Runs a kernel of one thread that adds operations "a", "b", ... to groups and returns what
/// happened when: reads as letters, landings as capitals, other letters as the kernel says.
std::string order_of_events(
    sim::Options options, bool in_order,
    std::function<void(std::function<void(char)> add, sim::InFlightQueue& queue,
                       sim::InFlightGroups& groups, std::string& events)> const& kernel) {
  std::string events;
  options.workers = 1;
  sim::Machine machine(options);
  sim::KernelImage image;
  image.name = "events";
  image.threads = 32;
  image.run = [&](void*) {
    if (thread_idx() != 0) return;
    sim::Cta& cta = sim::current_cta();
    sim::InFlightGroups groups(in_order);
    auto const add = [&](char name) {
      cta.in_flight().add(std::make_unique<Calls>(
                              cta, SourceLocation::current(), [&events, name] { events += name; },
                              [&events, name] { events += static_cast<char>(name - 'a' + 'A'); }),
                          groups);
    };
    kernel(add, cta.in_flight(), groups, events);
    cta.in_flight().wait(groups, 0);
  };
  machine.launch(image, {1, 1, 1});
  return events;
}

TEST(InFlightQueue, GroupsAreWaitedForFromTheOldest) {
  auto const kernel = [](auto const& add, sim::InFlightQueue& queue, sim::InFlightGroups& groups,
                         std::string& events) {
    add('a'), add('b'), groups.commit();
    add('c'), groups.commit();
    add('d'), groups.commit();
    groups.commit();  // an empty one
    events += '1';
    queue.wait(groups, 3);
    events += '2';
    queue.wait_read(groups, 2);
    EXPECT_EQ(groups.committed(), 3u);
    EXPECT_EQ(groups.operations().size(), 2u);
    events += '3';
    queue.wait(groups, 0);
    queue.wait(groups, 0);
    events += '4';
    EXPECT_TRUE(queue.empty());
  };
  EXPECT_EQ(order_of_events({}, false, kernel), "1aAbB2c3CdD4");
  EXPECT_EQ(order_of_events({.completion = sim::Completion::first}, false, kernel), "aAbBcCdD1234");
}

TEST(InFlightQueue, RandomCompletionKeepsTheOrderOfThoseThatHaveOne) {
  std::set<std::string> loose;
  std::set<std::string> ordered;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (bool const in_order : {false, true}) {
      std::string events =
          order_of_events({.completion = sim::Completion::random, .seed = seed}, in_order,
                          [](auto const& add, sim::InFlightQueue& queue,
                             sim::InFlightGroups& groups, std::string&) {
                            for (char name = 'a'; name < 'e'; ++name) add(name);
                            groups.commit();
                            for (int i = 0; i < 4; ++i) queue.land_at_random();
                            queue.wait(groups, 0);
                          });
      std::erase_if(events, [](char c) { return c >= 'a'; });
      EXPECT_EQ(events.size(), 4u);
      (in_order ? ordered : loose).insert(events);
    }
  }
  EXPECT_EQ(ordered, std::set<std::string>{"ABCD"});
  EXPECT_GT(loose.size(), 5u);
}

}  // namespace
}  // namespace tegula
