#pragma once

#include <cstdint>

#include "instruction_kernels.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/grid_dependency.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/stmatrix.hpp"
#include "tegula/arch/trap.hpp"

/// One tiny kernel for each instruction of sm_90 that is neither TMA nor wgmma, as
/// instruction_kernels.hpp has them for sm_80. `cluster`, where a kernel has it, is the extents of
/// a cluster in CTAs.
namespace tegula::hopper_kernels {

using instruction_kernels::Kernels;
using instruction_kernels::Nothing;
using instruction_kernels::Pair;
using instruction_kernels::Quad;
using instruction_kernels::Words;

/// Base of the kernels of one warp and one CTA.
struct OneWarp : instruction_kernels::OneWarp {
  static constexpr int architecture = 90;
};

/// Base of the kernels whose grid is `Clusters` clusters of `Ctas` CTAs.
template <int Ctas, int Clusters = 1> struct OfClusters : OneWarp {
  static constexpr int ctas = Ctas;
  static constexpr Dim3 cluster = {Ctas, 1, 1};
  static constexpr Dim3 grid() { return {Ctas * Clusters, 1, 1}; }
};

/// Where a CTA is in its cluster, for clusters of 2x2x1 in a grid of three dimensions. out: 11
/// words a CTA.
struct ClusterRegisters : OneWarp {
  static constexpr Dim3 cluster = {2, 2, 1};
  static constexpr Dim3 grid() { return {6, 4, 2}; }
  static constexpr int in_words = 0;
  static constexpr int out_words = 6 * 4 * 2 * 11;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    Dim3 const block = block_idx();
    Dim3 const extent = grid_dim();
    Dim3 const id = cluster_cta_id();
    Dim3 const dim = cluster_dim();
    std::uint32_t* const out = p.out + 11 * (block.x + extent.x * (block.y + extent.y * block.z));
    int const words[11] = {cluster_cta_rank(),
                           cluster_cta_count(),
                           id.x,
                           id.y,
                           id.z,
                           dim.x,
                           dim.y,
                           dim.z,
                           block.x,
                           block.y,
                           block.z};
    for (int i = 0; i < 11; ++i) st_global(out + i, static_cast<std::uint32_t>(words[i]));
  }
};

/// Without `cluster`, a CTA is a cluster of its own. out: as ClusterRegisters, 8 words a CTA.
struct NoCluster : OneWarp {
  static constexpr Dim3 grid() { return {3, 1, 1}; }
  static constexpr int in_words = 0;
  static constexpr int out_words = 3 * 8;
  struct SharedStorage {
    std::uint32_t words[32];
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    SharedAddr const mine = shared_address(smem.words + lane);
    st_shared(mine, static_cast<std::uint32_t>(100 + lane));
    cluster::sync();  // of the CTA alone
    auto const opposite =
        ld_shared_cluster<std::uint32_t>(mapa(shared_address(smem.words + 31 - lane), 0));
    if (lane != 5) return;
    Dim3 const id = cluster_cta_id();
    Dim3 const dim = cluster_dim();
    std::uint32_t* const out = p.out + 8 * block_idx().x;
    int const words[7] = {
        cluster_cta_rank(), cluster_cta_count(), id.x + id.y + id.z, dim.x, dim.y, dim.z,
        block_idx().x};
    for (int i = 0; i < 7; ++i) st_global(out + i, static_cast<std::uint32_t>(words[i]));
    st_global(out + 7, opposite);
  }
};

/// A lane's 32 bytes of each CTA, of which 16 are one vector, 8 another, then 4, 2, 1 and 1.
struct LaneBytes {
  alignas(16) std::uint8_t bytes[32 * 32];
  template <class F> void name_buffers(F&& name) { name("bytes", bytes); }
};

