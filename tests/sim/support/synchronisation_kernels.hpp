#pragma once

#include <cstdint>

#include "hopper_kernels.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/nanosleep.hpp"
#include "tegula/arch/ordered_access.hpp"
#include "tegula/arch/reduction.hpp"
#include "tegula/arch/tma.hpp"

/// One tiny kernel for each way to synchronise that hopper_kernels.hpp has not: arrivals with a
/// count and by cp.async, waits of other orders, strong loads and stores, atomics of 64 bits and on
/// shared memory, red.async, copies between the shared memories of a cluster, unaligned barriers,
/// election among some lanes.
namespace tegula::synchronisation_kernels {

using hopper_kernels::Kernels;
using hopper_kernels::OfClusters;
using hopper_kernels::OneWarp;
using hopper_kernels::Words;

/// A thread arrives for others. out: whether phase 0 is complete after each step.
struct ArrivesForOthers : OneWarp {
  struct SharedStorage {
    Mbarrier barrier;
    template <class F> void name_buffers(F&& name) { name("barrier", barrier); }
  };
  static constexpr int in_words = 0;
  static constexpr int out_words = 3;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    if (lane_id() != 0) return;
    SharedAddr const barrier = shared_address(&smem.barrier);
    auto const look = [&](int i) {
      st_global(p.out + i, static_cast<std::uint32_t>(mbarrier_test_wait_parity(barrier, 0)));
    };
    mbarrier_init(barrier, 6);
    mbarrier_arrive(barrier, 3);
    look(0);
    mbarrier_arrive_cluster(mapa(barrier, 0), 2);
    look(1);
    mbarrier_arrive_cluster_release(mapa(barrier, 0), 1);
    look(2);
  }
};

/// Each thread's copies arrive at a barrier by themselves. `Counted`: init counts their arrivals.
template <bool Counted> struct CopiesArrive : OneWarp {
  static constexpr int threads = 64;
  struct SharedStorage {
    Mbarrier full[2];
    alignas(16) std::uint32_t words[2][threads][4];
    template <class F> void name_buffers(F&& name) {
      name("full", full);
      name("words", words);
    }
  };
  static constexpr int in_words = 2 * threads * 4;
  static constexpr int out_words = 2 * threads;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    if (t < 2) mbarrier_init(shared_address(smem.full + t), threads);
    cta::sync();
    for (int stage = 0; stage < 2; ++stage) {
      SharedAddr const full = shared_address(smem.full + stage);
      cp_async_cg<16>(shared_address(smem.words[stage][t]), p.in + 4 * (threads * stage + t));
      if constexpr (Counted) {
        cp_async_mbarrier_arrive_noinc(full);
      } else {
        cp_async_mbarrier_arrive(full);
        mbarrier_arrive(full);
      }
    }
    for (int stage = 0; stage < 2; ++stage) {
      mbarrier_wait_parity(shared_address(smem.full + stage), 0);
      int const other = (t + 33) % threads;
      st_global(p.out + threads * stage + t,
                ld_shared<std::uint32_t>(shared_address(&smem.words[stage][other][t % 4])));
    }
    cp_async_wait_all();
  }
};

/// Each CTA tells the other a word; the wait acquires it at the scope of the cluster, or, relaxed,
/// a fence that follows does.
template <bool Relaxed> struct WaitsForCluster : OfClusters<2> {
  struct SharedStorage {
    Mbarrier told;
    std::uint32_t word;
    template <class F> void name_buffers(F&& name) {
      name("told", told);
      name("word", word);
    }
  };
  static constexpr int in_words = 2;
  static constexpr int out_words = 2 * 32;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const rank = cluster_cta_rank();
    SharedAddr const told = shared_address(&smem.told), word = shared_address(&smem.word);
    if (lane_id() == 0) {
      mbarrier_init(told, 1);
      fence_mbarrier_init();
    }
    cluster::sync();
    if (lane_id() == 0) {
      st_shared_cluster(mapa(word, rank ^ 1), ld_global<std::uint32_t>(p.in + rank));
      mbarrier_arrive_cluster_release(mapa(told, rank ^ 1));
    }
    if constexpr (Relaxed) {
      mbarrier_wait_parity<MemoryOrder::relaxed, Scope::cluster>(told, 0);
      fence_acq_rel<Scope::cluster>();
    } else {
      mbarrier_wait_parity<MemoryOrder::acquire, Scope::cluster>(told, 0);
    }
    st_global(p.out + 32 * rank + lane_id(), ld_shared<std::uint32_t>(word));
    cluster::sync();
  }
};

