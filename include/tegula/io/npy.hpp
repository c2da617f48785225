#pragma once

/// NumPy's .npy format, versions 1.0 to 3.0 (numpy.lib.format, NEP 1): one array a file.

#include <string>

#include "tegula/io/array.hpp"

namespace tegula::io {

/// Reads one array. Accepts booleans, integers of 8 to 64 bits, f16, f32 and f64, little- or big-endian, in C
/// or Fortran order (turned into C order), and bfloat16 in the form in which ml_dtypes arrays are saved:
/// elements `V2` (or the descr 'bfloat16'). Throws io_error for a file that is not .npy, is truncated or
/// longer than its array, or holds another element type.
Array read_npy(std::string const& path);

/// Writes one array as version 1.0 (2.0 where the header is long), C order, little-endian; bf16 as '<V2',
/// which NumPy reads as raw elements (`numpy.load(path).view(ml_dtypes.bfloat16)`). The fp8 types have no
/// NumPy form and are refused. Throws io_error when the file cannot be written, and std::invalid_argument for
/// an array whose bytes do not fill its shape.
void write_npy(std::string const& path, Array const& array);

}  // namespace tegula::io
