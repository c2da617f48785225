#pragma once

#include <CLI/CLI.hpp>

namespace tegula::tool {

/// Each adds one subcommand, with its options, help and callback, to the application. A callback writes its
/// result to standard output and throws on bad input: std::exception whose what() is one sentence for the
/// user.
void add_layout_command(CLI::App& app);
void add_atoms_command(CLI::App& app);
void add_atom_command(CLI::App& app);
void add_tiled_mma_command(CLI::App& app);
void add_tiled_copy_command(CLI::App& app);

}  // namespace tegula::tool
