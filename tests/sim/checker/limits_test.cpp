#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broken_kernel.hpp"
#include "refusal.hpp"

/// Limits on bank conflicts and sectors, and accepted findings.
namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;
using sim::Suppression;
using ::testing::HasSubstr;

/// Lanes read a column of a tile whose rows are 128 bytes: all of them ask the same bank.
struct ReadsAColumn : Broken {
  struct SharedStorage {
    alignas(16) std::uint32_t tile[32][32];
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const&, SharedStorage& smem) const {
    for (int i = 0; i < 32; ++i) st_shared(shared_address(&smem.tile[i][lane_id()]), 0u);
    warp::sync();
    for (int i = 0; i < 2; ++i) ld_shared<std::uint32_t>(shared_address(&smem.tile[lane_id()][i]));
  }
};
struct DeclaresNoConflicts : ReadsAColumn {
  static constexpr sim::Limits limits = {.bank_conflicts = 0};
};
struct DeclaresConflicts : ReadsAColumn {
  static constexpr sim::Limits limits = {.bank_conflicts = 31};
};

TEST(Limits, BankConflictsAreFoundBeyondWhatIsDeclared) {
  EXPECT_TRUE(report_of<ReadsAColumn>().ok()) << "nothing is declared";
  EXPECT_TRUE(report_of<DeclaresConflicts>().ok());
  Finding const f = only_finding(report_of<DeclaresNoConflicts>(), FindingKind::bank_conflicts,
                                 ReadsAColumn::line);
  EXPECT_EQ(f.count, 2);
  EXPECT_EQ(f.buffer, "tile");
  EXPECT_EQ(
      f.message,
      "ld.shared of 4 bytes by 32 lanes takes 32 passes over the banks of shared memory, 31 more than it needs, "
      "where 0 more are declared: lanes 0 and 1 ask bank 0 for row 0, column 0 of tile and row 1, column 0 of "
      "tile");
}

TEST(Limits, TheCallersTakeThePlaceOfTheKernels) {
  EXPECT_TRUE((report_of<DeclaresNoConflicts>({.limits = {.bank_conflicts = 31}}).ok()));
  EXPECT_FALSE((report_of<DeclaresConflicts>({.limits = {.bank_conflicts = 30}}).ok()));
  EXPECT_TRUE((report_of<DeclaresNoConflicts>({.count = false}).ok())) << "nobody counts";
}

/// Lanes read 4 bytes each, `Pitch` bytes apart, from byte `First` on.
template <int Pitch, int First = 0> struct ReadsWithAPitch : Broken {
  static constexpr sim::Limits limits = {.excess_sectors = 0};
  static constexpr int line = __LINE__ + 2;
  void operator()(Params const& p, SharedStorage&) const {
    ld_global<std::uint32_t>(p.in + First + Pitch * lane_id());
  }
};

TEST(Limits, SectorsAreFoundBeyondWhatTheBytesNeed) {
  Finding const f = only_finding(report_of<ReadsWithAPitch<64>>(), FindingKind::uncoalesced,
                                 ReadsWithAPitch<64>::line);
  EXPECT_EQ(
      f.message,
      "ld.global of 4 bytes by 32 lanes touches 32 sectors of global memory, 28 more than its bytes need, where 0 "
      "more are declared: lane 0 is at byte 0 of in, lane 1 at byte 64 of in");
  EXPECT_TRUE((report_of<ReadsWithAPitch<4>>().ok()));
  EXPECT_TRUE((report_of<ReadsWithAPitch<0>>().ok())) << "one word for all";
  EXPECT_FALSE((report_of<ReadsWithAPitch<4, 16>>().ok())) << "it begins in the middle of a sector";
  EXPECT_TRUE((report_of<ReadsWithAPitch<64>>({.limits = {.excess_sectors = 28}}).ok()));
}

TEST(Allow, AFindingThatIsKnownIsHeldApart) {
  sim::Options options;
  options.allow = {{FindingKind::uncoalesced, "checker/limits_test.cpp", ReadsWithAPitch<64>::line,
                    "in", "small"}};
  sim::Report const report = report_of<ReadsWithAPitch<64>>(options);
  EXPECT_TRUE(report.ok());
  ASSERT_EQ(report.silenced.size(), 1u);
  EXPECT_EQ(report.silenced[0].reason, "small");
  EXPECT_THAT(report.text(), HasSubstr("accepted (small): "));
  EXPECT_THAT(report.json(), HasSubstr("\"reason\": \"small\""));
  for (Suppression const& other :
       {Suppression{FindingKind::bank_conflicts, "limits_test.cpp", 0, "", "another kind"},
        Suppression{FindingKind::uncoalesced, "its_test.cpp", 0, "", "part of a name"},
        Suppression{FindingKind::uncoalesced, "limits_test.cpp", 3, "", "another line"},
        Suppression{FindingKind::uncoalesced, "", 0, "out", "another buffer"}}) {
    options.allow = {other};
    EXPECT_FALSE(report_of<ReadsWithAPitch<64>>(options).ok()) << other.reason;
  }
}

struct Traps : Broken {
  void operator()(Params const&, SharedStorage&) const { trap(); }
};

TEST(Allow, WhatEndsAClusterCannotBeAccepted) {
  sim::Options options;
  options.allow = {{FindingKind::trap, "limits_test.cpp", 0, "", "never mind"}};
  EXPECT_FALSE(report_of<Traps>(options).ok());
}

std::string refusal(std::string const& json) {
  return sentence<std::invalid_argument>([&] { sim::parse_suppressions(json); });
}

TEST(Allow, AFileIsReadWhole) {
  auto const read = sim::parse_suppressions(
      R"([{"kind": "data_race", "file": "a.hpp", "line": 7, "reason": "benign"}, {"kind": "misaligned", "buffer": "K", "reason": "x"}])");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(sim::to_string(read[0].kind), "data_race");
  EXPECT_EQ(read[0].line, 7);
  EXPECT_EQ(read[1].buffer, "K");
  EXPECT_THAT(refusal("{}"), HasSubstr("must be a JSON array"));
  EXPECT_THAT(refusal(R"([{"kind": "race"}])"),
              HasSubstr("the kind is 'race'; it must be one of out_of_bounds, "));
  EXPECT_THAT(refusal(R"([{"kind": "data_race", "file": "a.hpp"}])"), HasSubstr("has no reason"));
  EXPECT_THAT(refusal(R"([{"kind": "data_race", "reason": "x"}])"),
              HasSubstr("names neither file nor buffer"));
  EXPECT_THAT(refusal(R"([{"kind": "data_race", "buffer": "K", "line": 3, "reason": "x"}])"),
              HasSubstr("a line needs a file"));
  EXPECT_THAT(refusal(R"([{"kind": "data_race", "file": "a", "line": "3", "reason": "x"}])"),
              HasSubstr("whole number from 1 on"));
  EXPECT_THAT(refusal(R"([{"kind": "data_race", "fil": "a", "reason": "x"}])"),
              HasSubstr("has \"fil\""));
}

}  // namespace
}  // namespace tegula