/// Loads of 1 to 16 bytes from the CTA two ranks on, each lane reading what the lane
/// opposite wrote.
struct ClusterLoads : OfClusters<4, 3> {
  using SharedStorage = LaneBytes;
  static constexpr int in_words = 12 * 32 * 8;
  static constexpr int out_words = in_words;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    int const rank = cluster_cta_rank();
    int const cta = block_idx().x;
    std::uint32_t const* const in = p.in + 8 * (32 * cta + lane);
    SharedAddr const bytes = shared_address(smem.bytes);
    SharedAddr const mine = bytes + 32u * static_cast<SharedAddr>(lane);
    st_shared(mine, ld_global<Quad>(in));
    st_shared(mine + 16, ld_global<Quad>(in + 4));
    cluster::sync();
    SharedAddr const other =
        mapa(bytes + 32u * static_cast<SharedAddr>(31 - lane), (rank + 2) % ctas);
    auto* const out = reinterpret_cast<std::uint8_t*>(p.out + 8 * (32 * cta + lane));
    st_global(out, ld_shared_cluster<Quad>(other));
    st_global(out + 16, ld_shared_cluster<Pair>(other + 16));
    st_global(out + 24, ld_shared_cluster<std::uint32_t>(other + 24));
    st_global(out + 28, ld_shared_cluster<std::uint16_t>(other + 28));
    st_global(out + 30, ld_shared_cluster<std::uint8_t>(other + 30));
    st_global(out + 31, ld_shared_cluster<std::uint8_t>(other + 31));
    cluster::sync();  // nobody exits while its shared memory is read
  }
};

/// Stores of 1 to 16 bytes to the next CTA (the last one's next is the first), and loads of one's
/// own memory through the cluster's window, by mapa of the own rank and by the plain address.
struct ClusterStores : OfClusters<4> {
  using SharedStorage = LaneBytes;
  static constexpr int in_words = 4 * 32 * 8;
  static constexpr int out_words = 4 * 32 * 8;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    int const rank = cluster_cta_rank();
    auto const* const in = reinterpret_cast<std::uint8_t const*>(p.in + 8 * (32 * rank + lane));
    SharedAddr const mine = shared_address(smem.bytes) + 32u * static_cast<SharedAddr>(lane);
    cluster::arrive_relaxed();
    cluster::wait();  // the next CTA has started
    SharedAddr const next = mapa(mine, (rank + 1) % ctas);
    st_shared_cluster(next, ld_global<Quad>(in));
    st_shared_cluster(next + 16, ld_global<Pair>(in + 16));
    st_shared_cluster(next + 24, ld_global<std::uint32_t>(in + 24));
    st_shared_cluster(next + 28, ld_global<std::uint16_t>(in + 28));
    st_shared_cluster(next + 30, ld_global<std::uint8_t>(in + 30));
    st_shared_cluster(next + 31, ld_global<std::uint8_t>(in + 31));
    cluster::sync();
    std::uint32_t* const out = p.out + 8 * (32 * rank + lane);
    st_global(out, ld_shared_cluster<Quad>(mapa(mine, rank)));
    st_global(out + 4, ld_shared_cluster<Quad>(mine + 16));
  }
};

/// The cluster's barrier in two halves, several rounds: each warp hands a word to the next warp
/// of the next CTA, and does work of its own between arriving and waiting. Relaxed arrivals
/// follow a fence.
template <bool Relaxed> struct ClusterBarrier : OfClusters<4> {
  static constexpr int threads = 64;
  static constexpr int rounds = 5;
  struct SharedStorage {
    std::uint32_t words[2][threads];  ///< rounds use them in turn
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };
  static constexpr int in_words = 4 * threads;
  static constexpr int out_words = 4 * threads;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    int const rank = cluster_cta_rank();
    auto value = ld_global<std::uint32_t>(p.in + threads * rank + t);
    for (int round = 0; round < rounds; ++round) {
      st_shared(shared_address(&smem.words[round % 2][t]), value);
      if constexpr (Relaxed) {
        fence_acq_rel<Scope::gpu>();
        cluster::arrive_relaxed();
      } else {
        cluster::arrive();
      }
      value = value * 3u + static_cast<std::uint32_t>(rank);  // meanwhile
      cluster::wait();
      SharedAddr const there = shared_address(&smem.words[round % 2][(t + 32) % threads]);
      value += ld_shared_cluster<std::uint32_t>(mapa(there, (rank + 1) % ctas));
    }
    st_global(p.out + threads * rank + t, value);
    cluster::sync();
  }
};

