#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/numeric/dtype.hpp"

/// Tensor maps: what they describe, in words that can be printed and checked, and their making for a machine.
namespace tegula {

/// A tensor in global memory and the box of it that one TMA instruction moves: the arguments of the CUDA
/// driver's cuTensorMapEncodeTiled, by name. Axis 0 is the innermost, whose elements are contiguous; of each
/// array the first `rank` entries count (of `strides` the first rank - 1).
struct TensorMapDescription {
  DType dtype = DType::bf16;
  int rank = 0;                              ///< 1 to 5
  void const* address = nullptr;             ///< in the machine's global memory
  std::array<std::int64_t, 5> extents = {};  ///< elements along each axis
  std::array<std::int64_t, 4> strides = {};  ///< bytes from one index to the next along axes 1, 2, ...
  std::array<int, 5> box = {};               ///< elements along each axis of the tensor that a box spans
  std::array<int, 5> element_strides = {1, 1, 1, 1, 1};  ///< a box takes every n-th element of its span
  TmaSwizzle swizzle = TmaSwizzle::none;
  TmaL2Promotion l2_promotion = TmaL2Promotion::b128;
  TmaFill fill = TmaFill::zeros;

  friend bool operator==(TensorMapDescription const&, TensorMapDescription const&) = default;
};

/// All of it in one line, for messages.
std::string to_string(TensorMapDescription const& description);

/// Holds a description to the rules of cuTensorMapEncodeTiled (CUDA driver API, "Tensor Map Object
/// Management"), which answers a breach of any with one and the same error: throws argument_error that names
/// the argument, its value and what is accepted.
void check(TensorMapDescription const& description);

/// Makes the map of a description for kernels on that machine. Throws argument_error as check() does, and
/// device_error where the machine has no TMA or its driver refuses.
TensorMap encode(Machine const& machine, TensorMapDescription const& description);

}  // namespace tegula
