#include <gtest/gtest.h>

#include <bit>

#include "broken_kernel.hpp"
#include "run_kernel.hpp"
#include "run_schedules.hpp"
#include "synchronisation_kernels.hpp"

/// The instructions of synchronisation_kernels.hpp under every schedule, against a plain statement
/// of what the PTX ISA says they do; and what is found where they are used wrongly.
namespace tegula {
namespace {

using namespace synchronisation_kernels;
using sim::Finding;
using sim::FindingKind;
using Values = std::vector<std::uint32_t>;

template <class Kernel> void expect_out(Values const& in, Values const& expected) {
  for_each_schedule([&](sim::Options const& options) {
    sim::Machine machine(options);
    EXPECT_EQ(run_kernel<Kernel>(machine, in), expected) << schedule_text(options);
  });
}
std::uint32_t low(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
std::uint32_t high(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

TEST(Synchronisation, AThreadArrivesForOthers) { expect_out<ArrivesForOthers>({}, {0, 0, 1}); }

TEST(Synchronisation, CopiesArriveByThemselves) {
  auto const in = words(CopiesArrive<true>::in_words);
  Values expected;
  for (std::size_t stage = 0; stage < 2; ++stage) {
    for (std::size_t t = 0; t < 64; ++t)
      expected.push_back(in[4 * (64 * stage + (t + 33) % 64) + t % 4]);
  }
  expect_out<CopiesArrive<true>>(in, expected);
  expect_out<CopiesArrive<false>>(in, expected);
}

TEST(Synchronisation, AWaitOfTheClustersScopeAcquiresWhatOtherCtasReleased) {
  Values expected(32, 22u);
  expected.insert(expected.end(), 32, 11u);
  expect_out<WaitsForCluster<false>>({11, 22}, expected);
  expect_out<WaitsForCluster<true>>({11, 22}, expected);
}

TEST(Synchronisation, FlagsHandWordsOn) {
  expect_out<Flags>({5, 6, 7}, {5, 7, 0, 1, 2, 5 + 3 * 6 + 5 * 7});
  expect_out<FlagBetweenCtas>({21}, {21, 1, 42});
}

TEST(Synchronisation, TheCtasOfACooperativeLaunchMeet) {
  Values in, expected;
  for (std::uint32_t i = 0; i < CtasMeet::in_words; ++i) {
    in.push_back(1000 * i);
    expected.push_back(1000 * ((i + 3 * CtasMeet::threads) % CtasMeet::in_words) + 3);
  }
  expected.push_back(6 * CtasMeet::ctas);
  expect_out<CtasMeet>(in, expected);
}

TEST(Synchronisation, AtomicsOf64Bits) {
  std::uint64_t const n = 192, sum = n * (n - 1) / 2;
  Values expected;
  for (std::uint64_t const word :
       {n << 32 | sum, ~(sum << 20) + 1, std::uint64_t{191} << 33, ~(std::uint64_t{4} << 40) + 1,
        std::bit_cast<std::uint64_t>(48.0), std::uint64_t{0x123456789}, ~std::uint64_t{1}}) {
    expected.push_back(low(word));
    expected.push_back(high(word));
  }
  expect_out<WideAtomics>({}, expected);
}

TEST(Synchronisation, AtomicsOnSharedMemoryOfTheCtaAndOfItsPeers) {
  Values expected;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    std::uint64_t const wide = std::uint64_t{2016} << 30;
    expected.insert(expected.end(), {low(wide), high(wide), 2016 + 64 * (rank ^ 1), 0, 22, 21, 21,
                                     77, static_cast<std::uint32_t>(10 - 63)});
  }
  expect_out<SharedAtomics>({}, expected);
}

TEST(Synchronisation, ReductionsOfAPeersMemoryCompleteItsBytes) {
  Values expected;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    expected.insert(expected.end(),
                    {0, 16, 100 + 496 + 32 * (rank ^ 1), static_cast<std::uint32_t>(-20), 121});
  }
  expect_out<AsyncReductions>({}, expected);
}

TEST(Synchronisation, ABulkCopyGoesToAPeer) {
  auto const in = words(CopiesToPeer::in_words);
  Values expected;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    auto const from = in.begin() + static_cast<std::ptrdiff_t>(32 * ((rank + 3) % 4));
    expected.insert(expected.end(), from, from + 32);
  }
  expect_out<CopiesToPeer>(in, expected);
}

TEST(Synchronisation, LanesOfAWarpMeetAtAnUnalignedBarrier) {
  auto const in = words(UnalignedBarrier::in_words);
  Values expected;
  for (std::size_t t = 0; t < 64; ++t) {
    std::size_t const other = (t + 40) % 64;
    expected.push_back(in[other] + (other % 32 < 16 ? 0 : 1));
  }
  expect_out<UnalignedBarrier>(in, expected);
}

TEST(Synchronisation, TheLowestLaneOfTheMaskIsElected) {
  Values expected(32, 0u);
  expected[0] = expected[16] = 1;
  expect_out<ElectsAmongSome>({}, expected);
}

// What is found.

/// Base: a cluster of `Ctas` CTAs of two warps.
template <int Ctas> struct Wrong : Broken {
  static constexpr int threads = 64;
  static constexpr Dim3 cluster = {Ctas, 1, 1};
  struct SharedStorage {
    Mbarrier full;
    alignas(16) std::uint32_t words[64];
    template <class F> void name_buffers(F&& name) {
      name("full", full);
      name("words", words);
    }
  };
  static SharedAddr full(SharedStorage const& smem) { return shared_address(&smem.full); }
  static SharedAddr word(SharedStorage const& smem, int i) {
    return shared_address(smem.words + i);
  }
};
template <class Kernel> sim::Report report_of_cluster() {
  return report_of<Kernel>(sim::Options{}, Kernel::cluster);
}
/// The only finding, whatever its line.
template <class Kernel> Finding found(FindingKind kind) {
  sim::Report const report = report_of_cluster<Kernel>();
  EXPECT_EQ(report.findings.size(), 1u) << report.text();
  if (report.findings.empty()) return {};
  EXPECT_EQ(sim::to_string(report.findings[0].kind), sim::to_string(kind)) << report.text();
  return report.findings[0];
}

template <int Count, int Init> struct Arrives : Wrong<1> {
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    mbarrier_init(full(smem), Init);
    mbarrier_arrive(full(smem));
    mbarrier_arrive(full(smem), Count);
  }
};

