#include "tegula/io/files.hpp"

#include <fmt/format.h>

#include "tegula/io/npy.hpp"
#include "tegula/io/safetensors.hpp"
#include "tegula/io/text.hpp"

namespace tegula::io {
namespace {

constexpr std::string_view kSafetensors = ".safetensors";

/// `FILE.safetensors:NAME` in two; the name is empty where it is left out. False for a file of
/// another kind.
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
      printable(name)));
}

/// The tensor of a file that a name means: its only one where the name is left out.
std::string only_tensor(Safetensors const& file, std::string const& tensor) {
  if (!tensor.empty()) return tensor;
  if (file.tensors().size() == 1) return file.tensors().begin()->first;
  throw io_error(fmt::format("{0}: holds {1} tensors; say which, as {0}:NAME.",
                             printable(file.path()), file.tensors().size()));
}

}  // namespace

Array read_array(std::string const& name) {
  std::string path, tensor;
  if (split(name, path, tensor)) {
    Safetensors const file(path);
    return file.read(only_tensor(file, tensor));
  }
  if (!name.ends_with(".npy")) refuse_name(name);
  return read_npy(name);
}

ArrayType describe_array(std::string const& name) {
  std::string path, tensor;
  if (split(name, path, tensor)) {
    Safetensors const file(path);
    Safetensors::Tensor const& found = file.tensor(only_tensor(file, tensor));
    return {found.type, found.shape};
  }
  if (!name.ends_with(".npy")) refuse_name(name);
  return describe_npy(name);
}

std::string file_of_array(std::string const& name) {
  std::string path, tensor;
  if (!split(name, path, tensor) && !name.ends_with(".npy")) refuse_name(name);
  return path;
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
