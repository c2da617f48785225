#pragma once

#include "tegula/arch/cluster.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/pipeline/pipeline_state.hpp"

namespace tegula {

/// A ring of `Stages` buffers handed from TMA to consumer warps, and back.
///
///     full[s]:   from the TMA loads into stage s, to the consumers of this CTA:
///                the stage's bytes are there
///     empty[s]:  from the consumers in every CTA that reads what this CTA's producer loads, to
///                that producer: nobody reads stage s any more
///
/// One thread of a CTA produces. With multicast it loads into the same stage of other CTAs of its
/// cluster at once, of PeersM x PeersN CTAs (rank = first + m + PeersM n): into those of its m or
/// of its n. So it waits for the consumers of all of these, and each of its consumers tells all of
/// them. Phases: in round r of the ring, the producer waits for empty of parity (r + 1) % 2 (true
/// at once in round 0, for the phase before the first counts as complete), consumers wait for full
/// of parity r % 2.
template <int Stages, int ConsumerWarps, int PeersM = 1, int PeersN = 1> class TmaPipeline {
  static constexpr int told = PeersM + PeersN - 1;  // CTAs that a consumer tells

 public:
  using State = PipelineState<Stages>;

  struct Storage {
    Mbarrier full[Stages];
    Mbarrier empty[Stages];
  };

  /// By each thread for itself. `first`: the rank of the first of the peers.
  TEGULA_DEVICE explicit TmaPipeline(Storage const& storage, int first = 0)
      : full_(shared_address(storage.full)), empty_(shared_address(storage.empty)) {
    if constexpr (told > 1) told_ = mapa(empty_, peer(first, lane_id() < told ? lane_id() : 0));
  }

  /// The same, whose addresses the compiler keeps in uniform registers instead of working them out
  /// at each use. By all lanes of a warp.
  TEGULA_DEVICE TmaPipeline kept(SourceLocation where = SourceLocation::current()) const {
    TmaPipeline result = *this;
    result.full_ = warp::shfl(full_, 0, warp::kAllLanes, where);
    result.empty_ = warp::shfl(empty_, 0, warp::kAllLanes, where);
    return result;
  }

  /// By one thread; then fence_mbarrier_init and a barrier of the CTA, or with peers of the
  /// cluster. `arrivals`: that give a stage back.
  TEGULA_DEVICE void init(int arrivals = ConsumerWarps * told) const {
    for (int stage = 0; stage < Stages; ++stage) {
      mbarrier_init(full_ + 8 * stage, 1);
      mbarrier_init(empty_ + 8 * stage, arrivals);
    }
  }

  /// Producer: waits until the stage is free, and expects `bytes` there. Returns the barrier for
  /// the loads.
  TEGULA_DEVICE SharedAddr acquire(State const& state, int bytes,
                                   SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity(empty_ + 8 * state.stage, state.parity ^ 1, where);
    SharedAddr const full = full_ + 8 * state.stage;
    mbarrier_arrive_expect_tx(full, bytes, where);
    return full;
  }

  /// Producer of one CTA of a pair, whose even CTA consumes what both load: waits until the stage
  /// is free, and in the even CTA expects `bytes` there, those of both. Returns the even CTA's
  /// barrier for the loads.
  TEGULA_DEVICE SharedAddr acquire_of_pair(State const& state, int bytes,
                                           SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity(empty_ + 8 * state.stage, state.parity ^ 1, where);
    SharedAddr const full = full_ + 8 * state.stage;
    int const rank = cluster_cta_rank();
    if (rank % 2 == 0) mbarrier_arrive_expect_tx(full, bytes, where);
    return mapa(full, rank & ~1);
  }
  /// Producer, after its last stage: waits until all have been given back, so that nothing arrives
  /// here when the CTA has exited.
  TEGULA_DEVICE void drain(State state, SourceLocation where = SourceLocation::current()) const {
    for (int stage = 0; stage < Stages; ++stage) {
      mbarrier_wait_parity(empty_ + 8 * state.stage, state.parity ^ 1, where);
      state.next();
    }
  }

  /// Consumer: whether the stage is filled already. Asked some instructions before it is needed,
  /// the answer is there by then: `if (!ring.test_wait(state)) ring.wait(state)`.
  TEGULA_DEVICE bool test_wait(State const& state,
                               SourceLocation where = SourceLocation::current()) const {
    return mbarrier_test_wait_parity(full_ + 8 * state.stage, state.parity, where);
  }

  /// Consumer: waits until the stage is filled.
  TEGULA_DEVICE void wait(State const& state,
                          SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity(full_ + 8 * state.stage, state.parity, where);
  }

  /// Consumer, all lanes of a warp: this warp has read the stage. A lane tells one CTA, so all
  /// lanes have read it before: a wait for their wgmma, or a warp::sync, stands between.
  TEGULA_DEVICE void release(int stage, SourceLocation where = SourceLocation::current()) const {
    release_at(told_at(stage), where);
  }
  /// The same in two steps: where a lane tells is worked out before the stage has been read.
  TEGULA_DEVICE SharedAddr told_at(int stage) const {
    return (told == 1 ? empty_ : told_) + 8 * stage;
  }
  TEGULA_DEVICE void release_at(SharedAddr told_here,
                                SourceLocation where = SourceLocation::current()) const {
    if constexpr (told == 1) {
      if (lane_id() == 0) mbarrier_arrive(told_here, where);
    } else {
      if (lane_id() < told) mbarrier_arrive_cluster(told_here, where);
    }
  }

  /// Where a stage is given back by what arrives for the consumer, once: a tcgen05_commit.
  TEGULA_DEVICE SharedAddr empty(int stage) const { return empty_ + 8 * stage; }

 private:
  /// The rank of the CTA that lane i tells: first those of this CTA's n, then the others of its m.
  TEGULA_DEVICE static int peer(int first, int i) {
    if constexpr (PeersM == 1 || PeersN == 1) {
      return first + i;
    } else {
      int const rank = cluster_cta_rank() - first, m = rank % PeersM, n = rank / PeersM;
      if (i < PeersM) return first + i + PeersM * n;
      int const other = i - PeersM;
      return first + m + PeersM * (other < n ? other : other + 1);
    }
  }

  SharedAddr full_;
  SharedAddr empty_;
  SharedAddr told_ = 0;  ///< with peers, empty[0] of the CTA that this lane tells
};

}  // namespace tegula
