#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "broken_tma_kernel.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/global.hpp"

/// What the checker says of kernels that store by TMA wrongly, or copy in bulk.
namespace tegula {
namespace {

using sim::FindingKind;

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

TEST(TmaStoreChecker, WriteToTheSourceOfAStore) {
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

TEST(TmaStoreChecker, StoreOfWhatNobodyWrote) {
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

TEST(TmaStoreChecker, StoreThatBeginsBeforeTheTensor) {
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

TEST(TmaStoreChecker, StoreBeyondTheEndOfARowThatIsNoMultipleOf16Bytes) {
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

TEST(TmaStoreChecker, ReadOfWhatAStoreHasNotWrittenYet) {
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

TEST(TmaStoreChecker, StoreWithoutAFenceOfTheProxies) {
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

TEST(TmaStoreChecker, CtaThatExitsWhileItIsStoredFrom) {
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

TEST(TmaStoreChecker, ReductionThatTheTypeDoesNotHave) {
  auto const finding = only_finding(tma_report<ReduceInto<TmaReduce::max>>(),
                                    FindingKind::invalid_operand, ReduceInto<TmaReduce::max>::line);
  EXPECT_SAYS(finding, "cp.reduce.async.bulk.tensor.max of f32");
}

TEST(TmaStoreChecker, SumsOfSignedIntegersOf64Bits) {
  auto const report = tma_report<ReduceInto<TmaReduce::add>>({}, [](Tensors& tensors) {
    TensorMapDescription d = described(tensors.stored);
    d.dtype = DType::s64;
    d.extents = {32, 16};
    d.box = {16, 8};
    tensors.out = sim::encode(d);
  });
  EXPECT_SAYS(
      only_finding(report, FindingKind::invalid_operand, ReduceInto<TmaReduce::add>::line),
      "cp.reduce.async.bulk.tensor.add of s64: encode the tensor map for u64, whose results have the same bits");
}

TEST(TmaStoreChecker, ReductionOntoWhatNobodyWrote) {
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

TEST(TmaStoreChecker, BulkCopiesOfWrongSizesAndPlaces) {
  auto const clean = tma_report<BulkCopy<16, 32, 48>>();
  EXPECT_TRUE(clean.ok()) << clean.text();
  constexpr int line = BulkCopy<0, 0, 40>::line;
  EXPECT_SAYS(only_finding(tma_report<BulkCopy<0, 0, 40>>(), FindingKind::invalid_operand, line),
              "cp.async.bulk of 40 bytes: it moves a multiple of 16");
  EXPECT_SAYS(only_finding(tma_report<BulkCopy<8, 0, 32>>(), FindingKind::misaligned, line),
              "8 bytes past a multiple of 16");
  EXPECT_SAYS(only_finding(tma_report<BulkCopy<0, 4, 32>>(), FindingKind::misaligned, line),
              "4 bytes past a multiple of 16: row 0, column 1 of tile");
  EXPECT_SAYS(only_finding(tma_report<BulkCopy<4080, 0, 32>>(), FindingKind::out_of_bounds, line),
              "at byte 4080 of in, which has 4096 bytes");
}

/// What is in flight until somebody waits is so whenever it lands.
TEST(TmaStoreChecker, FindsTheSameAtEverySchedule) {
  for (sim::Options const& options : every_completion()) {
    EXPECT_EQ(tma_report<StoreAndWrite<0>>(options).findings.size(), 1u);
    EXPECT_TRUE(tma_report<StoreAndWrite<1>>(options).ok());
  }
}

}  // namespace
}  // namespace tegula
