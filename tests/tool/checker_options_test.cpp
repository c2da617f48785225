#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "run_tool.hpp"

/// The options of `tegula gemm` and `tegula attention` that are about the checker: its report, what
/// is accepted, and schedules. The library's kernels are right, so findings are provoked by a limit
/// that this one, which copies an element at a time, does not keep.
namespace tegula::tool_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

Words const kFound = {"gemm", "--device",         "sim", "--m", "20", "--n", "36", "--k",
                      "149",  "--excess-sectors", "0"};
Words const kClean = {"gemm", "--device", "sim", "--m", "16", "--n", "16", "--k", "16"};
Words const kAttention = {"attention", "--device", "sim", "--seq-q", "33", "--head-dim", "32"};

std::set<std::string> keys(json const& object) {
  std::set<std::string> names;
  for (auto const& [key, value] : object.items()) names.insert(key);
  return names;
}

/// Runs the tool with --report and returns what it wrote.
json report_of(Words const& words, int status) {
  TemporaryFolder const folder;
  Outcome const outcome = run_tool(words + Words{"--report", "report.json"}, "", folder.path());
  EXPECT_EQ(outcome.status, status) << outcome.err;
  return json::parse(read(folder / "report.json"));
}

std::vector<std::filesystem::path> files(TemporaryFolder const& folder) {
  std::vector<std::filesystem::path> found;
  for (auto const& entry : std::filesystem::directory_iterator(folder.path()))
    found.push_back(entry.path());
  return found;
}

/// The tool refuses: status 1 or 2, one sentence that has `part`, nothing on standard output,
/// no file.
void expect_refused(Words const& words, std::string const& part, std::string const& input = "") {
  TemporaryFolder const folder;
  if (!input.empty()) write(folder / "input.json", input);
  Outcome const outcome = run_tool(words, "", folder.path());
  EXPECT_THAT(outcome.status, testing::AnyOf(1, 2)) << part;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(StartsWith("tegula: "), HasSubstr(part)));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_THAT(files(folder), SizeIs(input.empty() ? 0 : 1));
}

TEST(ReportOption, OfACleanRunSaysWhatWasRunAndCounted) {
  for (Words const& words : {kClean, kAttention}) {
    json const report = report_of(words, 0);
    EXPECT_EQ(keys(report),
              (std::set<std::string>{"kernel", "grid", "threads", "schedule", "open_choices",
                                     "findings", "silenced", "lines", "total"}));
    EXPECT_THAT(report["kernel"].get<std::string>(), StartsWith("tegula::" + words[0]));
    EXPECT_EQ(report["grid"], json({1, 1, 1}));
    EXPECT_EQ(report["schedule"],
              json({{"completion", "last"}, {"interleaving", "one_warp_ahead"}, {"seed", 0}}));
    EXPECT_THAT(report["findings"], IsEmpty());
    EXPECT_THAT(report["silenced"], IsEmpty());
    ASSERT_FALSE(report["lines"].empty());
    std::int64_t instructions = 0;
    for (json const& line : report["lines"]) {
      EXPECT_GT(line["where"]["line"], 0);
      EXPECT_THAT(line["where"]["file"].get<std::string>(), testing::EndsWith(".hpp"));
      instructions += line["instructions"].get<std::int64_t>();
    }
    EXPECT_EQ(report["total"]["instructions"], instructions);
  }
}

TEST(ReportOption, CanLeaveTheCountersOut) {
  json const report = report_of(kFound + Words{"--report-without-counters"}, 1);
  EXPECT_EQ(keys(report), (std::set<std::string>{"kernel", "grid", "threads", "schedule",
                                                 "open_choices", "findings", "silenced"}));
  EXPECT_EQ(report["findings"], report_of(kFound, 1)["findings"]);
}

TEST(ReportOption, OfARunWithFindingsHasEachWithItsPlace) {
  json const report = report_of(kFound, 1);
  ASSERT_THAT(report["findings"], SizeIs(3));
  for (json const& finding : report["findings"]) {
    EXPECT_EQ(keys(finding), (std::set<std::string>{"kind", "message", "order", "where", "cta",
                                                    "warp", "lane", "other", "buffer", "stage",
                                                    "coordinate", "count", "ended_cluster"}));
    EXPECT_EQ(finding["kind"], "uncoalesced");
    EXPECT_THAT(finding["where"]["file"].get<std::string>(),
                testing::EndsWith("kernel/gemm_sm80.hpp"));
    EXPECT_EQ(finding["cta"], json({0, 0, 0}));
    EXPECT_EQ(finding["warp"], 0);
    EXPECT_EQ(finding["lane"], 0);
    EXPECT_GE(finding["count"], 1);
    EXPECT_EQ(finding["ended_cluster"], false);
    for (char const* absent : {"order", "other", "stage"})
      EXPECT_TRUE(finding[absent].is_null()) << absent;
  }
  EXPECT_EQ(report["findings"][2]["buffer"], "D");
  EXPECT_THAT(report["findings"][2]["coordinate"].get<std::string>(), HasSubstr("of D"));
}

