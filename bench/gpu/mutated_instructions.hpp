#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/atom/mma_spec.hpp"
#include "tegula/macros.hpp"
#include "tegula/sim/mutable_values.hpp"

/// The instructions of arch/ that mutation testing changes, on a GPU. (On the simulated machine
/// the machine changes them.) The headers of arch/ are read with those functions under other
/// names, and functions of the right names call them, or do what the mutant does; so it is
/// included before any kernel.
///
/// TEGULA_MUTANT_* say which statement is mutated, and how: sim/mutable_values.hpp.

#define arrive arrive_unmutated
#define arrive_relaxed arrive_relaxed_unmutated
#define bar_arrive bar_arrive_unmutated
#define bar_red_and bar_red_and_unmutated
#define bar_red_or bar_red_or_unmutated
#define bar_red_popc bar_red_popc_unmutated
#define bar_sync bar_sync_unmutated
#define barrier_red_and barrier_red_and_unmutated
#define barrier_red_or barrier_red_or_unmutated
#define barrier_red_popc barrier_red_popc_unmutated
#define bulk_commit_group bulk_commit_group_unmutated
#define bulk_wait_group bulk_wait_group_unmutated
#define bulk_wait_group_read bulk_wait_group_read_unmutated
#define cp_async_commit_group cp_async_commit_group_unmutated
#define cp_async_wait_all cp_async_wait_all_unmutated
#define cp_async_wait_group cp_async_wait_group_unmutated
#define fence_acq_rel fence_acq_rel_unmutated
#define fence_mbarrier_init fence_mbarrier_init_unmutated
#define fence_proxy_async fence_proxy_async_unmutated
#define fence_proxy_async_shared fence_proxy_async_shared_unmutated
#define fence_sc fence_sc_unmutated
#define griddepcontrol_launch_dependents griddepcontrol_launch_dependents_unmutated
#define griddepcontrol_wait griddepcontrol_wait_unmutated
#define mbarrier_arrive mbarrier_arrive_unmutated
#define mbarrier_arrive_cluster mbarrier_arrive_cluster_unmutated
#define mbarrier_arrive_cluster_release mbarrier_arrive_cluster_release_unmutated
#define mbarrier_arrive_expect_tx mbarrier_arrive_expect_tx_unmutated
#define mbarrier_complete_tx mbarrier_complete_tx_unmutated
#define mbarrier_expect_tx mbarrier_expect_tx_unmutated
#define mbarrier_init mbarrier_init_unmutated
#define mbarrier_test_wait_parity mbarrier_test_wait_parity_unmutated
#define mbarrier_try_wait_parity mbarrier_try_wait_parity_unmutated
#define mbarrier_wait_parity mbarrier_wait_parity_unmutated
#define setmaxnreg_dec setmaxnreg_dec_unmutated
#define setmaxnreg_inc setmaxnreg_inc_unmutated
#define sync sync_unmutated
#define sync_and sync_and_unmutated
#define sync_count sync_count_unmutated
#define sync_or sync_or_unmutated
#define tma_load_multicast tma_load_multicast_unmutated
#define wait wait_unmutated
#define wgmma_commit_group wgmma_commit_group_unmutated
#define wgmma_fence wgmma_fence_unmutated
#define wgmma_wait_group wgmma_wait_group_unmutated

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/cp_async.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/grid_dependency.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/arch/wgmma.hpp"

