#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tegula/layout/layout.hpp"

/// What a launch says of the tensors in its global memory, so that findings can name elements of
/// them, and miss those that the kernel forgets.
namespace tegula::sim {

/// What a launch does to a tensor.
enum class Coverage : std::uint8_t {
  any,      ///< what it likes: the description is there for names alone
  read,     ///< it reads every element, or the checker says which it does not: unread_input
  written,  ///< it writes every element, or the checker says which it does not: unwritten_output
};

/// A tensor in global memory as a launch describes it. The offsets of its layout are elements from
/// `address`, which may lie anywhere in an allocation; several tensors may share one, and one that
/// is read and written is described twice.
struct GlobalTensor {
  std::string name;               ///< "D": as findings say it
  void const* address = nullptr;  ///< of the element at offset 0
  Layout layout;                  ///< of integer strides, a mode for each of `modes`
  int element_bits = 8;           ///< a multiple of 8
  /// "row", "column", "batch": what findings call the modes' coordinates
  std::vector<std::string> modes;
  Coverage coverage = Coverage::any;
};

/// The description of a tensor of T.
template <class T>
GlobalTensor global_tensor(std::string name, T const* address, Layout const& layout,
                           std::vector<std::string> modes, Coverage coverage = Coverage::any) {
  return {std::move(name),  address, layout, 8 * static_cast<int>(sizeof(T)),
          std::move(modes), coverage};
}

}  // namespace tegula::sim