TEST(SynchronisationChecker, ArrivalsThatThePhaseHasNoRoomFor) {
  EXPECT_SAYS((found<Arrives<0, 4>>(FindingKind::invalid_operand)),
              "mbarrier.arrive 0 times: the count must be 1 to 1048575");
  EXPECT_SAYS((found<Arrives<1 << 20, 4>>(FindingKind::invalid_operand)),
              "mbarrier.arrive 1048576 times");
  EXPECT_SAYS(
      (found<Arrives<4, 4>>(FindingKind::mbarrier_misuse)),
      "mbarrier.arrive counts 4 arrivals on element 0 of full, whose phase lacks 3 of the 4 that its "
      "init");
  EXPECT_TRUE((report_of_cluster<Arrives<3, 4>>().ok()));
}

/// One warp's cp.async, read by the other, which `Waits` for the barrier at which they arrive; the
/// first warp `Stays` until then.
template <bool Waits, bool Inits, bool Stays> struct ReadsCopies : Wrong<1> {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (Inits && thread_idx() == 0) mbarrier_init(full(smem), 32);
    cta::sync();
    if (warp_id() == 0) {
      cp_async_ca<4>(word(smem, lane_id()), p.in + 4 * lane_id());
      cp_async_mbarrier_arrive_noinc(full(smem));
    }
    cta::sync();
    if (warp_id() == 1) {
      if (Waits) mbarrier_wait_parity(full(smem), 0);
      st_global(p.out + 4 * lane_id(), ld_shared<std::uint32_t>(word(smem, lane_id())));
    }
    if (Stays) cta::sync();
  }
};

TEST(SynchronisationChecker, CopiesReadBeforeTheyHaveArrived) {
  EXPECT_TRUE((report_of_cluster<ReadsCopies<true, true, true>>().ok()));
  EXPECT_TRUE((report_of_cluster<ReadsCopies<true, true, false>>().ok()));
  char const* const order =
      "a wait for the mbarrier of the cp.async.mbarrier.arrive that follows it";
  Finding const flying = found<ReadsCopies<false, true, true>>(FindingKind::async_read_early);
  EXPECT_SAYS(flying, "while a cp.async into it is in flight that warp 0 lane 0 issued");
  EXPECT_NE(flying.order.find(order), std::string::npos) << flying.order;
  // Where the thread that issued it has exited, the copy has landed.
  Finding const landed = found<ReadsCopies<false, true, false>>(FindingKind::data_race);
  EXPECT_NE(landed.order.find(order), std::string::npos) << landed.order;
  sim::Report const uninitialised = report_of_cluster<ReadsCopies<false, false, true>>();
  EXPECT_NE(uninitialised.text().find(
                "cp.async.mbarrier.arrive on element 0 of full, which is no mbarrier"),
            std::string::npos)
      << uninitialised.text();
}

