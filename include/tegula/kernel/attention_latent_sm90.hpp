#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/grid_dependency.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/attention_loads.hpp"
#include "tegula/kernel/attention_output.hpp"
#include "tegula/kernel/attention_parts.hpp"
#include "tegula/kernel/attention_scores.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/kernel/attention_work.hpp"
#include "tegula/kernel/online_softmax.hpp"
#include "tegula/pipeline/thread_pipeline.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/register_copy.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula {

template <AttentionSm90Config C> struct AttentionSm90;

/// Multi-head latent attention's decoding (DeepSeek-V2, arXiv 2405.04434, with K's projection
/// absorbed): one head of K for many of Q, 576 wide, of which V is the first 512 columns. A block
/// of K is loaded once and read three times. The 64 x 512 accumulators of O are those of two
/// warpgroups, half of the columns each, as FlashMLA has them.
///
///     producer   for each tile:  Q, and K from the last block to the first
///     scores     S = Q K[last]
///                for each block n:
///                  P = softmax(S), to the other; rescale O's left half
///                  O += P V[n], and S = Q K[n - 1] behind it
///     values     for each block n:
///                  rescale O's right half as the other says; O += P V[n]
///
///     ring_p:   P and its rows' factors, from `scores` to `values`; after the last block, the
///               offsets and sums of the rows' softmax
///
/// While one's softmax runs, the other multiplies. What is a tile, how it is loaded, and how parts
/// are added up are those of the other serving configurations.
template <AttentionSm90Config C>
requires(C.latent) struct AttentionSm90<C> {
  using Params = AttentionSm90Params;
  using T = type_of<C.dtype>;
  static constexpr AttentionSm90Config config = C;
  static constexpr int threads = kWarpgroupSize * (1 + warpgroups(C));
  static constexpr int min_ctas_per_sm = 1;
  static constexpr bool programmatic_dependent_launch = true;  // by griddepcontrol_wait
  static_assert(C.serving && C.consumers == 1 && bits(C.dtype) == 16 && C.stages == 2);
  static constexpr int columns = columns_of_one(C);
  using TileQ = SharedTile<T, q_tile(C)>;  // (consumer_m, head_dim)
  using TileK = SharedTile<T, k_tile(C)>;  // (block_n, head_dim)
  using TileV = SharedTile<T, v_tile(C)>;  // (head_dim_v, block_n)
  using TileP = SharedTile<T, p_tile(C)>;  // (consumer_m, block_n)
  static constexpr int k_bytes = tma_boxes(k_tile(C)).bytes;
  using RingQ = TmaPipeline<1, 4>;
  using RingK = TmaPipeline<C.stages, 8>;
  using RingP = ThreadPipeline<1, 4, 4, StageReader::async_proxy>;
  using Tiles = AttentionTiles<C>;
  using Work = typename Tiles::Work;
  using Queue = TileQueue<2, 8, typename Tiles::Tile>;
  enum : int { kTail = 1, kParts = 2 };  // named barriers: of both, and from here of each
  using MmaS = TiledMma<TiledMmaSpec{warpgroup_mma(C.dtype, C.dtype, DType::f32, C.block_n)}>;
  template <MmaOperands Operands>
  using MmaO = TiledMma<TiledMmaSpec{
      warpgroup_mma(C.dtype, C.dtype, DType::f32, columns, Major::k, Major::mn, Operands)}>;
  using MmaLeft = MmaO<MmaOperands::rs>;   // of `scores`, which has P in registers
  using MmaRight = MmaO<MmaOperands::ss>;  // of `values`
  using AccumulatorS = typename MmaS::Accumulator;
  using AccumulatorO = typename MmaLeft::Accumulator;
  using Softmax = OnlineSoftmax<typename AccumulatorS::Map, C.exponential, T>;
  static constexpr TiledMmaSpec warp_s = {warp_mma(C.dtype, DType::f32, 16), 16, C.block_n};
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  /// A block of keys, and its first columns as V. Both lie in boxes of 64 columns by block_n keys.
  union Keys {
    TileK k;
    TileV v;
  };

  struct SharedStorage {
    TileQ q;
    Keys keys[C.stages];
    TileP p;
    float rows[2][kAttentionConsumerRows];  // factors; at the end offsets, and sums
    typename RingQ::Storage ring_q;
    typename RingK::Storage ring_k;
    typename RingP::Storage ring_p;
    typename Queue::Storage queue;
    int last_part[2];

    template <class F> void name_buffers(F&& name) {
      name("Q", q);
      name("K", keys[0].k);
      name("K of the second stage", keys[1].k);
      name("P", p);
      name("rows", rows);
      name("Q full", ring_q.full);
      name("Q empty", ring_q.empty);
      name("K full", ring_k.full);
      name("K empty", ring_k.empty);
      name("P full", ring_p.full);
      name("P empty", ring_p.empty);
      queue.name_buffers(name);
      name("last part", last_part);
    }
  };
  static_assert(sizeof(SharedStorage) <= shared_bytes(C) &&
                shared_bytes(C) <= kAttentionSm90SharedBytes);

  static constexpr int producer_registers = 40, consumer_registers = 232;

  static constexpr char const* role(int warp) {
    constexpr char const* names[] = {"producer", "scores", "values"};
    return names[warp / 4];
  }
  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) { return {p.ctas, 1, 1}; }

  /// The handles of what the roles share. Each role has its own states of them.
  struct Roles {
    SharedStorage& smem;
    RingQ ring_q{smem.ring_q};
    RingK ring_k{smem.ring_k};
    RingP ring_p{smem.ring_p};
    Queue queue{smem.queue};
    typename RingQ::State q{};
    typename RingK::State k{};
    typename RingP::State p{};
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const warp = warp::shfl(warp_id(), 0);  // known to be the same in all lanes
    Roles role{smem};
    if (thread_idx() == 0) {
      for (TensorMap const* const map : {&p.q, &p.k}) prefetch_tensor_map(*map);
      role.ring_q.init();
      role.ring_k.init();
      role.ring_p.init();
      role.queue.init();
      fence_mbarrier_init();
    }
    clear_unused_rows<C>(p.packed, tensor(smem.q), threads);
    griddepcontrol_wait();  // the launch before this one has written Q, K, lengths and pages
    cta::sync();            // the barriers are known to all who use them

    if (warp / 4 == 0) {
      setmaxnreg_dec<producer_registers>();
      if (warp == 0 && warp::elect_one()) produce(p, role);
    } else {
      setmaxnreg_inc<consumer_registers>();
      if (warp / 4 == 1)
        consume<0>(p, role);
      else
        consume<1>(p, role);
    }
  }

 private:
  /// The producer, one thread.
  TEGULA_DEVICE static void produce(Params const& p, Roles& role) {
    deal_tiles<Tiles>(p, role.queue,
                      [&](Work const& work, KeyBlocks const& blocks, auto const& take_next) {
                        AttentionLoads<C> const loads{p, work};
                        auto const fetch_k = [&](int n) {
                          SharedAddr const full = role.ring_k.acquire(role.k, k_bytes);
                          loads.keys(n, tensor(role.smem.keys[role.k.stage].k), full);
                          role.k.next();
                        };
                        fetch_k(blocks.last - 1);  // its stage is free before that of Q
                        loads.rows(0, tensor(role.smem.q),
                                   role.ring_q.acquire(role.q, bytes_of_rows<C>(p.packed)));
                        role.q.next();
#pragma unroll 1
                        for (int n = blocks.last - 1; n >= blocks.first; --n) {
                          if (n == takes_next_at(blocks)) take_next();
                          if (n > blocks.first) fetch_k(n - 1);
                        }
                      });
  }

  /// Warpgroup 0, `scores`, or 1, `values`: its columns of O of every tile.
  template <int Warpgroup> TEGULA_DEVICE static void consume(Params const& p, Roles& role) {
    AccumulatorO tOrO;  // (MMA, 1, 1)
    for (auto tile = role.queue.get(); Tiles::is_tile(tile); tile = role.queue.get()) {
      Work const work{p, tile};
      Softmax softmax{p.scale};
      clear(tOrO);
      auto const stage = tensor(role.smem.keys[role.k.stage].v);  // (head_dim_v, block_n)
      clear_values_behind<C>(p.serving, work, stage, role.ring_k, role.k, kTail);
      KeyBlocks const blocks = work.blocks();
      if constexpr (Warpgroup == 0) {
        if (!blocks.empty()) multiply(p, role, work, blocks, softmax, tOrO);
        tell_softmax(role, softmax);
      } else {
        follow(role, blocks.last - blocks.first, tOrO);
        hear_softmax(role, softmax);
      }
      auto const done = role.queue.again();  // what no register held meanwhile
      store<Warpgroup>(p, role, Work{p, done}, softmax, tOrO);
      role.queue.release();
    }
  }

  /// A warpgroup's columns of V, of a stage of keys.
  TEGULA_DEVICE static auto values(Roles const& role, int stage, int warpgroup) {
    return local_tile<columns, C.block_n>(tensor(role.smem.keys[stage].v), warpgroup, 0);
  }

  /// `scores`: S, P, and the left columns of O.
  TEGULA_DEVICE static void multiply(Params const& p, Roles& role, Work const& work,
                                     KeyBlocks const& blocks, Softmax& softmax,
                                     AccumulatorO& tOrO) {
    auto const tSsQ = MmaS{}.partition_a(tensor(role.smem.q));  // (1, MMA_K)
    AccumulatorS tSrS;                                          // (MMA, 1, 1)
    typename MmaLeft::template FragmentA<C.block_n> tOrP;       // (MMA, 1, MMA_K)
    RowPositions<MmaS> const positions{work.rows(0)};
    float factor[Softmax::rows];
    auto const start_scores = [&](int stage) {  // S = Q K, as a group of its own
      gemm(MmaS{}, tSsQ, MmaS{}.partition_b(tensor(role.smem.keys[stage].k)), tSrS, false);
      wgmma_commit_group();
    };
    auto const start_output = [&](int n) {  // once S has come: P, and O += P V
      wgmma_wait_group<0>();
      wgmma_pin(tSrS);
      cap_and_mask<MmaS, C.exponential, C.block_n>(work.mask(), blocks, positions, n,
                                                   p.softcap_scale, tSrS);
      bool const grown = softmax.follow_and_exponentiate(tSrS, factor);
      copy(MmaLeft::template operand_a<detail::Unpermuted<C.block_n>>(MmaS{}, tSrS), tOrP);
      tell_numerators(role, tSrS, factor);
      if (grown) Softmax::scale_rows(tOrO, factor);
      wgmma_pin(tOrP), wgmma_pin(tOrO);
      wgmma_fence();  // the registers of P and O, before the wgmma that read and write them
      gemm(MmaLeft{}, tOrP, MmaLeft{}.partition_b(values(role, role.k.stage, 0)), tOrO);
      wgmma_commit_group();
    };
    auto const release_keys = [&] {
      wgmma_pin(tOrO);
      role.ring_k.release(role.k.stage);
      role.k.next();
    };

    role.ring_q.wait(role.q);
    role.ring_k.wait(role.k);
    wgmma_fence();  // the registers of S, before the wgmma that write them
    start_scores(role.k.stage);
#pragma unroll 1
    for (int n = blocks.last - 1; n > blocks.first; --n) {
      start_output(n);
      auto next = role.k;
      next.next();
      role.ring_k.wait(next);
      wgmma_pin(tSrS);
      wgmma_fence();  // the registers of S, likewise
      start_scores(next.stage);
      wgmma_wait_group<1>();  // O has come
      release_keys();
    }
    start_output(blocks.first);
    role.ring_q.release(role.q.stage);  // all of S has come: the next rows may be loaded
    role.q.next();
    wgmma_wait_group<0>();
    release_keys();
  }

  /// `values`: the right columns of O.
  TEGULA_DEVICE static void follow(Roles& role, int blocks, AccumulatorO& tOrO) {
    auto const tOsP = MmaRight{}.partition_a(tensor(role.smem.p));  // (1, MMA_K)
    float factor[Softmax::rows];
#pragma unroll 1
    for (int i = 0; i < blocks; ++i) {
      role.ring_k.wait(role.k);
      role.ring_p.wait(role.p);
      bool grown = false;
      for_own_rows([&](int r, int row, bool) {
        factor[r] = ld_shared<float>(shared_address(&role.smem.rows[0][row]));
        grown |= factor[r] != 1.0f;
      });
      if (warp::any(grown)) Softmax::scale_rows(tOrO, factor);
      wgmma_pin(tOrO);
      wgmma_fence();  // the registers of O, before the wgmma that write them
      gemm(MmaRight{}, tOsP, MmaRight{}.partition_b(values(role, role.k.stage, 1)), tOrO);
      wgmma_commit_group();
      wgmma_wait_group<0>();
      wgmma_pin(tOrO);
      role.ring_p.release(role.p.stage);
      role.ring_k.release(role.k.stage);
      role.p.next();
      role.k.next();
    }
  }

  /// Calls f(r, row, first) for the rows of a thread's accumulators; `first`: of the quad that has
  /// the row, it is the first lane.
  template <class F> TEGULA_DEVICE static void for_own_rows(F f) {
    auto const own = MmaLeft{thread_idx_here() % kWarpgroupSize}.origin_c();
#pragma unroll
    for (int r = 0; r < Softmax::rows; ++r)
      f(r, own[0] + step_along<0>(typename AccumulatorO::Map{}, r), own[1] == 0);
  }

  /// P and its rows' factors to `values`.
  TEGULA_DEVICE static void tell_numerators(Roles& role, AccumulatorS& tSrS,
                                            float const (&factor)[Softmax::rows]) {
    int const warp = warp_id() % 4;
    role.ring_p.acquire(role.p);
    auto const sP = local_tile<16, C.block_n>(tensor(role.smem.p), warp, 0);  // (16, block_n)
    copy(rounded<T>(tSrS(_, 0, 0)), MatrixStore<warp_s>{lane_id()}.partition(sP));
    for_own_rows([&](int r, int row, bool first) {
      if (first) st_shared(shared_address(&role.smem.rows[0][row]), factor[r]);
    });
    role.ring_p.commit(role.p.stage);
    role.p.next();
  }

  /// The softmax of a tile's rows to `values`, ...
  TEGULA_DEVICE static void tell_softmax(Roles& role, Softmax const& softmax) {
    role.ring_p.acquire(role.p);
    for_own_rows([&](int r, int row, bool first) {
      float const sum = softmax.total(r);
      if (!first) return;
      st_shared(shared_address(&role.smem.rows[0][row]), softmax.offset[r]);
      st_shared(shared_address(&role.smem.rows[1][row]), sum);
    });
    role.ring_p.commit(role.p.stage);  // of it wgmma reads nothing
    role.p.next();
  }
  /// ... where the first lane of a quad has the sum.
  TEGULA_DEVICE static void hear_softmax(Roles& role, Softmax& softmax) {
    role.ring_p.wait(role.p);
    for_own_rows([&](int r, int row, bool first) {
      softmax.offset[r] = ld_shared<float>(shared_address(&role.smem.rows[0][row]));
      float const sum = ld_shared<float>(shared_address(&role.smem.rows[1][row]));
      softmax.sum[r] = first ? sum : 0.0f;
    });
    role.ring_p.release(role.p.stage);
    role.p.next();
  }

  /// A warpgroup's columns of O to global memory, or, of one of several parts of the keys, to the
  /// others.
  template <int Warpgroup>
  TEGULA_DEVICE static void store(Params const& p, Roles& role, Work const& work,
                                  Softmax const& softmax, AccumulatorO& tOrO) {
    AttentionOutput out = p.out;
    if constexpr (Warpgroup == 1) {
      out.o = static_cast<T*>(out.o) + columns;
      out.head_dim_v -= columns;
      out.lse = nullptr;
    }
    int const thread = thread_idx_here() % kWarpgroupSize;
    if (int const parts = work.parts(); parts > 1)
      add_part<C, MmaLeft>(p, out, work, parts, Warpgroup,
                           {kParts + Warpgroup, &role.smem.last_part[Warpgroup]}, thread, softmax,
                           tOrO);
    else
      store_output<T, MmaLeft>(out, work.rows(0), thread, softmax, tOrO);
  }
};

}  // namespace tegula