/// What test_wait and try_wait say of a barrier at each step of its life, as one thread sees it.
/// out: one bit pair (parity 0, parity 1) a step.
struct MbarrierStates : OneWarp {
  struct SharedStorage {
    Mbarrier barrier;
    template <class F> void name_buffers(F&& name) { name("barrier", barrier); }
  };
  static constexpr int in_words = 0;
  static constexpr int out_words = 12;

  TEGULA_DEVICE static void look(SharedAddr barrier, std::uint32_t* out) {
    auto const bit = [](bool b) { return static_cast<std::uint32_t>(b); };
    std::uint32_t const tested =
        bit(mbarrier_test_wait_parity(barrier, 0)) + 2 * bit(mbarrier_test_wait_parity(barrier, 1));
    std::uint32_t const tried =
        bit(mbarrier_try_wait_parity(barrier, 0)) + 2 * bit(mbarrier_try_wait_parity(barrier, 1));
    st_global(out, tested + 16 * tried);
    // A try_wait that suspends the thread gives what holds when it ends, and ptxas moves a
    // complete_tx that follows to before the use of its result: on an H100 the phase was then
    // found complete too early. What follows waits for the results, as no barrier has both
    // parities complete.
    if (tested == 3 || tried == 3) trap();
  }

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    if (lane_id() != 0) return;
    SharedAddr const barrier = shared_address(&smem.barrier);
    std::uint32_t* out = p.out;
    mbarrier_init(barrier, 2);
    look(barrier, out++);  // phase 0
    mbarrier_arrive(barrier);
    look(barrier, out++);
    mbarrier_arrive(barrier);
    look(barrier, out++);  // phase 1
    mbarrier_expect_tx(barrier, 48);
    mbarrier_arrive(barrier);
    mbarrier_arrive(barrier);
    look(barrier, out++);  // bytes are missing
    mbarrier_complete_tx(barrier, 16);
    look(barrier, out++);
    mbarrier_complete_tx(barrier, 32);
    look(barrier, out++);  // phase 2
    mbarrier_arrive_expect_tx(barrier, 64);
    mbarrier_arrive_expect_tx(barrier, 64);
    look(barrier, out++);
    mbarrier_complete_tx(barrier, 128);
    look(barrier, out++);  // phase 3
    mbarrier_expect_tx(barrier, 8);
    mbarrier_complete_tx(barrier, 8);
    look(barrier, out++);  // arrivals are missing
    mbarrier_arrive(barrier);
    mbarrier_arrive(barrier);
    look(barrier, out++);  // phase 4
    mbarrier_arrive(barrier);
    mbarrier_inval(barrier);
    mbarrier_init(barrier, 1);
    look(barrier, out++);  // phase 0 again
    mbarrier_arrive(barrier);
    look(barrier, out++);  // phase 1
  }
};

/// A barrier of all threads through several phases: each round reads what another warp wrote,
/// between two barriers.
struct MbarrierPhases : OneWarp {
  static constexpr int threads = 128;
  static constexpr int rounds = 7;
  struct SharedStorage {
    Mbarrier written;
    Mbarrier read;
    std::uint32_t words[threads];
    template <class F> void name_buffers(F&& name) {
      name("written", written);
      name("read", read);
      name("words", words);
    }
  };
  static constexpr int in_words = threads;
  static constexpr int out_words = threads;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    SharedAddr const written = shared_address(&smem.written);
    SharedAddr const read = shared_address(&smem.read);
    if (t == 0) {
      mbarrier_init(written, threads);
      mbarrier_init(read, threads);
      fence_mbarrier_init();
    }
    cta::sync();
    auto value = ld_global<std::uint32_t>(p.in + t);
    for (int round = 0; round < rounds; ++round) {
      st_shared(shared_address(smem.words + t), value);
      mbarrier_arrive(written);
      mbarrier_wait_parity(written, round % 2);
      value += 5 * ld_shared<std::uint32_t>(shared_address(smem.words + (t + 33) % threads));
      mbarrier_arrive(read);
      while (!mbarrier_try_wait_parity(read, round % 2)) {
      }
      warp::sync();  // a try may end too early for some lanes: from here on all go together again
    }
    st_global(p.out + t, value);
  }
};

