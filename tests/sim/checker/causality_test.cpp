#include "checker/causality.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "thorough.hpp"

/// The happens-before relation against a naive one: events as nodes of a graph, and paths in it.
namespace tegula::sim {
namespace {

/// A fence between the proxies, by what it orders.
enum class ProxyFence { none, of_shared_memory, of_all_memory };

/// Events, and which come directly after which. A path from an access to a thread's latest event is
/// causality; one with a fence between the proxies on it, the fenced part.
class Graph {
 public:
  std::size_t add(ProxyFence fence, std::vector<std::size_t> after) {
    before_.push_back(std::move(after));
    fence_.push_back(fence);
    return before_.size() - 1;
  }
  /// Which events a path leads from to `last`: a bit for the widest fence between the proxies that
  /// lies on it after the event.
  std::vector<unsigned> leading_to(std::size_t last) const {
    std::vector<unsigned> found(before_.size());
    std::vector<std::pair<std::size_t, ProxyFence>> rest = {{last, ProxyFence::none}};
    while (!rest.empty()) {
      auto const [event, fenced] = rest.back();
      rest.pop_back();
      unsigned const bit = 1u << static_cast<int>(fenced);
      if ((found[event] & bit) != 0) continue;
      found[event] |= bit;
      for (std::size_t const earlier : before_[event])
        rest.emplace_back(earlier, std::max(fenced, fence_[event]));
    }
    return found;
  }

 private:
  std::vector<std::vector<std::size_t>> before_;
  std::vector<ProxyFence> fence_;
};

/// A random program of some threads that release into places, acquire from them, synchronise, fence
/// and access memory, and of copies that land for agents of their own.
class Program {
 public:
  Program(std::uint32_t seed, int threads, int places, int copies) : random_(seed) {
    causality_.start(threads);
    for (int i = 0; i < threads; ++i) latest_.push_back(graph_.add(ProxyFence::none, {}));
    fences_.resize(latest_.size(), kNone);
    taken_.resize(latest_.size());
    published_.resize(static_cast<std::size_t>(places));
    released_.resize(published_.size());
    for (int i = 0; i < copies; ++i) {
      agents_.push_back(causality_.add_agent());
      landed_.push_back(graph_.add(ProxyFence::none, {}));
    }
  }

  void step() {
    int const thread = pick(static_cast<int>(latest_.size()));
    std::size_t const t = static_cast<std::size_t>(thread);
    std::size_t const place = static_cast<std::size_t>(pick(static_cast<int>(published_.size())));
    switch (pick(13)) {
      case 0:
      case 1:
      case 2:
        accesses_.push_back({thread, causality_.now(), event(t)});
        break;
      case 3:
        causality_.release(thread, published_[place]);
        released_[place].push_back(event(t));
        break;
      case 4:
      case 5:
        causality_.acquire(thread, published_[place]);
        event(t, ProxyFence::none, released_[place]);
        break;
      case 6: {
        int const first = thread / 32 * 32;
        int const lanes = std::min(32, causality_.threads() - first);
        std::uint32_t const mask =
            (random_() | 1u << (thread - first)) & (lanes == 32 ? ~0u : (1u << lanes) - 1);
        causality_.synchronize(first, mask);
        std::vector<std::size_t> all;
        for (int lane = 0; lane < lanes; ++lane) {
          if ((mask >> lane & 1) != 0) all.push_back(event(static_cast<std::size_t>(first + lane)));
        }
        for (int lane = 0; lane < lanes; ++lane) {
          if ((mask >> lane & 1) != 0)
            event(static_cast<std::size_t>(first + lane), ProxyFence::none, all);
        }
        break;
      }
      case 7:
        causality_.fence_proxy(thread);
        event(t, ProxyFence::of_all_memory);
        break;
      case 8:
        causality_.fence_threads(thread);
        fences_[t] = event(t, ProxyFence::none, std::exchange(taken_[t], {}));
        break;
      case 9:
        causality_.release_relaxed(thread, published_[place]);
        if (fences_[t] != kNone) released_[place].push_back(fences_[t]);
        break;
      case 10:
        causality_.acquire_relaxed(thread, published_[place]);
        taken_[t].insert(taken_[t].end(), released_[place].begin(), released_[place].end());
        break;
      case 11:
        causality_.fence_shared_proxy(thread);
        event(t, ProxyFence::of_shared_memory);
        break;
      default: {
        if (agents_.empty()) break;
        // A copy lands; its writes are fenced for whoever waits for it.
        std::size_t const copy = static_cast<std::size_t>(pick(static_cast<int>(agents_.size())));
        Time const now = causality_.tick();
        causality_.tell(published_[place], agents_[copy], now);
        accesses_.push_back({agents_[copy], now, graph_.add(ProxyFence::none, {landed_[copy]})});
        landed_[copy] = graph_.add(ProxyFence::of_shared_memory, {accesses_.back().event});
        released_[place].push_back(landed_[copy]);
        break;
      }
    }
    if (pick(40) == 0) {
      published_[place].clear();
      released_[place].clear();
    }
  }

