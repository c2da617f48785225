#pragma once

#include <cstdint>

#include "tegula/arch/vector.hpp"
#include "tegula/macros.hpp"

namespace tegula {

/// Whether every row of a matrix (`stride` elements apart) starts on a 16-byte boundary.
template <class T> TEGULA_DEVICE bool whole_pieces(void const* data, std::int64_t stride) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
         stride % static_cast<std::int64_t>(16 / sizeof(T)) == 0;
}

}  // namespace tegula
