#pragma once

/// Whole-file reading and writing for the formats; every failure is an io_error that names the file.

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace tegula::io {

/// A file open for reading whose size is known.
class InputFile {
 public:
  explicit InputFile(std::string const& path);
  std::int64_t size() const { return size_; }
  /// Reads bytes [offset, offset + out.size()); `what` names them in the error for a file that ends before.
  void read(std::int64_t offset, std::span<std::byte> out, std::string_view what);

 private:
  std::string path_;
  std::ifstream stream_;
  std::int64_t size_ = 0;
};

/// A file open for writing; close() reports what the destructor could not.
class OutputFile {
 public:
  explicit OutputFile(std::string const& path);
  void write(std::span<std::byte const> bytes);
  void write(std::string_view text);
  void close();

 private:
  std::string path_;
  std::ofstream stream_;
};

}  // namespace tegula::io