/// Warp 0 hands words to warp 1 by flags: of global memory, of shared memory, and by relaxed
/// accesses between fences. Who waits sleeps in between.
struct Flags : OneWarp {
  static constexpr int threads = 64;
  struct SharedStorage {
    std::uint64_t flag;
    std::uint32_t word;
    template <class F> void name_buffers(F&& name) {
      name("flag", flag);
      name("word", word);
    }
  };
  static constexpr int in_words = 3;
  static constexpr int out_words = 6;
  static constexpr bool zeroed = true;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    SharedAddr const flag = shared_address(&smem.flag), word = shared_address(&smem.word);
    std::uint32_t *const flags = p.out + 3, *const words = p.out;
    if (thread_idx() == 0) st_shared(flag, std::uint64_t{0});
    cta::sync();
    if (thread_idx() == 0) {
      st_global(words, ld_global<std::uint32_t>(p.in));
      st_global_release<Scope::gpu>(flags, 1u);
      st_shared(word, ld_global<std::uint32_t>(p.in + 1));
      st_shared_release(flag, std::uint64_t{7});
      st_global(words + 1, ld_global<std::uint32_t>(p.in + 2));
      fence_acq_rel<Scope::cta>();
      st_global_relaxed<Scope::cta>(flags + 1, 2u);
    } else if (thread_idx() == 32) {
      while (ld_global_acquire<std::uint32_t, Scope::gpu>(flags) != 1) nanosleep(20);
      auto sum = ld_global<std::uint32_t>(words);
      while (ld_shared_acquire<std::uint64_t>(flag) != 7) nanosleep(20);
      sum += 3 * ld_shared<std::uint32_t>(word);
      while (ld_global_relaxed<std::uint32_t, Scope::cta>(flags + 1) != 2) nanosleep(20);
      fence_acq_rel<Scope::cta>();
      sum += 5 * ld_global<std::uint32_t>(words + 1);
      st_global(p.out + 5, sum);
    }
  }
};

/// CTA 0 hands a word to CTA 1.
struct FlagBetweenCtas : OneWarp {
  static constexpr Dim3 grid() { return {2, 1, 1}; }
  static constexpr int in_words = 1;
  static constexpr int out_words = 3;
  static constexpr bool zeroed = true;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      st_global(p.out, ld_global<std::uint32_t>(p.in));
      st_global_release<Scope::gpu>(p.out + 1, 1u);
    } else {
      while (ld_global_acquire<std::uint32_t, Scope::gpu>(p.out + 1) == 0) {
      }
      st_global(p.out + 2, 2 * ld_global<std::uint32_t>(p.out));
    }
  }
};

/// The CTAs of a cooperative launch meet, twice in each of three rounds; in between each takes its
/// word from the next one. out: the words, then how often a CTA has come.
struct CtasMeet : OneWarp {
  static constexpr int threads = 64;
  static constexpr bool cooperative = true;
  static constexpr int ctas = 6;
  static constexpr Dim3 grid() { return {ctas, 1, 1}; }
  static constexpr int in_words = ctas * threads;
  static constexpr int out_words = in_words + 1;
  static constexpr bool zeroed = true;

  TEGULA_DEVICE static void meet(Words const& p, int times) {
    cta::sync();
    if (thread_idx() == 0) {
      std::uint32_t* const come = p.out + in_words;
      fence_acq_rel<Scope::gpu>();
      atom_add(come, 1u);
      while (ld_global_acquire<std::uint32_t, Scope::gpu>(come) <
             static_cast<std::uint32_t>(ctas * times)) {
      }
    }
    cta::sync();
  }

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const own = block_idx().x * threads + thread_idx();
    auto word = ld_global<std::uint32_t>(p.in + own);
    for (int round = 0; round < 3; ++round) {
      st_global(p.out + own, word);
      meet(p, 2 * round + 1);
      word = ld_global<std::uint32_t>(p.out + (own + threads) % in_words) + 1;
      meet(p, 2 * round + 2);
    }
    st_global(p.out + own, word);
  }
};

