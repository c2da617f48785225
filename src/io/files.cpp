#include "tegula/io/files.hpp"

#include <fmt/format.h>

#include "tegula/io/npy.hpp"
#include "tegula/io/safetensors.hpp"

namespace tegula::io {
namespace {

constexpr std::string_view kSafetensors = ".safetensors";

/// `FILE.safetensors:NAME` in two; the name is empty where it is left out. False for a file of another kind.
bool split(std::string const& name, std::string& path, std::string& tensor) {
  auto const at = name.find(std::string(kSafetensors) + ":");
  if (at != std::string::npos) {
    path = name.substr(0, at + kSafetensors.size());
    tensor = name.substr(at + kSafetensors.size() + 1);
    return true;
  }
  path = name;
  tensor.clear();
  return name.ends_with(kSafetensors);
}

[[noreturn]] void refuse_name(std::string const& name) {
  throw io_error(fmt::format(
      "{}: is neither a .npy file nor a .safetensors file (FILE.safetensors:NAME for one of its tensors).",
      name));
}

}  // namespace

Array read_array(std::string const& name) {
  std::string path, tensor;
  if (split(name, path, tensor)) {
    Safetensors const file(path);
    if (!tensor.empty()) return file.read(tensor);
    if (file.tensors().size() == 1) return file.read(file.tensors().begin()->first);
    throw io_error(
        fmt::format("{}: holds {} tensors; say which, as {}:NAME.", path, file.tensors().size(), path));
  }
  if (!name.ends_with(".npy")) refuse_name(name);
  return read_npy(name);
}

void write_array(std::string const& name, Array const& array) {
  std::string path, tensor;
  if (split(name, path, tensor))
    write_safetensors(path, {{tensor.empty() ? "output" : tensor, array}});
  else if (name.ends_with(".npy"))
    write_npy(name, array);
  else
    refuse_name(name);
}

}  // namespace tegula::io
