// The pipelines in every order of the steps that do not commute.

#include <gtest/gtest.h>

#include <set>

#include "explore_pipeline.hpp"

namespace tegula::pipeline_kernels {
namespace {

using sim::Exploration;
using sim::FindingKind;

template <class Kernel> void expect_one_order() {
  Exploration const e = explore<Kernel>(words<Kernel>());
  EXPECT_TRUE(e.complete && e.ok()) << e.text();
  EXPECT_EQ(e.orders, 1) << e.text();
  EXPECT_FALSE(e.accesses) << "no two accesses are left unordered";
}

TEST(ExplorePipelines, TmaPipelineHasOneOrder) {
  expect_one_order<TmaFed<2, 1>>();
  expect_one_order<TmaFed<2, 2>>();
  expect_one_order<TmaFed<3, 2>>();
}

TEST(ExplorePipelines, TmaPipelineOfAClusterHasOneOrder) {
  expect_one_order<Multicast<2, 1, 1>>();
  expect_one_order<Multicast<2, 2, 2>>();
}

TEST(ExplorePipelines, ThreadPipelineHasOneOrder) {
  expect_one_order<ThreadFed<2, 1, 1, Writes::stores>>();
  expect_one_order<ThreadFed<3, 2, 2, Writes::cp_async>>();
}

TEST(ExplorePipelines, StorePipelineHasOneOrder) {
  expect_one_order<StoreSide<1, 1>>();
  expect_one_order<StoreSide<2, 3>>();
}

/// With one warp a group, the visits, which are counted by atomics, come in one order.
TEST(ExplorePipelines, OrderedBarrierHasOneOrderOfGroups) {
  for (Exploration const& e : {explore<MathOrder<2, 1>>(words_of_turns<2, 1>()),
                               explore<MathOrder<3, 1>>(words_of_turns<3, 1>())}) {
    EXPECT_TRUE(e.complete && e.ok()) << e.text();
    EXPECT_EQ(e.orders, 1) << e.text();
  }
}

/// With two, either may come first, in each of ten turns; which turn it was, they agree on.
TEST(ExplorePipelines, OrderedBarrierHoldsNoneOfAGroupBack) {
  Exploration const e = explore<MathOrder<2, 2>>(words_of_turns<2, 2>());
  EXPECT_TRUE(e.complete && e.ok()) << e.text();
  EXPECT_EQ(e.orders, 1 << 10) << e.text();
}

/// How a consumer of Drawn knows the stage of a row that it has drawn.
enum class Knows : std::uint8_t {
  by_number,  ///< from the row's number
  by_turns,   ///< two behind its last: a mistake, for the warps need not take turns
};

/// Two warps draw the rows of a ring that TMA fills, the next one whenever a warp is done with its
/// last. The numbers drawn are counted behind the rows of `out`.
template <Knows How> struct Drawn {
  using Params = Words;
  using Ring = TmaPipeline<2, 1>;
  static constexpr int threads = 96, steps = 4, words = kRow * steps + 1;
  using SharedStorage = RingOfRows<Ring, 2>;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    Ring const ring{smem.ring};
    if (thread_idx() == 0) {
      ring.init();
      fence_mbarrier_init();
    }
    cta::sync();
    typename Ring::State state;
    if (warp_id() == 0) {
      if (lane_id() != 0) return;
      for (int step = 0; step < steps; ++step, state.next()) {
        SharedAddr const full = ring.acquire(state, 4 * kRow);
        bulk_load(shared_address(&smem.rows[state.stage][0]), p.in + kRow * step, 4 * kRow, full);
      }
      return;
    }
    for (int drawn = 0, known = 0;; ++drawn) {
      std::uint32_t number = 0;
      if (lane_id() == 0) number = atom_add(p.out + kRow * steps, 1u);
      int const row = static_cast<int>(warp::shfl(number, 0));
      if (row >= steps) return;
      int const place = How == Knows::by_number || drawn == 0 ? row : known + 2;
      state.advance(place - known);
      known = place;
      ring.wait(state);
      consume_row(p.out + kRow * row, smem.rows[state.stage], 0);
      warp::sync();
      ring.release(state.stage);
    }
  }
};

/// Each of the rows may be drawn by either warp, and either may be the first to find that there are
/// no more.
TEST(ExplorePipelines, RowsThatAreDrawnHaveEveryOrder) {
  Exploration const e = explore<Drawn<Knows::by_number>>(Drawn<Knows::by_number>::words);
  EXPECT_TRUE(e.complete && e.ok()) << e.text();
  EXPECT_EQ(e.orders, 1 << (Drawn<Knows::by_number>::steps + 1)) << e.text();
}

/// The mistake is none where the warps do take turns, as they do at the default schedule.
TEST(ExplorePipelines, ExplorationFindsTheOrdersInWhichAMistakeIsOne) {
  using Kernel = Drawn<Knows::by_turns>;
  Values const in = some_words(kRow * Kernel::steps);
  Values right(at(Kernel::words)), out(at(Kernel::words));
  run<Drawn<Knows::by_number>>({}, in, right);
  EXPECT_TRUE(run<Kernel>({}, in, out).ok());
  EXPECT_EQ(out, right);
  Exploration const e = explore<Kernel>(Kernel::words, 50);
  EXPECT_TRUE(e.differs.has_value());
  std::set<FindingKind> kinds;
  for (auto const& [finding, choices] : e.findings) {
    kinds.insert(finding.kind);
    sim::Report const again = run<Kernel>({.choices = choices, .throw_on_finding = false}, in, out);
    EXPECT_TRUE(std::any_of(again.findings.begin(), again.findings.end(),
                            [&](sim::Finding const& f) {
                              return sim::to_string(f, "") == sim::to_string(finding, "");
                            }))
        << choices.text();
  }
  EXPECT_TRUE(kinds.contains(FindingKind::deadlock)) << e.text();
}

}  // namespace
}  // namespace tegula::pipeline_kernels
