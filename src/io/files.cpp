#include "tegula/io/files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "tegula/io/npy.hpp"
#include "tegula/io/safetensors.hpp"
#include "tegula/io/text.hpp"

namespace tegula::io {
namespace {

constexpr std::string_view kSafetensors = ".safetensors";
constexpr char const* kOutputTensor = "output";

[[noreturn]] void refuse_tensor_name(std::string const& name, char const* why) {
  throw io_error(fmt::format("{}: {}; behind the colon must stand the name of a tensor.",
                             printable(name), why));
}

/// Names that no tensor of a file has are refused before anything is read or computed.
void check_tensor_name(std::string const& name, std::string const& tensor) {
  auto const refuse = [&](char const* why) { refuse_tensor_name(name, why); };
  if (tensor == "__metadata__") refuse("__metadata__ is what the format keeps for other things");
  if (!is_utf8(tensor)) refuse("the name behind the colon is not UTF-8");
}

/// `FILE.safetensors:NAME` in two; without a name where the colon is left out. False for a file of
/// another kind. Throws io_error for what is no name.
bool split(std::string const& name, std::string& path, std::optional<std::string>& tensor) {
  auto const at = name.find(std::string(kSafetensors) + ":");
  tensor.reset();
  path = name;
  if (at == std::string::npos) return name.ends_with(kSafetensors);
  path = name.substr(0, at + kSafetensors.size());
  tensor = name.substr(at + kSafetensors.size() + 1);
  check_tensor_name(name, *tensor);
  return true;
}

[[noreturn]] void refuse_name(std::string const& name) {
  throw io_error(fmt::format(
      "{}: is neither a .npy file nor a .safetensors file (FILE.safetensors:NAME for one of its tensors).",
      printable(name)));
}

/// The tensor of a file that a name means: its only one where the name is left out.
std::string only_tensor(Safetensors const& file, std::optional<std::string> const& tensor) {
  if (tensor) return *tensor;
  if (file.tensors().empty())
    throw io_error(fmt::format("{}: holds no tensor.", printable(file.path())));
  if (file.tensors().size() == 1) return file.tensors().begin()->first;
  throw io_error(fmt::format("{0}: holds {1} tensors; say which, as {0}:NAME.",
                             printable(file.path()), file.tensors().size()));
}

}  // namespace

Array read_array(std::string const& name) {
  std::string path;
  std::optional<std::string> tensor;
  if (split(name, path, tensor)) {
    Safetensors const file(path);
    return file.read(only_tensor(file, tensor));
  }
  if (!name.ends_with(".npy")) refuse_name(name);
  return read_npy(name);
}

ArrayType describe_array(std::string const& name) {
  std::string path;
  std::optional<std::string> tensor;
  if (split(name, path, tensor)) {
    Safetensors const file(path);
    return file.describe(only_tensor(file, tensor));
  }
  if (!name.ends_with(".npy")) refuse_name(name);
  return describe_npy(name);
}

std::string file_of_array(std::string const& name) {
  std::string path;
  std::optional<std::string> tensor;
  if (!split(name, path, tensor) && !name.ends_with(".npy")) refuse_name(name);
  return path;
}

void check_array_target(std::string const& name) {
  std::string path;
  std::optional<std::string> tensor;
  std::error_code unknown;
  if (!split(name, path, tensor)) return;
  // A tensor may be read by the empty name; who writes one has more likely forgotten the name.
  if (tensor && tensor->empty()) refuse_tensor_name(name, "the name behind the colon is empty");
  if (!std::filesystem::is_regular_file(path, unknown)) return;
  std::string const own = tensor.value_or(kOutputTensor);
  std::map<std::string, Safetensors::Tensor> held;
  try {
    held = Safetensors(path).tensors();
  } catch (io_error const&) {
    return;  // there is no such file, or it is none of the format
  }
  held.erase(own);
  if (held.empty()) return;
  throw io_error(
      fmt::format("{}: holds {} than {} ({}{}), which would be lost; a file of its own is needed.",
                  printable(path), counted(held.size(), "other tensor"), in_quotes(own),
                  printable(held.begin()->first), held.size() == 1 ? "" : ", ..."));
}

void write_array(std::string const& name, Array const& array) {
  check_array_target(name);
  std::string path;
  std::optional<std::string> tensor;
  if (split(name, path, tensor))
    write_safetensors(path, {{tensor.value_or(kOutputTensor), array}});
  else if (name.ends_with(".npy"))
    write_npy(name, array);
  else
    refuse_name(name);
}

}  // namespace tegula::io
