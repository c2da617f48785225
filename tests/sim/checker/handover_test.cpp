#include "mended_kernel.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/ordered_access.hpp"
#include "tegula/arch/tma.hpp"

/// What a CTA hands over to another through global memory: what every thread of it wrote, by a flag
/// that one of them sets, and for TMA to read.
namespace tegula {
namespace {

using sim::FindingKind;

constexpr Dim3 kTwo = {2, 1, 1};

/// CTA 0 writes 64 words of `out`, sets a flag; CTA 1 waits for it and reads them.
struct Hands : Broken {
  static constexpr int threads = 64;
  struct SharedStorage {
    alignas(128) std::uint32_t tile[64];
    Mbarrier full;
    template <class F> void name_buffers(F&& name) {
      name("tile", tile);
      name("full", full);
    }
  };
  static std::uint32_t* flag(Params const& p) { return reinterpret_cast<std::uint32_t*>(p.in); }
  static char* word(Params const& p, int i) { return p.out + 4 * i; }
  static void write(Params const& p) { st_global(word(p, thread_idx()), 7u); }
  /// Of the words that the neighbour has written.
  static void read(Params const& p) {
    st_global(word(p, 128 + thread_idx()),
              ld_global<std::uint32_t>(word(p, (thread_idx() + 32) % 64)));
  }
  static void set(Params const& p) { atom_add(flag(p), 1u); }
  static void await(Params const& p) {
    while (atom_add(flag(p), 0u) == 0) {
    }
  }
};

/// The two barriers between the threads and the one that fences for them.
template <bool Before, bool After> struct ThreadZeroFences : Hands {
  void operator()(Params const& p, SharedStorage&) const {
    if (block_idx().x == 0) {
      write(p);
      if (Before) cta::sync();
      if (thread_idx() == 0) fence_acq_rel<Scope::gpu>(), set(p);
      return;
    }
    if (thread_idx() == 0) await(p), fence_acq_rel<Scope::gpu>();
    if (After) cta::sync();
    read(p);
  }
};

TEST(Handover, LacksABarrierOnEitherSide) {
  finding_that_advises<ThreadZeroFences<false, true>>(
      FindingKind::data_race, "a cta::sync between the first access and the fence at", kTwo);
  finding_that_advises<ThreadZeroFences<true, false>>(FindingKind::data_race,
                                                      "a cta::sync between the fence at", kTwo);
  sim::Finding const f = finding_that_advises<ThreadZeroFences<false, false>>(
      FindingKind::data_race, ", and a cta::sync", kTwo);
  EXPECT_EQ(f.order.find("an atomic"), std::string::npos) << "it has one: " << f.order;
  expect_silent<ThreadZeroFences<true, true>>(kTwo);
}

/// Likewise by a store that releases and a load that acquires.
template <bool Before, bool After> struct ThreadZeroReleases : Hands {
  void operator()(Params const& p, SharedStorage&) const {
    if (block_idx().x == 0) {
      write(p);
      if (Before) cta::sync();
      if (thread_idx() == 0) st_global_release<Scope::gpu>(flag(p), 1u);
      return;
    }
    if (thread_idx() == 0) {
      while (ld_global_acquire<std::uint32_t, Scope::gpu>(flag(p)) == 0) {
      }
    }
    if (After) cta::sync();
    read(p);
  }
};

TEST(Handover, NamesTheStoreThatReleasesAndTheLoadThatAcquires) {
  finding_that_advises<ThreadZeroReleases<false, true>>(
      FindingKind::data_race, "a cta::sync between the first access and the st.release at", kTwo);
  finding_that_advises<ThreadZeroReleases<true, false>>(
      FindingKind::data_race, "a cta::sync between the ld.acquire at", kTwo);
  expect_silent<ThreadZeroReleases<true, true>>(kTwo);
}

/// Every thread fences what it wrote, they meet, and one of them sets the flag.
template <bool Meets, bool ThreadZeroToo = true, int Threads = 64>
struct EveryThreadFences : Hands {
  static constexpr int threads = Threads;
  void operator()(Params const& p, SharedStorage&) const {
    if (block_idx().x == 0) {
      write(p);
      if (ThreadZeroToo || thread_idx() != 0) fence_acq_rel<Scope::gpu>();
      if (Meets) cta::sync();
      if (thread_idx() == 0) set(p);
      return;
    }
    if (thread_idx() == 0) await(p), fence_acq_rel<Scope::gpu>();
    cta::sync();
    if (ThreadZeroToo || thread_idx() != 32) read(p);
  }
};

TEST(Handover, EveryThreadMayFenceForItself) {
  expect_silent<EveryThreadFences<true>>(kTwo);
  expect_silent<EveryThreadFences<true, false>>(kTwo);
  finding_that_advises<EveryThreadFences<false>>(FindingKind::data_race,
                                                 "a cta::sync between the first access", kTwo);
  finding_that_advises<EveryThreadFences<true>>(FindingKind::data_race,
                                                "a cta::sync between the first access", kTwo,
                                                {.strict = {.fences = true}});
  expect_silent<ThreadZeroFences<true, true>>(kTwo, {.strict = {.fences = true}});
}

/// The same, over again: what comes after the first flag is handed over by the second.
template <bool Fences> struct TwoRounds : Hands {
  void operator()(Params const& p, SharedStorage&) const {
    for (int round = 0; round < 2; ++round) {
      char* const first = p.out + 1024 * round;
      if (block_idx().x == 0) {
        st_global(first + 4 * thread_idx(), 7u);
        if (round == 0 || Fences) fence_acq_rel<Scope::gpu>();
        cta::sync();
        if (thread_idx() == 0) set(p);
        continue;
      }
      if (thread_idx() == 0) {
        while (atom_add(flag(p), 0u) < static_cast<std::uint32_t>(round + 1)) {
        }
        fence_acq_rel<Scope::gpu>();
      }
      cta::sync();
      st_global(first + 512 + 4 * thread_idx(),
                ld_global<std::uint32_t>(first + 4 * (63 - thread_idx())));
    }
  }
};

TEST(Handover, WhatIsFencedLaterIsHandedOverLater) {
  expect_silent<TwoRounds<true>>(kTwo);
  EXPECT_FALSE(report_of<TwoRounds<false>>({}, kTwo).ok());
}

enum class Waits : std::uint8_t { for_writes, for_reads };

/// A bulk store is over for others when it has been waited for in full.
template <Waits Until> struct HandsOverAStore : Hands {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (block_idx().x == 0) {
      st_shared(shared_address(&smem.tile[thread_idx()]), 7u);
      fence_proxy_async();
      cta::sync();
      if (thread_idx() != 0) return;
      bulk_store(p.out, shared_address(&smem.tile[0]), 256);
      bulk_commit_group();
      if (Until == Waits::for_reads) bulk_wait_group_read<0>();
      if (Until == Waits::for_writes) bulk_wait_group<0>();
      fence_acq_rel<Scope::gpu>();
      set(p);
      return;
    }
    if (thread_idx() == 0) await(p), fence_acq_rel<Scope::gpu>();
    cta::sync();
    read(p);
  }
};

TEST(Handover, OfAStoreIsAfterTheFullWait) {
  sim::Finding const f = finding_that_advises<HandsOverAStore<Waits::for_reads>>(
      FindingKind::data_race, "a bulk_wait_group<0>, after the bulk_commit_group, by warp 0 lane 0",
      kTwo);
  EXPECT_NE(f.order.find("before the fence at"), std::string::npos) << f.order;
  expect_silent<HandsOverAStore<Waits::for_writes>>(kTwo);
}

enum class Fence : std::uint8_t { none, writers, reader };

/// TMA reads what threads of the other CTA wrote.
template <Fence By> struct LoadsWhatThreadsWrote : Hands {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (block_idx().x == 0) {
      write(p);
      if (By == Fence::writers) fence_proxy_async();
      cta::sync();
      if (thread_idx() == 0) fence_acq_rel<Scope::gpu>(), set(p);
      return;
    }
    SharedAddr const full = shared_address(&smem.full);
    if (thread_idx() == 0) {
      mbarrier_init(full, 1);
      fence_mbarrier_init();
      await(p);
      fence_acq_rel<Scope::gpu>();
      if (By == Fence::reader) fence_proxy_async();
      mbarrier_arrive_expect_tx(full, 256);
      bulk_load(shared_address(&smem.tile[0]), p.out, 256, full);
    }
    cta::sync();
    mbarrier_wait_parity(full, 0);
    st_global(word(p, 128 + thread_idx()),
              ld_shared<std::uint32_t>(shared_address(&smem.tile[thread_idx()])));
  }
};

