#pragma once

#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/kernel/epilogue_rows.hpp"
#include "tegula/kernel/epilogue_sm90_config.hpp"
#include "tegula/pipeline/store_pipeline.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/register_copy.hpp"
#include "tegula/tensor/tma.hpp"

namespace tegula {

/// The end of a grouped GEMM by TMA, which stores or adds while the warps go on with the next tile.
///
/// Each warpgroup works for itself, at 64 rows and at most 128 bytes of D a time: a piece. Its
/// warps round and write 16 rows each to a buffer that TMA has read, and one of their threads has
/// TMA store it. Where not all of the 64 rows are the group's, a RowEpilogue stores those that are.
///
/// Mma is the tiled MMA of one wave of rows, S says the pieces, Waves how many waves a tile has.
template <EpilogueSm90Spec S, class Mma, int Waves> class PieceEpilogue {
 public:
  using Out = type_of<S.out>;
  using Accumulator = typename Mma::Accumulator;
  /// D on its way out: (64, store_n, buffers of all warpgroups).
  using Tile = SharedTile<Out, store_tile(S)>;
  static_assert(S.rows == kWgmmaM);

  /// `barrier`: the first of the named barriers, one for each warpgroup.
  TEGULA_DEVICE PieceEpilogue(GroupedGemmSm90Params const& params, Tile const& tile, int thread,
                              int barrier)
      : p_(params),
        tile_(tile),
        thread_(thread),
        stores_(barrier + thread / kWarpgroupSize, thread % kWarpgroupSize / kWarpSize) {}

  /// Stores a tile, of which the group has the rows before `m_end`, wave by wave.
  TEGULA_DEVICE void store(Accumulator (&tCrC)[Waves], int group, int m, int m_end, int n) {
    int const warpgroup = warp::shfl(thread_ / kWarpgroupSize, 0);
    int const own_m = m + S.rows * warpgroup;
    bool const whole = own_m + (Waves - 1) * Mma::m + S.rows <= m_end;
    bool const by_tma = (p_.store != GroupedStore::rows) & whole;
    if (__builtin_expect(by_tma, 1)) {  // so that it comes next to the main loop
      int const of_group = p_.tiles.grouping == Grouping::k ? group : 0;
      store_pieces(tCrC, own_m, n, of_group, warpgroup);
    } else {
#pragma unroll
      for (int wave = 0; wave < Waves; ++wave)
        RowEpilogue<Out, Mma>{p_.out, group, thread_}.store(tCrC[wave], m + wave * Mma::m, m_end,
                                                            n);
    }
  }

  /// Before the CTA ends: its shared memory lives until TMA has read it.
  TEGULA_DEVICE void drain(SourceLocation where = SourceLocation::current()) const {
    stores_.drain(where);
  }

 private:
  static constexpr int piece_n = store_n(S), last_n = last_store_n(S);
  static constexpr int across = (S.n + piece_n - 1) / piece_n;  // of a row of the tile
  static constexpr int pieces = Waves * across;
  /// Pieces that leave together: all, where there are buffers for all.
  static constexpr int together = S.buffers < pieces ? 1 : pieces;
  static constexpr PerPiece<TmaBoxes> boxes = store_boxes(S);
  /// Who holds what of a piece: as the accumulators of mma.sync, of which wgmma's are made.
  template <int Columns>
  static constexpr TiledMmaSpec warp_mma_of = {warp_mma(DType::bf16, DType::f32, 16), 16, Columns};

  TEGULA_DEVICE void store_pieces(Accumulator (&tCrC)[Waves], int m, int n, int group,
                                  int warpgroup) {
#pragma unroll
    for (int first = 0; first < pieces; first += together) {
      int const buffer = S.buffers * warpgroup + together * stores_.acquire();
#pragma unroll
      for (int i = 0; i < together; ++i) {
        int const wave = (first + i) / across, column = (first + i) % across * piece_n;
        if (S.n - column < piece_n) {
          write<last_n>(tCrC[wave], column, buffer + i);
        } else {
          write<piece_n>(tCrC[wave], column, buffer + i);
        }
      }
      stores_.store([&] {
#pragma unroll
        for (int i = 0; i < together; ++i) {
          int const wave = (first + i) / across, column = (first + i) % across * piece_n;
          if (S.n - column < piece_n) {
            send<last_n>(buffer + i, m + wave * Mma::m, n + column, group);
          } else {
            send<piece_n>(buffer + i, m + wave * Mma::m, n + column, group);
          }
        }
      });
    }
  }

  /// Rounds the warp's rows of a piece of a wave and writes them to a buffer.
  template <int Columns> TEGULA_DEVICE void write(Accumulator& tCrC, int column, int buffer) const {
    int const lane = thread_ % kWarpSize, warp = thread_ % kWarpgroupSize / kWarpSize;
    auto const tCrD = part<Columns / 2>(domain_offset(tCrC(_, 0, 0), column / 2));
    auto const sD = part<16, Columns>(
        local_tile<16, piece_n>(tensor(tile_)(_, _, buffer), warp, 0));  // (16, Columns)
    if constexpr (sizeof(Out) == 2) {
      copy(rounded<Out>(tCrD), MatrixStore<warp_mma_of<Columns>>{lane}.partition(sD));
    } else {
      Fragment<float, typename decltype(tCrD)::Map> values;
#pragma unroll
      for (int i = 0; i < decltype(tCrD)::size; ++i) values(i) = wgmma_value(tCrD(i));
      copy(values, TiledMma<warp_mma_of<Columns>>{lane}.partition_c(sD));
    }
  }

  /// Has TMA store a buffer's piece, by one thread.
  template <int Columns> TEGULA_DEVICE void send(int buffer, int m, int n, int group) const {
    TmaCopy<Columns == piece_n ? boxes.whole : boxes.last> const by;
    auto const sD = part<S.rows, Columns>(tensor(tile_)(_, _, buffer));
    auto const mD = tma_tensor<1, 0, 2>(Columns == piece_n ? p_.d : p_.last_d)(_, _, group);
    auto const gD = part<S.rows, Columns>(domain_offset(mD, m, n));
    if constexpr (sizeof(Out) == 4) {
      if (p_.store == GroupedStore::added) return reduce<TmaReduce::add>(by, sD, gD);
    }
    copy(by, sD, gD);
  }

  GroupedGemmSm90Params const& p_;
  Tile const& tile_;
  int thread_;
  StorePipeline<S.buffers / together, kWarpgroupSize / kWarpSize> stores_;
};

}  // namespace tegula
