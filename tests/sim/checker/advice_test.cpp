#include "mended_kernel.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tma.hpp"

/// What a finding advises removes it: each kernel is broken, and its twin does what the
/// advice says.
namespace tegula {
namespace {

using sim::FindingKind;

/// Two warps, words that all are written, and mbarriers.
struct Advised : Broken {
  static constexpr int threads = 64;
  struct SharedStorage {
    alignas(128) std::uint32_t words[256];
    Mbarrier full[2];
    template <class F> void name_buffers(F&& name) {
      name("words", words);
      name("full", full);
    }
  };
  static SharedAddr word(SharedStorage const& smem, int i) {
    return shared_address(&smem.words[i]);
  }
  static void begin(SharedStorage const& smem, int count = 1) {
    for (int i = thread_idx(); i < 256; i += 64) st_shared(word(smem, i), 1u);
    if (thread_idx() == 0) {
      for (int i = 0; i < 2; ++i) mbarrier_init(shared_address(&smem.full[i]), count);
      fence_mbarrier_init();
    }
    fence_proxy_async();
    cta::sync();
  }
};

/// Most threads read what a lane of their own warp has written; one, what the other warp has.
template <bool Mended> struct ReadsTheNextThreads : Advised {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    st_shared(word(smem, thread_idx()), 2u);
    if (Mended) cta::sync();
    st_global(p.out + 4 * thread_idx(),
              ld_shared<std::uint32_t>(word(smem, (thread_idx() + 1) % threads)));
  }
};

TEST(Advice, IsOfTheWidestOfThePairsThatAreToldTogether) {
  sim::Finding const f = finding_that_advises<ReadsTheNextThreads<false>>(
      FindingKind::data_race, "a cta::sync between them");
  EXPECT_NE(f.warp, f.other_warp);
  EXPECT_EQ(f.order.find("warp::sync"), std::string::npos) << f.order;
  expect_silent<ReadsTheNextThreads<true>>();
}

/// Likewise of copies: a thread waits for its own alone.
template <bool Mended> struct ReadsTheNextThreadsCopies : Advised {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    cp_async_ca<4>(word(smem, thread_idx()), p.in + 4 * thread_idx());
    cp_async_commit_group();
    cp_async_wait_group<0>();
    if (Mended) cta::sync();
    st_global(p.out + 4 * thread_idx(),
              ld_shared<std::uint32_t>(word(smem, (thread_idx() + 1) % threads)));
  }
};

TEST(Advice, OfCopiesIsOfTheWidestPair) {
  finding_that_advises<ReadsTheNextThreadsCopies<false>>(FindingKind::data_race, "a cta::sync");
  expect_silent<ReadsTheNextThreadsCopies<true>>();
}

/// A line reads from the thread's own CTA and from its peer.
template <bool Mended> struct ReadsOfBothCtas : Advised {
  static constexpr Dim3 cluster = {2, 1, 1};
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    cluster::sync();
    st_shared(word(smem, thread_idx()), 2u);
    if (Mended) {
      cluster::sync();
    } else {
      cta::sync();
    }
    std::uint32_t sum = 0;
    for (int rank = 0; rank < 2; ++rank)
      sum += ld_shared_cluster<std::uint32_t>(mapa(word(smem, 63 - thread_idx()), rank));
    st_global(p.out + 4 * (64 * cluster_cta_rank() + thread_idx()), sum);
    cluster::sync();
  }
};

TEST(Advice, AcrossACluster) {
  finding_that_advises<ReadsOfBothCtas<false>>(FindingKind::data_race,
                                               "a cluster::sync between them", {2, 1, 1});
  expect_silent<ReadsOfBothCtas<true>>({2, 1, 1});
}

/// Lanes that are at one warp::sync go on by another that the rest of the warp is at.
template <bool Mended> struct CrossesWarpSyncs : Advised {
  static constexpr int threads = 32;
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    if (!Mended && lane_id() < 16) warp::sync();
    if (lane_id() < 16) st_shared(word(smem, lane_id()), 2u);
    warp::sync();
    if (lane_id() >= 16)
      st_global(p.out + 4 * lane_id(), ld_shared<std::uint32_t>(word(smem, lane_id() - 16)));
  }
};

