#include "tegula/io/array.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>

#include "bytes.hpp"
#include "tegula/io/text.hpp"

static_assert(std::endian::native == std::endian::little,
              "The file formats are little-endian, and so must the host be.");

namespace tegula::io {

InputFile::InputFile(std::string const& path) : name_(printable(path)) {
  std::error_code error;
  auto const status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status))
    throw io_error(fmt::format("{}: is a directory, not a file.", name_));
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw io_error(
        fmt::format("{}: is a device or a pipe; arrays are read from regular files.", name_));
  stream_.open(path, std::ios::binary | std::ios::ate);
  if (!stream_)
    throw io_error(
        fmt::format("{}: cannot be opened for reading: {}.", name_, std::strerror(errno)));
  size_ = static_cast<std::int64_t>(stream_.tellg());
}

void InputFile::read(std::int64_t offset, std::span<std::byte> out, std::string_view what) {
  auto const bytes = static_cast<std::int64_t>(out.size());
  if (offset > size_ || bytes > size_ - offset)
    throw io_error(fmt::format("{}: is truncated: {} needs bytes {} to {}, and the file has {}.",
                               name_, what, offset, offset + bytes, size_));
  stream_.seekg(offset);
  if (!stream_.read(reinterpret_cast<char*>(out.data()), bytes))
    throw io_error(fmt::format("{}: reading {} failed: {}.", name_, what, std::strerror(errno)));
}

int size_of(ElementType type) {
  switch (type) {
    case ElementType::boolean:
    case ElementType::u8:
    case ElementType::s8:
    case ElementType::e4m3:
    case ElementType::e5m2:
      return 1;
    case ElementType::u16:
    case ElementType::s16:
    case ElementType::f16:
    case ElementType::bf16:
      return 2;
    case ElementType::u32:
    case ElementType::s32:
    case ElementType::f32:
      return 4;
    case ElementType::u64:
    case ElementType::s64:
    case ElementType::f64:
      return 8;
  }
  throw std::invalid_argument("size_of: not an ElementType.");
}

void check_filled(std::string const& who, Array const& array) {
  std::int64_t bytes = 0;
  try {
    bytes = byte_size(array.type, array.shape, who);
  } catch (io_error const& error) {
    throw std::invalid_argument(error.what());
  }
  if (bytes != static_cast<std::int64_t>(array.data.size()))
    throw std::invalid_argument(fmt::format("{}: {} cannot fill an array {} of {}, which has {}.",
                                            who, counted(array.data.size(), "byte"),
                                            shape_text(array.shape), to_string(array.type), bytes));
}

std::string_view to_string(ElementType type) {
  static constexpr std::array<std::string_view, 15> names = {"bool", "u8",  "s8",  "u16",  "s16",
                                                             "u32",  "s32", "u64", "s64",  "f16",
                                                             "bf16", "f32", "f64", "e4m3", "e5m2"};
  if (static_cast<std::size_t>(type) >= names.size())
    throw std::invalid_argument("to_string: not an ElementType.");
  return names[static_cast<std::size_t>(type)];
}

std::int64_t Array::size() const {
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent < 0; }))
    throw std::invalid_argument(
        fmt::format("Array: the shape {} has a negative extent.", shape_text(shape)));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t size = 1;
  for (auto const extent : shape) {
    if (__builtin_mul_overflow(size, extent, &size))
      throw std::invalid_argument(
          fmt::format("Array: the shape {} has more than 2^63 elements.", shape_text(shape)));
  }
  return size;
}

namespace {

template <class T> T element(Array const& array, std::size_t i) {
  T value;
  std::memcpy(&value, array.data.data() + i * sizeof(T), sizeof(T));
  return value;
}

/// A binary float of up to 16 bits, widened exactly: `exponent_bits` of bias 2^(e-1) - 1,
/// `fraction_bits` below it. `ieee`: the largest exponent means infinity and NaN; otherwise only
/// the pattern of all ones is NaN (e4m3, OCP 8-bit floating point specification).
double widen(unsigned bits, int exponent_bits, int fraction_bits, bool ieee) {
  unsigned const exponent = (bits >> fraction_bits) & ((1u << exponent_bits) - 1);
  unsigned const fraction = bits & ((1u << fraction_bits) - 1);
  int const bias = (1 << (exponent_bits - 1)) - 1;
  double const sign = (bits >> (exponent_bits + fraction_bits)) & 1 ? -1.0 : 1.0;
  bool const top = exponent == (1u << exponent_bits) - 1;
  if (ieee && top)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  if (!ieee && top && fraction == (1u << fraction_bits) - 1)
    return std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1u << fraction_bits),
                           static_cast<int>(exponent) - bias - fraction_bits);
}

double element_as_double(Array const& array, std::size_t i) {
  switch (array.type) {
    case ElementType::boolean:
      return element<std::uint8_t>(array, i) != 0;
    case ElementType::u8:
      return element<std::uint8_t>(array, i);
    case ElementType::s8:
      return element<std::int8_t>(array, i);
    case ElementType::u16:
      return element<std::uint16_t>(array, i);
    case ElementType::s16:
      return element<std::int16_t>(array, i);
    case ElementType::u32:
      return element<std::uint32_t>(array, i);
    case ElementType::s32:
      return element<std::int32_t>(array, i);
    case ElementType::u64:
      return static_cast<double>(element<std::uint64_t>(array, i));
    case ElementType::s64:
      return static_cast<double>(element<std::int64_t>(array, i));
    case ElementType::f16:
      return widen(element<std::uint16_t>(array, i), 5, 10, true);
    case ElementType::bf16:
      return widen(element<std::uint16_t>(array, i), 8, 7, true);
    case ElementType::f32:
      return element<float>(array, i);
    case ElementType::f64:
      return element<double>(array, i);
    case ElementType::e4m3:
      return widen(element<std::uint8_t>(array, i), 4, 3, false);
    case ElementType::e5m2:
      return widen(element<std::uint8_t>(array, i), 5, 2, true);
  }
  throw std::invalid_argument("to_doubles: not an ElementType.");
}

template <class T> std::vector<T> convert(Array const& array) {
  std::vector<T> values(array.data.size() / static_cast<std::size_t>(size_of(array.type)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(element_as_double(array, i));
  return values;
}

}  // namespace

std::vector<double> to_doubles(Array const& array) { return convert<double>(array); }
std::vector<float> to_floats(Array const& array) { return convert<float>(array); }

std::string shape_text(std::vector<std::int64_t> const& shape) {
  constexpr std::size_t kShown = 16;
  auto const shown = static_cast<std::ptrdiff_t>(std::min(shape.size(), kShown));
  return fmt::format("({}{})", fmt::join(shape.begin(), shape.begin() + shown, ", "),
                     shape.size() > kShown ? ", ..." : "");
}

std::int64_t byte_size(ElementType type, std::vector<std::int64_t> const& shape,
                       std::string const& who) {
  constexpr std::int64_t limit = std::int64_t{1} << 62;
  std::int64_t bytes = size_of(type);
  bool empty = false;
  for (auto const extent : shape) {
    if (extent < 0)
      throw io_error(fmt::format("{}: has shape {}, whose extent {} is negative.", who,
                                 shape_text(shape), extent));
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  for (auto const extent : shape) {
    if (bytes > limit / extent)
      throw io_error(fmt::format("{}: has shape {} of {}, which is more than 2^62 bytes.", who,
                                 shape_text(shape), to_string(type)));
    bytes *= extent;
  }
  return bytes;
}

}  // namespace tegula::io
