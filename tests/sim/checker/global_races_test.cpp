#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broken_kernel.hpp"
#include "run_schedules.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/sim/tensor_map.hpp"

/// Data races in global memory between CTAs, and what orders them.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;
using ::testing::HasSubstr;

using Word = std::uint32_t;

/// The first CTA's part of a handover through global memory: `in` holds a flag (zero at the start)
/// at byte 0 and another at byte 64, `out` the data.
struct Handover : Broken {
  TEGULA_DEVICE static Word* flag(Params const& p, int i = 0) {
    return reinterpret_cast<Word*>(p.in) + 16 * i;
  }
  TEGULA_DEVICE static Word* data(Params const& p, int i = 0) {
    return reinterpret_cast<Word*>(p.out) + i;
  }
};

struct TwoCtasWriteOnePlace : Broken {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() == 5) st_global(p.out + 12, Word{7});
  }
};

TEST(GlobalRaces, TwoCtasWriteOnePlace) {
  Finding const f = only_finding(report_of<TwoCtasWriteOnePlace>({}, {3, 1, 1}),
                                 FindingKind::data_race, TwoCtasWriteOnePlace::line);
  EXPECT_EQ(f.cta, (Dim3{1, 0, 0}));
  EXPECT_EQ(f.warp, 0);
  EXPECT_EQ(f.lane, 5);
  EXPECT_EQ(f.other.line, TwoCtasWriteOnePlace::line);
  EXPECT_EQ(f.other_cta, (Dim3{0, 0, 0}));
  EXPECT_EQ(f.other_warp, 0);
  EXPECT_EQ(f.other_lane, 5);
  EXPECT_EQ(f.buffer, "out");
  EXPECT_EQ(f.coordinate, "byte 12 of out");
  EXPECT_EQ(f.count, 3) << "0 and 1, 0 and 2, 1 and 2";
  EXPECT_EQ(
      f.message,
      "st.global writes byte 12 of out, which st.global of CTA (0, 0, 0), warp 0, lane 5 writes, with nothing "
      "between the two CTAs that orders them");
  EXPECT_THAT(f.order, HasSubstr("fence_acq_rel<Scope::gpu>"));
  EXPECT_TRUE(report_of<TwoCtasWriteOnePlace>().ok());
}

/// Two CTAs write `Bytes` bytes each at addresses `Pitch` apart, over and over.
template <class V, int Pitch> struct Neighbours : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    for (int i = 0; i < 3; ++i)
      st_global(p.out + 2 * Pitch * lane_id() + Pitch * block_idx().x, V{});
  }
};

TEST(GlobalRaces, NeighboursAreToldApartByTheByte) {
  EXPECT_TRUE((report_of<Neighbours<std::uint8_t, 1>>({}, {2, 1, 1}).ok()));
  EXPECT_TRUE((report_of<Neighbours<std::uint16_t, 2>>({}, {2, 1, 1}).ok()));
  EXPECT_TRUE((report_of<Neighbours<Word, 4>>({}, {2, 1, 1}).ok()));
  EXPECT_FALSE((report_of<Neighbours<std::uint16_t, 0>>({}, {2, 1, 1}).ok()));
}

/// A CTA overwrites, by a single byte, what another reads.
struct OneByteTooFar : Broken {
  static constexpr int write_line = __LINE__ + 4;
  static constexpr int read_line = __LINE__ + 5;
  void operator()(Params const& p, SharedStorage&) const {
    if (block_idx().x == 0) {
      if (lane_id() == 31) st_global(p.in + 131, std::uint8_t{});
    } else {
      ld_global<Word>(p.in + 128 + 4 * lane_id());
    }
  }
};

TEST(GlobalRaces, OneByteOfAReadIsWritten) {
  Finding const f = only_finding(report_of<OneByteTooFar>({}, {2, 1, 1}), FindingKind::data_race,
                                 OneByteTooFar::read_line);
  EXPECT_EQ(f.other.line, OneByteTooFar::write_line);
  EXPECT_EQ(f.coordinate, "byte 131 of in");
  EXPECT_SAYS(
      f,
      "ld.global reads byte 131 of in, which st.global of CTA (0, 0, 0), warp 0, lane 31 writes (checker/");
}

