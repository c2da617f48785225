// The timeline of whole launches: small kernels whose times can be told by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/cp_async.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/sim/launch.hpp"

namespace tegula {
namespace {

using sim::SpanKind;
using sim::Timing;
using sim::Trace;
using sim::TraceSpan;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Words {
  std::uint32_t* in;
  std::uint32_t* out;
};

/// Runs a kernel on words that count up, and returns what it wrote after its report.
template <class Kernel>
std::pair<sim::Report, std::vector<std::uint32_t>> run(sim::Options const& options,
                                                       Dim3 grid = {1, 1, 1}) {
  sim::Machine machine(options);
  std::size_t const count = 4096;
  std::vector<std::uint32_t> words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = static_cast<std::uint32_t>(i);
  auto* const in = static_cast<std::uint32_t*>(machine.allocate(4 * count, "in"));
  auto* const out = static_cast<std::uint32_t*>(machine.allocate(4 * count, "out"));
  machine.upload(in, words.data(), 4 * count);
  machine.fill(out, 0, 4 * count);
  sim::Report report = sim::launch<Kernel>(machine, grid, Words{in, out});
  machine.download(words.data(), out, 4 * count);
  return {std::move(report), std::move(words)};
}

sim::Options traced(int ctas = 2) {
  sim::Options options;
  options.trace = {ctas, Timing{}};
  return options;
}

template <class Kernel> Trace trace_of(Dim3 grid = {1, 1, 1}) {
  return *run<Kernel>(traced(), grid).first.trace;
}

/// The spans of the tracks of that name, of the CTA of that rank.
std::vector<TraceSpan> spans(Trace const& trace, std::string const& track,
                             std::string const& name = "", int rank = 0) {
  std::vector<TraceSpan> found;
  for (TraceSpan const& span : trace.spans) {
    auto const& of = trace.tracks[static_cast<std::size_t>(span.track)];
    if (of.name == track && of.rank == rank && (name.empty() || span.name == name))
      found.push_back(span);
  }
  return found;
}

constexpr Timing kTiming{};

/// Warp 0 loads a kilobyte into each of two stages; warp 1 reads them.
struct LoadsAndReads {
  using Params = Words;
  static constexpr int threads = 64;
  static char const* role(int warp) { return warp == 0 ? "loader" : "reader"; }
  struct SharedStorage {
    alignas(128) std::uint32_t stage[2][256];
    Mbarrier full[2];
    template <class F> void name_buffers(F&& name) {
      name("first", stage[0]);
      name("second", stage[1]);
      name("full", full);
    }
  };
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(smem.full);
    if (thread_idx() == 0) {
      mbarrier_init(full, 1);
      mbarrier_init(full + 8, 1);
      fence_mbarrier_init();
    }
    cta::sync();
    if (thread_idx() == 0) {
      for (int s = 0; s < 2; ++s) {
        mbarrier_arrive_expect_tx(full + 8 * s, 1024);
        bulk_load(shared_address(smem.stage[s]), p.in + 256 * s, 1024, full + 8 * s);
      }
    }
    if (thread_idx() >= 32) {
      for (int s = 0; s < 2; ++s) {
        mbarrier_wait_parity(full + 8 * s, 0);
        for (int i = lane_id(); i < 256; i += 32)
          st_global(p.out + 512 * block_idx().x + 256 * s + i,
                    ld_shared<std::uint32_t>(shared_address(&smem.stage[s][i])));
      }
    }
  }
};

TEST(TraceOfALaunch, AWaitEndsWhenTheBytesHaveCome) {
  Trace const trace = trace_of<LoadsAndReads>();
  auto const loads = spans(trace, "TMA load");
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0].name, "first[0]");
  EXPECT_EQ(loads[1].name, "second[0]");
  auto const issues = spans(trace, "loader", "first[0]");
  ASSERT_EQ(issues.size(), 1u);
  double const transfer = 1024 / kTiming.port_bytes;
  EXPECT_DOUBLE_EQ(loads[0].end, issues[0].end + transfer + kTiming.tma_latency);
  EXPECT_DOUBLE_EQ(loads[1].end, loads[0].end + transfer);
  EXPECT_EQ(trace.tracks[static_cast<std::size_t>(loads[0].issuer)].name, "loader");

  auto const first = spans(trace, "reader", "wait full[0]");
  ASSERT_EQ(first.size(), 1u) << "32 lanes that wait together are one span";
  EXPECT_DOUBLE_EQ(first[0].end, loads[0].end + kTiming.wake);
  EXPECT_THAT(first[0].where.file, HasSubstr("trace_test.cpp"));
  EXPECT_TRUE(spans(trace, "reader", "wait full[1]").empty())
      << "the second stage comes while the first is read";
  EXPECT_EQ(spans(trace, "loader", "wait barrier 0").size(), 0u) << "it comes last";
  EXPECT_EQ(spans(trace, "reader", "wait barrier 0").size(), 1u);
}

