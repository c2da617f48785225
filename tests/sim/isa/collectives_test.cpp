#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "broken_kernel.hpp"
#include "collective_kernels.hpp"
#include "run_kernel.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/sim/explore.hpp"

/// The collectives of collective_kernels.hpp under every schedule, against a plain statement of
/// what the PTX ISA says they do; what is found where they are used wrongly; what mutation testing
/// makes of barriers that reduce.
namespace tegula {
namespace {

using namespace collective_kernels;
using sim::Finding;
using sim::FindingKind;

template <class Kernel>
void expect_collective(std::vector<std::uint32_t> const& in,
                       std::vector<std::uint32_t> const& expected) {
  for_each_schedule([&](sim::Options const& options) {
    sim::Machine machine(options);
    EXPECT_EQ(run_kernel<Kernel>(machine, in), expected) << schedule_text(options);
  });
}

template <int Width> void check_shuffles(std::uint32_t seed) {
  auto const in = words(64, seed);
  std::vector<std::uint32_t> expected;
  for (int lane = 0; lane < 32; ++lane) {
    int const by = static_cast<int>(in[static_cast<std::size_t>(32 + lane)] % 32);
    int const first = lane / Width * Width;
    auto const at = [&](int l) { return in[static_cast<std::size_t>(l)]; };
    int const idx = first + by % Width;
    bool const near = (lane ^ by) < first + Width;
    bool const above = lane - by >= first, below = lane + by < first + Width;
    int const bfly = near ? lane ^ by : lane;
    int const up = above ? lane - by : lane, down = below ? lane + by : lane;
    expected.insert(expected.end(), {at(idx), at(bfly), at(up), at(down)});
    expected.push_back((near ? 1u : 0u) | (above ? 2u : 0u) | (below ? 4u : 0u) |
                       (at(bfly) ^ at(up) ^ at(down)) << 3);
    expected.insert(expected.end(), {at(bfly), ~at(bfly)});
    expected.push_back((at(idx) & 0xffffu) << 8 | (at(idx) & 0xffu));
  }
  expect_collective<ShuffleWidths<Width>>(in, expected);
}

TEST(Collectives, ShufflesStayInTheirSegments) {
  for (std::uint32_t const seed : {1u, 2u, 3u}) {
    check_shuffles<1>(seed);
    check_shuffles<2>(seed);
    check_shuffles<4>(seed);
    check_shuffles<8>(seed);
    check_shuffles<16>(seed);
    check_shuffles<32>(seed);
  }
}

TEST(Collectives, MatchesFindLanesOfTheSameValue) {
  for (std::uint32_t const seed : {1u, 2u, 3u}) {
    auto const in = words(64, seed);
    std::vector<std::uint32_t> expected;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      std::uint32_t same = 0, same_pair = 0;
      for (std::size_t other = 0; other < 32; ++other) {
        bool const equal = in[lane] % 5 == in[other] % 5;
        if (equal) same |= 1u << other;
        if (equal && in[32 + lane] % 2 == in[32 + other] % 2) same_pair |= 1u << other;
      }
      std::uint32_t const half = lane < 16 ? 0xffffu : 0xffff0000u;
      expected.insert(expected.end(), {same, same_pair, same & half, ~0u, 0, half});
    }
    expect_collective<Matches>(in, expected);
  }
}

TEST(Collectives, ReductionsOfBitsAndMasksOfLanes) {
  for (std::uint32_t const seed : {1u, 2u, 3u}) {
    auto const in = words(32, seed);
    std::uint32_t of_all = ~0u, of_any = 0, parity = 0;
    for (std::uint32_t const v : in) {
      of_all &= v | 0xff00u;
      of_any |= v & 0xff00u;
      parity ^= v;
    }
    std::vector<std::uint32_t> expected;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      std::uint32_t lt = 0, gt = 0;
      for (std::size_t other = 0; other < 32; ++other) {
        if (other < lane) lt |= 1u << other;
        if (other > lane) gt |= 1u << other;
      }
      std::uint32_t const eq = 1u << lane;
      expected.insert(expected.end(), {of_all, of_any, parity, eq, lt, lt | eq, gt, gt | eq});
    }
    expect_collective<BitReductions>(in, expected);
  }
}

