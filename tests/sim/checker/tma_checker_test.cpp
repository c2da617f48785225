#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "broken_tma_kernel.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/global.hpp"

/// What the checker says of kernels that load by TMA wrongly.
namespace tegula {
namespace {

using sim::FindingKind;

/// Loads a box of `Expected` bytes, so the mbarrier thinks, and reads it before (or after) its
/// phase is complete.
template <bool Waits, int Expected = kTmaBoxBytes> struct LoadAndRead : BrokenTma {
  static constexpr int load = __LINE__ + 5, read = __LINE__ + 9;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = full(smem);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(mbarrier, Expected);
      tma_load(shared_address(smem.tile), p.in, TmaCoordinate{0, 0}, mbarrier);
    }
    if (Waits) mbarrier_wait_parity(mbarrier, 0);
    cta::sync();
    ld_shared<float>(shared_address(&smem.tile[2][thread_idx()]));
    if (!Waits) mbarrier_wait_parity(mbarrier, 0);
  }
};

TEST(TmaChecker, ALoadThatIsWaitedForIsClean) {
  auto const report = tma_report<LoadAndRead<true>>();
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(TmaChecker, ReadBeforeThePhaseIsComplete) {
  auto const finding = only_finding(tma_report<LoadAndRead<false>>(), FindingKind::async_read_early,
                                    LoadAndRead<false>::read);
  EXPECT_EQ(finding.coordinate.substr(0, 6), "row 2,");
  EXPECT_EQ(finding.other.line, LoadAndRead<false>::load);
  EXPECT_SAYS(finding, "cp.async.bulk.tensor");
}

TEST(TmaChecker, PhaseThatExpectsMoreBytesThanComeNeverCompletes) {
  auto const report = tma_report<LoadAndRead<true, kTmaBoxBytes + 16>>();
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].kind, FindingKind::deadlock);
  EXPECT_SAYS(report.findings[0], "16 bytes");
}

TEST(TmaChecker, PhaseThatExpectsFewerBytesThanComeNeverCompletes) {
  auto const report = tma_report<LoadAndRead<true, kTmaBoxBytes - 16>>();
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].kind, FindingKind::deadlock);
}

struct OverwriteALoad : BrokenTma {
  static constexpr int load = __LINE__ + 5, write = __LINE__ + 8;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = full(smem);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(mbarrier, kTmaBoxBytes);
      tma_load(shared_address(smem.tile), p.in, TmaCoordinate{0, 0}, mbarrier);
    }
    cta::sync();
    st_shared(shared_address(&smem.tile[7][thread_idx()]), 0.0f);
    mbarrier_wait_parity(mbarrier, 0);
  }
};

TEST(TmaChecker, WriteIntoALoadInFlight) {
  auto const finding = only_finding(tma_report<OverwriteALoad>(), FindingKind::async_overwrite,
                                    OverwriteALoad::write);
  EXPECT_EQ(finding.coordinate.substr(0, 6), "row 7,");
  EXPECT_EQ(finding.other.line, OverwriteALoad::load);
}

/// Two loads into the same tile before the first is complete.
struct LoadTwice : BrokenTma {
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = full(smem);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(mbarrier, 2 * kTmaBoxBytes);
      tma_load(shared_address(smem.tile), p.in, TmaCoordinate{0, 0}, mbarrier);
      tma_load(shared_address(smem.tile), p.in, TmaCoordinate{32, 0}, mbarrier);
    }
    mbarrier_wait_parity(mbarrier, 0);
  }
};

TEST(TmaChecker, LoadIntoALoadInFlight) {
  only_finding(tma_report<LoadTwice>(), FindingKind::async_overwrite, LoadTwice::line);
}

/// Lanes read what a load brings, before it is issued, by an mbarrier that nobody has initialised.
struct LoadsByNoMbarrier : BrokenTma {
  static constexpr int load = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage& smem) const {
    ld_shared<float>(shared_address(&smem.tile[0][thread_idx()]));
    if (thread_idx() == 31)  // the last to come here
      tma_load(shared_address(smem.tile), p.in, TmaCoordinate{0, 0}, shared_address(&smem.full));
  }
};

