#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run_schedules.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/ordered_access.hpp"

/// What CTAs do to global memory over and over, and what orders it: accesses that later ones hide,
/// who may hand over by which store, and atomics that others have seen.
namespace tegula {
namespace {

using sim::FindingKind;
using ::testing::HasSubstr;

using Word = std::uint32_t;

/// `in` holds zeros at the start, the flag among them; `out` nothing.
struct Shares : Broken {
  TEGULA_DEVICE static Word* flag(Params const& p, int i = 0) {
    return reinterpret_cast<Word*>(p.in) + 16 * i;
  }
  TEGULA_DEVICE static Word* data(Params const& p, int i = 0) {
    return reinterpret_cast<Word*>(p.in) + 512 + i;
  }
  TEGULA_DEVICE static void await(Params const& p, Word value) {
    while (ld_global_acquire<Word, Scope::gpu>(flag(p)) != value) {
    }
  }
};

/// That the kernel is clean at every schedule.
template <class Kernel> void always_clean(Dim3 grid) {
  for_each_schedule([&](sim::Options const& options) {
    sim::Report const report = report_of<Kernel>(options, grid);
    EXPECT_TRUE(report.ok()) << report.text();
  });
}

/// That it has the race at every schedule, on its `line`.
template <class Kernel> void always_races(Dim3 grid) {
  for_each_schedule([&](sim::Options const& options) {
    all_findings(report_of<Kernel>(options, grid), FindingKind::data_race, Kernel::line);
  });
}

/// CTA 0 writes to one allocation; CTA 1, on one line, to another and to that one. Which of the two
/// lies before the other is the host's to choose.
template <bool Swapped> struct WritesTwoAllocations : Shares {
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    char* const other = Swapped ? p.in : p.out;
    char* const both = Swapped ? p.out : p.in;
    if (block_idx().x == 0) return st_global(both, Word{1});
    for (char* const to : {other, both}) st_global(to, Word{2});
  }
};

TEST(GlobalOrder, ARaceDoesNotDependOnWhereTheHostPutTheAllocations) {
  sim::Finding const one = only_finding(report_of<WritesTwoAllocations<false>>({}, {2, 1, 1}),
                                        FindingKind::data_race, WritesTwoAllocations<false>::line);
  EXPECT_EQ(one.coordinate, "byte 0 of in");
  sim::Finding const other = only_finding(report_of<WritesTwoAllocations<true>>({}, {2, 1, 1}),
                                          FindingKind::data_race, WritesTwoAllocations<true>::line);
  EXPECT_EQ(other.coordinate, "byte 0 of out");
}

/// CTAs add to the same words in turn (CUTLASS's Semaphore). One that loads them before its turn
/// races with the CTA before; its own store, in order, hides that load from nobody.
template <bool Early> struct AddsInTurn : Shares {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage&) const {
    Word sum = 0;
    Word* const own = data(p, lane_id());
    if (Early) sum = ld_global<Word>(own);
    if (lane_id() == 0) await(p, static_cast<Word>(block_idx().x));
    warp::sync();
    if (!Early) sum = ld_global<Word>(own);
    st_global(own, sum + 1);
    warp::sync();
    if (lane_id() == 0)
      st_global_release<Scope::gpu>(flag(p), static_cast<Word>(block_idx().x + 1));
  }
};
template <bool Early> struct AddsInTurnTogether : AddsInTurn<Early> {
  static constexpr bool concurrent = true;
};

TEST(GlobalOrder, AReadBeforeTheTurnIsNotHiddenByTheWriteAfter) {
  always_clean<AddsInTurn<false>>({3, 1, 1});
  always_clean<AddsInTurnTogether<false>>({3, 1, 1});
  always_races<AddsInTurn<true>>({3, 1, 1});
  always_races<AddsInTurnTogether<true>>({3, 1, 1});
}

