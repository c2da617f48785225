#pragma once

/// An array in host memory as files hold it: an element type, a shape and bytes. Reading and
/// writing: io/npy.hpp, io/safetensors.hpp, and io/files.hpp, which picks by the file's name.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tegula::io {

/// A file that cannot be read or written, or that does not hold what it claims: one sentence that
/// names the file. The readers throw nothing else, but for std::bad_alloc where there is no memory
/// for what a file holds.
struct io_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The element types that files hold (little-endian). `boolean` is a byte of 0 or 1.
enum class ElementType : std::uint8_t {
  boolean,
  u8,
  s8,
  u16,
  s16,
  u32,
  s32,
  u64,
  s64,
  f16,
  bf16,
  f32,
  f64,
  e4m3,
  e5m2,
};

/// Bytes of one element. Throws std::invalid_argument for a value that is no ElementType.
int size_of(ElementType type);
/// "f16", "bf16", "s32", ...: the names of DType; "bool" for `boolean`. Throws as size_of does.
std::string_view to_string(ElementType type);

/// An array in C order (last index fastest). Invariant, which the readers keep and the writers
/// check: data.size() == size() * size_of(type).
struct Array {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;

  /// Number of elements: the product of the extents; 1 for a scalar, whose shape is empty. Throws
  /// std::invalid_argument for a negative extent, and beyond 2^63.
  std::int64_t size() const;

  /// The elements as T, copied. Precondition: sizeof(T) is the element's size, otherwise
  /// std::invalid_argument.
  template <class T> std::vector<T> as() const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (static_cast<int>(sizeof(T)) != size_of(type))
      throw std::invalid_argument("Array::as: an element has " + std::to_string(size_of(type)) +
                                  " bytes, the type asked for " + std::to_string(sizeof(T)) + ".");
    std::vector<T> values(data.size() / sizeof(T));
    if (!data.empty()) std::memcpy(values.data(), data.data(), data.size());
    return values;
  }
};

/// What a file says of an array before its elements.
struct ArrayType {
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
};

/// An array of the given elements: `array_of(ElementType::f16, {3, 4}, bits)`. Precondition: as
/// many values as the shape holds, of the element's size, otherwise std::invalid_argument.
template <class T>
Array array_of(ElementType type, std::vector<std::int64_t> shape, std::vector<T> const& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  Array array{type, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  if (static_cast<int>(sizeof(T)) != size_of(type) ||
      array.size() != static_cast<std::int64_t>(values.size()))
    throw std::invalid_argument("array_of: " + std::to_string(values.size()) + " values of " +
                                std::to_string(sizeof(T)) + " bytes do not fill an array of " +
                                std::to_string(array.size()) + " elements of " +
                                std::to_string(size_of(type)) + " bytes.");
  if (!values.empty()) std::memcpy(array.data.data(), values.data(), array.data.size());
  return array;
}

/// The elements as doubles, exactly (64-bit integers beyond 2^53 round to nearest).
std::vector<double> to_doubles(Array const& array);
/// The elements as floats: exact for types of up to 16 bits and f32, rounded to nearest even for
/// the others. What is then rounded to a narrower type is rounded twice: take doubles and
/// numeric/narrow_double.hpp for that.
std::vector<float> to_floats(Array const& array);

/// "(3, 4)"; of more than 16 extents the first.
std::string shape_text(std::vector<std::int64_t> const& shape);

/// Bytes of an array of this type and shape. Throws io_error, beginning with `who`, for a negative
/// extent or a size beyond 2^62 bytes.
std::int64_t byte_size(ElementType type, std::vector<std::int64_t> const& shape,
                       std::string const& who);

}  // namespace tegula::io