TEST(TmaChecker, ALoadByNoMbarrierIsToldToInitialiseIt) {
  auto const report = tma_report<LoadsByNoMbarrier>();
  auto const over =
      std::find_if(report.findings.begin(), report.findings.end(),
                   [](sim::Finding const& f) { return f.kind == FindingKind::async_overwrite; });
  ASSERT_NE(over, report.findings.end()) << report.text();
  EXPECT_EQ(over->where.line, LoadsByNoMbarrier::load);
  EXPECT_EQ(over->order.find("an mbarrier_init of element 0 of full, on which it completes"), 0u)
      << over->order;
}

/// Loads at a coordinate to an offset in the tile.
template <int Column, int Row, int Offset = 0> struct LoadOne : BrokenTma {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = full(smem);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(mbarrier, kTmaBoxBytes);
      tma_load(shared_address(smem.tile) + Offset, p.in, TmaCoordinate{Column, Row}, mbarrier);
    }
    mbarrier_wait_parity(mbarrier, 0);
  }
};

TEST(TmaChecker, SharedAddressThatIsNoMultipleOf128) {
  auto const finding = only_finding(tma_report<LoadOne<0, 0, 64>>(), FindingKind::misaligned,
                                    LoadOne<0, 0, 64>::line);
  EXPECT_SAYS(finding, "64 bytes past a multiple of 128: row 0, column 16 of tile");
}

TEST(TmaChecker, BoxThatBeginsBetweenMultiplesOf16Bytes) {
  auto const inside =
      only_finding(tma_report<LoadOne<6, 0>>(), FindingKind::misaligned, LoadOne<6, 0>::line);
  EXPECT_SAYS(
      inside,
      "begins at coordinate 6 of axis 0, which is byte 24 of its row: that must be a multiple of 16");
  auto const before =
      only_finding(tma_report<LoadOne<-1, 0>>(), FindingKind::misaligned, LoadOne<-1, 0>::line);
  EXPECT_SAYS(before, "begins at coordinate -1 of axis 0, which is byte -4 of its row");
}

TEST(TmaChecker, BoxBeyondTheEndOfSharedMemory) {
  auto const report = tma_report<LoadOne<0, 0, 3072 - 128>>();
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].kind, FindingKind::out_of_bounds) << report.text();
  EXPECT_EQ(report.findings[0].where.line, (LoadOne<0, 0, 3072 - 128>::line));
}

TEST(TmaChecker, MemoryThatNobodyWrote) {
  auto const finding = only_finding(tma_report<LoadOne<8, 8>>(), FindingKind::uninitialized_read,
                                    LoadOne<8, 8>::line);
  EXPECT_EQ(finding.coordinate, "byte 3104 of in");
  EXPECT_SAYS(finding, "element (8, 12) of the tensor");
  EXPECT_EQ(finding.count, 4);  // rows
}

TEST(TmaChecker, WhatLiesOutsideOfTheTensorIsNotRead) {
  auto const report = tma_report<LoadOne<0, -4>>();
  EXPECT_TRUE(report.ok()) << report.text();
  auto const beyond = tma_report<LoadOne<64, 0>>();
  EXPECT_TRUE(beyond.ok()) << beyond.text();
}

TEST(TmaChecker, TensorLargerThanItsMemory) {
  auto const finding = only_finding(tma_report<LoadOne<0, 12>>({},
                                                               [](Tensors& tensors) {
                                                                 auto d = described(tensors.memory);
                                                                 d.extents[1] = 20;
                                                                 tensors.in = sim::encode(d);
                                                               }),
                                    FindingKind::out_of_bounds, LoadOne<0, 12>::line);
  EXPECT_SAYS(finding, "row at (0, 16) of the tensor lies ");
}

TEST(TmaChecker, MapThatWasNeverEncoded) {
  auto const finding = only_finding(
      tma_report<LoadOne<0, 0>>({}, [](Tensors& tensors) { tensors.in = TensorMap{}; }),
      FindingKind::invalid_operand, LoadOne<0, 0>::line);
  EXPECT_SAYS(finding, "a tensor map that was never encoded");
}

