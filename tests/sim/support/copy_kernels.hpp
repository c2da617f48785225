#pragma once

#include <cstdint>

#include "hopper_kernels.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/prefetch.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/numeric/bfloat16.hpp"
#include "tegula/numeric/half.hpp"

/// Kernels that copy and reduce in bulk, or tell the caches something: for the simulated machine
/// and a GPU.
namespace tegula::copy_kernels {

using hopper_kernels::Kernels;
using hopper_kernels::OfClusters;
using hopper_kernels::OneWarp;
using hopper_kernels::Pair;
using hopper_kernels::Quad;
using hopper_kernels::Words;

/// Loads a V at each of 4 hints and stores it at another; each lane its own.
template <class V> struct Hints : OneWarp {
  static constexpr int architecture = 80;
  static constexpr int in_words = 4 * 32 * 4, out_words = 4 * 32 * 4;
  static constexpr bool zeroed = true;

  template <CacheHint Load, CacheHint Store> TEGULA_DEVICE static void move(Words const& p, int i) {
    auto const* const in = reinterpret_cast<unsigned char const*>(p.in) + 512 * i;
    auto* const out = reinterpret_cast<unsigned char*>(p.out) + 512 * i;
    int const at = static_cast<int>(sizeof(V)) * lane_id();
    if (i % 2 == 0) {
      st_global<Store>(out + at, ld_global<V, Load>(in + at));
    } else {
      st_global<Store>(out + at, ld_global_nc<V, Load>(in + at));
    }
  }
  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    move<CacheHint{.op = CacheOperator::cs, .prefetch = L2Prefetch::b256},
         CacheHint{.op = CacheOperator::wt}>(p, 0);
    move<CacheHint{.l1 = L1Eviction::no_allocate, .l2 = L2Hint::evict_first},
         CacheHint{.l1 = L1Eviction::evict_last}>(p, 1);
    move<CacheHint{.l1 = L1Eviction::evict_first, .l2 = L2Policy(L2Hint::evict_last, 8, true)},
         CacheHint{.op = CacheOperator::cg, .l2 = L2Hint::evict_first}>(p, 2);
    move<CacheHint{.op = CacheOperator::cg, .prefetch = L2Prefetch::b64}, CacheHint{}>(p, 3);
  }
};

/// cp.async with hints, and all that says something to the caches and moves nothing.
struct CopyHints : OneWarp {
  static constexpr int architecture = 80;
  struct SharedStorage {
    Quad words[3][32];
    template <class F> void name_buffers(F&& name) { name("words", words); }
  };
  static constexpr int in_words = 3 * 32 * 4, out_words = 3 * 32 * 4;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    prefetch_global<CacheLevel::l1>(p.in + 4 * lane);
    prefetch_global<CacheLevel::l2>(p.in + 128 + 4 * lane);
    prefetch_global<CacheLevel::l2_evict_last>(p.in + 256 + 4 * lane);
    prefetch_global<CacheLevel::l2_evict_normal>(p.in + 256 + 4 * lane);
    if (lane < 12) apply_priority_evict_normal(p.in + 32 * lane);
    if (lane < 12) discard_global(p.out + 32 * lane);
    warp::sync();
    auto const at = [&](int i) { return shared_address(&smem.words[i][lane]); };
    cp_async_cg<16, CacheHint{.l2 = L2Hint::evict_first}>(at(0), p.in + 4 * lane);
    cp_async_ca<16, CacheHint{.prefetch = L2Prefetch::b256}>(at(1), p.in + 128 + 4 * lane);
    cp_async_ca<8, CacheHint{.l2 = L2Policy(L2Hint::evict_last, 4), .prefetch = L2Prefetch::b64}>(
        at(2), p.in + 256 + 4 * lane);
    cp_async_ca<8, CacheHint{}>(at(2) + 8, p.in + 256 + 4 * lane + 2);
    cp_async_wait_all();
    for (int i = 0; i < 3; ++i) st_global(p.out + 128 * i + 4 * lane, ld_shared<Quad>(at(i)));
  }
};

/// The rank-1 CTA of a cluster asks for one row, and the CTAs of a mask get it.
template <int Ctas, unsigned Mask> struct MulticastsRow : OfClusters<Ctas, 2> {
  struct SharedStorage {
    Mbarrier full;
    alignas(16) std::uint32_t row[64];
    template <class F> void name_buffers(F&& name) {
      name("full", full);
      name("row", row);
    }
  };
  static constexpr int in_words = 2 * 64, out_words = 2 * Ctas * 64;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const rank = cluster_cta_rank(), lane = lane_id();
    SharedAddr const full = shared_address(&smem.full), row = shared_address(smem.row);
    bool const receives = (Mask >> rank & 1) != 0;
    for (int i = 0; i < 2; ++i) st_shared(row + 4u * static_cast<SharedAddr>(lane + 32 * i), 7u);
    fence_proxy_async();
    if (lane == 0) {
      mbarrier_init(full, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(full, receives ? sizeof smem.row : 0);
    }
    cluster::sync();
    if (lane == 0 && rank == 1)
      bulk_load_multicast<L2Hint::evict_last>(row, p.in + 64 * (block_idx().x / Ctas), 256, full,
                                              Mask);
    mbarrier_wait_parity(full, 0);
    for (int i = lane; i < 64; i += 32)
      st_global(p.out + 64 * block_idx().x + i,
                ld_shared<std::uint32_t>(row + 4u * static_cast<SharedAddr>(i)));
  }
};

