#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "broken_kernel.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/sim/tensor_map.hpp"

/// What the checker says of kernels that use TMA wrongly.
namespace tegula {
namespace {

using sim::FindingKind;

/// A tensor of 64 x 16 floats whose last four rows nobody wrote, and one that only kernels write.
/// Boxes are of 32 x 8: 1024 bytes.
struct Tensors {
  TensorMap in;
  TensorMap out;
  float* memory;  ///< of `in`
  float* stored;  ///< of `out`
};

constexpr int kBoxBytes = 1024;

TensorMapDescription described(void* memory) {
  TensorMapDescription d;
  d.dtype = DType::f32;
  d.rank = 2;
  d.address = memory;
  d.extents = {64, 16};
  d.strides = {256};
  d.box = {32, 8};
  return d;
}

struct BrokenTma {
  using Params = Tensors;
  struct SharedStorage {
    alignas(1024) float tile[8][32];
    float spare[8][32];
    Mbarrier full;
    template <class F> void name_buffers(F&& name) {
      name("tile", tile);
      name("spare", spare);
      name("full", full);
    }
  };
  static constexpr int threads = 32;

  /// An mbarrier of one arrival, seen by all.
  static SharedAddr full(SharedStorage& smem) {
    SharedAddr const mbarrier = shared_address(&smem.full);
    if (thread_idx() == 0) {
      mbarrier_init(mbarrier, 1);
      fence_mbarrier_init();
    }
    cta::sync();
    return mbarrier;
  }
  /// All of the tile, written by threads.
  static void fill(SharedStorage& smem) {
    for (int row = 0; row < 8; ++row)
      st_shared(shared_address(&smem.tile[row][thread_idx()]), 1.0f);
    fence_proxy_async();
    cta::sync();
  }
};

template <class Kernel>
sim::Report tma_report(sim::Options options = {}, void (*change)(Tensors&) = nullptr,
                       Dim3 grid = {}) {
  options.throw_on_finding = false;
  sim::Machine machine(options);
  Tensors tensors{};
  tensors.memory = static_cast<float*>(machine.allocate(4096, "in"));
  tensors.stored = static_cast<float*>(machine.allocate(4096, "out"));
  machine.fill(tensors.memory, 0, 12 * 256);
  tensors.in = sim::encode(described(tensors.memory));
  tensors.out = sim::encode(described(tensors.stored));
  if (change != nullptr) change(tensors);
  return sim::launch<Kernel>(machine, grid, tensors);
}

// Loads.

/// Loads a box of `Expected` bytes, so the mbarrier thinks, and reads it before (or after) its
/// phase is complete.
template <bool Waits, int Expected = kBoxBytes> struct LoadAndRead : BrokenTma {
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
  auto const report = tma_report<LoadAndRead<true, kBoxBytes + 16>>();
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].kind, FindingKind::deadlock);
  EXPECT_SAYS(report.findings[0], "16 bytes");
}

TEST(TmaChecker, PhaseThatExpectsFewerBytesThanComeNeverCompletes) {
  auto const report = tma_report<LoadAndRead<true, kBoxBytes - 16>>();
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].kind, FindingKind::deadlock);
}

struct OverwriteALoad : BrokenTma {
  static constexpr int load = __LINE__ + 5, write = __LINE__ + 8;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = full(smem);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(mbarrier, kBoxBytes);
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
      mbarrier_arrive_expect_tx(mbarrier, 2 * kBoxBytes);
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
      mbarrier_arrive_expect_tx(mbarrier, kBoxBytes);
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
    if (thread_idx() == 0) mbarrier_arrive_expect_tx(mbarrier, kBoxBytes);
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

// Stores.

/// Stores the tile, then writes to it after waiting for what `Wait` says: 0 nothing, 1 its
/// reading, 2 all.
template <int Wait> struct StoreAndWrite : BrokenTma {
  static constexpr int store = __LINE__ + 4, write = __LINE__ + 10;
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    if (thread_idx() == 0) {
      tma_store(p.out, TmaCoordinate{0, 0}, shared_address(smem.tile));
      bulk_commit_group();
      if (Wait == 1) bulk_wait_group_read<0>();
      if (Wait == 2) bulk_wait_group<0>();
    }
    cta::sync();
    st_shared(shared_address(&smem.tile[3][thread_idx()]), 2.0f);
    if (thread_idx() == 0) bulk_wait_group<0>();
  }
};

TEST(TmaChecker, WriteToTheSourceOfAStore) {
  auto const finding = only_finding(tma_report<StoreAndWrite<0>>(), FindingKind::async_overwrite,
                                    StoreAndWrite<0>::write);
  EXPECT_EQ(finding.coordinate.substr(0, 6), "row 3,");
  EXPECT_EQ(finding.other.line, StoreAndWrite<0>::store);
  auto const after_read = tma_report<StoreAndWrite<1>>();
  EXPECT_TRUE(after_read.ok()) << after_read.text();
  auto const after_all = tma_report<StoreAndWrite<2>>();
  EXPECT_TRUE(after_all.ok()) << after_all.text();
}

