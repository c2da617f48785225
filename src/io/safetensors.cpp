#include "tegula/io/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "bytes.hpp"
#include "tegula/io/output_file.hpp"
#include "tegula/io/text.hpp"

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

std::string json_string(std::string const& value) { return "\"" + printable(value) + "\""; }

/// Fills tensors and metadata from the header's JSON as it is parsed, so that neither the time nor
/// the memory taken depends on more than the header's length, however it is nested.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  using Tensors = std::map<std::string, Safetensors::Tensor>;
  using Metadata = std::map<std::string, std::string>;

  HeaderReader(std::string path, Tensors& tensors, Metadata& metadata)
      : path_(std::move(path)), tensors_(tensors), metadata_(metadata) {}

  bool null() override { return other("null"); }
  bool boolean(bool value) override { return other(value ? "true" : "false"); }
  bool number_float(number_float_t, string_t const& text) override {
    return other(printable(text));
  }
  bool number_integer(number_integer_t value) override {
    return integer(fmt::format("{}", value), value >= 0 ? std::optional(value) : std::nullopt);
  }
  bool number_unsigned(number_unsigned_t value) override {
    bool const fits = value <= static_cast<std::uint64_t>(INT64_MAX);
    return integer(fmt::format("{}", value),
                   fits ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt);
  }
  bool binary(binary_t&) override { return other("bytes"); }

  bool string(string_t& value) override {
    if (state_ == State::metadata) {
      metadata_.emplace(key_, value);
      return true;
    }
    if (state_ != State::entry || key_ != "dtype") return other(json_string(value));
    auto const found = std::find_if(kTypes.begin(), kTypes.end(),
                                    [&](TypeName const& t) { return t.text == value; });
    if (found != kTypes.end()) tensor_.type = found->type;
    tensor_.dtype = value;
    return true;
  }

  bool key(string_t& key) override {
    key_ = key;
    if (state_ == State::header) {
      bool const again =
          key == "__metadata__" ? std::exchange(have_metadata_, true) : tensors_.contains(key);
      if (again) refuse_twice();
      name_ = key;
      tensor_ = {};
      have_ = {};
    } else if (state_ == State::metadata) {
      if (metadata_.contains(key)) refuse_twice();
      if (metadata_.size() == kMostMetadata)
        fail(fmt::format("__metadata__ has more than {} entries", kMostMetadata));
    } else {
      auto const at = std::find(kKeys.begin(), kKeys.end(), key);
      if (at == kKeys.end()) refuse_keys();
      if (std::exchange(have_[static_cast<std::size_t>(at - kKeys.begin())], true)) refuse_twice();
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (state_ == State::start) {
      state_ = State::header;
    } else if (state_ == State::header && name_ == "__metadata__") {
      state_ = State::metadata;
    } else if (state_ == State::header) {
      state_ = State::entry;
    } else {
      return other("{...}");
    }
    return true;
  }

  bool end_object() override {
    if (state_ == State::entry) {
      if (!(have_[0] && have_[1] && have_[2])) refuse_keys();
      finish_tensor();
    }
    state_ = State::header;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::entry || key_ == "dtype") return other("[...]");
    state_ = State::list;
    list_.clear();
    return true;
  }

  bool end_array() override {
    state_ = State::entry;
    if (key_ == "shape") {
      tensor_.shape = list_;
    } else if (list_.size() == 2) {
      tensor_.begin = list_[0], tensor_.end = list_[1];
    } else {
      fail_tensor(fmt::format("its data_offsets have {}; they must be a list of two",
                              counted(list_.size(), "number")));
    }
    return true;
  }

  bool parse_error(std::size_t position, std::string const&,
                   nlohmann::detail::exception const&) override {
    fail(fmt::format("its header is not JSON, at byte {} of it", position));
  }

 private:
  enum class State : std::uint8_t { start, header, metadata, entry, list };
  static constexpr std::array<std::string_view, 3> kKeys = {"dtype", "shape", "data_offsets"};
  static constexpr std::size_t kMostTensors = std::size_t{1} << 20;
  static constexpr std::size_t kMostMetadata = std::size_t{1} << 16;

  [[noreturn]] void fail(std::string const& why) const {
    throw io_error(fmt::format("{}: {}.", path_, why));
  }
  std::string who() const { return fmt::format("{}: tensor {}", path_, in_quotes(name_)); }
  [[noreturn]] void fail_tensor(std::string const& why) const {
    throw io_error(fmt::format("{}: {}.", who(), why));
  }
  [[noreturn]] void refuse_twice() const {
    fail(fmt::format("its header has the key {} twice", in_quotes(key_)));
  }
  [[noreturn]] void refuse_keys() const {
    fail_tensor("its entry must have exactly the keys dtype, shape and data_offsets");
  }
  bool integer(std::string const& text, std::optional<std::int64_t> value) {
    if (state_ != State::list) return other(text);
    if (!value)
      fail_tensor(fmt::format("{} holds {}, which is negative or beyond 63 bits", key_, text));
    if (list_.size() == kMostAxes)
      fail_tensor(fmt::format("{} has more than {} numbers", key_, kMostAxes));
    list_.push_back(*value);
    return true;
  }

  /// A value of a kind that does not belong where it stands.
  [[noreturn]] bool other(std::string const& value) const {
    if (state_ == State::start) fail("its header is not a JSON object");
    if (state_ == State::metadata)
      fail(fmt::format("__metadata__ entry {} is {}, not a string", in_quotes(key_), value));
    if (state_ == State::header && name_ == "__metadata__")
      fail(fmt::format("__metadata__ is {}, not an object of strings", value));
    if (state_ == State::header) refuse_keys();
    if (state_ == State::list)
      fail_tensor(fmt::format("{} holds {}, which is not an integer", key_, value));
    if (key_ == "dtype") fail_tensor(fmt::format("its dtype {} is not a string", value));
    fail_tensor(key_ == "shape" ? fmt::format("its shape {} is not a list", value)
                                : fmt::format("its data_offsets {} are not a list of two", value));
  }

  void finish_tensor() {
    if (tensor_.end < tensor_.begin)
      fail_tensor(fmt::format("its data_offsets [{},{}] end before they begin", tensor_.begin,
                              tensor_.end));
    if (tensor_.type) {
      std::int64_t const bytes = byte_size(*tensor_.type, tensor_.shape, who());
      if (tensor_.end - tensor_.begin != bytes)
        fail_tensor(
            fmt::format("its data_offsets [{},{}] span other than the {} of a tensor {} of {}",
                        tensor_.begin, tensor_.end, counted(bytes, "byte"),
                        shape_text(tensor_.shape), to_string(*tensor_.type)));
    }
    if (tensors_.size() == kMostTensors)
      fail(fmt::format("it has more than {} tensors", kMostTensors));
    tensors_.emplace(name_, tensor_);
  }

  std::string path_;
  Tensors& tensors_;
  Metadata& metadata_;
  State state_ = State::start;
  std::string name_, key_;
  Safetensors::Tensor tensor_ = {};
  std::array<bool, 3> have_ = {};
  bool have_metadata_ = false;
  std::vector<std::int64_t> list_;
};

