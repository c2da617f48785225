#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "commands.hpp"
#include "output.hpp"
#include "tegula/io/text.hpp"

namespace {

constexpr char const* kFooter = R"(Examples:
  tegula layout 'composition((4,4):(4,1), (4,2,2):(2,1,8))'
  tegula atoms
  tegula atom SM80_16x8x16_F32F16F16F32_TN --json
  tegula tiled-mma --atom SM80_16x8x16_F32F16F16F32_TN --layout '(2,2,1)' --tile '<32,32,16>'
  tegula gemm --m 512 --n 512 --k 256
  tegula attention --seq-q 128 --head-dim 64 --causal
  tegula compile 'gemm_sm90 bf16->bf16'
  tegula info

`tegula COMMAND --help` describes a command and shows examples of it.)";

/// Reports a refused call: a sentence on standard error, and on standard output {"error":
/// sentence} for those who asked for JSON. That either is closed changes nothing: the exit status
/// says it too.
int fail(std::string const& text, bool json, int code) {
  constexpr std::size_t kLongest = 2000;
  std::string whole = text;
  std::replace(whole.begin(), whole.end(), '\n', ' ');
  std::string const sentence = tegula::io::printable(whole, kLongest);
  tegula::tool::say("tegula: {}\n", sentence);
  if (json) {
    std::string const object = tegula::tool::dump({{"error", sentence}}) + "\n";
    std::fwrite(object.data(), 1, object.size(), stdout);
    std::fflush(stdout);
  }
  return code;
}

/// A descriptor of a standard stream that is closed is taken by the next file that is opened, which
/// would then receive what is printed. Here each is taken by one that cannot be used, so that use
/// is an error.
void reserve_standard_streams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF)
      open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int run(tegula::tool::CommandLine const& line, std::vector<std::string> const& arguments,
        bool json) {
  constexpr int kRefused = 1;
  constexpr int kUsage = 2;
  try {
    if (auto const text = line.run_command(arguments)) tegula::tool::put(*text);
    tegula::tool::flush_output();
    return 0;
  } catch (tegula::tool::usage_error const& error) {
    return fail(error.what(), json, kUsage);
  } catch (tegula::tool::reported_failure const&) {
    std::fflush(stdout);
    return kRefused;
  }
}

}  // namespace

int tegula::tool::run_command_line(int argc, char** argv) {
  reserve_standard_streams();
  // A reader that is gone, and a file beyond the limit of its size, are errors of the write, with
  // a sentence.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::string> arguments;  // those behind the program's name, which may be missing too
  for (int i = 1; i < argc && argv[i] != nullptr; ++i) arguments.emplace_back(argv[i]);
  bool const json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  constexpr int kRefused = 1;
  try {
    tegula::tool::CommandLine const line(
        "tegula: layouts as values, tensor-core atoms, and the kernels built on them", "tegula");
    line.version("tegula " TEGULA_VERSION);
    line.footer(kFooter);
    tegula::tool::add_layout_command(line);
    tegula::tool::add_atoms_command(line);
    tegula::tool::add_atom_command(line);
    tegula::tool::add_tiled_mma_command(line);
    tegula::tool::add_tiled_copy_command(line);
    tegula::tool::add_gemm_command(line);
    tegula::tool::add_attention_command(line);
    tegula::tool::add_compile_command(line);
    tegula::tool::add_info_command(line);
    return run(line, arguments, json);
  } catch (std::bad_alloc const&) {
    return fail(
        "there is not enough memory for what the command line asks; a smaller problem, table or drawing is needed",
        json, kRefused);
  } catch (std::length_error const&) {
    return fail(
        "what the command line asks is larger than any memory; a smaller problem, table or drawing is needed",
        json, kRefused);
  } catch (std::exception const& error) {
    return fail(error.what(), json, kRefused);
  }
}