enum class Fences { none, before_the_flag, after_the_flag, of_cta_before, of_cta_after, both };

/// CTA 0 leaves a number and raises a flag; CTA 1 waits for the flag and takes the number.
template <Fences F> struct Hands : Handover {
  static constexpr int line = __LINE__ + 10;
  static constexpr int leave_line = __LINE__ + 3;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (block_idx().x == 0) {
      if (lane_id() == 0) leave(p);
    } else if (lane_id() == 0) {
      while (atom_add(flag(p), Word{0}) == 0) {
      }
      if constexpr (F == Fences::of_cta_after) fence_acq_rel<Scope::cta>();
      if constexpr (F != Fences::none && F != Fences::before_the_flag && F != Fences::of_cta_after)
        fence_acq_rel<Scope::gpu>();
      ld_global<Word>(data(p));
    }
    static_cast<void>(smem);
  }
  static void leave(Params const& p) {
    st_global(data(p), Word{42});
    if constexpr (F == Fences::of_cta_before) fence_acq_rel<Scope::cta>();
    if constexpr (F != Fences::none && F != Fences::after_the_flag && F != Fences::of_cta_before)
      fence_acq_rel<Scope::gpu>();
    atom_exch(flag(p), Word{1});
  }
};

template <Fences F> Finding race_of_hands() {
  sim::Report const report = report_of<Hands<F>>({}, {2, 1, 1});
  EXPECT_EQ(report.findings.size(), 1u) << report.text();
  if (report.findings.empty()) return {};
  EXPECT_EQ(sim::to_string(report.findings[0].kind), "data_race");
  EXPECT_EQ(report.findings[0].coordinate, "byte 0 of out");
  return report.findings[0];
}

TEST(GlobalRaces, AFlagOrdersWithAFenceOnEitherSide) {
  for_each_schedule([](sim::Options const& options) {
    sim::Report const report = report_of<Hands<Fences::both>>(options, {2, 1, 1});
    EXPECT_TRUE(report.ok()) << report.text();
  });
  race_of_hands<Fences::none>();
  race_of_hands<Fences::before_the_flag>();
  race_of_hands<Fences::after_the_flag>();
}

TEST(GlobalRaces, AFenceOfTheCtaDoesNotReachAnother) {
  EXPECT_THAT(race_of_hands<Fences::of_cta_before>().order,
              HasSubstr("orders for its own CTA alone"));
  EXPECT_THAT(race_of_hands<Fences::of_cta_after>().order,
              HasSubstr("orders for its own CTA alone"));
}

/// A fence of each scope in turn, as given.
template <Scope... S> struct Scopes {
  TEGULA_DEVICE static void fence() { (fence_acq_rel<S>(), ...); }
};
using OfCta = Scopes<Scope::cta>;
using OfGpu = Scopes<Scope::gpu>;

/// The first thread of the grid hands a number by a flag to another: of its warp's neighbour, of a
/// CTA of the same cluster, or of another cluster.
template <class Before, class After, int Ctas, int ClusterCtas> struct HandsInScope : Handover {
  static constexpr int threads = 64;
  static constexpr Dim3 cluster = {ClusterCtas, 1, 1};
  void operator()(Params const& p, SharedStorage&) const {
    if (block_idx().x == 0 && thread_idx() == 0) {
      st_global(data(p), Word{42});
      Before::fence();
      atom_exch(flag(p), Word{1});
    }
    if (block_idx().x == Ctas - 1 && thread_idx() == 32) {
      while (atom_add(flag(p), Word{0}) == 0) {
      }
      After::fence();
      ld_global<Word>(data(p));
    }
  }
};

template <class Before, class After, int Ctas, int ClusterCtas> bool in_scope() {
  auto const report_at = [](sim::Interleaving interleaving) {
    return report_of<HandsInScope<Before, After, Ctas, ClusterCtas>>({.interleaving = interleaving},
                                                                     {Ctas, 1, 1});
  };
  sim::Report const report = report_at(sim::Interleaving::one_warp_ahead);
  EXPECT_EQ(report_at(sim::Interleaving::round_robin).ok(), report.ok());
  if (report.ok()) return true;
  EXPECT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].kind, FindingKind::data_race);
  return false;
}

