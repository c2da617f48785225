#pragma once

#include <CLI/CLI.hpp>

namespace tegula::tool {

/// `tegula info`: machines, kernels and configurations; see commands.hpp for the contract of a command.
void add_info_command(CLI::App& app);

}  // namespace tegula::tool
