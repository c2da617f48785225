#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>

#include "broken_kernel.hpp"
#include "run_kernel.hpp"
#include "word_kernels.hpp"

/// Correct kernels give the same results under every schedule; the same seed gives the same run, on
/// however many threads of the host; and schedules differ where a kernel's mistake lets them.
namespace tegula {
namespace {

constexpr sim::Completion kCompletions[] = {sim::Completion::last, sim::Completion::first,
                                            sim::Completion::random};
constexpr sim::Interleaving kInterleavings[] = {
    sim::Interleaving::one_warp_ahead, sim::Interleaving::round_robin, sim::Interleaving::random,
    sim::Interleaving::one_warp_behind};

TEST(Schedule, EveryInstructionKernelGivesTheSameUnderEverySchedule) {
  std::vector<WordKernel> kernels = all_instruction_kernels();
  kernels.insert(kernels.end(), all_vocabulary_kernels().begin(), all_vocabulary_kernels().end());
  for (WordKernel const& kernel : kernels) {
    auto const in = words(static_cast<std::size_t>(kernel.in_words));
    sim::Machine plain;
    auto const expected = kernel.run(plain, in, nullptr);
    for (auto const completion : kCompletions) {
      for (auto const interleaving : kInterleavings) {
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          sim::Machine machine(
              {.completion = completion, .interleaving = interleaving, .seed = seed, .workers = 3});
          EXPECT_EQ(kernel.run(machine, in, nullptr), expected) << kernel.name;
        }
      }
    }
  }
}

/// Each warp leaves its mark in a log that a shared counter orders; there is no barrier, so the
/// order is the schedule's.
struct OrderOfWarps : Broken {
  static constexpr int threads = 128;
  void operator()(Params const& p, SharedStorage&) const {
    for (int i = 0; i < 8; ++i) {
      warp::sync();
      if (lane_id() == 0) {
        auto* const next = reinterpret_cast<std::uint32_t*>(p.in) + block_idx().x;
        st_global(p.out + 32 * block_idx().x + atom_add(next, 1u),
                  static_cast<std::uint8_t>(warp_id()));
      }
    }
  }
};

std::vector<std::uint8_t> order_of_warps(sim::Options const& options) {
  sim::Machine machine(options);
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                        static_cast<char*>(machine.allocate(4096, "out"))};
  machine.fill(buffers.in, 0, 4096);
  sim::launch<OrderOfWarps>(machine, {6, 1, 1}, buffers);
  std::vector<std::uint8_t> order(32 * 6);
  machine.download(order.data(), buffers.out, order.size());
  return order;
}

TEST(Schedule, InterleavingsAreWhatTheySay) {
  auto const ahead = order_of_warps({.interleaving = sim::Interleaving::one_warp_ahead});
  auto const round = order_of_warps({.interleaving = sim::Interleaving::round_robin});
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(ahead[static_cast<std::size_t>(i)], i / 8);
  }
  for (int i = 4; i < 28; ++i) {
    std::set<int> const four(round.begin() + i / 4 * 4, round.begin() + i / 4 * 4 + 4);
    EXPECT_EQ(four.size(), 4u) << "each four marks are of four warps";
  }
}

TEST(Schedule, OneWarpStaysBehindTheOthers) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    auto const order = order_of_warps(
        {.interleaving = sim::Interleaving::one_warp_behind, .seed = seed, .workers = 2});
    for (int i = 24; i < 32; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], seed % 4);
  }
}

/// Threads of two warps take numbers; nothing that a warp does as a whole lies between.
struct TakesNumbers : Broken {
  static constexpr int threads = 64;
  void operator()(Params const& p, SharedStorage&) const {
    for (int i = 0; i < 8; ++i) {
      auto const number = static_cast<int>(atom_add(reinterpret_cast<std::uint32_t*>(p.in), 1u));
      st_global(p.out + number, static_cast<std::uint8_t>(thread_idx()));
    }
  }
};