#undef arrive
#undef arrive_relaxed
#undef bar_arrive
#undef bar_red_and
#undef bar_red_or
#undef bar_red_popc
#undef bar_sync
#undef barrier_red_and
#undef barrier_red_or
#undef barrier_red_popc
#undef bulk_commit_group
#undef bulk_wait_group
#undef bulk_wait_group_read
#undef cp_async_commit_group
#undef cp_async_wait_all
#undef cp_async_wait_group
#undef fence_acq_rel
#undef fence_mbarrier_init
#undef fence_proxy_async
#undef fence_proxy_async_shared
#undef fence_sc
#undef griddepcontrol_launch_dependents
#undef griddepcontrol_wait
#undef mbarrier_arrive
#undef mbarrier_arrive_cluster
#undef mbarrier_arrive_cluster_release
#undef mbarrier_arrive_expect_tx
#undef mbarrier_complete_tx
#undef mbarrier_expect_tx
#undef mbarrier_init
#undef mbarrier_test_wait_parity
#undef mbarrier_try_wait_parity
#undef mbarrier_wait_parity
#undef setmaxnreg_dec
#undef setmaxnreg_inc
#undef sync
#undef sync_and
#undef sync_count
#undef sync_or
#undef tma_load_multicast
#undef wait
#undef wgmma_commit_group
#undef wgmma_fence
#undef wgmma_wait_group

