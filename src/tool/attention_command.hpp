#pragma once

#include <CLI/CLI.hpp>

namespace tegula::tool {

/// `tegula attention`: runs the attention kernel on a machine and checks it; see commands.hpp for the
/// contract of a command.
void add_attention_command(CLI::App& app);

}  // namespace tegula::tool
