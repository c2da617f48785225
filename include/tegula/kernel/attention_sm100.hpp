#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/attention_cleared_v.hpp"
#include "tegula/kernel/attention_loads.hpp"
#include "tegula/kernel/attention_output.hpp"
#include "tegula/kernel/attention_scores.hpp"
#include "tegula/kernel/attention_sm100_config.hpp"
#include "tegula/kernel/attention_sm100_parts.hpp"
#include "tegula/kernel/attention_work.hpp"
#include "tegula/kernel/online_softmax.hpp"
#include "tegula/pipeline/tensor_memory_pipeline.hpp"
#include "tegula/pipeline/thread_pipeline.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/register_copy.hpp"
#include "tegula/tensor/tensor_memory.hpp"
#include "tegula/tensor/tma.hpp"

namespace tegula {

/// Attention forward on Blackwell's tensor cores, warp-specialised and persistent: the roles of
/// CUTLASS's example 77 and of FlashAttention-4.
///
/// Two tiles of 128 rows of Q are in flight. Each has a softmax of its own, so that the tensor core
/// multiplies for one while the other's exponentials are computed. S, P and O lie in tensor memory.
///
///     load         a thread       each tile of rows:  K[last], Q0, Q1, then K[n - 1], V[n] for
///                                 each block of keys
///     mma          a thread       S0 = Q0 K[last], S1 = Q1 K[last], then for each block n, last to
///                                 first:
///                                   O0 += P0 V[n], S0 = Q0 K[n - 1]
///                                   O1 += P1 V[n], S1 = Q1 K[n - 1]
///     softmax 0,   a warpgroup    each block:  a row of S for each thread; the row's maximum, and
///     softmax 1    each           what it does to O, which correction is told; P, over S
///     correction   a warpgroup    each block:  rescales O0, O1 where a maximum has grown; at the
///                                 end divides by the sums, and stages O
///     epilogue     a thread       has TMA store O
///     empty        a warp         nothing, but for the allocation of tensor memory; with
///                                 `serving`, clears V behind a sequence's last key
///
/// With `serving`, where the rows behind a tile's are another sequence's, the epilogue is a warp
/// that stores the rows that there are.
///
/// Elsewhere: what the roles share, and where it lies (attention_sm100_parts.hpp); what a tile is
/// (attention_work.hpp), how it is loaded (attention_loads.hpp), how V is cleared
/// (attention_cleared_v.hpp).
/// docs/blackwell_attention.md draws the pipelines.
///
/// Legend: m, g, s, t, r for matrices in global memory, their tiles, shared, tensor and register
/// memory; tS.. for S = Q K^T, tO.. for O = P V. Modes: (rows, columns, tile of Q).
template <AttentionSm100Config C> struct AttentionSm100 : AttentionSm100Parts<C> {
  using Params = AttentionSm100Params;
  static constexpr AttentionSm100Config config = C;
  static constexpr int min_ctas_per_sm = 1;
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  using Parts = AttentionSm100Parts<C>;
  using Parts::k_bytes, Parts::v_bytes, Parts::kColumns;
  using Parts::kCorrection, Parts::kMma, Parts::kLoad, Parts::kEpilogue, Parts::kEmpty;
  using Parts::output_n, Parts::output_pieces, Parts::part_n, Parts::scaled;
  using Parts::tiles, Parts::threads, Parts::tile_m, Parts::block_n, Parts::head_dim_v;
  using typename Parts::AccumulatorS, typename Parts::PartO, typename Parts::Softmax;
  using typename Parts::MmaS, typename Parts::MmaO, typename Parts::RowsS, typename Parts::RowsO;
  using typename Parts::RingQ, typename Parts::Ring, typename Parts::RingV, typename Parts::Cleared;
  using typename Parts::Scores, typename Parts::Outputs, typename Parts::Statistics;
  using typename Parts::SharedStorage, typename Parts::Roles, typename Parts::T,
      typename Parts::Out;
  using typename Parts::Staged, typename Parts::StoreO, typename Parts::Tiles, typename Parts::Work;

  // Launched with 128 registers a thread: as many as the softmaxes take the others give.
  static constexpr int other_registers = C.serving ? 48 : 32, correction_registers = 96,
                       softmax_registers = (4 * 128 - correction_registers - other_registers) / 2;

  static constexpr char const* role(int warp) {
    constexpr char const* single[] = {"mma", "load", "epilogue", C.serving ? "clear" : "empty"};
    return warp < 4             ? "softmax 0"
           : warp < kCorrection ? "softmax 1"
           : warp < kMma        ? "correction"
                                : single[warp - kMma];
  }
  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) { return {p.ctas, 1, 1}; }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const warp = warp::shfl(warp_id(), 0);  // known to be the same in all lanes
    Roles role{smem};
    if (thread_idx() == 0) {
      for (TensorMap const* const map : {&p.q, &p.k, &p.v}) prefetch_tensor_map(*map);
      if constexpr (!C.serving) prefetch_tensor_map(p.o);
      role.ring_q.init();
      role.ring_k.init();
      role.ring_v.init();
      if constexpr (C.serving) role.cleared().init();
      for (int t = 0; t < tiles; ++t) {
        role.scores(t).init();
        role.outputs(t).init();
        role.statistics(t).init();
      }
      role.staged.init();
      role.queue.init();
      fence_mbarrier_init();
    }
    if constexpr (C.serving) clear_unused_rows<C>(p.packed, tensor(smem.q), threads);
    SharedAddr const tmem_at = shared_address(&smem.tmem);
    if (warp == kEmpty) {
      tcgen05_alloc<kColumns>(tmem_at);
      tcgen05_relinquish_alloc_permit();
    }
    cta::sync();  // the barriers and the address of tensor memory are known to all
    role.tmem = ld_shared<TensorAddr>(tmem_at);

