#include "tegula/io/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "bytes.hpp"
#include "tegula/io/output_file.hpp"
#include "tegula/io/text.hpp"

namespace tegula::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Reads the header, a Python dictionary literal with exactly the keys descr, fortran_order
/// and shape.
class HeaderParser {
 public:
  HeaderParser(std::string const& path, std::string_view text) : path_(path), text_(text) {}

  Header parse() {
    Header header;
    bool have_descr = false, have_order = false, have_shape = false;
    expect('{');
    while (!accept('}')) {
      std::string const key = string();
      expect(':');
      if (key == "descr" && !std::exchange(have_descr, true))
        header.descr = descr();
      else if (key == "fortran_order" && !std::exchange(have_order, true))
        header.fortran_order = boolean();
      else if (key == "shape" && !std::exchange(have_shape, true))
        header.shape = tuple();
      else
        fail(fmt::format("the key {} is unknown or comes twice", in_quotes(key)));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("text follows the dictionary");
    if (!have_descr || !have_order || !have_shape)
      fail("one of the keys descr, fortran_order and shape is missing");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string const& why) const {
    throw io_error(
        fmt::format("{}: has a malformed .npy header: {}, at character {}.", path_, why, at_));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
      ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' is missing", c));
  }
  std::string string() {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"'))
      fail("a quoted string is missing");
    char const quote = text_[at_++];
    auto const end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("a string has no end");
    std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }
  std::string descr() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[')
      fail("the elements are records, which are not supported");
    return string();
  }
  bool boolean() {
    skip_space();
    for (auto const& [word, value] :
         {std::pair{std::string_view("True"), true}, std::pair{std::string_view("False"), false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("True or False is missing");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::string_view const number = text_.substr(at_);
      bool const leading_zero =
          number.size() > 1 && number[0] == '0' && number[1] >= '0' && number[1] <= '9';
      if (leading_zero) fail("a number begins with 0");
      std::int64_t value = 0;
      auto const [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc()) fail("an integer is missing, or too large for 64 bits");
      at_ = static_cast<std::size_t>(end - text_.data());
      accept('L');  // NumPy under Python 2 wrote long integers with this suffix
      values.push_back(value);
      if (values.size() > kMostAxes)
        fail(fmt::format("the shape has more than {} axes", kMostAxes));
      if (!accept(',')) {
        expect(')');
        if (values.size() == 1) fail("(N) is no tuple, as (N,) is");
        break;
      }
    }
    return values;
  }

  std::string const& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

struct Descr {
  std::string_view text;  ///< without the byte order
  ElementType type;
};
constexpr std::array<Descr, 18> kDescrs = {{{"b1", ElementType::boolean},
                                            {"u1", ElementType::u8},
                                            {"i1", ElementType::s8},
                                            {"u2", ElementType::u16},
                                            {"i2", ElementType::s16},
                                            {"u4", ElementType::u32},
                                            {"i4", ElementType::s32},
                                            {"u8", ElementType::u64},
                                            {"i8", ElementType::s64},
                                            {"f2", ElementType::f16},
                                            {"f4", ElementType::f32},
                                            {"f8", ElementType::f64},
                                            {"V2", ElementType::bf16},
                                            {"bfloat16", ElementType::bf16},
                                            {"float8_e4m3fn", ElementType::e4m3},
                                            {"float8_e5m2", ElementType::e5m2},
                                            {"V1", ElementType::e4m3},
                                            {"f1", ElementType::e5m2}}};

/// The element type of a descr, and whether its bytes must be swapped.
std::pair<ElementType, bool> element_type(std::string const& path, std::string_view descr) {
  std::string_view text = descr;
  char order = '|';
  if (!text.empty() && std::string_view("<>|=").find(text[0]) != std::string_view::npos) {
    order = text[0];
    text.remove_prefix(1);
  }
  auto const found =
      std::find_if(kDescrs.begin(), kDescrs.end(), [&](Descr const& d) { return d.text == text; });
  if (found == kDescrs.end())
    throw io_error(fmt::format(
        "{}: holds elements {}; b1, u1 to u8, i1 to i8, f2, f4, f8, bfloat16 (V2), float8_e4m3fn (V1) and "
        "float8_e5m2 (f1) can be read.",
        path, in_quotes(descr)));
  return {found->type, order == '>' && size_of(found->type) > 1};
}

void swap_bytes(std::vector<std::byte>& data, int element_bytes) {
  for (std::size_t i = 0; i < data.size(); i += static_cast<std::size_t>(element_bytes))
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(i),
                 data.begin() + static_cast<std::ptrdiff_t>(i) + element_bytes);
}

/// The same array with its bytes moved from Fortran order (first index fastest) to C order.
std::vector<std::byte> to_c_order(std::vector<std::byte> const& data,
                                  std::vector<std::int64_t> const& shape, int element_bytes) {
  std::vector<std::byte> result(data.size());
  std::vector<std::int64_t> coordinate(shape.size(), 0);
  auto const bytes = static_cast<std::size_t>(element_bytes);
  for (std::size_t to = 0; to < data.size(); to += bytes) {
    std::int64_t from = 0;
    for (std::size_t d = shape.size(); d-- > 0;) from = from * shape[d] + coordinate[d];
    std::memcpy(result.data() + to, data.data() + static_cast<std::size_t>(from) * bytes, bytes);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++coordinate[d] < shape[d]) break;
      coordinate[d] = 0;
    }
  }
  return result;
}

/// A file whose header has been read and agrees with its size.
struct NpyFile {
  InputFile file;
  ArrayType array;
  bool swapped, fortran_order;
  std::int64_t bytes, data_offset;
};

NpyFile open_npy(std::string const& given) {
  InputFile file(given);
  std::string const path = printable(given);
  std::array<std::byte, 12> start{};
  file.read(0, std::span(start).first(8), "the .npy signature");
  if (std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0)
    throw io_error(fmt::format("{}: is not a .npy file: it does not begin with \\x93NUMPY.", path));
  int const major = static_cast<int>(start[6]), minor = static_cast<int>(start[7]);
  if (major < 1 || major > 3 || minor != 0)
    throw io_error(fmt::format("{}: has .npy version {}.{}; 1.0, 2.0 and 3.0 can be read.", path,
                               major, minor));
  int const length_bytes = major == 1 ? 2 : 4;
  file.read(8, std::span(start).subspan(8, static_cast<std::size_t>(length_bytes)),
            "the length of the .npy header");
  std::uint32_t length = 0;
  std::memcpy(&length, start.data() + 8, static_cast<std::size_t>(length_bytes));
  std::int64_t const header_offset = 8 + length_bytes;
  if (length > file.size() - header_offset)
    throw io_error(fmt::format(
        "{}: is truncated: its header has {}, and the file {} after the header's length.", path,
        counted(length, "byte"), file.size() - header_offset));
  constexpr std::uint32_t kHeaderLimit = 1 << 20;
  if (length > kHeaderLimit)
    throw io_error(
        fmt::format("{}: has a malformed .npy header: it has {}, and at most {} are read.", path,
                    counted(length, "byte"), kHeaderLimit));
  std::string text(length, '\0');
  file.read(header_offset, std::as_writable_bytes(std::span(text)), "the .npy header");
  Header const header = HeaderParser(path, text).parse();

  auto const [type, swapped] = element_type(path, header.descr);
  std::int64_t const bytes = byte_size(type, header.shape, path);
  std::int64_t const data_offset = header_offset + length;
  if (bytes != file.size() - data_offset)
    throw io_error(fmt::format("{}: holds {} of data, and its array {} of {} has {}.", path,
                               counted(file.size() - data_offset, "byte"), shape_text(header.shape),
                               to_string(type), bytes));
  return {std::move(file), {type, header.shape}, swapped, header.fortran_order, bytes, data_offset};
}

}  // namespace

