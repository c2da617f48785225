// Files that call themselves .npy: an array whose bytes fill its shape, or io_error.

#include "tegula/io/npy.hpp"

#include "file.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  tegula::fuzz::with_file(data, size, ".npy", [](std::string const& path) {
    try {
      tegula::io::Array const array = tegula::io::read_npy(path);
      if (static_cast<std::int64_t>(array.data.size()) !=
          array.size() * tegula::io::size_of(array.type))
        std::abort();
      if (tegula::io::to_doubles(array).size() != static_cast<std::size_t>(array.size()))
        std::abort();
    } catch (tegula::io::io_error const&) {
    }
  });
  return 0;
}
