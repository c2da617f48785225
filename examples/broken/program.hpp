#pragma once

#include "gallery.hpp"

namespace tegula::broken {

/// A gallery's main: lists its kernels, shows them, tests them, and writes what is found in them.
/// Returns the exit status.
int run_program(Gallery const& gallery, int argc, char** argv);

}  // namespace tegula::broken
