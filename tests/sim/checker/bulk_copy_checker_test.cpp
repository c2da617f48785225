// What the checker says of kernels that reduce in bulk, multicast rows, or discard memory wrongly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "broken_kernel.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/prefetch.hpp"
#include "tegula/arch/tma.hpp"

namespace tegula {
namespace {

using sim::FindingKind;

constexpr int kRow = 128;  ///< bytes

/// 32 words in shared memory and an mbarrier; of two warps.
struct Bulk {
  using Params = Buffers;
  struct SharedStorage {
    alignas(16) std::uint32_t row[32];
    alignas(16) std::uint32_t other[32];
    Mbarrier full;
    template <class F> void name_buffers(F&& name) {
      name("row", row);
      name("other", other);
      name("full", full);
    }
  };
  static constexpr int threads = 64;

  /// Warp 0 writes the row; all see it, TMA with `Fences` too.
  template <bool Fences = true> static SharedAddr fill(SharedStorage& smem) {
    SharedAddr const row = shared_address(smem.row);
    if (warp_id() == 0) {
      st_shared(row + 4u * static_cast<SharedAddr>(lane_id()), 1u);
      st_shared(shared_address(&smem.other[lane_id()]), 2u);
    }
    if (Fences) fence_proxy_async();
    cta::sync();
    return row;
  }
  static std::uint32_t* words(char* memory) { return reinterpret_cast<std::uint32_t*>(memory); }
};

template <class Kernel> sim::Report sm90_report(sim::Options options = {}, Dim3 grid = {}) {
  options.generation = sim::Generation::sm90;
  return report_of<Kernel>(options, grid);
}

/// Adds the row to `in`. The parts may be left out: the fence before it, the wait for what it reads
/// before the row is written again.
template <bool Fences, int Waits> struct AddsRow : Bulk {
  static constexpr int reduce = __LINE__ + 4, write = __LINE__ + 9;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const row = fill<Fences>(smem);
    if (thread_idx() == 0) {
      bulk_reduce<TmaReduce::add>(words(p.in), row, kRow);
      bulk_commit_group();
      if (Waits == 1) bulk_wait_group_read<0>();
    }
    cta::sync();
    if (thread_idx() == 32) st_shared(row + 20, 5u);
    if (thread_idx() == 0) bulk_wait_group<0>();
  }
};

TEST(BulkCopyChecker, AReductionThatIsFencedAndWaitedForIsClean) {
  auto const report = sm90_report<AddsRow<true, 1>>();
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(BulkCopyChecker, ReductionOfWhatNobodyFenced) {
  using Kernel = AddsRow<false, 1>;
  auto const finding = only_finding(sm90_report<Kernel>(), FindingKind::proxy_race, Kernel::reduce);
  EXPECT_SAYS(finding, "cp.reduce.async.bulk");
  EXPECT_NE(finding.order.find("fence_proxy_async"), std::string::npos) << finding.order;
}

TEST(BulkCopyChecker, WriteToTheSourceBeforeItWasRead) {
  using Kernel = AddsRow<true, 0>;
  auto const finding =
      only_finding(sm90_report<Kernel>(), FindingKind::async_overwrite, Kernel::write);
  EXPECT_EQ(finding.coordinate, "element 5 of row");
  EXPECT_EQ(finding.other.line, Kernel::reduce);
  EXPECT_NE(finding.order.find("bulk_wait_group_read"), std::string::npos) << finding.order;
}

/// Addresses and sizes that are no multiples of 16.
template <int Global, int Shared, int Bytes> struct AddsAt : Bulk {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const row = fill(smem);
    if (thread_idx() != 0) return;
    bulk_reduce<TmaReduce::add>(words(p.in + Global), row + Shared, Bytes);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TEST(BulkCopyChecker, AddressesAndSizesAreMultiplesOf16) {
  EXPECT_SAYS(only_finding(sm90_report<AddsAt<8, 0, 64>>(), FindingKind::misaligned,
                           AddsAt<8, 0, 64>::line),
              "cp.reduce.async.bulk of 64 bytes at byte 8 of in, 8 bytes past a multiple of 16");
  EXPECT_SAYS(only_finding(sm90_report<AddsAt<0, 4, 64>>(), FindingKind::misaligned,
                           AddsAt<0, 4, 64>::line),
              "4 bytes past a multiple of 16: element 1 of row");
  EXPECT_SAYS(only_finding(sm90_report<AddsAt<0, 0, 24>>(), FindingKind::invalid_operand,
                           AddsAt<0, 0, 24>::line),
              "cp.reduce.async.bulk of 24 bytes: it moves a multiple of 16");
  EXPECT_SAYS(only_finding(sm90_report<AddsAt<4080, 0, 64>>(), FindingKind::out_of_bounds,
                           AddsAt<4080, 0, 64>::line),
              "cp.reduce.async.bulk of 64 bytes at byte 4080 of in, which has 4096 bytes");
}

struct AddsToNothing : Bulk {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const row = fill(smem);
    if (thread_idx() != 0) return;
    bulk_reduce<TmaReduce::bit_or>(words(p.out + 64), row, kRow);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TEST(BulkCopyChecker, ReductionOntoWhatNobodyWrote) {
  EXPECT_SAYS(only_finding(sm90_report<AddsToNothing>(), FindingKind::uninitialized_read,
                           AddsToNothing::line),
              "cp.reduce.async.bulk combines with byte 64 of out, where nobody has written");
}

/// While thread 0 reduces, thread 32 writes one of the elements: plainly, or by an atomic.
template <bool Atomic> struct WritesBeside : Bulk {
  static constexpr int reduce = __LINE__ + 4, write = __LINE__ + 8;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const row = fill(smem);
    if (thread_idx() == 0) {
      bulk_reduce<TmaReduce::add>(words(p.in), row, kRow);
      bulk_commit_group();
      bulk_wait_group<0>();
    }
    if (!Atomic && thread_idx() == 32) st_global(words(p.in) + 3, 7u);
    if (Atomic && thread_idx() == 32) atom_add(words(p.in) + 3, 7u);
  }
};

TEST(BulkCopyChecker, PlainWriteBesideAReduction) {
  bool before = false, after = false;
  for (auto const completion : {sim::Completion::first, sim::Completion::last}) {
    for (auto const interleaving :
         {sim::Interleaving::one_warp_ahead, sim::Interleaving::one_warp_behind,
          sim::Interleaving::round_robin}) {
      auto const report = sm90_report<WritesBeside<false>>(
          {.completion = completion, .interleaving = interleaving});
      ASSERT_EQ(report.findings.size(), 1u) << report.text();
      sim::Finding const& finding = report.findings[0];
      before |= finding.where.line == WritesBeside<false>::write;
      after |= finding.where.line == WritesBeside<false>::reduce;
      EXPECT_TRUE(finding.kind == FindingKind::data_race ||
                  finding.kind == FindingKind::async_overwrite)
          << report.text();
      EXPECT_NE(finding.order.find("would order them"), std::string::npos) << finding.order;
      auto const atomic =
          sm90_report<WritesBeside<true>>({.completion = completion, .interleaving = interleaving});
      EXPECT_TRUE(atomic.ok()) << atomic.text();
    }
  }
  EXPECT_TRUE(before || after);
}

/// The same with a CTA beside the one that reduces, and two that reduce.
template <bool Plain> struct CtasMeet : Bulk {
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const row = fill(smem);
    if (thread_idx() != 0) return;
    if (Plain && block_idx().x == 1) {
      st_global(words(p.in) + 3, 7u);
    } else {
      bulk_reduce<TmaReduce::max>(words(p.in), row, kRow);
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

TEST(BulkCopyChecker, ReductionsOfCtasMeetAndPlainWritesDoNot) {
  auto const meet = sm90_report<CtasMeet<false>>({}, {4, 1, 1});
  EXPECT_TRUE(meet.ok()) << meet.text();
  auto const race = sm90_report<CtasMeet<true>>({}, {2, 1, 1});
  ASSERT_EQ(race.findings.size(), 1u) << race.text();
  EXPECT_EQ(race.findings[0].kind, FindingKind::data_race);
  EXPECT_SAYS(race.findings[0], "cp.reduce.async.bulk");
}

/// CTA 1 of a cluster adds its row to CTA 0's. What may go wrong there.
enum class Wrong {
  nothing,
  reads_early,
  no_fence,
  plain_write,
  atomic,
  atomic_of_source,
  no_bytes,
  exits,
  unwritten
};
template <Wrong W> struct AddsToPeer : Bulk {
  static constexpr Dim3 cluster = {2, 1, 1};
  static constexpr int reduce = __LINE__ + 18, touch = __LINE__ + 21;
  void operator()(Params const&, SharedStorage& smem) const {
    int const rank = cluster_cta_rank();
    SharedAddr const full = shared_address(&smem.full), mine = shared_address(&smem.row[lane_id()]);
    bool const written = W != Wrong::unwritten || rank == 1;
    if (thread_idx() == 0) {
      mbarrier_init(full, 1);
      fence_mbarrier_init();
    }
    if (warp_id() == 0 && written) st_shared(mine, 1u);
    if (W != Wrong::no_fence) fence_proxy_async();
    if (thread_idx() == 0 && rank == 0)
      mbarrier_arrive_expect_tx(full, W == Wrong::no_bytes ? 0 : kRow);
    cluster::sync();
    if (thread_idx() == 0 && rank == 1) {
      SharedAddr const row = shared_address(smem.row);
      bulk_reduce_cluster<TmaReduce::add, std::uint32_t>(mapa(row, 0), row, kRow, mapa(full, 0));
    }
    if (rank == 0) {
      auto const early = [&] { ld_shared<std::uint32_t>(mine); };
      if (W == Wrong::reads_early && warp_id() == 0) early();
      if (W == Wrong::plain_write && thread_idx() == 40) st_shared(mine, 3u);
      if (W == Wrong::atomic && warp_id() == 1) atom_shared_add<Scope::cluster>(mapa(mine, 0), 3u);
      if (W != Wrong::exits) mbarrier_wait_parity(full, 0);
      if ((W == Wrong::nothing || W == Wrong::no_bytes) && warp_id() == 0)
        ld_shared<std::uint32_t>(mine);
    } else if (W == Wrong::atomic_of_source && warp_id() == 1) {
      atom_shared_add<Scope::cluster>(mine, 3u);
    }
    if (W != Wrong::exits) cluster::sync();
  }
};

template <Wrong W> sim::Report peer_report(sim::Options options = {}) {
  return sm90_report<AddsToPeer<W>>(options, {2, 1, 1});
}

TEST(BulkCopyChecker, ReductionsInAPeerAreHeldLikeCopies) {
  EXPECT_TRUE(peer_report<Wrong::nothing>().ok()) << peer_report<Wrong::nothing>().text();
  EXPECT_TRUE(peer_report<Wrong::atomic>().ok()) << peer_report<Wrong::atomic>().text();
  auto const early = peer_report<Wrong::reads_early>();
  ASSERT_FALSE(early.ok());
  EXPECT_TRUE(early.findings[0].kind == FindingKind::async_read_early ||
              early.findings[0].kind == FindingKind::async_overwrite)
      << early.text();
  EXPECT_NE(early.findings[0].order.find("mbarrier"), std::string::npos) << early.text();
  auto const no_fence = peer_report<Wrong::no_fence>();
  ASSERT_FALSE(no_fence.ok());
  for (sim::Finding const& f : no_fence.findings) {
    EXPECT_EQ(f.kind, FindingKind::proxy_race) << no_fence.text();
    EXPECT_NE(f.order.find("fence_proxy_async"), std::string::npos) << f.order;
  }
  auto const plain = peer_report<Wrong::plain_write>();
  ASSERT_FALSE(plain.ok());
  EXPECT_TRUE(plain.findings[0].kind == FindingKind::async_overwrite ||
              plain.findings[0].kind == FindingKind::data_race)
      << plain.text();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    sim::Options options;
    options.seed = seed;
    auto const source = peer_report<Wrong::atomic_of_source>(options);
    ASSERT_FALSE(source.ok()) << seed;
    EXPECT_TRUE(source.findings[0].kind == FindingKind::async_overwrite ||
                source.findings[0].kind == FindingKind::data_race)
        << source.text();
  }
  auto const none = peer_report<Wrong::no_bytes>();
  ASSERT_FALSE(none.ok());
  EXPECT_TRUE(none.findings[0].kind == FindingKind::async_read_early ||
              none.findings[0].kind == FindingKind::async_overwrite)
      << none.text();
  auto const exits = peer_report<Wrong::exits>();
  EXPECT_TRUE(std::any_of(exits.findings.begin(), exits.findings.end(), [](auto& f) {
    return f.kind == FindingKind::exited_cta;
  })) << exits.text();
  auto const unwritten = peer_report<Wrong::unwritten>();
  ASSERT_FALSE(unwritten.ok());
  EXPECT_EQ(unwritten.findings[0].kind, FindingKind::uninitialized_read) << unwritten.text();
}

/// One row to the CTAs of `Mask` of two; CTA 1 expects its bytes, or does not.
template <unsigned Mask, bool Expects, bool Waits> struct Multicasts : Bulk {
  static constexpr Dim3 cluster = {2, 1, 1};
  static constexpr int load = __LINE__ + 11, read = __LINE__ + 13;
  void operator()(Params const& p, SharedStorage& smem) const {
    int const rank = cluster_cta_rank();
    SharedAddr const full = shared_address(&smem.full);
    if (thread_idx() == 0) {
      mbarrier_init(full, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(full, rank == 0 || Expects ? kRow : 16);
    }
    cluster::sync();
    if (thread_idx() == 0 && rank == 0)
      bulk_load_multicast(shared_address(smem.row), p.in, kRow, full, Mask);
    if (Waits) mbarrier_wait_parity(full, 0);
    if (warp_id() == 0) ld_shared<std::uint32_t>(shared_address(&smem.row[lane_id()]));
    if (!Waits) mbarrier_wait_parity(full, 0);
    cluster::sync();
  }
};

TEST(BulkCopyChecker, MulticastsAreHeldInEachCta) {
  auto const right = sm90_report<Multicasts<3, true, true>>({}, {2, 1, 1});
  EXPECT_TRUE(right.ok()) << right.text();
  auto const stuck = sm90_report<Multicasts<3, false, true>>({}, {2, 1, 1});
  ASSERT_EQ(stuck.findings.size(), 1u) << stuck.text();
  EXPECT_EQ(stuck.findings[0].kind, FindingKind::deadlock);
  EXPECT_SAYS(stuck.findings[0], "112 bytes");
  using Early = Multicasts<3, true, false>;
  auto const early = sm90_report<Early>({}, {2, 1, 1});
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.findings[0].kind, FindingKind::async_read_early) << early.text();
  EXPECT_EQ(early.findings[0].where.line, Early::read);
  EXPECT_SAYS(early.findings[0], "while a cp.async.bulk into it is in flight");
  using Beyond = Multicasts<5, true, true>;
  EXPECT_SAYS(
      only_finding(sm90_report<Beyond>({}, {2, 1, 1}), FindingKind::invalid_operand, Beyond::load),
      "cp.async.bulk to the CTAs of mask 0x5 in a cluster of 2");
}

/// Discards 128 bytes, and reads them with or without a write in between.
template <bool Writes> struct ReadsDiscarded : Broken {
  static constexpr int discard = __LINE__ + 2, read = __LINE__ + 5;
  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() == 0) discard_global(p.in + 256);
    warp::sync();
    if (Writes) st_global(p.in + 256 + 4 * thread_idx(), 1u);
    ld_global<std::uint32_t>(p.in + 256 + 4 * thread_idx());
  }
};

TEST(DiscardChecker, WhatADiscardLeavesMustBeWrittenBeforeItIsRead) {
  using Kernel = ReadsDiscarded<false>;
  auto const finding =
      only_finding(report_of<Kernel>(), FindingKind::uninitialized_read, Kernel::read);
  EXPECT_SAYS(finding,
              "ld.global reads byte 380 of in, which a discard.L2 has left undefined "
              "(checker/bulk_copy_checker_test.cpp:" +
                  std::to_string(Kernel::discard) + "): it must be written before it is read");
  auto const written = report_of<ReadsDiscarded<true>>();
  EXPECT_TRUE(written.ok()) << written.text();
}

/// A discard is a write: of who wrote before it without an order, and at a multiple of 128 bytes.
template <int At, bool Sync> struct Discards : Broken {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage&) const {
    st_global(p.in + At + 4 * thread_idx(), 1u);
    if (Sync) warp::sync();
    if (thread_idx() == 5) discard_global(p.in + At);
  }
};

TEST(DiscardChecker, ADiscardIsAWriteOfAWholeLine) {
  using Race = Discards<128, false>;
  auto const report = report_of<Race>();
  ASSERT_EQ(report.findings.size(), 2u) << report.text();
  EXPECT_EQ(report.findings[0].kind, FindingKind::data_race);
  EXPECT_EQ(report.findings[0].where.line, Race::line);
  EXPECT_SAYS(report.findings[0],
              "discard.L2 writes byte 128 of in, which st.global of warp 0 lane 0 writes");
  EXPECT_TRUE((report_of<Discards<128, true>>().ok()));
  using Crooked = Discards<64, true>;
  EXPECT_SAYS(only_finding(report_of<Crooked>(), FindingKind::misaligned, Crooked::line),
              "discard.L2 of 128 bytes at byte 64 of in, whose address is no multiple of 128");
}

template <int At> struct Applies : Broken {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const& p, SharedStorage&) const {
    prefetch_global<CacheLevel::l2>(p.in + 1'000'000);
    if (thread_idx() == 0) apply_priority_evict_normal(p.in + At);
  }
};

