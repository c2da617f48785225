#include "tegula/arch/grid_dependency.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broken_kernel.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/sim/tensor_map.hpp"

/// Kernels that may be started before the launch before has finished: what they do to global memory
/// comes after a griddepcontrol_wait.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;
using ::testing::HasSubstr;

using Word = std::uint32_t;

/// Base of the kernels: `in` and `out` by words.
struct Dependent : Broken {
  static constexpr bool programmatic_dependent_launch = true;
  TEGULA_DEVICE static Word* in(Params const& p, int i = 0) {
    return reinterpret_cast<Word*>(p.in) + i;
  }
  TEGULA_DEVICE static Word* out(Params const& p, int i = 0) {
    return reinterpret_cast<Word*>(p.out) + i;
  }
};

template <class Kernel> void expect_clean(Dim3 grid = {}, sim::Options const& options = {}) {
  for_each_schedule(
      [&](sim::Options const& schedule) {
        sim::Report const report = report_of<Kernel>(schedule, grid);
        EXPECT_TRUE(report.ok()) << report.text();
      },
      options);
}

struct LoadsEarly : Dependent {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage&) const {
    ld_global<Word>(p.in + 4 * lane_id());
    griddepcontrol_wait();
    st_global(out(p, lane_id()), ld_global<Word>(in(p, lane_id())));
  }
};

TEST(GridDependency, LoadBeforeTheWait) {
  for_each_schedule([](sim::Options const& options) {
    Finding const f =
        only_finding(report_of<LoadsEarly>(options), FindingKind::data_race, LoadsEarly::line);
    EXPECT_EQ(f.count, 32);
    EXPECT_EQ(f.buffer, "in");
  });
  Finding const f = only_finding(report_of<LoadsEarly>(), FindingKind::data_race, LoadsEarly::line);
  EXPECT_EQ(f.message,
            "ld.global reads byte 0 of in, which the launch before this one may still write");
  EXPECT_EQ(
      f.order,
      "a griddepcontrol_wait by this thread, or by one that a barrier or an mbarrier orders before it, "
      "would order them");
  EXPECT_EQ(f.other.line, 0);
}

TEST(GridDependency, IsNotLookedForWithoutRaces) {
  EXPECT_TRUE(report_of<LoadsEarly>({.races = false}).ok());
  EXPECT_TRUE(report_of<LoadsEarly>({.check = false}).ok());
}

/// The same in a kernel that starts when the launch before has finished.
struct LoadsInTime : LoadsEarly {
  static constexpr bool programmatic_dependent_launch = false;
};

TEST(GridDependency, OtherKernelsNeedNoWait) { expect_clean<LoadsInTime>(); }

enum class Touch { store, atomic, cp_async, tma_load, tma_store, tma_prefetch };

/// Touches global memory in one way; lane 0 alone, after a wait or without.
template <Touch T, bool Waits> struct Touches : Broken {
  struct Params {
    char* in;
    char* out;
    TensorMap map;
  };
  struct SharedStorage {
    alignas(128) float tile[8][32];
    Mbarrier full;
  };
  static constexpr bool programmatic_dependent_launch = true;
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    if (lane_id() != 0) return;
    SharedAddr const tile = shared_address(smem.tile), full = shared_address(&smem.full);
    for (int i = 0; i < 256; ++i) st_shared(tile + static_cast<SharedAddr>(4 * i), 0.0f);
    mbarrier_init(full, 1);
    fence_proxy_async_shared();
    if constexpr (Waits) griddepcontrol_wait();
    TmaCoordinate<2> const at = {{0, 0}};
    if constexpr (T == Touch::store) st_global(p.out + 8, Word{1});
    if constexpr (T == Touch::atomic) atom_add(reinterpret_cast<Word*>(p.in) + 2, Word{1});
    if constexpr (T == Touch::cp_async) cp_async_ca<4>(tile, p.in + 8);
    if constexpr (T == Touch::tma_load) {
      mbarrier_arrive_expect_tx(full, sizeof smem.tile);
      tma_load(tile, p.map, at, full);
      mbarrier_wait_parity(full, 0);
    }
    if constexpr (T == Touch::tma_store) {
      tma_store(p.map, at, tile);
      bulk_commit_group();
      bulk_wait_group<0>();
    }
    if constexpr (T == Touch::tma_prefetch) tma_prefetch(p.map, at);
    cp_async_wait_all();
  }
};

