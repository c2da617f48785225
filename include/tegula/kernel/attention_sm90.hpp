#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/attention_output.hpp"
#include "tegula/kernel/attention_scores.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/kernel/attention_transpose_v.hpp"
#include "tegula/kernel/online_softmax.hpp"
#include "tegula/pipeline/ordered_barrier.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/register_copy.hpp"
#include "tegula/tensor/tma.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula {

/// Attention forward on Hopper's tensor cores, warp-specialised and persistent: the algorithm of
/// FlashAttention-3 (Shah et al., arXiv 2407.08608).
///
/// One thread of the CTA, the producer, has TMA fill a ring of stages of K and one of V, and each
/// consumer's rows of Q. Two or three warpgroups, the consumers, compute 64 rows of O each; S, P
/// and O never leave their registers. The keys are walked from the last block that the rows see to
/// the first.
///
///     producer   for each block of rows:  Q, K[last], then K[n - 1], V[n] for each block of keys
///     consumers  for each block of rows:
///                  S = Q K[last]
///                  P = softmax(S)
///                  for each block but the last:
///                    S = Q K[n], O += P V[n + 1]
///                    P = softmax(S), rescale O
///                  O += P V[first]; store O
///
/// The softmax of one block runs while the tensor core works on the product of the block before,
/// and on the other consumers' products: an ordered barrier has the consumers start theirs in turn.
///
/// Legend: m, g, s, r for matrices in global memory, their tiles, shared and register tensors; tS..
/// partitioned for S = Q K^T, tO.. for O = P V.
template <AttentionSm90Config C> struct AttentionSm90 {
  using Params = AttentionSm90Params;
  using T = type_of<C.dtype>;
  static constexpr AttentionSm90Config config = C;
  static constexpr int threads = kWarpgroupSize * (1 + C.consumers);
  static constexpr int min_ctas_per_sm = 1;
  static constexpr int block_m = tegula::block_m(C);
  static constexpr int consumer_m = kAttentionConsumerRows;
  static_assert(C.consumers == 2 || C.consumers == 3);
  static_assert(C.head_dim_v % 32 == 0, "a quad stores 32 columns");

  using TileQ = SharedTile<T, q_tile(C)>;  // (consumer_m, head_dim, consumers)
  using TileK = SharedTile<T, k_tile(C)>;  // (block_n, head_dim, stages)
  using TileV = SharedTile<T, v_tile(C)>;  // (head_dim_v, block_n, stages)
  using CopyQ = TmaCopy<tma_boxes(q_tile(C))>;
  using CopyK = TmaCopy<tma_boxes(k_tile(C))>;
  using CopyV = TmaCopy<tma_boxes(loaded_v_tile(C))>;
  using RingQ = TmaPipeline<C.consumers, 4>;  // a stage is one consumer's
  using Ring = TmaPipeline<C.stages, 4 * C.consumers>;
  static constexpr bool transposes = transposes_v(C);  // operands of 8 bits
  using V = LoadedV<C>;
  using MathOrder = OrderedBarrier<C.consumers, 4>;
  using Queue = TileQueue<2, 4 * C.consumers + V::warps>;

  // Of one consumer.
  using MmaS = TiledMma<TiledMmaSpec{warpgroup_mma(C.dtype, C.dtype, DType::f32, C.block_n)}>;
  using MmaO =
      TiledMma<TiledMmaSpec{warpgroup_mma(C.dtype, C.dtype, DType::f32, C.head_dim_v, Major::k,
                                          transposes ? Major::k : Major::mn, MmaOperands::rs)}>;
  using AccumulatorS = typename MmaS::Accumulator;
  using AccumulatorO = typename MmaO::Accumulator;
  using OperandP = typename MmaO::template FragmentA<C.block_n>;
  using Softmax = OnlineSoftmax<typename AccumulatorS::Map, C.exponential, T>;
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  struct SharedStorage {
    TileQ q;
    TileK k;
    TileV v;
    typename RingQ::Storage ring_q;
    typename Ring::Storage ring_k;
    typename V::Ring::Storage ring_v;
    typename MathOrder::Storage order;
    typename Queue::Storage queue;
    [[no_unique_address]] typename V::Storage loaded;

    template <class F> void name_buffers(F&& name) {
      name("Q", q);
      name("K", k);
      name("V", v);
      name("Q full", ring_q.full);
      name("Q empty", ring_q.empty);
      name("K full", ring_k.full);
      name("K empty", ring_k.empty);
      name("V full", ring_v.full);
      name("V empty", ring_v.empty);
      name("turn", order.turn);
      name("tile", queue.tile);
      name("tile full", queue.full);
      name("tile empty", queue.empty);
      loaded.name_buffers(name);
    }
  };
  static_assert(sizeof(SharedStorage) <= shared_bytes(C) && shared_bytes(C) <= 227 * 1024);

  // Registers move from the producer to the consumers: launched with 168 each, or with three
  // consumers 128.
  static constexpr int producer_registers = C.consumers == 3 ? 32 : transposes ? 40 : 24;
  static constexpr int consumer_registers = C.consumers == 3 ? 160 : transposes ? 232 : 240;

  static constexpr char const* role(int warp) {
    constexpr char const* names[] = {"producer", "consumer 0", "consumer 1", "consumer 2"};
    return V::warps > 0 && (warp == 2 || warp == 3) ? "transposes V" : names[warp / 4];
  }
  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) { return {p.ctas, 1, 1}; }

  /// The handles of what the roles share. Each role has its own states of them.
  struct Roles {
    SharedStorage& smem;
    RingQ ring_q{smem.ring_q};
    Ring ring_k{smem.ring_k};
    typename V::Ring ring_v{smem.ring_v};
    MathOrder order{smem.order};
    Queue queue{smem.queue};
    typename RingQ::State q{};
    typename Ring::State k{}, v{};
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const warp = warp::shfl(warp_id(), 0);  // known to be the same in all lanes
    Roles role{smem};
    if (thread_idx() == 0) {
      for (TensorMap const* const map : {&p.q, &p.k, &p.v}) prefetch_tensor_map(*map);
      role.ring_q.init();
      role.ring_k.init();
      role.ring_v.init();
      if constexpr (transposes) V::ring(smem).init();
      role.order.init();
      role.queue.init();
      fence_mbarrier_init();
    }
    cta::sync();  // the barriers are known to all who use them

    if (warp / 4 != 0) {
      setmaxnreg_inc<consumer_registers>();
      consume(p, role, warp / 4 - 1);
    } else {
      setmaxnreg_dec<producer_registers>();
      if (warp == 0 && warp::elect_one()) produce(p, role);
      if constexpr (transposes) {
        auto const blocks = [&](int tile) { return blocks_of(p, p.order.block(tile)); };
        if (warp >= 4 - V::warps) V::transpose_all(role, no_tile, blocks);
      }
    }
  }

 private:
  static constexpr int no_tile = -1;

  /// The blocks of keys of a tile's rows.
  TEGULA_DEVICE static KeyBlocks blocks_of(Params const& p, RowBlock const& at) {
    return key_blocks(p.mask, at.block * block_m, block_m, C.block_n);
  }

  /// Those of the consumer whose first row that is.
  TEGULA_DEVICE static KeyBlocks own_blocks(Params const& p, int row) {
    return key_blocks(p.mask, row, consumer_m, C.block_n);
  }

  /// The producer, one thread.
  TEGULA_DEVICE static void produce(Params const& p, Roles& role) {
    TileDealer const dealer{p.counter, p.order.count(), p.ctas};
    for (int tile = dealer.first(); dealer.is_tile(tile);) {
      role.queue.put(tile);
      int const next = dealer.after(tile);
      RowBlock const at = p.order.block(tile);
      if (KeyBlocks const blocks = blocks_of(p, at); !blocks.empty()) fetch(p, role, at, blocks);
      tile = next;
    }
    role.queue.put(no_tile);
    dealer.leave();
  }

  /// Has TMA load a tile's rows of Q, and its blocks of K and V.
  TEGULA_DEVICE static void fetch(Params const& p, Roles& role, RowBlock const& at,
                                  KeyBlocks const& blocks) {
    int const kv_head = at.head / p.heads_per_kv_head;
    auto const mQ = tma_tensor<1, 0, 2, 3>(p.q)(_, _, at.head, at.batch);
    auto const mK = tma_tensor<1, 0, 2, 3>(p.k)(_, _, kv_head, at.batch);
    auto const mV = tma_tensor<0, 1, 2, 3>(p.v)(_, _, kv_head, at.batch);
    auto const gQ = local_tile<consumer_m, C.head_dim>(mQ, _, 0);  // (consumer_m, head_dim, blocks)
    auto const gK = local_tile<C.block_n, C.head_dim>(mK, _, 0);   // (block_n, head_dim, blocks)
    auto const gV = local_tile<C.head_dim_v, C.block_n>(mV, 0, _);  // (head_dim_v, block_n, blocks)
    auto const sQ = tensor(role.smem.q);         // (consumer_m, head_dim, consumers)
    auto const sK = tensor(role.smem.k);         // (block_n, head_dim, stages)
    auto const sV = tensor(V::tile(role.smem));  // (head_dim_v, block_n, stages)
    auto const ring_v = V::ring(role.smem);
    auto const fetch_k = [&](int n) {
      SharedAddr const full = role.ring_k.acquire(role.k, CopyK::bytes);
      copy(CopyK{}, gK(_, _, n), sK(_, _, role.k.stage), full);
      role.k.next();
    };
    auto const fetch_v = [&](int n) {
      SharedAddr const full = ring_v.acquire(role.v, CopyV::bytes);
      copy(CopyV{}, gV(_, _, n), sV(_, _, role.v.stage), full);
      role.v.next();
    };
    fetch_k(blocks.last - 1);  // its stage is free before that of Q
#pragma unroll 1
    for (int consumer = 0; consumer < C.consumers; ++consumer) {
      int const block = C.consumers * at.block + consumer;
      bool const seen = !own_blocks(p, block * consumer_m).empty();  // else the stage goes by empty
      SharedAddr const full = role.ring_q.acquire(role.q, seen ? CopyQ::bytes : 0);
      if (seen) copy(CopyQ{}, gQ(_, _, block), sQ(_, _, role.q.stage), full);
      role.q.next();
    }
#pragma unroll 1
    for (int n = blocks.last - 1; n >= blocks.first; --n) {
      if (n > blocks.first) fetch_k(n - 1);
      fetch_v(n);
    }
  }

  /// A consumer warpgroup: its 64 rows of every tile.
  TEGULA_DEVICE static void consume(Params const& p, Roles& role, int group) {
    AccumulatorO tOrO;  // (MMA, 1, 1)
    role.q.advance(group);
    for (int tile = role.queue.get(); tile != no_tile; tile = role.queue.get()) {
      RowBlock const at = p.order.block(tile);
      int const row = at.block * block_m + group * consumer_m;  // the consumer's first
      KeyBlocks const all = blocks_of(p, at), own = own_blocks(p, row);
      Descale const descale = descale_of<transposes>(p, at);
      Softmax softmax{p.softcap_scale != 0.0f ? p.scale : p.scale * descale.scores};
      int n = all.last - 1;
      while (n >= all.first && !own.has(n)) skip(role, group, n-- > all.first || !own.empty());
      if (own.empty()) {
        clear(tOrO);
        if (!all.empty()) skip_rows(role);
      } else {
        multiply(p, role, group, row, own, descale.scores, softmax, tOrO);
        for (n = own.first - 1; n >= all.first; --n) skip(role, group, true);
      }
      store_output<T, MmaO>(p.out, at, row, thread_idx_here() % kWarpgroupSize, softmax, tOrO,
                            descale.values);
    }
  }

  /// A block of keys that the consumer's rows do not see, but another's of the tile.
  TEGULA_DEVICE static void skip(Roles& role, int group, bool takes_turn) {
    role.ring_k.wait(role.k);
    role.ring_v.wait(role.v);
    if (takes_turn) role.order.enter(group);
    warp::sync();  // all lanes have waited: else a late one would miss a phase
    role.ring_k.release(role.k.stage);
    role.ring_v.release(role.v.stage);
    if (takes_turn) role.order.leave(group);
    role.k.next();
    role.v.next();
  }

  /// A tile of which the consumer has no rows that see a key.
  TEGULA_DEVICE static void skip_rows(Roles& role) {
    role.ring_q.wait(role.q);
    warp::sync();  // likewise
    role.ring_q.release(role.q.stage);
    role.q.advance(C.consumers);
  }

  /// O = P V over the blocks of keys that the consumer's rows see, from the last to the first, with
  /// P the numerators of the softmax.
  TEGULA_DEVICE static void multiply(Params const& p, Roles& role, int group, int row,
                                     KeyBlocks const& blocks, float descale, Softmax& softmax,
                                     AccumulatorO& tOrO) {
    auto const& smem = role.smem;
    auto const& ring_k = role.ring_k;
    auto const& ring_v = role.ring_v;
    auto& q = role.q;
    auto &k = role.k, &v = role.v;
    auto const tSsQ = MmaS{}.partition_a(tensor(smem.q))(_, _, q.stage);  // (1, MMA_K)
    auto const tSsK = MmaS{}.partition_b(tensor(smem.k));                 // (1, MMA_K, stages)
    auto const tOsV = MmaO{}.partition_b(tensor(smem.v));                 // (1, MMA_K, stages)
    AccumulatorS tSrS;                                                    // (MMA, 1, 1)
    OperandP tOrP;                                                        // (MMA, 1, MMA_K)
    float factor[Softmax::rows];
    auto const start_scores = [&] {  // S = Q K, as a group of its own
      gemm(MmaS{}, tSsQ, tSsK(_, _, k.stage), tSrS, false);
      wgmma_commit_group();
    };
    auto const start_output = [&](bool accumulate) {  // O += P V, likewise
      gemm(MmaO{}, tOrP, tOsV(_, _, v.stage), tOrO, accumulate);
      wgmma_commit_group();
    };
    auto const softmax_of = [&](int n) {  // once S has come: P, but for its registers
      wgmma_pin(tSrS);
      cap_and_mask<MmaS, C.exponential, C.block_n>(p.mask, blocks, row, n,
                                                   p.softcap_scale * descale, tSrS);
      bool const grown = softmax.follow_and_exponentiate(tSrS, factor);
      // No sum of exponentials is negative, but ptxas does not know it: the release comes after
      // the first row's. Else it puts all of them off until after the wait for O, which they are
      // to run beneath.
      ring_k.release(k.stage + (softmax.sum[0] < 0.0f ? 1 : 0));
      k.next();
      return grown;
    };

    role.ring_q.wait(q);
    ring_k.wait(k);
    wgmma_fence();  // the registers of S, before the wgmma that write them
    start_scores();
    wgmma_wait_group<0>();
    softmax_of(blocks.last - 1);
    copy(MmaO::template operand_a<typename V::Order>(MmaS{}, tSrS), tOrP);
#pragma unroll 1
    for (int n = blocks.last - 2; n >= blocks.first; --n) {
      ring_k.wait(k);
      role.order.enter(group);
      wgmma_fence();
      start_scores();
      ring_v.wait(v);
      wgmma_pin(tOrP), wgmma_pin(tOrO);
      wgmma_fence();  // the registers of P and O, likewise
      start_output(n < blocks.last - 2);
      role.order.leave(group);
      wgmma_wait_group<1>();  // S has come
      bool const grown = softmax_of(n);
      wgmma_wait_group<0>();  // O has come, and P's registers are free
      wgmma_pin(tOrO);
      ring_v.release(v.stage);
      v.next();
      if (grown) Softmax::scale_rows(tOrO, factor);
      copy(MmaO::template operand_a<typename V::Order>(MmaS{}, tSrS), tOrP);
    }
    role.ring_q.release(q.stage);  // all of S has come: the next rows may be loaded meanwhile
    q.advance(C.consumers);

    ring_v.wait(v);
    wgmma_pin(tOrP), wgmma_pin(tOrO);
    wgmma_fence();
    start_output(blocks.last - blocks.first > 1);
    wgmma_wait_group<0>();
    wgmma_pin(tOrO);
    ring_v.release(v.stage);
    v.next();
  }
};

}  // namespace tegula