TEST(CacheChecker, PrioritiesAreAppliedToWholeLinesOfAnAllocation) {
  EXPECT_TRUE(report_of<Applies<256>>().ok());
  EXPECT_SAYS(only_finding(report_of<Applies<72>>(), FindingKind::misaligned, Applies<72>::line),
              "applypriority of 128 bytes at byte 72 of in, 72 bytes past a multiple of 128");
  EXPECT_SAYS(
      only_finding(report_of<Applies<4096>>(), FindingKind::out_of_bounds, Applies<4096>::line),
      "applypriority of 128 bytes");
}

/// What sm_100 has and sm_90 has not.
struct EightWords {
  std::uint32_t word[8];
};
template <int What> struct OfBlackwellOnHopper : Bulk {
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const row = fill(smem);
    if (thread_idx() != 0) return;
    if (What == 0) st_bulk_zero(row, 64);
    if (What == 1) bulk_store_masked(p.out, row, 64, 1);
    if (What == 2) static_cast<void>(ld_global<EightWords>(p.in));
  }
};

TEST(BulkCopyChecker, WhatOnlyBlackwellHasIsRefusedOnHopper) {
  for (auto const& report :
       {sm90_report<OfBlackwellOnHopper<0>>(), sm90_report<OfBlackwellOnHopper<1>>(),
        sm90_report<OfBlackwellOnHopper<2>>()}) {
    ASSERT_EQ(report.findings.size(), 1u) << report.text();
    EXPECT_EQ(report.findings[0].kind, FindingKind::invalid_operand);
    EXPECT_SAYS(report.findings[0], "on an sm_90: it is for sm_100");
  }
}

