// A value of two bytes.
// prints: match.sync compares trivially copyable values of 4 or 8 bytes

#include "tegula/arch/warp.hpp"

TEGULA_DEVICE std::uint32_t same(std::uint16_t x) { return tegula::warp::match_any(x); }