TEST(Handover, ToTheAsynchronousProxyTakesItsFence) {
  sim::Finding const f = finding_that_advises<LoadsWhatThreadsWrote<Fence::none>>(
      FindingKind::proxy_race, "a fence_proxy_async by the first after the write", kTwo);
  EXPECT_SAYS(f, "through the generic proxy");
  for (sim::Options const& schedule : every_schedule(4))
    EXPECT_FALSE(report_of<LoadsWhatThreadsWrote<Fence::none>>(schedule, kTwo).ok());
  expect_silent<LoadsWhatThreadsWrote<Fence::writers>>(kTwo);
  expect_silent<LoadsWhatThreadsWrote<Fence::reader>>(kTwo);
}

/// A third CTA hands on what the first wrote, and fences the proxies for the last.
template <bool Fences> struct FencesInBetween : Hands {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    int const self = static_cast<int>(block_idx().x);
    if (self == 0) {
      for (int i = 0; i < 64; ++i) st_global(word(p, i), 7u);
    } else {
      while (atom_add(flag(p), 0u) < static_cast<std::uint32_t>(self)) {
      }
      fence_acq_rel<Scope::gpu>();
    }
    if (self == 1 && Fences) fence_proxy_async();
    if (self < 2) {
      fence_acq_rel<Scope::gpu>();
      set(p);
      return;
    }
    SharedAddr const full = shared_address(&smem.full);
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(full, 256);
    bulk_load(shared_address(&smem.tile[0]), p.out, 256, full);
    mbarrier_wait_parity(full, 0);
    st_global(word(p, 128), ld_shared<std::uint32_t>(shared_address(&smem.tile[0])));
  }
};