/// A write that races, and then one that does not.
template <bool Early> struct WritesTwice : Shares {
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 1) {
      if (Early) st_global(data(p), Word{0});
      await(p, 1);
    }
    st_global(data(p), Word{7});
    if (block_idx().x == 0) st_global_release<Scope::gpu>(flag(p), Word{1});
  }
};

TEST(GlobalOrder, AWriteBeforeTheTurnIsNotHiddenByTheWriteAfter) {
  always_clean<WritesTwice<false>>({2, 1, 1});
  always_races<WritesTwice<true>>({2, 1, 1});
}

/// Two CTAs write, each a word, and set one flag; a third waits for it and reads both words.
enum class Sets { adds, releases, fences_and_stores };
template <Sets S> struct TwoSetOneFlag : Shares {
  static constexpr bool concurrent = true;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    int const cta = block_idx().x;
    if (cta == 2) {
      await(p, 2);
      for (int i : {0, 1}) ld_global<Word>(data(p, i));
      return;
    }
    st_global(data(p, cta), Word{1});
    if (S == Sets::releases) return st_global_release<Scope::gpu>(flag(p), Word{2});
    fence_acq_rel<Scope::gpu>();
    if (S == Sets::adds) {
      atom_add(flag(p), Word{1});
    } else {
      st_global_relaxed<Scope::gpu>(flag(p), Word{2});
    }
  }
};

TEST(GlobalOrder, AStoreByAnotherThreadEndsARelease) {
  // PTX ISA, "Observation Order": a read observes the write whose value it reads, and through
  // atomics, which read what they write over, those before. A store reads nothing.
  always_clean<TwoSetOneFlag<Sets::adds>>({3, 1, 1});
  for_each_schedule([](sim::Options const& options) {
    EXPECT_FALSE(report_of<TwoSetOneFlag<Sets::releases>>(options, {3, 1, 1}).ok());
    EXPECT_FALSE(report_of<TwoSetOneFlag<Sets::fences_and_stores>>(options, {3, 1, 1}).ok());
  });
}

/// CTA 0 releases; CTA 1 changes the flag, without a fence; CTA 2 waits for what that left.
template <bool ByAtomic> struct PassesOn : Shares {
  static constexpr int line = __LINE__ + 12;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      st_global(data(p), Word{3});
      st_global_release<Scope::gpu>(flag(p), Word{1});
    } else if (block_idx().x == 1 && ByAtomic) {
      atom_exch(flag(p), Word{2});
    } else if (block_idx().x == 1) {
      st_global_relaxed<Scope::gpu>(flag(p), Word{2});
    } else {
      await(p, 2);
      ld_global<Word>(data(p));
    }
  }
};

TEST(GlobalOrder, AnAtomicGoesOnWithARelease) {
  always_clean<PassesOn<true>>({3, 1, 1});
  always_races<PassesOn<false>>({3, 1, 1});
}

/// CTA 0 releases, and stores to the flag again without a fence: PTX ISA, "Release and Acquire
/// Patterns", a release followed by a strong write of the same thread to the same word. In between
/// CTA 1 may store to it, too.
template <bool Between> struct StoresAgain : Shares {
  static constexpr bool concurrent = true;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      st_global(data(p), Word{3});
      st_global_release<Scope::gpu>(flag(p), Word{1});
      if (Between) await(p, 2);
      st_global_relaxed<Scope::gpu>(flag(p), Word{3});
    } else if (block_idx().x == 1) {
      if (!Between) return;
      await(p, 1);
      st_global_relaxed<Scope::gpu>(flag(p), Word{2});
    } else {
      await(p, 3);
      ld_global<Word>(data(p));
    }
  }
};

TEST(GlobalOrder, AThreadsOwnStoreGoesOnWithItsRelease) {
  always_clean<StoresAgain<false>>({3, 1, 1});
  always_clean<StoresAgain<true>>({3, 1, 1});
}

