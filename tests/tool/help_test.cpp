#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "run_tool.hpp"
#include "thorough.hpp"

namespace tegula::tool_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// The lines of shell under "Examples:".
std::vector<std::string> examples(std::string const& help) {
  std::istringstream lines(help);
  std::vector<std::string> found;
  bool begun = false;
  for (std::string line; std::getline(lines, line);) {
    if (begun && line.starts_with("  ")) {
      found.push_back(line.substr(2));
    }
    begun = begun || line == "Examples:";
  }
  return found;
}

TEST(Help, ListsTheCommands) {
  EXPECT_THAT(command_names(),
              testing::IsSupersetOf({"layout", "atoms", "atom", "tiled-mma", "tiled-copy"}));
  EXPECT_EQ(run_tool({}).out, run_tool({"--help"}).out);
  EXPECT_EQ(run_tool({"--help"}).status, 0);
  EXPECT_THAT(run_tool({"--version"}).out,
              testing::MatchesRegex("tegula [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Help, EveryCommandTakesJsonAndHasExamples) {
  for (std::string const& command : command_names()) {
    Outcome const help = run_tool({command, "--help"});
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("--json")) << command;
    EXPECT_FALSE(examples(help.out).empty()) << command;
    for (std::string const& example : examples(help.out)) {
      EXPECT_THAT(example, HasSubstr("tegula " + command)) << "an example of another command";
    }
  }
}

// That of `tegula compile` takes minutes where there is NVRTC: nightly.
TEST(Help, TheExamplesOfLayoutsAndAtomsRun) {
  TemporaryFolder const folder;
  int run = 0;
  for (std::vector<std::string> const& level : {std::vector<std::string>{"--help"},
                                                {"layout", "--help"},
                                                {"atoms", "--help"},
                                                {"atom", "--help"},
                                                {"tiled-mma", "--help"},
                                                {"tiled-copy", "--help"}}) {
    for (std::string const& example : examples(run_tool(level).out)) {
      if (example.starts_with("tegula compile") && !thorough()) continue;
      Outcome const outcome = run_shell(example, folder.path());
      EXPECT_EQ(outcome.status, 0) << example << "\n" << outcome.err;
      EXPECT_NE(outcome.out, "") << example;
      EXPECT_EQ(outcome.err, "") << example;
      ++run;
    }
  }
  EXPECT_GE(run, 18);
}

TEST(Help, AnUnknownCommandIsAnsweredWithTheKnownOnes) {
  Outcome const outcome = run_tool({"layuot", "8:1"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
              AllOf(StartsWith("tegula: "), HasSubstr("'layuot'"), HasSubstr("layout, atoms")));
  EXPECT_THAT(nlohmann::json::parse(run_tool({"layuot", "--json"}).out)["error"].get<std::string>(),
              HasSubstr("layuot"));
}

}  // namespace
}  // namespace tegula::tool_test
