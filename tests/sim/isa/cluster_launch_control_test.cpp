// Cluster launch control on the simulated machine: every tile of a grid is dealt once, by whichever
// cluster, at every schedule and in every order of a small grid.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "schedules.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/reduction.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/pipeline/launched_tiles.hpp"
#include "tegula/sim/explore.hpp"
#include "tegula/sim/launch.hpp"

namespace tegula {
namespace {

struct TileCounts {
  TilePartition tiling;
  std::uint32_t* counts;  ///< how often each CTA's tile was computed
};

/// A thread of warp 0 asks, warp 1 computes as a whole, a thread of warp 2 walks the same tiles.
template <int Ctas> struct DealsTiles {
  using Params = TileCounts;
  static constexpr Dim3 cluster = {Ctas, 1, 1};
  static constexpr int threads = 96;
  static constexpr bool cluster_launch_control = true;
  using Launches = LaunchPipeline<2, Ctas, 3>;
  using Tiles = LaunchedTiles<WorkTileSpec{.m = 1, .n = 1, .cluster_m = Ctas}, Launches>;
  struct SharedStorage {
    typename Launches::Storage launches;
    template <class F> void name_buffers(F&& name) {
      name("answer", launches.answer);
      name("full", launches.full);
      name("empty", launches.empty);
    }
  };

  TEGULA_DEVICE void operator()(TileCounts const& p, SharedStorage& smem) const {
    Launches const launches{smem.launches};
    if (thread_idx() == 0) {
      launches.init();
      fence_mbarrier_init();
    }
    cluster::sync();
    Tiles tiles{p.tiling, launches, warp_id() == 1};
    if (warp_id() == 1) {
      while (!tiles.done()) {
        if (lane_id() == 0) red_add(p.counts + tiles.m, std::uint32_t{1});
        tiles.next();
        tiles.find();
      }
    } else if (thread_idx() == 0) {
      tiles.ask_for_all();
    } else if (thread_idx() == 64) {
      while (!tiles.done()) tiles.next();
    }
    cluster::sync();
  }
};

/// How often each tile of a grid was computed.
template <int Ctas> std::vector<std::uint32_t> counts_of(int tiles, sim::Machine& machine) {
  std::size_t const words = static_cast<std::size_t>(Ctas * tiles);
  auto* const counts = static_cast<std::uint32_t*>(machine.allocate(4 * words, "counts"));
  machine.fill(counts, 0, 4 * words);
  sim::launch<DealsTiles<Ctas>>(
      machine, {Ctas * tiles, 1, 1},
      {TilePartition(TileScheduler{.tiles_m = tiles, .tiles_n = 1}), counts});
  std::vector<std::uint32_t> result(words);
  machine.download(result.data(), counts, 4 * words);
  machine.deallocate(counts);
  return result;
}

sim::Options blackwell_of(int multiprocessors) {
  return {.generation = sim::Generation::sm100, .multiprocessors = multiprocessors};
}

template <int Ctas> void expect_each_once(int tiles, sim::Options const& options) {
  sim::Machine machine(options);
  EXPECT_EQ(counts_of<Ctas>(tiles, machine),
            std::vector<std::uint32_t>(static_cast<std::size_t>(Ctas * tiles), 1u))
      << tiles << " tiles, " << options.multiprocessors << " multiprocessors";
}

TEST(ClusterLaunchControl, EveryTileIsComputedOnceAtEverySchedule) {
  for (int const multiprocessors : {1, 3}) {
    for (sim::Options const& options : every_schedule(2, blackwell_of(multiprocessors))) {
      expect_each_once<1>(11, options);
      expect_each_once<2>(7, options);
    }
  }
}

TEST(ClusterLaunchControl, GridsOfEverySize) {
  for (int tiles = 1; tiles <= 12; ++tiles) expect_each_once<1>(tiles, blackwell_of(0));
}

// One cluster runs, and takes over two. Its every wait is for one thing.
TEST(ClusterLaunchControl, EveryOrderOfASmallGrid) {
  sim::Machine machine(blackwell_of(1));
  std::vector<std::uint32_t> counts;
  sim::ExploreOptions options;
  options.result = [&] {
    auto const* const bytes = reinterpret_cast<std::byte const*>(counts.data());
    return std::vector<std::byte>(bytes, bytes + 4 * counts.size());
  };
  sim::Exploration const e = sim::explore(
      machine, [&] { counts = counts_of<1>(3, machine); }, options);
  EXPECT_TRUE(e.complete) << e.text();
  EXPECT_TRUE(e.ok()) << e.text();
  EXPECT_EQ(counts, std::vector<std::uint32_t>(3, 1u));
  EXPECT_EQ(e.orders, 1) << e.text();
}

template <class Kernel> std::string refusal_of(sim::Options const& options) {
  sim::Machine machine(options);
  try {
    sim::launch<Kernel>(machine, {1, 1, 1}, {});
  } catch (sim::CheckError const& error) {
    return error.what();
  }
  return "";
}

struct DoesNotSaySo : DealsTiles<1> {
  static constexpr bool cluster_launch_control = false;
};
struct ReadsNoAnswer : DealsTiles<1> {
  TEGULA_DEVICE void operator()(TileCounts const&, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    st_shared(shared_address(smem.launches.answer), RegisterBits<16>{});
    clusterlaunchcontrol_query_cancel(shared_address(smem.launches.answer));
  }
};

TEST(ClusterLaunchControl, WhatIsWrongIsRefused) {
  EXPECT_NE(refusal_of<DoesNotSaySo>(blackwell_of(0)).find("cluster_launch_control = true"),
            std::string::npos);
  EXPECT_NE(refusal_of<DealsTiles<1>>({}).find("is an instruction of sm_100"), std::string::npos);
  EXPECT_NE(refusal_of<ReadsNoAnswer>(blackwell_of(0)).find("is no answer of"), std::string::npos);
}

}  // namespace
}  // namespace tegula
