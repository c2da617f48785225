#include "tegula/io/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "bytes.hpp"

namespace tegula::io {
namespace {

using nlohmann::json;

constexpr std::int64_t kHeaderLimit = 100'000'000;  // the reference implementation's own

struct TypeName {
  std::string_view text;
  ElementType type;
};
constexpr std::array<TypeName, 15> kTypes = {{{"BOOL", ElementType::boolean},
                                              {"U8", ElementType::u8},
                                              {"I8", ElementType::s8},
                                              {"U16", ElementType::u16},
                                              {"I16", ElementType::s16},
                                              {"U32", ElementType::u32},
                                              {"I32", ElementType::s32},
                                              {"U64", ElementType::u64},
                                              {"I64", ElementType::s64},
                                              {"F16", ElementType::f16},
                                              {"BF16", ElementType::bf16},
                                              {"F32", ElementType::f32},
                                              {"F64", ElementType::f64},
                                              {"F8_E4M3", ElementType::e4m3},
                                              {"F8_E5M2", ElementType::e5m2}}};

/// Parses the header, refusing a key that comes twice in one object (nlohmann's parser would keep the last
/// without a word).
json parse_header(std::string const& path, std::string const& text) {
  std::vector<std::set<std::string>> keys;
  std::string duplicate;
  auto const watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      duplicate = value.get<std::string>();
    return true;
  };
  json header;
  try {
    header = json::parse(text, watch);
  } catch (json::parse_error const& error) {
    throw io_error(fmt::format("{}: its header is not JSON: {}.", path, error.what()));
  }
  if (!header.is_object()) throw io_error(fmt::format("{}: its header is not a JSON object.", path));
  if (!duplicate.empty())
    throw io_error(fmt::format("{}: its header has the key '{}' twice.", path, duplicate));
  return header;
}

std::int64_t integer(json const& value, std::string const& who, std::string_view what) {
  if (!value.is_number_integer())
    throw io_error(fmt::format("{}: {} holds {}, which is not an integer.", who, what, value.dump()));
  if (value.is_number_unsigned() ? value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)
                                 : value.get<std::int64_t>() < 0)
    throw io_error(
        fmt::format("{}: {} holds {}, which is negative or beyond 63 bits.", who, what, value.dump()));
  return value.get<std::int64_t>();
}

Safetensors::Tensor parse_tensor(std::string const& who, json const& entry) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets") || entry.size() != 3)
    throw io_error(
        fmt::format("{}: its entry must have exactly the keys dtype, shape and data_offsets.", who));
  json const &dtype = entry["dtype"], &shape = entry["shape"], &offsets = entry["data_offsets"];
  auto const found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](TypeName const& t) { return dtype == json(std::string(t.text)); });
  if (found == kTypes.end())
    throw io_error(fmt::format(
        "{}: has dtype {}; BOOL, U8 to U64, I8 to I64, F16, BF16, F32, F64, F8_E4M3 and F8_E5M2 can be read.",
        who, dtype.dump()));
  if (!shape.is_array()) throw io_error(fmt::format("{}: its shape {} is not a list.", who, shape.dump()));
  if (!offsets.is_array() || offsets.size() != 2)
    throw io_error(fmt::format("{}: its data_offsets {} are not a list of two.", who, offsets.dump()));
  Safetensors::Tensor tensor{
      found->type, {}, integer(offsets[0], who, "data_offsets"), integer(offsets[1], who, "data_offsets")};
  for (json const& extent : shape) tensor.shape.push_back(integer(extent, who, "shape"));
  std::int64_t const bytes = byte_size(tensor.type, tensor.shape, who);
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != bytes)
    throw io_error(fmt::format("{}: its data_offsets {} span other than the {} bytes of a tensor {} of {}.",
                               who, offsets.dump(), bytes, shape_text(tensor.shape), to_string(tensor.type)));
  return tensor;
}

