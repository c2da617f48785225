#pragma once

#include <cstdint>

#include "tegula/arch/atomic.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/cp_async.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/pipeline/ordered_barrier.hpp"
#include "tegula/pipeline/store_pipeline.hpp"
#include "tegula/pipeline/thread_pipeline.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"

/// Small kernels, each around one pipeline. They hand `steps` rows of 128 words from `in` to
/// `out`, and change each word on the way so that a row read too early, twice or from the wrong
/// stage shows.
namespace tegula::pipeline_kernels {

inline constexpr int kRow = 128;  ///< words of a stage

struct Words {
  std::uint32_t const* in;
  std::uint32_t* out;
};

/// A ring, and a row in each of its stages.
template <class Ring, int Stages> struct RingOfRows {
  alignas(128) std::uint32_t rows[Stages][kRow];
  typename Ring::Storage ring;
  template <class F> void name_buffers(F&& name) {
    name("rows", rows);
    name("full", ring.full);
    name("empty", ring.empty);
  }
};

/// What consumer `consumer` makes of a word.
TEGULA_HOST_DEVICE constexpr std::uint32_t mixed(std::uint32_t word, int consumer) {
  return word * 2654435761u + static_cast<std::uint32_t>(consumer);
}

/// A row of shared memory that a warp hands on: out row (step, consumer).
TEGULA_DEVICE void consume_row(std::uint32_t* out, std::uint32_t const* row, int consumer) {
  for (int word = lane_id(); word < kRow; word += 32) {
    st_global(out + word, mixed(ld_shared<std::uint32_t>(shared_address(row + word)), consumer));
  }
}

/// When a consumer of TmaFed releases a stage, relative to reading it.
enum class Release : std::uint8_t { after_reading, before_reading };

/// Warp 0 has TMA fill the ring, each row by two bulk copies; the other warps each read every row.
template <int Stages, int Consumers, Release When = Release::after_reading> struct TmaFed {
  using Params = Words;
  using Ring = TmaPipeline<Stages, Consumers>;
  static constexpr int threads = 32 * (1 + Consumers);
  static constexpr int steps = 3 * Stages + 1;
  static constexpr int consumers = Consumers;
  using SharedStorage = RingOfRows<Ring, Stages>;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    Ring const ring{smem.ring};
    if (thread_idx() == 0) {
      ring.init();
      fence_mbarrier_init();
    }
    cta::sync();
    typename Ring::State state;
    if (warp_id() == 0) {
      if (lane_id() != 0) return;
      for (int step = 0; step < steps; ++step, state.next()) {
        SharedAddr const full = ring.acquire(state, 4 * kRow);
        for (int half = 0; half < 2; ++half) {
          bulk_load(shared_address(&smem.rows[state.stage][kRow / 2 * half]),
                    p.in + kRow * step + kRow / 2 * half, 2 * kRow, full);
        }
      }
    } else {
      int const consumer = warp_id() - 1;
      for (int step = 0; step < steps; ++step, state.next()) {
        ring.wait(state);
        if (When == Release::before_reading) {
          ring.release(state.stage);
          for (int i = 0; i < 8; ++i) warp::sync();  // time for the producer
        }
        consume_row(p.out + kRow * (consumers * step + consumer), smem.rows[state.stage], consumer);
        warp::sync();  // all lanes have read
        if (When == Release::after_reading) ring.release(state.stage);
      }
    }
  }
};

struct MulticastParams {
  TensorMap in;  ///< (kRow, rows) words, in boxes of kRow / Peers words of one row
  std::uint32_t* out;
};

/// A cluster of `Peers` CTAs that all want the same rows: each fetches its share of a row for all
/// of them. `Counted` is the number of CTAs whose consumers the producer waits for: any other than
/// Peers is a mistake.
template <int Peers, int Stages, int Consumers, int Counted = Peers> struct Multicast {
  using Params = MulticastParams;
  using Ring = TmaPipeline<Stages, Consumers, Counted>;
  static constexpr Dim3 cluster = {Peers, 1, 1};
  static constexpr int peers = Peers;
  static constexpr int threads = 32 * (1 + Consumers);
  static constexpr int steps = 3 * Stages + 1;
  static constexpr int consumers = Consumers;
  using SharedStorage = RingOfRows<Ring, Stages>;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    Ring const ring{smem.ring};
    int const rank = cluster_cta_rank();
    if (thread_idx() == 0) {
      ring.init();
      fence_mbarrier_init();
    }
    cluster::sync();
    typename Ring::State state;
    if (warp_id() == 0) {
      if (lane_id() == 0) {
        for (int step = 0; step < steps; ++step, state.next()) {
          SharedAddr const full = ring.acquire(state, 4 * kRow);  // the shares of all peers
          int const word = rank * (kRow / Peers);
          tma_load_multicast(shared_address(&smem.rows[state.stage][word]), p.in,
                             TmaCoordinate{word, step}, full, (1 << Peers) - 1);
        }
      }
      warp::sync();
    } else {
      int const consumer = (warp_id() - 1) + consumers * rank;
      for (int step = 0; step < steps; ++step, state.next()) {
        ring.wait(state);
        consume_row(p.out + kRow * (consumers * Peers * step + consumer), smem.rows[state.stage],
                    consumer);
        warp::sync();
        ring.release(state.stage);
      }
    }
    // nobody exits while a peer may still write to its shared memory or arrive there
    cluster::sync();
  }
};

/// How the producers of ThreadFed write; the last is a mistake.
enum class Writes : std::uint8_t { stores, cp_async, cp_async_not_waited_for };