/// Stores a tile of which nobody wrote row 5 to the row `Row` on.
template <int Row> struct StoreUnwritten : BrokenTma {
  static constexpr int line = __LINE__ + 8;
  void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = 0; row < 8; ++row) {
      if (row != 5) st_shared(shared_address(&smem.tile[row][thread_idx()]), 1.0f);
    }
    fence_proxy_async();
    cta::sync();
    if (thread_idx() == 0) {
      tma_store(p.out, TmaCoordinate{0, Row}, shared_address(smem.tile));
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

TEST(TmaChecker, StoreOfWhatNobodyWrote) {
  auto const finding = only_finding(tma_report<StoreUnwritten<0>>(),
                                    FindingKind::uninitialized_read, StoreUnwritten<0>::line);
  EXPECT_EQ(finding.coordinate, "row 5, column 0 of tile");
  auto const clipped = tma_report<StoreUnwritten<12>>();  // rows 4 and up lie outside of the tensor
  EXPECT_TRUE(clipped.ok()) << clipped.text();
}

/// Stores the tile at a coordinate.
template <int Column, int Row> struct StoreAt : BrokenTma {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    if (thread_idx() == 0) {
      tma_store(p.out, TmaCoordinate{Column, Row}, shared_address(smem.tile));
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

TEST(TmaChecker, StoreThatBeginsBeforeTheTensor) {
  EXPECT_SAYS(
      only_finding(tma_report<StoreAt<-4, 0>>(), FindingKind::out_of_bounds, StoreAt<-4, 0>::line),
      "cp.async.bulk.tensor to a box that begins at coordinate -4 of axis 0: only loads may begin before "
      "the tensor");
  EXPECT_SAYS(
      only_finding(tma_report<StoreAt<0, -8>>(), FindingKind::out_of_bounds, StoreAt<0, -8>::line),
      "begins at coordinate -8 of axis 1");
}

/// Rows of 61 floats, 256 bytes apart: a store writes 12 bytes more of each.
void narrow(Tensors& tensors) {
  TensorMapDescription d = described(tensors.stored);
  d.extents = {61, 16};
  tensors.out = sim::encode(d);
}

TEST(TmaChecker, StoreBeyondTheEndOfARowThatIsNoMultipleOf16Bytes) {
  using Store = StoreAt<32, 8>;
  auto const unwritten = tma_report<Store>({}, &narrow);
  EXPECT_TRUE(unwritten.ok()) << unwritten.text();
  // The same to a buffer that the host has written.
  auto const others = tma_report<Store>({}, [](Tensors& tensors) {
    tensors.stored = tensors.memory;
    narrow(tensors);
  });
  auto const over = only_finding(others, FindingKind::out_of_bounds, Store::line);
  EXPECT_EQ(over.buffer, "in");
  EXPECT_EQ(over.coordinate, "byte 2292 of in");
  EXPECT_EQ(over.count, 4);  // of 8 rows, the last four nobody has written
  EXPECT_SAYS(
      over,
      "cp.async.bulk.tensor writes 12 bytes beyond (60, 8), the tensor's last along axis 0, at byte 2292 of "
      "in, over what was written there before: it clips axis 0 at multiples of 16 bytes, not at elements");
  // An allocation that ends with the tensor's last element.
  sim::Options options;
  options.throw_on_finding = false;
  sim::Machine machine(options);
  Tensors tensors{};
  tensors.stored = static_cast<float*>(machine.allocate(15 * 256 + 61 * 4, "exact"));
  narrow(tensors);
  auto const outside = only_finding(sim::launch<Store>(machine, {}, tensors),
                                    FindingKind::out_of_bounds, Store::line);
  EXPECT_EQ(outside.count, 1);
  EXPECT_SAYS(
      outside,
      "writes 12 bytes beyond (60, 15), the tensor's last along axis 0, at byte 4084 of exact, "
      "which has 4084 bytes: it clips");
}

/// Stores the tile, waits for it to be read (or written: `All`), and reads it back from
/// global memory.
template <bool All> struct StoreAndReadBack : BrokenTma {
  static constexpr int line = __LINE__ + 8;
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    if (thread_idx() != 0) return;
    tma_store(p.out, TmaCoordinate{0, 0}, shared_address(smem.tile));
    bulk_commit_group();
    bulk_wait_group_read<0>();
    if (All) bulk_wait_group<0>();
    ld_global<float>(p.stored + 64);
    bulk_wait_group<0>();
  }
};

TEST(TmaChecker, ReadOfWhatAStoreHasNotWrittenYet) {
  auto const finding = only_finding(tma_report<StoreAndReadBack<false>>(),
                                    FindingKind::async_read_early, StoreAndReadBack<false>::line);
  EXPECT_EQ(finding.coordinate, "byte 256 of out");
  auto const clean = tma_report<StoreAndReadBack<true>>();
  EXPECT_TRUE(clean.ok()) << clean.text();
}

/// Stores what threads wrote, without a fence between the proxies.
struct StoreUnfenced : BrokenTma {
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = 0; row < 8; ++row)
      st_shared(shared_address(&smem.tile[row][thread_idx()]), 1.0f);
    cta::sync();
    if (thread_idx() != 0) return;
    tma_store(p.out, TmaCoordinate{0, 0}, shared_address(smem.tile));
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TEST(TmaChecker, StoreWithoutAFenceOfTheProxies) {
  auto const finding =
      only_finding(tma_report<StoreUnfenced>(), FindingKind::proxy_race, StoreUnfenced::line);
  EXPECT_EQ(finding.coordinate, "row 0, column 0 of tile");
}

/// Leaves without waiting for its store.
struct StoreAndLeave : BrokenTma {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    if (thread_idx() == 0) {
      tma_store(p.out, TmaCoordinate{0, 0}, shared_address(smem.tile));
      bulk_commit_group();
    }
  }
};

TEST(TmaChecker, CtaThatExitsWhileItIsStoredFrom) {
  only_finding(tma_report<StoreAndLeave>(), FindingKind::exited_cta, StoreAndLeave::line);
}

template <TmaReduce Op> struct ReduceInto : BrokenTma {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    if (thread_idx() == 0) {
      tma_reduce<2, Op>(p.out, TmaCoordinate{0, 0}, shared_address(smem.tile));
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

TEST(TmaChecker, ReductionThatTheTypeDoesNotHave) {
  auto const finding = only_finding(tma_report<ReduceInto<TmaReduce::max>>(),
                                    FindingKind::invalid_operand, ReduceInto<TmaReduce::max>::line);
  EXPECT_SAYS(finding, "cp.reduce.async.bulk.tensor.max of f32");
}

TEST(TmaChecker, SumsOfSignedIntegersOf64Bits) {
  auto const report = tma_report<ReduceInto<TmaReduce::add>>({}, [](Tensors& tensors) {
    TensorMapDescription d = described(tensors.stored);
    d.dtype = DType::s64;
    d.extents = {32, 16};
    d.box = {16, 8};
    tensors.out = sim::encode(d);
  });
  EXPECT_SAYS(
      only_finding(report, FindingKind::invalid_operand, ReduceInto<TmaReduce::add>::line),
      "cp.reduce.async.bulk.tensor.add of s64: encode the tensor map for u64, whose sums have the same bits");
}

TEST(TmaChecker, ReductionOntoWhatNobodyWrote) {
  auto const finding =
      only_finding(tma_report<ReduceInto<TmaReduce::add>>(), FindingKind::uninitialized_read,
                   ReduceInto<TmaReduce::add>::line);
  EXPECT_EQ(finding.buffer, "out");
}

// Bulk copies.

template <int From, int To, int Bytes> struct BulkCopy : BrokenTma {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = full(smem);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(mbarrier, Bytes);
      bulk_load(shared_address(smem.tile) + To, p.memory + From / 4, Bytes, mbarrier);
    }
    mbarrier_wait_parity(mbarrier, 0);
  }
};

TEST(TmaChecker, BulkCopiesOfWrongSizesAndPlaces) {
  auto const clean = tma_report<BulkCopy<16, 32, 48>>();
  EXPECT_TRUE(clean.ok()) << clean.text();
  constexpr int line = BulkCopy<0, 0, 40>::line;
  EXPECT_SAYS(only_finding(tma_report<BulkCopy<0, 0, 40>>(), FindingKind::invalid_operand, line),
              "cp.async.bulk of 40 bytes: it copies a multiple of 16");
  EXPECT_SAYS(only_finding(tma_report<BulkCopy<8, 0, 32>>(), FindingKind::misaligned, line),
              "8 bytes past a multiple of 16");
  EXPECT_SAYS(only_finding(tma_report<BulkCopy<0, 4, 32>>(), FindingKind::misaligned, line),
              "4 bytes past a multiple of 16: row 0, column 1 of tile");
  EXPECT_SAYS(only_finding(tma_report<BulkCopy<4080, 0, 32>>(), FindingKind::out_of_bounds, line),
              "at byte 4080 of in, which has 4096 bytes");
}

/// What is in flight until somebody waits is so whenever it lands. (A load that has landed
/// completes its phase: who reads without waiting for that is only found where it comes first.)
TEST(TmaChecker, FindsTheSameAtEverySchedule) {
  for (auto const completion :
       {sim::Completion::first, sim::Completion::random, sim::Completion::last}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      sim::Options options;
      options.completion = completion;
      options.interleaving = sim::Interleaving::random;
      options.seed = seed;
      EXPECT_EQ(tma_report<StoreAndWrite<0>>(options).findings.size(), 1u);
      EXPECT_EQ(tma_report<LoadTwice>(options).findings.size(), 1u);
      EXPECT_TRUE(tma_report<LoadAndRead<true>>(options).ok());
      EXPECT_TRUE(tma_report<StoreAndWrite<1>>(options).ok());
    }
  }
}

}  // namespace
}  // namespace tegula
