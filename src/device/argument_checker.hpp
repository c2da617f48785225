#pragma once

/// What the checks of arguments share: each refuses by a sentence of its own.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "tegula/device/arguments.hpp"
#include "tegula/io/text.hpp"

namespace tegula::device {

template <class... T>
[[noreturn]] void refuse_argument(fmt::format_string<T...> format, T&&... values) {
  throw argument_error(fmt::format(format, std::forward<T>(values)...));
}

/// All checks of one entry point name it first.
class Checker {
 public:
  explicit Checker(std::string_view operation) : operation_(operation) {}

  void architecture(int compute_capability) const {
    if (compute_capability < 80)
      refuse_argument("{}: the machine is sm_{}, and the kernels need sm_80 or later.", operation_,
                      compute_capability);
  }

  /// Of a value that may be none of the enumerators.
  static char const* name_of(DType type) {
    return static_cast<int>(type) < kDTypes ? to_string(type) : "not a DType";
  }

  void type(std::string_view name, DType type, std::initializer_list<DType> accepted) const {
    if (std::find(accepted.begin(), accepted.end(), type) != accepted.end()) return;
    std::string list;
    for (auto const* t = accepted.begin(); t != accepted.end(); ++t)
      list += fmt::format("{}{}",
                          t == accepted.begin()     ? ""
                          : t + 1 == accepted.end() ? " and "
                                                    : ", ",
                          to_string(*t));
    refuse_argument("{}: {} is {}; {} are computed.", operation_, name, name_of(type), list);
  }

  void extent(std::string_view name, std::int64_t value) const {
    if (value == 0)
      refuse_argument("{}: {} is 0; it must be at least 1, for an empty problem has no result.",
                      operation_, name);
    if (value < 0)
      refuse_argument("{}: {} is {}, which is negative; it must be at least 1.", operation_, name,
                      value);
    if (value > kMaxExtent)
      refuse_argument(
          "{}: {} is {}, beyond the 32-bit arithmetic of a tile; it must be at most {}.",
          operation_, name, value, kMaxExtent);
  }

  void pointer(std::string_view name, void const* value, int alignment) const {
    if (value == nullptr)
      refuse_argument("{}: {} is a null pointer; it must be a device pointer.", operation_, name);
    aligned(name, value, alignment);
  }

  void optional_pointer(std::string_view name, void const* value, int alignment) const {
    if (value != nullptr) aligned(name, value, alignment);
  }

  /// Where partial sums lie, and its size.
  void workspace(void const* address, std::int64_t bytes) const {
    optional_pointer("workspace", address, 16);
    if (bytes < 0 || (address == nullptr && bytes != 0))
      refuse_argument(
          "{}: workspace_bytes is {} and workspace is {}; it must be the size of the workspace, or 0 "
          "without one.",
          operation_, bytes, address == nullptr ? "a null pointer" : "given");
  }

  void different(std::string_view name, void const* value, std::string_view other_name,
                 void const* other) const {
    if (value == other)
      refuse_argument(
          "{}: {} and {} are the same pointer {}; the output must not overwrite an input that other tiles "
          "still read.",
          operation_, name, other_name, other);
  }

  /// Bytes that an operand spans must fit in 63 bits, so that no address wraps: sum of
  /// (extent - 1) * stride, plus the contiguous row.
  void span(std::string_view name,
            std::initializer_list<std::pair<std::int64_t, std::int64_t>> extents_and_strides,
            std::int64_t row, int element_bytes) const {
    std::int64_t elements = row;
    for (auto const& [extent, stride] : extents_and_strides) {
      std::int64_t step = 0;
      if (__builtin_mul_overflow(extent - 1, stride, &step) ||
          __builtin_add_overflow(elements, step, &elements))
        overflow(name);
    }
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(elements, static_cast<std::int64_t>(element_bytes), &bytes) ||
        elements > kMostElements)
      overflow(name);
  }

  void finite(std::string_view name, float value) const {
    if (!std::isfinite(value))
      refuse_argument("{}: {} is {}; it must be a finite number.", operation_, name, value);
  }

  /// CTAs are counted in 32 bits, as is a grid's x extent.
  void grid(std::string_view what, std::initializer_list<std::int64_t> factors) const {
    std::int64_t count = 1;
    for (auto const factor : factors) {
      if (__builtin_mul_overflow(count, factor, &count) ||
          count > std::numeric_limits<std::int32_t>::max())
        refuse_argument(
            "{}: {} is beyond 2^31 - 1 tiles, which are counted in 32 bits; split the problem.",
            operation_, what);
    }
  }

 protected:
  std::string_view operation_;

