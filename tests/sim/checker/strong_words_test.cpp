#include "run_schedules.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/ordered_access.hpp"

/// Words of shared memory that several threads change by strong instructions: what comes after
/// these because a read has observed them, and which of them meet.
namespace tegula {
namespace {

constexpr SourceLocation kOne{"checker/strong_words_test.cpp", 1};

/// Four warps; words that are all 0 at first.
struct Shares : Broken {
  static constexpr int threads = 128;
  struct SharedStorage {
    alignas(16) std::uint32_t words[32];
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };
  static SharedAddr word(SharedStorage const& smem, int i = 0) {
    return shared_address(&smem.words[i]);
  }
  static void begin(SharedStorage const& smem) {
    if (thread_idx() < 32) st_shared(word(smem, thread_idx()), 0u);
    cta::sync();
  }
  static bool first_lane() { return lane_id() == 0; }
};

/// The kernel is clean at every schedule.
template <class Kernel> void meets(Dim3 grid = {1, 1, 1}) {
  for_each_schedule([&](sim::Options const& options) {
    sim::Report const report = report_of<Kernel>(options, grid);
    EXPECT_TRUE(report.ok()) << report.text();
  });
}
/// At every schedule it has a race, of which one access is on `kOne`.
template <class Kernel> sim::Finding races(Dim3 grid = {1, 1, 1}) {
  sim::Finding first;
  for_each_schedule([&](sim::Options const& options) {
    sim::Report const report = report_of<Kernel>(options, grid);
    ASSERT_FALSE(report.ok());
    sim::Finding const& f = report.findings.front();
    EXPECT_EQ(sim::to_string(f.kind), std::string("data_race")) << report.text();
    EXPECT_TRUE(f.where.line == kOne.line || f.other.line == kOne.line) << report.text();
    if (first.message.empty()) first = f;
  });
  return first;
}

/// How the last of some threads knows that it is the last, and who puts the counter back.
enum class Ticket {
  add,           // an atomic of each
  counts,        // by the first of two counters alone
  red_and_load,  // a reduction of each; the last polls by a relaxed load
  barrier,       // reductions, and then a barrier
  warp,          // lane 0 draws for its warp, and after a warp::sync lane 1 puts it back
  shuffled,      // likewise, with nothing but a shuffle in between
  failed_cas,    // those who are not the last compare and swap in vain
  other_word,    // the counter that is put back is another than the one that is read
  wider,         // of eight bytes, of which the last puts four back
  twice,         // put back by a strong store, and after a second round by a plain one
};
template <Ticket T> struct LastPutsBack : Shares {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    SharedAddr const counter = word(smem), other = word(smem, 8);
    bool last = false;
    switch (T) {
      case Ticket::add:
        last = atom_shared_add(counter, 1u) == 127;
        break;
      case Ticket::counts:
        atom_shared_add(other, 1u);
        last = atom_shared_add(counter, 1u) == 127;
        break;
      case Ticket::red_and_load:
      case Ticket::other_word:
        if (T == Ticket::other_word && thread_idx() != 127) red_shared_add(other, 1u);
        red_shared_add(counter, 1u);
        if (thread_idx() == 127) {
          while (ld_shared_relaxed<std::uint32_t>(counter) != 128) {
          }
          last = true;
        }
        break;
      case Ticket::barrier:
        red_shared_add(counter, 1u);
        cta::sync();
        last = thread_idx() == 5;
        break;
      case Ticket::warp:
      case Ticket::shuffled:
        if (first_lane()) last = atom_shared_add(counter, 1u) == 3;
        if (T == Ticket::warp) warp::sync();
        last = warp::shfl(static_cast<std::uint32_t>(last), 0) != 0 && lane_id() == 1;
        break;
      case Ticket::failed_cas:
        if (thread_idx() != 0) atom_shared_cas(counter, 99u, 1u);
        last = thread_idx() == 0 && atom_shared_add(counter, 1u) == 0;
        break;
      case Ticket::wider:
        last = atom_shared_add(counter, std::uint64_t{1}) == 127;
        break;
      case Ticket::twice:
        for (int round = 0; round < 2; ++round) {
          last = atom_shared_add(counter, 1u) == 127;
          if (last && round == 0) st_shared_relaxed(counter, 0u);
          if (round == 0) cta::sync();
        }
        break;
    }
    if (!last) return;
    SharedAddr const to = T == Ticket::other_word ? other : counter;
    st_shared(to, 0u, kOne);
  }
};

TEST(StrongWords, TheLastWhoDrawsATicketMayPutTheCounterBack) {
  meets<LastPutsBack<Ticket::add>>();
  meets<LastPutsBack<Ticket::counts>>();
  meets<LastPutsBack<Ticket::red_and_load>>();
  meets<LastPutsBack<Ticket::barrier>>();
  meets<LastPutsBack<Ticket::warp>>();
  meets<LastPutsBack<Ticket::wider>>();
  meets<LastPutsBack<Ticket::twice>>();
}

TEST(StrongWords, WhatNoReadHasObservedIsNotOver) {
  races<LastPutsBack<Ticket::shuffled>>();
  races<LastPutsBack<Ticket::failed_cas>>();
  races<LastPutsBack<Ticket::other_word>>();
}

/// Threads of a CTA, and of another of the cluster, change a word of the first.
enum class How {
  both_of_cluster,
  one_of_cta,       // its own threads at the scope of the CTA
  both_scopes,      // and then at the scope of the cluster
  loads_of_cta,     // which they only load so
  sizes_differ,     // its own threads at four bytes, the others at eight
  barrier_between,  // one_of_cta, with a barrier of the cluster in between
  plain_load,       // the owner's load is not strong, and a barrier orders it after its own atomics
};
template <How H> struct ClusterMeets : Shares {
  static constexpr Dim3 cluster = {2, 1, 1};
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    cluster::sync();
    bool const owns = cluster_cta_rank() == 0;
    SharedAddr const counter = mapa(word(smem), 0);
    if (owns && first_lane()) {
      switch (H) {
        case How::both_of_cluster:
        case How::sizes_differ:
          atom_shared_add<Scope::cluster>(counter, 1u, kOne);
          break;
        case How::one_of_cta:
        case How::barrier_between:
          atom_shared_add<Scope::cta>(word(smem), 1u, kOne);
          break;
        case How::both_scopes:
          atom_shared_add<Scope::cta>(word(smem), 1u, kOne);
          atom_shared_add<Scope::cluster>(counter, 1u);
          break;
        case How::loads_of_cta:
          ld_shared_relaxed<std::uint32_t, Scope::cta>(word(smem), kOne);
          break;
        case How::plain_load:
          ld_shared<std::uint32_t>(word(smem), kOne);
          break;
      }
    }
    if (H == How::barrier_between) cluster::sync();
    if (!owns && first_lane()) {
      if (H == How::sizes_differ) {
        atom_shared_add<Scope::cluster>(counter, std::uint64_t{1});
      } else {
        atom_shared_add<Scope::cluster>(counter, 1u);
      }
    }
    cluster::sync();
  }
};