/// Takes the map from an array in global memory, where there are two.
template <int Index, bool Prefetches = false> struct LoadsByAnArrayOfMaps : BrokenTma {
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = full(smem);
    TensorMap const& map = reinterpret_cast<TensorMap const*>(p.stored)[Index];
    if (Prefetches && thread_idx() == 0) prefetch_tensor_map(map);
    if (Prefetches || thread_idx() != 0) return;
    tma_load(shared_address(&smem.tile[0][0]), map, TmaCoordinate{0, 0}, mbarrier);
    mbarrier_arrive_expect_tx(mbarrier, kTmaBoxBytes);
    mbarrier_wait_parity(mbarrier, 0);
  }
};

template <class Kernel> sim::Report report_of_maps() {
  sim::Machine machine({.throw_on_finding = false});
  std::vector<float> const numbers(64 * 16, 1);
  auto* const in = static_cast<float*>(machine.allocate(4 * numbers.size(), "in"));
  machine.upload(in, numbers.data(), 4 * numbers.size());
  std::vector<TensorMap> const maps(2, sim::encode(described(in)));
  void* const array = machine.allocate(2 * sizeof(TensorMap), "maps");
  machine.upload(array, maps.data(), 2 * sizeof(TensorMap));
  return sim::launch<Kernel>(machine, {}, {maps[0], maps[0], in, static_cast<float*>(array)});
}

template <int Index> void expect_map_outside(char const* place) {
  for (sim::Report const& report : {report_of_maps<LoadsByAnArrayOfMaps<Index>>(),
                                    report_of_maps<LoadsByAnArrayOfMaps<Index, true>>()}) {
    ASSERT_EQ(report.findings.size(), 1u) << report.text();
    EXPECT_EQ(sim::to_string(report.findings[0].kind), "out_of_bounds");
    EXPECT_SAYS(report.findings[0], std::string("is given a tensor map") + place);
  }
}

TEST(TmaChecker, AnArrayOfMapsIsHeldToItsBounds) {
  EXPECT_TRUE(report_of_maps<LoadsByAnArrayOfMaps<0>>().ok());
  EXPECT_TRUE(report_of_maps<LoadsByAnArrayOfMaps<1>>().ok());
  expect_map_outside<2>(" at byte 256 of maps, which has 256 bytes");
  expect_map_outside<-1>(", 128 bytes before the start of maps");
  expect_map_outside<1000000>(" at an address which is in no allocation");
  expect_map_outside<-1000000>(" at an address which is in no allocation");
}

/// Copies the map to a variable of its own.
struct LoadsByACopyOfTheMap : BrokenTma {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = full(smem);
    if (thread_idx() != 0) return;
    TensorMap const map = p.in;
    tma_load(shared_address(&smem.tile[0][0]), map, TmaCoordinate{0, 0}, mbarrier);
  }
};

TEST(TmaChecker, AMapInLocalMemory) {
  EXPECT_SAYS(only_finding(tma_report<LoadsByACopyOfTheMap>(), FindingKind::invalid_operand,
                           LoadsByACopyOfTheMap::line),
              "a tensor map in the thread's local memory");
}

/// Copies `Bytes` bytes from byte `From` of the tensor of 4096.
template <int From, int Bytes> struct BulkLoadsFrom : BrokenTma {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = full(smem);
    if (thread_idx() != 0) return;
    auto const* const source = reinterpret_cast<char const*>(p.memory) + From;
    bulk_load(shared_address(&smem.tile[0][0]), source, Bytes, mbarrier);
  }
};

