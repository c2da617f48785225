#include "checker/global_shadow.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "checker/causality.hpp"

/// What a cluster did to global memory, in rows.
namespace tegula::sim {
namespace {

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
  std::vector<GlobalRows> const rows =
      shadow.rows(1, kThreads, [](std::uint32_t, std::uint32_t) { return 0u; });
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
  std::vector<GlobalRows> const rows =
      shadow.rows(1, kThreads, [](std::uint32_t, std::uint32_t) { return 0u; });
  // A thread's record may stand between another warp's, so a warp may have a row more.
  EXPECT_LE(rows.size(), 8);
  std::set<int> warps;
  for (GlobalRows const& row : rows) warps.insert(row.warp);
  EXPECT_EQ(warps, (std::set{0, 1, 2, 3}));
}

}  // namespace
}  // namespace tegula::sim
