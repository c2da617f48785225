#pragma once

#include <type_traits>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/grid_dependency.hpp"
#include "tegula/arch/setmaxnreg.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/clear_columns.hpp"
#include "tegula/kernel/epilogue_pieces.hpp"
#include "tegula/kernel/epilogue_rows.hpp"
#include "tegula/kernel/grouped_gemm_sm90_config.hpp"
#include "tegula/kernel/plain_products_sm90.hpp"
#include "tegula/kernel/promoted_products_sm90.hpp"
#include "tegula/pipeline/cluster_reduction.hpp"
#include "tegula/pipeline/group_tiles.hpp"
#include "tegula/pipeline/tile_queue.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/tma.hpp"
#include "tegula/tensor/vector.hpp"

namespace tegula {

/// D = A B^T + C for each group of a problem, on Hopper's tensor cores, warp-specialised and
/// persistent. A and B are K-major: of 16 bits, or of fp8 with scales for blocks of 128 of K.
///
/// With scales, the tensor core adds up 128 of K in its own accumulators, which keep 13 bits of a
/// sum of fp8 products; these are then added, times the scales of their row and column, to f32
/// accumulators in registers (docs/low_precision.md). While one consumer does that, the tensor core
/// has the other's products to work on.
///
///     producer   for each tile:  tell the consumers which it is;
///                                for each step of K:  wait until a stage is empty, fetch A, B and
///                                                     A's scales
///     consumers  for each tile:  for each step of K:  wait until a stage is full, multiply,
///                                                     release it, scale and add;
///                                then ask for the next tile and for its scales of B,
///                                and store the rows that are the group's
///
/// With split_k the CTAs of a cluster do so for a share of the steps each, and their sums are added
/// up in the order of K before they are stored.
///
/// Legend: m, g, s, r for matrices in global memory, their tiles, shared and register tensors; tC..
/// partitioned for C = A B^T.
template <GroupedGemmSm90Config C> struct GroupedGemmSm90 {
  using Params = GroupedGemmSm90Params;
  using Out = type_of<C.out>;

  static constexpr GroupedGemmSm90Config config = C;
  static constexpr int consumers = tegula::consumers(C);
  static constexpr int warps = 4 * consumers;  // of consumers
  static constexpr int threads = kWarpgroupSize * (1 + consumers);
  static constexpr int min_ctas_per_sm = C.min_ctas_per_sm;
  static constexpr bool programmatic_dependent_launch = true;  // by griddepcontrol_wait
  static constexpr Dim3 cluster = {cluster_size(C), 1, 1};
  static constexpr int peers = C.cluster_m * C.cluster_n;  // CTAs that share A or B
  static constexpr int stages = tegula::stages(C);
  static constexpr int bytes = stage_bytes(C);
  static constexpr int block_k = tegula::block_k(C);
  static constexpr int bits_of_a = bits(C.a);
  static constexpr int wave_m = tegula::wave_m(C);
  static constexpr int waves = tegula::waves(C);
  static constexpr bool scaled = C.scales != Scales::none;
  static constexpr bool column_scales = C.scales == Scales::rows_by_rows;
  static constexpr bool split = C.split_k > 1;
  static constexpr bool k_groups = computes_groups_of_k(C);
  static_assert(stages >= 2 && C.block_m % wave_m == 0 && C.block_n % 16 == 0);
  static_assert(!column_scales || C.block_n % 32 == 0, "scales of B of a stage begin at 128 bytes");
  static_assert(C.cluster_m == 1 || C.cluster_n == 1, "a cluster shares one operand");
  static_assert(!split || (peers == 1 && waves == 1), "the CTAs of a cluster share one tile's K");
  static_assert(!scaled || block_k == kScaleBlock, "a stage's elements of a row share a scale");

  using TileA = SharedTile<type_of<C.a>, a_tile(C, stages)>;  // (block_m, block_k, stages)
  using TileB = SharedTile<type_of<C.b>, b_tile(C, stages)>;  // (block_n, block_k, stages)
  using CopyA = TmaCopy<a_fetch(C)>;
  using CopyB = TmaCopy<b_fetch(C)>;
  static constexpr int scale_slot = tegula::scale_slot(C);
  template <int Extent>
  using ScaleTile = SharedTile<float, layout(tuple(Extent, stages), tuple(1, Extent))>;
  struct NoScales {};
  using ScalesA = std::conditional_t<scaled, ScaleTile<waves * scale_slot>, NoScales>;
  using ScalesB = std::conditional_t<column_scales, ScaleTile<C.block_n>, NoScales>;
  using Ring = TmaPipeline<stages, warps, C.cluster_m, C.cluster_n>;
  using WorkTiles = GroupTileIterator<cluster_rows(C)>;
  /// What the producer tells the consumers of a tile.
  struct Told {
    GroupTile tile;
    int is_end = 0;  ///< 1: there are no more
  };
  using Tiles = TileQueue<2, warps, Told>;

  /// The product of one wave of rows, of N columns.
  template <int N>
  using MmaOf =
      TiledMma<TiledMmaSpec{warpgroup_mma(C.a, C.b, DType::f32, N), wave_m, N, consumers}>;
  using Mma = MmaOf<C.block_n>;
  using Accumulator = typename Mma::Accumulator;  // (MMA, 1, 1)
  /// With split_k, the sums of the CTAs of a cluster, of which each finishes some columns.
  static constexpr int share_n = epilogue_n(C);
  struct NoReduction {
    struct Tile {};
    struct Barriers {};
  };
  using Reduction =
      std::conditional_t<split,
                         ClusterReduction<Accumulator, typename MmaOf<share_n>::Accumulator,
                                          C.split_k, kWarpgroupSize * consumers>,
                         NoReduction>;
  using Epilogue = PieceEpilogue<tegula::epilogue(C), Mma, waves>;
  struct NoPieces {};
  using Pieces = std::conditional_t<split, NoPieces, typename Epilogue::Tile>;
  // Named barriers: 1 is that of both consumers.
  static constexpr int first_store_barrier = 2;
  static constexpr sim::Limits limits = {.bank_conflicts = bits(C.out) == 32 ? 2 : 0};

  struct SharedStorage {
    TileA a;
    TileB b;
    ScalesA scale_a;
    ScalesB scale_b;
    Pieces d;
    typename Ring::Storage ring;
    typename Tiles::Storage tiles;
    typename Reduction::Barriers reduction;
    typename Reduction::Tile sums;

    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      if constexpr (scaled) name("scales of A", scale_a);
      if constexpr (column_scales) name("scales of B", scale_b);
      if constexpr (!split) name("D", d);
      name("full", ring.full);
      name("empty", ring.empty);
      tiles.name_buffers(name);
      if constexpr (split) {
        name("sums", sums);
        name("ready", reduction.ready);
        name("given", reduction.given);
      }
    }
  };
  static_assert(sizeof(SharedStorage) <= (228 / C.min_ctas_per_sm - 1) * 1024);
  static_assert(C.min_ctas_per_sm == 1 || consumers == 1, "registers are moved for one CTA an SM");

