// 64 bits of a peer's shared memory, which a GPU does not change by one atomic.
// prints: in the shared memory of a cluster, atomics of more than 4 bytes and of pairs are no

#include "tegula/arch/atomic.hpp"

TEGULA_DEVICE std::uint64_t greatest(tegula::SharedAddr of, std::uint64_t value) {
  return tegula::atom_shared_max<tegula::Scope::cluster>(of, value);
}
