#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "tegula/io/text.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula::sim {

namespace {

bool is_floating_point(DType type) {
  return type == DType::f64 || type == DType::f32 || type == DType::tf32 || type == DType::f16 ||
         type == DType::bf16;
}

template <class... Arguments>
std::string sentence(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return "tensor map: " + fmt::format(format, std::forward<Arguments>(arguments)...) + ".";
}

}  // namespace

namespace {

/// What a map of elements that are unpacked breaks of the rules for CU_TENSOR_MAP_DATA_TYPE_16U4_
/// ALIGN16B and 16U6_ALIGN16B. Precondition: it keeps those of all types.
std::optional<std::string> refusal_of_unpacked(TensorMapDescription const& d) {
  constexpr int elements = 128, bytes = 32;
  if (reinterpret_cast<std::uintptr_t>(d.address) % bytes != 0)
    return sentence("address is {}; of {} it must be a multiple of {}", d.address,
                    to_string(d.dtype), bytes);
  if (d.extents[0] % elements != 0)
    return sentence("extents[0] is {}; of {} it must be a multiple of {}", d.extents[0],
                    to_string(d.dtype), elements);
  if (d.box[0] != elements)
    return sentence("box[0] is {}; of {} it must be {}", d.box[0], to_string(d.dtype), elements);
  for (int axis = 1; axis < d.rank; ++axis) {
    std::int64_t const stride = d.strides[static_cast<std::size_t>(axis) - 1];
    if (stride % bytes != 0)
      return sentence("strides[{}], of axis {}, is {}; of {} it must be a multiple of {}", axis - 1,
                      axis, io::counted(stride, "byte"), to_string(d.dtype), bytes);
  }
  if (d.swizzle != TmaSwizzle::none && span_bytes(d.swizzle) != elements)
    return sentence("swizzle is {}; of {} it must be none, or of 128 bytes", to_string(d.swizzle),
                    to_string(d.dtype));
  return std::nullopt;
}

/// What a map of an image breaks of the rules of cuTensorMapEncodeIm2col. Precondition: it keeps
/// those of all maps.
std::optional<std::string> refusal_of_image(TensorMapDescription const& d) {
  if (d.rank < 3) return sentence("rank is {}; of im2col it must be 3, 4 or 5", d.rank);
  if (is_unpacked(d.dtype))
    return sentence("dtype is {}; of im2col it must have 8, 16, 32 or 64 bits", to_string(d.dtype));
  int const batch = d.rank - 1;
  if (d.element_strides[static_cast<std::size_t>(batch)] != 1)
    return sentence("element_strides[{}], of the images, is {}; of im2col it must be 1", batch,
                    d.element_strides[static_cast<std::size_t>(batch)]);
  int const least = d.rank == 3 ? -32768 : d.rank == 4 ? -128 : -16;
  for (std::size_t i = 0; i + 2 < static_cast<std::size_t>(d.rank); ++i) {
    for (auto const& [name, corner] : {std::pair("lower_corner", d.lower_corner[i]),
                                       std::pair("upper_corner", d.upper_corner[i])}) {
      if (corner < least || corner > -least - 1)
        return sentence("{}[{}] is {}; of rank {} it must be {} to {}", name, i, corner, d.rank,
                        least, -least - 1);
    }
    if (d.extents[i + 1] + d.upper_corner[i] <= d.lower_corner[i])
      return sentence(
          "lower_corner[{}] is {} and upper_corner[{}] {} of {} elements along axis {}; the bounding "
          "box between them must hold one at least",
          i, d.lower_corner[i], i, d.upper_corner[i], d.extents[i + 1], i + 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> refusal(TensorMapDescription const& d) {
  bool const unpacks = d.dtype == DType::e2m1 || d.dtype == DType::e2m3 || d.dtype == DType::e3m2;
  if (is_unpacked(d.dtype) && !unpacks)
    return sentence(
        "dtype is {}; TMA moves elements of 8, 16, 32 or 64 bits, and e2m1, e2m3 and e3m2",
        to_string(d.dtype));
  if (d.rank < 1 || d.rank > 5) return sentence("rank is {}; a tensor map has 1 to 5 axes", d.rank);
  auto const address = reinterpret_cast<std::uintptr_t>(d.address);
  if (d.address == nullptr)
    return sentence("address is null; it must be that of a tensor in global memory");
  if (address % 16 != 0)
    return sentence("address is {}, {} past a multiple of 16; it must be a multiple of 16",
                    d.address, io::counted(address % 16, "byte"));
  std::int64_t const element = unpacks ? 1 : bits(d.dtype) / 8;  // in shared memory
  for (int axis = 0; axis < d.rank; ++axis) {
    auto const i = static_cast<std::size_t>(axis);
    if (d.extents[i] < 1 || d.extents[i] > std::int64_t{1} << 32)
      return sentence("extents[{}] is {}; it must be 1 to 2^32", axis, d.extents[i]);
    bool const image = d.mode == TmaMode::im2col;
    int const most = image && axis == 1 ? 1024 : 256;
    if ((!image || axis < 2) && (d.box[i] < 1 || d.box[i] > most))
      return sentence("box[{}] is {}; it must be 1 to {}", axis, d.box[i], most);
    if (d.element_strides[i] < 1 || d.element_strides[i] > 8)
      return sentence("element_strides[{}] is {}; it must be 1 to 8", axis, d.element_strides[i]);
    if (axis == 0) continue;
    std::int64_t const stride = d.strides[i - 1];
    if (stride < 0 || stride >= std::int64_t{1} << 40)
      return sentence(
          "strides[{}], of axis {}, is {} bytes; it must be less than 2^40 and not negative",
          axis - 1, axis, stride);
    if (stride % 16 != 0)
      return sentence("strides[{}], of axis {}, is {}; it must be a multiple of 16", axis - 1, axis,
                      io::counted(stride, "byte"));
  }
  // Not in the driver's documentation; cuTensorMapEncodeTiled of driver 580.159.04 refuses more.
  constexpr std::int64_t most_bytes = 228 * 1024;
  std::int64_t bytes = element;
  for (int axis = 0; axis < d.rank; ++axis) bytes *= box_extent(d, axis);
  if (bytes > most_bytes)
    return sentence("box ({}) of {} is {} bytes; it must be at most {}, the shared memory of an SM",
                    fmt::join(std::span(d.box).first(static_cast<std::size_t>(d.rank)), ", "),
                    to_string(d.dtype), bytes, most_bytes);
  std::int64_t const row = d.box[0] * element;
  if (row % 16 != 0)
    return sentence("box[0] is {} of {}, {}; it must be a multiple of 16 bytes",
                    io::counted(d.box[0], "element"), to_string(d.dtype), io::counted(row, "byte"));
  if (d.swizzle != TmaSwizzle::none && row > span_bytes(d.swizzle))
    return sentence(
        "box[0] is {} of {}, {} bytes; under a swizzle of {} it must be at most {} bytes",
        io::counted(d.box[0], "element"), to_string(d.dtype), row, to_string(d.swizzle),
        span_bytes(d.swizzle));
  if (d.fill == TmaFill::nans && !is_floating_point(d.dtype))
    return sentence("fill is nans for {}; it must be zeros but for f64, f32, tf32, f16 and bf16",
                    to_string(d.dtype));
  if (unpacks) {
    if (std::optional<std::string> wrong = refusal_of_unpacked(d)) return wrong;
  }
  return d.mode == TmaMode::im2col ? refusal_of_image(d) : std::nullopt;
}

}  // namespace tegula::sim
