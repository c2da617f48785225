// A float where an integer is narrowed.
// prints: cvt_sat takes an integer of 32 bits; cvt_rni makes one of a float

#include "tegula/arch/math.hpp"

TEGULA_DEVICE std::int8_t quantised(float x) { return tegula::cvt_sat<std::int8_t>(x); }