namespace tegula {

namespace mutants {

inline constexpr Mutation kPlaced = Mutation::removed | Mutation::delayed;
inline constexpr Mutation kOrdered = kPlaced | Mutation::weakened;
inline constexpr Mutation kCounted = Mutation::less | Mutation::more;

/// Whether an instruction that can only be removed is.
TEGULA_DEVICE bool removed(SourceLocation where, Operation operation) {
  return mutation(where, operation, kPlaced) == Mutation::removed;
}

}  // namespace mutants

namespace cta {

TEGULA_DEVICE void sync(SourceLocation where = SourceLocation::current()) {
  Mutation const m = mutation(where, Operation::bar_sync, mutants::kOrdered);
  if (m == Mutation::removed) return;
  m == Mutation::weakened ? __syncwarp() : sync_unmutated();
}
TEGULA_DEVICE void bar_sync(int id, int threads, SourceLocation where = SourceLocation::current()) {
  Mutation const m = mutation(where, Operation::bar_sync, mutants::kOrdered | mutants::kCounted);
  if (m == Mutation::removed) return;
  m == Mutation::weakened ? __syncwarp() : bar_sync_unmutated(id, counted(threads, m, 32));
}
TEGULA_DEVICE void bar_arrive(int id, int threads,
                              SourceLocation where = SourceLocation::current()) {
  Mutation const m = mutation(where, Operation::bar_arrive, mutants::kPlaced | mutants::kCounted);
  if (m != Mutation::removed) bar_arrive_unmutated(id, counted(threads, m, 32));
}

/// A barrier that reduces: removed it gives the thread's own vote, weakened those of its warp.
/// `whole` executes it, for so many threads.
template <class Votes, class Whole>
TEGULA_DEVICE int red(Mutation admitted, bool predicate, int threads, SourceLocation where,
                      Votes of_warp, Whole whole) {
  Mutation const m = mutation(where, Operation::bar_sync, admitted);
  if (m == Mutation::removed) return predicate ? 1 : 0;
  if (m != Mutation::weakened) return whole(counted(threads, m, 32));
  __syncwarp();
  return of_warp(__ballot_sync(0xffffffffu, predicate));
}
#define TEGULA_REDUCTION(TYPE, ALL, NAMED, UNALIGNED, VOTES)                                   \
  TEGULA_DEVICE TYPE ALL(bool predicate, SourceLocation where = SourceLocation::current()) {   \
    return red(                                                                                \
        Mutation::removed | Mutation::weakened, predicate, 0, where,                           \
        [](std::uint32_t votes) { return VOTES; },                                             \
        [=](int) { return static_cast<int>(ALL##_unmutated(predicate)); });                    \
  }                                                                                            \
  TEGULA_DEVICE TYPE NAMED(int id, int threads, bool predicate,                                \
                           SourceLocation where = SourceLocation::current()) {                 \
    return red(                                                                                \
        Mutation::removed | Mutation::weakened | mutants::kCounted, predicate, threads, where, \
        [](std::uint32_t votes) { return VOTES; },                                             \
        [=](int all) { return static_cast<int>(NAMED##_unmutated(id, all, predicate)); });     \
  }                                                                                            \
  TEGULA_DEVICE TYPE UNALIGNED(int id, int threads, bool predicate,                            \
                               SourceLocation where = SourceLocation::current()) {             \
    return red(                                                                                \
        Mutation::removed | Mutation::weakened | mutants::kCounted, predicate, threads, where, \
        [](std::uint32_t votes) { return VOTES; },                                             \
        [=](int all) { return static_cast<int>(UNALIGNED##_unmutated(id, all, predicate)); }); \
  }
TEGULA_REDUCTION(int, sync_count, bar_red_popc, barrier_red_popc, __popc(votes))
TEGULA_REDUCTION(bool, sync_and, bar_red_and, barrier_red_and, votes == 0xffffffffu ? 1 : 0)
TEGULA_REDUCTION(bool, sync_or, bar_red_or, barrier_red_or, votes != 0 ? 1 : 0)
#undef TEGULA_REDUCTION

}  // namespace cta

namespace warp {

TEGULA_DEVICE void sync(std::uint32_t mask = kAllLanes,
                        SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::warp_sync)) sync_unmutated(mask);
}

}  // namespace warp

namespace cluster {

TEGULA_DEVICE void arrive(SourceLocation where = SourceLocation::current()) {
  Mutation const m = mutation(where, Operation::cluster_arrive, mutants::kOrdered);
  if (m == Mutation::removed) return;
  m == Mutation::weakened ? arrive_relaxed_unmutated() : arrive_unmutated();
}
TEGULA_DEVICE void arrive_relaxed(SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::cluster_arrive)) arrive_relaxed_unmutated();
}
TEGULA_DEVICE void wait(SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::cluster_wait)) wait_unmutated();
}
TEGULA_DEVICE void sync(SourceLocation where = SourceLocation::current()) {
  arrive(where);
  wait(where);
}

}  // namespace cluster

TEGULA_DEVICE void mbarrier_init(SharedAddr mbarrier, int count,
                                 SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::mbarrier_init, mutants::kPlaced | mutants::kCounted);
  if (m != Mutation::removed) mbarrier_init_unmutated(mbarrier, counted(count, m));
}
TEGULA_DEVICE void fence_mbarrier_init(SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::fence_mbarrier_init)) fence_mbarrier_init_unmutated();
}
TEGULA_DEVICE void mbarrier_arrive(SharedAddr mbarrier,
                                   SourceLocation where = SourceLocation::current()) {
  Mutation const m = mutation(where, Operation::mbarrier_arrive, mutants::kOrdered);
  if (m == Mutation::weakened) {
    asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(mbarrier) : "memory");
  } else if (m != Mutation::removed) {
    mbarrier_arrive_unmutated(mbarrier);
  }
}
TEGULA_DEVICE void mbarrier_arrive_cluster(SharedAddr remote,
                                           SourceLocation where = SourceLocation::current()) {
  Mutation const m = mutation(where, Operation::mbarrier_arrive_cluster, mutants::kOrdered);
  if (m == Mutation::weakened) {
    asm volatile("mbarrier.arrive.relaxed.cta.shared::cluster.b64 _, [%0];" ::"r"(remote)
                 : "memory");
  } else if (m != Mutation::removed) {
    mbarrier_arrive_cluster_unmutated(remote);
  }
}
TEGULA_DEVICE void mbarrier_arrive_cluster_release(
    SharedAddr remote, SourceLocation where = SourceLocation::current()) {
  Mutation const m = mutation(where, Operation::mbarrier_arrive_cluster, mutants::kOrdered);
  if (m == Mutation::removed) return;
  m == Mutation::weakened ? mbarrier_arrive_cluster_unmutated(remote)
                          : mbarrier_arrive_cluster_release_unmutated(remote);
}
TEGULA_DEVICE void mbarrier_arrive_expect_tx(SharedAddr mbarrier, int bytes,
                                             SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::mbarrier_arrive_expect_tx, mutants::kOrdered | mutants::kCounted);
  if (m == Mutation::weakened) {
    asm volatile(
        "mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier),
        "r"(bytes)
        : "memory");
  } else if (m != Mutation::removed) {
    mbarrier_arrive_expect_tx_unmutated(mbarrier, counted(bytes, m, 16));
  }
}
TEGULA_DEVICE void mbarrier_expect_tx(SharedAddr mbarrier, int bytes,
                                      SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::mbarrier_expect_tx, mutants::kPlaced | mutants::kCounted);
  if (m != Mutation::removed) mbarrier_expect_tx_unmutated(mbarrier, counted(bytes, m, 16));
}
TEGULA_DEVICE void mbarrier_complete_tx(SharedAddr mbarrier, int bytes,
                                        SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::mbarrier_complete_tx, mutants::kPlaced | mutants::kCounted);
  if (m != Mutation::removed) mbarrier_complete_tx_unmutated(mbarrier, counted(bytes, m, 16));
}
TEGULA_DEVICE bool mbarrier_test_wait_parity(SharedAddr mbarrier, int parity,
                                             SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::mbarrier_wait, Mutation::removed | Mutation::flipped);
  if (m == Mutation::removed) return true;
  return mbarrier_test_wait_parity_unmutated(mbarrier,
                                             m == Mutation::flipped ? parity ^ 1 : parity);
}
TEGULA_DEVICE bool mbarrier_try_wait_parity(SharedAddr mbarrier, int parity,
                                            SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::mbarrier_wait, Mutation::removed | Mutation::flipped);
  if (m == Mutation::removed) return true;
  return mbarrier_try_wait_parity_unmutated(mbarrier, m == Mutation::flipped ? parity ^ 1 : parity);
}
TEGULA_DEVICE void mbarrier_wait_parity(SharedAddr mbarrier, int parity,
                                        SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::mbarrier_wait, mutants::kOrdered | Mutation::flipped);
  if (m == Mutation::weakened) {
    mbarrier_wait_parity_unmutated<MemoryOrder::relaxed, Scope::cta>(mbarrier, parity);
  } else if (m != Mutation::removed) {
    mbarrier_wait_parity_unmutated(mbarrier, m == Mutation::flipped ? parity ^ 1 : parity);
  }
}

