#include <gtest/gtest.h>

#include "flights.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/ordered_access.hpp"

/// Which memory a fence.proxy.async orders: all of it, or with .shared::cta shared memory alone.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

enum class ProxyFenced { nothing, shared_memory, all_memory };

template <ProxyFenced F> void fence_proxy() {
  if (F == ProxyFenced::shared_memory) fence_proxy_async_shared();
  if (F == ProxyFenced::all_memory) fence_proxy_async();
}

/// Threads write global memory, and thread 0 loads it by TMA's engine. The writers fence, or the
/// thread that loads.
template <ProxyFenced OfWriters, ProxyFenced OfLoader = ProxyFenced::nothing>
struct LoadsWhatItWrote : Flights {
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const& p, SharedStorage& smem) const {
    make_full(smem, 0);
    if (warp_id() == 1) st_global(p.in + 4 * lane_id(), 1u);
    fence_proxy<OfWriters>();
    cta::sync();
    if (thread_idx() == 0) fence_proxy<OfLoader>();
    if (thread_idx() == 0) load(smem, 0, p.in);
    mbarrier_wait_parity(full(smem, 0), 0);
  }
};

template <class Kernel> void expect_lacks_fence() {
  for_each_schedule([](sim::Options const& options) {
    Finding const f =
        only_finding(report_of<Kernel>(options), FindingKind::proxy_race, Kernel::line);
    EXPECT_EQ(f.order.find("a fence_proxy_async after the write"), 0u) << f.order;
  });
}
template <class Kernel> void expect_no_finding(Dim3 grid = {}) {
  for_each_schedule([&](sim::Options const& options) {
    sim::Report const report = report_of<Kernel>(options, grid);
    EXPECT_TRUE(report.ok()) << schedule_text(options) << report.text();
  });
}

TEST(ProxyFences, OneOfSharedMemoryOrdersNoGlobalMemory) {
  expect_lacks_fence<LoadsWhatItWrote<ProxyFenced::nothing>>();
  expect_lacks_fence<LoadsWhatItWrote<ProxyFenced::shared_memory>>();
  expect_lacks_fence<LoadsWhatItWrote<ProxyFenced::shared_memory, ProxyFenced::shared_memory>>();
  expect_no_finding<LoadsWhatItWrote<ProxyFenced::all_memory>>();
  expect_no_finding<LoadsWhatItWrote<ProxyFenced::nothing, ProxyFenced::all_memory>>();
  expect_no_finding<LoadsWhatItWrote<ProxyFenced::shared_memory, ProxyFenced::all_memory>>();
}

/// Threads write shared memory, and thread 0 stores it.
template <ProxyFenced OfWriters, ProxyFenced OfStorer = ProxyFenced::nothing>
struct StoresWhatItWrote : Flights {
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (warp_id() == 1) st_shared(tile(smem, 0) + 4u * static_cast<SharedAddr>(lane_id()), 9u);
    fence_proxy<OfWriters>();
    cta::sync();
    if (thread_idx() != 0) return;
    fence_proxy<OfStorer>();
    bulk_store(p.out, tile(smem, 0), tile_bytes), bulk_commit_group();
    bulk_wait_group_read<0>();
  }
};

TEST(ProxyFences, EitherOrdersSharedMemory) {
  expect_no_finding<StoresWhatItWrote<ProxyFenced::shared_memory>>();
  expect_no_finding<StoresWhatItWrote<ProxyFenced::all_memory>>();
  expect_no_finding<StoresWhatItWrote<ProxyFenced::nothing, ProxyFenced::shared_memory>>();
  expect_no_finding<StoresWhatItWrote<ProxyFenced::nothing, ProxyFenced::all_memory>>();
  using Lacks = StoresWhatItWrote<ProxyFenced::nothing>;
  for_each_schedule([](sim::Options const& options) {
    only_finding(report_of<Lacks>(options), FindingKind::proxy_race, Lacks::line);
  });
}

/// Threads of CTA 0 write shared memory, fence that, and tell CTA 1 by a word of its own each,
/// which answers; no other chain leads back to the thread of CTA 0 that stores.
struct KnowsByTheOtherCluster : Flights {
  static constexpr bool cooperative = true;
  void operator()(Params const& p, SharedStorage& smem) const {
    auto* const told = reinterpret_cast<int*>(p.out) + 64;
    if (block_idx().x == 1) {
      if (thread_idx() != 0) return;
      while (ld_global_acquire<int, Scope::gpu>(told) == 0) {
      }
      st_global_release<Scope::gpu>(told + 1, 1);
      return;
    }
    if (thread_idx() == 32) {
      for (int i = 0; i < 32; ++i) st_shared(tile(smem, 0) + 4u * static_cast<SharedAddr>(i), 9u);
      fence_proxy_async_shared();
      st_global_release<Scope::gpu>(told, 1);
    }
    if (thread_idx() != 0) return;
    while (ld_global_acquire<int, Scope::gpu>(told + 1) == 0) {
    }
    bulk_store(p.out, tile(smem, 0), tile_bytes), bulk_commit_group();
    bulk_wait_group_read<0>();
  }
};

TEST(ProxyFences, AWritersFenceOfSharedMemoryIsKnownByWayOfAnotherCluster) {
  for_each_schedule([](sim::Options const& options) {
    sim::Options silent = options;
    silent.throw_on_finding = false;
    sim::Machine machine(silent);
    Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                          static_cast<char*>(machine.allocate(4096, "out"))};
    machine.fill(buffers.out, 0, 4096);
    sim::Report const report = sim::launch<KnowsByTheOtherCluster>(machine, {2, 1, 1}, buffers);
    EXPECT_TRUE(report.ok()) << schedule_text(options) << report.text();
  });
}

}  // namespace
}  // namespace tegula
