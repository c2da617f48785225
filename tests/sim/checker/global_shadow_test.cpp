#include "checker/global_shadow.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "checker/causality.hpp"

/// What a cluster did to global memory, in rows.
namespace tegula::sim {
namespace {

/// Rows of one CTA that has released nothing, in one allocation.
std::vector<GlobalRows> rows_of(GlobalShadow const& shadow, int threads) {
  return shadow.rows(
      1, threads, [](std::uint32_t, std::uint32_t) { return 0u; },
      [](void const*) -> Allocation const* { return nullptr; });
}

TEST(GlobalShadow, WordsThatSeveralWarpsReadAreARowForEach) {
  constexpr std::uintptr_t kBegin = 0x10000;
  constexpr int kThreads = 256, kWords = 3000;  // of three pages
  Causality causality;
  causality.start(kThreads);
  GlobalShadow shadow;
  for (int const thread : {0, 32, 96, 224}) {
    GlobalActor const actor{.agent = static_cast<std::uint32_t>(thread),
                            .time = 1,
                            .causality = &causality,
                            .knower = thread,
                            .thread = thread};
    std::uint32_t const site =
        shadow.site(SourceLocation::current(), Instruction::ld_global, GlobalAccess::read, actor);
    for (std::uintptr_t word = 0; word < kWords; ++word)
      EXPECT_FALSE(shadow.note(kBegin + 4 * word, 4, site, actor));
  }
  std::vector<GlobalRows> const rows = rows_of(shadow, kThreads);
  ASSERT_EQ(rows.size(), 4);
  std::set<int> warps;
  for (GlobalRows const& row : rows) {
    warps.insert(row.warp);
    EXPECT_EQ(row.begin, kBegin);
    EXPECT_EQ(row.bytes, 4);
    EXPECT_EQ(row.pitch, 4);
    EXPECT_EQ(row.count, kWords);
  }
  EXPECT_EQ(warps, (std::set{0, 1, 3, 7}));
}

TEST(GlobalShadow, WordsThatAllLanesReadAreFewRowsForEachWarp) {
  constexpr std::uintptr_t kBegin = 0x10000;
  constexpr int kThreads = 128;
  Causality causality;
  causality.start(kThreads);
  GlobalShadow shadow;
  for (int thread = 0; thread < kThreads; ++thread) {
    GlobalActor const actor{.agent = static_cast<std::uint32_t>(thread),
                            .time = 1,
                            .causality = &causality,
                            .knower = thread,
                            .thread = thread};
    std::uint32_t const site =
        shadow.site(SourceLocation::current(), Instruction::ld_global, GlobalAccess::read, actor);
    EXPECT_FALSE(shadow.note(kBegin, 8, site, actor));
  }
  std::vector<GlobalRows> const rows = rows_of(shadow, kThreads);
  // A thread's record may stand between another warp's, so a warp may have a row more.
  EXPECT_LE(rows.size(), 8);
  std::set<int> warps;
  for (GlobalRows const& row : rows) warps.insert(row.warp);
  EXPECT_EQ(warps, (std::set{0, 1, 2, 3}));
}

/// What is left of 1000 rounds, in each of which a thread adds to a word; in `Learns` of them it
/// has acquired something new since the round before.
template <int Learns> std::size_t rows_after_rounds() {
  Causality causality;
  causality.start(32);
  GlobalShadow shadow;
  for (int round = 0; round < 1000; ++round) {
    GlobalActor const actor{.time = 1,
                            .causality = &causality,
                            .foreign = static_cast<std::uint32_t>(std::min(round, Learns))};
    for (GlobalAccess const access : {GlobalAccess::read, GlobalAccess::write})
      EXPECT_FALSE(shadow.note(
          0x10000, 4, shadow.site(SourceLocation::current(), Instruction::st_global, access, actor),
          actor));
  }
  return rows_of(shadow, 32).size();
}

TEST(GlobalShadow, KeepsWhatAWriteReplacedAfterTheThreadLearntMore) {
  EXPECT_EQ(rows_after_rounds<0>(), 1) << "a write replaces what its thread did before";
  EXPECT_EQ(rows_after_rounds<1>(), 2);
  EXPECT_EQ(rows_after_rounds<7>(), 8) << "the write of each, which replaces the read";
  std::size_t const many = rows_after_rounds<900>();
  EXPECT_GT(many, 8);
  EXPECT_LE(many, 33) << "a loop does not fill the memory";
}

/// A loop has other sites in each round where it learns more; those of rounds whose accesses are
/// gone make room.
TEST(GlobalShadow, SitesOfAccessesThatAreGoneMakeRoom) {
  Causality causality;
  causality.start(64);
  GlobalShadow shadow;
  auto const access = [&](std::uint32_t agent, std::uint32_t foreign, std::uintptr_t at) {
    GlobalActor const actor{.agent = agent,
                            .time = 1,
                            .causality = &causality,
                            .knower = static_cast<int>(agent),
                            .foreign = foreign};
    return shadow.note(
        at, 4,
        shadow.site(SourceLocation::current(), Instruction::st_global, GlobalAccess::write, actor),
        actor);
  };
  for (std::uint32_t round = 1; round <= 200000; ++round) ASSERT_FALSE(access(0, round, 0x10000));
  auto const conflict = access(32, 1, 0x10000);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->agent, 0);
  EXPECT_EQ(conflict->earlier->foreign, 200000u) << "that of the last round";
  // Where each is still there, those beyond the last are not kept, and race with nothing.
  for (std::uint32_t round = 1; round <= 100000; ++round)
    ASSERT_FALSE(access(0, round, 0x20000 + 4 * round));
  EXPECT_TRUE(access(32, 1, 0x20000 + 4 * 50));
  EXPECT_FALSE(access(32, 1, 0x20000 + 4 * 99999));
}

}  // namespace
}  // namespace tegula::sim