TEST(Handover, TheProxysFenceMayStandAnywhereOnTheWay) {
  expect_silent<FencesInBetween<true>>({3, 1, 1});
  EXPECT_FALSE(report_of<FencesInBetween<false>>({}, {3, 1, 1}).ok());
}

/// A CTA reads what it has written itself, after a barrier.
template <bool ReadOnlyPath> struct ReadsWhatItWrote : Hands {
  void operator()(Params const& p, SharedStorage&) const {
    write(p);
    cta::sync();
    char* const from = word(p, 63 - thread_idx());
    st_global(word(p, 128 + thread_idx()),
              ReadOnlyPath ? ld_global_nc<std::uint32_t>(from) : ld_global<std::uint32_t>(from));
  }
};

/// One that hands over to another does, and one that overwrites what it has read so.
template <bool ReadOnlyPath> struct ReadsWhatAnotherWrote : Hands {
  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() != 0) return;
    if (block_idx().x == 0) {
      st_global(word(p, 0), 7u);
      fence_acq_rel<Scope::gpu>();
      set(p);
      return;
    }
    await(p);
    fence_acq_rel<Scope::gpu>();
    st_global(word(p, 128), ReadOnlyPath ? ld_global_nc<std::uint32_t>(word(p, 0))
                                         : ld_global<std::uint32_t>(word(p, 0)));
  }
};

template <bool ReadOnlyPath> struct OverwritesWhatItRead : Hands {
  void operator()(Params const& p, SharedStorage&) const {
    char* const place = p.in + 4 * thread_idx();
    std::uint32_t const read =
        ReadOnlyPath ? ld_global_nc<std::uint32_t>(place) : ld_global<std::uint32_t>(place);
    if (thread_idx() == 9) st_global(place, read + 1);
  }
};

TEST(Handover, NothingIsHandedOverToTheReadOnlyPath) {
  sim::Finding const f = finding_that_advises<ReadsWhatItWrote<true>>(
      FindingKind::data_race, "an ld_global in the place of the ld_global_nc");
  EXPECT_SAYS(f, "ld.global.nc reads ");
  EXPECT_SAYS(f, "the read-only path need not see what the launch writes");
  expect_silent<ReadsWhatItWrote<false>>();
  finding_that_advises<ReadsWhatAnotherWrote<true>>(
      FindingKind::data_race, "an ld_global in the place of the ld_global_nc", kTwo);
  expect_silent<ReadsWhatAnotherWrote<false>>(kTwo);
  finding_that_advises<OverwritesWhatItRead<true>>(FindingKind::data_race,
                                                   "an ld_global in the place of the ld_global_nc");
  expect_silent<OverwritesWhatItRead<false>>();
}

}  // namespace
}  // namespace tegula
