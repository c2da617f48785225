#pragma once

/// Reading files of the formats; every failure is an io_error that names the file.

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "tegula/io/array.hpp"

namespace tegula::io {

/// What writers ask of an array. Throws std::invalid_argument, beginning with `who`.
void check_filled(std::string const& who, Array const& array);

/// More axes than NumPy knows (64) are taken for a malformed file.
inline constexpr std::size_t kMostAxes = 64;

/// A regular file open for reading whose size is known.
class InputFile {
 public:
  explicit InputFile(std::string const& path);
  std::int64_t size() const { return size_; }
  /// Reads bytes [offset, offset + out.size()); `what` names them in the error for a file that
  /// ends before.
  void read(std::int64_t offset, std::span<std::byte> out, std::string_view what);

 private:
  std::string name_;  // as sentences show it
  std::ifstream stream_;
  std::int64_t size_ = 0;
};

}  // namespace tegula::io
