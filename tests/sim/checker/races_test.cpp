#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "racing_kernel.hpp"
#include "tegula/arch/stmatrix.hpp"
#include "tegula/tensor/vector.hpp"

/// Races in shared memory between the threads of a CTA.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

template <bool Syncs> struct WritesForAnotherWarp : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() == 1) st_shared(word(smem, lane_id()), 7u, kOne);
    if (Syncs) cta::sync();
    if (warp_id() == 0) ld_shared<std::uint32_t>(word(smem, 31 - lane_id()), kOther);
  }
};

TEST(Races, ABarrierOrdersAWriteBeforeARead) {
  expect_clean<WritesForAnotherWarp<true>>();
  Finding const f = expect_race<WritesForAnotherWarp<false>>(FindingKind::data_race);
  EXPECT_EQ(
      f.message,
      "ld.shared reads element 31 of words, which warp 1 lane 31 wrote by st.shared (checker/races_test.cpp:1), "
      "and nothing orders the two");
  EXPECT_EQ(
      f.order,
      "a cta::sync between them, or an arrival on an mbarrier and a wait for it, would order them");
  EXPECT_EQ("checker/" + documented("WritesForAnotherWarp<false>"),
            sim::to_string(f, "WritesForAnotherWarp<false>"));
  EXPECT_EQ(f.warp, 0);
  EXPECT_EQ(f.other_warp, 1);
  EXPECT_EQ(f.other_lane, 31);
  EXPECT_EQ(f.count, 32);
  EXPECT_TRUE(report_of<WritesForAnotherWarp<false>>({.races = false}).ok());
  EXPECT_TRUE(report_of<WritesForAnotherWarp<false>>({.check = false}).ok());
}

template <bool Syncs> struct OverwritesForAnotherWarp : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() == 1) ld_shared<Vector<float, 4>>(word(smem, 4 * lane_id()), kOne);
    if (Syncs) cta::sync();
    if (warp_id() == 0) st_shared(word(smem, 2 * lane_id()), 7u, kOther);
  }
};

TEST(Races, ABarrierOrdersAReadBeforeAWrite) {
  expect_clean<OverwritesForAnotherWarp<true>>();
  Finding const f = expect_race<OverwritesForAnotherWarp<false>>(FindingKind::data_race);
  EXPECT_SAYS(f, "st.shared writes element 0 of words, which warp 1 lane 0 read by ld.shared (");
}

template <bool Syncs> struct WritesTwice : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() == 0) st_shared(word(smem, lane_id()), 7u, kOne);
    if (Syncs) cta::sync();
    if (warp_id() == 1) st_shared(word(smem, lane_id()), 8u, kOther);
  }
};

TEST(Races, TwoWrites) {
  expect_clean<WritesTwice<true>>();
  expect_race<WritesTwice<false>>(FindingKind::data_race);
}

/// Lanes of a warp pass words to one another: a shuffle orders nothing, bar.warp.sync does.
template <bool Syncs> struct PassesWordsInAWarp : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (lane_id() < 16) st_shared(word(smem, thread_idx()), 7u, kOne);
    warp::shfl(lane_id(), 0);
    if (Syncs) warp::sync();
    if (lane_id() >= 16) ld_shared<std::uint32_t>(word(smem, thread_idx() - 16), kOther);
  }
};

TEST(Races, LanesOfAWarpNeedItsBarrier) {
  expect_clean<PassesWordsInAWarp<true>>();
  Finding const f = expect_race<PassesWordsInAWarp<false>>(FindingKind::data_race);
  EXPECT_EQ(f.order, "a warp::sync between them would order them");
}

/// ... of the lanes that take part in it.
template <std::uint32_t Mask> struct SyncsSomeLanes : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (thread_idx() == 5) st_shared(word(smem, 5), 7u, kOne);
    if ((Mask >> lane_id() & 1) != 0) warp::sync(Mask);
    if (thread_idx() == 6) ld_shared<std::uint32_t>(word(smem, 5), kOther);
  }
};

TEST(Races, ABarrierOfSomeLanesOrdersThose) {
  expect_clean<SyncsSomeLanes<0x60u>>();
  expect_race<SyncsSomeLanes<0x0fu>>(FindingKind::data_race);
}

/// The halves of a word are places of their own.
template <bool Same> struct WritesHalves : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    SharedAddr const first = word(smem, 0);
    if (lane_id() != 0) return;
    if (warp_id() == 0) st_shared(first + 2, std::uint16_t{5}, kOne);
    if (warp_id() == 1) st_shared(first + (Same ? 3 : 1), std::uint8_t{6}, kOther);
  }
};

TEST(Races, HalvesOfAWordArePlacesOfTheirOwn) {
  expect_clean<WritesHalves<false>>();
  Finding const f = expect_race<WritesHalves<true>>(FindingKind::data_race);
  EXPECT_EQ(f.coordinate, "byte 3 of element 0 of words");
}