void check_barriers(std::vector<std::uint32_t> const& in) {
  auto const odd = [&](std::size_t t) { return (in[t] & 1) != 0; };
  std::vector<std::uint32_t> expected;
  std::uint32_t count = 0, of_pair[2] = {}, unaligned = 0;
  bool every = true, upper_all = true, upper_any = false;
  for (std::size_t t = 0; t < 128; ++t) {
    count += odd(t);
    of_pair[t / 64] += odd(t);
    unaligned += odd(t) == (t % 32 < 16);
    every = every && (in[t] != 0 || !odd(t));
    if (t >= 64) upper_all = upper_all && odd(t), upper_any = upper_any || odd(t);
  }
  for (std::size_t t = 0; t < 128; ++t) {
    std::size_t const pair = t / 64;
    std::uint32_t const sum = 2 * in[(t + 37) % 128] + in[64 * pair + (t + 37) % 64];
    expected.insert(expected.end(), {count, every, odd(77), of_pair[pair], pair == 0 || upper_all,
                                     pair == 1 && upper_any, 4 * unaligned + 2, sum});
  }
  expect_collective<BarrierReductions>(in, expected);
}

TEST(Collectives, BarriersReducePredicates) {
  for (std::uint32_t const seed : {1u, 2u, 3u}) check_barriers(words(128, seed));
  check_barriers(std::vector<std::uint32_t>(128, 1u));
  check_barriers(std::vector<std::uint32_t>(128, 0u));
}

/// redux.sync of floats, of sm_100. in: the bits of 32 floats. out: least, greatest, of magnitudes,
/// with NaN.
struct FloatReductions : OneWarp {
  static constexpr int out_words = 8;
  void operator()(Words const& p, SharedStorage&) const {
    auto const x = ld_global<float>(p.in + lane_id());
    float const results[] = {warp::reduce_min_f32(x),
                             warp::reduce_max_f32(x),
                             warp::reduce_min_f32<true>(x),
                             warp::reduce_max_f32<true>(x),
                             warp::reduce_min_f32<false, true>(x),
                             warp::reduce_max_f32<false, true>(x),
                             warp::reduce_min_f32<true, true>(x),
                             warp::reduce_max_f32<true, true>(x)};
    for (int i = 0; i < 8; ++i) {
      if (lane_id() == 0) st_global(p.out + i, results[i]);
    }
  }
};

std::vector<std::uint32_t> float_reductions(std::vector<float> floats) {
  std::vector<std::uint32_t> in;
  for (float const x : floats) in.push_back(std::bit_cast<std::uint32_t>(x));
  sim::Machine machine({.generation = sim::Generation::sm100});
  return run_kernel<FloatReductions>(machine, in);
}
std::vector<std::uint32_t> bits_of(std::vector<float> const& floats) {
  std::vector<std::uint32_t> bits;
  for (float const x : floats)
    bits.push_back(x == x ? std::bit_cast<std::uint32_t>(x) : 0x7fffffffu);
  return bits;
}

TEST(Collectives, ReductionsOfFloatsOrderZerosAndLeaveNansOut) {
  float const nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> floats(32);
  for (std::size_t i = 0; i < 32; ++i) floats[i] = static_cast<float>(i) * 0.5f - 9.25f;
  EXPECT_EQ(float_reductions(floats),
            bits_of({-9.25f, 6.25f, 0.25f, 9.25f, -9.25f, 6.25f, 0.25f, 9.25f}));
  floats[13] = nan;
  floats[4] = -nan;
  EXPECT_EQ(float_reductions(floats), bits_of({-9.25f, 6.25f, 0.25f, 9.25f, nan, nan, nan, nan}));
  std::vector<float> zeros(32, -0.0f);
  zeros[17] = 0.0f;
  EXPECT_EQ(float_reductions(zeros), bits_of({-0.0f, 0.0f, 0.0f, 0.0f, -0.0f, 0.0f, 0.0f, 0.0f}));
  EXPECT_EQ(float_reductions(std::vector<float>(32, nan)), bits_of(std::vector<float>(8, nan)));
  EXPECT_EQ(float_reductions(std::vector<float>(32, -std::numeric_limits<float>::infinity()))[3],
            0x7f800000u);
}

// What is found.

struct Collides : Broken {
  static constexpr int threads = 64;
  struct SharedStorage {
    std::uint32_t words[64];
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };
};
template <class Kernel> Finding only_finding(FindingKind kind) {
  sim::Report const report = report_of<Kernel>();
  EXPECT_EQ(report.findings.size(), 1u) << report.text();
  if (report.findings.empty()) return {};
  EXPECT_EQ(sim::to_string(report.findings[0].kind), sim::to_string(kind)) << report.text();
  return report.findings[0];
}