TEST(ReportOption, HoldsWhatIsPrinted) {
  TemporaryFolder const folder;
  Outcome const outcome =
      run_tool(kFound + Words{"--report", "r.json", "--json"}, "", folder.path());
  EXPECT_EQ(outcome.status, 1);
  json const report = json::parse(read(folder / "r.json")), printed = json::parse(outcome.out);
  EXPECT_EQ(printed["report"], report);
  EXPECT_EQ(printed["error"],
            "the checker found 3 faults in " + report["kernel"].get<std::string>());
  for (json const& finding : report["findings"])
    EXPECT_THAT(outcome.err, HasSubstr(finding["message"].get<std::string>()));
  EXPECT_THAT(files(folder), SizeIs(1)) << "nothing of it lies about";
}

TEST(ReportOption, IsRefusedWhereItCannotBeWritten) {
  for (std::string const path : {"nowhere/r.json", "/", "/proc/r.json"})
    expect_refused(kClean + Words{"--report", path}, path + ": cannot be opened for writing");
  expect_refused(kClean + Words{"--report", ""}, "'' is not the name of a file");
  expect_refused(kClean + Words{"--explain", "--report", "r.json"},
                 "--report is of a run, and --explain runs");
}

TEST(ReportOption, ThatCannotBeWrittenHidesNoFinding) {
  Outcome const outcome = run_tool(kFound + Words{"--report", "/dev/full", "--json"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("the checker found 3 faults"), HasSubstr(": uncoalesced: "),
                    HasSubstr("/dev/full: writing failed")));
  EXPECT_THAT(json::parse(outcome.out)["error"].get<std::string>(), HasSubstr("writing failed"));
}

TEST(ReportOption, ReplacesAnOlderReportOnlyWhenThereIsANewOne) {
  TemporaryFolder const folder;
  write(folder / "r.json", "old");
  run_tool(kClean + Words{"--report", "r.json", "--dtype", "e4m3"}, "", folder.path());
  EXPECT_EQ(read(folder / "r.json"), "old");
  run_tool(kClean + Words{"--report", "r.json"}, "", folder.path());
  EXPECT_TRUE(json::accept(read(folder / "r.json")));
}

/// With --allow and a file of this content.
json report_with(Words const& words, std::string const& suppressions, int status) {
  TemporaryFolder const folder;
  write(folder / "known.json", suppressions);
  return report_of(words + Words{"--allow", (folder / "known.json").string()}, status);
}

TEST(AllowOption, HoldsApartWhatIsAccepted) {
  json const report = report_with(
      kFound,
      R"([{"kind": "uncoalesced", "file": "kernel/gemm_sm80.hpp", "reason": "rows of 149 elements"}])",
      0);
  EXPECT_THAT(report["findings"], IsEmpty());
  ASSERT_THAT(report["silenced"], SizeIs(3));
  json known = report["silenced"][0];
  EXPECT_EQ(known["reason"], "rows of 149 elements");
  EXPECT_GE(known["count"], 1);
  known.erase("reason");
  EXPECT_EQ(known, report_of(kFound, 1)["findings"][0]) << "otherwise as it was found";
}

TEST(AllowOption, LeavesWhatItDoesNotName) {
  json const one =
      report_with(kFound, R"([{"kind": "uncoalesced", "buffer": "D", "reason": "short rows"}])", 1);
  EXPECT_THAT(one["findings"], SizeIs(2));
  EXPECT_THAT(one["silenced"], SizeIs(1));
  EXPECT_THAT(report_with(kFound, R"([{"kind": "data_race", "buffer": "D", "reason": "x"}])",
                          1)["findings"],
              SizeIs(3));
  EXPECT_THAT(report_with(kFound, "[]", 1)["findings"], SizeIs(3));
}

TEST(AllowOption, RefusesAFileThatItDoesNotUnderstand) {
  Words const words = kClean + Words{"--allow", "input.json"};
  for (
      auto const& [text, part] : std::vector<std::pair<std::string, std::string>>{
          {"[{", "must be a JSON array of objects"},
          {R"({"kind": "data_race"})", "must be a JSON array of objects"},
          {"[7]", "suppression 1 is 7; it must be an object"},
          {R"([{"kind": "race", "file": "a.hpp", "reason": "x"}])",
           "suppression 1: the kind is 'race'; it must be one of out_of_bounds, misaligned, "},
          {R"([{"file": "a.hpp", "reason": "x"}])", "suppression 1: the kind is ''"},
          {R"([{"kind": 3, "file": "a.hpp", "reason": "x"}])",
           "\"kind\" is 3; it must be a string"},
          {R"([{"kind": "data_race", "file": "a.hpp"}])",
           "the suppression of data_race has no reason"},
          {R"([{"kind": "data_race", "file": "a.hpp", "reason": ""}])", "has no reason"},
          {R"([{"kind": "data_race", "reason": "x"}])", "names neither file nor buffer"},
          {R"([{"kind": "data_race", "buffer": "K", "line": 3, "reason": "x"}])",
           "a line needs a file"},
          {R"([{"kind": "data_race", "file": "a.hpp", "line": 0, "reason": "x"}])",
           "the line is 0; it must be a whole number from 1 on"},
          {R"([{"kind": "data_race", "buffer": "K", "reason": "x"}, {"kind": "data_race", "warp": 1}])",
           "suppression 2 has \"warp\"; it has kind, file, line, buffer and reason, and no more"}})
    expect_refused(words, part, text);
  expect_refused(words, "cannot read --allow 'input.json'");
  expect_refused(kClean + Words{"--allow", ""}, "'' is not the name of a file");
}

