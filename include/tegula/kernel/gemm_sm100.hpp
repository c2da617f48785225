#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/dim3.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/grid_dependency.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/epilogue_sm90.hpp"
#include "tegula/kernel/gemm_cluster.hpp"
#include "tegula/kernel/gemm_operand_tiles.hpp"
#include "tegula/kernel/gemm_sm100_config.hpp"
#include "tegula/kernel/group_ends_sm100.hpp"
#include "tegula/kernel/group_epilogue_sm100.hpp"
#include "tegula/kernel/grouped_gemm_sm100_config.hpp"
#include "tegula/pipeline/group_work_tiles.hpp"
#include "tegula/pipeline/launched_tiles.hpp"
#include "tegula/pipeline/tensor_memory_pipeline.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/pipeline/work_tiles.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/tensor_memory.hpp"
#include "tegula/tensor/tensor_memory_scaled.hpp"
#include "tegula/tensor/tiled_mma.hpp"
#include "tegula/tensor/tma.hpp"

namespace tegula {

namespace detail {
/// What lies in shared memory for the scales of stages: pieces of A's, and of B's.
template <int Stages, int PiecesA, int PiecesB> struct ScaleStages {
  alignas(128) std::uint8_t scale_a[Stages][PiecesA * kScalePieceBytes];
  alignas(128) std::uint8_t scale_b[Stages][PiecesB * kScalePieceBytes];
  template <class F> void name_scales(F&& name) {
    name("scales of A", scale_a);
    name("scales of B", scale_b);
  }
};
template <int Stages> struct ScaleStages<Stages, 0, 0> {
  template <class F> void name_scales(F&&) {}
};
/// The type of a tile's elements: of those of less than 8 bits a byte, which is a pair, or one.
template <DType D, bool OfBytes = (bits(D) < 8)> struct TileElementOf { using Type = type_of<D>; };
template <DType D> struct TileElementOf<D, true> { using Type = std::uint8_t; };
}  // namespace detail

/// Warp-specialised persistent GEMM on Blackwell's tensor cores:
/// D = activation(alpha scale_a scale_b A B + beta C + bias), accumulated in f32 in tensor memory.
///
/// Three roles walk the same list of tiles:
///
///     load      (a thread of warp 0)  for each tile, each step of K:  wait until a stage of shared
///                                     memory is empty, fetch A and B into it
///     multiply  (a thread of warp 1)  for each tile:  wait until accumulators are empty;
///                                     for each step of K:  wait until a stage is full, multiply,
///                                     have it given back when that is done
///     epilogue  (warps 4 to 7)        for each tile:  wait until accumulators are full, load them
///                                     from tensor memory, give them back, finish and store them
///                                     (epilogue_sm90.hpp)
///
/// There are accumulators for two tiles, so the epilogue of one lies under the main loop of the
/// next; or for one, where the scales of tiles of 256 columns leave no more room.
///
/// Of a pair of CTAs (C.ctas) the even one multiplies, for both: its barriers say when the stages
/// of both are full, and when the accumulators of both are empty; its commits tell both. Each CTA
/// loads half of the operands, and stores its 128 rows of D.
///
/// In a cluster of several CTAs, or pairs, those beside each other along n read the same rows of A,
/// and those along m the same columns of B: each loads a part of the stage for all of them. So who
/// multiplies has a stage given back to all that load into it (gemm_cluster.hpp).
///
/// With C.launched the grid has a cluster for each tile, and a thread of warp 3 asks for those that
/// have not started (launched_tiles.hpp).
///
/// With block scales a stage has those of its elements, too: `multiply` has them copied to columns
/// of tensor memory that are the stage's own, before the products that read them. So nobody writes
/// over scales that products may still read. Each CTA of a pair has the scales of its own rows of
/// A, and of all of B's.
///
/// With C.grouped the tiles are those of groups (group_tiles.hpp): whole warps walk them, one lane
/// of which loads, or multiplies. D goes from registers to the rows that are the group's. Behind
/// the end of a group of k a stage is cleared (group_ends_sm100.hpp).
///
/// Legend: g, s, t, r for tiles in global memory, shared, tensor and register memory; tC..
/// partitioned for C = A B^T.
template <GemmSm100Config C> struct GemmSm100 {
  static constexpr GemmSm100Config config = C;
  static constexpr int threads = 256;
  static constexpr int min_ctas_per_sm = 1;
  static constexpr Dim3 cluster = {cluster_size(C), 1, 1};
  using Cluster = GemmCluster<cluster_of(C), a_fetch(C), b_fetch(C)>;
  static constexpr bool cluster_launch_control = C.launched;
  // By griddepcontrol_wait; of a grid whose clusters may never start, nothing says when it is over.
  static constexpr bool programmatic_dependent_launch = !C.launched;
  static constexpr int stages = tegula::stages(C);
  static constexpr int block_k = tegula::block_k(C);
  static constexpr int block_n = C.block_n;
  static constexpr int accumulators = tegula::accumulators(C);  // tiles of them
  static constexpr int columns = tensor_columns(C);             // of tensor memory
  static constexpr int pieces = scale_pieces(C);                // of scales along k, of a stage
  static constexpr int scale_rows = scale_rows_b(C);            // and times 128 rows of B
  static constexpr int scale_bytes = tegula::scale_bytes(C), of_stage = scale_columns_of_stage(C);
  static constexpr bool scaled = pieces > 0;
  static constexpr int per_column = block_k / tegula::tile_k(C);     // elements of K: of e2m1 two
  static constexpr int piece_k = kScalePieceScales * C.scale.block;  // of K that share a piece
  /// gemm_sm90's, whose clusters are CTAs or pairs here, and do not meet in lockstep.
  using Params =
      std::conditional_t<C.grouped, GroupedGemmSm100Params,
                         std::conditional_t<scaled, ScaledGemmSm100Params, GemmSm90Params>>;
  static constexpr int first_scale = scale_column(C, 0);  // in tensor memory
  static_assert(stages >= 2 && columns <= kTensorColumns);
  static_assert(Cluster::one_group || (!C.grouped && !scaled), "scales and groups are not shared");
  static_assert(!C.grouped ||
                (!C.launched && !C.activates && C.a_major == Major::k && C.b_major == Major::k));
  static_assert(!scaled || (block_n % 128 == 0 && C.a_major == Major::k && C.b_major == Major::k));

  using ElementA = typename detail::TileElementOf<C.a>::Type;
  using ElementB = typename detail::TileElementOf<C.b>::Type;
  using TileA = SharedTile<ElementA, a_tile(C, stages)>;  // (block_m, tile_k, stages)
  using TileB = SharedTile<ElementB, b_tile(C, stages)>;  // (block_n / ctas, tile_k, stages)
  using CopyA = typename Cluster::CopyA;
  using CopyB = typename Cluster::CopyB;
  using Operands = GemmOperandTiles<operands(C), tile_k(C)>;
  /// A stage is given back by a tcgen05_commit of each CTA, or pair, that it has parts for; of
  /// groups of k by an arrival, too.
  using Ring = TmaPipeline<stages, 1, cluster_of(C).groups_m(), cluster_of(C).n>;
  using Ends = GroupEnds<C>;
  using Results = TensorMemoryPipeline<accumulators, 4, C.ctas>;
  // Answers are read by who asks, who loads, four warps that store; in one CTA of a pair by who
  // multiplies.
  using Launches = LaunchPipeline<2, cluster_size(C), 6, cluster_size(C) / C.ctas>;
  using WorkTiles =
      std::conditional_t<C.grouped, GroupWorkTiles<work_tiles(C)>,
                         std::conditional_t<C.launched, LaunchedTiles<work_tiles(C), Launches>,
                                            WorkTileIterator<work_tiles(C)>>>;
  /// Of operands with scales, those of bytes that lie as theirs.
  using Mma = TensorMemoryMma<tensor_memory_mma(
      bits(C.a) < 8 ? DType::e4m3 : C.a, bits(C.b) < 8 ? DType::e4m3 : C.b, DType::f32,
      C.ctas* C.block_m, block_n, C.a_major, C.b_major, MmaOperands::ss, C.ctas)>;
  static constexpr ScaledMmaSpec scaled_spec =
      scaled ? scaled_mma(C.a, C.b, C.scale.type, C.scale.block, block_n, C.ctas) : ScaledMmaSpec{};
  /// A lane's accumulators of 16 rows a warp, in the order that the epilogue takes: (MMA, 1, 1).
  using Accumulator = typename TiledMma<TiledMmaSpec{
      warpgroup_mma(DType::bf16, DType::bf16, DType::f32, block_n), kWgmmaM, block_n}>::Accumulator;
  /// Who holds what of a warp's 16 rows, as mma.sync's accumulators lie.
  using WarpMma = TiledMma<TiledMmaSpec{warp_mma(DType::bf16, DType::f32, 16), 16, block_n}>;
  using Epilogue = std::conditional_t<C.grouped, GroupEpilogueSm100<type_of<C.out>, WarpMma>,
                                      EpilogueSm90<tegula::epilogue(C)>>;
  // As gemm_sm90's; of groups nothing of D lies in shared memory.
  static constexpr sim::Limits limits = {.bank_conflicts = C.grouped           ? 0
                                                           : bits(C.out) == 32 ? 2
                                                                               : 1};

  struct None {};
  struct SharedStorage : detail::ScaleStages<stages, pieces, scale_rows * pieces> {
    using ElementA = GemmSm100::ElementA;
    using ElementB = GemmSm100::ElementB;
    TileA a;
    TileB b;
    typename Epilogue::Tile d;
    typename Ring::Storage ring;
    typename Results::Storage results;
    typename Epilogue::Barriers epilogue;
    TensorAddr tmem;
    std::conditional_t<C.launched, typename Launches::Storage, None> launches;
    std::conditional_t<C.grouped, typename Ends::Storage, None> ends;

    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      this->name_scales(name);
      if constexpr (!C.grouped) name("D", d);
      name("full", ring.full);
      name("empty", ring.empty);
      name("tile_full", results.full);
      name("tile_empty", results.empty);
      if constexpr (!C.grouped) name("C", epilogue.c);
      name("tmem", tmem);
      if constexpr (C.launched) {
        name("answers", launches.answer);
        name("answer_full", launches.full);
        name("answer_empty", launches.empty);
      }
      if constexpr (C.grouped && C.ctas > 1) ends.name_buffers(name);
    }
  };
  static_assert(sizeof(SharedStorage) <= 227 * 1024);