struct FloatsTooEarly : Collides {
  void operator()(Params const&, SharedStorage&) const { warp::reduce_max_f32(1.0f); }
};
struct ShufflesPastTheMask : Collides {
  void operator()(Params const&, SharedStorage&) const {
    if (lane_id() < 12) warp::shfl_down<8>(1.0, 4, 0xfffu);
  }
};
struct MatchesOfTwoSizes : Collides {
  void operator()(Params const&, SharedStorage&) const {
    if (lane_id() < 16) {
      warp::match_any(1u);
    } else {
      warp::match_any(std::uint64_t{1});
    }
  }
};
struct MasksDiffer : Collides {
  void operator()(Params const&, SharedStorage&) const {
    warp::match_all(1u, lane_id() < 16 ? 0xffffu : ~0u);
    warp::sync();
  }
};

TEST(CollectivesChecker, OperandsOfAWarpsCollectives) {
  EXPECT_SAYS(
      only_finding<FloatsTooEarly>(FindingKind::invalid_operand),
      "redux.sync of f32 is an instruction of sm_100a, and this machine is an sm_90: shuffles "
      "with max_f32 or min_f32 compute the same");
  // Lane 8's own segment is lanes 8 to 15, of which the mask has four.
  EXPECT_SAYS(only_finding<ShufflesPastTheMask>(FindingKind::invalid_operand),
              "shfl.sync reads lane 12, which its mask 0x00000fff leaves out");
  EXPECT_SAYS(only_finding<MatchesOfTwoSizes>(FindingKind::divergence),
              "match.sync is not executed by the lanes of the warp together");
  EXPECT_SAYS(only_finding<MasksDiffer>(FindingKind::divergence),
              "match.sync is not executed by the lanes of the warp together: lane 16 is at it, but "
              "lanes 0-15 wait for it at bar.warp.sync");
}

template <int Id, int Count> struct LanesDisagree : Collides {
  void operator()(Params const&, SharedStorage&) const {
    bool const first = lane_id() < 16;
    cta::bar_red_popc(first ? 1 : Id, first ? 64 : Count, true);
  }
};
struct LanesOnTwoLines : Collides {
  void operator()(Params const&, SharedStorage&) const {
    if (lane_id() < 16) {
      cta::sync_count(true);
    } else {
      cta::sync_count(false);
    }
  }
};
template <int Id, int Threads> struct CountsWrongly : Collides {
  void operator()(Params const&, SharedStorage&) const { cta::bar_red_or(Id, Threads, true); }
};
struct WarpsCountDifferently : Collides {
  static constexpr int threads = 96;
  void operator()(Params const&, SharedStorage&) const {
    cta::bar_red_and(2, warp_id() == 0 ? 96 : 64, true);
  }
};
template <int Other> struct WarpsReduceDifferently : Collides {
  void operator()(Params const&, SharedStorage&) const {
    if (warp_id() == 0) {
      cta::bar_red_popc(2, 64, true);
    } else if (Other == 0) {
      cta::bar_red_and(2, 64, true);
    } else if (Other == 1) {
      cta::bar_sync(2, 64);
    } else {
      cta::bar_arrive(2, 64);
    }
  }
};
struct OneStaysAway : Collides {
  void operator()(Params const&, SharedStorage&) const {
    if (warp_id() == 0) cta::sync_or(true);
  }
};

TEST(CollectivesChecker, ThreadsThatDisagreeAtABarrierThatReduces) {
  EXPECT_SAYS((only_finding<LanesDisagree<2, 64>>(FindingKind::divergence)),
              "bar.red is not executed by the lanes of the warp together");
  EXPECT_SAYS((only_finding<LanesDisagree<1, 32>>(FindingKind::divergence)),
              "bar.red is not executed by the lanes of the warp together");
  EXPECT_SAYS(only_finding<LanesOnTwoLines>(FindingKind::divergence),
              "bar.red is not executed by the lanes of the warp together");
  EXPECT_SAYS((only_finding<CountsWrongly<16, 64>>(FindingKind::invalid_operand)),
              "barrier 16 does not exist: there are 16, from 0");
  EXPECT_SAYS(
      (only_finding<CountsWrongly<1, 0>>(FindingKind::invalid_operand)),
      "bar.red on barrier 1 counts 0 threads: the count must be a multiple of 32, at least 32 "
      "and at most the CTA's 64");
  EXPECT_SAYS(only_finding<WarpsCountDifferently>(FindingKind::invalid_operand),
              "threads here, but");
  EXPECT_SAYS(only_finding<WarpsReduceDifferently<0>>(FindingKind::invalid_operand),
              "bar.red on barrier 2 reduces by and here, but who came to it first");
  EXPECT_SAYS(only_finding<WarpsReduceDifferently<1>>(FindingKind::invalid_operand),
              "bar.sync on barrier 2 reduces nothing here, but who came to it first");
  EXPECT_SAYS(only_finding<WarpsReduceDifferently<2>>(FindingKind::invalid_operand),
              "bar.arrive on barrier 2 reduces nothing here, but who came to it first");
  EXPECT_SAYS(only_finding<OneStaysAway>(FindingKind::deadlock), "warp 0 waits at barrier 0");
}