/// A word for the other CTA; the wait that is to show it has an order and a scope.
template <MemoryOrder O, Scope S> struct WaitsWith : Wrong<2> {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) {
      mbarrier_init(full(smem), 1);
      fence_mbarrier_init();
    }
    cluster::sync();
    if (thread_idx() == 0) {
      st_shared_cluster(mapa(word(smem, 0), cluster_cta_rank() ^ 1), 5u);
      mbarrier_arrive_cluster_release(mapa(full(smem), cluster_cta_rank() ^ 1));
      mbarrier_wait_parity<O, S>(full(smem), 0);
      st_global(p.out + 4 * cluster_cta_rank(), ld_shared<std::uint32_t>(word(smem, 0)));
    }
    cluster::sync();
  }
};

TEST(SynchronisationChecker, AWaitOfTooLittleOrder) {
  EXPECT_TRUE((report_of_cluster<WaitsWith<MemoryOrder::acquire, Scope::cluster>>().ok()));
  EXPECT_SAYS((found<WaitsWith<MemoryOrder::acquire, Scope::cta>>(FindingKind::data_race)),
              "and nothing orders the two");
  EXPECT_SAYS((found<WaitsWith<MemoryOrder::relaxed, Scope::cluster>>(FindingKind::data_race)),
              "and nothing orders the two");
}

/// A word and a flag, to another CTA of the grid.
template <MemoryOrder Store, MemoryOrder Load, Scope S> struct Hands : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    auto* const word = p.in;
    auto* const flag = p.in + 8;
    if (block_idx().x == 0) {
      st_global(word, 5u);
      if constexpr (Store == MemoryOrder::release) {
        st_global_release<S>(flag, 1u);
      } else {
        st_global_relaxed<S>(flag, 1u);
      }
      return;
    }
    auto const look = [&] {
      if constexpr (Load == MemoryOrder::acquire) {
        return ld_global_acquire<std::uint32_t, S>(flag);
      } else {
        return ld_global_relaxed<std::uint32_t, S>(flag);
      }
    };
    while (look() == 0) {
    }
    st_global(p.out, ld_global<std::uint32_t>(word));
  }
};
template <MemoryOrder Store, MemoryOrder Load, Scope S> sim::Report report_of_hands() {
  return report_of<Hands<Store, Load, S>>(sim::Options{}, {2, 1, 1});
}

TEST(SynchronisationChecker, AFlagThatDoesNotOrderWhatItStandsFor) {
  using enum MemoryOrder;
  EXPECT_TRUE((report_of_hands<release, acquire, Scope::gpu>().ok()));
  EXPECT_TRUE((report_of_hands<release, acquire, Scope::sys>().ok()));
  auto const races = [](sim::Report const& report, std::size_t count = 1) {
    ASSERT_EQ(report.findings.size(), count) << report.text();
    for (sim::Finding const& finding : report.findings) {
      EXPECT_EQ(sim::to_string(finding.kind), "data_race") << report.text();
      EXPECT_SAYS(finding, "with nothing between the two CTAs that orders them");
    }
  };
  races(report_of_hands<relaxed, acquire, Scope::gpu>());
  races(report_of_hands<release, relaxed, Scope::gpu>());
  races(report_of_hands<release, acquire, Scope::cta>(), 2);  // of the flag itself, too
}

/// A plain access meets an atomic.
template <bool Atomic> struct Meets : Wrong<1> {
  static constexpr int line = __LINE__ + 8;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) st_shared(word(smem, 0), 0u);
    cta::sync();
    if (thread_idx() == 0) atom_shared_add(word(smem, 0), 1u);
    if (thread_idx() == 32 && Atomic) atom_shared_add(word(smem, 0), 1u);
    if (thread_idx() == 32 && !Atomic) st_shared(word(smem, 0), 1u);
    cta::sync();
    if (thread_idx() == 0) st_global(p.out, ld_shared<std::uint32_t>(word(smem, 0)));
  }
};

TEST(SynchronisationChecker, AtomicsMeetOneAnotherAndNothingElse) {
  EXPECT_TRUE(report_of_cluster<Meets<true>>().ok());
  EXPECT_SAYS(found<Meets<false>>(FindingKind::data_race), "and nothing orders the two");
}

template <class T, int Offset> struct MisalignedAtomic : Wrong<1> {
  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() == 0) atom_add(reinterpret_cast<T*>(p.in + Offset), T{1});
  }
};
struct SharedAtomicOnNothing : Wrong<1> {
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) atom_shared_add(word(smem, 3), 1u);
  }
};
struct AtomicOfThePeers : Wrong<2> {
  void operator()(Params const&, SharedStorage& smem) const {
    if (thread_idx() == 0) st_shared(word(smem, 0), 0u);
    cluster::sync();
    if (thread_idx() == 0 && cluster_cta_rank() == 0) atom_shared_add(mapa(word(smem, 0), 1), 1u);
    cluster::sync();
  }
};