/// Likewise among the warps of a CTA: two set one flag in shared memory, a third waits for it.
template <bool Adds> struct TwoWarpsSetOneFlag : Broken {
  struct SharedStorage {
    Word data[2];
    Word flag;
    template <class F> void name_buffers(F&& name) { name("data", data), name("flag", flag); }
  };
  static constexpr int threads = 96;
  void operator()(Params const&, SharedStorage& smem) const {
    SharedAddr const flag = shared_address(&smem.flag), data = shared_address(&smem.data[0]);
    if (thread_idx() == 0) st_shared(flag, Word{0});
    cta::sync();
    if (lane_id() != 0) return;
    if (warp_id() == 2) {
      while (ld_shared_acquire<Word>(flag) != 2) {
      }
      for (unsigned i : {0, 1}) ld_shared<Word>(data + 4 * i);
      return;
    }
    st_shared(data + 4 * static_cast<unsigned>(warp_id()), Word{1});
    if (!Adds) return st_shared_release(flag, Word{2});
    fence_acq_rel<Scope::cta>();
    atom_shared_add(flag, Word{1});
  }
};

TEST(GlobalOrder, AStoreByAnotherWarpEndsARelease) {
  always_clean<TwoWarpsSetOneFlag<true>>({1, 1, 1});
  int found = 0, all = 0;
  for_each_schedule([&](sim::Options const& options) {
    ++all;
    found += !report_of<TwoWarpsSetOneFlag<false>>(options).ok();
  });
  // The third warp may see the flag before the other has written.
  EXPECT_GT(found, all / 2);
}

/// CTA 0 hands a word to CTA 1 by a flag with fences of the GPU's scope on either side, and the
/// flag itself stored and loaded at scopes of its own.
template <Scope Stored, Scope Loaded, int ClusterCtas = 1> struct HandsByFlagOf : Shares {
  static constexpr Dim3 cluster = {ClusterCtas, 1, 1};
  static constexpr int store_line = __LINE__ + 7;
  static constexpr int load_line = __LINE__ + 8;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      st_global(data(p), Word{7});
      fence_acq_rel<Scope::gpu>();
      st_global_relaxed<Stored>(flag(p), Word{1});
    } else {
      while (ld_global_relaxed<Word, Loaded>(flag(p)) == 0) {
      }
      fence_acq_rel<Scope::gpu>();
      ld_global<Word>(data(p));
    }
  }
};

TEST(GlobalOrder, AFlagsScopesIncludeBothThreads) {
  // PTX ISA, "Morally strong operations": otherwise the two race, and nothing synchronises.
  always_clean<HandsByFlagOf<Scope::gpu, Scope::gpu>>({2, 1, 1});
  always_clean<HandsByFlagOf<Scope::gpu, Scope::cluster, 2>>({2, 1, 1});
  always_clean<HandsByFlagOf<Scope::cluster, Scope::cluster, 2>>({2, 1, 1});
  auto const races = []<class Kernel>(Kernel, char const* narrow, int line) {
    for_each_schedule([&](sim::Options const& options) {
      sim::Report const report = report_of<Kernel>(options, {2, 1, 1});
      int flags = 0, words = 0;
      for (sim::Finding const& f : report.findings) {
        EXPECT_EQ(f.kind, FindingKind::data_race) << report.text();
        words += f.coordinate == "byte 2048 of in";
        if (f.coordinate != "byte 0 of in") continue;
        ++flags;
        EXPECT_THAT(f.order,
                    HasSubstr("Scope::gpu for " + std::string(narrow) +
                              " at checker/global_order_test.cpp:" + std::to_string(line)));
      }
      EXPECT_GE(flags, 1) << report.text();
      EXPECT_EQ(words, 1) << report.text();
    });
  };
  using Store = HandsByFlagOf<Scope::cta, Scope::gpu>;
  using Load = HandsByFlagOf<Scope::gpu, Scope::cta>;
  using OfCluster = HandsByFlagOf<Scope::cluster, Scope::gpu>;
  using InCluster = HandsByFlagOf<Scope::gpu, Scope::cta, 2>;
  races(Store{}, "the st.relaxed", Store::store_line);
  races(OfCluster{}, "the st.relaxed", OfCluster::store_line);
  races(Load{}, "the ld.relaxed", Load::load_line);
  races(InCluster{}, "the ld.relaxed", InCluster::load_line);
}