TEST(TmaChecker, TheSourceOfABulkCopyIsNamedAndNotItsAddress) {
  using Beyond = BulkLoadsFrom<4080, 128>;
  EXPECT_SAYS(only_finding(tma_report<Beyond>(), FindingKind::out_of_bounds, Beyond::line),
              "cp.async.bulk of 128 bytes at byte 4080 of in, which has 4096 bytes");
  using Before = BulkLoadsFrom<-16, 128>;
  EXPECT_SAYS(only_finding(tma_report<Before>(), FindingKind::out_of_bounds, Before::line),
              "cp.async.bulk of 128 bytes, 16 bytes before the start of in");
  using Between = BulkLoadsFrom<4, 128>;
  EXPECT_SAYS(only_finding(tma_report<Between>(), FindingKind::misaligned, Between::line),
              "cp.async.bulk of 128 bytes at byte 4 of in, 4 bytes past a multiple of 16");
}

TEST(TmaChecker, MapForAnotherMachine) {
  auto const finding = only_finding(tma_report<LoadOne<0, 0>>({},
                                                              [](Tensors& tensors) {
                                                                tensors.in = TensorMap{};
                                                                tensors.in.bytes[3] = 0x7f;
                                                              }),
                                    FindingKind::invalid_operand, LoadOne<0, 0>::line);
  EXPECT_SAYS(finding, "not encoded for the simulated machine");
}

TEST(TmaChecker, CoordinatesOfAnotherRank) {
  auto const finding = only_finding(tma_report<LoadOne<0, 0>>({},
                                                              [](Tensors& tensors) {
                                                                auto d = described(tensors.memory);
                                                                d.rank = 3;
                                                                d.extents[2] = d.box[2] = 1;
                                                                tensors.in = sim::encode(d);
                                                              }),
                                    FindingKind::invalid_operand, LoadOne<0, 0>::line);
  EXPECT_SAYS(finding, "2 coordinates for a tensor of rank 3");
}

// Clusters.

template <unsigned Mask> struct MulticastTo : BrokenTma {
  static constexpr Dim3 cluster = {2, 1, 1};
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = full(smem);
    if (thread_idx() == 0) mbarrier_arrive_expect_tx(mbarrier, kTmaBoxBytes);
    cluster::sync();
    if (thread_idx() == 0 && cluster_cta_rank() == 0)
      tma_load_multicast(shared_address(smem.tile), p.in, TmaCoordinate{0, 0}, mbarrier, Mask);
    mbarrier_wait_parity(mbarrier, 0);
    cluster::sync();
  }
};

TEST(TmaChecker, MulticastToCtasThatTheClusterLacks) {
  auto const clean = tma_report<MulticastTo<3>>({}, nullptr, {2, 1, 1});
  EXPECT_TRUE(clean.ok()) << clean.text();
  auto const finding = only_finding(tma_report<MulticastTo<5>>({}, nullptr, {2, 1, 1}),
                                    FindingKind::invalid_operand, MulticastTo<5>::line);
  EXPECT_SAYS(finding, "mask 0x5 in a cluster of 2");
  only_finding(tma_report<MulticastTo<0>>({}, nullptr, {2, 1, 1}), FindingKind::invalid_operand,
               MulticastTo<0>::line);
}

struct LoadIntoAPeer : BrokenTma {
  static constexpr Dim3 cluster = {2, 1, 1};
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = full(smem);
    cluster::sync();
    if (thread_idx() == 0)
      tma_load(mapa(shared_address(smem.tile), 1), p.in, TmaCoordinate{0, 0}, mapa(mbarrier, 0));
    cluster::sync();
  }
};

TEST(TmaChecker, MbarrierInAnotherCtaThanTheBox) {
  auto const finding = only_finding(tma_report<LoadIntoAPeer>({}, nullptr, {2, 1, 1}),
                                    FindingKind::invalid_operand, LoadIntoAPeer::line);
  EXPECT_SAYS(finding, "into CTA 1 of the cluster with an mbarrier in CTA 0");
}

/// What is in flight until somebody waits is so whenever it lands. (A load that has landed
/// completes its phase: who reads without waiting for that is only found where it comes first.)
TEST(TmaChecker, FindsTheSameAtEverySchedule) {
  for (sim::Options const& options : every_completion()) {
    EXPECT_EQ(tma_report<LoadTwice>(options).findings.size(), 1u);
    EXPECT_TRUE(tma_report<LoadAndRead<true>>(options).ok());
  }
}

}  // namespace
}  // namespace tegula