/// Zeros in bulk are an ordinary write: a race with others', and behind a fence to TMA.
template <int At, int Bytes, bool Sync, bool Fence> struct ZeroesRow : Bulk {
  static constexpr int zero = __LINE__ + 5;
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const row = fill(smem);
    if (thread_idx() >= 32) st_shared(row + 4u * static_cast<SharedAddr>(lane_id()), 3u);
    if (Sync) cta::sync();
    if (thread_idx() == 0) st_bulk_zero(row + At, Bytes);
    if (Fence) fence_proxy_async();
    if (thread_idx() != 0) return;
    bulk_store(p.out, row, kRow);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

template <class Kernel> sim::Report sm100_report() {
  sim::Options options;
  options.generation = sim::Generation::sm100;
  return report_of<Kernel>(options);
}

TEST(BulkCopyChecker, ZerosInBulkAreAnOrdinaryWrite) {
  EXPECT_TRUE((sm100_report<ZeroesRow<0, kRow, true, true>>().ok()));
  auto const race = sm100_report<ZeroesRow<0, kRow, false, true>>();
  ASSERT_FALSE(race.ok());
  EXPECT_EQ(race.findings[0].kind, FindingKind::data_race) << race.text();
  auto const unfenced = sm100_report<ZeroesRow<0, kRow, true, false>>();
  ASSERT_FALSE(unfenced.ok());
  EXPECT_EQ(unfenced.findings[0].kind, FindingKind::proxy_race) << unfenced.text();
  using Crooked = ZeroesRow<4, 8, true, true>;
  EXPECT_SAYS(only_finding(sm100_report<Crooked>(), FindingKind::misaligned, Crooked::zero),
              "st.bulk of 8 bytes");
  using Odd = ZeroesRow<0, 12, true, true>;
  EXPECT_SAYS(only_finding(sm100_report<Odd>(), FindingKind::invalid_operand, Odd::zero),
              "st.bulk of 12 bytes: it writes a multiple of 8");
}

}  // namespace
}  // namespace tegula
