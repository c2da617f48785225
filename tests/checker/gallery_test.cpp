// What a finding must say, held by all of the gallery's.

#include "gallery.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

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
  return is_race(kind) || kind == FindingKind::uninitialized_read ||
         kind == FindingKind::mbarrier_misuse || kind == FindingKind::exited_cta ||
         kind == FindingKind::bank_conflicts || kind == FindingKind::uncoalesced;
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

/// Of tensor memory: a warp accesses it as a whole, and its columns are no buffer's. What the
/// gallery's kernels of it share stands in one file.
bool is_of_tensor_memory(Finding const& f) {
  return f.message.find("tcgen05") != std::string::npos;
}

TEST(Findings, SayWhereAndWho) {
  for_each_finding([](Exhibit const& exhibit, Finding const& f) {
    if (f.where.line == 0) return;  // of a launch as a whole
    if (is_of_tensor_memory(f)) {
      EXPECT_THAT(f.where.file,
                  AnyOf(EndsWith("/" + exhibit.name + ".hpp"), EndsWith("_kernel.hpp")));
    } else {
      EXPECT_THAT(f.where.file, EndsWith("/" + exhibit.name + ".hpp"));
    }
    EXPECT_GE(f.warp, f.kind == FindingKind::deadlock ? -1 : 0);
    if (is_race(f.kind) && !is_of_tensor_memory(f)) {
      EXPECT_GE(f.lane, 0);
    }
  });
}

TEST(Findings, NameTheBufferAndThePlaceInIt) {
  for_each_finding([](Exhibit const&, Finding const& f) {
    if (!is_of_memory(f.kind) || is_of_tensor_memory(f)) return;
    EXPECT_NE(f.buffer, "");
    EXPECT_THAT(f.coordinate, HasSubstr(f.buffer));
    EXPECT_THAT(f.message, HasSubstr(f.coordinate));
    EXPECT_EQ(f.stage >= 0, f.coordinate.find("stage ") != std::string::npos);
  });
}

TEST(Findings, OfRacesHaveBothSourceLinesAndWhoDidTheOther) {
  for_each_finding([](Exhibit const& exhibit, Finding const& f) {
    if (!is_race(f.kind) || f.message.find("the launch before") != std::string::npos) return;
    EXPECT_THAT(f.other.file,
                AnyOf(EndsWith("/" + exhibit.name + ".hpp"), EndsWith("_kernel.hpp")));
    EXPECT_TRUE(f.other_cta.has_value());
    EXPECT_GE(f.other_warp, 0);
    bool const in_text =
        f.message.find(".hpp:" + std::to_string(f.other.line)) != std::string::npos;
    EXPECT_TRUE(in_text || f.other.line == f.where.line)
        << "the line of the other is " << f.other.line;
  });
}

TEST(Findings, SayWhatWouldOrderTheTwo) {
  for_each_finding([](Exhibit const&, Finding const& f) {
    bool const of_order = is_race(f.kind) || f.kind == FindingKind::register_race ||
                          f.kind == FindingKind::exited_cta;
    if (of_order) {
      EXPECT_THAT(f.order, HasSubstr("would order"));
    }
  });
}

/// By instruction, the words of an advice that name it.
std::map<std::string, std::vector<std::string>> const& names_in_advice() {
  static std::map<std::string, std::vector<std::string>> const names = {
      {"bar.sync", {"cta::sync", "cta::bar_sync", "a barrier"}},
      {"bar.warp.sync", {"warp::sync", "a barrier"}},
      {"barrier.cluster.arrive", {"cluster::sync", "the cluster's barrier", "a barrier of the"}},
      {"barrier.cluster.wait", {"cluster::sync", "the cluster's barrier", "a barrier of the"}},
      {"cp.async.commit_group", {"cp.async.commit_group"}},
      {"cp.async.wait_group", {"cp.async.wait_group"}},
      {"cp.async.bulk.commit_group", {"bulk_commit_group"}},
      {"cp.async.bulk.wait_group", {"bulk_wait_group"}},
      {"fence", {"fence_acq_rel"}},
      {"fence.mbarrier_init", {"fence_mbarrier_init"}},
      {"fence.proxy.async", {"fence_proxy_async"}},
      {"griddepcontrol.wait", {"griddepcontrol_wait"}},
      {"ld.global", {"an ld_global in the place"}},
      {"mbarrier.arrive", {"an arrival", "mbarrier_arrive"}},
      {"mbarrier.arrive.expect_tx", {"expect_tx"}},
      {"mbarrier.expect_tx", {"expect_tx"}},
      {"mbarrier.try_wait", {"a wait for", "a wait of that CTA for", "a wait after"}},
      {"wgmma.commit_group", {"wgmma_commit_group"}},
      {"wgmma.fence", {"wgmma_fence"}},
      {"wgmma.wait_group", {"wgmma_wait_group"}},
  };
  return names;
}

/// The instructions that order something and that the mended kernel executes on some line more
/// often than the broken one.
std::set<std::string> mend_of(Exhibit const& exhibit) {
  sim::Options options = exhibit.options;
  options.count = true;
  using Key = std::tuple<std::string, int, std::string>;
  std::map<Key, std::int64_t> more;
  for (bool const repaired : {false, true}) {
    for (sim::LineCounters const& line : exhibit.run(options, repaired).lines)
      more[{line.where.file, line.where.line, line.instruction}] +=
          repaired ? line.instructions : -line.instructions;
  }
  std::set<std::string> mend;
  for (auto const& [key, instructions] : more) {
    if (instructions > 0 && names_in_advice().contains(std::get<2>(key)))
      mend.insert(std::get<2>(key));
  }
  return mend;
}

/// What is done to mend a kernel of the gallery, after which nothing is found in it, is what a
/// finding advises.
TEST(Findings, AdviseWhatMendsTheKernel) {
  int mended = 0;
  for (Chapter const& chapter : chapters())
    for (Exhibit const& exhibit : chapter.exhibits) {
      SCOPED_TRACE(exhibit.name);
      sim::Report const report = exhibit.run(exhibit.options, /*repaired=*/false);
      auto const advises = [](Finding const& f) { return !f.order.empty(); };
      auto const ended = [](Finding const& f) { return f.ended_cluster; };
      if (std::none_of(report.findings.begin(), report.findings.end(), advises) ||
          std::any_of(report.findings.begin(), report.findings.end(), ended))
        continue;
      std::set<std::string> const mend = mend_of(exhibit);
      if (mend.empty()) continue;  // it is mended by another address, or another thread
      ++mended;
      bool named = false;
      for (std::string const& instruction : mend) {
        for (std::string const& name : names_in_advice().at(instruction)) {
          named = named || std::any_of(report.findings.begin(), report.findings.end(),
                                       [&](Finding const& f) {
                                         return f.order.find(name) != std::string::npos;
                                       });
        }
      }
      EXPECT_TRUE(named) << "mended by " << testing::PrintToString(mend) << "\n" << report.text();
      EXPECT_TRUE(exhibit.run(exhibit.options, /*repaired=*/true).ok());
    }
  EXPECT_GT(mended, 25);
}

}  // namespace
}  // namespace tegula::broken