/// A number and a word that says that it is there, stored at once, and loaded at once or one by
/// one.
template <bool AtOnce> struct Pair : Shares {
  static constexpr int line = __LINE__ + 9;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    auto* const both = reinterpret_cast<std::uint64_t*>(flag(p));
    if (block_idx().x == 0) {
      st_global_relaxed<Scope::gpu>(both, std::uint64_t{1} << 32 | 7);
    } else if (AtOnce) {
      ld_global_relaxed<std::uint64_t, Scope::gpu>(both);
    } else {
      ld_global_relaxed<Word, Scope::gpu>(flag(p) + 1);
    }
  }
};

TEST(GlobalOrder, StrongAccessesOfUnlikeSizesRace) {
  // PTX ISA, "Morally strong operations": "the operations overlap completely".
  always_clean<Pair<true>>({2, 1, 1});
  always_races<Pair<false>>({2, 1, 1});
  EXPECT_THAT(report_of<Pair<false>>({}, {2, 1, 1}).findings[0].order,
              HasSubstr("one size in the place of 8 and 4 bytes"));
}

/// Two CTAs store to a word, and nobody loads it.
template <Scope S> struct BothStore : Shares {
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() == 0) st_global_relaxed<S>(flag(p), Word{1});
  }
};

TEST(GlobalOrder, StoresOfTheCtasScopeRace) {
  always_clean<BothStore<Scope::gpu>>({2, 1, 1});
  always_races<BothStore<Scope::cta>>({2, 1, 1});
}

/// CTA 1 loads the flag, and then once more by a strong load. The latter meets CTA 0's store; that
/// does not hide that the former does not.
template <bool Strong> struct LoadsFlagTwice : Shares {
  static constexpr int line = __LINE__ + 5;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) return st_global_relaxed<Scope::gpu>(flag(p), Word{1});
    if (!Strong) {
      ld_global<Word>(flag(p));
    }
    ld_global_relaxed<Word, Scope::gpu>(flag(p));
  }
};

TEST(GlobalOrder, AStrongLoadDoesNotHideAPlainOne) {
  always_clean<LoadsFlagTwice<true>>({2, 1, 1});
  always_races<LoadsFlagTwice<false>>({2, 1, 1});
}

/// Each CTA draws a ticket; who draws the last puts the counter back by a plain store: thread 0
/// itself, or another one after a barrier. `Last` draws the last, or the one before.
enum class ResetBy { thread_zero, another, another_without_a_barrier };
template <ResetBy B, int Last = 2> struct DrawsTickets : Shares {
  static constexpr int threads = 64;
  struct SharedStorage {
    Word ticket;
    template <class F> void name_buffers(F&& name) { name("ticket", ticket); }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    Word ticket = 0;
    SharedAddr const shared = shared_address(&smem.ticket);
    if (thread_idx() == 0) {
      ticket = atom_add(flag(p), Word{1});
      st_shared(shared, ticket);
      if (B == ResetBy::thread_zero && ticket == Last) st_global(flag(p), Word{0});
    }
    if (B == ResetBy::thread_zero) return;
    if (B == ResetBy::another) cta::sync();
    if (thread_idx() != 40) return;
    if (B == ResetBy::another ? ld_shared<Word>(shared) == Last : block_idx().x == Last)
      st_global(flag(p), Word{0});
  }
};