  // Registers move from the producer to the consumers: two are launched with 168 each.
  static constexpr bool moves_registers = consumers == 2;
  static constexpr int producer_registers = 40;
  static constexpr int consumer_registers = 232;

  static constexpr char const* role(int warp) {
    constexpr char const* names[] = {"producer", "consumer 0", "consumer 1"};
    return names[warp / 4];
  }
  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) {
    return {p.clusters * cluster.x, 1, 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const warp = warp::shfl(warp_id(), 0);  // known to be the same in all lanes
    Ring const ring{smem.ring};
    if (thread_idx() == 32) {  // of a warp that has nothing else to do
      prefetch_tensor_map(p.a);
      prefetch_tensor_map(p.b);
      if constexpr (scaled) prefetch_tensor_map(p.scale_a);
      if constexpr (column_scales) prefetch_tensor_map(p.scale_b);
      if constexpr (!split) prefetch_tensor_map(p.d);
    }
    if (thread_idx() == 128) {
      ring.init();
      Tiles{smem.tiles}.init();
      if constexpr (split) Reduction::init(smem.reduction);
      fence_mbarrier_init();
    }
    griddepcontrol_wait();  // the launch before this one has written A, B, C, scales and groups
    WorkTiles work = warp == 0 ? work_of(p) : WorkTiles::none(p.tiles);
    // What TMA loads first is on its way from memory to L2 while the cluster meets.
    if (warp == 0 && !work.done() && warp::elect_one()) prefetch_first(p, own(work.tile));
    meet_cluster();  // the barriers are known to all who use them, in every CTA

    if (warp / 4 != 0) {
      if constexpr (moves_registers) setmaxnreg_inc<consumer_registers>();
      consume(p, smem, ring, warp / 4 - 1);
    } else {
      if constexpr (moves_registers) setmaxnreg_dec<producer_registers>();
      if (warp == 0) produce(p, smem, ring, work);
    }
  }

 private:
  using Products = std::conditional_t<scaled, PromotedProductsSm90<GroupedGemmSm90>,
                                      PlainProductsSm90<GroupedGemmSm90>>;
  friend Products;

  TEGULA_DEVICE static WorkTiles work_of(Params const& p) {
    return WorkTiles{p.tiles, static_cast<int>(block_idx().x / cluster.x), p.clusters};
  }
  /// Which of the CTAs that share B this is, and which of those that share A.
  TEGULA_DEVICE static int rank_m() { return C.cluster_m > 1 ? cluster_cta_rank() : 0; }
  TEGULA_DEVICE static int rank_n() { return C.cluster_n > 1 ? cluster_cta_rank() : 0; }
  /// The CTA's rows of a cluster's tile: maybe none that are the group's.
  TEGULA_DEVICE static GroupTile own(GroupTile tile) {
    tile.m += rank_m() * C.block_m;
    return tile;
  }
  /// The first column of the CTA's tile.
  TEGULA_DEVICE static int first_column(GroupTile const& tile) {
    return (tile.n * C.cluster_n + rank_n()) * C.block_n;
  }
  /// Whether TMA can load the group's columns: they begin at a multiple of 16 bytes.
  TEGULA_DEVICE static bool addressable(GroupTile const& tile) {
    return tile.k % (128 / bits_of_a) == 0;
  }
  /// The steps of K that the CTA adds up: all of a tile's, or with split_k its share of them.
  struct Steps {
    int first, last;
    TEGULA_DEVICE int count() const { return last - first; }
  };
  TEGULA_DEVICE static Steps steps_of(GroupTile const& tile) {
    int const steps = addressable(tile) ? ceil_div(tile.k_end - tile.k, block_k) : 0;
    if constexpr (!split) return {0, steps};
    int const share = cluster_cta_rank();
    return {steps * share / C.split_k, steps * (share + 1) / C.split_k};
  }

  /// The scales of one wave of A's rows.
  TEGULA_DEVICE static SharedAddr scales_of_a(SharedStorage& smem, int stage, int wave) {
    return shared_address(smem.scale_a.data) + 4 * scale_slot * (waves * stage + wave);
  }

  /// The producer, a warp, one thread of which issues the copies.
  TEGULA_DEVICE static void produce(Params const& p, SharedStorage& smem, Ring const& ring,
                                    WorkTiles& work) {
    typename Ring::State state;
    Tiles tiles{smem.tiles};
    for (; !work.done(); work.next()) {
      GroupTile const tile = own(work.tile);
      Steps const steps = steps_of(tile);
      if (warp::elect_one()) {
        tiles.put({.tile = tile});
        fetch(p, smem, ring, state, tile, steps);
      }
      state.advance(steps.count());
      warp::sync();
    }
    if (warp::elect_one()) {
      griddepcontrol_launch_dependents();
      tiles.put({.is_end = 1});
      // No CTA ends while its peer may still arrive at its barriers. (What the peer loads has been
      // waited for.)
      if constexpr (peers > 1) ring.drain(state);
    }
  }

  /// A tile's operands in global memory: (block_m, block_k, steps), ...
  TEGULA_DEVICE static auto tiles_of_a(Params const& p, GroupTile const& tile) {
    auto const mA = tma_tensor<1, 0, 2>(p.a)(_, _, 0);
    return local_tile<C.block_m, block_k>(domain_offset(mA, tile.m, tile.k), 0, _);
  }
  /// ... and (block_n, block_k, steps).
  TEGULA_DEVICE static auto tiles_of_b(Params const& p, GroupTile const& tile) {
    auto const mB = tma_tensor<1, 0, 2>(p.b)(_, _, group_of_b(p, tile));
    return local_tile<C.block_n, block_k>(domain_offset(mB, first_column(tile), tile.k), 0, _);
  }
  /// Which of the tensor's matrices B is: groups of k are columns of one.
  TEGULA_DEVICE static int group_of_b(Params const& p, GroupTile const& tile) {
    return p.tiles.grouping == Grouping::k ? 0 : tile.group;
  }

  /// What an operand's part that this CTA loads comes by: that of the peers that share it.
  TEGULA_DEVICE static CopyA copy_a() { return {rank_n()}; }
  TEGULA_DEVICE static CopyB copy_b() { return {rank_m()}; }

  /// What the producer loads first, into L2.
  TEGULA_DEVICE static void prefetch_first(Params const& p, GroupTile const& tile) {
    Steps const steps = steps_of(tile);
    if (steps.count() == 0) return;
    prefetch(copy_b(), tiles_of_b(p, tile)(_, _, steps.first));
    prefetch(copy_a(), tiles_of_a(p, tile)(_, _, steps.first));
  }

  /// Has TMA load a tile's operands, step by step.
  TEGULA_DEVICE static void fetch(Params const& p, SharedStorage& smem, Ring const& ring,
                                  typename Ring::State state, GroupTile const& tile, Steps steps) {
    int const n = first_column(tile), group = group_of_b(p, tile);
    auto const gA = tiles_of_a(p, tile);
    auto const gB = tiles_of_b(p, tile);
    CopyA const g2sA = copy_a();
    CopyB const g2sB = copy_b();
    auto const sA = tensor(smem.a);  // (block_m, block_k, stages)
    auto const sB = tensor(smem.b);  // (block_n, block_k, stages)
#pragma unroll 1
    for (int k = steps.first; k < steps.last; ++k) {
      SharedAddr const full = ring.acquire(state, bytes);
      copy(g2sA, gA(_, _, k), sA(_, _, state.stage), full);
      copy(g2sB, gB(_, _, k), sB(_, _, state.stage), full);
      int const block = tile.k_block + k;
      if constexpr (scaled) {
#pragma unroll
        for (int wave = 0; wave < waves; ++wave)
          tma_load(scales_of_a(smem, state.stage, wave), p.scale_a,
                   TmaCoordinate{tile.m - tile.m % 4 + wave * wave_m, block, 0}, full);
      }
      if constexpr (column_scales)
        tma_load(shared_address(smem.scale_b.data) + 4 * C.block_n * state.stage, p.scale_b,
                 TmaCoordinate{n, block, group}, full);
      state.next();
    }
  }

  /// A consumer warpgroup: its rows of every tile.
  TEGULA_DEVICE static void consume(Params const& p, SharedStorage& smem, Ring const& whole_ring,
                                    int group) {
    Ring const ring = whole_ring.kept();
    Accumulator tCrC[waves];
    typename Ring::State state;
    int const thread = kWarpgroupSize * group + thread_idx_here() % kWarpgroupSize;
    Products const products{p, smem, ring, thread};
    Tiles tiles{smem.tiles};
    End end{p, smem, thread};
    Told told = next_of(tiles);
    auto scales =
        products.scales_of(told.tile, first_column(told.tile), steps_of(told.tile), state);
#pragma unroll 1
    while (!is_end(told)) {
      GroupTile const tile = told.tile;
      end.begin();
      accumulate(ring, state, products, tile, scales, computes_rows(p, tile, group), tCrC);
      // Asked for before the store, under which they come from L2 or memory.
      told = next_of(tiles);
      scales = products.scales_of(told.tile, first_column(told.tile), steps_of(told.tile), state);
      end.store(tCrC, tile);
    }
    end.drain();
  }

  /// The next tile that the producer tells. By all lanes of a warp.
  TEGULA_DEVICE static Told next_of(Tiles& tiles) {
    Told const told = tiles.get();
    tiles.release();
    return told;
  }
  /// A vote: so the compiler knows that all lanes agree, and what follows from that.
  TEGULA_DEVICE static bool is_end(Told const& told) { return warp::any(told.is_end != 0); }

  /// Whether a consumer multiplies: where any of its rows of the tile are the group's. (What comes
  /// by multicast is a copy of the CTA's own, which somebody must read; and at the end of a group
  /// of k both consumers clear a stage.)
  TEGULA_DEVICE static bool computes_rows(Params const& p, GroupTile const& tile, int consumer) {
    if (peers > 1 || (k_groups && p.tiles.grouping == Grouping::k)) return true;
    return tile.m + kWgmmaM * consumer < tile.m_end;
  }

  /// tCrC = the CTA's share of the tile's sum: NaN where TMA cannot load the group's columns, and
  /// zeros where none of the rows count, which leaves the tensor core to the other consumer.
  TEGULA_DEVICE static void accumulate(Ring const& ring, typename Ring::State& state,
                                       Products const& products, GroupTile const& tile,
                                       auto const& scales, bool computes,
                                       Accumulator (&tCrC)[waves]) {
    Steps const steps = steps_of(tile);
    fill(tCrC, 0.0f);
    if (computes) {
      products.add_to(tCrC, state, tile, first_column(tile), steps, scales);
    } else {
#pragma unroll 1
      for (int step = steps.first; step < steps.last; ++step) {
        ring.wait(state);
        warp::sync();  // all lanes have seen the stage full
        ring.release(state.stage);
        state.next();
      }
    }
    if constexpr (k_groups) {
      if (!addressable(tile)) fill(tCrC, __builtin_nanf(""));
    }
  }

  /// Stores a tile, piece by piece, under the next one's products.
  struct WholeEnd {
    Epilogue epilogue;
    TEGULA_DEVICE WholeEnd(Params const& p, SharedStorage& smem, int thread)
        : epilogue(p, smem.d, thread, first_store_barrier) {}
    TEGULA_DEVICE void begin() const {}
    TEGULA_DEVICE void store(Accumulator (&tCrC)[waves], GroupTile const& tile) {
      epilogue.store(tCrC, tile.group, tile.m, tile.m_end, first_column(tile));
    }
    TEGULA_DEVICE void drain() const { epilogue.drain(); }
  };
  /// With split_k: adds up the sums of the cluster's CTAs, of which this one stores some columns.
  struct SharedEnd {
    Params const& p;
    SharedStorage& smem;
    int thread, turn = 0;
    TEGULA_DEVICE SharedEnd(Params const& params, SharedStorage& storage, int number)
        : p(params), smem(storage), thread(number) {}
    TEGULA_DEVICE Reduction sums() const { return {smem.sums, smem.reduction, thread}; }
    TEGULA_DEVICE void begin() const {
      if (turn > 0) sums().leave();
    }
    TEGULA_DEVICE void store(Accumulator (&tCrC)[waves], GroupTile const& tile) {
      Reduction const all = sums();
      all.wait_ready(turn);
      all.give(tCrC[0]);
      all.wait(turn);
      auto tCrD = all.reduce(tCrC[0]);
      RowEpilogue<Out, Mma>{p.out, tile.group, thread}.store(
          tCrD, tile.m, tile.m_end, first_column(tile) + cluster_cta_rank() * share_n);
      ++turn;
    }
    TEGULA_DEVICE void drain() const {}
  };
  using End = std::conditional_t<split, SharedEnd, WholeEnd>;

  /// Whether a step reads beyond the K of the group, what lies there being another group's.
  TEGULA_DEVICE static bool ends_early(Params const& p, GroupTile const& tile, int step) {
    return k_groups && p.tiles.grouping == Grouping::k &&
           tile.k + (step + 1) * block_k > tile.k_end && tile.k_end < p.tiles.depth;
  }

  /// Zeros in the stage's A and B behind the group's K: a factor of each product alone would not
  /// do, for what lies there may be no number. By both consumers, each a part of the rows.
  TEGULA_DEVICE static void clear_beyond(SharedStorage& smem, int stage, GroupTile const& tile,
                                         int step, int thread) {
    constexpr int all = kWarpgroupSize * consumers;
    int const first = tile.k_end - tile.k - step * block_k;
    auto const sA = tensor(smem.a)(_, _, stage);
    auto const sB = tensor(smem.b)(_, _, stage);
    int const warp = thread / kWarpSize;
    clear_columns<type_of<C.a>>(sA, C.block_m, block_k, first, warp, warps);
    clear_columns<type_of<C.b>>(sB, C.block_n, block_k, first, warp, warps);
    fence_proxy_async_shared();  // these writes, before the wgmma that read them ...
    cta::bar_sync(1, all);       // ... in both consumers
  }

  TEGULA_DEVICE static void fill(Accumulator (&tCrC)[waves], float value) {
#pragma unroll
    for (int wave = 0; wave < waves; ++wave) {
#pragma unroll
      for (int i = 0; i < Accumulator::size; ++i) tCrC[wave](i) = value;
    }
  }

  /// Every thread of the cluster has come here.
  TEGULA_DEVICE static void meet_cluster(SourceLocation where = SourceLocation::current()) {
    if constexpr (peers > 1 || split) {
      tegula::cluster::arrive_relaxed(where);
      tegula::cluster::wait(where);
    } else {
      cta::sync(where);
    }
  }
};

}  // namespace tegula
