#pragma once

#include <cstdint>
#include <tegula/numeric/dtype.hpp>

/// Elements of 8, 6 and 4 bits in a row of kinds f8f6f4 and mxf8f6f4. Internal.
namespace tegula::sim::detail {

/// The code of element i: 16 of them in 16 bytes, of fewer bits bit after bit at the beginning of
/// these.
inline std::uint8_t packed_code(DType type, std::uint8_t const* bytes, int i) {
  constexpr int unit = 16;
  int const width = bits(type), first = i % unit * width;
  std::uint8_t const* const at = bytes + i / unit * unit + first / 8;
  unsigned const word = at[0] | (first % 8 + width > 8 ? at[1] << 8 : 0u);
  return static_cast<std::uint8_t>(word >> first % 8 & ((1u << width) - 1));
}

}  // namespace tegula::sim::detail
