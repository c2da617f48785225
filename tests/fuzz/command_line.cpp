// Command lines of the layout, atom and tiling commands, an argument a line: done, or an exception with a
// sentence. What they print goes nowhere.

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "commands.hpp"

namespace {

void silence() {
  static bool const done = [] {
    int const nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return dup2(nowhere, STDOUT_FILENO) >= 0;
  }();
  if (!done) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  silence();
  std::istringstream lines(std::string(reinterpret_cast<char const*>(data), size));
  std::vector<std::string> arguments;
  for (std::string word; std::getline(lines, word);) {
    // No files are written, and none but the input is read.
    if (word.starts_with("--svg") || word.starts_with("--latex") || word.starts_with("--batch")) return 0;
    arguments.push_back(word);
  }
  tegula::tool::CommandLine const line("fuzz", "tegula");
  tegula::tool::add_layout_command(line);
  tegula::tool::add_atoms_command(line);
  tegula::tool::add_atom_command(line);
  tegula::tool::add_tiled_mma_command(line);
  tegula::tool::add_tiled_copy_command(line);
  try {
    line.run_command(arguments);
  } catch (std::exception const& error) {
    if (error.what()[0] == '\0') std::abort();
  }
  return 0;
}