TEST(TraceOfALaunch, ChangesNothingElse) {
  auto const [plain, plain_out] = run<LoadsAndReads>({});
  auto const [report, out] = run<LoadsAndReads>(traced());
  EXPECT_FALSE(plain.trace.has_value());
  EXPECT_EQ(out, plain_out);
  EXPECT_EQ(report.text(), plain.text());
}

TEST(TraceOfALaunch, IsTheSameHoweverTheHostRunsIt) {
  auto const json = [](sim::Options options) {
    options.trace = {4, Timing{}};
    return to_chrome_json(*run<LoadsAndReads>(options, {6, 1, 1}).first.trace);
  };
  std::string const expected = json({.workers = 1});
  EXPECT_EQ(json({.workers = 4}), expected);
  EXPECT_EQ(json({.completion = sim::Completion::random,
                  .interleaving = sim::Interleaving::random,
                  .seed = 3}),
            expected);
}

std::vector<int> ctas_of(Trace const& trace) {
  std::vector<int> ctas;
  for (auto const& track : trace.tracks)
    if (ctas.empty() || ctas.back() != track.cta.x) ctas.push_back(track.cta.x);
  return ctas;
}

TEST(TraceOfALaunch, IsOfTheFirstCtas) {
  EXPECT_THAT(ctas_of(*run<LoadsAndReads>(traced(3), {5, 1, 1}).first.trace), ElementsAre(0, 1, 2));
  EXPECT_THAT(ctas_of(*run<LoadsAndReads>(traced(3), {2, 1, 1}).first.trace), ElementsAre(0, 1));
}

/// Each warp has TMA store its part; warp 0, which the machine starts with, comes to it later.
struct StoresOutOfOrder {
  using Params = Words;
  static constexpr int threads = 64;
  struct SharedStorage {
    alignas(128) std::uint32_t part[2][32];
  };
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const warp = thread_idx() / 32;
    st_shared(shared_address(&smem.part[warp][lane_id()]), std::uint32_t{7});
    fence_proxy_async_shared();
    warp::sync();
    if (warp == 0) {
      for (int i = 0; i < 30; ++i) warp::sync();
    }
    if (lane_id() == 0) {
      bulk_store(p.out + 32 * warp, shared_address(smem.part[warp]), 128);
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

TEST(TraceOfALaunch, EnginesServeWhoComesFirstInTime) {
  Trace const trace = trace_of<StoresOutOfOrder>();
  auto const stores = spans(trace, "TMA store");
  ASSERT_EQ(stores.size(), 2u);
  auto const issuer = [&](TraceSpan const& span) {
    return trace.tracks[static_cast<std::size_t>(span.issuer)].name;
  };
  EXPECT_EQ(issuer(stores[0]), "warp 1") << "kernels that name no roles have numbers";
  EXPECT_EQ(issuer(stores[1]), "warp 0");
  EXPECT_GE(stores[1].begin, stores[0].begin + 30 * kTiming.issue - 1);
  auto const wait = spans(trace, "warp 1", "wait stores");
  ASSERT_EQ(wait.size(), 1u);
  EXPECT_DOUBLE_EQ(wait[0].end, stores[0].end + kTiming.store_latency);
}

/// cp.async, and then its wait.
struct CopiesByThreads {
  using Params = Words;
  static constexpr int threads = 32;
  struct SharedStorage {
    alignas(16) std::uint32_t tile[128];
  };
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    cp_async_cg<16>(shared_address(&smem.tile[4 * lane_id()]), p.in + 4 * lane_id());
    cp_async_commit_group();
    cp_async_wait_group<0>();
    warp::sync();
    st_global(p.out + lane_id(),
              ld_shared<std::uint32_t>(shared_address(&smem.tile[4 * lane_id()])));
  }
};

TEST(TraceOfALaunch, ACopyByThreadsTakesItsLatency) {
  Trace const trace = trace_of<CopiesByThreads>();
  auto const copies = spans(trace, "cp.async");
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].count, 32);
  EXPECT_DOUBLE_EQ(copies[0].end,
                   kTiming.issue + kTiming.global_latency + 512 / kTiming.port_bytes);
  auto const wait = spans(trace, "warp 0", "wait cp.async");
  ASSERT_EQ(wait.size(), 1u);
  EXPECT_DOUBLE_EQ(wait[0].end, copies[0].end) << "the last lane's";
}