template <Scope S>
TEGULA_DEVICE void fence_acq_rel(SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::fence, S == Scope::cta ? mutants::kPlaced : mutants::kOrdered);
  if (m == Mutation::removed) return;
  m == Mutation::weakened ? fence_acq_rel_unmutated<Scope::cta>() : fence_acq_rel_unmutated<S>();
}
template <Scope S> TEGULA_DEVICE void fence_sc(SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::fence, S == Scope::cta ? mutants::kPlaced : mutants::kOrdered);
  if (m == Mutation::removed) return;
  m == Mutation::weakened ? fence_sc_unmutated<Scope::cta>() : fence_sc_unmutated<S>();
}
TEGULA_DEVICE void fence_proxy_async(SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::fence_proxy_async)) fence_proxy_async_unmutated();
}
TEGULA_DEVICE void fence_proxy_async_shared(SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::fence_proxy_async)) fence_proxy_async_shared_unmutated();
}

TEGULA_DEVICE void griddepcontrol_wait(SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::griddepcontrol_wait)) griddepcontrol_wait_unmutated();
}
TEGULA_DEVICE void griddepcontrol_launch_dependents(
    SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::griddepcontrol_launch_dependents))
    griddepcontrol_launch_dependents_unmutated();
}

TEGULA_DEVICE void cp_async_commit_group(SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::cp_async_commit_group)) cp_async_commit_group_unmutated();
}
template <int N>
TEGULA_DEVICE void cp_async_wait_group(SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::cp_async_wait_group, mutants::kPlaced | mutants::kCounted);
  if (m == Mutation::more) {
    cp_async_wait_group_unmutated<N + 1>();
  } else if (m == Mutation::less) {
    cp_async_wait_group_unmutated<(N == 0 ? 0 : N - 1)>();
  } else if (m != Mutation::removed) {
    cp_async_wait_group_unmutated<N>();
  }
}
TEGULA_DEVICE void cp_async_wait_all(SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::cp_async_wait_group)) cp_async_wait_all_unmutated();
}