/// The format asks that the tensors fill the data exactly: no holes, no overlaps.
void check_coverage(std::string const& path, std::map<std::string, Safetensors::Tensor> const& tensors,
                    std::int64_t data_bytes) {
  std::vector<std::pair<std::string const*, Safetensors::Tensor const*>> order;
  for (auto const& [name, tensor] : tensors) order.emplace_back(&name, &tensor);
  std::sort(order.begin(), order.end(), [](auto const& x, auto const& y) {
    return std::pair(x.second->begin, x.second->end) < std::pair(y.second->begin, y.second->end);
  });
  std::int64_t at = 0;
  for (auto const& [name, tensor] : order) {
    if (tensor->begin != at)
      throw io_error(
          fmt::format("{}: tensor '{}' begins at byte {} of the data, where byte {} was due: tensors overlap "
                      "or leave a hole.",
                      path, *name, tensor->begin, at));
    at = tensor->end;
  }
  if (at != data_bytes)
    throw io_error(fmt::format(
        "{}: its tensors have {} bytes, and the file {} after its header: it is truncated or too long.", path,
        at, data_bytes));
}

}  // namespace

Safetensors::Safetensors(std::string const& path) : path_(path) {
  InputFile file(path);
  std::array<std::byte, 8> length_bytes{};
  file.read(0, length_bytes, "the length of the safetensors header");
  std::uint64_t length = 0;
  std::memcpy(&length, length_bytes.data(), sizeof length);
  if (length > static_cast<std::uint64_t>(kHeaderLimit))
    throw io_error(fmt::format(
        "{}: is not a safetensors file: its header would have {} bytes, and at most {} are allowed.", path,
        length, kHeaderLimit));
  if (static_cast<std::int64_t>(length) > file.size() - 8)
    throw io_error(
        fmt::format("{}: is truncated: its header has {} bytes, and the file {} after the header's length.",
                    path, length, file.size() - 8));
  std::string text(length, '\0');
  file.read(8, std::as_writable_bytes(std::span(text)), "the safetensors header");
  data_offset_ = 8 + static_cast<std::int64_t>(length);

  json const header = parse_header(path, text);
  for (auto const& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      tensors_.emplace(name, parse_tensor(fmt::format("{}: tensor '{}'", path, name), entry));
      continue;
    }
    if (!entry.is_object())
      throw io_error(fmt::format("{}: __metadata__ is not an object of strings.", path));
    for (auto const& [key, value] : entry.items()) {
      if (!value.is_string())
        throw io_error(fmt::format("{}: __metadata__ entry '{}' is not a string.", path, key));
      metadata_.emplace(key, value.get<std::string>());
    }
  }
  check_coverage(path, tensors_, file.size() - data_offset_);
}

Array Safetensors::read(std::string const& name) const {
  auto const found = tensors_.find(name);
  if (found == tensors_.end()) {
    std::string known;
    int listed = 0;
    for (auto const& [other, tensor] : tensors_) {
      if (listed++ == 8) break;
      known += (listed > 1 ? ", " : "") + other;
    }
    throw io_error(fmt::format("{}: has no tensor '{}'; it holds {} tensors: {}{}.", path_, name,
                               tensors_.size(), known, tensors_.size() > 8 ? ", ..." : ""));
  }
  Tensor const& tensor = found->second;
  Array array{tensor.type, tensor.shape,
              std::vector<std::byte>(static_cast<std::size_t>(tensor.end - tensor.begin))};
  InputFile(path_).read(data_offset_ + tensor.begin, array.data, fmt::format("tensor '{}'", name));
  return array;
}

void write_safetensors(std::string const& path, std::map<std::string, Array> const& tensors,
                       std::map<std::string, std::string> const& metadata) {
  std::vector<std::pair<std::string const*, Array const*>> order;
  for (auto const& [name, array] : tensors) {
    if (name == "__metadata__")
      throw std::invalid_argument("write_safetensors: a tensor cannot be named __metadata__.");
    if (byte_size(array.type, array.shape, path) != static_cast<std::int64_t>(array.data.size()))
      throw std::invalid_argument(
          fmt::format("write_safetensors: tensor '{}': {} bytes do not fill an array {} of {}.", name,
                      array.data.size(), shape_text(array.shape), to_string(array.type)));
    order.emplace_back(&name, &array);
  }
  std::stable_sort(order.begin(), order.end(), [](auto const& x, auto const& y) {
    return size_of(x.second->type) > size_of(y.second->type);
  });

  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t at = 0;
  for (auto const& [name, array] : order) {
    auto const bytes = static_cast<std::int64_t>(array->data.size());
    auto const type = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&, a = array](TypeName const& t) { return t.type == a->type; });
    header[*name] = {{"dtype", type->text}, {"shape", array->shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // the data are aligned to 8 bytes
  std::uint64_t const length = text.size();

  OutputFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (auto const& [name, array] : order) file.write(array->data);
  file.close();
}

}  // namespace tegula::io