TEST(GlobalRaces, BothFencesReachTheOtherThread) {
  // In a CTA either scope does.
  EXPECT_TRUE((in_scope<OfCta, OfCta, 1, 1>()));
  EXPECT_TRUE((in_scope<OfGpu, OfCta, 1, 1>()));
  EXPECT_FALSE((in_scope<Scopes<>, OfCta, 1, 1>()));
  // Between CTAs, of one cluster or of two, both are the GPU's.
  EXPECT_TRUE((in_scope<OfGpu, OfGpu, 2, 2>()));
  EXPECT_FALSE((in_scope<OfCta, OfGpu, 2, 2>()));
  EXPECT_FALSE((in_scope<OfGpu, OfCta, 2, 2>()));
  EXPECT_FALSE((in_scope<OfCta, OfCta, 2, 2>()));
  EXPECT_TRUE((in_scope<OfGpu, OfGpu, 2, 1>()));
  EXPECT_FALSE((in_scope<OfCta, OfGpu, 2, 1>()));
  EXPECT_FALSE((in_scope<OfGpu, OfCta, 2, 1>()));
}

TEST(GlobalRaces, AFenceOfTheCtaTakesNothingFromAnEarlierOneOfTheGpu) {
  using Both = Scopes<Scope::gpu, Scope::cta>;
  EXPECT_TRUE((in_scope<Both, OfGpu, 2, 2>()));
  EXPECT_TRUE((in_scope<Both, OfGpu, 2, 1>()));
  EXPECT_TRUE((in_scope<OfGpu, Scopes<Scope::cta, Scope::gpu>, 2, 2>()));
}

/// All threads write; a barrier lets one of them release for all.
struct OneReleasesForAll : Handover {
  static constexpr int threads = 128;
  void operator()(Params const& p, SharedStorage&) const {
    if (block_idx().x < 3) {
      st_global(data(p, 128 * block_idx().x + thread_idx()), Word{1});
      cta::sync();
      if (thread_idx() == 0) {
        fence_acq_rel<Scope::gpu>();
        atom_add(flag(p), Word{1});
      }
      return;
    }
    if (thread_idx() == 0) {
      while (atom_add(flag(p), Word{0}) != 3) {
      }
      fence_acq_rel<Scope::gpu>();
    }
    cta::sync();
    for (int i = thread_idx(); i < 3 * 128; i += threads) ld_global<Word>(data(p, i));
  }
};

TEST(GlobalRaces, OneThreadReleasesAndAcquiresForItsCta) {
  for_each_schedule([](sim::Options const& options) {
    sim::Report const report = report_of<OneReleasesForAll>(options, {4, 1, 1});
    EXPECT_TRUE(report.ok()) << report.text();
  });
}

/// CTA 0 hands to CTA 1, and that to CTA 2, by another flag.
template <bool Acquires> struct HandsOn : Handover {
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    int const cta = block_idx().x;
    if (cta == 0) st_global(data(p), Word{3});
    if (cta > 0) {
      while (atom_add(flag(p, cta - 1), Word{0}) == 0) {
      }
      if (cta == 2 || Acquires) fence_acq_rel<Scope::gpu>();
    }
    if (cta == 2) {
      ld_global<Word>(data(p));
      return;
    }
    if (cta == 0) fence_acq_rel<Scope::gpu>();
    atom_add(flag(p, cta), Word{1});
  }
};

TEST(GlobalRaces, OrderIsHandedOn) {
  // The middle CTA's one fence acquires what its flag told and releases by the next.
  EXPECT_TRUE(report_of<HandsOn<true>>({}, {3, 1, 1}).ok())
      << report_of<HandsOn<true>>({}, {3, 1, 1}).text();
  EXPECT_FALSE(report_of<HandsOn<false>>({}, {3, 1, 1}).ok());
}

/// Waits for a flag by plain loads, which a fence does not mend.
struct SpinsOnAPlainLoad : Handover {
  static constexpr int line = __LINE__ + 7;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      fence_acq_rel<Scope::gpu>();
      atom_exch(flag(p), Word{1});
    } else {
      while (ld_global<Word>(flag(p)) == 0) {
      }
      fence_acq_rel<Scope::gpu>();
    }
  }
};