TEST(StrongWords, OnesOfTheClusterMeet) {
  meets<ClusterMeets<How::both_of_cluster>>({2, 1, 1});
  meets<ClusterMeets<How::barrier_between>>({2, 1, 1});
}

TEST(StrongWords, OneOfTheCtaDoesNotMeetAnotherCtas) {
  for (sim::Finding const& f : {races<ClusterMeets<How::one_of_cta>>({2, 1, 1}),
                                races<ClusterMeets<How::both_scopes>>({2, 1, 1}),
                                races<ClusterMeets<How::loads_of_cta>>({2, 1, 1})}) {
    EXPECT_NE(f.message.find("the two do not meet as strong accesses"), std::string::npos);
    EXPECT_NE(f.order.find("Scope::cluster for the "), std::string::npos) << f.order;
  }
}

TEST(StrongWords, SizesThatDifferDoNotMeet) {
  sim::Finding const f = races<ClusterMeets<How::sizes_differ>>({2, 1, 1});
  EXPECT_NE(f.order.find("one size in the place of "), std::string::npos) << f.order;
  races<ClusterMeets<How::plain_load>>({2, 1, 1});
}

/// Two warps change the halves of a word.
enum class Halves {
  each_its_own,  // and store it plainly thereafter
  the_others,    // the second stores what the first has added to
  of_a_pair,     // the first adds to both, and the second stores the lower one
};
template <Halves H> struct ChangeHalves : Shares {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    int const warp = warp_id();
    if (warp > 1 || !first_lane()) return;
    SharedAddr const lower = word(smem), upper = lower + 2;
    if (warp == 0 && H == Halves::of_a_pair) {
      red_shared_add(lower, Vector<half, 2>{});
    } else if (warp == 0) {
      atom_shared_add(lower, half{});
      if (H == Halves::each_its_own) st_shared(lower, std::uint16_t{1});
    } else {
      if (H != Halves::of_a_pair) atom_shared_add(upper, half{});
      st_shared(H == Halves::each_its_own ? upper : lower, std::uint16_t{2}, kOne);
    }
  }
};

