// Command lines, an argument a line: done, or an exception with a sentence. What they print goes
// nowhere. Problems of gemm and attention are small.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
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

bool names_a_file(std::string const& argument) {
  for (char const* const option :
       {"--svg", "--latex", "--trace", "--report", "--output", "--lse", "--draw-tiles", "--allow"})
    if (argument.starts_with(option)) return true;
  return false;
}

/// Numbers that the commands on kernels accept, and that take longer than a fuzzer should.
bool takes_long(std::string const& argument) {
  constexpr std::int64_t kQuick = 48, kRefused = std::int64_t{1} << 30;
  std::string const text = argument.substr(argument.find('=') + 1);
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number > kQuick && number < kRefused;
}

/// Whether accesses to memory are limited, by which a kernel may have findings.
bool limits(std::vector<std::string> const& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](std::string const& argument) {
    return argument.starts_with("--bank-conflicts") || argument.starts_with("--excess-sectors");
  });
}

/// Small extents where the line says none.
void add_defaults(std::vector<std::string>& arguments) {
  bool const gemm = arguments[0] == "gemm";
  for (char const* const option :
       {gemm ? "--m" : "--heads", gemm ? "--n" : "--seq-q", gemm ? "--k" : "--seq-k"}) {
    bool const said =
        std::any_of(arguments.begin(), arguments.end(), [&](std::string const& argument) {
          return argument == option || argument.starts_with(std::string(option) + "=");
        });
    if (!said) arguments.insert(arguments.end(), {option, "2"});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  silence();
  std::istringstream lines(std::string(reinterpret_cast<char const*>(data), size));
  std::vector<std::string> arguments;
  for (std::string line; std::getline(lines, line);) arguments.push_back(line);
  bool const kernels =
      !arguments.empty() && (arguments[0] == "gemm" || arguments[0] == "attention");
  for (std::string const& argument : arguments) {
    // No files are written, and none but the input is read.
    if (names_a_file(argument) || (!kernels && argument.starts_with("--batch"))) return 0;
    if (kernels && takes_long(argument)) return 0;
  }
  if (kernels) add_defaults(arguments);
  tegula::tool::CommandLine const line("fuzz", "tegula");
  tegula::tool::add_layout_command(line);
  tegula::tool::add_atoms_command(line);
  tegula::tool::add_atom_command(line);
  tegula::tool::add_tiled_mma_command(line);
  tegula::tool::add_tiled_copy_command(line);
  tegula::tool::add_gemm_command(line);
  tegula::tool::add_attention_command(line);
  tegula::tool::add_info_command(line);
  try {
    line.run_command(arguments);
  } catch (tegula::tool::reported_failure const&) {
    if (!limits(arguments)) std::abort();  // a finding, or a result that is wrong
  } catch (std::exception const& error) {
    if (error.what()[0] == '\0') std::abort();
  }
  return 0;
}
