// The pipelines on the simulated machine: whoever completes first and whichever warp runs next, every
// consumer gets every row once and in order, the checker finds nothing; and it finds the mistakes that they
// prevent.

#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline_kernels.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {
namespace {

using namespace pipeline_kernels;
using Values = std::vector<std::uint32_t>;

template <class T> std::size_t at(T index) { return static_cast<std::size_t>(index); }

/// Words that are all different.
Values some_words(int count) {
  Values words(at(count));
  for (int i = 0; i < count; ++i) words[at(i)] = 0x9e3779b9u * static_cast<std::uint32_t>(i + 1);
  return words;
}

/// Calls f(options) with every completion and interleaving and several seeds.
template <class F> void at_every_schedule(F f) {
  for (auto const completion : {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
    for (auto const interleaving :
         {sim::Interleaving::one_warp_ahead, sim::Interleaving::round_robin, sim::Interleaving::random}) {
      bool const seeded = completion == sim::Completion::random || interleaving == sim::Interleaving::random;
      for (std::uint64_t seed = 0; seed < (seeded ? 4u : 1u); ++seed)
        f(sim::Options{.completion = completion, .interleaving = interleaving, .seed = seed, .workers = 1});
    }
  }
}

/// Runs the kernel on one CTA, or one cluster; `out` holds zeros before.
template <class Kernel> sim::Report run(sim::Options options, Values const& in, Values& out) {
  options.throw_on_finding = false;
  sim::Machine machine(options);
  auto* const device_in = static_cast<std::uint32_t*>(machine.allocate(4 * in.size(), "in"));
  auto* const device_out = static_cast<std::uint32_t*>(machine.allocate(4 * out.size(), "out"));
  machine.upload(device_in, in.data(), 4 * in.size());
  machine.fill(device_out, 0, 4 * out.size());
  sim::Report report;
  if constexpr (std::is_same_v<typename Kernel::Params, MulticastParams>) {
    TensorMapDescription const rows{.dtype = DType::f32,
                                    .rank = 2,
                                    .address = device_in,
                                    .extents = {kRow, Kernel::steps},
                                    .strides = {4 * kRow},
                                    .box = {kRow / Kernel::peers, 1}};
    report = sim::launch<Kernel>(machine, Kernel::cluster, {sim::encode(rows), device_out});
  } else {
    report = sim::launch<Kernel>(machine, {1, 1, 1}, {device_in, device_out});
  }
  machine.download(out.data(), device_out, 4 * out.size());
  return report;
}

/// What consumers 0 to `consumers` - 1 make of every row.
Values every_row_for_each(Values const& in, int steps, int consumers) {
  Values out;
  for (int step = 0; step < steps; ++step) {
    for (int consumer = 0; consumer < consumers; ++consumer) {
      for (int word = 0; word < kRow; ++word) out.push_back(mixed(in[at(kRow * step + word)], consumer));
    }
  }
  return out;
}

template <class Kernel> void expect_every_row(int consumers = Kernel::consumers) {
  Values const in = some_words(kRow * Kernel::steps);
  Values const expected = every_row_for_each(in, Kernel::steps, consumers);
  at_every_schedule([&](sim::Options const& options) {
    Values out(expected.size());
    sim::Report const report = run<Kernel>(options, in, out);
    ASSERT_TRUE(report.ok()) << report.text();
    ASSERT_EQ(out, expected) << sim::type_name<Kernel>();
  });
}

/// Some schedule makes the checker find what the pipeline is there to prevent.
template <class Kernel> void expect_found(std::initializer_list<sim::FindingKind> kinds) {
  Values const in = some_words(kRow * Kernel::steps);
  bool found = false;
  at_every_schedule([&](sim::Options const& options) {
    Values out(at(kRow * Kernel::steps * 16));
    for (sim::Finding const& finding : run<Kernel>(options, in, out).findings)
      found = found || std::find(kinds.begin(), kinds.end(), finding.kind) != kinds.end();
  });
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
  expect_found<ThreadFed<2, 1, 1, Writes::cp_async_not_waited_for>>({sim::FindingKind::async_read_early});
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
  at_every_schedule([&](sim::Options const& options) {
    Values out(expected.size());
    sim::Report const report = run<Kernel>(options, some_words(1), out);
    ASSERT_TRUE(report.ok()) << report.text();
    ASSERT_EQ(out, expected) << sim::type_name<Kernel>();
  });
}

TEST(OrderedBarrier, LetsGroupsInTurn) {
  expect_turns<Turns<1, 1>, 1, 1>();
  expect_turns<Turns<2, 1>, 2, 1>();
  expect_turns<Turns<2, 4>, 2, 4>();
  expect_turns<Turns<3, 2>, 3, 2>();
}

}  // namespace
}  // namespace tegula
