#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/grid_dependency.hpp"
#include "tegula/arch/mutant.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/stmatrix.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/kernel/activation.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/pipeline/ordered_barrier.hpp"
#include "tegula/pipeline/pace.hpp"
#include "tegula/pipeline/store_pipeline.hpp"
#include "tegula/pipeline/tma_inlet.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/coordinates.hpp"
#include "tegula/tensor/pack.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/vector.hpp"
#include "tegula/tensor/wgmma_operand.hpp"

namespace tegula {

/// Warp-specialised persistent GEMM on Hopper's tensor cores:
/// D = activation(alpha scale_a scale_b A B + beta C + bias), accumulated in f32.
///
/// One thread of the CTA, the producer, has TMA fill a ring of shared-memory stages with tiles of A and B.
/// One or two warpgroups, the consumers, multiply them by wgmma straight from shared memory, and store their
/// tile of D by TMA, 16 rows a warp. All walk the same list of tiles; the ring runs on from one tile to the
/// next, so that the next tile is being fetched while this one is stored.
///
/// Legend: s, r for shared and register tensors; tC.. partitioned for C = A B.
template <GemmSm90Config C> struct GemmSm90 {
  using Params = GemmSm90Params;
  using Out = type_of<C.out>;

  static constexpr GemmSm90Config config = C;
  static constexpr int consumers = tegula::consumers(C);
  static constexpr int warps = 4 * consumers;  // of consumers
  static constexpr int threads = 128 * (1 + consumers);
  static constexpr int min_ctas_per_sm = C.min_ctas_per_sm;
  static constexpr bool waits_for_grids = true;  // by griddepcontrol_wait
  static constexpr Dim3 cluster = {cluster_size(C), 1, 1};
  static constexpr int peers = C.cluster_m * C.cluster_n;  // CTAs that multicast to each other
  static constexpr int stages = tegula::stages(C);
  static constexpr int block_k = tegula::block_k(C);
  static constexpr bool pingpong = C.schedule == Schedule::pingpong;
  static constexpr bool split = C.split_k > 1;
  static_assert(C.cluster_m == 1 || C.cluster_n == 1, "multicast of either A or B");
  static_assert(!split || (peers == 1 && !pingpong), "the CTAs of a cluster share one tile's K");
  static constexpr bool two_widths = C.narrow_n > 0;
  static_assert(!two_widths || (C.narrow_n < C.block_n && !split));
  static_assert(stages >= 2);

  static constexpr int narrow_n = two_widths ? C.narrow_n : C.block_n;
  static constexpr MmaSpec wide_mma = warpgroup_mma(C.a, C.b, DType::f32, C.block_n, C.a_major, C.b_major);
  static constexpr MmaSpec narrow_mma = warpgroup_mma(C.a, C.b, DType::f32, narrow_n, C.a_major, C.b_major);
  static constexpr int consumer_m = tegula::consumer_m(C);
  static constexpr int MMA_M = consumer_m / 64;
  static constexpr int MMA_N = C.block_n / 8;  // groups of 8 columns, 4 registers of a thread each
  static constexpr int mma_k = wide_mma.k;
  static constexpr int MMA_K = block_k / mma_k;
  static_assert(consumer_m % 64 == 0);

  static constexpr OperandBoxes boxes_a = a_boxes(C);
  static constexpr OperandBoxes boxes_b = b_boxes(C);
  static constexpr int stage_bytes = tegula::stage_bytes(C);
  static constexpr int contiguous_a = C.a_major == Major::k ? 1 : 0;
  static constexpr int contiguous_b = C.b_major == Major::k ? 1 : 0;
  using TileA =
      SharedTile<type_of<C.a>, swizzled_operand(bits(C.a), C.block_m, block_k, contiguous_a, stages)>;
  using TileB =
      SharedTile<type_of<C.b>, swizzled_operand(bits(C.b), C.block_n, block_k, contiguous_b, stages)>;

  // D on its way out: store_buffers of 16 x store_n for each consumer warp, as TMA reads them.
  static constexpr int store_n = tegula::store_n(C);
  static constexpr int last_store_n = tegula::last_store_n(C);
  static constexpr int last_narrow_store_n = tegula::last_narrow_store_n(C);
  static_assert(C.block_n - last_store_n == narrow_n - last_narrow_store_n, "they differ in the last piece");
  static constexpr int store_unit = tegula::store_unit(C.out);
  using TileD = SharedTile<Out, swizzled_operand(bits(C.out), 16, store_n, 1, C.store_buffers* warps)>;
  static constexpr Layout stmatrix_lanes = make_layout(along(0, 16, 1), along(1, 2, 8));  // of 16 x 16
  static constexpr Layout pair_lanes = make_layout(along(1, 4, 2), along(0, 8, 1));       // of 8 x 8
  static constexpr Layout column_lanes = make_layout(along(0, 16, 1), along(1, 2, 1));    // of 16 x 2
  // TMA's swizzle is made for 8 rows of 16 bytes: of the 16 rows of a column, two share each bank, and so do
  // two of the 4 rows that 16 lanes write as pairs of f32.
  static constexpr sim::Limits limits = {.bank_conflicts = sizeof(Out) == 4 ? 2 : 1};

  // With split_k: what every CTA of the cluster has summed of the columns that this CTA finishes. Each thread
  // reads what the threads of the same index wrote.
  static constexpr int share = MMA_N / C.split_k;  // groups of columns
  static_assert(MMA_N % C.split_k == 0);
  static_assert(last_store_n * sizeof(Out) % 32 == 0, "stmatrix writes 16 columns");
  struct NoSums {};
  using PartialSums = Vector<float, 4>[C.split_k][MMA_M * share][128 * consumers];

  using Ring = TmaPipeline<stages, pingpong ? 4 : warps, peers>;  // ping-pong, one consumer reads a stage
  using Turns = OrderedBarrier<consumers, 4>;
  using Store = StorePipeline<C.store_buffers>;
  static constexpr int piece_bytes = 16 * store_n * static_cast<int>(sizeof(Out));
  /// A consumer warp's way to C and D in global memory.
  struct Outlet {
    Store store;
    TmaInlet c;
  };

  struct SharedStorage {
    TileA a;
    TileB b;
    TileD d;
    std::conditional_t<split, PartialSums, NoSums> sums;
    typename Ring::Storage ring;
    typename Turns::Storage turns;
    Mbarrier c[warps];  // C for a warp has come
    Mbarrier given;     // the sums of every CTA have come

    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("D", d);
      name("full", ring.full);
      name("empty", ring.empty);
      name("turn", turns.turn);
      name("C", c);
      if constexpr (split) {
        name("sums", sums);
        name("given", given);
      }
    }
  };
  static_assert(sizeof(SharedStorage) <= (228 / C.min_ctas_per_sm - 1) * 1024);