/// bar.arrive releases and bar.sync acquires; bar.arrive acquires nothing.
template <int Consumer> struct NamedBarrier : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() == 0) {
      st_shared(word(smem, lane_id()), 7u, kOne);
      Consumer == 2 ? cta::bar_sync(1, 64) : cta::bar_arrive(1, 64);
    } else {
      if (Consumer == 1) cta::bar_sync(1, 64);
      if (Consumer == 2) cta::bar_arrive(1, 64);
      ld_shared<std::uint32_t>(word(smem, lane_id()), kOther);
      if (Consumer == 0) cta::bar_sync(1, 64);
    }
  }
};

/// Twelve warps read a word, and the one beside it; all, or all but the first, tell warp 0.
template <bool All> struct ManyReaders : Racing {
  static constexpr int threads = 416, counted = All ? threads : threads - 32;
  void operator()(Params const&, SharedStorage& smem) const {
    if (warp_id() < 2)
      begin(smem);
    else
      cta::sync();
    if (warp_id() != 0) {
      for (int i = 0; i < 2; ++i) ld_shared<std::uint32_t>(word(smem, i), kOne);
      if (All || warp_id() != 1) cta::bar_arrive(1, counted);
    } else {
      cta::bar_sync(1, counted);
      if (lane_id() == 0) st_shared(word(smem, 0), 7u, kOther);
    }
  }
};

TEST(Races, ManyReadersAreAllRemembered) {
  expect_clean<ManyReaders<true>>();
  expect_race<ManyReaders<false>>(FindingKind::data_race);
}

TEST(Races, ANamedBarrierIsWaitedForBySyncAlone) {
  expect_clean<NamedBarrier<1>>();
  expect_race<NamedBarrier<0>>(FindingKind::data_race);
  expect_race<NamedBarrier<2>>(FindingKind::data_race);
}

/// An arrival at an mbarrier releases, a wait acquires; by one thread for others that it
/// synchronises with.
template <bool Passes> struct HandsOver : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem, 32);
    if (warp_id() == 0) {
      st_shared(word(smem, lane_id()), 7u, kOne);
      mbarrier_arrive(full(smem));
    } else {
      if (lane_id() == 3) mbarrier_wait_parity(full(smem), 0);
      if (Passes) warp::sync();
      if (lane_id() != 3) ld_shared<std::uint32_t>(word(smem, lane_id()), kOther);
    }
  }
};

TEST(Races, AnMbarrierOrdersThoseWhoWait) {
  expect_clean<HandsOver<true>>();
  expect_race<HandsOver<false>>(FindingKind::data_race);
}

/// Hands words over by an mbarrier, with or without fences between threads beside it.
template <bool Fences> struct HandsOverWithFences : Racing {
  static constexpr int arrival = __LINE__ + 6, wait = arrival + 2;
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem, 32);
    if (warp_id() == 0) {
      st_shared(word(smem, lane_id()), 7u, kOne);
      if (Fences) fence_acq_rel<Scope::cta>();
      mbarrier_arrive(full(smem));
    } else {
      mbarrier_wait_parity(full(smem), 0);
      if (Fences) fence_acq_rel<Scope::cta>();
      ld_shared<std::uint32_t>(word(smem, lane_id()), kOther);
    }
  }
};

/// A relaxed arrival, or wait, orders what a fence between threads beside it does.
TEST(Races, RelaxedArrivalsAndWaitsNeedAFence) {
  auto const relaxed = [](int line, Operation operation) {
    return sim::Mutant{"checker/races_test.cpp", line, operation, Mutation::weakened};
  };
  using With = HandsOverWithFences<true>;
  using Without = HandsOverWithFences<false>;
  for_each_schedule([&](sim::Options options) {
    EXPECT_TRUE(report_of<Without>(options).ok()) << schedule_text(options);
    for (auto const& [with, without] :
         {std::pair(relaxed(With::arrival, Operation::mbarrier_arrive),
                    relaxed(Without::arrival, Operation::mbarrier_arrive)),
          std::pair(relaxed(With::wait, Operation::mbarrier_wait),
                    relaxed(Without::wait, Operation::mbarrier_wait))}) {
      options.mutant = with;
      EXPECT_TRUE(report_of<With>(options).ok()) << schedule_text(options);
      options.mutant = without;
      EXPECT_FALSE(report_of<Without>(options).ok()) << schedule_text(options);
    }
  });
}

/// stmatrix writes for the lanes that hold the elements, ldmatrix reads for those that get them.
template <bool Others, bool Syncs> struct MovesAMatrix : Racing {
  void operator()(Params const&, SharedStorage& smem) const {
    begin(smem);
    if (warp_id() != 0) return;
    std::uint32_t r[1] = {static_cast<std::uint32_t>(lane_id())};
    int const row = lane_id() % 8;
    stmatrix<1>(word(smem, 4 * row), r, kOne);
    if (Syncs) warp::sync();
    ldmatrix<1>(r, word(smem, 4 * (Others ? 7 - row : row)), kOther);
  }
};

TEST(Races, LanesOfAMatrixInstructionAccessTheirElements) {
  expect_clean<MovesAMatrix<false, false>>();
  expect_clean<MovesAMatrix<true, true>>();
  expect_race<MovesAMatrix<true, false>>(FindingKind::data_race);
}

}  // namespace
}  // namespace tegula