/// A ring of three slots from warp 0 to warp 1 with full and empty barriers; lane 0 arrives for
/// its warp.
struct MbarrierRing : OneWarp {
  static constexpr int threads = 64;
  static constexpr int slots = 3;
  static constexpr int steps = 11;
  struct SharedStorage {
    Mbarrier full[slots];
    Mbarrier empty[slots];
    std::uint32_t words[slots][32];
    template <class F> void name_buffers(F&& name) {
      name("full", full);
      name("empty", empty);
      name("words", words);
    }
  };
  static constexpr int in_words = 32 * steps;
  static constexpr int out_words = 32 * steps;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    if (thread_idx() == 0) {
      for (int slot = 0; slot < slots; ++slot) {
        mbarrier_init(shared_address(smem.full + slot), 1);
        mbarrier_init(shared_address(smem.empty + slot), 1);
      }
      fence_mbarrier_init();
    }
    cta::sync();
    for (int step = 0; step < steps; ++step) {
      int const slot = step % slots;
      int const parity = step / slots % 2;
      if (warp_id() == 0) {
        mbarrier_wait_parity(shared_address(smem.empty + slot), parity ^ 1);  // in round 0 at once
        st_shared(shared_address(&smem.words[slot][lane]),
                  ld_global<std::uint32_t>(p.in + 32 * step + lane));
        warp::sync();
        if (lane == 0) mbarrier_arrive(shared_address(smem.full + slot));
      } else {
        mbarrier_wait_parity(shared_address(smem.full + slot), parity);
        auto const value = ld_shared<std::uint32_t>(shared_address(&smem.words[slot][31 - lane]));
        warp::sync();
        if (lane == 0) mbarrier_arrive(shared_address(smem.empty + slot));
        st_global(p.out + 32 * step + lane, value);
      }
    }
  }
};

/// Arrivals at the barriers of all CTAs of the cluster, the own one included: each CTA waits for a
/// word from each, over several phases.
struct MbarrierRemoteArrive : OfClusters<4> {
  static constexpr int rounds = 4;
  struct SharedStorage {
    Mbarrier written;
    Mbarrier read;
    std::uint32_t words[ctas];
    template <class F> void name_buffers(F&& name) {
      name("written", written);
      name("read", read);
      name("words", words);
    }
  };
  static constexpr int in_words = ctas;
  static constexpr int out_words = ctas;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    int const rank = cluster_cta_rank();
    SharedAddr const written = shared_address(&smem.written);
    SharedAddr const read = shared_address(&smem.read);
    if (lane == 0) {
      mbarrier_init(written, ctas);
      mbarrier_init(read, ctas);
      fence_mbarrier_init();
    }
    cluster::sync();
    auto value = ld_global<std::uint32_t>(p.in + rank);
    for (int round = 0; round < rounds; ++round) {
      if (lane < ctas) {  // lane i tells CTA i
        st_shared_cluster(mapa(shared_address(smem.words + rank), lane), value);
        mbarrier_arrive_cluster_release(mapa(written, lane));
      }
      mbarrier_wait_parity(written, round % 2);
      fence_acq_rel<Scope::gpu>();
      for (int i = 0; i < ctas; ++i) {
        value = 3 * value + ld_shared<std::uint32_t>(shared_address(smem.words + i));
      }
      warp::sync();
      if (lane < ctas) mbarrier_arrive_cluster(mapa(read, lane));
      mbarrier_wait_parity(read, round % 2);  // all CTAs have read theirs
    }
    if (lane == 0) st_global(p.out + rank, value);
    cluster::sync();
  }
};