    if (warp < kCorrection) {
      setmaxnreg_inc<softmax_registers>();
      softmax(p, role, warp / 4);
    } else if (warp < kMma) {
      setmaxnreg_dec<correction_registers>();
      correct(p, role);
    } else {
      setmaxnreg_dec<other_registers>();
      if (warp == kMma) multiply(p, role);
      if (warp == kLoad && warp::elect_one()) load(p, role);
      if (warp == kEpilogue) store(p, role);
      if constexpr (C.serving)
        if (warp == kEmpty) Cleared::template clear_all<Tiles>(p, role);
      warp::sync();
    }
    cta::sync();  // nobody uses tensor memory any more
    // Read again, what no register held meanwhile.
    if (thread_idx_here() / 32 == kEmpty) tcgen05_dealloc<kColumns>(ld_shared<TensorAddr>(tmem_at));
  }

 private:
  /// One thread: takes tiles of rows, and has TMA load what they need.
  TEGULA_DEVICE static void load(Params const& p, Roles& role) {
    typename RingQ::State q;
    typename Ring::State k, v;
    auto const sQ = tensor(role.smem.q);  // (tile_m, head_dim, tiles)
    auto const sK = tensor(role.smem.k);  // (block_n, head_dim, stages)
    auto const sV = tensor(role.smem.v);  // (head_dim_v, block_n, stages)
    deal_tiles<Tiles>(
        p, role.queue, [&](Work const& work, KeyBlocks const& blocks, auto const& take_next) {
          AttentionLoads<C> const loads{p, work};
          auto const load_k = [&](int n) {
            loads.keys(n, sK(_, _, k.stage), role.ring_k.acquire(k, k_bytes));
            k.next();
          };
          load_k(blocks.last - 1);
#pragma unroll 1
          for (int t = 0; t < tiles; ++t) {
            bool const seen = !work.blocks_of(t).empty();  // else the stage goes by empty
            SharedAddr const full = role.ring_q.acquire(q, seen ? bytes_of_rows<C>(p.packed) : 0);
            if (seen) loads.rows(t, sQ(_, _, q.stage), full);
            q.next();
          }
#pragma unroll 1
          for (int n = blocks.last - 1; n >= blocks.first; --n) {
            if (n == takes_next_at(blocks)) take_next();
            if (n > blocks.first) load_k(n - 1);
            loads.values(n, sV(_, _, v.stage), role.ring_v.acquire(v, v_bytes));
            v.next();
          }
        });
  }

  /// What the thread that multiplies holds from tile to tile.
  struct Products {
    typename RingQ::State q;
    typename Ring::State k, v;
    typename Scores::State s[tiles];
    typename Outputs::State o[tiles];
  };

  /// A warp, of which one thread multiplies.
  TEGULA_DEVICE static void multiply(Params const& p, Roles& role) {
    bool const leader = warp::elect_one();
    Products products;
    for (auto tile = role.queue.get(); Tiles::is_tile(tile); tile = role.queue.get()) {
      Work const work{p, tile};
      if (KeyBlocks const all = work.blocks(); leader && !all.empty())
        multiply_tile(role, work, all, products);
      role.queue.release();
    }
  }

  /// All products of a tile. Those of S and O of one tile of Q alternate: S(n - 1) may lie over
  /// P(n), which O += P(n) V, started before it by the same thread, has read by then. So what is
  /// waited for before that product says that S may be written, too.
  TEGULA_DEVICE static void multiply_tile(Roles& role, Work const& work, KeyBlocks const& all,
                                          Products& own) {
    auto const tSsQ = MmaS{}.partition_a(tensor(role.smem.q));  // (MMA_K, tiles)
    auto const tSsK = MmaS{}.partition_b(tensor(role.smem.k));  // (MMA_K, stages)
    auto const tOsV = MmaO{}.partition_b(tensor(role.smem.v));  // (MMA_K, stages)
    auto const tStS = role.s();
    auto const tOtP = role.p();
    auto const tOtO = role.o();
    KeyBlocks const blocks[tiles] = {work.blocks_of(0), work.blocks_of(1)};
    auto const start_scores = [&](int t, int n) {
      if (blocks[t].has(n)) {
        gemm(MmaS{}, tSsQ(_, t), tSsK(_, own.k.stage), tStS(_, _, t), false);
        role.scores(t).commit(0);
        own.s[t].next();
      }
      if (n == all.first) tcgen05_commit(role.ring_q.empty(t));  // Q's last product
    };
    auto const start_output = [&](int t, int n) {
      if (!blocks[t].has(n)) return;
      role.scores(t).acquire(own.s[t]);   // P is there
      role.outputs(t).acquire(own.o[t]);  // O is rescaled, or that of the tile before is stored
      gemm(MmaO{}, tOtP(_, _, t), tOsV(_, own.v.stage), tOtO(_, _, t), n < blocks[t].last - 1);
      role.outputs(t).commit(0);
      own.o[t].next();
    };
    auto const give_back_k = [&] {  // when the products have read it
      tcgen05_commit(role.ring_k.empty(own.k.stage));
      own.k.next();
    };

    role.ring_k.wait(own.k);
#pragma unroll
    for (int t = 0; t < tiles; ++t) {
      role.ring_q.wait(own.q);
      own.q.next();
      start_scores(t, all.last - 1);
    }
    give_back_k();
#pragma unroll 1
    for (int n = all.last - 1; n >= all.first; --n) {
      bool const more = n > all.first;
      if (more) role.ring_k.wait(own.k);
      role.cleared().wait(own.v);
#pragma unroll
      for (int t = 0; t < tiles; ++t) {
        start_output(t, n);
        if (more) start_scores(t, n - 1);
      }
      if (more) give_back_k();
      tcgen05_commit(role.ring_v.empty(own.v.stage));
      own.v.next();
    }
  }

  /// A warpgroup: P = softmax(S) of tile t of Q, a row for each thread.
  TEGULA_DEVICE static void softmax(Params const& p, Roles& role, int t) {
    typename Scores::State s;
    typename Statistics::State told;
    auto const scores = role.scores(t);
    auto const statistics = role.statistics(t);
    auto const own_s = rows_of_warp(role.s()(_, _, t));  // (32, block_n)
    auto const own_p = rows_of_warp(role.p()(_, _, t));  // (32, block_n)
    int const row = thread_idx_here() % kWarpgroupSize;
    SharedAddr const factor = shared_address(&role.smem.factor[t][row]),
                     offset = shared_address(&role.smem.offset[t][row]);
    for (auto tile = role.queue.get(); Tiles::is_tile(tile); tile = role.queue.get()) {
      Work const work{p, tile};
      KeyBlocks const blocks = work.blocks_of(t);
      RowPositions<RowsS> const positions{work.rows(t)};
      float const descale = descale_of<scaled>(p, work).scores;
      Softmax softmax{p.softcap_scale != 0.0f ? p.scale : p.scale * descale};
#pragma unroll 1
      for (int n = blocks.last - 1; n >= blocks.first; --n) {
        AccumulatorS tSrS;  // (1, block_n)
        scores.wait(s);
        copy(own_s, tSrS);
        tcgen05_wait_ld();
        tcgen05_pin(tSrS);
        cap_and_mask<RowsS, C.exponential, block_n>(work.mask(), blocks, positions, n,
                                                    p.softcap_scale * descale, tSrS);
        float scale_o;
        softmax.follow(tSrS, 0, scale_o);
        if (n < blocks.last - 1) {  // else there is no O
          statistics.acquire(told);
          st_shared(factor, scale_o);
          statistics.commit(0);
          told.next();
        }
#pragma unroll
        for (int first = 0; first < block_n; first += part_n) {
          softmax.template exponentiate<part_n, C.polynomials>(tSrS, 0, first);
          copy(rounded<T>(part<1, part_n>(domain_offset(tSrS, 0, first))),
               part<32, part_n>(domain_offset(own_p, 0, first)));
        }
        tcgen05_wait_st();
        scores.release(0);  // as P
        s.next();
      }
      statistics.acquire(told);
      st_shared(factor, softmax.total(0));
      st_shared(offset, softmax.offset[0]);
      statistics.commit(0);
      told.next();
      role.queue.release();
    }
  }

  /// What the correction holds from tile to tile.
  struct Corrections {
    typename Statistics::State told[tiles];
    typename Outputs::State o[tiles];
    typename Staged::State staged;
  };

  /// A warpgroup: O of both tiles of Q, a row of each for each thread.
  TEGULA_DEVICE static void correct(Params const& p, Roles& role) {
    Corrections own;
    for (auto tile = role.queue.get(); Tiles::is_tile(tile); tile = role.queue.get()) {
      Work const work{p, tile};
      KeyBlocks const all = work.blocks();
      KeyBlocks const blocks[tiles] = {work.blocks_of(0), work.blocks_of(1)};
#pragma unroll 1
      for (int n = all.last - 2; n >= all.first; --n) {
#pragma unroll
        for (int t = 0; t < tiles; ++t)
          if (n >= blocks[t].first && n < blocks[t].last - 1) rescale(role, t, own);
      }
#pragma unroll
      for (int t = 0; t < tiles; ++t) finish(p, role, work, t, !blocks[t].empty(), own);
      role.queue.release();
    }
  }

  /// O *= factor, before the product that adds to it; rows whose maximum has not grown have 1.
  TEGULA_DEVICE static void rescale(Roles& role, int t, Corrections& own) {
    int const row = thread_idx_here() % kWarpgroupSize;
    role.statistics(t).wait(own.told[t]);
    float const factor = ld_shared<float>(shared_address(&role.smem.factor[t][row]));
    role.statistics(t).release(0);
    own.told[t].next();
    role.outputs(t).wait(own.o[t]);
    if (warp::any(factor != 1.0f)) {
      auto const own_o = rows_of_warp(role.o()(_, _, t));  // (32, head_dim_v)
#pragma unroll
      for (int first = 0; first < head_dim_v; first += part_n) {
        auto const tOtO = part<32, part_n>(domain_offset(own_o, 0, first));  // (32, part_n)
        PartO tOrO;                                                          // (1, part_n)
        copy(tOtO, tOrO);
        tcgen05_wait_ld();
        tcgen05_pin(tOrO);
#pragma unroll
        for (int i = 0; i < tOrO.size; ++i) tOrO(i) *= factor;
        copy(tOrO, tOtO);
      }
      tcgen05_wait_st();
    }
    role.outputs(t).release(0);
    own.o[t].next();
  }

  /// O / sum, staged for the epilogue, or zeros where the rows see no key; the log-sum-exp.
  TEGULA_DEVICE static void finish(Params const& p, Roles& role, Work const& work, int t,
                                   bool has_keys, Corrections& own,
                                   SourceLocation where = SourceLocation::current()) {
    int const thread = thread_idx_here() % kWarpgroupSize;
    auto const rows = work.rows(t);
    float const* const sink = p.out.sink == nullptr ? nullptr : p.out.sink + rows.head(thread);
    role.statistics(t).wait(own.told[t]);
    float const sum = ld_shared<float>(shared_address(&role.smem.factor[t][thread])),
                offset = ld_shared<float>(shared_address(&role.smem.offset[t][thread]));
    role.statistics(t).release(0);
    own.told[t].next();
    float const descale = descale_of<scaled>(p, work, where).values;
    RowTotal<C.exponential> const total(offset, sum, sink, descale, where);
    if (has_keys) role.outputs(t).wait(own.o[t]);
    auto const own_o = rows_of_warp(role.o()(_, _, t));  // (32, head_dim_v)
#pragma unroll
    for (int piece = 0; piece < output_pieces; ++piece) {
      Fragment<Out, typename RowsO::Accumulator::Map> rounded_o;  // (1, output_n)
#pragma unroll
      for (int first = 0; first < output_n; first += part_n) {
        PartO tOrO;  // (1, part_n)
        clear(tOrO);
        if (has_keys) {
          copy(part<32, part_n>(domain_offset(own_o, 0, piece * output_n + first)), tOrO);
          tcgen05_wait_ld();
          tcgen05_pin(tOrO);
        }
#pragma unroll
        for (int i = 0; i < part_n; ++i) tOrO(i) *= total.factor;
        auto const values = rounded<Out>(tOrO);
#pragma unroll
        for (int i = 0; i < part_n; i += 2) rounded_o.word(first + i) = values.reg(i / 2, where);
      }
      if (has_keys && piece == output_pieces - 1) {
        role.outputs(t).release(0);
        own.o[t].next();
      }
      role.staged.acquire(own.staged);
      copy(rounded_o, RowsO{thread}.partition_c(tensor(role.smem.o)(_, _, own.staged.stage)));
      role.staged.commit(own.staged.stage);
      own.staged.next();
    }
    if (p.out.lse != nullptr && rows.has(thread, where))
      st_global(p.out.lse + rows.lse_offset(p.out, thread), total.log_sum_exp(), where);
  }

  /// A warp stores O, piece by piece: one thread of it by TMA; with `serving`, all of them.
  TEGULA_DEVICE static void store(Params const& p, Roles& role) {
    bool const leader = warp::elect_one();
    typename Staged::State staged;
    auto const sO = tensor(role.smem.o);  // (tile_m, output_n, stages)
    for (auto tile = role.queue.get(); Tiles::is_tile(tile); tile = role.queue.get()) {
      Work const work{p, tile};
#pragma unroll 1
      for (int i = 0; i < tiles * output_pieces; ++i) {
        int const t = i / output_pieces, piece = i % output_pieces;
        role.staged.wait(staged);
        auto const from = sO(_, _, staged.stage);  // (tile_m, output_n)
        if constexpr (C.serving)
          store_rows(p, work.rows(t), piece, from);
        else if (leader)
          store_tile(p, work.at(), t, piece, from);
        role.staged.release(staged.stage);
        staged.next();
      }
      role.queue.release();
    }
  }

  /// A thread: a piece of tile t of the rows `at`, and waits until it has been read.
  template <class S>
  TEGULA_DEVICE static void store_tile(Params const& p, RowBlock const& at, int t, int piece,
                                       S const& from) {
    auto const mO = tma_tensor<1, 0, 2, 3>(p.o)(_, _, at.head, at.batch);
    auto const gO = local_tile<tile_m, output_n>(mO, _, _);  // (tile_m, output_n, rows, columns)
    copy(StoreO{}, from, gO(_, _, tiles * at.block + t, piece));
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }

  /// A warp: the rows that there are, 16 bytes a lane, four rows at a time.
  template <class Rows, class S>
  TEGULA_DEVICE static void store_rows(Params const& p, Rows const& rows, int piece, S const& from,
                                       SourceLocation where = SourceLocation::current()) {
    constexpr int wide = 16 / sizeof(Out), lanes = output_n / wide;  // of a row
    int const column = lane_id() % lanes * wide, of_o = piece * output_n + column;
    if (of_o >= edge(p.out.head_dim_v, where)) return;
    Out* const o = static_cast<Out*>(p.out.o) + of_o;
#pragma unroll 4
    for (int row = lane_id() / lanes; row < tile_m; row += 32 / lanes) {
      if (!rows.has(row, where)) continue;
      st_global(o + rows.offset(p.out, row),
                ld_shared<RegisterBits<16>>(from.at(where, row, column), where), where);
    }
  }
};

}  // namespace tegula
