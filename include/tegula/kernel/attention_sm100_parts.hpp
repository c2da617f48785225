#pragma once

#include <type_traits>

#include "tegula/kernel/attention_cleared_v.hpp"
#include "tegula/kernel/attention_loads.hpp"
#include "tegula/kernel/attention_output.hpp"
#include "tegula/kernel/attention_sm100_config.hpp"
#include "tegula/kernel/attention_work.hpp"
#include "tegula/kernel/online_softmax.hpp"
#include "tegula/pipeline/tensor_memory_pipeline.hpp"
#include "tegula/pipeline/thread_pipeline.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/tensor/tensor_memory.hpp"
#include "tegula/tensor/tma.hpp"

namespace tegula {

/// What the roles of attention_sm100 share: the warps that they are, where S, P and O lie in tensor
/// memory, shared memory, the pipelines between them, the products.
template <AttentionSm100Config C> struct AttentionSm100Parts {
  using T = type_of<C.dtype>;
  using Out = type_of<C.out>;
  static constexpr int tiles = C.consumers, threads = kWarpgroupSize * (tiles + 2);
  static constexpr int tile_m = kTensorLanes, block_n = C.block_n, head_dim_v = C.head_dim_v;
  static constexpr int output_n = output_columns(C), output_pieces = head_dim_v / output_n;
  static constexpr bool scaled = bits(C.dtype) == 8;  // operands have factors
  static constexpr int part_n = 32;  // columns of P or O that a thread computes, and then stores
  static_assert(head_dim_v % output_n == 0 && head_dim_v <= 128);

  /// Warps: a warpgroup for each softmax, from warp 0 on, one for the correction, and single ones.
  enum : int { kCorrection = 4 * tiles, kMma = kCorrection + 4, kLoad, kEpilogue, kEmpty };
  /// Columns of tensor memory, all of them: where S, P and O of tile 0 begin, and how far on those
  /// of tile 1. P has columns of its own where there are enough; else it lies over S.
  static constexpr int p_columns = block_n * bits(C.dtype) / 32;  // some values share a column
  static constexpr bool p_apart = tiles * (block_n + head_dim_v + p_columns) <= kTensorColumns;
  static_assert(p_apart || block_n == head_dim_v,
                "products that share columns must be of one shape");
  enum : int {
    kS = 0,
    kO = kS + tiles * block_n,
    kP = p_apart ? kO + tiles * head_dim_v : kS + block_n / 2,
    kNextS = block_n,
    kNextO = head_dim_v,
    kNextP = p_apart ? p_columns : kNextS,
    kColumns = kTensorColumns
  };
  static_assert(kO + tiles * kNextO <= kColumns && kP + kNextP + p_columns <= kColumns);

  using TileQ = SharedTile<T, q_tile(C)>;         // (tile_m, head_dim, tiles)
  using TileK = SharedTile<T, k_tile(C)>;         // (block_n, head_dim, stages)
  using TileV = SharedTile<T, loaded_v_tile(C)>;  // (head_dim_v, block_n, stages)
  using TileO = SharedTile<Out, o_tile(C)>;       // (tile_m, output_n, stages)
  using StoreO = TmaCopy<tma_boxes(o_tile(C))>;
  static constexpr int k_bytes = tma_boxes(k_tile(C)).bytes;
  static constexpr int v_bytes = tma_boxes(loaded_v_tile(C)).bytes;
  // Given back by one tcgen05_commit each: they protect shared memory.
  using RingQ = TmaPipeline<tiles, 1>;  // load to mma; a stage is a tile's
  using Ring = TmaPipeline<C.stages, 1>;
  using RingV = TmaPipeline<C.stages, C.serving ? 2 : 1>;  // ClearedV's warp gives back, too
  // Of each tile of Q, a stage each. S is given back as P; O, as what is rescaled, or stored.
  using Scores = TensorMemoryPipeline<1, 4>;   // mma to softmax
  using Outputs = TensorMemoryPipeline<1, 4>;  // mma to correction
  using Statistics = ThreadPipeline<1, 4, 4>;  // softmax to correction
  using Staged = ThreadPipeline<2, 4, 1,       // correction to epilogue
                                C.serving ? StageReader::threads : StageReader::async_proxy>;
  using Cleared = std::conditional_t<C.serving, ClearedV<C>, RingV>;  // V, for mma
  using Tiles = AttentionTiles<C>;
  using Work = typename Tiles::Work;
  using Queue = TileQueue<2, 4 * tiles + 4 + (C.serving ? 3 : 2), typename Tiles::Tile>;

  using MmaS = TensorMemoryMma<tensor_memory_mma(C.dtype, C.dtype, DType::f32, tile_m, block_n)>;
  using MmaO = TensorMemoryMma<tensor_memory_mma(C.dtype, C.dtype, DType::f32, tile_m, head_dim_v,
                                                 Major::k, Major::mn, MmaOperands::ts)>;
  using RowsS = TensorMemoryRows<block_n>;
  using RowsO = TensorMemoryRows<output_n>;
  using AccumulatorS = typename RowsS::Accumulator;              // a thread's row: (1, block_n)
  using PartO = typename TensorMemoryRows<part_n>::Accumulator;  // (1, part_n)
  using Softmax = OnlineSoftmax<typename AccumulatorS::Map, C.exponential, T, 1>;
  using ClearedStorage = std::conditional_t<C.serving, typename Cleared::Storage, NothingCleared>;
  static_assert(conflicts_of_threads<TileO, Map<Mode<Along<0, tile_m, 1>>>, 16> == 0);

  struct SharedStorage {
    TileQ q;
    TileK k;
    TileV v;
    TileO o;
    /// Of a row: the factor of O, or at the end the sum; and then the offset.
    float factor[tiles][tile_m], offset[tiles][tile_m];
    typename RingQ::Storage ring_q;
    typename Ring::Storage ring_k;
    typename RingV::Storage ring_v;
    typename Scores::Storage scores[tiles];
    typename Outputs::Storage outputs[tiles];
    typename Statistics::Storage statistics[tiles];
    typename Staged::Storage staged;
    typename Queue::Storage queue;
    TensorAddr tmem;
    [[no_unique_address]] ClearedStorage cleared;

    template <class F> void name_buffers(F&& name) {
      name_loaded(*this, name);
      name("O", o);
      name("factor", factor);
      name("offset", offset);
      name("S0", scores[0]);
      name("S1", scores[1]);
      name("O0", outputs[0]);
      name("O1", outputs[1]);
      name("statistics 0", statistics[0]);
      name("statistics 1", statistics[1]);
      name("O full", staged.full);
      name("O empty", staged.empty);
      queue.name_buffers(name);
      name("tmem", tmem);
      cleared.name_buffers(name);
    }
  };
  static_assert(sizeof(SharedStorage) <= shared_bytes(C) && shared_bytes(C) <= 227 * 1024);

  /// The handles of what the roles share. Each role has its own states of them.
  struct Roles {
    SharedStorage& smem;
    TensorAddr tmem = 0;
    RingQ ring_q{smem.ring_q};
    Ring ring_k{smem.ring_k};
    RingV ring_v{smem.ring_v};
    Staged staged{smem.staged};
    Queue queue{smem.queue};

    TEGULA_DEVICE Cleared cleared() const {
      if constexpr (C.serving)
        return Cleared(smem.cleared);
      else
        return ring_v;
    }
    // Of tile t of Q.
    TEGULA_DEVICE Scores scores(int t) const { return Scores(smem.scores[t]); }
    TEGULA_DEVICE Outputs outputs(int t) const { return Outputs(smem.outputs[t]); }
    TEGULA_DEVICE Statistics statistics(int t) const { return Statistics(smem.statistics[t]); }
    TEGULA_DEVICE auto s() const {  // (128, block_n, tiles)
      return tensor_memory_tiles<float, block_n, tiles, kNextS>(tmem + kS);
    }
    TEGULA_DEVICE auto p() const {  // (128, block_n, tiles)
      return tensor_memory_tiles<T, block_n, tiles, kNextP * 32 / bits(C.dtype)>(tmem + kP);
    }
    TEGULA_DEVICE auto o() const {  // (128, head_dim_v, tiles)
      return tensor_memory_tiles<float, head_dim_v, tiles, kNextO>(tmem + kO);
    }
  };
};

}  // namespace tegula
