#include <stdexcept>

#include "mended_kernel.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/ordered_access.hpp"

/// Cooperative launches: all CTAs are resident at once, so that they may wait for each other.
namespace tegula {
namespace {

using sim::FindingKind;

/// CTAs that meet, at a word of `in`.
struct Grid : Broken {
  static constexpr bool cooperative = true;
  static constexpr int threads = 64;
  static std::uint32_t* counter(Params const& p, int i = 0) {
    return reinterpret_cast<std::uint32_t*>(p.in) + i;
  }
  static void await(std::uint32_t const* word, std::uint32_t value) {
    while (ld_global_acquire<std::uint32_t, Scope::gpu>(word) < value) {
    }
  }
  static std::uint32_t ctas() {
    Dim3 const grid = grid_dim();
    return static_cast<std::uint32_t>(grid.x * grid.y * grid.z);
  }
  /// The `round`-th time, from 1 on.
  static void sync(Params const& p, std::uint32_t round, bool fences = true) {
    cta::sync();
    if (thread_idx() == 0) {
      if (fences) fence_acq_rel<Scope::gpu>();
      atom_add(counter(p), 1u);
      await(counter(p), round * ctas());
    }
    cta::sync();
  }
  static char* word(Params const& p, int i) { return p.out + 4 * i; }
};

/// Each CTA reads what its neighbour wrote, on either side, in each of three rounds.
template <bool Fences = true, bool Cooperative = true> struct Neighbours : Grid {
  static constexpr bool cooperative = Cooperative;
  void operator()(Params const& p, SharedStorage&) const {
    int const own = block_idx().x, next = (own + 1) % grid_dim().x;
    std::uint32_t value = static_cast<std::uint32_t>(own);
    for (std::uint32_t round = 0; round < 3; ++round) {
      st_global(word(p, 64 * own + thread_idx()), value);
      sync(p, 2 * round + 1, Fences);
      value = ld_global<std::uint32_t>(word(p, 64 * next + 63 - thread_idx()));
      sync(p, 2 * round + 2, Fences);
    }
    st_global(word(p, 512 + 64 * own + thread_idx()), value);
  }
};

std::vector<std::uint32_t> run_neighbours(sim::Options const& options, int ctas) {
  sim::Machine machine(options);
  auto* const in = static_cast<char*>(machine.allocate(4096, "in"));
  auto* const out = static_cast<char*>(machine.allocate(4096, "out"));
  machine.fill(in, 0, 4096);
  sim::launch<Neighbours<>>(machine, {ctas, 1, 1}, {in, out});
  std::vector<std::uint32_t> words(static_cast<std::size_t>(64 * ctas));
  machine.download(words.data(), out + 2048, 4 * words.size());
  return words;
}

TEST(Cooperative, CtasWaitForEachOtherAtEverySchedule) {
  for (int const ctas : {1, 2, 5}) {
    for (sim::Options const& options : every_schedule(4)) {
      std::vector<std::uint32_t> const words = run_neighbours(options, ctas);
      for (std::size_t i = 0; i < words.size(); ++i)
        ASSERT_EQ(words[i], (i / 64 + 3) % static_cast<std::size_t>(ctas))
            << schedule_text(options);
    }
  }
}

TEST(Cooperative, RacesAcrossTheGridAreFound) {
  finding_that_advises<Neighbours<false>>(FindingKind::data_race, "fence_acq_rel<Scope::gpu>",
                                          {2, 1, 1});
  for (sim::Options const& options : every_schedule(2))
    EXPECT_FALSE(report_of<Neighbours<false>>(options, {3, 1, 1}).ok()) << schedule_text(options);
}

TEST(Cooperative, WithoutItTheOtherCtaMayNotHaveStarted) {
  for (auto const interleaving : {sim::Interleaving::one_warp_ahead, sim::Interleaving::random}) {
    sim::Options options;
    options.interleaving = interleaving;
    sim::Report const report = report_of<Neighbours<true, false>>(options, {2, 1, 1});
    ASSERT_FALSE(report.ok()) << schedule_text(options);
    sim::Finding const& f = report.findings.front();
    EXPECT_EQ(f.kind, FindingKind::deadlock);
    EXPECT_SAYS(f, "CTA (1, 0, 0), which may not have started yet, does so by atom");
    EXPECT_NE(f.order.find("cooperative = true"), std::string::npos) << f.order;
  }
  EXPECT_TRUE((report_of<Neighbours<true, false>>().ok())) << "a grid of one CTA";
}

/// Barriers of the grid by the hundred: what each CTA has acquired grows with each of them.
template <bool Fences> struct ManyBarriers : Grid {
  void operator()(Params const& p, SharedStorage&) const {
    int const own = block_idx().x, next = (own + 1) % grid_dim().x;
    for (std::uint32_t round = 0; round < 150; ++round) {
      int const half = 256 * static_cast<int>(round % 2);
      st_global(word(p, half + 64 * own + thread_idx()), round);
      sync(p, round + 1, Fences || round != 120);
      ld_global<std::uint32_t>(word(p, half + 64 * next + 63 - thread_idx()));
    }
  }
};

TEST(Cooperative, HundredsOfBarriersAreTold) {
  for (auto const interleaving : {sim::Interleaving::one_warp_ahead, sim::Interleaving::random}) {
    sim::Options options;
    options.interleaving = interleaving;
    sim::Report const right = report_of<ManyBarriers<true>>(options, {3, 1, 1});
    EXPECT_TRUE(right.ok()) << right.text();
    EXPECT_FALSE((report_of<ManyBarriers<false>>(options, {3, 1, 1}).ok()));
  }
}

/// What nobody changes is no matter of launches.
template <bool Cooperative> struct WaitsForNobody : Grid {
  static constexpr bool cooperative = Cooperative;
  void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() == 0) await(counter(p), 1);
  }
};