  void compare() const {
    int yes = 0;
    for (int thread = 0; thread < causality_.threads(); ++thread) {
      auto const leading = graph_.leading_to(latest_[static_cast<std::size_t>(thread)]);
      for (Access const& access : accesses_) {
        unsigned const expected = leading[access.event];
        ASSERT_EQ(causality_.known(thread, access.agent, access.time), expected != 0);
        ASSERT_EQ(causality_.fenced_shared(thread, access.agent, access.time), (expected & 6) != 0);
        if (access.agent < causality_.threads()) {
          ASSERT_EQ(causality_.fenced(thread, access.agent, access.time), (expected & 4) != 0);
        }
        yes += expected != 0 ? 1 : 0;
      }
    }
    EXPECT_GT(yes, 0);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Access {
    int agent;
    Time time;
    std::size_t event;
  };

  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  std::size_t event(std::size_t thread, ProxyFence fence = ProxyFence::none,
                    std::vector<std::size_t> after = {}) {
    after.push_back(latest_[thread]);
    return latest_[thread] = graph_.add(fence, std::move(after));
  }

  std::mt19937 random_;
  Causality causality_;
  Graph graph_;
  std::vector<std::size_t> latest_;  ///< of each thread
  std::vector<std::size_t> fences_;
  std::vector<std::vector<std::size_t>> taken_;
  std::vector<Published> published_;
  std::vector<std::vector<std::size_t>> released_;
  std::vector<int> agents_;
  std::vector<std::size_t> landed_;
  std::vector<Access> accesses_;
};

TEST(Causality, IsThatOfPathsInTheGraphOfEvents) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    if (!chosen(seed, 7)) continue;
    // Of one warp or several, and with more agents than there is room for at first.
    int const threads = 2 + static_cast<int>(seed * 7 % 90);
    int const copies = seed % 5 == 0 ? 100 : static_cast<int>(seed % 4);
    Program program(seed, threads, 1 + static_cast<int>(seed % 5), copies);
    for (int step = 0; step < 60 + 5 * threads; ++step) program.step();
    ASSERT_NO_FATAL_FAILURE(program.compare()) << "seed " << seed;
  }
}

TEST(Causality, AReleaseCoversWhatCameBeforeItAndNothingAfter) {
  Causality causality;
  causality.start(2);
  Published place;
  Time const before = causality.now();
  causality.release(0, place);
  Time const after = causality.now();
  EXPECT_LT(before, after);
  causality.acquire(1, place);
  EXPECT_TRUE(causality.known(1, 0, before));
  EXPECT_FALSE(causality.known(1, 0, after));
  EXPECT_TRUE(causality.known(0, 0, after)) << "a thread knows what it did";
  EXPECT_FALSE(causality.fenced(1, 0, before));
}

TEST(Causality, ThreadsThatKnowTheSameShareIt) {
  Causality causality;
  causality.start(1024);
  Published barrier;
  for (int warp = 0; warp < 32; ++warp) causality.release(32 * warp, ~0u, barrier);
  for (int warp = 0; warp < 32; ++warp) causality.acquire(32 * warp, ~0u, barrier);
  for (int thread = 1; thread < 1024; ++thread) EXPECT_TRUE(causality.same_knowledge(0, thread));
  EXPECT_LT(causality.bytes(), 64u * 1024);
}

}  // namespace
}  // namespace tegula::sim
