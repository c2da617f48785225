#pragma once

#include <cstdint>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/tma_im2col.hpp"

/// Kernels that move one box by TMA and show what it did, for the simulated machine and a GPU.
namespace tegula::tma_kernels {

/// Bytes of shared memory that a load is seen in, and a store taken from.
inline constexpr int kDumpBytes = 32 * 1024;
inline constexpr std::uint32_t kUntouchedWord = 0xa5a5a5a5u;

struct Params {
  TensorMap map;
  int coordinate[5];
  int shared_offset;
  int tx_bytes;             ///< what the mbarrier of a load expects
  std::uint32_t const* in;  ///< kDumpBytes: what a store takes
  std::uint32_t* out;       ///< kDumpBytes for each CTA: what a load brought
  std::uint32_t* arrived;   ///< a word for each CTA: 1 where the mbarrier's phase completed
  unsigned char* bulk;      ///< global memory of a bulk copy
  int bulk_bytes;
  unsigned cta_mask;        ///< of a multicast
  int issuer;               ///< rank of the CTA that multicasts
  std::uint16_t offset[3];  ///< of an im2col load
};

struct SharedStorage {
  alignas(1024) std::uint32_t dump[kDumpBytes / 4];
  Mbarrier full;
  template <class F> void name_buffers(F&& name) {
    name("dump", dump);
    name("full", full);
  }
};

struct Base {
  using Params = tma_kernels::Params;
  using SharedStorage = tma_kernels::SharedStorage;
  static constexpr int threads = 128;
  static constexpr int words = kDumpBytes / 4;

  /// Writes all of the dump by threads, and lets TMA have it.
  TEGULA_DEVICE static void fill(SharedStorage& smem, std::uint32_t const* from) {
    for (int i = thread_idx(); i < words; i += threads)
      st_shared(shared_address(&smem.dump[i]),
                from == nullptr ? kUntouchedWord : ld_global<std::uint32_t>(from + i));
    fence_proxy_async();
    cta::sync();
  }

  TEGULA_DEVICE static void init(SharedStorage& smem) {
    if (thread_idx() == 0) {
      mbarrier_init(shared_address(&smem.full), 1);
      fence_mbarrier_init();
    }
  }

  /// Waits for the first phase, on a GPU not for ever, and shows what is in shared memory then.
  TEGULA_DEVICE static void show(Params const& p, SharedStorage& smem) {
    int const cta = block_idx().x;
#if TEGULA_GPU
    bool complete = false;
    for (int i = 0; i < 1 << 14 && !complete; ++i)
      complete = mbarrier_try_wait_parity(shared_address(&smem.full), 0);
#else
    bool const complete = true;
    mbarrier_wait_parity(shared_address(&smem.full), 0);
#endif
    if (thread_idx() == 0) st_global(p.arrived + cta, complete ? 1u : 0u);
    for (int i = thread_idx(); i < words; i += threads)
      st_global(p.out + cta * words + i, ld_shared<std::uint32_t>(shared_address(&smem.dump[i])));
  }

  TEGULA_DEVICE static SharedAddr box(Params const& p, SharedStorage& smem) {
    return shared_address(smem.dump) + static_cast<SharedAddr>(p.shared_offset);
  }

  template <int Rank> TEGULA_DEVICE static TmaCoordinate<Rank> coordinate(Params const& p) {
    TmaCoordinate<Rank> c;
    for (int i = 0; i < Rank; ++i) c.x[i] = p.coordinate[i];
    return c;
  }
};

template <int Rank, L2Hint Hint = L2Hint::none> struct Load : Base {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    fill(smem, nullptr);
    if (thread_idx() == 0) {
      prefetch_tensor_map(p.map);
      tma_prefetch<Rank, Hint>(p.map, coordinate<Rank>(p));
      mbarrier_arrive_expect_tx(shared_address(&smem.full), p.tx_bytes);
      tma_load<Rank, Hint>(box(p, smem), p.map, coordinate<Rank>(p), shared_address(&smem.full));
    }
    show(p, smem);
  }
};

/// The pixels of an image.
template <int Rank> struct LoadPixels : Base {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    fill(smem, nullptr);
    if (thread_idx() == 0) {
      TmaOffsets<Rank - 2> offsets;
      for (int i = 0; i < Rank - 2; ++i) offsets.x[i] = p.offset[i];
      tma_prefetch_im2col(p.map, coordinate<Rank>(p), offsets);
      mbarrier_arrive_expect_tx(shared_address(&smem.full), p.tx_bytes);
      tma_load_im2col(box(p, smem), p.map, coordinate<Rank>(p), offsets,
                      shared_address(&smem.full));
    }
    show(p, smem);
  }
};

/// A cluster of `Ctas`: each CTA of the mask gets the box that one of them asked for.
template <int Ctas> struct Multicast : Base {
  static constexpr Dim3 cluster = {Ctas, 1, 1};
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    fill(smem, nullptr);
    bool const receives = (p.cta_mask >> cluster_cta_rank() & 1) != 0;
    if (thread_idx() == 0)
      mbarrier_arrive_expect_tx(shared_address(&smem.full), receives ? p.tx_bytes : 0);
    cluster::sync();
    if (thread_idx() == 0 && cluster_cta_rank() == p.issuer) {
      tma_load_multicast(box(p, smem), p.map, coordinate<2>(p), shared_address(&smem.full),
                         static_cast<std::uint16_t>(p.cta_mask));
    }
    show(p, smem);
    cluster::sync();
  }
};

template <int Rank> struct Store : Base {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem, p.in);
    if (thread_idx() == 0) {
      tma_store(p.map, coordinate<Rank>(p), box(p, smem));
      bulk_commit_group();
      bulk_wait_group_read<0>();
      bulk_wait_group<0>();
    }
  }
};

template <TmaReduce Op> struct Reduce : Base {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem, p.in);
    if (thread_idx() == 0) {
      tma_reduce<2, Op>(p.map, coordinate<2>(p), box(p, smem));
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

struct BulkLoad : Base {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    fill(smem, nullptr);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(shared_address(&smem.full), p.tx_bytes);
      bulk_load(box(p, smem), p.bulk, p.bulk_bytes, shared_address(&smem.full));
    }
    show(p, smem);
  }
};

struct BulkStore : Base {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem, p.in);
    if (thread_idx() == 0) {
      bulk_store(p.bulk, box(p, smem), p.bulk_bytes);
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

/// All of them, so that a GPU's can be named by number.
template <class... Kernel> struct Kernels {};
using AllKernels =
    Kernels<Load<1>, Load<2>, Load<3>, Load<4>, Load<5>, Load<2, L2Hint::evict_first>,
            Load<2, L2Hint::evict_last>, Load<2, L2Hint::evict_normal>, Store<1>, Store<2>,
            Store<3>, Store<4>, Store<5>, Reduce<TmaReduce::add>, Reduce<TmaReduce::min>,
            Reduce<TmaReduce::max>, Reduce<TmaReduce::inc>, Reduce<TmaReduce::dec>,
            Reduce<TmaReduce::bit_and>, Reduce<TmaReduce::bit_or>, Reduce<TmaReduce::bit_xor>,
            Multicast<2>, Multicast<4>, BulkLoad, BulkStore, LoadPixels<3>, LoadPixels<4>,
            LoadPixels<5>>;

}  // namespace tegula::tma_kernels