TEST(GlobalRaces, ASpinOnAPlainLoad) {
  Finding const f = only_finding(report_of<SpinsOnAPlainLoad>({}, {2, 1, 1}),
                                 FindingKind::data_race, SpinsOnAPlainLoad::line);
  EXPECT_SAYS(f,
              "ld.global reads byte 0 of in, which atom of CTA (0, 0, 0), warp 0, lane 0 changes");
}

/// Atomics of all CTAs meet in one word, and none touches it otherwise.
template <bool Stores> struct Counts : Handover {
  void operator()(Params const& p, SharedStorage&) const {
    atom_add(flag(p), Word{1});
    if (Stores && block_idx().x == 2 && lane_id() == 0) st_global(flag(p), Word{0});
  }
};

TEST(GlobalRaces, AtomicsDoNotRaceWithEachOtherButWithStores) {
  EXPECT_TRUE(report_of<Counts<false>>({}, {5, 1, 1}).ok());
  EXPECT_FALSE(report_of<Counts<true>>({}, {5, 1, 1}).ok());
}

/// Each thread changes its own element in place; the neighbours' are read by nobody.
struct InPlace : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    char* const mine = p.in + 4 * (32 * block_idx().x + lane_id());
    for (int i = 0; i < 3; ++i) st_global(mine, ld_global<Word>(mine) + 1);
  }
};

TEST(GlobalRaces, WorkInPlaceIsOrderedByEachThread) {
  EXPECT_TRUE(report_of<InPlace>({}, {8, 1, 1}).ok());
}

TEST(GlobalRaces, LaunchesAreOrdered) {
  sim::Machine machine;
  Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                        static_cast<char*>(machine.allocate(4096, "out"))};
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(sim::launch<TwoCtasWriteOnePlace>(machine, {1, 1, 1}, buffers).ok());
}

struct WithBulk : Broken {
  struct SharedStorage {
    alignas(128) Word tile[64];
    Mbarrier full;
    template <class F> void name_buffers(F&& name) { name("tile", tile), name("full", full); }
  };
  TEGULA_DEVICE static void fill(SharedStorage& smem) {
    for (int i = lane_id(); i < 64; i += 32) st_shared(shared_address(&smem.tile[i]), Word{1});
    fence_proxy_async();
    warp::sync();
  }
};

/// The rows of two CTAs overlap where `Pitch` is less than 256 bytes.
template <int Pitch> struct BulkStores : WithBulk {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    if (lane_id() != 0) return;
    bulk_store(p.out + Pitch * block_idx().x, shared_address(smem.tile), 256);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TEST(GlobalRaces, BulkStoresOfTwoCtas) {
  Finding const f = only_finding(report_of<BulkStores<192>>({}, {2, 1, 1}), FindingKind::data_race,
                                 BulkStores<192>::line);
  EXPECT_EQ(f.coordinate, "byte 192 of out");
  EXPECT_SAYS(
      f,
      "cp.async.bulk writes byte 192 of out, which cp.async.bulk of CTA (0, 0, 0), warp 0, lane 0 writes");
  EXPECT_TRUE((report_of<BulkStores<256>>({}, {2, 1, 1}).ok()));
}

/// A CTA loads by a bulk copy what another writes.
struct BulkLoads : WithBulk {
  static constexpr int load_line = __LINE__ + 7;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 1) return st_global(p.in + 8, Word{1});
    mbarrier_init(shared_address(&smem.full), 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(shared_address(&smem.full), 64);
    bulk_load(shared_address(smem.tile), p.in, 64, shared_address(&smem.full));
    mbarrier_wait_parity(shared_address(&smem.full), 0);
  }
};

TEST(GlobalRaces, ABulkLoadOfWhatAnotherCtaWrites) {
  sim::Report const report = report_of<BulkLoads>({}, {2, 1, 1});
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].other.line, BulkLoads::load_line);
  EXPECT_EQ(report.findings[0].coordinate, "byte 8 of in");
}