TEST(StrongWords, TheHalvesOfAWordAreTwoPlaces) {
  meets<ChangeHalves<Halves::each_its_own>>();
  races<ChangeHalves<Halves::the_others>>();
  races<ChangeHalves<Halves::of_a_pair>>();
}

/// A word that warp 1 stores and warp 2 adds to is loaded by a thread that waits for one of them
/// only.
template <bool Both> struct LoadsAfterOne : Shares {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    int const warp = warp_id();
    if (warp == 3) return;
    if (warp == 1) {
      if (first_lane()) st_shared_relaxed(word(smem), 1u);
      return cta::bar_arrive(1, 64);
    }
    if (warp == 2) {
      if (first_lane()) atom_shared_add(word(smem), 1u);
      return cta::bar_arrive(2, 64);
    }
    cta::bar_sync(1, 64);
    if (Both) cta::bar_sync(2, 64);
    if (first_lane()) ld_shared<std::uint32_t>(word(smem), kOne);
    if (!Both) cta::bar_sync(2, 64);
  }
};

TEST(StrongWords, APlainLoadIsHeldAgainstEachOfThem) {
  meets<LoadsAfterOne<true>>();
  races<LoadsAfterOne<false>>();
}

/// A CTA hands its tile to the other of the cluster by a flag.
template <Scope Releases, Scope Acquires> struct HandsByFlag : Shares {
  static constexpr Dim3 cluster = {2, 1, 1};
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    cluster::sync();
    if (thread_idx() == 0) {
      if (cluster_cta_rank() == 0) {
        st_shared(word(smem, 4), 7u, kOne);
        st_shared_release<Releases>(Releases == Scope::cta ? word(smem) : mapa(word(smem), 0), 1u);
      } else {
        while (ld_shared_acquire<std::uint32_t, Acquires>(mapa(word(smem), 0)) == 0) {
        }
        ld_shared_cluster<std::uint32_t>(mapa(word(smem, 4), 0));
      }
    }
    cluster::sync();
  }
};

TEST(StrongWords, AReleaseOfTheCtaOrdersNothingForAnother) {
  meets<HandsByFlag<Scope::cluster, Scope::cluster>>({2, 1, 1});
  meets<HandsByFlag<Scope::gpu, Scope::cluster>>({2, 1, 1});
  for_each_schedule([&](sim::Options const& options) {
    sim::Report const report =
        report_of<HandsByFlag<Scope::cta, Scope::cluster>>(options, {2, 1, 1});
    // the flag, and what it hands over
    EXPECT_EQ(report.findings.size(), 2u) << report.text();
  });
}

}  // namespace
}  // namespace tegula
