#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tegula::tool_test {

using Words = std::vector<std::string>;
inline Words operator+(Words words, Words const& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Outcome {
  int status = -1;  // exit status; -1 if the tool did not end by itself
  std::string out;
  std::string err;
};

/// Runs the tool under test with these arguments and standard input, in `folder`.
Outcome run_tool(std::vector<std::string> const& arguments, std::string const& input = "",
                 std::filesystem::path const& folder = std::filesystem::temp_directory_path());

/// The names in the list of subcommands of the tool's help.
std::vector<std::string> command_names();

/// Runs a line of shell in `folder`, in which `tegula` is the tool under test.
Outcome run_shell(std::string const& line, std::filesystem::path const& folder);

/// The text as one word of a shell's line.
std::string quoted(std::string const& text);

std::string read(std::filesystem::path const& path);
void write(std::filesystem::path const& path, std::string const& text);

/// An empty folder that is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder const&) = delete;
  TemporaryFolder& operator=(TemporaryFolder const&) = delete;

  std::filesystem::path const& path() const { return path_; }
  std::filesystem::path operator/(std::string const& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace tegula::tool_test
