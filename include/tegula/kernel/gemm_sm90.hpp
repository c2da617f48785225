#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/grid_dependency.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/epilogue_sm90.hpp"
#include "tegula/kernel/gemm_cluster.hpp"
#include "tegula/kernel/gemm_operand_tiles.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/kernel/gemm_unloaded_rows.hpp"
#include "tegula/kernel/transposed_epilogue_sm90.hpp"
#include "tegula/kernel/transposed_row_epilogue_sm90.hpp"
#include "tegula/pipeline/cluster_reduction.hpp"
#include "tegula/pipeline/lockstep_barrier.hpp"
#include "tegula/pipeline/ordered_barrier.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/pipeline/work_tiles.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/tma.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula {

namespace detail {
template <EpilogueSm90Spec S> struct SelectEpilogue { using Type = EpilogueSm90<S>; };
template <EpilogueSm90Spec S>
requires(S.transposed&& S.buffers == 0) struct SelectEpilogue<S> {
  using Type = TransposedRowEpilogueSm90<S>;
};
template <EpilogueSm90Spec S>
requires(S.transposed&& S.buffers > 0) struct SelectEpilogue<S> {
  using Type = TransposedEpilogueSm90<S>;
};
}  // namespace detail

/// Warp-specialised persistent GEMM on Hopper's tensor cores:
/// D = activation(alpha scale_a scale_b A B + beta C + bias), accumulated in f32.
///
/// One thread of the CTA, the producer, has TMA fill a ring of shared-memory stages with tiles of A
/// and B. One to three warpgroups, the consumers, multiply them by wgmma straight from shared
/// memory, and store their tile of D by TMA, 16 rows a warp. All walk the same list of tiles; the
/// ring runs on from one tile to the next, so that the next tile is being fetched while this one is
/// stored. Where that makes room for another stage, D leaves through the stage that the tile read
/// last, which goes back to the producer after that (`lends`).
///
///     producer   for each tile, each step of K:  wait until a stage is empty, fetch A and B
///     consumers  for each tile:  for each step of K:  wait until a stage is full, multiply,
///     release
///                                then the epilogue (epilogue_sm90.hpp)
///
/// Legend: m, g, s, r for matrices in global memory, their tiles, shared and register tensors; tC..
/// partitioned for C = A B^T.
template <GemmSm90Config C> struct GemmSm90 {
  using Params = GemmSm90Params;

  static constexpr GemmSm90Config config = C;
  static constexpr int consumers = tegula::consumers(C);
  static constexpr int warps = 4 * consumers;  // of consumers
  static constexpr int threads = 128 * (1 + consumers);
  static constexpr int min_ctas_per_sm = C.min_ctas_per_sm;
  static constexpr bool programmatic_dependent_launch = true;  // by griddepcontrol_wait
  static constexpr bool concurrent = C.in_parts;               // parts wait for each other
  static constexpr Dim3 cluster = {cluster_size(C), 1, 1};
  using Cluster = GemmCluster<cluster_of(C), a_fetch(C), b_fetch(C)>;
  static constexpr int peers = Cluster::peers;  // CTAs that multicast to each other
  static constexpr int stages = tegula::stages(C);
  static constexpr int block_k = tegula::block_k(C);
  static constexpr bool pingpong = C.schedule == Schedule::pingpong;
  static constexpr bool split = C.split_k > 1;
  static constexpr bool two_widths = C.narrow_n > 0;
  static constexpr int narrow_n = two_widths ? C.narrow_n : C.block_n;
  static constexpr bool in_parts = C.in_parts;
  static constexpr bool lends = lends_last_stage(C);
  static_assert(!split || !pingpong, "both consumers share one tile");
  static_assert(!in_parts || (!split && !pingpong && C.narrow_n == 0),
                "parts differ in their steps, and all consumers share each");
  static_assert(!in_parts || !C.transposed || C.store_buffers == 0,
                "each warp of a warpgroup has pieces of its own");
  static_assert(!lends || can_lend_last_stage(C));
  static_assert(!two_widths || (C.narrow_n < C.block_n && !split));
  static_assert(stages >= 2);

  using TileA = SharedTile<type_of<C.a>, a_tile(C, stages)>;  // (block_m, block_k, stages)
  using TileB = SharedTile<type_of<C.b>, b_tile(C, stages)>;  // (block_n, block_k, stages)
  using CopyA = typename Cluster::CopyA;
  using CopyB = typename Cluster::CopyB;
  using Operands = GemmOperandTiles<C, block_k>;
  using Unloaded = UnloadedRows<C>;
  // ping-pong, one consumer reads a stage
  using Ring = TmaPipeline<stages, pingpong ? 4 : warps, C.cluster_m, C.cluster_n>;
  using MathOrder = OrderedBarrier<consumers, 4>;
  using WorkTiles = WorkTileIterator<work_tiles(C)>;

  /// The product of the consumers' tile, or of the first N of its columns: rows are shared, or,
  /// ping-pong, the tile is one consumer's.
  static constexpr int consumer_m = tegula::consumer_m(C);
  template <int N>
  using Mma = TiledMma<TiledMmaSpec{warpgroup_mma(C.a, C.b, DType::f32, N, C.a_major, C.b_major),
                                    C.block_m, N, pingpong ? 1 : consumers}>;
  using Accumulator = typename Mma<C.block_n>::Accumulator;  // (MMA, MMA_M, 1)

  /// With split_k, the sums of the CTAs of a cluster, of which each finishes some columns.
  static constexpr int share_n = epilogue_n(C);
  struct NoReduction {
    struct Tile {};
    struct Barriers {};
  };
  using Reduction =
      std::conditional_t<split,
                         ClusterReduction<Accumulator, typename Mma<share_n>::Accumulator,
                                          C.split_k, 128 * consumers, peers>,
                         NoReduction>;
  /// In parts, a piece of the sums of all of them: 64 x share_n.
  using Piece = typename TiledMma<TiledMmaSpec{
      warpgroup_mma(C.a, C.b, DType::f32, share_n, C.a_major, C.b_major), 64, share_n,
      1}>::Accumulator;
  using Epilogue = typename detail::SelectEpilogue<tegula::epilogue(C)>::Type;
  // TMA's swizzle is made for 8 rows of 16 bytes: of the 16 rows of a column, two share each bank,
  // and so do two of the 4 rows that 16 lanes write as pairs of f32.
  static constexpr sim::Limits limits = {.bank_conflicts = bits(C.out) == 32 ? 2 : 1};

  struct Stages {
    TileA a;
    TileB b;
  };
  static_assert(sizeof(Stages) == stages * stage_bytes(C));
  static_assert(sizeof(typename Reduction::Tile) <= sizeof(Stages));
  static_assert(!lends || sizeof(typename Epilogue::Tile) == sizeof(TileA));

  struct Nothing {};
  template <bool Condition, class T> using If = std::conditional_t<Condition, T, Nothing>;

  struct SharedStorage {
    union {
      Stages stage;
      typename Reduction::Tile sums;            // after the last step of K
      If<lends, typename Epilogue::Tile> lent;  // after a tile's last step, of the stage of that
    };
    If<!lends, typename Epilogue::Tile> d;
    typename Ring::Storage ring;
    typename MathOrder::Storage order;
    typename Epilogue::Barriers epilogue;
    typename Reduction::Barriers reduction;

    template <class F> void name_buffers(F&& name) {
      name("A", stage.a);
      name("B", stage.b);
      name("full", ring.full);
      name("empty", ring.empty);
      name("turn", order.turn);
      if constexpr (C.store_buffers > 0) name("D", d);  // else it has no memory of its own
      if constexpr (!C.transposed) name("C", epilogue.c);
      if constexpr (split) {
        name("sums", sums);
        name("ready", reduction.ready);
        name("given", reduction.given);
      }
    }
  };
  static_assert(sizeof(SharedStorage) <= (228 / C.min_ctas_per_sm - 1) * 1024);

  // Registers move from the producer to the consumers: launched with `even` each.
  static constexpr int even = 65536 / (threads * min_ctas_per_sm) / 8 * 8;
  static constexpr int producer_registers = 40;
  static constexpr bool moves_registers = consumers > 1 && Accumulator::registers + 80 > even;
  static constexpr int consumer_registers =
      ((1 + consumers) * even - producer_registers) / consumers / 8 * 8;

  static constexpr char const* role(int warp) {
    constexpr char const* names[] = {"producer", "consumer 0", "consumer 1", "consumer 2"};
    return names[warp / 4];
  }
  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) {
    return {p.schedule.clusters * cluster.x, 1, 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    // The same in all lanes, which the shuffle tells the compiler: what follows from it stays in
    // registers of the warp.
    int const warp = warp::shfl(warp_id(), 0);
    int const warpgroup = warp / 4;
    Ring const ring = Ring{smem.ring, Cluster::first_peer()}.kept();
    MathOrder order{smem.order};
    if (thread_idx() == 32) {  // of a warp that has nothing else to do
      prefetch_tensor_map(p.problem.a);
      prefetch_tensor_map(p.problem.b);
      Unloaded::prefetch_maps(p.problem);
      Epilogue::prefetch_maps(p.epilogue);
    }
    WorkTiles work{p.schedule.tiling, p.schedule.clusters, p.schedule.initial_tiles, p.parts.tile};
    // What TMA loads first is on its way from memory to L2 while the cluster meets.
    if (warp == 0 && warp::elect_one()) prefetch_first(p, work);
    if (thread_idx() == 128) {
      init(smem, ring, order);
      Unloaded::unpoison(p.problem, tensor(smem.stage.a), tensor(smem.stage.b));
    }
    meet_cluster();  // the barriers are known to all who use them, in every CTA

    if (warpgroup != 0) {
      if constexpr (moves_registers) setmaxnreg_inc<consumer_registers>();
      consume(p, smem, ring, order, work, warpgroup - 1);
    } else {  // in this order the compiler puts the producer's code, which is waited for, next
      if constexpr (moves_registers) setmaxnreg_dec<producer_registers>();
      if (warp == 0 && warp::elect_one()) produce(p, smem, ring, work);
      warp::sync();  // the whole warp together comes to what follows
    }
  }

 private:
  /// The producer, one thread: every tile's steps of K, each into the next stage of the ring.
  TEGULA_DEVICE static void produce(Params const& p, SharedStorage& smem, Ring const& ring,
                                    WorkTiles& work) {
    griddepcontrol_wait();  // the launch before this one has written A, B, C
    typename Ring::State state;
    int first = first_step(p, work), last = last_step(p, work);
    // One CTA of a cluster is enough: its peers share its stages.
    LockstepBarrier lockstep{peers == 1 || cluster_cta_rank() == 0 ? p.schedule.lockstep : nullptr,
                             p.schedule.lockstep_steps, p.schedule.tiling.tiles,
                             p.schedule.clusters};
    CopyA g2sA = Cluster::copy_a();
    CopyB g2sB = Cluster::copy_b();
    auto const sA = tensor(smem.stage.a);  // (block_m, block_k, stages)
    auto const sB = tensor(smem.stage.b);  // (block_n, block_k, stages)
    while (!work.done()) {
      auto const rows_a = Unloaded::rows_of_a(p.problem, work.m),
                 rows_b = Unloaded::rows_of_b(p.problem, work.n);
      int const bytes = rows_a.bytes + rows_b.bytes;
      g2sA.cut = rows_a.cut, g2sB.cut = rows_b.cut;
      // (block_m, block_k, steps) and (block_n, block_k, steps)
      auto const gA = Operands::a(p.problem, work, rows_a.map, rows_a.first);
      auto const gB = Operands::b(p.problem, work, rows_b.map, rows_b.first);
#pragma unroll 1  // the first stages are not to wait for more code
      for (int k = first; k < last; ++k) {
        lockstep.step();
        SharedAddr const full = ring.acquire(state, bytes);
        auto const fetch_a = [&] { copy(g2sA, gA(_, _, k), sA(_, _, state.stage), full); };
        auto const fetch_b = [&] { copy(g2sB, gB(_, _, k), sB(_, _, state.stage), full); };
        // First the operand that the peers share: they wait for it, too.
        if constexpr (C.cluster_m > 1) {
          fetch_b();
          fetch_a();
        } else {
          fetch_a();
          fetch_b();
        }
        state.next();
      }
      lockstep.next_tile();
      work.next();
      work.find();
      if constexpr (in_parts) first = first_step(p, work), last = last_step(p, work);
    }
    lockstep.leave();
    griddepcontrol_launch_dependents();
    // No CTA ends while peers may still arrive at its barriers. (What they load has been waited
    // for.)
    if constexpr (peers > 1) ring.drain(state);
  }

  /// A consumer warpgroup: its tiles, or its rows of every tile.
  TEGULA_DEVICE static void consume(Params const& p, SharedStorage& smem, Ring const& ring,
                                    MathOrder& order, WorkTiles& work, int group) {
    Accumulator tCrC;
    Epilogue epilogue{p.epilogue, p.problem.m, p.problem.n, store_tile(smem), smem.epilogue};
    typename Ring::State state;
    int const share = Cluster::share();
    int steps = last_step(p, work) - first_step(p, work);
    if (pingpong && group == 1) {  // the other consumer begins
      state.advance(steps);
      work.next();
    }
#pragma unroll 1
    while (!work.done()) {
      if constexpr (pingpong) order.enter(group);
      // Else the compiler keeps registers of the tile before while that is stored.
      if constexpr (in_parts) clear(tCrC);
      bool const narrow = work.narrow();
      int const last = narrow ? mainloop<narrow_n>(smem, ring, state, steps, group, order, tCrC)
                              : mainloop<C.block_n>(smem, ring, state, steps, group, order, tCrC);
      if constexpr (!in_parts) work.find();  // while the tensor core finishes
      wgmma_wait_group<0>();
      wgmma_pin(tCrC);
      if (narrow) unpoison(tCrC);  // what is beyond a narrower tile leaves for nowhere
      if constexpr (lends) {
        epilogue.borrow(last);  // no peer loads into it before it is released
      } else {
        ring.release(last);
      }
      int const m = work.m + (pingpong ? 0 : group * consumer_m);
      if constexpr (split) {
        Reduction const sums{smem.sums, smem.reduction, thread_idx_here() - 128};
        sums.meet();  // no CTA's wgmma reads its stages any more, where the sums come to lie
        sums.give(tCrC);
        sums.wait();
        auto tCrD = sums.reduce(tCrC);
        epilogue.store(tCrD, m, work.n + share * share_n, work.batch, narrow);
      } else if constexpr (in_parts) {
        store_share(p, work, tCrC, epilogue, m);
      } else {
        epilogue.store(tCrC, m, work.n, work.batch, narrow);
      }
      if constexpr (lends) {
        epilogue.give_back();
        ring.release(last);
      }
      work.next(pingpong ? 2 : 1);
      if constexpr (in_parts) {  // how many steps it has is its part's
        work.find();
        steps = last_step(p, work) - first_step(p, work);
      }
      if constexpr (pingpong) state.advance(steps);
    }
    epilogue.drain();
  }

  /// D on its way out.
  TEGULA_DEVICE static typename Epilogue::Tile const& store_tile(SharedStorage const& smem) {
    if constexpr (lends) {
      return smem.lent;
    } else {
      return smem.d;
    }
  }

  /// tCrC = A B over `steps` stages of the ring, for the group's rows and N columns. The tensor
  /// core works on one stage while the next is waited for; a stage is released once the step after
  /// it has been issued and its own is done. Returns the last stage, which the last wgmma, not
  /// waited for, still read.
  template <int N>
  TEGULA_DEVICE static int mainloop(SharedStorage& smem, Ring const& ring,
                                    typename Ring::State& state, int steps, int group,
                                    MathOrder& order, Accumulator& tCrC) {
    Mma<N> const mma{pingpong ? 0 : 128 * group};
    auto const tCsA = mma.partition_a(tensor(smem.stage.a));  // (MMA_M, MMA_K, stages)
    auto const tCsB =
        mma.partition_b(part<N, block_k>(tensor(smem.stage.b)));  // (1, MMA_K, stages)
    int previous = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      ring.wait(state);
      if (pingpong && step + 1 == steps) {
        warp::sync();  // all lanes have entered, where no step before has had them meet
        // The other consumer's wgmma queue up behind those of this last step.
        order.leave(group);
      }
      wgmma_fence();  // the registers of tCrC, before the first wgmma that uses them
      gemm(mma, tCsA(_, _, state.stage), tCsB(_, _, state.stage), tCrC, step > 0);
      wgmma_commit_group();
      // the step before this one is done: nobody in this warp reads its stage any more
      wgmma_wait_group<1>();
      if (step > 0) ring.release(previous);
      previous = state.stage;
      state.next();
    }
    return previous;
  }

  /// With parts of K: leaves the warp's sums of one, and stores its share of the tile's pieces,
  /// once all parts are there. Who has another tile goes on with that instead of waiting.
  TEGULA_DEVICE static void store_share(Params const& p, WorkTiles const& work,
                                        Accumulator const& tCrC, Epilogue& epilogue, int m) {
    constexpr int warps_of_cluster = cluster.x * warps, of_row = C.block_n / share_n;
    int const warp = cluster_cta_rank() * warps + thread_idx_here() / 32 - 4;
    WorkspaceReduction<Accumulator, Piece> sums{
        p.parts.partial, work.first_part() * warps_of_cluster + warp,
        work.tiles_of_part() * warps_of_cluster, work.part, p.parts.tile.count};
    auto const share = sums.give(tCrC, work.is_last());
    sums.take(share, [&](int piece, Piece& tCrD) {
      epilogue.store(tCrD, m + piece / of_row * 64, work.n + piece % of_row * share_n, work.batch,
                     /*narrow=*/false);
    });
    sums.leave();
  }

  /// The steps of K, block_k each, that this CTA computes of a tile, those of its share or its
  /// part: from the first to before the last, at least one. Steps beyond K add zeros.
  TEGULA_DEVICE static int first_step(Params const& p, WorkTiles const& work) {
    return in_parts ? step_of_k(p, work.part, p.parts.tile.count)
                    : step_of_k(p, Cluster::share(), C.split_k);
  }
  TEGULA_DEVICE static int last_step(Params const& p, WorkTiles const& work) {
    return in_parts ? step_of_k(p, work.part + 1, p.parts.tile.count)
                    : step_of_k(p, Cluster::share() + 1, C.split_k);
  }
  /// The first step of one of several shares.
  TEGULA_DEVICE static int step_of_k(Params const& p, int share, int shares) {
    int const steps = (p.problem.k + block_k - 1) / block_k;
    return (steps < shares ? shares : steps) * share / shares;
  }

  /// What the producer loads first, into L2. (The next steps' would compete with it.)
  TEGULA_DEVICE static void prefetch_first(Params const& p, WorkTiles const& work) {
    int const k = first_step(p, work);
    prefetch(Cluster::copy_b(), Operands::b(p.problem, work)(_, _, k));
    prefetch(Cluster::copy_a(), Operands::a(p.problem, work)(_, _, k));
  }

  /// By one thread.
  TEGULA_DEVICE static void init(SharedStorage& smem, Ring const& ring, MathOrder const& order) {
    ring.init();
    order.init();
    Epilogue::init(smem.epilogue);
    if constexpr (split) Reduction::init(smem.reduction);
    fence_mbarrier_init();
  }

  /// Every thread of the cluster has come here.
  TEGULA_DEVICE static void meet_cluster(SourceLocation where = SourceLocation::current()) {
    if constexpr (cluster.x > 1) {
      tegula::cluster::arrive_relaxed(where);
      tegula::cluster::wait(where);
    } else {
      cta::sync(where);
    }
  }
};

}  // namespace tegula
