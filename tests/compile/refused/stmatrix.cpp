// Three matrices at once.
// prints: stmatrix stores 1, 2 or 4 matrices

#include "tegula/arch/stmatrix.hpp"

TEGULA_DEVICE void store(tegula::SharedAddr row, std::uint32_t const (&r)[3]) {
  tegula::stmatrix(row, r);
}
