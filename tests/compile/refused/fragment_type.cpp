// Registers of half are copied to memory of bfloat16, which has elements of the same size.
// prints: copy: the registers hold another type than the memory: convert<T>(registers)

#include "tegula/tensor/copy.hpp"

using namespace tegula;

TEGULA_DEVICE void run(Fragment<half, identity_map<8, 8>> const& r, bfloat16* p) {
  copy(r, local_tile<8, 8>(matrix<1>(p, 8, 8, 8), 0, 0));
}
