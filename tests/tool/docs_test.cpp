#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "run_tool.hpp"

namespace tegula::tool_test {
namespace {

/// The lines of the page's blocks of shell.
std::vector<std::string> commands(std::string const& page) {
  std::istringstream lines(page);
  std::vector<std::string> found;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = line == "```sh";
    } else if (inside) {
      found.push_back(line);
    }
  }
  return found;
}

TEST(ToolPage, ItsCommandsAndTheCheckersRun) {
  TemporaryFolder const folder;
  std::vector<std::string> lines = commands(read(TEGULA_DOCS "/tool.md"));
  EXPECT_GE(lines.size(), 15u);
  for (std::string const& line : commands(read(TEGULA_DOCS "/checker.md"))) lines.push_back(line);
  for (std::string const& line : lines) {
    Outcome const outcome = run_shell(line, folder.path());
    EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.err;
    EXPECT_NE(outcome.out, "") << line;
  }
}

/// Every call that the help of `tegula layout` describes stands in the page's tables.
TEST(ToolPage, NamesEveryCall) {
  std::string const page = read(TEGULA_DOCS "/tool.md");
  std::istringstream help(run_tool({"layout", "--help"}).out);
  int calls = 0;
  bool begun = false;
  for (std::string line; std::getline(help, line);) {
    if (begun && (line.size() < 3 || line[2] == ' ')) {
      break;
    }
    if (begun) {
      std::string const name = line.substr(2, line.find('(') - 2);
      EXPECT_THAT(page, testing::HasSubstr("`" + name)) << line;
      ++calls;
    }
    begun = begun || line == "Calls:";
  }
  EXPECT_EQ(calls, 37);
}

}  // namespace
}  // namespace tegula::tool_test
