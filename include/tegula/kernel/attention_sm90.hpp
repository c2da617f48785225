#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/grid_dependency.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/attention_loads.hpp"
#include "tegula/kernel/attention_output.hpp"
#include "tegula/kernel/attention_parts.hpp"
#include "tegula/kernel/attention_producer.hpp"
#include "tegula/kernel/attention_scores.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/kernel/attention_transpose_v.hpp"
#include "tegula/kernel/attention_work.hpp"
#include "tegula/kernel/online_softmax.hpp"
#include "tegula/pipeline/ordered_barrier.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/register_copy.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula {

/// Attention forward on Hopper's tensor cores, warp-specialised and persistent: the algorithm of
/// FlashAttention-3 (Shah et al., arXiv 2407.08608).
///
/// One thread of the CTA, the producer, has TMA fill a ring of stages of K and one of V, and each
/// consumer's rows of Q. One to three warpgroups, the consumers, compute 64 rows of O each; S, P
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
/// and on the other consumers' products. Two consumers take turns there by an ordered barrier;
/// three need none (AttentionOverlap).
///
/// Elsewhere: what a tile is (attention_work.hpp), how it is loaded (attention_producer.hpp), keys
/// that are split over CTAs (attention_parts.hpp).
///
/// Legend: m, g, s, r for matrices in global memory, their tiles, shared and register tensors; tS..
/// partitioned for S = Q K^T, tO.. for O = P V.
template <AttentionSm90Config C> struct AttentionSm90 {
  using Params = AttentionSm90Params;
  using T = type_of<C.dtype>;
  static constexpr AttentionSm90Config config = C;
  static constexpr int threads = kWarpgroupSize * (1 + C.consumers);
  static constexpr int min_ctas_per_sm = 1;
  static constexpr bool programmatic_dependent_launch = C.serving;  // by griddepcontrol_wait
  static_assert(C.consumers >= (C.serving ? 1 : 2) && C.consumers <= 3);
  static_assert(C.head_dim_v % 32 == 0, "a quad stores 32 columns");
  using TileQ = SharedTile<T, q_tile(C)>;     // (consumer_m, head_dim, q_stages)
  using TileK = SharedTile<T, k_tile(C)>;     // (block_n, head_dim, stages)
  using TileV = SharedTile<T, v_tile(C)>;     // (head_dim_v, block_n, stages)
  using RingQ = TmaPipeline<q_stages(C), 4>;  // a stage is one consumer's
  using Ring = TmaPipeline<C.stages, 4 * C.consumers>;
  static constexpr bool transposes = transposes_v(C);  // operands of 8 bits
  using V = LoadedV<C>;
  using MathOrder = OrderedBarrier<C.consumers, 4>;
  static constexpr bool takes_turns = tegula::takes_turns(C);
  using Tiles = AttentionTiles<C>;
  using Work = typename Tiles::Work;
  using Producer = AttentionProducer<C>;
  using Queue = TileQueue<2, 4 * C.consumers + Producer::readers + V::warps, typename Tiles::Tile>;
  // Named barriers: of those who clear V's tail, and from here of each consumer.
  enum : int { kTail = 1, kParts = 2 };
  // Of one consumer.
  using MmaS = TiledMma<TiledMmaSpec{warpgroup_mma(C.dtype, C.dtype, DType::f32, C.block_n)}>;
  using MmaO =
      TiledMma<TiledMmaSpec{warpgroup_mma(C.dtype, C.dtype, DType::f32, C.head_dim_v, Major::k,
                                          transposes ? Major::k : Major::mn, MmaOperands::rs)}>;
  // Where blocks of keys are added up in f32: one block's P V, some columns of O at a time.
  static constexpr bool promotes = C.promoted > 0;
  static constexpr int part_n = promotes ? C.promoted : C.head_dim_v, parts = C.head_dim_v / part_n;
  static_assert(C.head_dim_v % part_n == 0 && (transposes || !promotes));
  using MmaPart =
      TiledMma<TiledMmaSpec{warpgroup_mma(C.dtype, C.dtype, DType::f32, part_n, Major::k,
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
    int last_part[C.serving ? C.consumers : 1];
    [[no_unique_address]] typename V::Storage loaded;

    template <class F> void name_buffers(F&& name) {
      name_loaded(*this, name);
      name("turn", order.turn);
      queue.name_buffers(name);
      name("last part", last_part);
      loaded.name_buffers(name);
    }
  };
  static_assert(sizeof(SharedStorage) <= shared_bytes(C) &&
                shared_bytes(C) <= kAttentionSm90SharedBytes);
  static constexpr int producer_registers = tegula::producer_registers(C);
  static constexpr int consumer_registers = tegula::consumer_registers(C);

  static constexpr char const* role(int warp) {
    constexpr char const* names[] = {"producer", "consumer 0", "consumer 1", "consumer 2"};
    if (V::warps > 0 && (warp == 2 || warp == 3)) return "transposes V";
    return Producer::readers > 0 && warp == 1 ? "producer of V" : names[warp / 4];
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
    clear_unused_rows<C>(p.packed, tensor(smem.q), threads);
    if constexpr (C.serving)
      griddepcontrol_wait();  // the launch before this one has written Q, K, V, lengths and pages
    cta::sync();              // the barriers are known to all who use them

    if (warp / 4 != 0) {
      if constexpr (C.consumers > 1) setmaxnreg_inc<consumer_registers>();
      consume(p, role, warp / 4 - 1);
    } else {
      if constexpr (C.consumers > 1) setmaxnreg_dec<producer_registers>();
      if (warp == 0 && warp::elect_one()) Producer::produce(p, role);
      if constexpr (Producer::readers > 0)
        if (warp == 1) Producer::produce_values(p, role);
      if constexpr (transposes)
        if (warp >= 4 - V::warps) V::template transpose_all<Tiles, kTail>(p, role);
    }
  }

 private:
  /// A consumer warpgroup: its 64 rows of every tile.
  TEGULA_DEVICE static void consume(Params const& p, Roles& role, int group) {
    AccumulatorO tOrO;  // (MMA, 1, 1)
    role.q.advance(group);
    for (auto tile = role.queue.get(); Tiles::is_tile(tile); tile = role.queue.get()) {
      Work const work{p, tile};
      Descale const descale = descale_of<transposes>(p, work);
      Softmax softmax{p.softcap_scale != 0.0f ? p.scale : p.scale * descale.scores};
      compute(p, role, group, work, descale.scores, softmax, tOrO);
      auto const done = role.queue.again();  // what no register held meanwhile
      store(p, role, group, Work{p, done}, descale.values, softmax, tOrO);
      role.queue.release();
    }
  }

  /// O, but for the division by the softmax's sums, of a tile's rows that are the consumer's.
  TEGULA_DEVICE static void compute(Params const& p, Roles& role, int group, Work const& work,
                                    float descale, Softmax& softmax, AccumulatorO& tOrO) {
    KeyBlocks const all = work.blocks(), own = work.blocks_of(group);
    if constexpr (C.serving && !transposes)
      clear_values_behind<C>(p.serving, work, tensor(role.smem.v)(_, _, role.v.stage), role.ring_v,
                             role.v, kTail);
    int n = all.last - 1;
    while (n >= all.first && !own.has(n)) skip(role, group, n-- > all.first || !own.empty());
    if (own.empty()) {
      clear(tOrO);
      if (!all.empty()) {  // another consumer's rows see keys: this one's stage of Q goes by empty
        role.ring_q.wait(role.q);
        warp::sync();  // as in skip
        role.ring_q.release(role.q.stage);
        role.q.advance(C.consumers);
      }
    } else {
      multiply(p, role, group, work.mask(), work.rows(group), own, descale, softmax, tOrO);
      for (n = own.first - 1; n >= all.first; --n) skip(role, group, true);
    }
  }

  /// O to global memory, or, of one of several parts of the keys, to the others.
  TEGULA_DEVICE static void store(Params const& p, Roles& role, int group, Work const& work,
                                  float descale, Softmax const& softmax, AccumulatorO& tOrO) {
    int const thread = thread_idx_here() % kWarpgroupSize;
    if (int const parts = work.parts(); parts > 1)
      add_part<C, MmaO>(p, p.out, work, parts, group, {kParts + group, &role.smem.last_part[group]},
                        thread, softmax, tOrO, descale);
    else
      store_output<T, MmaO>(p.out, work.rows(group), thread, softmax, tOrO, descale);
  }

  /// A block of keys that the consumer's rows do not see, but another's of the tile.
  TEGULA_DEVICE static void skip(Roles& role, int group, bool takes_turn) {
    role.ring_k.wait(role.k);
    role.ring_v.wait(role.v);
    if (takes_turns && takes_turn) role.order.enter(group);
    warp::sync();  // all lanes have waited: else a late one would miss a phase
    role.ring_k.release(role.k.stage);
    role.ring_v.release(role.v.stage);
    if (takes_turns && takes_turn) role.order.leave(group);
    role.k.next();
    role.v.next();
  }

  /// O = P V over the blocks of keys that the consumer's rows see, from the last to the first, with
  /// P the numerators of the softmax.
  TEGULA_DEVICE static void multiply(Params const& p, Roles& role, int group,
                                     AttentionMask const& mask, PackedRows const& rows,
                                     KeyBlocks const& blocks, float descale, Softmax& softmax,
                                     AccumulatorO& tOrO) {
    auto const& ring_k = role.ring_k;
    auto const& ring_v = role.ring_v;
    auto& q = role.q;
    auto &k = role.k, &v = role.v;
    auto const tSsQ = MmaS{}.partition_a(tensor(role.smem.q))(_, _, q.stage);  // (1, MMA_K)
    auto const tSsK = MmaS{}.partition_b(tensor(role.smem.k));                 // (1, MMA_K, stages)
    auto const tOsV = [&](int part) {                                          // (1, MMA_K)
      auto const sV = local_tile<part_n, C.block_n>(tensor(role.smem.v), part, 0);
      return MmaPart{}.partition_b(sV)(_, _, v.stage);
    };
    AccumulatorS tSrS;                   // (MMA, 1, 1)
    OperandP tOrP;                       // (MMA, 1, MMA_K)
    typename MmaPart::Accumulator part;  // (MMA, 1, 1), where blocks are added up in f32
    auto& tOrB = *[&] {                  // what P V goes to
      if constexpr (promotes)
        return &part;
      else
        return &tOrO;
    }();
    RowPositions<MmaS> const positions{rows};
    float factor[Softmax::rows];
    constexpr bool all = C.beneath == 4;  // columns of P before the wait for O
    constexpr int beneath = all ? Softmax::columns : Softmax::columns * C.beneath / 8 * 2;
    auto const start_scores = [&] {  // S = Q K, as a group of its own
      gemm(MmaS{}, tSsQ, tSsK(_, _, k.stage), tSrS, false);
      wgmma_commit_group();
    };
    auto const start_part = [&](int number, bool accumulate) {
      wgmma_pin(tOrP), wgmma_pin(tOrB);
      wgmma_fence();  // the registers of P and O, before the wgmma that read and write them
      gemm(MmaPart{}, tOrP, tOsV(number), tOrB, accumulate && !promotes);
      wgmma_commit_group();
    };
    auto const start_output = [&](bool accumulate) {  // O += P V, likewise, once V is there
      ring_v.wait(v);
      start_part(0, accumulate);
    };
    auto const finish_output = [&] {
      wgmma_wait_group<0>();  // O has come, and P's registers are free
      wgmma_pin(tOrB);
      if constexpr (promotes) {
        add_to(tOrO, 0, part);
#pragma unroll
        for (int number = 1; number < parts; ++number) {
          start_part(number, false);
          wgmma_wait_group<0>();
          wgmma_pin(part);
          add_to(tOrO, number * part.size, part);
        }
      }
      ring_v.release(v.stage);
      v.next();
    };
    auto const softmax_of = [&](int n, auto first) {  // once S has come: P, but for its registers
      wgmma_pin(tSrS);
      cap_and_mask<MmaS, C.exponential, C.block_n>(mask, blocks, positions, n,
                                                   p.softcap_scale * descale, tSrS);
      bool grown = false;
      if constexpr (decltype(first)::value)
        softmax.template start_and_exponentiate<beneath>(tSrS);
      else
        grown = softmax.template follow_and_exponentiate<beneath>(tSrS, factor);
      // No sum of exponentials is negative, but ptxas does not know it. So it does not put these
      // off until after the wait for O, which they are to run beneath.
      ring_k.release(k.stage + (softmax.sum[all ? 0 : Softmax::rows - 1] < 0.0f ? 1 : 0));
      k.next();
      return grown;
    };
    auto const round_scores = [&] {  // the rest of them; P's registers are free
      if constexpr (!all) softmax.template exponentiate_rest<beneath>(tSrS);
      copy(MmaO::template operand_a<typename V::Order>(MmaS{}, tSrS), tOrP);
    };

    if constexpr (promotes) clear(tOrO);
    role.ring_q.wait(q);
    ring_k.wait(k);
    wgmma_fence();  // the registers of S, before the wgmma that write them
    start_scores();
    wgmma_wait_group<0>();
    softmax_of(blocks.last - 1, std::true_type{});
    round_scores();
    bool k_full = false, due = false;  // whether the next block need not wait
#pragma unroll 1
    for (int n = blocks.last - 2; n >= blocks.first; --n) {
      if (!k_full) ring_k.wait(k);
      if constexpr (takes_turns) role.order.enter(group, due);
      wgmma_fence();
      start_scores();
      start_output(n < blocks.last - 2);
      if constexpr (takes_turns) role.order.leave(group);
      wgmma_wait_group<C.overlap == AttentionOverlap::none ? 0 : 1>();  // S has come
      bool const grown = softmax_of(n, std::false_type{});
      finish_output();
      if (grown) Softmax::scale_rows(tOrO, factor);
      k_full = ring_k.test_wait(k);  // the answers come while P is rounded
      if constexpr (takes_turns) due = role.order.test_wait(group);
      round_scores();
    }
    role.ring_q.release(q.stage);  // all of S has come: the next rows may be loaded meanwhile
    q.advance(C.consumers);

    start_output(blocks.last - blocks.first > 1);
    finish_output();
  }
};

}  // namespace tegula

#include "tegula/kernel/attention_latent_sm90.hpp"