template <Touch T, bool Waits> sim::Report report_of_touch() {
  sim::Machine machine({.throw_on_finding = false});
  auto* const in = static_cast<char*>(machine.allocate(4096, "in"));
  auto* const out = static_cast<char*>(machine.allocate(4096, "out"));
  machine.fill(in, 0, 4096);
  TensorMap const map = sim::encode({.dtype = DType::f32,
                                     .rank = 2,
                                     .address = in,
                                     .extents = {32, 32},
                                     .strides = {128},
                                     .box = {32, 8}});
  return sim::launch<Touches<T, Waits>>(machine, {1, 1, 1}, {in, out, map});
}

template <Touch T> void expect_early(char const* message) {
  sim::Report const report = report_of_touch<T, false>();
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].kind, FindingKind::data_race);
  EXPECT_EQ(report.findings[0].message, message);
  EXPECT_EQ(report.findings[0].count, 1);
  EXPECT_TRUE((report_of_touch<T, true>().ok())) << report_of_touch<T, true>().text();
}

TEST(GridDependency, EveryWayToTouchGlobalMemory) {
  expect_early<Touch::store>(
      "st.global writes byte 8 of out, which the launch before this one may still read or write");
  expect_early<Touch::atomic>(
      "atom changes byte 8 of in, which the launch before this one may still read or write");
  expect_early<Touch::cp_async>(
      "cp.async reads byte 8 of in, which the launch before this one may still write");
  expect_early<Touch::tma_load>(
      "cp.async.bulk.tensor reads byte 0 of in, which the launch before this one may still write");
  expect_early<Touch::tma_store>(
      "cp.async.bulk.tensor writes byte 0 of in, which the launch before this one may still read or write");
  EXPECT_TRUE((report_of_touch<Touch::tma_prefetch, false>().ok()))
      << "a prefetch gives nothing to anybody";
}

enum class Tells { nothing, barrier, shuffle, mbarrier };

/// One thread waits, and tells another warp.
template <Tells T> struct OneWaits : Dependent {
  struct SharedStorage {
    Mbarrier told;
  };
  static constexpr int threads = 64;
  static constexpr int line = __LINE__ + 16;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const told = shared_address(&smem.told);
    if (thread_idx() == 0) mbarrier_init(told, 1);
    cta::sync();
    if (thread_idx() == 0) {
      griddepcontrol_wait();
      if constexpr (T == Tells::mbarrier) mbarrier_arrive(told);
    }
    if constexpr (T == Tells::barrier) cta::sync();
    if constexpr (T == Tells::shuffle) {
      cta::bar_arrive(1, 64);
      warp::shfl(0, 0);
    }
    if (warp_id() == 0) return;
    if constexpr (T == Tells::mbarrier) mbarrier_wait_parity(told, 0);
    st_global(out(p, lane_id()), Word{1});
  }
};

TEST(GridDependency, OneThreadWaitsForOthers) {
  expect_clean<OneWaits<Tells::barrier>>();
  expect_clean<OneWaits<Tells::mbarrier>>();
  only_finding(report_of<OneWaits<Tells::nothing>>(), FindingKind::data_race,
               OneWaits<Tells::nothing>::line);
  only_finding(report_of<OneWaits<Tells::shuffle>>(), FindingKind::data_race,
               OneWaits<Tells::nothing>::line);
}

/// A thread waits and starts a load; who has waited for its bytes comes after the wait, too.
template <bool Waits> struct LoadTells : Dependent {
  struct SharedStorage {
    alignas(16) Word words[4];
    Mbarrier full;
  };
  static constexpr int threads = 64;
  static constexpr int store_line = __LINE__ + 15;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full);
    if (thread_idx() == 0) {
      mbarrier_init(full, 1);
      fence_mbarrier_init();
    }
    cta::sync();
    if (thread_idx() == 0) {
      if constexpr (Waits) griddepcontrol_wait();
      bulk_load(shared_address(smem.words), p.in, sizeof smem.words, full);
    }
    if (thread_idx() == 1) mbarrier_arrive_expect_tx(full, sizeof smem.words);
    if (warp_id() == 0) return;
    mbarrier_wait_parity(full, 0);
    st_global(out(p, lane_id()), ld_shared<Word>(shared_address(smem.words)));
  }
};

