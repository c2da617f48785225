#pragma once

#include <CLI/CLI.hpp>

namespace tegula::tool {

/// `tegula gemm`: runs the GEMM kernel on a machine and checks it; see commands.hpp for the contract of a
/// command.
void add_gemm_command(CLI::App& app);

}  // namespace tegula::tool