TEST(Cooperative, CtasThatAllWaitAreStuck) {
  for (bool const cooperative : {false, true}) {
    sim::Report const report = cooperative ? report_of<WaitsForNobody<true>>({}, {8, 1, 1})
                                           : report_of<WaitsForNobody<false>>({}, {8, 1, 1});
    ASSERT_EQ(report.findings.size(), 1u) << report.text();
    EXPECT_EQ(report.findings[0].kind, FindingKind::deadlock);
    EXPECT_EQ(report.findings[0].count, 8);
    EXPECT_EQ(report.findings[0].message.find("started"), std::string::npos) << report.text();
  }
}

/// The last CTA gives the others what they wait for, by a flag for each, from the last to
/// the first.
struct FromTheLast : Grid {
  void operator()(Params const& p, SharedStorage&) const {
    int const own = block_idx().x;
    bool const last = own + 1 == grid_dim().x;
    if (thread_idx() == 0 && !last) await(counter(p, own + 1), 1);
    cta::sync();
    std::uint32_t const before =
        last ? 0 : ld_global<std::uint32_t>(word(p, 64 * (own + 1) + 63 - thread_idx()));
    st_global(word(p, 64 * own + thread_idx()), before + 1);
    cta::sync();
    if (thread_idx() == 0) st_global_release<Scope::gpu>(counter(p, own), 1u);
  }
};

TEST(Cooperative, OrderMayLeadFromALaterCtaToAnEarlierOne) {
  expect_silent<FromTheLast>({4, 1, 1});
}

/// A warp hands over to the other one by way of another CTA.
template <bool Returns> struct ByWayOfAnother : Grid {
  void operator()(Params const& p, SharedStorage&) const {
    if (block_idx().x == 1) {
      if (thread_idx() != 0) return;
      await(counter(p, 0), 1);
      st_global_release<Scope::gpu>(counter(p, 1), 1u);
    } else if (thread_idx() == 0) {
      st_global(word(p, 0), 7u);
      if (Returns) st_global_release<Scope::gpu>(counter(p, 0), 1u);
      if (!Returns) st_global_relaxed<Scope::gpu>(counter(p, 0), 1u);
    } else if (thread_idx() == 32) {
      await(counter(p, 1), 1);
      st_global(word(p, 1), ld_global<std::uint32_t>(word(p, 0)));
    }
  }
};

TEST(Cooperative, OrderMayLeadThroughAnotherCta) {
  expect_silent<ByWayOfAnother<true>>({2, 1, 1});
  EXPECT_FALSE(report_of<ByWayOfAnother<false>>({}, {2, 1, 1}).ok());
}

struct OfClusters : Neighbours<> {
  static constexpr Dim3 cluster = {2, 1, 1};
};

TEST(Cooperative, ClustersAreResidentTogether) { expect_silent<OfClusters>({4, 1, 1}); }

template <int Threads, int Bytes, int Ctas> struct Sized : Broken {
  static constexpr bool cooperative = true;
  static constexpr int threads = Threads, min_ctas_per_sm = Ctas;
  struct SharedStorage {
    alignas(16) std::uint8_t bytes[Bytes];
  };
  void operator()(Params const&, SharedStorage&) const {}
};

/// Why a grid of one CTA more than that is refused; that one is not.
template <class Kernel> std::string refusal_beyond(int ctas, int multiprocessors) {
  sim::Options options;
  options.multiprocessors = multiprocessors;
  EXPECT_TRUE(report_of<Kernel>(options, {ctas, 1, 1}).ok());
  try {
    report_of<Kernel>(options, {ctas + 1, 1, 1});
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return "";
}

TEST(Cooperative, IsRefusedWhereTheGpuHasNoRoom) {
  using testing::HasSubstr;
  EXPECT_THAT(
      (refusal_beyond<Sized<64, 100 * 1024, 1>>(2 * 3, 3)),
      HasSubstr(
          "a cooperative launch of 7 CTAs; the simulated GPU, an sm_90, holds 6 at once: 2 on each of "
          "its 3 multiprocessors, by its 102400 bytes of shared memory"));
  EXPECT_THAT((refusal_beyond<Sized<64, 113 * 1024, 1>>(2, 1)), HasSubstr("holds 2 at once"));
  EXPECT_THAT((refusal_beyond<Sized<64, 113 * 1024 + 128, 1>>(1, 1)), HasSubstr("holds 1 at once"));
  EXPECT_THAT((refusal_beyond<Sized<1024, 16, 2>>(2 * 2, 2)),
              HasSubstr("2 on each of its 2 multiprocessors"));
  EXPECT_THAT((refusal_beyond<Sized<32, 16, 1>>(8, 1)),
              HasSubstr("by the 255 registers that a thread may have"));
  EXPECT_THAT((refusal_beyond<Sized<32, 16, 32>>(32, 1)),
              HasSubstr("by the most that it may have"));
  EXPECT_THAT((refusal_beyond<Sized<256, 120 * 1024, 1>>(104, 104)),
              HasSubstr("holds 104 at once"));
}

TEST(Cooperative, IsRefusedWhereTheMachineHasNoRoom) {
  try {
    report_of<Sized<256, 16, 4>>({}, {132, 1, 1});
    FAIL();
  } catch (std::invalid_argument const& e) {
    EXPECT_THAT(
        e.what(),
        testing::HasSubstr("a cooperative launch of 33792 threads; the simulated machine runs at "
                           "most 28672 together"));
  }
}

}  // namespace
}  // namespace tegula