/// st.async of 4, 8 and 16 bytes a lane to the other CTA, whose barrier expects them.
template <class V> struct StAsync : OfClusters<2> {
  static constexpr int lane_words = sizeof(V) / 4;
  struct SharedStorage {
    Mbarrier arrived;
    alignas(16) std::uint32_t words[32][lane_words];
    template <class F> void name_buffers(F&& name) {
      name("arrived", arrived);
      name("words", words);
    }
  };
  static constexpr int in_words = ctas * 32 * lane_words;
  static constexpr int out_words = in_words;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    int const rank = cluster_cta_rank();
    SharedAddr const arrived = shared_address(&smem.arrived);
    if (lane == 0) {
      mbarrier_init(arrived, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(arrived, 32 * static_cast<int>(sizeof(V)));
    }
    cluster::sync();
    auto const value = ld_global<V>(p.in + (32 * rank + lane) * lane_words);
    st_async(mapa(shared_address(smem.words[31 - lane]), rank ^ 1), value, mapa(arrived, rank ^ 1));
    mbarrier_wait_parity(arrived, 0);
    st_global(p.out + (32 * rank + lane) * lane_words,
              ld_shared<V>(shared_address(smem.words[lane])));
    cluster::sync();
  }
};

/// A ring of two slots in each of two CTAs: warp 0 sends to the other CTA's by st.async when that
/// CTA's warp 1 has said, by a remote arrival, that the slot is free.
struct ClusterRing : OfClusters<2, 5> {
  static constexpr int threads = 64;
  static constexpr int slots = 2;
  static constexpr int steps = 9;
  struct SharedStorage {
    Mbarrier full[slots];   ///< this CTA's slot holds the other's values
    Mbarrier empty[slots];  ///< the other CTA's slot is free
    std::uint32_t words[slots][32];
    template <class F> void name_buffers(F&& name) {
      name("full", full);
      name("empty", empty);
      name("words", words);
    }
  };
  static constexpr int in_words = 10 * steps * 32;
  static constexpr int out_words = in_words;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    int const other = cluster_cta_rank() ^ 1;
    if (thread_idx() == 0) {
      for (int slot = 0; slot < slots; ++slot) {
        mbarrier_init(shared_address(smem.full + slot), 1);
        mbarrier_init(shared_address(smem.empty + slot), 32);
      }
      fence_mbarrier_init();
    }
    cluster::sync();
    for (int step = 0; step < steps; ++step) {
      int const slot = step % slots;
      int const parity = step / slots % 2;
      SharedAddr const full = shared_address(smem.full + slot);
      SharedAddr const empty = shared_address(smem.empty + slot);
      SharedAddr const word = shared_address(&smem.words[slot][lane]);
      int const at = (block_idx().x * steps + step) * 32 + lane;
      if (warp_id() == 0) {
        mbarrier_wait_parity(empty, parity ^ 1);
        st_async(mapa(word, other), ld_global<std::uint32_t>(p.in + at), mapa(full, other));
      } else {
        if (lane == 0) mbarrier_arrive_expect_tx(full, 32 * 4);
        mbarrier_wait_parity(full, parity);
        st_global(p.out + at, ld_shared<std::uint32_t>(word));
        mbarrier_arrive_cluster(mapa(empty, other));
      }
    }
    cluster::sync();
  }
};

