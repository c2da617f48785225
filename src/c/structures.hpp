#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include "tegula/device/error.hpp"

/// Structures of arguments, whose first member is their size as the caller was compiled.
namespace tegula::c {

/// Writes `defaults` into the first `struct_size` bytes of what the caller holds.
template <class T> void initialise(T* structure, std::size_t struct_size, T defaults) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (structure == nullptr) return;
  std::memset(static_cast<void*>(structure), 0, struct_size);
  defaults.struct_size = struct_size;
  std::memcpy(static_cast<void*>(structure), &defaults, std::min(struct_size, sizeof(T)));
}

/// What the caller says; members that are newer than the caller are the defaults'. Throws
/// argument_error for a structure that was never initialised, or of a newer interface than
/// this library's.
template <class T> T read_structure(char const* function, T const& structure, T defaults) {
  std::size_t const size = structure.struct_size;
  if (size < sizeof(std::size_t) || size > sizeof(T))
    throw argument_error(std::string(function) + ": struct_size is " + std::to_string(size) +
                         "; it must be the structure's size, at most " + std::to_string(sizeof(T)) +
                         " bytes in this library: initialise it by its _init function.");
  std::memcpy(static_cast<void*>(&defaults), &structure, size);
  return defaults;
}

}  // namespace tegula::c
