#pragma once

/// An array by a name as a command line gives it.

#include <string>

#include "tegula/io/array.hpp"

namespace tegula::io {

/// The type and shape of what read_array would read, without its elements. Throws io_error.
ArrayType describe_array(std::string const& name);

/// The path of the file in an array's name. Throws io_error for a name that is of neither format.
std::string file_of_array(std::string const& name);

/// Reads `FILE.npy`, or the tensor `NAME` of `FILE.safetensors:NAME` (the name may be left out
/// where the file holds one tensor). Throws io_error.
Array read_array(std::string const& name);

/// Throws io_error where write_array would take other tensors than its own away: those of a
/// safetensors file that is there.
void check_array_target(std::string const& name);

/// Writes `FILE.npy`, or a file `FILE.safetensors:NAME` with this one tensor (named "output" where
/// NAME is left out), whole or not at all (io/output_file.hpp). Throws as write_npy,
/// write_safetensors and check_array_target do, and io_error for a name that is of neither format.
void write_array(std::string const& name, Array const& array);

}  // namespace tegula::io
