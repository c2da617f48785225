#pragma once

#include <cstdint>

namespace tegula::sim {

class InFlightGroups;

/// What a thread is about to do that others of its cluster, or of others, can notice, or that
/// notices what they have done: where schedules differ.
struct Visible {
  enum class Kind : std::uint8_t {
    mbarrier_init,  ///< amount: its count
    mbarrier_inval,
    mbarrier_arrive,    ///< amount: the bytes that it expects
    mbarrier_expect,    ///< likewise, without an arrival
    mbarrier_complete,  ///< amount: bytes
    mbarrier_test,      ///< amount: parity
    mbarrier_wait,      ///< likewise
    barrier,  ///< the whole warp arrives at a named barrier; amount: the threads that it counts
    barrier_sync,    ///< and waits
    cluster_arrive,  ///< the whole warp
    cluster_wait,
    registers,  ///< the warpgroup; amount: registers that it takes, negative where it gives them
    /// the thread, or the warpgroup, waits for operations in flight; amount: groups left
    wait_group,
    wait_group_read,  ///< until they have read
    load,             ///< amount: bytes
    store,
    peer_load,  ///< of the shared memory of a CTA of the cluster
    peer_store,
    atomic,
    reread,          ///< a load of what the thread has read before, again and again
    launch_request,  ///< asks for a cluster that has not started
  };
  Kind kind;
  int cta = 0;  ///< rank of the CTA whose shared memory or barrier it is; -1: global memory
  std::uint64_t address = 0;         ///< in shared or global memory, or the barrier's number
  std::int64_t amount = 0;           ///< what `kind` says; of accesses the bytes
  InFlightGroups* groups = nullptr;  ///< that are waited for
  int group = -1;                    ///< the warpgroup that does it; -1: the warp or thread
  bool of_warp = false;              ///< an access of the whole warp
  bool blind = false;  ///< an atomic whose thread does not learn what was there: it polls nothing
  int arrivals = 0;    ///< at an mbarrier; negative: so many more that its phase lacks
};

}  // namespace tegula::sim
