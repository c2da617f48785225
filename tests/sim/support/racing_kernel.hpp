#pragma once

#include <gtest/gtest.h>

#include "broken_kernel.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"

/// Races in shared memory. Each rule has a kernel that is right, and the same without the one
/// operation that orders its two accesses, which are those on the lines `kOne` and `kOther`.
namespace tegula {

inline constexpr SourceLocation kOne{"checker/races_test.cpp", 1};
inline constexpr SourceLocation kOther{"checker/races_test.cpp", 2};

/// Base: two warps, words that are all written at first, a tile for copies, and mbarriers.
struct Racing : Broken {
  static constexpr int threads = 64;
  struct SharedStorage {
    alignas(128) std::uint32_t words[128];
    alignas(128) std::uint32_t tile[32];
    Mbarrier full[2];
    template <class F> void name_buffers(F&& name) {
      name("words", words);
      name("tile", tile);
      name("full", full);
    }
  };
  static constexpr int tile_bytes = 128;
  static SharedAddr word(SharedStorage const& smem, int i) {
    return shared_address(&smem.words[i]);
  }
  static SharedAddr tile(SharedStorage const& smem, int i = 0) {
    return shared_address(&smem.tile[i]);
  }
  static SharedAddr full(SharedStorage const& smem, int i = 0) {
    return shared_address(&smem.full[i]);
  }

  /// Everything is written, the mbarriers take `count` arrivals, and all threads know it.
  static void begin(SharedStorage const& smem, int count = 1) {
    for (int i = thread_idx(); i < 128; i += 64) st_shared(word(smem, i), 1u);
    if (warp_id() == 0) st_shared(tile(smem, lane_id()), 1u);
    if (thread_idx() == 0) {
      for (int i = 0; i < 2; ++i) mbarrier_init(full(smem, i), count);
      fence_mbarrier_init();
    }
    fence_proxy_async();
    cta::sync();
  }
  /// This thread loads the tile.
  static void load(SharedStorage const& smem, Params const& p,
                   SourceLocation where = SourceLocation::current()) {
    mbarrier_arrive_expect_tx(full(smem), tile_bytes);
    bulk_load(tile(smem), p.in, tile_bytes, full(smem), where);
  }
};

/// The kernel is clean at every schedule.
template <class Kernel> void expect_clean(sim::Options const& base = {}, Dim3 grid = {1, 1, 1}) {
  for_each_schedule(
      [&](sim::Options const& options) {
        sim::Report const report = report_of<Kernel>(options, grid);
        EXPECT_TRUE(report.ok()) << schedule_text(options) << ": " << report.text();
      },
      base);
}

/// At every schedule the kernel has one finding, of that kind, on one of the two lines and about
/// the other. Returns that of the default schedule.
template <class Kernel>
sim::Finding expect_race(sim::FindingKind kind, sim::Options const& base = {},
                         Dim3 grid = {1, 1, 1}) {
  for_each_schedule(
      [&](sim::Options const& options) {
        sim::Report const report = report_of<Kernel>(options, grid);
        ASSERT_EQ(report.findings.size(), 1u) << schedule_text(options) << ": " << report.text();
        sim::Finding const& f = report.findings[0];
        EXPECT_EQ(sim::to_string(f.kind), sim::to_string(kind))
            << schedule_text(options) << report.text();
        EXPECT_EQ(f.where.line + f.other.line, kOne.line + kOther.line) << report.text();
        EXPECT_FALSE(f.order.empty()) << report.text();
      },
      base);
  sim::Report const report = report_of<Kernel>(base, grid);
  return report.findings.empty() ? sim::Finding{} : report.findings[0];
}

}  // namespace tegula