/// The warps of a mask compute sixteen exponentials a lane, and a reciprocal.
template <std::uint32_t Warps> struct Exponentiates {
  using Params = Words;
  static constexpr int threads = 256;
  struct SharedStorage {};
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    float sum = 0;
    if ((Warps >> thread_idx() / 32 & 1) != 0) {
      for (int i = 0; i < 16; ++i) sum += ex2_approx_ftz(static_cast<float>(i - lane_id()));
      warp::sync();
      sum = rcp_approx_ftz(sum);
    }
    st_global(p.out + thread_idx(), __builtin_bit_cast(std::uint32_t, sum));
  }
};

template <std::uint32_t Warps> double exponentials_end(std::string const& warp) {
  auto const found = spans(trace_of<Exponentiates<Warps>>(), warp, "exponentials");
  EXPECT_EQ(found.size(), 1u) << "32 lanes, one after another, are one span";
  return found.empty() ? 0 : found[0].end;
}

TEST(TraceOfALaunch, WarpsOfOneSchedulerShareItsSpecialFunctionUnits) {
  double const alone = 16 * 32 * 4 / kTiming.special_rate;
  EXPECT_DOUBLE_EQ(exponentials_end<0b1>("warp 0"), alone);
  EXPECT_DOUBLE_EQ(exponentials_end<0b1111>("warp 3"), alone) << "each scheduler has a warp";
  EXPECT_DOUBLE_EQ(
      std::max(exponentials_end<0b10001>("warp 0"), exponentials_end<0b10001>("warp 4")),
      2 * alone);
}

TEST(TraceOfALaunch, ChargesExponentialsAndChangesNothingElse) {
  auto const [plain, plain_out] = run<Exponentiates<0b10011>>({});
  EXPECT_EQ(sim::timed_clusters.load(), 0);
  auto const [report, out] = run<Exponentiates<0b10011>>(traced());
  EXPECT_EQ(sim::timed_clusters.load(), 0) << "the launch that kept time is over";
  EXPECT_EQ(out, plain_out);
  EXPECT_EQ(report.text(), plain.text());
  EXPECT_EQ(report.total.instructions, plain.total.instructions);
  EXPECT_EQ(ex2_approx_ftz(3.0f), 8.0f) << "outside of a launch nobody is charged";
}

/// Two CTAs meet; CTA 1 reads global memory before.
struct MeetsInACluster {
  using Params = Words;
  static constexpr int threads = 64;
  static constexpr Dim3 cluster = {2, 1, 1};
  struct SharedStorage {};
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (cluster_cta_rank() == 1) {
      for (int i = 0; i < 10; ++i)
        st_global(p.out + 320 * block_idx().x + 64 * i + thread_idx(),
                  ld_global<std::uint32_t>(p.in + i));
    }
    cluster::sync();
  }
};

TEST(TraceOfALaunch, ClustersAreRecordedWholeAndWaitForTheirLastWarp) {
  Trace const trace = *run<MeetsInACluster>(traced(1), {6, 1, 1}).first.trace;
  EXPECT_THAT(ctas_of(trace), ElementsAre(0, 1));
  auto const wait = spans(trace, "warp 1", "wait cluster barrier", 0);
  ASSERT_EQ(wait.size(), 1u);
  double const arrival = 20 * kTiming.access;
  EXPECT_DOUBLE_EQ(wait[0].end, arrival + kTiming.cluster_latency + kTiming.wake);
}

}  // namespace
}  // namespace tegula
