#pragma once

#include <cstdint>

namespace tegula::sim {

/// Whose GPU is simulated: the same instruction gives different bits on different generations.
enum class Generation : std::uint8_t { sm80, sm90 };

}  // namespace tegula::sim