ArrayType describe_npy(std::string const& path) { return open_npy(path).array; }

Array read_npy(std::string const& path) {
  NpyFile npy = open_npy(path);
  Array array{npy.array.type, std::move(npy.array.shape),
              std::vector<std::byte>(static_cast<std::size_t>(npy.bytes))};
  npy.file.read(npy.data_offset, array.data, "the array");
  if (npy.swapped) swap_bytes(array.data, size_of(array.type));
  if (npy.fortran_order && array.shape.size() > 1)
    array.data = to_c_order(array.data, array.shape, size_of(array.type));
  return array;
}

void write_npy(std::string const& path, Array const& array) {
  check_filled("write_npy", array);
  auto const found = std::find_if(kDescrs.begin(), kDescrs.end(),
                                  [&](Descr const& d) { return d.type == array.type; });
  bool const fp8 = array.type == ElementType::e4m3 || array.type == ElementType::e5m2;
  std::string header =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                  fp8                       ? ""
                  : size_of(array.type) > 1 ? "<"
                                            : "|",
                  found->text, fmt::join(array.shape, ", "), array.shape.size() == 1 ? "," : "");
  // The data begin at a multiple of 64 bytes; spaces and a newline fill the header up.
  bool const long_header = 10 + header.size() + 64 > 65535;
  std::size_t const start = long_header ? 12 : 10;
  header.append(63 - (start + header.size()) % 64, ' ');
  header += '\n';
  std::string preamble(kMagic);
  preamble += long_header ? '\x02' : '\x01';
  preamble += '\0';
  for (std::size_t i = 0; i < start - 8; ++i)
    preamble += static_cast<char>((header.size() >> (8 * i)) & 0xff);

  OutputFile file(path);
  file.write(preamble);
  file.write(header);
  file.write(array.data);
  file.commit();
}

}  // namespace tegula::io