TEST(GridDependency, TheBytesOfALoadTell) {
  expect_clean<LoadTells<true>>();
  sim::Report const report = report_of<LoadTells<false>>();
  ASSERT_EQ(report.findings.size(), 2u) << report.text();
  EXPECT_EQ(report.findings[1].where.line, LoadTells<false>::store_line);
}

/// Thread 0 of CTA 0 of a cluster waits, and tells the other CTA.
template <bool Tells> struct TellsAPeer : Dependent {
  struct SharedStorage {
    Mbarrier told;
  };
  static constexpr Dim3 cluster = {2, 1, 1};
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const told = shared_address(&smem.told);
    if (lane_id() == 0) {
      mbarrier_init(told, 1);
      fence_mbarrier_init();
    }
    warp::sync();
    cluster::sync();
    if (cluster_cta_rank() == 0 && lane_id() == 0) {
      griddepcontrol_wait();
      if constexpr (Tells) mbarrier_arrive_cluster(mapa(told, 1));
    }
    if (cluster_cta_rank() == 1) {
      if constexpr (Tells) mbarrier_wait_parity(told, 0);
      st_global(out(p, lane_id()), Word{1});
    }
    cluster::sync();
  }
};

TEST(GridDependency, PeersAreTold) {
  expect_clean<TellsAPeer<true>>({2, 1, 1});
  EXPECT_FALSE(report_of<TellsAPeer<false>>({}, {2, 1, 1}).ok());
  EXPECT_FALSE(report_of<TellsAPeer<true>>({.strict = {.scopes = true}}, {2, 1, 1}).ok());
}

/// CTA 0 waits, and hands that to CTA 1 by a flag in memory that no other launch touches.
template <bool Fences> struct TellsAnotherCta : Dependent {
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      griddepcontrol_wait();
      fence_acq_rel<Scope::gpu>();
      atom_add(in(p), Word{1});
      return;
    }
    while (atom_add(in(p), Word{0}) == 0) {
    }
    if constexpr (Fences) fence_acq_rel<Scope::gpu>();
    st_global(out(p), Word{1});
  }
};

TEST(GridDependency, AnotherCtaIsTold) {
  auto const stores = [](sim::Report const& report) {
    return std::count_if(report.findings.begin(), report.findings.end(),
                         [](Finding const& f) { return f.buffer == "out"; });
  };
  // The flag itself is touched early by CTA 1: that is found in either.
  EXPECT_EQ(stores(report_of<TellsAnotherCta<true>>({}, {2, 1, 1})), 0);
  EXPECT_EQ(stores(report_of<TellsAnotherCta<false>>({}, {2, 1, 1})), 1);
}

/// Reads `in` before the wait and writes it after.
struct ReadsConstant : Dependent {
  void operator()(Params const& p, SharedStorage&) const {
    Word const word = ld_global<Word>(in(p, lane_id()));
    griddepcontrol_wait();
    st_global(out(p, lane_id()), word);
  }
};
struct WritesConstant : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage&) const {
    st_global(p.in + 4 * lane_id(), Word{1});
  }
};

TEST(GridDependency, WhatIsConstantMayBeReadEarlyAndNotWritten) {
  sim::Machine machine({.throw_on_finding = false});
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "weights")),
                        static_cast<char*>(machine.allocate(4096, "out"))};
  machine.fill(buffers.in, 0, 4096);
  EXPECT_FALSE(sim::launch<ReadsConstant>(machine, {1, 1, 1}, buffers).ok());
  EXPECT_TRUE(sim::launch<WritesConstant>(machine, {1, 1, 1}, buffers).ok());
  machine.set_constant(buffers.in);
  EXPECT_TRUE(sim::launch<ReadsConstant>(machine, {1, 1, 1}, buffers).ok());
  Finding const f = only_finding(sim::launch<WritesConstant>(machine, {1, 1, 1}, buffers),
                                 FindingKind::data_race, WritesConstant::line);
  EXPECT_EQ(
      f.message,
      "st.global writes byte 0 of weights, which is constant: the launches beside this one may read it "
      "meanwhile");
  EXPECT_THROW(machine.set_constant(buffers.in + 1), std::invalid_argument);
  EXPECT_THROW(machine.set_constant(nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace tegula
