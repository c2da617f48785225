#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tegula/sim/global_tensor.hpp"

/// Where the elements of a described tensor lie.
namespace tegula::sim {

constexpr std::int64_t element_bytes(GlobalTensor const& tensor) { return tensor.element_bits / 8; }

/// The elements' least offset from the tensor's address, in elements, and the greatest. Either may
/// be negative.
struct OffsetRange {
  std::int64_t least = 0, greatest = 0;
};
OffsetRange offsets_of(Layout const& layout);

/// Which element a byte of global memory belongs to.
struct ElementAt {
  std::vector<std::int64_t> coordinate;  ///< by mode; empty where there is none, or more than one
  bool between = false;  ///< no element's, but other elements lie on both of its sides
};
ElementAt element_at(GlobalTensor const& tensor, void const* byte);

/// The coordinate of the element with a colexicographic index.
std::vector<std::int64_t> coordinate_of(Layout const& layout, std::int64_t index);
/// "row 17, column 40, batch 2"
std::string coordinate_text(GlobalTensor const& tensor,
                            std::vector<std::int64_t> const& coordinate);

}  // namespace tegula::sim