TEST(ScheduleOptions, DecideTheScheduleThatTheReportNames) {
  auto const schedule = [](Words const& words) { return report_of(kClean + words, 0)["schedule"]; };
  auto const expected = [](char const* completion, char const* interleaving, std::uint64_t seed) {
    return json{{"completion", completion}, {"interleaving", interleaving}, {"seed", seed}};
  };
  for (char const* const completion : {"last", "first", "random"})
    EXPECT_EQ(schedule({"--completion", completion}), expected(completion, "one_warp_ahead", 0));
  for (char const* const interleaving :
       {"one_warp_ahead", "round_robin", "random", "one_warp_behind"})
    EXPECT_EQ(schedule({"--interleaving", interleaving, "--seed", "3"}),
              expected("last", interleaving, 3));
  EXPECT_EQ(schedule({"--scheduler", "first"}), expected("first", "round_robin", 0));
  EXPECT_EQ(schedule({"--scheduler", "random", "--seed", "18446744073709551615"}),
            expected("random", "random", 18446744073709551615u));
  EXPECT_EQ(schedule({"--scheduler", "random", "--completion", "last"}),
            expected("last", "random", 0))
      << "they go before the scheduler's";
}

TEST(ScheduleOptions, RefuseWhatThereIsNot) {
  expect_refused(kClean + Words{"--completion", "soon"},
                 "'soon' is not one of last, first, random");
  expect_refused(kClean + Words{"--interleaving", "fair"},
                 "'fair' is not one of one_warp_ahead, round_robin, random,");
  expect_refused(kClean + Words{"--scheduler", ""}, "'' is not one of last, first, random");
  for (char const* const seed : {"-1", "1.5", "0x10", "", "seven", "18446744073709551616"})
    expect_refused(kClean + Words{"--seed", seed},
                   "'" + std::string(seed) + "' is not a whole number from 0 to 2^64 - 1");
}

TEST(ScheduleOptions, AFailingSeedGivesTheSameReportAgain) {
  TemporaryFolder const folder;
  Words const random = {"--scheduler", "random", "--seed", "11"};
  auto const report = [&](Words const& words) {
    EXPECT_EQ(run_tool(kFound + words + Words{"--report", "r.json"}, "", folder.path()).status, 1);
    return read(folder / "r.json");
  };
  std::string const first = report(random + Words{"--workers", "1"});
  EXPECT_EQ(report(random + Words{"--workers", "4"}), first);
  EXPECT_EQ(report({"--completion", "random", "--interleaving", "random", "--seed", "11"}), first)
      << "as its schedule says";
  EXPECT_NE(report({"--scheduler", "random", "--seed", "12"}), first);
}

TEST(ChoicesOption, ReplaysAnOrderOfOneClusterOrOfSeveral) {
  json const report = report_of(kClean + Words{"--choices", "sync"}, 0);
  EXPECT_EQ(report["schedule"]["choices"], "sync");
  json const several = report_of(Words{"gemm", "--device", "sim", "--m", "300", "--n", "300", "--k",
                                       "16", "--choices", "sync"},
                                 0);
  EXPECT_EQ(several["grid"], json({9, 1, 1}));
  expect_refused(Words{"gemm", "--device", "sim", "--m", "1000", "--n", "1000", "--k", "16",
                       "--choices", "sync"},
                 "an exploration is of at most 32 CTAs that are there together; of the grid of");
}

TEST(ChoicesOption, RefusesWhatIsNoOrder) {
  for (auto const& [choices, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "choices begin with 'sync' or 'access', and these are empty"},
           {"all 3:t1", "choices begin with 'sync' or 'access', not with 'all'"},
           {"sync 3", "'3' is no choice: it must be STEP:PROCESS"},
           {"sync 3:x1", "'3:x1' is no choice"},
           {"sync 3:o1", "'3:o1' is no choice"},
           {"sync -3:t1", "'-3:t1' is no choice"}})
    expect_refused(kClean + Words{"--choices", choices}, part);
  for (auto const& [option, value] : std::vector<std::pair<std::string, std::string>>{
           {"--scheduler", "random"}, {"--completion", "first"}, {"--interleaving", "random"}})
    expect_refused(kClean + Words{"--choices", "sync", option, value},
                   option + " and --choices are both given; they exclude each other");
}

}  // namespace
}  // namespace tegula::tool_test
