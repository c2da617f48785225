// A float to an integer of eight bits.
// prints: cvt of a float gives its own type, or an integer of 32 or 64 bits

#include "tegula/arch/math.hpp"

TEGULA_DEVICE std::int8_t quantised(float x) { return tegula::cvt_rni<std::int8_t>(x); }