/// Each thread reads what a thread of the other warp wrote, behind the barrier of that line.
enum class Behind { count, all, any, named, unaligned, shuffle };
constexpr int kBarrierLine = __LINE__ + 6;
template <Behind B> struct ReadsBehind : Collides {
  void operator()(Params const& p, SharedStorage& smem) const {
    int const i = thread_idx();
    st_shared(shared_address(&smem.words[i]), static_cast<std::uint32_t>(i));
    // clang-format off
    int const n = B == Behind::count ? cta::sync_count(i % 3 == 0) : B == Behind::all ? cta::sync_and(i >= 0) : B == Behind::any ? cta::sync_or(i == 5) : B == Behind::named ? cta::bar_red_popc(4, 64, i % 3 == 0) : B == Behind::unaligned ? cta::barrier_red_popc(4, 64, i % 3 == 0) : warp::shfl(1, 0);
    // clang-format on
    auto const found = ld_shared<std::uint32_t>(shared_address(&smem.words[63 - i]));
    st_global(p.out + 4 * i, found + static_cast<std::uint32_t>(n));
  }
};

TEST(CollectivesChecker, BarriersThatReduceOrderAsBarriersDo) {
  for_each_schedule([](sim::Options const& options) {
    EXPECT_TRUE(report_of<ReadsBehind<Behind::count>>(options).ok());
    EXPECT_TRUE(report_of<ReadsBehind<Behind::all>>(options).ok());
    EXPECT_TRUE(report_of<ReadsBehind<Behind::any>>(options).ok());
    EXPECT_TRUE(report_of<ReadsBehind<Behind::named>>(options).ok());
    EXPECT_TRUE(report_of<ReadsBehind<Behind::unaligned>>(options).ok());
  });
  EXPECT_FALSE(report_of<ReadsBehind<Behind::shuffle>>().ok());
}

template <Behind B> void check_mutants(Mutation admitted) {
  sim::Report const listed = report_of<ReadsBehind<B>>({.list_marked = true});
  ASSERT_EQ(listed.marked.size(), 1u);
  EXPECT_EQ(listed.marked[0].where.line, kBarrierLine);
  EXPECT_EQ(listed.marked[0].operation, Operation::bar_sync);
  EXPECT_EQ(listed.marked[0].admitted, admitted);
  EXPECT_EQ(listed.marked[0].executions, 64);
  for (Mutation const mutation :
       {Mutation::removed, Mutation::weakened, Mutation::less, Mutation::more}) {
    if (!admits(admitted, mutation)) continue;
    sim::Mutant const mutant{"isa/collectives_test.cpp", kBarrierLine, Operation::bar_sync,
                             mutation};
    EXPECT_FALSE(report_of<ReadsBehind<B>>({.mutant = mutant}).ok()) << to_string(mutation);
  }
}

TEST(CollectivesChecker, EachMutantOfABarrierThatReducesIsFound) {
  Mutation const whole = Mutation::removed | Mutation::weakened;
  check_mutants<Behind::count>(whole);
  check_mutants<Behind::all>(whole);
  check_mutants<Behind::any>(whole);
  check_mutants<Behind::named>(whole | Mutation::less | Mutation::more);
  check_mutants<Behind::unaligned>(whole | Mutation::less | Mutation::more);
}

TEST(CollectivesChecker, AnExplorationOfABarrierThatReducesFindsOneOrder) {
  sim::Machine machine;
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                        static_cast<char*>(machine.allocate(4096, "out"))};
  sim::Exploration const clean = sim::explore(machine, [&] {
    sim::launch<ReadsBehind<Behind::count>>(machine, {1, 1, 1}, buffers);
  });
  EXPECT_TRUE(clean.complete && clean.findings.empty()) << clean.text();
  EXPECT_EQ(clean.orders, 1);
}

}  // namespace
}  // namespace tegula