TEST(Schedule, RandomInterleavingSwitchesWithinAWarpAndBetweenAThreadsInstructions) {
  sim::Machine machine({.interleaving = sim::Interleaving::random, .seed = 1});
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                        static_cast<char*>(machine.allocate(4096, "out"))};
  machine.fill(buffers.in, 0, 4096);
  sim::launch<TakesNumbers>(machine, {1, 1, 1}, buffers);
  std::uint8_t order[512];
  machine.download(order, buffers.out, sizeof order);
  int between_warps = 0;
  int within = 0;
  for (int i = 1; i < 512; ++i) {
    if (order[i] / 32 != order[i - 1] / 32)
      ++between_warps;
    else if (order[i] != order[i - 1])
      ++within;
  }
  EXPECT_GT(between_warps, 50);
  EXPECT_GT(within, 50);
}

TEST(Schedule, TheSeedDecidesAndNothingElse) {
  std::set<std::vector<std::uint8_t>> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    auto const one =
        order_of_warps({.interleaving = sim::Interleaving::random, .seed = seed, .workers = 1});
    for (int const workers : {1, 2, 5}) {
      EXPECT_EQ(order_of_warps(
                    {.interleaving = sim::Interleaving::random, .seed = seed, .workers = workers}),
                one)
          << "seed " << seed << ", " << workers << " workers";
    }
    orders.insert(one);
  }
  EXPECT_EQ(orders.size(), 10u) << "ten seeds, ten schedules";
}

/// Adds floats of very different size in the order that atomics happen: any other order rounds to
/// another sum.
struct FloatSum : Broken {
  static constexpr int threads = 64;
  void operator()(Params const& p, SharedStorage&) const {
    int const i = block_idx().x * threads + thread_idx();
    atom_add(reinterpret_cast<float*>(p.in), 1.0f / static_cast<float>(1 + i * 7919 % 1013));
  }
};

TEST(Schedule, AtomicsRoundTheSameOnAnyNumberOfWorkers) {
  auto const sum = [](int workers) {
    sim::Machine machine({.workers = workers});
    Buffers const buffers{static_cast<char*>(machine.allocate(4, "sum")), nullptr};
    machine.fill(buffers.in, 0, 4);
    sim::launch<FloatSum>(machine, {40, 1, 1}, buffers);
    float result = 0;
    machine.download(&result, buffers.in, 4);
    return result;
  };
  float const one = sum(1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sum(4), one);
}

/// Each CTA waits for a number from the one before it, and leaves the next number. On a GPU a
/// compiler, or a cache, may keep a plain load from ever seeing it; here it does, and is found
/// to race.
struct Relay : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    auto* const slots = reinterpret_cast<int*>(p.in);
    int const cta = block_idx().x;
    int number = 0;
    while (cta > 0 && number == 0) number = ld_global<int>(slots + cta - 1);
    st_global(slots + cta, number + 1);
  }
};

TEST(Schedule, ACtaThatWaitsForAnEarlierOneGetsWhatItWaitsFor) {
  for (int const workers : {1, 4}) {
    sim::Machine machine({.throw_on_finding = false, .workers = workers});
    Buffers const buffers{static_cast<char*>(machine.allocate(4096, "slots")), nullptr};
    machine.fill(buffers.in, 0, 4096);
    sim::Report const report = sim::launch<Relay>(machine, {64, 1, 1}, buffers);
    EXPECT_EQ(report.findings.size(), 1u) << report.text();
    int last = 0;
    machine.download(&last, buffers.in + 4 * 63, 4);
    EXPECT_EQ(last, 64);
  }
}

/// Some CTAs are wrong, in several ways.
struct SomeAreWrong : Broken {
  static constexpr int threads = 64;
  void operator()(Params const& p, SharedStorage& smem) const {
    int const cta = block_idx().x;
    if (cta % 3 == 1)
      ld_shared<std::uint32_t>(shared_address(smem.k) + 4u * static_cast<SharedAddr>(thread_idx()));
    if (cta % 5 == 2) ld_global<float>(p.in + 4096 + cta);
    if (cta == 11 && warp_id() == 1) return;
    cta::sync();
    if (cta % 4 == 3) st_global(p.out + 2 + 4 * thread_idx(), 1.0f);
  }
};

