// Files that call themselves .safetensors: tensors that fill the file, each of which can be read,
// or io_error.

#include "tegula/io/safetensors.hpp"

#include "file.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  tegula::fuzz::with_file(data, size, ".safetensors", [](std::string const& path) {
    try {
      tegula::io::Safetensors const file(path);
      for (auto const& [name, tensor] : file.tensors()) {
        tegula::io::Array const array = file.read(name);
        if (static_cast<std::int64_t>(array.data.size()) !=
            array.size() * tegula::io::size_of(array.type))
          std::abort();
      }
    } catch (tegula::io::io_error const&) {
    }
  });
  return 0;
}