/// Combines 256 bytes of T with as many that lie in global memory.
template <TmaReduce Op, class T> struct Reduces : OneWarp {
  struct SharedStorage {
    alignas(16) std::uint32_t brought[64];
    template <class F> void name_buffers(F&& name) { name("brought", brought); }
  };
  static constexpr int in_words = 128, out_words = 64;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    SharedAddr const brought = shared_address(smem.brought);
    for (int i = lane_id(); i < 64; i += 32) {
      st_global(p.out + i, ld_global<std::uint32_t>(p.in + i));
      st_shared(brought + 4u * static_cast<SharedAddr>(i), ld_global<std::uint32_t>(p.in + 64 + i));
    }
    fence_proxy_async();
    warp::sync();
    if (lane_id() != 0) return;
    bulk_reduce<Op>(reinterpret_cast<T*>(p.out), brought, 256);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

/// Each CTA of a cluster but the first combines 256 bytes of T with those of the first.
template <TmaReduce Op, class T, int Ctas> struct ReducesInCluster : OfClusters<Ctas> {
  struct SharedStorage {
    Mbarrier done;
    alignas(16) std::uint32_t values[64];
    template <class F> void name_buffers(F&& name) {
      name("done", done);
      name("values", values);
    }
  };
  static constexpr int in_words = 64 * Ctas, out_words = 64;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    int const rank = cluster_cta_rank(), lane = lane_id();
    SharedAddr const done = shared_address(&smem.done), values = shared_address(smem.values);
    for (int i = lane; i < 64; i += 32)
      st_shared(values + 4u * static_cast<SharedAddr>(i),
                ld_global<std::uint32_t>(p.in + 64 * rank + i));
    fence_proxy_async();
    if (lane == 0 && rank == 0) {
      mbarrier_init(done, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(done, 256 * (Ctas - 1));
    }
    cluster::sync();
    if (rank != 0) {
      if (lane == 0) bulk_reduce_cluster<Op, T>(mapa(values, 0), values, 256, mapa(done, 0));
    } else {
      mbarrier_wait_parity(done, 0);
      for (int i = lane; i < 64; i += 32)
        st_global(p.out + i, ld_shared<std::uint32_t>(values + 4u * static_cast<SharedAddr>(i)));
    }
    cluster::sync();
  }
};

/// A histogram of bytes: each CTA counts in shared memory, and adds its counts to all others' at
/// once.
struct Histogram : OneWarp {
  static constexpr int bins = 64;
  static constexpr Dim3 grid() { return {6, 1, 1}; }
  struct SharedStorage {
    alignas(16) std::uint32_t counts[bins];
    template <class F> void name_buffers(F&& name) { name("counts", counts); }
  };
  static constexpr int in_words = 6 * 256, out_words = bins;
  static constexpr bool zeroed = true;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage& smem) const {
    SharedAddr const counts = shared_address(smem.counts);
    auto const count = [&](std::uint32_t bin) { return counts + 4u * (bin % bins); };
    for (int i = lane_id(); i < bins; i += 32) st_shared(count(static_cast<unsigned>(i)), 0u);
    warp::sync();
    for (int i = lane_id(); i < 256; i += 32) {
      auto const word = ld_global_nc<std::uint32_t>(p.in + 256 * block_idx().x + i);
      for (int byte = 0; byte < 4; ++byte) atom_shared_add(count(word >> (8 * byte)), 1u);
    }
    fence_proxy_async();
    warp::sync();
    if (lane_id() != 0) return;
    bulk_reduce<TmaReduce::add>(p.out, counts, sizeof smem.counts);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
};

using AllKernels =
    Kernels<Hints<std::uint8_t>, Hints<std::uint16_t>, Hints<std::uint32_t>, Hints<Pair>,
            Hints<Quad>, CopyHints, MulticastsRow<2, 0b11>, MulticastsRow<4, 0b1011>,
            Reduces<TmaReduce::add, half>, Reduces<TmaReduce::add, bfloat16>,
            Reduces<TmaReduce::add, float>, Reduces<TmaReduce::add, double>,
            Reduces<TmaReduce::add, std::uint32_t>, Reduces<TmaReduce::add, std::int64_t>,
            Reduces<TmaReduce::min, half>, Reduces<TmaReduce::max, bfloat16>,
            Reduces<TmaReduce::min, std::int32_t>, Reduces<TmaReduce::max, std::int64_t>,
            Reduces<TmaReduce::min, std::uint64_t>, Reduces<TmaReduce::inc, std::uint32_t>,
            Reduces<TmaReduce::dec, std::uint32_t>, Reduces<TmaReduce::bit_and, std::uint64_t>,
            Reduces<TmaReduce::bit_or, std::int32_t>, Reduces<TmaReduce::bit_xor, std::uint32_t>,
            ReducesInCluster<TmaReduce::add, std::int32_t, 4>,
            ReducesInCluster<TmaReduce::add, std::uint64_t, 4>,
            ReducesInCluster<TmaReduce::min, std::int32_t, 4>,
            ReducesInCluster<TmaReduce::max, std::uint32_t, 4>,
            ReducesInCluster<TmaReduce::inc, std::uint32_t, 2>,
            ReducesInCluster<TmaReduce::dec, std::uint32_t, 2>,
            ReducesInCluster<TmaReduce::bit_and, std::uint32_t, 4>,
            ReducesInCluster<TmaReduce::bit_or, std::int32_t, 4>,
            ReducesInCluster<TmaReduce::bit_xor, std::uint32_t, 4>, Histogram>;

}  // namespace tegula::copy_kernels
