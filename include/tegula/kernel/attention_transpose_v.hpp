#pragma once

#include <cstdint>

#include "tegula/arch/bits.hpp"
#include "tegula/arch/ldmatrix.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/stmatrix.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/attention_loads.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/layout/algebra.hpp"
#include "tegula/pipeline/thread_pipeline.hpp"
#include "tegula/pipeline/tma_pipeline.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/tiled_mma.hpp"

/// How V gets from TMA to the second product of attention: as it comes, or transposed on the way.
namespace tegula {

/// Which key stands at place k of the second product of 8-bit attention: within each 16, places 4q
/// to 4q + 3 hold keys 2q, 2q + 1, 2q + 8, 2q + 9.
///
/// These are what lane q of a quad holds of a row of S, in the order of its registers; and as A,
/// lane q holds places 4q to 4q + 3. So P needs no shuffle (TiledMma::operand_a refuses an order
/// for which it would), and a sum does not ask for the order of its terms, if V is in the same one.
template <int Keys> struct KeyOrder {
  static constexpr Layout value = layout(shape(2, 2, 4, Keys / 16), stride(1, 8, 2, 16));
};

/// V of 16 bits: wgmma reads it as TMA brings it, and there is one ring.
template <AttentionSm90Config C, bool = transposes_v(C)> struct LoadedV {
  static constexpr int warps = 0;
  using Ring = TmaPipeline<C.stages, 4 * C.consumers>;
  using Order = detail::Unpermuted<C.block_n>;
  struct Storage {
    template <class F> void name_buffers(F&&) {}
  };
  /// The ring that TMA loads V into, and its buffers (head_dim_v, block_n, stages).
  template <class Smem> TEGULA_DEVICE static Ring ring(Smem const& smem) {
    return Ring(smem.ring_v);
  }
  template <class Smem> TEGULA_DEVICE static auto const& tile(Smem const& smem) { return smem.v; }
};

/// V of 8 bits: TMA brings it into buffers of its own; `warps` warps of the producer transpose it
/// from there into those that wgmma reads, keys contiguous and in KeyOrder.
///
///     ring:        from TMA to the transposing warps
///     LoadedV::Ring: from those, through the asynchronous proxy, to the consumers
///
/// To ldmatrix and stmatrix a pair of neighbouring bytes is an element. Of 16 keys and 16 columns,
/// ldmatrix.trans gives lane 4g + q two registers: keys 2q, 2q + 1 and 2q + 8, 2q + 9, each of
/// columns 2g and 2g + 1. Permuting their bytes gives two registers of four keys, one of each
/// column, and stmatrix stores a register at byte 4q of row g.
template <AttentionSm90Config C> struct LoadedV<C, true> {
  static constexpr int warps = 2;
  using Tile = SharedTile<type_of<C.dtype>, loaded_v_tile(C)>;  // (head_dim_v, block_n, stages)
  using Target = SharedTile<type_of<C.dtype>, v_tile(C)>;       // the same
  using Ring = ThreadPipeline<C.stages, warps, 4 * C.consumers, StageReader::async_proxy>;
  using RingLoaded = TmaPipeline<C.stages, warps>;
  using Order = KeyOrder<C.block_n>;
  static constexpr int first_thread = kWarpgroupSize - 32 * warps;  // of the CTA

  struct Storage {
    Tile v;
    typename RingLoaded::Storage ring;

    template <class F> void name_buffers(F&& name) {
      name("V loaded", v);
      name("V loaded full", ring.full);
      name("V loaded empty", ring.empty);
    }
  };

  /// The ring that TMA loads V into, and its buffers (head_dim_v, block_n, stages).
  template <class Smem> TEGULA_DEVICE static RingLoaded ring(Smem const& smem) {
    return RingLoaded(smem.loaded.ring);
  }
  template <class Smem> TEGULA_DEVICE static Tile const& tile(Smem const& smem) {
    return smem.loaded.v;
  }

  /// The transposing warps: every block of V of every tile, in the order in which they are loaded.
  /// `Tiles` says what a tile is, `Barrier` which named barrier is theirs.
  template <class Tiles, int Barrier, class Roles>
  TEGULA_DEVICE static void transpose_all(AttentionSm90Params const& p, Roles& role) {
    auto const sV = tensor(tile(role.smem));  // (head_dim_v, block_n, stages)
    auto const sVt = tensor(role.smem.v);     // the same
    auto const loaded = ring(role.smem);
    int const thread = thread_idx_here() % (32 * warps);
    for (auto tile = role.queue.get(); Tiles::is_tile(tile); tile = role.queue.get()) {
      typename Tiles::Work const work(p, tile);
      KeyBlocks const blocks = work.blocks();
      role.queue.release();
      if constexpr (C.serving)
        clear_values_behind<C, first_thread, 32 * warps>(p.serving, work, sV(_, _, role.v.stage),
                                                         loaded, role.v, Barrier);
#pragma unroll 1
      for (int n = blocks.first; n < blocks.last; ++n) {
        int const stage = role.v.stage;
        loaded.wait(role.v);
        role.ring_v.acquire(role.v);
        transpose(sV(_, _, stage), sVt(_, _, stage), thread);
        warp::sync();  // all lanes have read
        loaded.release(stage);
        role.ring_v.commit(stage);
        role.v.next();
      }
    }
  }

 private:
  /// Thread `thread` of the transposing warps: its part of one stage.
  template <class From, class To>
  TEGULA_DEVICE static void transpose(From const& from, To const& to, int thread) {
    auto const tLsV = matrix_rows<Loads, Steps, CopyOp::ldmatrix_trans>(from, thread);
    auto const tTsV = matrix_rows<Stores, Steps, CopyOp::stmatrix>(to, by_bank(thread));
    // Lanes of the upper half store the other column first (by_bank).
    bool const upper = thread % 32 >= 16;
    std::uint32_t const first = upper ? odd_column : even_column;
    std::uint32_t const second = upper ? even_column : odd_column;
    std::uint32_t r[in_flight][4];
    auto const load = [&](int i) {
      ldmatrix_trans<4>(r[i % in_flight], tLsV.at(SourceLocation::current(), i / keys, i % keys));
    };
#pragma unroll
    for (int i = 0; i < in_flight; ++i) load(i);
#pragma unroll
    for (int i = 0; i < columns * keys; ++i) {
      auto const& x = r[i % in_flight];
      std::uint32_t const pair[4] = {
          byte_permute(x[0], x[1], first), byte_permute(x[0], x[1], second),
          byte_permute(x[2], x[3], first), byte_permute(x[2], x[3], second)};
      if (i + in_flight < columns * keys) load(i + in_flight);
      stmatrix<4>(tTsV.at(SourceLocation::current(), i / keys, i % keys), pair);
    }
  }

  static constexpr int columns = C.head_dim_v / 32, keys = C.block_n / 32;
  // thread -> (column, key) of its row: of four 8 x 8 matrices in the order (8 keys, 16 columns).
  using Loads = Map<Mode<Along<1, 16, 1>, Along<0, 2, 16>, Along<1, 2, 16>>>;
  // thread -> (column, place) of its row: of matrices in the order (even or odd, 16 columns).
  using Stores = Map<Mode<Along<0, 8, 2>, Along<0, 2, 1>, Along<0, 2, 16>, Along<1, 2, 16>>>;
  // Two warps do 32 columns and 32 keys at once.
  using Steps = Map<Mode<Along<0, columns, 32>>, Mode<Along<1, keys, 32>>>;
  static_assert(C.head_dim_v % 32 == 0 && C.block_n % 32 == 0 && warps == 2);

  /// Loads that are in flight while one is stored. A warp issues its instructions in order, and
  /// with fewer it would wait for shared memory at each: for two warps that was longer than the
  /// consumers' products take.
  static constexpr int in_flight = columns * keys < 4 ? columns * keys : 4;

  // Of registers of keys (2q, 2q + 1) and (2q + 8, 2q + 9), each of two columns.
  static constexpr std::uint32_t even_column = 0x6420, odd_column = 0x7531;
  // (lane of a quad, key of a pair, register) -> key, as loaded; and -> place, as stored.
  static constexpr Layout loaded = layout(shape(4, 2, 2), stride(2, 1, 8));
  static constexpr Layout stored = layout(shape(4, 2, 2), stride(4, 1, 2));
  static_assert(coalesce(composition(KeyOrder<16>::value, stored)) == coalesce(loaded));

  /// The eight rows of a matrix are every other one of 16, and rows r and r + 8 lie in the same
  /// banks. So the upper four rows of a matrix of even columns are odd ones, and the other way
  /// round: exchanging bit 2 of the lane's number, the row's half, with bit 3, the matrix.
  static constexpr Swizzle halves{1, 2, -1};
  TEGULA_DEVICE static int by_bank(int thread) {
    constexpr Swizzle exchanged = halves;
    return exchanged(thread);
  }
};

}  // namespace tegula