TEST(Schedule, ReportsDoNotDependOnTheNumberOfWorkers) {
  for (auto const interleaving : kInterleavings) {
    std::string const one =
        report_of<SomeAreWrong>({.interleaving = interleaving, .seed = 5, .workers = 1}, {30, 1, 1})
            .json();
    EXPECT_NE(one.find("deadlock"), std::string::npos);
    for (int const workers : {2, 3, 8}) {
      EXPECT_EQ(report_of<SomeAreWrong>(
                    {.interleaving = interleaving, .seed = 5, .workers = workers}, {30, 1, 1})
                    .json(),
                one)
          << workers << " workers";
    }
  }
}

/// Reads, with no barrier between, what another warp's copy brings: what is read shows when the
/// copy landed.
struct PeeksAtCopy : Broken {
  static constexpr int threads = 64;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mine = shared_address(smem.k) + 4u * static_cast<SharedAddr>(lane_id());
    if (warp_id() == 0) st_shared(mine, 1u);
    cta::sync();
    if (warp_id() == 0) cp_async_ca<4>(mine, p.in + 4 * lane_id());
    cta::sync();
    if (warp_id() == 1) st_global(p.out + 4 * lane_id(), ld_shared<std::uint32_t>(mine));
    for (int i = 0; i < 8; ++i) warp::sync();
    cp_async_wait_all();
  }
};

TEST(Schedule, CopiesLandFirstOrLastOrInBetween) {
  auto const landed = [](sim::Completion completion, std::uint64_t seed) {
    sim::Machine machine({.completion = completion,
                          .interleaving = sim::Interleaving::round_robin,
                          .seed = seed,
                          .throw_on_finding = false});
    Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                          static_cast<char*>(machine.allocate(4096, "out"))};
    machine.fill(buffers.in, 0, 4096);
    EXPECT_FALSE(sim::launch<PeeksAtCopy>(machine, {1, 1, 1}, buffers).ok());
    std::uint32_t seen[32];
    machine.download(seen, buffers.out, sizeof seen);
    int count = 0;
    for (std::uint32_t const value : seen) count += value == 0 ? 1 : 0;
    return count;
  };
  EXPECT_EQ(landed(sim::Completion::last, 0), 0);
  EXPECT_EQ(landed(sim::Completion::first, 0), 32);
  int most = 0;
  int least = 32;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    int const count = landed(sim::Completion::random, seed);
    most = std::max(most, count);
    least = std::min(least, count);
  }
  EXPECT_GT(least, 0);
  EXPECT_LT(most, 32);
  EXPECT_LT(least, most) << "seeds differ";
}

struct DoesNothing : Broken {
  void operator()(Params const&, SharedStorage&) const {}
};

TEST(Schedule, ProgressCountsEveryCta) {
  std::atomic<int> calls{0};
  std::int64_t last = 0;
  sim::Options options{.workers = 3};
  options.progress = [&](std::int64_t done, std::int64_t total) {
    ++calls;
    EXPECT_EQ(total, 24);
    EXPECT_EQ(done, last + 1);
    last = done;
  };
  EXPECT_TRUE(report_of<DoesNothing>(options, {4, 3, 2}).ok());
  EXPECT_EQ(calls, 24);
}

TEST(Schedule, AnExceptionOfTheProgressCallbackEndsTheLaunch) {
  for (int const workers : {1, 4}) {
    sim::Machine machine({.workers = workers});
    machine.options().progress = [](std::int64_t done, std::int64_t) {
      if (done == 3) throw std::runtime_error("enough");
    };
    EXPECT_THROW(sim::launch<DoesNothing>(machine, {1000, 1, 1}, Buffers{}), std::runtime_error);
    machine.options().progress = nullptr;
    EXPECT_TRUE(sim::launch<DoesNothing>(machine, {1000, 1, 1}, Buffers{}).ok());
  }
}

}  // namespace
}  // namespace tegula
