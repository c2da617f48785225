// An int where a float is: its bits are no 1.0f.
// prints: st_global: the address is of another type than the value, whose bytes are stored as they
// are

#include "tegula/arch/global.hpp"

TEGULA_DEVICE void store(float* to) { tegula::st_global(to, 1); }