TEST(Advice, NamesTheTwoWarpSyncsThatHaveMet) {
  sim::Finding const f = finding_that_advises<CrossesWarpSyncs<false>>(
      FindingKind::data_race, "a warp::sync between them, at which");
  EXPECT_NE(f.order.find(":" + std::to_string(CrossesWarpSyncs<false>::line)), std::string::npos)
      << f.order;
  EXPECT_NE(f.order.find(":" + std::to_string(CrossesWarpSyncs<false>::line + 2)),
            std::string::npos)
      << f.order;
  expect_silent<CrossesWarpSyncs<true>>();
}

/// A bulk store that no group holds: the wait waits for nothing.
template <bool Mended> struct StoresWithoutAGroup : Advised {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    if (thread_idx() == 0) {
      bulk_store(p.out, word(smem, 0), 256);
      if (Mended) bulk_commit_group();
      bulk_wait_group_read<0>();
      st_shared(word(smem, 0), 3u);
      if (Mended) bulk_wait_group<0>();
    }
  }
};

TEST(Advice, NamesTheGroupThatABulkStoreLacks) {
  finding_that_advises<StoresWithoutAGroup<false>>(
      FindingKind::async_overwrite, "a bulk_commit_group after it and a bulk_wait_group_read");
  finding_that_advises<StoresWithoutAGroup<false>>(FindingKind::exited_cta,
                                                   "a bulk_commit_group after it");
  expect_silent<StoresWithoutAGroup<true>>();
}

template <bool Mended> struct CopiesWithoutAGroup : Advised {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    cp_async_ca<4>(word(smem, thread_idx()), p.in + 4 * thread_idx());
    if (Mended) cp_async_commit_group();
    cp_async_wait_group<0>();
    st_global(p.out + 4 * thread_idx(), ld_shared<std::uint32_t>(word(smem, thread_idx())));
  }
};

TEST(Advice, NamesTheGroupThatACopyLacks) {
  finding_that_advises<CopiesWithoutAGroup<false>>(
      FindingKind::async_read_early, "a cp.async.commit_group after it and a cp.async.wait_group");
  expect_silent<CopiesWithoutAGroup<true>>();
}

/// An mbarrier that was one.
struct ArrivesAfterInval : Advised {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (thread_idx() != 0) return;
    mbarrier_inval(shared_address(&smem.full[1]));
    mbarrier_arrive(shared_address(&smem.full[1]));
  }
};

TEST(Advice, SaysWhereAnMbarrierWasInvalidated) {
  sim::Finding const f = only_finding(report_of<ArrivesAfterInval>(), FindingKind::mbarrier_misuse,
                                      ArrivesAfterInval::line + 1);
  EXPECT_SAYS(f, "which is no mbarrier any more: it was invalidated (");
  EXPECT_SAYS(f, ":" + std::to_string(ArrivesAfterInval::line) + ")");
}

/// Two loads in turn through one mbarrier: the second wait is for the first load's phase.
template <bool Mended> struct WaitsOnePhaseOff : Advised {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    for (int round = 0; round < 2; ++round) {
      if (thread_idx() == 0) {
        mbarrier_arrive_expect_tx(full, 256);
        bulk_load(word(smem, 0), p.in, 256, full);
      }
      mbarrier_wait_parity(full, Mended ? round : 0);
      st_global(p.out + 4 * thread_idx(), ld_shared<std::uint32_t>(word(smem, thread_idx())));
      cta::sync();
    }
  }
};

TEST(Advice, NamesThePhase) {
  sim::Finding const f = finding_that_advises<WaitsOnePhaseOff<false>>(
      FindingKind::async_read_early, "a wait for phase 1 of element 0 of full, of parity 1");
  EXPECT_NE(f.order.find(" is for phase 0"), std::string::npos) << f.order;
  expect_silent<WaitsOnePhaseOff<true>>();
}

/// Two loads, and the bytes of one are expected: the phase is complete without the other.
template <bool Mended> struct ExpectsOneOfTwo : Advised {
  void operator()(Params const& p, SharedStorage& smem) const {
    begin(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(full, Mended ? 512 : 256);
      for (int i = 0; i < 2; ++i) bulk_load(word(smem, 64 * i), p.in, 256, full);
    }
    mbarrier_wait_parity(full, 0);
    st_global(p.out + 4 * thread_idx(), ld_shared<std::uint32_t>(word(smem, 64 + thread_idx())));
  }
};

TEST(Advice, NamesTheBytesThatAPhaseLacks) {
  finding_that_advises<ExpectsOneOfTwo<false>>(
      FindingKind::async_read_early, "an expect_tx of all bytes of phase 0 of element 0 of full");
  expect_silent<ExpectsOneOfTwo<true>>();
}

}  // namespace
}  // namespace tegula
