// The pipelines on the simulated machine: whoever completes first and whichever warp runs next,
// every consumer gets every row once and in order, the checker finds nothing; and it finds the
// mistakes that they prevent.

#include <gtest/gtest.h>

#include <algorithm>

#include "run_pipeline.hpp"
#include "schedules.hpp"

namespace tegula {
namespace {

using namespace pipeline_kernels;

/// The schedules, each with four seeds; findings are in the report.
std::vector<sim::Options> schedules() {
  return every_schedule(4, {.throw_on_finding = false, .workers = 1});
}

/// What consumers 0 to `consumers` - 1 make of every row.
Values every_row_for_each(Values const& in, int steps, int consumers) {
  Values out;
  for (int step = 0; step < steps; ++step) {
    for (int consumer = 0; consumer < consumers; ++consumer) {
      for (int word = 0; word < kRow; ++word)
        out.push_back(mixed(in[at(kRow * step + word)], consumer));
    }
  }
  return out;
}

template <class Kernel> void expect_every_row(int consumers = Kernel::consumers) {
  Values const in = some_words(kRow * Kernel::steps);
  Values const expected = every_row_for_each(in, Kernel::steps, consumers);
  for (sim::Options const& options : schedules()) {
    Values out(expected.size());
    sim::Report const report = run<Kernel>(options, in, out);
    ASSERT_TRUE(report.ok()) << report.text();
    ASSERT_EQ(out, expected) << sim::type_name<Kernel>();
  }
}

/// Some schedule makes the checker find what the pipeline is there to prevent.
template <class Kernel> void expect_found(std::initializer_list<sim::FindingKind> kinds) {
  Values const in = some_words(kRow * Kernel::steps);
  bool found = false;
  for (sim::Options const& options : schedules()) {
    Values out(at(kRow * Kernel::steps * 16));
    for (sim::Finding const& finding : run<Kernel>(options, in, out).findings)
      found = found || std::find(kinds.begin(), kinds.end(), finding.kind) != kinds.end();
  }
  EXPECT_TRUE(found) << sim::type_name<Kernel>();
}

TEST(TmaPipeline, HandsEveryRowToEveryConsumer) {
  expect_every_row<TmaFed<1, 1>>();
  expect_every_row<TmaFed<2, 1>>();
  expect_every_row<TmaFed<3, 2>>();
  expect_every_row<TmaFed<4, 4>>();
}

TEST(TmaPipeline, ReleasingAStageBeforeItIsReadIsFound) {
  expect_found<TmaFed<2, 1, Release::before_reading>>(
      {sim::FindingKind::async_read_early, sim::FindingKind::async_overwrite});
}

TEST(TmaPipeline, MulticastWaitsForTheConsumersOfAllPeers) {
  expect_every_row<Multicast<2, 1, 1>>(2);
  expect_every_row<Multicast<2, 2, 2>>(4);
  expect_every_row<Multicast<2, 3, 1>>(2);
  expect_every_row<Multicast<4, 2, 2>>(8);
}

TEST(TmaPipeline, CountingTheOwnConsumersOnlyIsFound) {
  expect_found<Multicast<2, 2, 1, 1>>(
      {sim::FindingKind::async_read_early, sim::FindingKind::async_overwrite});
}

TEST(ThreadPipeline, HandsEveryRowToEveryConsumer) {
  expect_every_row<ThreadFed<1, 1, 1, Writes::stores>>();
  expect_every_row<ThreadFed<2, 1, 2, Writes::stores>>();
  expect_every_row<ThreadFed<3, 2, 1, Writes::stores>>();
  expect_every_row<ThreadFed<4, 2, 3, Writes::stores>>();
}

TEST(ThreadPipeline, KeepsCopiesInFlight) {
  expect_every_row<ThreadFed<2, 1, 1, Writes::cp_async>>();
  expect_every_row<ThreadFed<3, 2, 2, Writes::cp_async>>();
  expect_every_row<ThreadFed<4, 1, 3, Writes::cp_async>>();
}

TEST(ThreadPipeline, CommittingACopyBeforeItIsWaitedForIsFound) {
  expect_found<ThreadFed<2, 1, 1, Writes::cp_async_not_waited_for>>(
      {sim::FindingKind::async_read_early});
}

TEST(StorePipeline, StoresEveryRow) {
  expect_every_row<StoreSide<1, 1>>();
  expect_every_row<StoreSide<2, 1>>();
  expect_every_row<StoreSide<2, 4>>();
  expect_every_row<StoreSide<3, 2>>();
}

TEST(StorePipeline, WritingABufferThatIsBeingStoredIsFound) {
  expect_found<StoreSide<2, 1, Acquire::no>>({sim::FindingKind::async_overwrite});
}

template <class Kernel, int Groups, int Warps> void expect_turns() {
  int const turns = Kernel::rounds * Groups;
  Values expected = {static_cast<std::uint32_t>(turns * Warps)};
  for (int visit = 0; visit < turns * Warps; ++visit)
    expected.push_back(static_cast<std::uint32_t>(visit / Warps));
  std::uint32_t word = 1;
  for (int turn = 0; turn < turns; ++turn) {
    expected.push_back(word);
    word = mixed(word, turn % Groups);
  }
  for (sim::Options const& options : schedules()) {
    Values out(expected.size());
    sim::Report const report = run<Kernel>(options, some_words(1), out);
    ASSERT_TRUE(report.ok()) << report.text();
    ASSERT_EQ(out, expected) << sim::type_name<Kernel>();
  }
}

TEST(OrderedBarrier, LetsGroupsInTurn) {
  expect_turns<MathOrder<1, 1>, 1, 1>();
  expect_turns<MathOrder<2, 1>, 2, 1>();
  expect_turns<MathOrder<2, 4>, 2, 4>();
  expect_turns<MathOrder<3, 2>, 3, 2>();
}

}  // namespace
}  // namespace tegula