/// All CTAs add a tile to the same place.
struct AddsATile : WithBulk {
  struct Params {
    TensorMap map;
    bool stores;
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    if (lane_id() != 0) return;
    if (p.stores) {
      tma_store<2>(p.map, {0, 0}, shared_address(smem.tile));
    } else {
      tma_reduce<2, TmaReduce::add>(p.map, {0, 0}, shared_address(smem.tile));
    }
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TEST(GlobalRaces, SumsOfTilesDoNotRaceWithEachOther) {
  sim::Machine machine({.throw_on_finding = false});
  void* const out = machine.allocate(1024, "out");
  machine.fill(out, 0, 1024);
  TensorMapDescription tensor;
  tensor.dtype = DType::f32;
  tensor.rank = 2;
  tensor.address = out;
  tensor.extents = {16, 16};
  tensor.strides = {64};
  tensor.box = {16, 4};
  AddsATile::Params params{sim::encode(tensor), false};
  EXPECT_TRUE(sim::launch<AddsATile>(machine, {6, 1, 1}, params).ok());
  params.stores = true;
  sim::Report const report = sim::launch<AddsATile>(machine, {6, 1, 1}, params);
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].count, 15) << "pairs of CTAs";
}

/// Two warps of a CTA use one word, with or without what `Between` does between the two.
enum class Between { nothing, barrier, fence_and_flag, fence_of_cta_and_flag, flag_alone };
template <Between B> struct TwoWarps : Handover {
  static constexpr int threads = 64;
  static constexpr int write_line = __LINE__ + 3;
  static constexpr int read_line = __LINE__ + 18;
  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() == 3) st_global(data(p), Word{1});
    if constexpr (B == Between::barrier) cta::sync();
    if constexpr (B != Between::nothing && B != Between::barrier) {
      if (thread_idx() == 3) {
        fence();
        atom_exch(flag(p), Word{1});
      }
      if (thread_idx() == 40) {
        while (atom_add(flag(p), Word{0}) == 0) {
        }
        fence();
      }
    } else if (B == Between::nothing && warp_id() == 1) {
      while (atom_add(flag(p), Word{0}) != 0) {
      }
    }
    if (thread_idx() == 40) ld_global<Word>(data(p));
  }
  static void fence() {
    if constexpr (B == Between::fence_and_flag) fence_acq_rel<Scope::gpu>();
    if constexpr (B == Between::fence_of_cta_and_flag) fence_acq_rel<Scope::cta>();
  }
};

TEST(GlobalRaces, WarpsOfOneCta) {
  Finding const f = only_finding(report_of<TwoWarps<Between::nothing>>(), FindingKind::data_race,
                                 TwoWarps<Between::nothing>::read_line);
  EXPECT_EQ(f.cta, (Dim3{0, 0, 0}));
  EXPECT_EQ(f.warp, 1);
  EXPECT_EQ(f.lane, 8);
  EXPECT_EQ(f.other.line, TwoWarps<Between::nothing>::write_line);
  EXPECT_EQ(f.other_warp, 0);
  EXPECT_EQ(f.other_lane, 3);
  EXPECT_EQ(f.coordinate, "byte 0 of out");
  EXPECT_THAT(
      f.message,
      HasSubstr(
          "ld.global reads byte 0 of out, which st.global of warp 0 lane 3 writes (checker/"));
  EXPECT_EQ(f.order, "a cta::sync between them would order them");
  EXPECT_EQ(report_of<TwoWarps<Between::flag_alone>>().findings.size(), 1u);
  for_each_schedule([](sim::Options const& options) {
    EXPECT_TRUE(report_of<TwoWarps<Between::barrier>>(options).ok());
    EXPECT_TRUE(report_of<TwoWarps<Between::fence_and_flag>>(options).ok());
    EXPECT_TRUE(report_of<TwoWarps<Between::fence_of_cta_and_flag>>(options).ok())
        << "in one CTA its scope does";
  });
}

/// Every thread reads a word that one of them writes later, after a barrier or not.
template <bool Waits> struct ReadByAll : Handover {
  static constexpr int threads = 128;
  void operator()(Params const& p, SharedStorage&) const {
    for (int i = 0; i < 3; ++i) ld_global<Word>(flag(p));
    if (Waits) cta::sync();
    if (thread_idx() == 127) st_global(flag(p), Word{1});
  }
};

