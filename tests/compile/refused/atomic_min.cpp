// An extreme of floating-point values.
// prints: an atomic min or max is of integers of 32 or 64 bits

#include "tegula/arch/atomic.hpp"

TEGULA_DEVICE float least(float* of, float value) { return tegula::atom_min(of, value); }
