// A sum of float in a peer's shared memory, which only global memory has.
// prints: bulk_reduce_cluster: shared memory of a cluster has sums of integers

#include "tegula/arch/bulk_copy.hpp"

using namespace tegula;

TEGULA_DEVICE void reduce(SharedAddr to, SharedAddr from, SharedAddr mbarrier) {
  bulk_reduce_cluster<TmaReduce::add, float>(to, from, 64, mbarrier);
}
