#pragma once

#include "tegula/arch/shared.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/attention_loads.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/kernel/attention_transpose_v.hpp"
#include "tegula/kernel/attention_work.hpp"

namespace tegula {

/// The producer of attention_sm90, one thread of the CTA: it deals the tiles out, and has TMA fill
/// the rings of K and V and the consumers' rows of Q. `Roles` are the kernel's handles of these.
///
/// With `serving`, a page of keys is a load of its own, and one thread cannot ask for all of them
/// in time: V is asked for by a warp of its own, which learns of the tiles from the queue.
template <AttentionSm90Config C> class AttentionProducer {
  using Params = AttentionSm90Params;
  using Tiles = AttentionTiles<C>;
  using Work = typename Tiles::Work;
  using V = LoadedV<C>;
  static constexpr int k_bytes = tma_boxes(k_tile(C)).bytes;
  static constexpr int v_bytes = tma_boxes(loaded_v_tile(C)).bytes;

 public:
  /// Warps that read the queue of tiles.
  static constexpr int readers = C.serving ? 1 : 0;

  /// Every tile of the CTA, to the queue and to shared memory. By one thread.
  template <class Roles> TEGULA_DEVICE static void produce(Params const& p, Roles& role) {
    deal_tiles<Tiles>(p, role.queue,
                      [&](Work const& work, KeyBlocks const& blocks, auto const& take_next) {
                        fetch(p, role, work, blocks, take_next);
                      });
  }

  /// V of every tile. By a warp, where there are `readers`.
  template <class Roles> TEGULA_DEVICE static void produce_values(Params const& p, Roles& role) {
    for (auto tile = role.queue.get(); Tiles::is_tile(tile); tile = role.queue.get()) {
      role.queue.release();
      if (warp::elect_one()) {
        Work const work{p, tile};
        AttentionLoads<C> const loads{p, work};
        KeyBlocks const blocks = work.blocks();
#pragma unroll 1
        for (int n = blocks.last - 1; n >= blocks.first; --n) fetch_values(role, loads, n);
      }
      warp::sync();  // the others wait here, not at the queue's shuffles
    }
  }

 private:
  /// Has TMA load a tile's rows of Q, and its blocks of K and, without `readers`, of V.
  template <class Roles, class TakeNext>
  TEGULA_DEVICE static void fetch(Params const& p, Roles& role, Work const& work,
                                  KeyBlocks const& blocks, TakeNext const& take_next) {
    AttentionLoads<C> const loads{p, work};
    auto const sQ = tensor(role.smem.q);  // (consumer_m, head_dim, q_stages)
    auto const sK = tensor(role.smem.k);  // (block_n, head_dim, stages)
    auto const fetch_keys = [&](int n) {
      SharedAddr const full = role.ring_k.acquire(role.k, k_bytes);
      loads.keys(n, sK(_, _, role.k.stage), full);
      role.k.next();
    };
    fetch_keys(blocks.last - 1);  // its stage is free before that of Q
#pragma unroll 1
    for (int consumer = 0; consumer < C.consumers; ++consumer) {
      bool const seen = !work.blocks_of(consumer).empty();  // else the stage goes by empty
      SharedAddr const full = role.ring_q.acquire(role.q, seen ? bytes_of_rows<C>(p.packed) : 0);
      if (seen) loads.rows(consumer, sQ(_, _, role.q.stage), full);
      role.q.next();
    }
#pragma unroll 1
    for (int n = blocks.last - 1; n >= blocks.first; --n) {
      if (n == takes_next_at(blocks)) take_next();
      if (n > blocks.first) fetch_keys(n - 1);
      if constexpr (readers == 0) fetch_values(role, loads, n);
    }
  }
  template <class Roles>
  TEGULA_DEVICE static void fetch_values(Roles& role, AttentionLoads<C> const& loads, int n) {
    auto const sV = tensor(V::tile(role.smem));  // (head_dim_v, block_n, stages)
    SharedAddr const full = V::ring(role.smem).acquire(role.v, v_bytes);
    loads.values(n, sV(_, _, role.v.stage), full);
    role.v.next();
  }
};

}  // namespace tegula