TEST(SynchronisationChecker, OperandsOfAtomics) {
  EXPECT_SAYS((found<MisalignedAtomic<std::uint64_t, 4>>(FindingKind::misaligned)),
              "atom of 8 bytes at byte 4 of in");
  EXPECT_SAYS(found<SharedAtomicOnNothing>(FindingKind::uninitialized_read),
              "atom.shared reads element 3 of words, which nobody has written");
  EXPECT_SAYS(
      found<AtomicOfThePeers>(FindingKind::invalid_operand),
      "atom.shared of the CTA's scope on element 0 of words of CTA 1 of the cluster: it takes "
      "only the CTA's own (shared::cta)");
}

/// A copy to the other CTA: of `Bytes` from word `From` to word `To`, signalled in CTA `Signals`.
template <int Bytes, int From, int To, int Signals> struct CopiesWrongly : Wrong<2> {
  void operator()(Params const&, SharedStorage& smem) const {
    st_shared(word(smem, thread_idx()), 1u);
    if (thread_idx() == 0) {
      mbarrier_init(full(smem), 1);
      fence_mbarrier_init();
    }
    fence_proxy_async_shared();
    cluster::sync();
    if (thread_idx() == 0 && cluster_cta_rank() == 0)
      bulk_copy_cluster(mapa(word(smem, To), 1), word(smem, From), Bytes,
                        mapa(full(smem), Signals));
    cluster::sync();
  }
};

TEST(SynchronisationChecker, OperandsOfCopiesToAPeer) {
  EXPECT_SAYS((found<CopiesWrongly<24, 0, 32, 1>>(FindingKind::invalid_operand)),
              "cp.async.bulk of 24 bytes: it moves a multiple of 16");
  EXPECT_SAYS((found<CopiesWrongly<16, 0, 32, 0>>(FindingKind::invalid_operand)),
              "completes on an mbarrier of CTA 0: it must be the same one");
  sim::Report const misaligned = report_of_cluster<CopiesWrongly<16, 1, 32, 1>>();
  ASSERT_FALSE(misaligned.ok());
  EXPECT_EQ(sim::to_string(misaligned.findings[0].kind), "misaligned") << misaligned.text();
}

/// The other CTA's word is read before the reduction of it has been waited for.
struct ReadsReductionEarly : Wrong<2> {
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) {
      st_shared(word(smem, 0), 0u);
      mbarrier_init(full(smem), 1);
      fence_mbarrier_init();
      fence_proxy_async_shared();
      mbarrier_arrive_expect_tx(full(smem), 4);
    }
    cluster::sync();
    if (thread_idx() == 0) {
      red_async_add(mapa(word(smem, 0), cluster_cta_rank() ^ 1), 3u,
                    mapa(full(smem), cluster_cta_rank() ^ 1));
      cluster_read(p, smem);
      mbarrier_wait_parity(full(smem), 0);
    }
    cluster::sync();
  }
  static void cluster_read(Params const& p, SharedStorage& smem) {
    st_global(p.out + 4 * cluster_cta_rank(), ld_shared<std::uint32_t>(word(smem, 0)));
  }
};

TEST(SynchronisationChecker, AReductionThatNobodyHasWaitedFor) {
  EXPECT_FALSE(report_of_cluster<ReadsReductionEarly>().ok());
}

template <int Nanoseconds> struct Sleeps : Wrong<1> {
  void operator()(Params const&, SharedStorage&) const { nanosleep(Nanoseconds); }
};
struct ElectedByAnOutsider : Wrong<1> {
  void operator()(Params const&, SharedStorage&) const {
    if (lane_id() < 4) warp::elect_one(0x7u);
  }
};
struct BarriersDiffer : Wrong<1> {
  void operator()(Params const&, SharedStorage&) const {
    cta::barrier_sync(lane_id() < 16 ? 1 : 2, 64);
  }
};

TEST(SynchronisationChecker, OtherOperands) {
  EXPECT_TRUE(report_of_cluster<Sleeps<1'000'000>>().ok());
  EXPECT_SAYS(found<Sleeps<1'000'001>>(FindingKind::invalid_operand),
              "nanosleep of 1000001 ns: it takes 0 to 1000000");
  EXPECT_SAYS(found<ElectedByAnOutsider>(FindingKind::invalid_operand),
              "elect.sync is executed by a lane that its mask 0x00000007 leaves out");
  EXPECT_SAYS(found<BarriersDiffer>(FindingKind::divergence),
              "barrier.cta.sync is not executed by the lanes of the warp together");
}

}  // namespace
}  // namespace tegula