TEGULA_DEVICE void bulk_commit_group(SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::bulk_commit_group)) bulk_commit_group_unmutated();
}
template <int N>
TEGULA_DEVICE void bulk_wait_group_read(SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::bulk_wait_group_read, mutants::kPlaced | mutants::kCounted);
  if (m == Mutation::more) {
    bulk_wait_group_read_unmutated<N + 1>();
  } else if (m == Mutation::less) {
    bulk_wait_group_read_unmutated<(N == 0 ? 0 : N - 1)>();
  } else if (m != Mutation::removed) {
    bulk_wait_group_read_unmutated<N>();
  }
}
template <int N>
TEGULA_DEVICE void bulk_wait_group(SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::bulk_wait_group, mutants::kOrdered | mutants::kCounted);
  if (m == Mutation::weakened) {
    bulk_wait_group_read_unmutated<N>();
  } else if (m == Mutation::more) {
    bulk_wait_group_unmutated<N + 1>();
  } else if (m == Mutation::less) {
    bulk_wait_group_unmutated<(N == 0 ? 0 : N - 1)>();
  } else if (m != Mutation::removed) {
    bulk_wait_group_unmutated<N>();
  }
}

template <int Rank, L2Policy Hint = L2Hint::none, int Ctas = 1>
TEGULA_DEVICE void tma_load_multicast(SharedAddr dst, TensorMap const& map, TmaCoordinate<Rank> c,
                                      SharedAddr mbarrier, std::uint16_t cta_mask,
                                      SourceLocation where = SourceLocation::current()) {
  Mutation const m = mutation(where, Operation::multicast_mask,
                              (cta_mask & (cta_mask - 1)) == 0 ? Mutation::none : Mutation::less);
  // without the lowest rank
  if (m == Mutation::less) cta_mask &= static_cast<std::uint16_t>(cta_mask - 1);
  tma_load_multicast_unmutated<Rank, Hint, Ctas>(dst, map, c, mbarrier, cta_mask);
}

template <int N>
TEGULA_DEVICE void setmaxnreg_inc(SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::setmaxnreg_inc, mutants::kPlaced | mutants::kCounted);
  if (m == Mutation::less) {
    setmaxnreg_inc_unmutated<(N == 24 ? 24 : N - 8)>();
  } else if (m == Mutation::more) {
    setmaxnreg_inc_unmutated<(N == 256 ? 256 : N + 8)>();
  } else if (m != Mutation::removed) {
    setmaxnreg_inc_unmutated<N>();
  }
}
template <int N>
TEGULA_DEVICE void setmaxnreg_dec(SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::setmaxnreg_dec, mutants::kPlaced | mutants::kCounted);
  if (m == Mutation::less) {
    setmaxnreg_dec_unmutated<(N == 24 ? 24 : N - 8)>();
  } else if (m == Mutation::more) {
    setmaxnreg_dec_unmutated<(N == 256 ? 256 : N + 8)>();
  } else if (m != Mutation::removed) {
    setmaxnreg_dec_unmutated<N>();
  }
}

TEGULA_DEVICE void wgmma_fence(SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::wgmma_fence)) wgmma_fence_unmutated();
}
TEGULA_DEVICE void wgmma_commit_group(SourceLocation where = SourceLocation::current()) {
  if (!mutants::removed(where, Operation::wgmma_commit_group)) wgmma_commit_group_unmutated();
}
template <int N>
TEGULA_DEVICE void wgmma_wait_group(SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::wgmma_wait_group, mutants::kPlaced | mutants::kCounted);
  if (m == Mutation::more) {
    wgmma_wait_group_unmutated<(N == 7 ? 7 : N + 1)>();
  } else if (m == Mutation::less) {
    wgmma_wait_group_unmutated<(N == 0 ? 0 : N - 1)>();
  } else if (m != Mutation::removed) {
    wgmma_wait_group_unmutated<N>();
  }
}

}  // namespace tegula