/// The format asks that the tensors fill the data exactly: no holes, no overlaps.
void check_coverage(std::string const& path,
                    std::map<std::string, Safetensors::Tensor> const& tensors,
                    std::int64_t data_bytes) {
  std::vector<std::pair<std::string const*, Safetensors::Tensor const*>> order;
  for (auto const& [name, tensor] : tensors) order.emplace_back(&name, &tensor);
  std::sort(order.begin(), order.end(), [](auto const& x, auto const& y) {
    return std::pair(x.second->begin, x.second->end) < std::pair(y.second->begin, y.second->end);
  });
  std::int64_t at = 0;
  for (auto const& [name, tensor] : order) {
    if (tensor->begin != at)
      throw io_error(fmt::format(
          "{}: tensor {} begins at byte {} of the data, where byte {} was due: tensors overlap "
          "or leave a hole.",
          path, in_quotes(*name), tensor->begin, at));
    at = tensor->end;
  }
  if (at != data_bytes)
    throw io_error(fmt::format(
        "{}: its tensors have {}, and the file {} after its header: it is truncated or too long.",
        path, counted(at, "byte"), data_bytes));
}

/// The header as text. JSON holds UTF-8 and nothing else.
std::string dump_header(std::string const& path, json const& header) {
  try {
    return header.dump();
  } catch (json::exception const&) {
    throw io_error(
        fmt::format("{}: a name or an entry of metadata is not UTF-8, which the format asks for.",
                    printable(path)));
  }
}

}  // namespace

