// Three columns are no whole number of pairs.
// prints: refuse("recast"
// prints: a wider element would take in what is no neighbour

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/recast.hpp"

using namespace tegula;

TEGULA_DEVICE void run(bfloat16* p) {
  (void)recast<std::uint32_t>(local_tile<4, 3>(matrix<1>(p, 64, 64, 64), 0, 0));
}
