#include "run_tool.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace tegula::tool_test {

std::string quoted(std::string const& text) {
  std::string result = "'";
  for (char const c : text) {
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return result + "'";
}

std::string read(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write(std::filesystem::path const& path, std::string const& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "tegula_tool_test_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error("no temporary folder");
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> command_names() {
  std::istringstream help(run_tool({"--help"}).out);
  std::vector<std::string> names;
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (listed && line.empty()) {
      break;
    }
    if (listed && line.size() > 2 && line[2] != ' ') {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    listed = listed || line == "Subcommands:";
  }
  return names;
}

Outcome run_shell(std::string const& line, std::filesystem::path const& folder) {
  TemporaryFolder const streams;
  std::string const path = std::filesystem::path(TEGULA_TOOL).parent_path().string();
  std::string const command = "cd " + quoted(folder.string()) + " && export PATH=" + quoted(path) +
                              ":\"$PATH\" && { " + line + "\n} >" +
                              quoted((streams / "out").string()) + " 2>" +
                              quoted((streams / "err").string());
  int const status = std::system(command.c_str());
  Outcome outcome;
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.out = read(streams / "out");
  outcome.err = read(streams / "err");
  return outcome;
}

Outcome run_tool(std::vector<std::string> const& arguments, std::string const& input,
                 std::filesystem::path const& folder) {
  TemporaryFolder const streams;
  write(streams / "in", input);
  std::string line = quoted(TEGULA_TOOL);
  for (std::string const& argument : arguments) {
    line += " " + quoted(argument);
  }
  return run_shell(line + " <" + quoted((streams / "in").string()), folder);
}

}  // namespace tegula::tool_test