 private:
  void aligned(std::string_view name, void const* value, int alignment) const {
    auto const rest =
        reinterpret_cast<std::uintptr_t>(value) % static_cast<std::uintptr_t>(alignment);
    if (rest != 0)
      refuse_argument("{}: {} is {}, {} past a multiple of {}; it must be aligned to {}.",
                      operation_, name, value, io::counted(rest, "byte"), alignment,
                      io::counted(alignment, "byte"));
  }
  [[noreturn]] void overflow(std::string_view name) const {
    refuse_argument(
        "{}: {} spans 2^63 bytes or more, or more than 2^62 elements, by its extents and strides; its offsets "
        "must fit in 63 bits.",
        operation_, name);
  }

  static constexpr std::int64_t kMostElements = std::int64_t{1} << 62;
};

/// The memory that a tensor spans, and how much of that is its elements'.
struct Region {
  std::string_view name;
  std::uintptr_t address;
  std::uint64_t bytes;  ///< from the first element to the last
  bool dense;           ///< the elements' are all of it
  /// Where it is that simple: `rows` rows of `row` bytes, `pitch` apart; else 0 rows.
  std::int64_t rows = 0, row = 0, pitch = 0;
};

/// Precondition: the tensor's span has been checked.
inline Region region(
    std::string_view name, void const* address,
    std::initializer_list<std::pair<std::int64_t, std::int64_t>> extents_and_strides,
    std::int64_t row, int element_bytes) {
  std::int64_t spanned = row;
  double elements = static_cast<double>(row);
  std::int64_t rows = 1, pitch = 0;
  for (auto const& [extent, stride] : extents_and_strides) {
    spanned += (extent - 1) * stride;
    elements *= static_cast<double>(extent);
    if (extent == 1) continue;
    rows = rows == 1 ? extent : 0;
    pitch = stride * element_bytes;
  }
  return {name,
          reinterpret_cast<std::uintptr_t>(address),
          static_cast<std::uint64_t>(spanned) * static_cast<std::uint64_t>(element_bytes),
          elements >= static_cast<double>(spanned),
          rows,
          row * element_bytes,
          pitch};
}

/// With the gaps between its rows, in which nothing else is to lie.
inline Region filled(Region region) {
  region.dense = true, region.rows = 0;
  return region;
}

/// Of differences of addresses, which take 65 bits.
__extension__ using Wide = __int128;

/// Whether a row of one shares a byte with a row of the other. Precondition: both have rows, a
/// pitch in common.
inline bool rows_meet(Region const& x, Region const& y) {
  Wide const pitch = std::max<std::int64_t>({x.pitch, y.pitch, 1});
  Wide const shift = static_cast<Wide>(y.address) - static_cast<Wide>(x.address);
  auto const floor = [&](Wide bytes) { return bytes / pitch - (bytes % pitch < 0 ? 1 : 0); };
  // Row i + n of y begins shift + n pitch behind row i of x; from which n on it ends behind that
  // row's begin, and up to which n it begins before that row's end.
  Wide const first = floor(-y.row - shift) + 1, last = -floor(shift - x.row) - 1;
  return std::max<Wide>(first, 1 - x.rows) <= std::min<Wide>(last, y.rows - 1);
}

/// Refuses an output that is certain to share memory with another tensor: where both are dense, or
/// rows of one pitch. Of others, tensors with gaps may lie in each other's, as Q, K, V and O of one
/// packed buffer do.
inline void apart(std::string_view operation, Region const& output, Region const& other) {
  if (other.address == 0) return;
  bool const of_rows = output.rows > 0 && other.rows > 0 &&
                       (output.pitch == other.pitch || output.rows == 1 || other.rows == 1);
  if (!of_rows && (!output.dense || !other.dense)) return;
  bool const meet = of_rows                          ? rows_meet(output, other)
                    : output.address < other.address ? other.address - output.address < output.bytes
                                                     : output.address - other.address < other.bytes;
  if (meet)
    refuse_argument("{}: {}, {} from {:#x} on, overlaps {}, {} from {:#x} on; they must lie apart.",
                    operation, output.name, io::counted(output.bytes, "byte"), output.address,
                    other.name, io::counted(other.bytes, "byte"), other.address);
}

/// No two rows of the output may share an element: taken by growing stride, each axis must step
/// over all that those before it span.
struct OutputAxis {
  std::string_view name;  ///< of its stride
  std::int64_t extent, stride;
};
template <std::size_t N>
void rows_apart(std::string_view operation, std::string_view output, std::int64_t row,
                std::array<OutputAxis, N> axes) {
  std::stable_sort(axes.begin(), axes.end(),
                   [](OutputAxis const& x, OutputAxis const& y) { return x.stride < y.stride; });
  std::int64_t spanned = row;
  for (auto const& axis : axes) {
    if (axis.extent == 1) continue;
    if (axis.stride < spanned)
      refuse_argument(
          "{}: {} is {}, and rows of {} would overlap: it must be at least {}, what the axes inside it span.",
          operation, axis.name, axis.stride, output, spanned);
    spanned += (axis.extent - 1) * axis.stride;
  }
}

}  // namespace tegula::device
