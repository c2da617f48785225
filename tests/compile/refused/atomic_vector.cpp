// A vector that no atomic adds.
// prints: an atomic sum of a vector is of 2 or 4 floats, or of 2, 4 or 8 half or bfloat16

#include "tegula/arch/atomic.hpp"

TEGULA_DEVICE auto add(double* to, tegula::Vector<double, 2> const& values) {
  return tegula::atom_add(to, values);
}
