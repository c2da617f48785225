// Workers that meet every so many steps: on the simulated machine a CTA's atomics come after those
// of the CTAs before it, so that all but the last wait in vain, once, and go on.

#include "tegula/pipeline/lockstep_barrier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/sim/launch.hpp"

namespace tegula {
namespace {

struct PaceParams {
  LockstepCounters* counters;
  std::uint32_t* steps;  ///< of each worker
  int period, tiles, workers, steps_of_tile;
};

struct Paced {
  using Params = PaceParams;
  struct SharedStorage {};
  static constexpr int threads = 32;

  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() != 0) return;
    int const worker = block_idx().x;
    std::uint32_t steps = 0;
    LockstepBarrier lockstep{p.counters, p.period, p.tiles, p.workers};
    for (int tile = worker; tile < p.tiles; tile += p.workers) {
      for (int step = 0; step < p.steps_of_tile; ++step) {
        lockstep.step();
        ++steps;
      }
      lockstep.next_tile();
    }
    lockstep.leave();
    st_global(p.steps + worker, steps);
  }
};

struct Result {
  sim::Report report;
  std::vector<std::uint32_t> steps;
  std::vector<std::uint32_t> counters;
};

Result run(PaceParams p) {
  sim::Machine machine({.throw_on_finding = false});
  auto const words = [&](std::size_t count, char const* name) {
    auto* const pointer = static_cast<std::uint32_t*>(machine.allocate(4 * count, name));
    machine.fill(pointer, 0, 4 * count);
    return pointer;
  };
  Result r;
  r.steps.resize(static_cast<std::size_t>(p.workers));
  r.counters.resize(2);
  std::uint32_t* const counters = words(2, "counters");
  p.counters = p.period > 0 ? reinterpret_cast<LockstepCounters*>(counters) : nullptr;
  p.steps = words(r.steps.size(), "steps");
  r.report = sim::launch<Paced>(machine, {p.workers, 1, 1}, p);
  machine.download(r.steps.data(), p.steps, 4 * r.steps.size());
  machine.download(r.counters.data(), counters, 8);
  return r;
}

/// Atomics of a launch whose workers run one after another: each counts itself at every meeting and
/// at the end, and polls a hundred times at the first meeting where not all have been counted.
int atomics(PaceParams const& p) {
  int count = 2, arrived = 0;  // two of the last worker, which clears the counters
  for (int worker = 0; worker < p.workers; ++worker) {
    int target = 0;
    bool patient = true;
    int const steps = (p.tiles - worker + p.workers - 1) / p.workers * p.steps_of_tile;
    for (int step = p.period; step < steps; step += p.period) {
      int const round = step / p.steps_of_tile;
      target += std::min(p.tiles - round * p.workers, p.workers);
      ++arrived, ++count;
      if (arrived < target && patient) patient = false, count += 100;
    }
    ++count;
  }
  return count;
}

TEST(LockstepBarrier, EveryoneGoesOnAndLeavesTheCountersAsTheyWere) {
  for (int const workers : {1, 2, 5}) {
    for (int const tiles : {5, 7, 10, 11}) {
      for (int const period : {1, 2, 3, 7, 100}) {
        PaceParams const p{
            .period = period, .tiles = tiles, .workers = workers, .steps_of_tile = 3};
        Result const r = run(p);
        SCOPED_TRACE(testing::Message()
                     << workers << " workers, " << tiles << " tiles, every " << period);
        EXPECT_TRUE(r.report.ok()) << r.report.text();
        EXPECT_EQ(r.counters, (std::vector<std::uint32_t>{0, 0}));
        for (int worker = 0; worker < workers; ++worker) {
          int const of_tiles = (tiles - worker + workers - 1) / workers;
          EXPECT_EQ(r.steps[static_cast<std::size_t>(worker)],
                    static_cast<std::uint32_t>(3 * of_tiles));
        }
        // beside each worker's st.global
        EXPECT_EQ(r.report.total.instructions - workers, atomics(p));
      }
    }
  }
}

TEST(LockstepBarrier, NobodyMeetsWithoutCounters) {
  Result const r = run({.period = 0, .tiles = 9, .workers = 2, .steps_of_tile = 4});
  EXPECT_TRUE(r.report.ok()) << r.report.text();
  EXPECT_EQ(r.steps, (std::vector<std::uint32_t>{20, 16}));
  EXPECT_EQ(r.report.total.instructions, 2);
}

}  // namespace
}  // namespace tegula