  // Registers move from the producer to the consumers: launched with `even` each.
  static constexpr int even = 65536 / (threads * min_ctas_per_sm) / 8 * 8;
  static constexpr int producer_registers = 40;
  static constexpr bool moves_registers = consumers == 2 && 4 * MMA_M * MMA_N + 80 > even;
  static constexpr int consumer_registers = (3 * even - producer_registers) / 2 / 8 * 8;

  static constexpr char const* role(int warp) {
    constexpr char const* names[] = {"producer", "consumer 0", "consumer 1"};
    return names[warp / 4];
  }
  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) { return {p.clusters * cluster.x, 1, 1}; }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    // The same in all lanes, which the shuffle tells the compiler: what follows from it stays in registers of
    // the warp.
    int const warp = warp::shfl(warp_id(), 0);
    int const warpgroup = warp / 4;
    Ring const ring{smem.ring};
    Turns turns{smem.turns};
    if (thread_idx() == 32) {  // of a warp that has nothing else to do
      prefetch_tensor_map(p.a);
      prefetch_tensor_map(p.b);
      prefetch_tensor_map(p.d);
      if constexpr (last_store_n != store_n) prefetch_tensor_map(p.d_last);
      if constexpr (two_widths) prefetch_tensor_map(p.d_last_narrow);
    }
    Walk walk{p};
    // What TMA loads first is on its way from memory to L2 while the cluster meets.
    if (warp == 0 && warp::elect_one()) prefetch_first(p, walk);
    if (thread_idx() == 128) init(smem, ring, turns);
    meet_cluster();  // the barriers are known to all who use them, in every CTA

    if (warpgroup != 0) {
      if constexpr (moves_registers) setmaxnreg_inc<consumer_registers>();
      consume(p, smem, ring, turns, walk, warpgroup - 1);
    } else {  // in this order the compiler puts the producer's code, which is waited for, next
      if constexpr (moves_registers) setmaxnreg_dec<producer_registers>();
      if (warp == 0 && warp::elect_one()) produce(p, smem, ring, walk);
      warp::sync();  // the whole warp together comes to what follows
    }
    // No CTA ends while another may still write to its shared memory or arrive at its barriers. (With
    // split_k it has waited for all that comes.)
    if constexpr (peers > 1) meet_cluster();
  }

 private:
  /// Every thread of the cluster has come here.
  TEGULA_DEVICE static void meet_cluster(Where where = Where::here()) {
    if constexpr (cluster.x > 1) {
      tegula::cluster::arrive_relaxed(where);
      tegula::cluster::wait(where);
    } else {
      cta::sync(where);
    }
  }

  /// By one thread.
  TEGULA_DEVICE static void init(SharedStorage& smem, Ring const& ring, Turns const& turns) {
    ring.init();
    turns.init();
    for (int warp = 0; warp < warps; ++warp) mbarrier_init(shared_address(&smem.c[warp]), 1);
    if constexpr (split) {
      mbarrier_init(shared_address(&smem.given), 1);
      mbarrier_arrive_expect_tx(shared_address(&smem.given), sizeof(smem.sums));
    }
    fence_mbarrier_init();
  }

  /// The tiles of one role, in the order of the scheduler: the cluster's, of which the CTA computes the one
  /// of its rank; in ping-pong each consumer takes every second.
  class Walk {
   public:
    TEGULA_DEVICE explicit Walk(Params const& p)
        : tiles_{p.tiling, static_cast<int>(block_idx().x / cluster.x), p.clusters} {
      if (tiles_.index >= p.first_tiles.workers) {
        find();
      } else {
        FirstTile const& first = p.first_tiles[tiles_.index];
        tiles_.index = first.index;
        take({first.m, first.column, first.batch});
      }
    }
    TEGULA_DEVICE bool done() const { return tiles_.done(); }
    TEGULA_DEVICE void next(int steps = 1) { tiles_.next(steps); }
    TEGULA_DEVICE bool narrow() const { return two_widths && tiles_.tiling.narrow(tiles_.index); }
    /// Computes m, n and batch.
    TEGULA_DEVICE void find() {
      take(tiles_.tiling.tile(tiles_.index, C.block_n * C.cluster_n, C.narrow_n * C.cluster_n));
    }

    int m, n, batch;  ///< the tile's first element of D

   private:
    /// The CTA's tile of the cluster's.
    TEGULA_DEVICE void take(Tile const& tile) {
      int const rank = peers > 1 ? cluster_cta_rank() : 0;
      m = (tile.m * C.cluster_m + (C.cluster_m > 1 ? rank : 0)) * C.block_m;
      n = tile.column + (C.cluster_n > 1 ? rank * (narrow() ? narrow_n : C.block_n) : 0);
      batch = tile.batch;
    }

    PersistentTiles tiles_;
  };

  /// The steps of K, block_k each, that the CTA of a rank in its cluster adds up: from step_of_k(p, rank) to
  /// step_of_k(p, rank + 1), at least one: steps beyond K add zeros.
  TEGULA_DEVICE static int step_of_k(Params const& p, int rank) {
    int const steps = (p.k + block_k - 1) / block_k;
    return (steps < C.split_k ? C.split_k : steps) * rank / C.split_k;
  }

  /// The producer, one thread: every tile's steps of K, each into the next stage of the ring.
  TEGULA_DEVICE static void produce(Params const& p, SharedStorage& smem, Ring const& ring, Walk& walk) {
    griddepcontrol_wait();  // the launch before this one has written A, B, C
    typename Ring::State state;
    int const rank = split ? cluster_cta_rank() : 0;
    int const first = step_of_k(p, rank);
    int const last = step_of_k(p, rank + 1);
    // One CTA of a cluster is enough: its peers share its stages.
    Pace pace{peers == 1 || cluster_cta_rank() == 0 ? p.pace : nullptr, p.pace_steps, p.tiling.tiles,
              p.clusters};
    while (!walk.done()) {
#pragma unroll 1  // the first stages are not to wait for more code
      for (int k = first; k < last; ++k) {
        pace.step();
        SharedAddr const full = ring.acquire(state, stage_bytes);
        auto const fetch_a = [&] {
          fetch<contiguous_a, boxes_a>(p.a, smem.a, walk.m, k * block_k, p.a_batched ? walk.batch : 0,
                                       state.stage, full);
        };
        auto const fetch_b = [&] {
          fetch<contiguous_b, boxes_b>(p.b, smem.b, walk.n, k * block_k, p.b_batched ? walk.batch : 0,
                                       state.stage, full);
        };
        // First the operand that the peers share: they wait for it, too.
        if constexpr (boxes_b.peers > 1) {
          fetch_b();
          fetch_a();
        } else {
          fetch_a();
          fetch_b();
        }
        state.next();
      }
      pace.next_tile();
      walk.next();
      walk.find();
    }
    pace.leave();
    griddepcontrol_launch_dependents();
  }

  /// One operand's tile from (mn, k) on, as TMA boxes: calls fetch(box, coordinate) for those that this CTA
  /// fetches. Where peers need the same tile, each of them fetches its share for all.
  template <int contiguous, OperandBoxes Boxes, class Fetch>
  TEGULA_DEVICE static void each_box(int mn, int k, int batch, Fetch fetch) {
    int const first = Boxes.peers > 1 ? cluster_cta_rank() : 0;
#pragma unroll
    for (int i = 0; i < Boxes.boxes / Boxes.peers; ++i) {
      int const box = first + i * Boxes.peers;
      int const at = mn + box * Boxes.box_mn;
      fetch(box, TmaCoordinate<3>{{contiguous == 1 ? k : at, contiguous == 1 ? at : k, batch}});
    }
  }

  template <int contiguous, OperandBoxes Boxes, class Tile>
  TEGULA_DEVICE static void fetch(TensorMap const& map, Tile const& tile, int mn, int k, int batch, int stage,
                                  SharedAddr full, Where where = Where::here()) {
    constexpr int box_bytes = Boxes.box_mn * 128;  // 128 bytes along k each, or 128 along mn for each k
    SharedAddr const base = shared_address(tile.data) + stage * (Boxes.boxes * box_bytes);
    each_box<contiguous, Boxes>(mn, k, batch, [&](int box, TmaCoordinate<3> const& from) {
      SharedAddr const to = base + box * box_bytes;
      if constexpr (Boxes.peers > 1) {
        tma_load_multicast(to, map, from, full, (1 << Boxes.peers) - 1, where);
      } else {
        tma_load(to, map, from, full, where);
      }
    });
  }

  /// What the producer loads first, into L2. (The next steps' would compete with it.)
  TEGULA_DEVICE static void prefetch_first(Params const& p, Walk const& walk) {
    int const k = step_of_k(p, split ? cluster_cta_rank() : 0) * block_k;
    each_box<contiguous_b, boxes_b>(walk.n, k, p.b_batched ? walk.batch : 0,
                                    [&](int, TmaCoordinate<3> const& from) { tma_prefetch(p.b, from); });
    each_box<contiguous_a, boxes_a>(walk.m, k, p.a_batched ? walk.batch : 0,
                                    [&](int, TmaCoordinate<3> const& from) { tma_prefetch(p.a, from); });
  }

  /// A consumer warpgroup: its tiles, or its rows of every tile.
  TEGULA_DEVICE static void consume(Params const& p, SharedStorage& smem, Ring const& ring, Turns& turns,
                                    Walk& walk, int group) {
    float tCrC[MMA_M][4 * MMA_N];  // (MMA, MMA_M): 64 x block_n a warpgroup, MMA_M times
    typename Ring::State state;
    Outlet out;
    int const rank = split ? cluster_cta_rank() : 0;
    int const steps = step_of_k(p, rank + 1) - step_of_k(p, rank);
    if (pingpong && group == 1) {  // the other consumer begins
      state.advance(steps);
      walk.next();
    }
#pragma unroll 1
    while (!walk.done()) {
      if constexpr (pingpong) turns.enter(group);
      bool const narrow = walk.narrow();
      int const last = narrow ? mainloop<narrow_mma>(smem, ring, state, steps, group, turns, tCrC)
                              : mainloop<wide_mma>(smem, ring, state, steps, group, turns, tCrC);
      walk.find();  // while the tensor core finishes
      settle(tCrC);
      ring.release(last);
      int const m = walk.m + (pingpong ? 0 : group * consumer_m);
      if constexpr (split) {
        give_away(smem, tCrC);
        mbarrier_wait_parity(shared_address(&smem.given), 0);
        float tCrD[MMA_M][4 * share];
        add_up(smem, tCrD);
        epilogue<share>(p, smem, out, m, walk.n + rank * 8 * share, walk.batch, narrow, tCrD);
      } else {
        epilogue<MMA_N>(p, smem, out, m, walk.n, walk.batch, narrow, tCrC);
      }
      walk.next(pingpong ? 2 : 1);
      if constexpr (pingpong) state.advance(steps);
    }
    out.store.drain();
  }

  /// tCrC = A B over `steps` stages of the ring, for the group's rows and Mma.n columns. The tensor core
  /// works on one stage while the next is waited for; a stage is released once the step after it has been
  /// issued and its own is done. Returns the last stage, which the last wgmma, not waited for, still read.
  template <MmaSpec Mma>
  TEGULA_DEVICE static int mainloop(SharedStorage& smem, Ring const& ring, typename Ring::State& state,
                                    int steps, int group, Turns& turns, float (&tCrC)[MMA_M][4 * MMA_N]) {
    WgmmaOperand<TileA> const sA{smem.a};  // (MMA, MMA_M, MMA_K, stages)
    WgmmaOperand<TileB> const sB{smem.b};  // (MMA, 1, MMA_K, stages)
    int const row = pingpong ? 0 : group * consumer_m;
    int previous = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      ring.wait(state);
      // The other consumer's wgmma queue up behind those of this last step.
      if (pingpong && step + 1 == steps) turns.leave(group);
      wgmma_fence();  // the registers of tCrC, before the first wgmma that uses them
#pragma unroll
      for (int k = 0; k < MMA_K; ++k) {
#pragma unroll
        for (int m = 0; m < MMA_M; ++m) {
          auto& tCrC_m =
              reinterpret_cast<float(&)[Mma.n / 2]>(tCrC[m]);  // of a narrow tile, the first of them
          wgmma<Mma>(tCrC_m, sA(row + 64 * m, k * mma_k, state.stage), sB(0, k * mma_k, state.stage),
                     step > 0 || k > 0);
        }
      }
      wgmma_commit_group();
      wgmma_wait_group<1>();  // the step before this one is done: nobody in this warp reads its stage any
                              // more
      if (step > 0) ring.release(previous);
      previous = state.stage;
      state.next();
    }
    return previous;
  }

  /// Waits for all of the warpgroup's wgmma; tCrC may be read.
  TEGULA_DEVICE static void settle(float (&tCrC)[MMA_M][4 * MMA_N]) {
    wgmma_wait_group<0>();
#pragma unroll
    for (int m = 0; m < MMA_M; ++m) wgmma_pin(tCrC[m]);
  }

  /// Sends each CTA of the cluster, this one too, its share of this CTA's sums.
  TEGULA_DEVICE static void give_away(SharedStorage& smem, float const (&tCrC)[MMA_M][4 * MMA_N]) {
    int const thread = thread_idx_here() - 128;
    int const rank = cluster_cta_rank();
#pragma unroll
    for (int cta = 0; cta < C.split_k; ++cta) {
      SharedAddr const to = mapa(shared_address(&smem.sums[rank][0][thread]), cta);
      SharedAddr const given = mapa(shared_address(&smem.given), cta);
#pragma unroll
      for (int m = 0; m < MMA_M; ++m) {
#pragma unroll
        for (int i = 0; i < share; ++i) {
          float const* const r = &tCrC[m][4 * (cta * share + i)];
          st_async(to + static_cast<int>(sizeof(smem.sums[0][0])) * (m * share + i),
                   Vector<float, 4>{r[0], r[1], r[2], r[3]}, given);
        }
      }
    }
  }

  /// The sums of all CTAs, added in the order of K, of the columns that this CTA finishes.
  TEGULA_DEVICE static void add_up(SharedStorage& smem, float (&tCrD)[MMA_M][4 * share]) {
    int const thread = thread_idx_here() - 128;
#pragma unroll
    for (int m = 0; m < MMA_M; ++m) {
#pragma unroll
      for (int i = 0; i < 4 * share; ++i) tCrD[m][i] = 0.0f;
#pragma unroll
      for (int i = 0; i < share; ++i) {
#pragma unroll
        for (int cta = 0; cta < C.split_k; ++cta) {
          auto const part =
              ld_shared<Vector<float, 4>>(shared_address(&smem.sums[cta][m * share + i][thread]));
#pragma unroll
          for (int j = 0; j < 4; ++j) tCrD[m][4 * i + j] += part.data[j];
        }
      }
    }
  }

  /// The warpgroup's rows of D from (m0, n0) on: finished in f32, rounded, and stored, 16 x store_n at a time
  /// by each warp for itself.
  template <int Groups>
  TEGULA_DEVICE static void epilogue(Params const& p, SharedStorage& smem, Outlet& out, int m0, int n0,
                                     int batch, bool narrow, float (&tCrC)[MMA_M][4 * Groups]) {
    float scale = p.alpha;
    if (p.scale_a != nullptr) scale *= ld_global<float>(p.scale_a);
    if (p.scale_b != nullptr) scale *= ld_global<float>(p.scale_b);
    // Two copies of the code: the usual one is short, and stays in the instruction cache. (One condition, not
    // three branches: so it comes next to the main loop.)
    bool const adds = (p.beta != 0.0f) | (p.bias != nullptr) | (columns_by_tma(p.n, store_unit) != p.n);
    if (adds) {
      store<Groups, true>(p, smem, out, m0, n0, batch, narrow, scale, tCrC);
    } else {
      store<Groups, false>(p, smem, out, m0, n0, batch, narrow, scale, tCrC);
    }
  }

  template <int Groups, bool Adds>
  TEGULA_DEVICE static void store(Params const& p, SharedStorage& smem, Outlet& out, int m0, int n0,
                                  int batch, bool narrow, float scale, float (&tCrC)[MMA_M][4 * Groups]) {
    int const thread = thread_idx_here() - 128;
    int const warp = thread / 32;
    int const lane = thread % 32;
#pragma unroll
    for (int m = 0; m < MMA_M; ++m) {
      int const row = m0 + 64 * m + warp % 4 * 16;
#pragma unroll
      for (int first = 0; first < Groups; first += store_n / 8) {
        int const groups = Groups - first < store_n / 8 ? Groups - first : store_n / 8;  // of 8 columns
        bool const narrower = narrow && first + groups == Groups;  // what lies beyond its edge is not stored
        int const column = n0 + 8 * first;
        float* const r = &tCrC[m][4 * first];  // (4, groups): 16 x store_n, or less, a warp
        int const buffer = C.store_buffers * warp + out.store.acquire();
        SharedAddr const piece = shared_address(smem.d.data) + buffer * piece_bytes;
#pragma unroll
        for (int i = 0; i < 4 * groups; ++i) r[i] *= scale;
        int const columns = narrower ? last_narrow_store_n : 8 * groups;
        if (Adds && p.beta != 0.0f) {
          // No column of the next tile, where D may be coming if it is C.
          TensorMap const& c = narrower ? p.c_last_narrow : groups == store_n / 8 ? p.c : p.c_last;
          out.c.load(shared_address(&smem.c[warp]), c,
                     TmaCoordinate<3>{{column, row, p.c_batched ? batch : 0}}, piece,
                     16 * columns * static_cast<int>(sizeof(Out)));
          add_c(smem.d, buffer, lane, p.beta, groups, r);
        }
        if (Adds && p.bias != nullptr) add_bias(p, column, lane, groups, r);
#pragma unroll
        for (int i = 0; i < 4 * groups; ++i) r[i] = activate<C.activation>(r[i]);
        write(smem.d, buffer, lane, groups, r);
        int const by_tma = Adds ? columns_by_tma(p.n, store_unit) : p.n;
        if (column <= by_tma && by_tma < column + columns && by_tma < p.n)
          store_last_columns(p, smem.d, buffer, lane, row, column, batch);
        if (!Adds || column < edge(by_tma)) {
          TensorMap const& d = narrower ? p.d_last_narrow : groups == store_n / 8 ? p.d : p.d_last;
          out.store.store([&] { tma_store(d, TmaCoordinate<3>{{column, row, batch}}, piece); });
        } else {
          fence_proxy_async_shared();  // the buffer is written, and C may come to it next
        }
      }
    }
  }

  /// r += beta C, of the warp's piece of C, which lies where D's will. Lanes read pairs of neighbours: two
  /// rows, 8 apart, of each group of 8 columns.
  TEGULA_DEVICE static void add_c(TileD& smem, int buffer, int lane, float beta, int groups, float* r) {
    TileAccess<TileD, pair_lanes> const s2r{smem, lane};
#pragma unroll
    for (int i = 0; i < 2 * groups; ++i) {
      auto const c = ld_shared<Vector<Out, 2>>(s2r(i % 2 * 8, i / 2 * 8, buffer));
#pragma unroll
      for (int j = 0; j < 2; ++j) r[2 * i + j] = fma(beta, to_float(c.data[j]), r[2 * i + j]);
    }
    warp::sync();  // all lanes have read: the piece may become D's
  }

  /// r += bias, from `column` on; zero beyond the end of a row of D. A lane loads one of 32 columns, and the
  /// lanes that hold that column have it from there.
  TEGULA_DEVICE static void add_bias(Params const& p, int column, int lane, int groups, float* r) {
    Out const* const bias = static_cast<Out const*>(p.bias) + column;
#pragma unroll
    for (int first = 0; first < 8 * groups; first += 32) {
      int const own = first + lane;
      float const loaded = column + own < edge(p.n) ? to_float(ld_global<Out>(bias + own)) : 0.0f;
#pragma unroll
      for (int i = first / 8; i < groups && i < first / 8 + 4; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float const b = warp::shfl(loaded, 8 * i - first + lane % 4 * 2 + j);
          r[4 * i + j] += b;
          r[4 * i + 2 + j] += b;
        }
      }
    }
  }

  /// The warp's 16 x store_n elements, rounded to Out, to its buffer.
  TEGULA_DEVICE static void write(TileD& smem, int buffer, int lane, int groups, float const* r) {
    if constexpr (sizeof(Out) == 2) {
      TileAccess<TileD, stmatrix_lanes> const r2s{smem, lane};
#pragma unroll
      for (int i = 0; i < groups / 2; ++i) {  // 16 x 16: four matrices of 8 x 8, down, then right
        float const* const x = r + 8 * i;
        stmatrix<4>(r2s(0, 16 * i, buffer), {pack_pair<Out>(x[0], x[1]), pack_pair<Out>(x[2], x[3]),
                                             pack_pair<Out>(x[4], x[5]), pack_pair<Out>(x[6], x[7])});
      }
    } else {
      TileAccess<TileD, pair_lanes> const r2s{smem, lane};
#pragma unroll
      for (int i = 0; i < 2 * groups; ++i)
        st_shared(r2s(i % 2 * 8, i / 2 * 8, buffer),
                  Vector<float, 2>{wgmma_value(r[2 * i]), wgmma_value(r[2 * i + 1])});
    }
  }

  /// The columns of the warp's piece that TMA does not store, out of its buffer.
  TEGULA_DEVICE static void store_last_columns(Params const& p, TileD& smem, int buffer, int lane, int row,
                                               int column, int batch) {
    int const m = row + lane % 16;
    Out* const d = static_cast<Out*>(p.d_address) + batch * p.d_batch_stride + m * p.ldd;
    warp::sync();  // all lanes have written the piece
    for (int n = columns_by_tma(p.n, store_unit); n < p.n; n += 2) {
      TileAccess<TileD, column_lanes> const s{smem, lane, 0, n - column};
      if (m >= edge(p.m)) continue;
      if (n + lane / 16 < edge(p.n)) st_global(d + n + lane / 16, ld_shared<Out>(s(0, 0, buffer)));
    }
  }
};

}  // namespace tegula
