#pragma once

/// NumPy's .npy format, versions 1.0 to 3.0 (numpy.lib.format, NEP 1): one array a file.

#include <string>

#include "tegula/io/array.hpp"

namespace tegula::io {

/// Reads one array of at most 64 axes. Accepts booleans, integers of 8 to 64 bits, f16, f32 and
/// f64, little- or big-endian, in C or Fortran order (turned into C order), and bfloat16,
/// float8_e4m3fn and float8_e5m2 under these names of ml_dtypes, or in the form in which NumPy
/// saves its arrays: elements `V2`, `V1` and `f1`. Throws io_error for a file that is not .npy, is
/// truncated or longer than its array, or holds another element type.
Array read_npy(std::string const& path);
/// Its type and shape, checked likewise, without reading the elements.
ArrayType describe_npy(std::string const& path);

/// Writes one array as version 1.0 (2.0 where the header is long), C order, little-endian; bf16 as
/// '<V2', which NumPy reads as raw elements (`numpy.load(path).view(ml_dtypes.bfloat16)`); e4m3 and
/// e5m2 under ml_dtypes' names, which NumPy reads once ml_dtypes is imported. Whole or not at all.
/// Throws io_error when the file cannot be written, and std::invalid_argument for an array whose
/// bytes do not fill its shape.
void write_npy(std::string const& path, Array const& array);

}  // namespace tegula::io
