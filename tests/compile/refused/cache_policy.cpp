// A policy of more than all accesses.
// prints: L2Policy: sixteenths is 1 to 16

#include "tegula/arch/bulk_copy.hpp"

using namespace tegula;

TEGULA_DEVICE void store(float* to, SharedAddr from) {
  bulk_store<L2Policy(L2Hint::evict_first, 17)>(to, from, 64);
}
