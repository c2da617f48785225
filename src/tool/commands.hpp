#pragma once

#include <exception>

#include "command_line.hpp"

namespace tegula::tool {

/// Each adds one subcommand, with its options, help and callback, to the application. A callback
/// writes its result to standard output and throws on bad input: std::exception whose what() is one
/// sentence for the user.
void add_layout_command(Command const& app);
void add_atoms_command(Command const& app);
void add_atom_command(Command const& app);
void add_tiled_mma_command(Command const& app);
void add_tiled_copy_command(Command const& app);
void add_gemm_command(Command const& app);
void add_attention_command(Command const& app);
void add_compile_command(Command const& app);
void add_info_command(Command const& app);

/// The whole command: reads the arguments, runs what they say, and returns the exit status.
/// Ignores SIGPIPE.
int run_command_line(int argc, char** argv);

/// Thrown by a command that has printed its result, and that result is a failure: there is nothing
/// more to say.
struct reported_failure : std::exception {};

}  // namespace tegula::tool
