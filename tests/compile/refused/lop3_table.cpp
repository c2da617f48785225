// A table of nine bits.
// prints: lop3's table has 8 bits: 0 to 255

#include "tegula/arch/bits.hpp"

TEGULA_DEVICE std::uint32_t some(std::uint32_t a) { return tegula::lop3<256>(a, a, a); }