TEST(GlobalOrder, WhoHasSeenAnAtomicComesAfterIt) {
  // PTX ISA, "Causality Order": X precedes Y in causality order where X precedes Z in observation
  // order and Z precedes Y in base causality order. X is another CTA's atomic. Z is the atomic that
  // draws the last ticket: it reads the value that X wrote, or one that atomics in between have
  // changed, and both are of the GPU's scope, so that X precedes it in observation order. Y is the
  // plain store: Z precedes it in program order, or by a barrier, both of which are base causality.
  // So no fence is needed for the counter itself. An atomic of PTX is one operation, a read and a
  // write, so that all of X precedes Y. Of what X's thread wrote before, this says nothing.
  always_clean<DrawsTickets<ResetBy::thread_zero>>({3, 1, 1});
  always_clean<DrawsTickets<ResetBy::another>>({3, 1, 1});
  for_each_schedule([](sim::Options const& options) {
    // Of the next ticket nobody has seen anything.
    EXPECT_FALSE((report_of<DrawsTickets<ResetBy::thread_zero, 1>>(options, {3, 1, 1}).ok()));
    EXPECT_FALSE((report_of<DrawsTickets<ResetBy::another, 1>>(options, {3, 1, 1}).ok()));
    EXPECT_FALSE(
        (report_of<DrawsTickets<ResetBy::another_without_a_barrier>>(options, {3, 1, 1}).ok()));
  });
}

/// Likewise the warps of a CTA.
template <int Last> struct WarpsDrawTickets : Shares {
  static constexpr int threads = 96;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() == 0 && atom_add(flag(p), Word{1}) == Last) st_global(flag(p), Word{0});
  }
};

TEST(GlobalOrder, AWarpThatHasSeenAnAtomicComesAfterIt) {
  always_clean<WarpsDrawTickets<2>>({1, 1, 1});
  for_each_schedule([](sim::Options const& options) {
    EXPECT_FALSE(report_of<WarpsDrawTickets<1>>(options).ok());
  });
}

/// A lock: the store that gives it back meets those who try for it.
template <bool Plain> struct Locks : Shares {
  static constexpr bool concurrent = true;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    for (int round = 0; round < 2; ++round) {
      while (atom_cas(flag(p), Word{0}, Word{1}) != 0) {
      }
      fence_acq_rel<Scope::gpu>();
      st_global(data(p), ld_global<Word>(data(p)) + 1);
      fence_acq_rel<Scope::gpu>();
      if (Plain) {
        st_global(flag(p), Word{0});
      } else {
        st_global_relaxed<Scope::gpu>(flag(p), Word{0});
      }
    }
  }
};

TEST(GlobalOrder, WhoeverGetsALockDoesNotSeeThoseWhoTryNext) {
  always_clean<Locks<false>>({3, 1, 1});
  for_each_schedule([](sim::Options const& options) {
    EXPECT_FALSE(report_of<Locks<true>>(options, {3, 1, 1}).ok());
  });
}

TEST(GlobalOrder, SaysThatAnAccessComesBeforeItsThreadsAcquire) {
  auto const order_of = []<class Kernel>(Kernel) {
    return report_of<Kernel>({}, {2, 1, 1}).findings.at(0).order;
  };
  EXPECT_THAT(order_of(WritesTwice<true>{}), HasSubstr("the second access behind the ld.acquire"));
  EXPECT_THAT(order_of(AddsInTurn<true>{}), HasSubstr("the second access behind the ld.acquire"));
}

/// CTA 1 takes what CTA 0 has handed over before its fence, which another word is for.
struct FencesTooLate : Shares {
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      st_global(data(p), Word{1});
      fence_acq_rel<Scope::gpu>();
      atom_exch(flag(p), Word{1});
      return;
    }
    while (atom_add(flag(p), Word{0}) == 0) {
    }
    ld_global<Word>(data(p));
    fence_acq_rel<Scope::gpu>();
    atom_exch(flag(p, 1), Word{1});
  }
};

TEST(GlobalOrder, SaysThatAFenceComesTooLate) {
  sim::Report const report = report_of<FencesTooLate>({}, {2, 1, 1});
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_THAT(report.findings[0].order,
              ::testing::AllOf(HasSubstr("the second access behind the fence at"),
                               HasSubstr("or a fence_acq_rel<Scope::gpu> between the atom at")));
}

}  // namespace
}  // namespace tegula
