// What a finding must say, held by all of the gallery's.

#include "gallery.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tegula::broken {
namespace {

using sim::Finding;
using sim::FindingKind;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;

/// Two accesses to the same memory.
bool is_race(FindingKind kind) {
  return kind == FindingKind::data_race || kind == FindingKind::proxy_race ||
         kind == FindingKind::async_read_early || kind == FindingKind::async_overwrite;
}

/// Has a place in memory.
bool is_of_memory(FindingKind kind) {
  return is_race(kind) || kind == FindingKind::uninitialized_read || kind == FindingKind::mbarrier_misuse ||
         kind == FindingKind::exited_cta || kind == FindingKind::bank_conflicts ||
         kind == FindingKind::uncoalesced;
}

/// Calls f(exhibit, finding) with every finding of the gallery at the default schedule.
template <class F> void for_each_finding(F f) {
  int exhibits = 0;
  for (Chapter const& chapter : chapters())
    for (Exhibit const& exhibit : chapter.exhibits) {
      SCOPED_TRACE(exhibit.name);
      sim::Report const report = exhibit.run(exhibit.options, /*repaired=*/false);
      EXPECT_FALSE(report.ok());
      for (Finding const& finding : report.findings) {
        SCOPED_TRACE(sim::to_string(finding, report.kernel));
        f(exhibit, finding);
      }
      ++exhibits;
    }
  EXPECT_GT(exhibits, 70);
}

TEST(Findings, SayWhereAndWho) {
  for_each_finding([](Exhibit const& exhibit, Finding const& f) {
    if (f.where.line == 0) return;  // of a launch as a whole
    EXPECT_THAT(f.where.file, EndsWith("/" + exhibit.name + ".hpp"));
    EXPECT_GE(f.warp, f.kind == FindingKind::deadlock ? -1 : 0);
    if (is_race(f.kind)) {
      EXPECT_GE(f.lane, 0);
    }
  });
}

TEST(Findings, NameTheBufferAndThePlaceInIt) {
  for_each_finding([](Exhibit const&, Finding const& f) {
    if (!is_of_memory(f.kind)) return;
    EXPECT_NE(f.buffer, "");
    EXPECT_THAT(f.coordinate, HasSubstr(f.buffer));
    EXPECT_THAT(f.message, HasSubstr(f.coordinate));
    EXPECT_EQ(f.stage >= 0, f.coordinate.find("stage ") != std::string::npos);
  });
}

TEST(Findings, OfRacesHaveBothSourceLinesAndWhoDidTheOther) {
  for_each_finding([](Exhibit const& exhibit, Finding const& f) {
    if (!is_race(f.kind) || f.message.find("the launch before") != std::string::npos) return;
    EXPECT_THAT(f.other.file, AnyOf(EndsWith("/" + exhibit.name + ".hpp"), EndsWith("_kernel.hpp")));
    EXPECT_TRUE(f.other_cta.has_value());
    EXPECT_GE(f.other_warp, 0);
    bool const in_text = f.message.find(".hpp:" + std::to_string(f.other.line)) != std::string::npos;
    EXPECT_TRUE(in_text || f.other.line == f.where.line) << "the line of the other is " << f.other.line;
  });
}

TEST(Findings, SayWhatWouldOrderTheTwo) {
  for_each_finding([](Exhibit const&, Finding const& f) {
    bool const of_order =
        is_race(f.kind) || f.kind == FindingKind::register_race || f.kind == FindingKind::exited_cta;
    if (of_order) {
      EXPECT_THAT(f.order, HasSubstr("would order"));
    }
  });
}

}  // namespace
}  // namespace tegula::broken
