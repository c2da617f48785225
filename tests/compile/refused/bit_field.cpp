// A field of a float.
// prints: bfe extracts a field from a std::uint32_t or a std::int32_t

#include "tegula/arch/bits.hpp"

TEGULA_DEVICE float exponent(float x) { return tegula::bfe(x, 23, 8); }
