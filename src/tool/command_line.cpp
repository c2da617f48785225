#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
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
  tegula info

`tegula COMMAND --help` describes a command and shows examples of it.)";

/// The names of the subcommands, for the sentence that answers an unknown one.
std::string command_names(CLI::App const& app) {
  std::string names;
  for (CLI::App const* command : app.get_subcommands({})) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

/// Reports a refused call: a sentence on standard error, and on standard output {"error": sentence} for those
/// who asked for JSON. That either is closed changes nothing: the exit status says it too.
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

/// A descriptor of a standard stream that is closed is taken by the next file that is opened, which would
/// then receive what is printed. Here each is taken by one that cannot be used, so that use is an error.
void reserve_standard_streams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF)
      open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

/// CLI11 takes an empty value for none where that may be left out, and of a flag for "yes": it is refused
/// here.
void refuse_empty_values(int argc, char** argv) {
  auto const refuse = [](std::string_view option) {
    throw std::invalid_argument(
        fmt::format("{}: '' is neither a value nor left out", tegula::io::printable(option)));
  };
  for (int i = 1; i < argc; ++i) {
    std::string_view const argument = argv[i];
    if (argument == "--") return;
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1)
      refuse(argument.substr(0, argument.size() - 1));
    for (std::string_view const option : {"--svg", "--latex", "--banks"})
      if (argument == option && i + 1 < argc && argv[i + 1][0] == '\0') refuse(option);
  }
}

/// What CLI11 found wrong, in one sentence.
std::string sentence_of(CLI::ParseError const& error, CLI::App const& app, int argc, char** argv) {
  using tegula::io::in_quotes;
  if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-')
    return fmt::format("there is no command {}; the commands are {}", in_quotes(argv[1]), command_names(app));
  CLI::App const& command = app.get_subcommands().empty() ? app : *app.get_subcommands().front();
  std::string const name = app.get_subcommands().empty() ? "" : command.get_name() + " ";
  std::vector<std::string> const extras = command.remaining();
  if (dynamic_cast<CLI::ExtrasError const*>(&error) != nullptr && !extras.empty())
    return fmt::format("there is no option or argument {} here (see `tegula {}--help`)",
                       in_quotes(extras.front()), name);
  return fmt::format("{} (see `tegula {}--help`)", error.what(), name);
}

int run(CLI::App& app, int argc, char** argv, bool json) {
  constexpr int kRefused = 1;
  constexpr int kUsage = 2;
  try {
    refuse_empty_values(argc, argv);
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) {
      if (argc > 1)
        return fail(fmt::format("there is no command {}; the commands are {}", tegula::io::in_quotes(argv[1]),
                                command_names(app)),
                    json, kUsage);
      tegula::tool::put(app.help());
    }
    tegula::tool::flush_output();
    return 0;
  } catch (CLI::Success const& request) {  // --help, --version
    std::ostringstream text;
    app.exit(request, text, text);
    tegula::tool::put(text.str());
    tegula::tool::flush_output();
    return 0;
  } catch (CLI::ParseError const& error) {
    return fail(sentence_of(error, app, argc, argv), json, kUsage);
  } catch (tegula::tool::reported_failure const&) {
    std::fflush(stdout);
    return kRefused;
  }
}

}  // namespace

int tegula::tool::run_command_line(int argc, char** argv) {
  reserve_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that is gone is an error of the write, with a sentence
  bool const json = std::any_of(argv + 1, argv + argc,
                                [](char const* argument) { return std::string_view(argument) == "--json"; });
  constexpr int kRefused = 1;
  try {
    CLI::App app("tegula: layouts as values, tensor-core atoms, and the kernels built on them", "tegula");
    app.set_version_flag("--version", "tegula " TEGULA_VERSION);
    app.require_subcommand(0, 1);
    app.footer(kFooter);
    tegula::tool::add_layout_command(app);
    tegula::tool::add_atoms_command(app);
    tegula::tool::add_atom_command(app);
    tegula::tool::add_tiled_mma_command(app);
    tegula::tool::add_tiled_copy_command(app);
    tegula::tool::add_gemm_command(app);
    tegula::tool::add_attention_command(app);
    tegula::tool::add_info_command(app);
    return run(app, argc, argv, json);
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
