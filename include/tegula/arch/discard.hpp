#pragma once

#include "tegula/arch/shared.hpp"

namespace tegula {

/// Says that nobody needs what `bytes` bytes of this CTA's shared memory, from `address` on, hold:
/// memory that the generic proxy has written goes back to asynchronous copies. What a thread wrote
/// there has come to pass once it has executed a fence_proxy_async_shared. So an mbarrier_arrive,
/// or an mbarrier_arrive_cluster, that comes after this call makes way for such a copy, by a peer
/// CTA, too: it overwrites what is over, as it does what has been read.
///
/// On a GPU it does nothing. On the simulated machine the bytes hold 0xff from then on, NaN in each
/// type of floats. To the checker a byte has then been read by the caller, and written by nobody,
/// if the caller knows who wrote it, and that this thread has fenced it; else this says nothing.
TEGULA_DEVICE void discard_shared(
    [[maybe_unused]] SharedAddr address, [[maybe_unused]] int bytes,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if !TEGULA_GPU
  sim::discard_shared(address, bytes, where);
#endif
}

}  // namespace tegula
