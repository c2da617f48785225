#pragma once

#include <cstdint>
#include <limits>

/// Pointers for arguments that are checked and never followed.
namespace tegula::testing {

inline constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

template <class T = void> T* at(std::uintptr_t address) { return reinterpret_cast<T*>(address); }

/// `offset` bytes into one of many regions that are far apart.
template <class T = void> T* in_region(std::uintptr_t region, std::uintptr_t offset = 0) {
  return at<T>((region << 44) + offset);
}

}  // namespace tegula::testing
