#pragma once

#include <type_traits>

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
/// TMA store it. Where not all of the 64 rows are the group's, and TMA would store others', each
/// warp stores those of its own that are, from the buffer. (They once left by a RowEpilogue, which
/// only ends of groups reached: 1.8 us more than whole rows, most likely for its code, decision
/// 185)
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
    // Where each group has a D of its own, or there is one group, TMA stores nothing beyond it.
    bool const clips = p_.tiles.grouping == Grouping::k || p_.tiles.grouping == Grouping::none;
    int const rows = clips ? Waves * Mma::m : m_end - own_m;
    bool const by_pieces =
        (p_.store == GroupedStore::pieces) |
        ((p_.store == GroupedStore::added) & (rows >= (Waves - 1) * Mma::m + S.rows));
    if (__builtin_expect(by_pieces, 1)) {  // so that it comes next to the main loop
      int const of_group = p_.tiles.grouping == Grouping::k ? group : 0;
      store_pieces(tCrC, own_m, rows, n, of_group, warpgroup);
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

  /// The warp's rows of a piece.
  static constexpr int warp_rows = S.rows / (kWarpgroupSize / kWarpSize);
  /// Who stores what of them: vectors of 16 bytes, those of a row side by side. Eight threads at a
  /// time read all banks: where a piece is narrower than its buffer, its rows are as far apart as
  /// the swizzle takes to bring one beside another.
  static constexpr TiledCopySpec rows_shared(int columns) {
    int const vector = 16 / static_cast<int>(sizeof(Out)), vectors = columns / vector;
    int const apart = columns < piece_n ? vectors : 1, at_once = 8 / vectors;
    int const more = kWarpSize / (8 * apart);
    Layout const threads = layout(shape(shape(apart, at_once, more), vectors),
                                  stride(stride(8, vectors, 8 * apart), 1));
    return make_tiled_copy(threads, tuple(1, vector), warp_rows, columns);
  }
  template <int Columns> using CopyRows = TiledCopy<rows_shared(Columns), Out>;

  /// `rows`: how many from row m on are the group's.
  TEGULA_DEVICE void store_pieces(Accumulator (&tCrC)[Waves], int m, int rows, int n, int group,
                                  int warpgroup) {
#pragma unroll
    for (int first = 0; first < pieces; first += together) {
      int const buffer = S.buffers * warpgroup + together * stores_.acquire();
      for_pieces(first, [&](auto columns, int i, int wave, int column) {
        write<decltype(columns)::value>(tCrC[wave], column, buffer + i);
      });
      stores_.store([&] {
        for_pieces(first, [&](auto columns, int i, int wave, int column) {
          if (rows >= wave * Mma::m + S.rows)
            send<decltype(columns)::value>(buffer + i, m + wave * Mma::m, n + column, group);
        });
      });
      if (rows >= (Waves - 1) * Mma::m + S.rows) continue;
      for_pieces(first, [&](auto columns, int i, int wave, int column) {
        int const left = rows - wave * Mma::m;
        if (0 < left && left < S.rows)
          store_rows<decltype(columns)::value>(buffer + i, m + wave * Mma::m, left, n + column);
      });
    }
  }

  /// For each of the pieces that leave together, the first of which is `first`: do(its columns, its
  /// number among them, its wave, its first column).
  template <class Do> TEGULA_DEVICE static void for_pieces(int first, Do const& act) {
#pragma unroll
    for (int i = 0; i < together; ++i) {
      int const wave = (first + i) / across, column = (first + i) % across * piece_n;
      if (S.n - column < piece_n) {
        act(std::integral_constant<int, last_n>{}, i, wave, column);
      } else {
        act(std::integral_constant<int, piece_n>{}, i, wave, column);
      }
    }
  }

  /// The warp's rows of a buffer.
  template <int Columns> TEGULA_DEVICE auto rows_of(int buffer) const {
    int const warp = thread_ % kWarpgroupSize / kWarpSize;
    return part<warp_rows, Columns>(
        local_tile<warp_rows, piece_n>(tensor(tile_)(_, _, buffer), warp, 0));
  }

  /// Rounds the warp's rows of a piece of a wave and writes them to a buffer.
  template <int Columns> TEGULA_DEVICE void write(Accumulator& tCrC, int column, int buffer) const {
    int const lane = thread_ % kWarpSize;
    auto const tCrD = part<Columns / 2>(domain_offset(tCrC(_, 0, 0), column / 2));
    auto const sD = rows_of<Columns>(buffer);  // (warp_rows, Columns)
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

  /// Stores those of the warp's rows of a buffer that are among the `left` of the group's from row
  /// m on. Each thread of the warp has written its part before it met the others in StorePipeline.
  template <int Columns> TEGULA_DEVICE void store_rows(int buffer, int m, int left, int n) const {
    int const lane = thread_ % kWarpSize, warp = thread_ % kWarpgroupSize / kWarpSize;
    GroupedGemmOutput const& out = p_.out;
    int const row = warp_rows * warp;
    // TMA stores the groups' other rows: D's are whole pieces of 16 bytes.
    auto const mD = whole_vectors(matrix<1>(static_cast<Out*>(out.d) + (m + row) * out.ldd + n,
                                            out.ldd, left - row, out.n - n));
    copy(CopyRows<Columns>{lane}, rows_of<Columns>(buffer),
         local_tile<warp_rows, Columns>(mD, 0, 0));
  }

  GroupedGemmSm90Params const& p_;
  Tile const& tile_;
  int thread_;
  StorePipeline<S.buffers / together, kWarpgroupSize / kWarpSize> stores_;
};

}  // namespace tegula