  static constexpr char const* role(int warp) {
    if (warp == 3 && C.launched) return "ask";
    return warp == 0 ? "load" : warp == 1 ? "multiply" : warp < 4 ? "idle" : "epilogue";
  }
  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) {
    return {p.schedule.clusters * cluster.x, 1, 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const warp = warp::shfl(warp_id(), 0);  // the same in all lanes
    Ring const ring{smem.ring};
    Results const results{smem.results, Cluster::first_of_group()};
    SharedAddr const tmem_at = shared_address(&smem.tmem);
    if (thread_idx() == 32) {
      prefetch_tensor_map(p.problem.a);
      prefetch_tensor_map(p.problem.b);
      if constexpr (scaled) {
        prefetch_tensor_map(p.scale_a);
        prefetch_tensor_map(p.scale_b);
      }
      Epilogue::prefetch_maps(p.epilogue);
    }
    if (warp == 2) {
      tcgen05_alloc<columns, C.ctas>(tmem_at);
      tcgen05_relinquish_alloc_permit<C.ctas>();
    }
    if (thread_idx() == 128) {
      if constexpr (C.grouped) {
        ring.init(Ends::arrivals(p.schedule.tiles));
        Ends{smem.ends}.init();
      } else {
        ring.init();
      }
      results.init();
      Epilogue::init(smem.epilogue);
      if constexpr (C.launched) Launches{smem.launches}.init();
      fence_mbarrier_init();
    }
    meet();  // the barriers and the address of tensor memory are known to all
    TensorAddr const tmem = ld_shared<TensorAddr>(tmem_at);
    if constexpr (C.grouped) {
      griddepcontrol_wait();  // the launch before this one has written A, B, C and the groups
      WorkTiles work{p.schedule.tiles, p.schedule.clusters};
      walk(p, smem, ring, results, tmem, work, warp);
    } else if constexpr (C.launched) {
      Launches const launches{smem.launches};
      WorkTiles work{p.schedule.tiling, launches, warp >= 4};
      walk(p, smem, ring, results, tmem, work, warp);
    } else {
      WorkTiles work{p.schedule.tiling, p.schedule.clusters, p.schedule.initial_tiles};
      walk(p, smem, ring, results, tmem, work, warp);
    }
    meet();  // nobody uses tensor memory any more
    if (warp == 2) tcgen05_dealloc<columns, C.ctas>(tmem);
  }

 private:
  /// Each warp in its role, through all tiles.
  TEGULA_DEVICE static void walk(Params const& p, SharedStorage& smem, Ring const& ring,
                                 Results const& results, TensorAddr tmem, WorkTiles& work,
                                 int warp) {
    if (warp >= 4) {
      store(p, smem, results, tmem, work);
    } else if (warp < (C.launched ? 4 : 2)) {
      bool const leads = warp::elect_one();
      if (leads || C.grouped) {  // the tiles of groups are found by all lanes together
        if (warp == 0) {
          load(p, smem, ring, work, leads);
        } else if (warp == 1) {
          if (Cluster::in_group() == 0) {
            multiply(p, smem, ring, results, tmem, work, leads);
          } else if constexpr (C.grouped && C.ctas > 1) {
            clear_as_peer(p, smem, ring, work);
          }
        } else if constexpr (C.launched) {
          if (warp == 3) work.ask_for_all();
        }
      }
      warp::sync();  // the lanes that do nothing wait here
    }
  }

  /// All threads of the cluster.
  TEGULA_DEVICE static void meet(SourceLocation where = SourceLocation::current()) {
    if constexpr (cluster.x == 1) {
      cta::sync(where);
    } else {
      tegula::cluster::sync(where);
    }
  }
  /// Waits for an empty stage, for so many bytes of the CTA, or of both. Returns the barrier that
  /// its loads complete on.
  TEGULA_DEVICE static SharedAddr acquire(Ring const& ring, typename Ring::State const& state,
                                          int bytes,
                                          SourceLocation where = SourceLocation::current()) {
    if constexpr (C.ctas == 1) {
      return ring.acquire(state, bytes, where);
    } else {
      return ring.acquire_of_pair(state, bytes, where);
    }
  }

  /// Steps of K of a tile, at least one: those beyond K add zeros. Of a group those of its own K,
  /// or none where it has no K, or one that it cannot load.
  TEGULA_DEVICE static int steps_of(Params const& p, WorkTiles const& work) {
    if constexpr (C.grouped) {
      GroupTile const& tile = work.tile();
      return addressable(p, tile) ? ceil_div(tile.k_end - tile.k, block_k) : 0;
    } else {
      int const steps = (p.problem.k + block_k - 1) / block_k;
      return steps < 1 ? 1 : steps;
    }
  }
  /// Whether TMA can load the group's columns, which begin at a multiple of 16 bytes, or its
  /// scales, whose rows and columns begin with a piece of them. A pair of e2m1 is one group's.
  TEGULA_DEVICE static bool addressable(Params const& p, GroupTile const& tile) {
    if constexpr (!scaled) {
      return tile.k % (128 / bits(C.a)) == 0;
    } else {
      if (p.schedule.tiles.grouping == Grouping::k)
        return tile.k % piece_k == 0 && tile.k_end % per_column == 0;
      return p.problem.a_batched || tile.m % kScalePieceRows == 0;
    }
  }
  /// Where the tile's operands begin: of masked groups, each in a matrix A of its own.
  TEGULA_DEVICE static WorkTilePlace operands_of(Params const& p, WorkTiles const& work) {
    int m = work.m;
    if constexpr (C.grouped) m -= p.problem.a_batched ? work.batch * p.schedule.tiles.rows : 0;
    return {m, work.n, work.batch};
  }
  /// Along k, the first piece of scales of the tile's group.
  TEGULA_DEVICE static int first_piece_of(WorkTiles const& work) {
    if constexpr (C.grouped && scaled) return work.tile().k / piece_k;
    return 0;
  }
  /// Tiles of an operand, (mn, tile_k, steps), from the first column of the tile's group on.
  template <class T> TEGULA_DEVICE static auto of_group(T const& g, WorkTiles const& work) {
    if constexpr (C.grouped) {
      return domain_offset(g, 0, work.tile().k / per_column, 0);
    } else {
      return g;
    }
  }

  /// The scales of a step, from piece `k` on, into a stage; beyond the last, zeros.
  TEGULA_DEVICE static void load_scales(Params const& p, SharedStorage& smem, WorkTilePlace at,
                                        int k, int stage, SharedAddr full,
                                        SourceLocation where = SourceLocation::current()) {
    auto const load_one = [&](TensorMap const& scales, int row, bool batched, void const* to) {
      tma_load<4, L2Hint::none, C.ctas>(shared_address(to), scales,
                                        {0, 2 * k, row / kScalePieceRows, batched ? at.batch : 0},
                                        full, where);
    };
    load_one(p.scale_a, at.m, p.problem.a_batched, smem.scale_a[stage]);
    load_one(p.scale_b, at.n, p.problem.b_batched, smem.scale_b[stage]);
  }

  /// The thread that leads: every tile's steps of K, each into the next stage of the ring.
  TEGULA_DEVICE static void load(Params const& p, SharedStorage& smem, Ring const& ring,
                                 WorkTiles& work, bool leads) {
    // The launch before this one has written A, B, C.
    if constexpr (!C.grouped) griddepcontrol_wait();
    typename Ring::State state;
    CopyA const g2sA = Cluster::copy_a();
    CopyB const g2sB = Cluster::copy_b();
    int const own_n = Cluster::in_group() * (block_n / C.ctas);  // of B's rows

    auto const sA = tensor(smem.a);  // (block_m, tile_k, stages)
    auto const sB = tensor(smem.b);  // (block_n / ctas, tile_k, stages)
    while (!work.done()) {
      WorkTilePlace const tile = operands_of(p, work), own = {tile.m, tile.n + own_n, tile.batch};
      auto const gA = of_group(Operands::a(p.problem, own), work);  // (block_m, tile_k, steps)
      // (block_n / ctas, tile_k, steps)
      auto const gB = of_group(Operands::b(p.problem, own), work);
      int const steps = leads ? steps_of(p, work) : 0, first_piece = first_piece_of(work);
#pragma unroll 1
      for (int k = 0; k < steps; ++k) {
        SharedAddr const full =
            acquire(ring, state, C.ctas * (CopyA::bytes + CopyB::bytes + scale_bytes));
        if constexpr (scaled)
          load_scales(p, smem, tile, first_piece + pieces * k, state.stage, full);
        copy(g2sA, gA(_, _, k), sA(_, _, state.stage), full);
        copy(g2sB, gB(_, _, k), sB(_, _, state.stage), full);
        state.next();
      }
      work.next();
      work.find();
    }
    if (!leads) return;
    if constexpr (cluster.x > 1) ring.drain(state);
    if constexpr (!C.launched) griddepcontrol_launch_dependents();
  }

  /// The products of a stage with their scales.
  template <class A, class B, class D>
  TEGULA_DEVICE static void multiply_scaled(SharedStorage& smem, int stage, TensorAddr tmem,
                                            A const& a, B const& b, D const& d, bool accumulate) {
    constexpr ScaledMmaSpec spec = scaled_spec;
    TensorAddr const of_a = tmem + tensor_address(0, first_scale + of_stage * stage);
    TensorAddr const of_b = of_a + tensor_address(0, 4 * pieces);
    copy_scales<pieces, 1, C.ctas>(shared_address(smem.scale_a[stage]), of_a);
    copy_scales<pieces, scale_rows, C.ctas>(shared_address(smem.scale_b[stage]), of_b);
    gemm_scaled<spec>(a, b, of_a, of_b, d, accumulate);
  }

  /// The warp of a pair's odd CTA that does not multiply: clears the ends of groups of k in its
  /// half of the stages.
  TEGULA_DEVICE static void clear_as_peer(Params const& p, SharedStorage& smem, Ring const& ring,
                                          WorkTiles& work) {
    if (p.schedule.tiles.grouping != Grouping::k) return;
    typename Ring::State state;
    Ends ends{smem.ends};
    for (; !work.done(); work.next()) {
      int const steps = steps_of(p, work);
      for (int k = 0; k < steps; ++k, state.next()) {
        if (Ends::is_in(p.schedule.tiles, work.tile(), k))
          ends.clear_as_peer(smem, ring, state.stage, work.tile(), k);
      }
    }
  }

  /// Has an mbarrier of the CTAs told when the products so far are over.
  TEGULA_DEVICE static void commit_to(std::uint16_t ctas, SharedAddr mbarrier,
                                      SourceLocation where = SourceLocation::current()) {
    if constexpr (cluster.x == 1) {
      tcgen05_commit(mbarrier, where);
    } else {
      tcgen05_commit_multicast<C.ctas>(mbarrier, ctas, where);
    }
  }

  /// Whether the K of the tile's group ends in a step, and another group's begins.
  TEGULA_DEVICE static bool ends_in(Params const& p, WorkTiles const& work, int step) {
    if constexpr (C.grouped) return Ends::is_in(p.schedule.tiles, work.tile(), step);
    return false;
  }
  /// The thread that leads: every tile's products.
  TEGULA_DEVICE static void multiply(Params const& p, SharedStorage& smem, Ring const& ring,
                                     Results const& results, TensorAddr tmem, WorkTiles& work,
                                     bool leads) {
    typename Ring::State state;
    typename Results::State result;
    Mma const mma;
    auto const tCsA = mma.partition_a(tensor(smem.a));  // (MMA_K, stages)
    auto const tCsB = mma.partition_b(tensor(smem.b));  // (MMA_K, stages)
    auto const tCtC =
        tensor_memory_tiles<float, block_n, accumulators>(tmem);  // (128, block_n, accumulators)
    [[maybe_unused]] std::conditional_t<C.grouped, Ends, None> ends{smem.ends};
    std::uint16_t const loaders = Cluster::loaders();
    while (!work.done()) {
      int const steps = steps_of(p, work);
      if (leads) results.acquire(result);
#pragma unroll 1
      for (int k = 0; k < steps; ++k) {
        bool const clears = ends_in(p, work, k);
        if constexpr (C.grouped) {
          if (clears) ends.clear(smem, ring, state, work.tile(), k);
        }
        if (leads) {
          ring.wait(state);
          if constexpr (scaled) {
            multiply_scaled(smem, state.stage, tmem, tCsA(_, state.stage), tCsB(_, state.stage),
                            tCtC(_, _, result.stage), k > 0);
          } else {
            gemm(mma, tCsA(_, state.stage), tCsB(_, state.stage), tCtC(_, _, result.stage), k > 0);
          }
          // when the products have read the stage, of both CTAs of a pair
          commit_to(loaders, ring.empty(state.stage));
          if constexpr (C.grouped) {
            if (p.schedule.tiles.grouping == Grouping::k)
              Ends::give_back(ring.empty(state.stage), clears);
          }
        }
        state.next();
      }
      if (leads) results.commit(result.stage);
      result.next();
      work.next();  // in one CTA of a pair
    }
  }

  /// What a tile without steps has: zeros, or no numbers where the group cannot be loaded.
  TEGULA_DEVICE static void fill_unmultiplied(Params const& p, Accumulator& tCrC,
                                              WorkTiles const& work) {
    if constexpr (C.grouped) {
      float const value = addressable(p, work.tile()) ? 0.0f : __builtin_nanf("");
#pragma unroll
      for (int i = 0; i < Accumulator::size; ++i) tCrC(i) = value;
      warp::sync();  // all lanes have waited for the tile, as where they load it together
    }
  }

  /// Four warps: every tile's end. Each has 32 rows, and finishes 16 at a time.
  TEGULA_DEVICE static void store(Params const& p, SharedStorage& smem, Results const& results,
                                  TensorAddr tmem, WorkTiles& work) {
    Epilogue epilogue{p.epilogue, p.problem.m, p.problem.n, smem.d, smem.epilogue};
    typename Results::State result;
    auto const tCtC =
        tensor_memory_tiles<float, block_n, accumulators>(tmem);  // (128, block_n, accumulators)
    int const first_row = 32 * (warp_id() % 4);
    while (!work.done()) {
      results.wait(result);
#pragma unroll 1
      for (int row = 0; row < 32; row += 16) {
        auto const own = part<16, block_n>(
            domain_offset(tCtC(_, _, result.stage), first_row + row, 0));  // (16, block_n)
        Accumulator tCrC;
        if (!C.grouped || steps_of(p, work) > 0) {
          copy(own, tCrC);
          tcgen05_wait_ld();
          tcgen05_pin(tCrC);
        } else {
          fill_unmultiplied(p, tCrC, work);
        }
        if (row == 16) results.release(result.stage);
        if constexpr (C.grouped) {
          epilogue.store(tCrC, work.batch, work.m + first_row + row, work.tile().m_end, work.n);
        } else {
          epilogue.store(tCrC, work.m + row, work.n, work.batch, false);
        }
      }
      result.next();
      work.next();  // by whole warps
      work.find();
    }
    epilogue.drain();
  }
};

}  // namespace tegula
