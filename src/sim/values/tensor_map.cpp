#include "tegula/sim/tensor_map.hpp"

#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace tegula::sim {

namespace {

/// In the first bytes of a map: "simTMA 1". A GPU's maps begin with the tensor's address, which has
/// zeros on top.
constexpr std::uint64_t kMark = 0x3120414d546d6973;

/// The description with every number in as many bits as its rule leaves it.
struct Packed {
  std::uint64_t mark;
  std::uint64_t address;
  std::uint64_t strides[4];
  std::uint32_t last_index[5];   // extents - 1
  std::uint16_t last_in_box[5];  // box - 1
  std::int16_t corners[6];
  std::uint8_t element_strides[5];
  std::uint8_t dtype;
  std::uint8_t rank;
  std::uint8_t swizzle;
  std::uint8_t l2_promotion;
  std::uint8_t fill;
  std::uint8_t mode;
};
static_assert(sizeof(Packed) <= sizeof(TensorMap) && std::is_trivially_copyable_v<Packed>);

}  // namespace

TensorMap encode(TensorMapDescription const& description) {
  if (std::optional<std::string> const wrong = refusal(description))
    throw std::invalid_argument(*wrong);
  Packed packed{};
  packed.mark = kMark;
  packed.address = reinterpret_cast<std::uintptr_t>(description.address);
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(description.rank); ++axis) {
    if (axis > 0)
      packed.strides[axis - 1] = static_cast<std::uint64_t>(description.strides[axis - 1]);
    packed.last_index[axis] = static_cast<std::uint32_t>(description.extents[axis] - 1);
    if (description.mode == TmaMode::tiled || axis < 2)
      packed.last_in_box[axis] = static_cast<std::uint16_t>(description.box[axis] - 1);
    packed.element_strides[axis] = static_cast<std::uint8_t>(description.element_strides[axis]);
  }
  packed.dtype = static_cast<std::uint8_t>(description.dtype);
  packed.rank = static_cast<std::uint8_t>(description.rank);
  packed.swizzle = static_cast<std::uint8_t>(description.swizzle);
  packed.l2_promotion = static_cast<std::uint8_t>(description.l2_promotion);
  packed.fill = static_cast<std::uint8_t>(description.fill);
  packed.mode = static_cast<std::uint8_t>(description.mode);
  for (std::size_t i = 0; i < 3; ++i) {
    packed.corners[i] = static_cast<std::int16_t>(description.lower_corner[i]);
    packed.corners[3 + i] = static_cast<std::int16_t>(description.upper_corner[i]);
  }
  TensorMap map{};
  std::memcpy(map.bytes, &packed, sizeof(packed));
  return map;
}

std::optional<TensorMapDescription> decode(TensorMap const& map) {
  Packed packed;
  std::memcpy(&packed, map.bytes, sizeof(packed));
  if (packed.mark != kMark) return std::nullopt;
  TensorMapDescription description;
  description.mode = static_cast<TmaMode>(packed.mode);
  description.dtype = static_cast<DType>(packed.dtype);
  description.rank = packed.rank;
  description.address = reinterpret_cast<void const*>(packed.address);
  for (std::size_t axis = 0; axis < packed.rank; ++axis) {
    if (axis > 0)
      description.strides[axis - 1] = static_cast<std::int64_t>(packed.strides[axis - 1]);
    description.extents[axis] = std::int64_t{packed.last_index[axis]} + 1;
    if (description.mode == TmaMode::tiled || axis < 2)
      description.box[axis] = packed.last_in_box[axis] + 1;
    description.element_strides[axis] = packed.element_strides[axis];
  }
  description.swizzle = static_cast<TmaSwizzle>(packed.swizzle);
  description.l2_promotion = static_cast<TmaL2Promotion>(packed.l2_promotion);
  description.fill = static_cast<TmaFill>(packed.fill);
  for (std::size_t i = 0; i < 3; ++i) {
    description.lower_corner[i] = packed.corners[i];
    description.upper_corner[i] = packed.corners[3 + i];
  }
  return description;
}

}  // namespace tegula::sim