TEST(GlobalRaces, AWriteComesAfterEveryReader) {
  for_each_schedule([](sim::Options const& options) {
    EXPECT_TRUE(report_of<ReadByAll<true>>(options).ok());
    EXPECT_FALSE(report_of<ReadByAll<false>>(options).ok());
  });
}

/// The thread reads what its own bulk store is to write, once it has waited for the store,
/// or before.
template <bool Waits> struct ReadsBack : WithBulk {
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    if (lane_id() != 0) return;
    bulk_store(p.in, shared_address(smem.tile), 256);
    bulk_commit_group();
    bulk_wait_group_read<0>();
    if (Waits) bulk_wait_group<0>();
    ld_global<Word>(p.in + 4);
    bulk_wait_group<0>();
  }
};

TEST(GlobalRaces, ABulkStoreIsWaitedForBeforeItIsReadBack) {
  for_each_schedule([](sim::Options const& options) {
    EXPECT_TRUE(report_of<ReadsBack<true>>(options).ok());
    sim::Report const report = report_of<ReadsBack<false>>(options);
    ASSERT_EQ(report.findings.size(), 1u) << report.text();
    EXPECT_EQ(sim::to_string(report.findings[0].kind), "async_read_early");
    EXPECT_THAT(report.findings[0].order, HasSubstr("bulk_wait_group<0>"));
  });
}

/// A bulk load of what the same CTA has written through the generic proxy.
template <bool Fences> struct LoadsItsOwn : WithBulk {
  void operator()(Params const& p, SharedStorage& smem) const {
    st_global(p.in + 4 * lane_id(), Word{1});
    if (Fences) fence_proxy_async();
    warp::sync();
    if (lane_id() != 0) return;
    mbarrier_init(shared_address(&smem.full), 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(shared_address(&smem.full), 64);
    bulk_load(shared_address(smem.tile), p.in, 64, shared_address(&smem.full));
    mbarrier_wait_parity(shared_address(&smem.full), 0);
    st_global(p.in, Word{2});  // the load has read it
  }
};

TEST(GlobalRaces, ABulkLoadNeedsAFenceOfTheProxies) {
  for_each_schedule([](sim::Options const& options) {
    sim::Report const clean = report_of<LoadsItsOwn<true>>(options);
    EXPECT_TRUE(clean.ok()) << clean.text();
    sim::Report const report = report_of<LoadsItsOwn<false>>(options);
    ASSERT_EQ(report.findings.size(), 1u) << report.text();
    EXPECT_EQ(sim::to_string(report.findings[0].kind), "proxy_race");
  });
}

/// Waits for a second arrival at a counter; there is one.
struct WaitsForASecond : Handover {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    atom_add(flag(p), Word{1});
    // The arrival is one of this thread's own, so that its loads do not race with it.
    while (ld_global<Word>(flag(p)) != 2) {
    }
  }
};

TEST(GlobalRaces, ALivelockNamesWhatIsPolledAndWhoChangedItLast) {
  sim::Report const report = report_of<WaitsForASecond>();
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(sim::to_string(report.findings[0].kind), "deadlock");
  EXPECT_THAT(
      report.findings[0].message,
      HasSubstr("byte 0 of in, which atom of warp 0 lane 0 (checker/global_races_test.cpp:" +
                std::to_string(WaitsForASecond::line) + ") has changed last"));
}

/// Kernels with races of several kinds.
struct Several : Handover {
  void operator()(Params const& p, SharedStorage&) const {
    int const cta = block_idx().x;
    if (cta % 3 == 0) st_global(data(p, lane_id()), Word{1});
    if (cta % 5 == 1) ld_global<Word>(p.in + 4 * lane_id());
    if (cta % 7 == 2) atom_add(flag(p), Word{1});
    if (cta % 7 == 3 && lane_id() < 5) st_global(p.in + 4 * lane_id(), Word{1});
  }
};

TEST(GlobalRaces, TheReportDoesNotDependOnTheHostsThreads) {
  std::string const one = report_of<Several>({.workers = 1}, {40, 1, 1}).json();
  EXPECT_THAT(one, HasSubstr("data_race"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(report_of<Several>({.workers = 4}, {40, 1, 1}).json(), one);
}

}  // namespace
}  // namespace tegula
