// Elements cannot be neighbours along both axes.
// prints: at most one axis of a tensor is Unit

#include "tegula/tensor/global.hpp"

using namespace tegula;

TEGULA_DEVICE void run(float* p) {
  (void)global_tensor<Axes<Unit, Unit>>(p, extents(4, 4), strides(4, 1));
}
