#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tegula::fuzz {

/// Writes the input to a file of this process and calls f(path).
template <class F>
void with_file(std::uint8_t const* data, std::size_t size, char const* ending, F&& f) {
  std::string const name = "tegula-fuzz-" + std::to_string(getpid()) + ending;
  std::string const path = std::filesystem::temp_directory_path() / name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<char const*>(data), static_cast<std::streamsize>(size));
  f(path);
  unlink(path.c_str());
}

}  // namespace tegula::fuzz