/// Atomics of 64 bits that do not depend on order.
struct WideAtomics : OneWarp {
  static constexpr int threads = 64;
  static constexpr Dim3 grid() { return {3, 1, 1}; }
  static constexpr int in_words = 0;
  static constexpr int out_words = 14;
  static constexpr bool zeroed = true;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    int const id = block_idx().x * threads + thread_idx();
    auto* const u = reinterpret_cast<std::uint64_t*>(p.out);
    auto* const s = reinterpret_cast<std::int64_t*>(p.out);
    atom_add(u, std::uint64_t{1} << 32 | static_cast<std::uint64_t>(id));
    red_add(s + 1, static_cast<std::int64_t>(-id) << 20);
    atom_max(u + 2, static_cast<std::uint64_t>(id * 7 % 192) << 33);
    atom_min(s + 3, (static_cast<std::int64_t>(id % 5) - 4) << 40);
    red_add(reinterpret_cast<double*>(p.out) + 4, 0.25);
    atom_cas(u + 5, id == 0 ? std::uint64_t{0} : ~std::uint64_t{0}, std::uint64_t{0x123456789});
    if (id == 9) atom_exch(s + 6, std::int64_t{-2});
  }
};

/// Atomics on the shared memory of each CTA of a cluster, by the threads of all.
struct SharedAtomics : OfClusters<2> {
  static constexpr int threads = 64;
  struct SharedStorage {
    std::uint64_t wide[2];
    std::uint32_t bins[4];
    std::int32_t least;
    template <class F> void name_buffers(F&& name) {
      name("wide", wide);
      name("bins", bins);
      name("least", least);
    }
  };
  static constexpr int in_words = 0;
  static constexpr int out_words = 2 * 9;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    int const rank = cluster_cta_rank();
    SharedAddr const wide = shared_address(smem.wide), bins = shared_address(smem.bins);
    SharedAddr const least = shared_address(&smem.least);
    if (t < 2) st_shared(wide + 8u * static_cast<SharedAddr>(t), std::uint64_t{0});
    if (t < 4) st_shared(bins + 4u * static_cast<SharedAddr>(t), 0u);
    if (t == 0) st_shared(least, 0);
    cluster::sync();
    atom_shared_add(wide, static_cast<std::uint64_t>(t) << 30);
    red_shared_add<Scope::cluster>(mapa(wide + 8, rank ^ 1), static_cast<std::uint64_t>(t + rank));
    atom_shared_add<Scope::cluster>(mapa(bins + 4u * static_cast<SharedAddr>(t % 3), rank ^ 1), 1u);
    atom_shared_min(least, 10 - t);
    if (t == 5) atom_shared_exch(bins + 12, 77u);
    cluster::sync();
    std::uint32_t* const out = p.out + 9 * rank;
    if (t < 4) st_global(out + t, ld_shared<std::uint32_t>(wide + 4u * static_cast<SharedAddr>(t)));
    if (t < 4)
      st_global(out + 4 + t, ld_shared<std::uint32_t>(bins + 4u * static_cast<SharedAddr>(t)));
    if (t == 0) st_global(out + 8, ld_shared<std::uint32_t>(least));
    cluster::sync();
  }
};