Safetensors::Safetensors(std::string const& given) : path_(given) {
  InputFile file(given);
  std::string const path = printable(given);
  std::array<std::byte, 8> length_bytes{};
  file.read(0, length_bytes, "the length of the safetensors header");
  std::uint64_t length = 0;
  std::memcpy(&length, length_bytes.data(), sizeof length);
  if (length > static_cast<std::uint64_t>(kHeaderLimit))
    throw io_error(fmt::format(
        "{}: is not a safetensors file: its header would have {}, and at most {} are allowed.",
        path, counted(length, "byte"), kHeaderLimit));
  if (static_cast<std::int64_t>(length) > file.size() - 8)
    throw io_error(fmt::format(
        "{}: is truncated: its header has {}, and the file {} after the header's length.", path,
        counted(length, "byte"), file.size() - 8));
  std::string text(length, '\0');
  file.read(8, std::as_writable_bytes(std::span(text)), "the safetensors header");
  data_offset_ = 8 + static_cast<std::int64_t>(length);

  // Both of which the parser would pass over: a mark of the byte order, and all behind a zero byte.
  if (text.starts_with("\xef\xbb\xbf") || text.find('\0') != std::string::npos)
    throw io_error(fmt::format(
        "{}: its header is not JSON: it has a mark of the byte order, or a byte that is zero.",
        path));
  HeaderReader reader(path, tensors_, metadata_);
  json::sax_parse(text, &reader);
  check_coverage(path, tensors_, file.size() - data_offset_);
}

Safetensors::Tensor const& Safetensors::tensor(std::string const& name) const {
  auto const found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  constexpr std::size_t kListed = 8;
  std::string known;
  std::size_t listed = 0;
  for (auto other = tensors_.begin(); other != tensors_.end() && listed < kListed;
       ++other, ++listed)
    known += (listed > 0 ? ", " : "") + in_quotes(other->first);
  std::string const all = tensors_.empty()       ? "none"
                          : tensors_.size() == 1 ? "one: " + known
                                                 : fmt::format("{}: {}", tensors_.size(), known);
  throw io_error(fmt::format("{}: has no tensor {}; it holds {}{}.", printable(path_),
                             in_quotes(name), all, tensors_.size() > kListed ? ", ..." : ""));
}

ArrayType Safetensors::describe(std::string const& name) const {
  Tensor const& found = tensor(name);
  if (!found.type)
    throw io_error(
        fmt::format("{}: tensor {} has dtype {}; BOOL, U8 to U64, I8 to I64, F16, BF16, "
                    "F32, F64, F8_E4M3 and F8_E5M2 can be read.",
                    printable(path_), in_quotes(name), json_string(found.dtype)));
  return {*found.type, found.shape};
}

Array Safetensors::read(std::string const& name) const {
  auto const [type, shape] = describe(name);
  Tensor const& found = tensor(name);
  Array array{type, shape,
              std::vector<std::byte>(static_cast<std::size_t>(found.end - found.begin))};
  InputFile(path_).read(data_offset_ + found.begin, array.data,
                        fmt::format("tensor {}", in_quotes(name)));
  return array;
}

void write_safetensors(std::string const& path, std::map<std::string, Array> const& tensors,
                       std::map<std::string, std::string> const& metadata) {
  std::vector<std::pair<std::string const*, Array const*>> order;
  for (auto const& [name, array] : tensors) {
    if (name == "__metadata__")
      throw std::invalid_argument("write_safetensors: a tensor cannot be named __metadata__.");
    check_filled("write_safetensors: tensor " + in_quotes(name), array);
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
    header[*name] = {
        {"dtype", type->text}, {"shape", array->shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = dump_header(path, header);
  text.append((8 - text.size() % 8) % 8, ' ');  // the data are aligned to 8 bytes
  std::uint64_t const length = text.size();

  OutputFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (auto const& [name, array] : order) file.write(array->data);
  file.commit();
}

}  // namespace tegula::io