/// stmatrix of Count matrices, plain or transposed. in: Count words a lane. out: the matrices'
/// rows, 4 words each.
template <int Count, bool Transpose> struct Stmatrix : OneWarp {
  struct SharedStorage {
    alignas(16) std::uint16_t rows[8 * Count][8];
    template <class F> void name_buffers(F&& name) { name("rows", rows); }
  };
  static constexpr int in_words = 32 * Count;
  static constexpr int out_words = 8 * Count * 4;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    std::uint32_t r[Count];
    for (int i = 0; i < Count; ++i) r[i] = ld_global<std::uint32_t>(p.in + Count * lane + i);
    stmatrix<Count, Transpose>(shared_address(smem.rows[lane % (8 * Count)]), r);
    warp::sync();
    if (lane < 8 * Count)
      st_global(p.out + 4 * lane, ld_shared<Quad>(shared_address(smem.rows[lane])));
  }
};

/// elect.sync, twice, by two warps. out: a word a thread.
struct ElectOne : OneWarp {
  static constexpr int threads = 64;
  static constexpr int in_words = 0;
  static constexpr int out_words = threads;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    auto const first = static_cast<std::uint32_t>(warp::elect_one());
    auto const second = static_cast<std::uint32_t>(warp::elect_one());
    st_global(p.out + thread_idx(), first + 2 * second);
  }
};

/// A warpgroup that loads gives its registers to two that compute: 168 a thread at first
/// (what 65536 allow 384 threads), then 24, 240 and 240.
struct SetMaxRegisters : OneWarp {
  static constexpr int threads = 384;
  static constexpr int steps = 3;
  struct SharedStorage {
    Mbarrier full;
    Mbarrier empty;
    std::uint32_t words[128];
    template <class F> void name_buffers(F&& name) {
      name("full", full);
      name("empty", empty);
      name("words", words);
    }
  };
  static constexpr int in_words = 128 * steps;
  static constexpr int out_words = 256;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    SharedAddr const full = shared_address(&smem.full);
    SharedAddr const empty = shared_address(&smem.empty);
    if (t == 0) {
      mbarrier_init(full, 128);
      mbarrier_init(empty, 256);
      fence_mbarrier_init();
    }
    cta::sync();
    if (t < 128) {
      setmaxnreg_dec<24>();
      for (int step = 0; step < steps; ++step) {
        mbarrier_wait_parity(empty, step % 2 ^ 1);
        st_shared(shared_address(smem.words + t), ld_global<std::uint32_t>(p.in + 128 * step + t));
        mbarrier_arrive(full);
      }
    } else {
      setmaxnreg_inc<240>();
      std::uint32_t sum = 0;
      for (int step = 0; step < steps; ++step) {
        mbarrier_wait_parity(full, step % 2);
        sum = 7 * sum + ld_shared<std::uint32_t>(shared_address(smem.words + t % 128));
        mbarrier_arrive(empty);
      }
      st_global(p.out + t - 128, sum);
    }
  }
};

/// The fences and griddepcontrol between a store and a load: nothing changes.
struct FencesAndGridDependency : OneWarp {
  struct SharedStorage {
    std::uint32_t words[32];
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };
  static constexpr int in_words = 32;
  static constexpr int out_words = 32;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    griddepcontrol_wait();
    st_shared(shared_address(smem.words + lane), ld_global<std::uint32_t>(p.in + lane));
    fence_proxy_async_shared();
    fence_proxy_async();
    fence_mbarrier_init();
    warp::sync();
    st_global(p.out + lane, ld_shared<std::uint32_t>(shared_address(smem.words + (lane ^ 3))));
    griddepcontrol_launch_dependents();
  }
};

/// All kernels of this file.
using AllKernels =
    Kernels<ClusterRegisters, NoCluster, ClusterLoads, ClusterStores, ClusterBarrier<false>,
            ClusterBarrier<true>, MbarrierStates, MbarrierPhases, MbarrierRing,
            MbarrierRemoteArrive, StAsync<std::uint32_t>, StAsync<Pair>, StAsync<Quad>, ClusterRing,
            Stmatrix<1, false>, Stmatrix<2, false>, Stmatrix<4, false>, Stmatrix<1, true>,
            Stmatrix<2, true>, Stmatrix<4, true>, ElectOne, SetMaxRegisters,
            FencesAndGridDependency>;

}  // namespace tegula::hopper_kernels