/// Every lane of both CTAs combines with words of the other CTA, which waits for the bytes.
struct AsyncReductions : OfClusters<2> {
  struct SharedStorage {
    Mbarrier done;
    std::uint64_t sum;
    std::uint32_t words[3];
    template <class F> void name_buffers(F&& name) {
      name("done", done);
      name("sum", sum);
      name("words", words);
    }
  };
  static constexpr int in_words = 0;
  static constexpr int out_words = 2 * 5;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    int const rank = cluster_cta_rank();
    SharedAddr const done = shared_address(&smem.done), sum = shared_address(&smem.sum);
    SharedAddr const words = shared_address(smem.words);
    if (lane == 0) {
      mbarrier_init(done, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(done, 32 * 20);
      st_shared(sum, std::uint64_t{0});
      for (SharedAddr i = 0; i < 3; ++i) st_shared(words + 4 * i, 100u);
      fence_proxy_async_shared();
    }
    cluster::sync();
    SharedAddr const there = mapa(words, rank ^ 1), signal = mapa(done, rank ^ 1);
    red_async_add(there, static_cast<std::uint32_t>(lane + rank), signal);
    red_async_min(there + 4, lane - 20, signal);
    red_async_max(there + 8, static_cast<std::uint32_t>(90 + lane), signal);
    red_async_add(mapa(sum, rank ^ 1), std::uint64_t{1} << 31, signal);
    mbarrier_wait_parity(done, 0);
    std::uint32_t* const out = p.out + 5 * rank;
    if (lane < 2)
      st_global(out + lane, ld_shared<std::uint32_t>(sum + 4u * static_cast<SharedAddr>(lane)));
    if (lane < 3)
      st_global(out + 2 + lane,
                ld_shared<std::uint32_t>(words + 4u * static_cast<SharedAddr>(lane)));
    cluster::sync();
  }
};

/// Each CTA sends a row of its shared memory to the next.
struct CopiesToPeer : OfClusters<4> {
  struct SharedStorage {
    Mbarrier arrived;
    alignas(16) std::uint32_t sent[32];
    alignas(16) std::uint32_t received[32];
    template <class F> void name_buffers(F&& name) {
      name("arrived", arrived);
      name("sent", sent);
      name("received", received);
    }
  };
  static constexpr int in_words = 4 * 32;
  static constexpr int out_words = 4 * 32;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    int const rank = cluster_cta_rank();
    SharedAddr const arrived = shared_address(&smem.arrived);
    if (lane == 0) {
      bulk_prefetch(p.in + 32 * rank, 128);
      mbarrier_init(arrived, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(arrived, 128);
    }
    st_shared(shared_address(smem.sent + lane), ld_global<std::uint32_t>(p.in + 32 * rank + lane));
    fence_proxy_async_shared();
    cluster::sync();
    if (lane == 0) {
      int const next = (rank + 1) % ctas;
      bulk_copy_cluster(mapa(shared_address(smem.received), next), shared_address(smem.sent), 128,
                        mapa(arrived, next));
    }
    mbarrier_wait_parity(arrived, 0);
    st_global(p.out + 32 * rank + lane,
              ld_shared<std::uint32_t>(shared_address(smem.received + lane)));
    cluster::sync();
  }
};

/// The halves of each warp come to a barrier of the CTA on different lines.
struct UnalignedBarrier : OneWarp {
  static constexpr int threads = 64;
  struct SharedStorage {
    std::uint32_t words[threads];
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };
  static constexpr int in_words = threads;
  static constexpr int out_words = threads;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    auto value = ld_global<std::uint32_t>(p.in + t);
    if (lane_id() < 16) {
      st_shared(shared_address(smem.words + t), value);
      cta::barrier_sync(3, threads);
    } else {
      st_shared(shared_address(smem.words + t), value + 1);
      cta::barrier_sync(3, threads);
    }
    st_global(p.out + t, ld_shared<std::uint32_t>(shared_address(smem.words + (t + 40) % threads)));
  }
};

/// Each half of a warp elects one of its own. out: by lane, whether it was.
struct ElectsAmongSome : OneWarp {
  static constexpr int in_words = 0;
  static constexpr int out_words = 32;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    bool elected = false;
    if (lane_id() < 16) {
      elected = warp::elect_one(0x0000ffffu);
    } else {
      elected = warp::elect_one(0xffff0000u);
    }
    st_global(p.out + lane_id(), static_cast<std::uint32_t>(elected));
  }
};

/// All kernels of this file.
using AllKernels =
    Kernels<ArrivesForOthers, CopiesArrive<true>, CopiesArrive<false>, WaitsForCluster<true>,
            WaitsForCluster<false>, Flags, FlagBetweenCtas, CtasMeet, WideAtomics, SharedAtomics,
            AsyncReductions, CopiesToPeer, UnalignedBarrier, ElectsAmongSome>;

}  // namespace tegula::synchronisation_kernels
