// A least of float, which the TMA unit does not have.
// prints: bulk_reduce: global memory has sums of

#include "tegula/arch/bulk_copy.hpp"

using namespace tegula;

TEGULA_DEVICE void reduce(float* to, SharedAddr from) { bulk_reduce<TmaReduce::min>(to, from, 64); }
