#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "commands.hpp"

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
/// who asked for JSON.
int fail(std::string sentence, bool json, int code) {
  std::replace(sentence.begin(), sentence.end(), '\n', ' ');
  fmt::print(stderr, "tegula: {}\n", sentence);
  if (json) {
    fmt::print("{}\n", nlohmann::json{{"error", sentence}}.dump(-1, ' ', false,
                                                                nlohmann::json::error_handler_t::replace));
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
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

  bool const json = std::any_of(argv + 1, argv + argc,
                                [](char const* argument) { return std::string_view(argument) == "--json"; });
  constexpr int kRefused = 1;
  constexpr int kUsage = 2;
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) {
      if (argc > 1) {
        return fail(fmt::format("there is no command '{}'; the commands are {}", argv[1], command_names(app)),
                    json, kUsage);
      }
      fmt::print("{}", app.help());
    }
    return 0;
  } catch (CLI::Success const& request) {  // --help, --version
    return app.exit(request);
  } catch (CLI::ParseError const& error) {
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
      return fail(fmt::format("there is no command '{}'; the commands are {}", argv[1], command_names(app)),
                  json, kUsage);
    }
    return fail(fmt::format("{} (see `tegula {}--help`)", error.what(),
                            app.get_subcommands().empty() ? std::string()
                                                          : app.get_subcommands().front()->get_name() + " "),
                json, kUsage);
  } catch (tegula::tool::reported_failure const&) {
    return kRefused;
  } catch (std::exception const& error) {
    return fail(error.what(), json, kRefused);
  }
}