/// Producer warps write alternate parts of each row, by stores or by cp.async; the other warps each
/// read every row.
template <int Stages, int Producers, int Consumers, Writes How> struct ThreadFed {
  using Params = Words;
  using Ring = ThreadPipeline<Stages, Producers, Consumers>;
  static constexpr int threads = 32 * (Producers + Consumers);
  static constexpr int steps = 3 * Stages + 1;
  static constexpr int consumers = Consumers;
  static constexpr int lag = Stages - 1;  // steps that a copy stays in flight
  using SharedStorage = RingOfRows<Ring, Stages>;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    Ring const ring{smem.ring};
    if (thread_idx() == 0) {
      ring.init();
      fence_mbarrier_init();
    }
    cta::sync();
    if (warp_id() < Producers) {
      How == Writes::stores ? produce_by_stores(p, smem, ring) : produce_by_cp_async(p, smem, ring);
    } else {
      typename Ring::State state;
      int const consumer = warp_id() - Producers;
      for (int step = 0; step < steps; ++step, state.next()) {
        ring.wait(state);
        consume_row(p.out + kRow * (consumers * step + consumer), smem.rows[state.stage], consumer);
        ring.release(state.stage);
      }
    }
  }

  TEGULA_DEVICE static void produce_by_stores(Params const& p, SharedStorage& smem,
                                              Ring const& ring) {
    typename Ring::State state;
    for (int step = 0; step < steps; ++step, state.next()) {
      ring.acquire(state);
      for (int word = thread_idx(); word < kRow; word += 32 * Producers)
        st_shared(shared_address(&smem.rows[state.stage][word]),
                  ld_global<std::uint32_t>(p.in + kRow * step + word));
      ring.commit(state.stage);
    }
  }

  TEGULA_DEVICE static void produce_by_cp_async(Params const& p, SharedStorage& smem,
                                                Ring const& ring) {
    typename Ring::State write, ready;
    for (int step = 0; step < steps; ++step) {
      ring.acquire(write);
      for (int word = thread_idx(); word < kRow; word += 32 * Producers)
        cp_async_ca<4>(shared_address(&smem.rows[write.stage][word]), p.in + kRow * step + word);
      cp_async_commit_group();
      write.next();
      if (step >= lag) {
        if (How == Writes::cp_async) cp_async_wait_group<lag>();
        ring.commit(ready.stage);
        ready.next();
      }
    }
    if (How == Writes::cp_async) cp_async_wait_all();
    for (int step = 0; step < lag; ++step, ready.next()) ring.commit(ready.stage);
  }
};

/// Whether StoreSide waits for a buffer before it writes it.
enum class Acquire : std::uint8_t { yes, no };

/// Each warp hands its own rows to TMA through buffers of its own.
template <int Buffers, int Warps, Acquire Waits = Acquire::yes> struct StoreSide {
  using Params = Words;
  static constexpr int threads = 32 * Warps;
  static constexpr int steps = 3 * Buffers + 1;
  static constexpr int consumers = Warps;
  struct SharedStorage {
    alignas(128) std::uint32_t rows[Warps][Buffers][kRow];
    template <class F> void name_buffers(F&& name) { name("rows", rows); }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    StorePipeline<Buffers> out;
    for (int step = 0; step < steps; ++step) {
      int const buffer = Waits == Acquire::yes ? out.acquire() : step % Buffers;
      std::uint32_t const* const row = smem.rows[warp_id()][buffer];
      for (int word = lane_id(); word < kRow; word += 32) {
        st_shared(shared_address(row + word),
                  mixed(ld_global<std::uint32_t>(p.in + kRow * step + word), warp_id()));
      }
      out.store([&] {
        bulk_store(p.out + kRow * (Warps * step + warp_id()), shared_address(row), 4 * kRow);
      });
    }
    out.drain();
  }
};

/// Groups of warps take turns in a section, where each warp counts its visit in global memory, and
/// the first warp of each group reads and writes a word of shared memory. out: the count of visits,
/// then for each visit the turn it was (the visits before it / Warps), then for each turn the word
/// that its group found.
template <int Groups, int Warps> struct MathOrder {
  using Params = Words;
  using Order = OrderedBarrier<Groups, Warps>;
  static constexpr int threads = 32 * Groups * Warps;
  static constexpr int rounds = 5;
  struct SharedStorage {
    std::uint32_t word;
    typename Order::Storage turns;
    template <class F> void name_buffers(F&& name) {
      name("word", word);
      name("turn", turns.turn);
    }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const group = warp_id() / Warps;
    int const within = warp_id() % Warps;
    Order order{smem.turns};
    SharedAddr const word = shared_address(&smem.word);
    if (thread_idx() == 0) {
      order.init();
      fence_mbarrier_init();
      st_shared(word, std::uint32_t{1});
    }
    cta::sync();
    for (int round = 0; round < rounds; ++round) {
      int const turn = round * Groups + group;
      order.enter(group);
      if (lane_id() == 0) {
        if (within == 0) {  // first: atomics may race, and hide that a turn began too early
          auto const found = ld_shared<std::uint32_t>(word);
          st_global(p.out + 1 + rounds * Groups * Warps + turn, found);
          st_shared(word, mixed(found, group));
        }
        st_global(p.out + 1 + turn * Warps + within, atom_add(p.out, 1u) / Warps);
      }
      warp::sync();
      order.leave(group);
    }
  }
};

}  // namespace tegula::pipeline_kernels
