#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/discard.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/kernel/activate_fragment.hpp"
#include "tegula/kernel/epilogue_scale.hpp"
#include "tegula/kernel/epilogue_sm90_config.hpp"
#include "tegula/pipeline/epilogue_load.hpp"
#include "tegula/pipeline/store_pipeline.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/register_copy.hpp"
#include "tegula/tensor/tma.hpp"

namespace tegula {

/// The end of a Hopper GEMM: takes a warpgroup's accumulators of a tile, finishes them in f32,
/// rounds them and stores them by TMA.
///
/// Each warp works for itself, at 16 rows and at most 128 bytes of D a time: a piece. It waits
/// until TMA has read what was in the piece's buffer, brings C's piece to it where there is a C,
/// adds, rounds, writes D's piece over it, and has TMA store that while it goes on with the next.
template <EpilogueSm90Spec S> class EpilogueSm90 {
 public:
  using Params = EpilogueSm90Params;
  using Out = type_of<S.out>;
  /// D on its way out, or C on its way in: (16, store_n, buffers of all warps).
  using Tile = SharedTile<Out, store_tile(S)>;
  struct Barriers {
    Mbarrier c[S.warps];  // C for a warp has come
  };

 private:
  static constexpr int piece_n = store_n(S);
  static constexpr int last_n = last_store_n(S);
  static constexpr int last_narrow_n = last_narrow_store_n(S);
  static constexpr int piece_size = piece_bytes(S);
  static constexpr int unit = store_unit(S.out);
  static constexpr PerPiece<TmaBoxes> boxes = store_boxes(S);
  static constexpr int last_narrow_bytes = boxes.last_narrow.bytes;
  static_assert(S.narrow_n == 0 || S.n - last_n == S.narrow_n - last_narrow_n,
                "tiles of two widths differ in the last piece");
  static_assert(last_n * sizeof(Out) % 16 == 0, "TMA stores 16 bytes");
  static_assert(S.rows == 16, "each warp stores its own rows");

  /// Who holds what of a piece: as the accumulators of mma.sync, of which wgmma's are made.
  template <int Columns>
  static constexpr TiledMmaSpec warp_mma_of = {warp_mma(DType::bf16, DType::f32, 16), 16, Columns};
  /// Two columns, an element for each lane.
  using TwoColumns =
      TiledCopy<make_tiled_copy(layout(shape(16, 2), stride(1, 16)), tuple(1, 1)), Out>;

 public:
  TEGULA_DEVICE EpilogueSm90(Params const& params, int m, int n, Tile const& tile,
                             Barriers const& barriers)
      : p_(params), m_(m), n_(n), tile_(tile), barriers_(barriers) {}

  /// By one thread; then fence_mbarrier_init and a barrier of the CTA.
  TEGULA_DEVICE static void init(Barriers const& barriers,
                                 SourceLocation where = SourceLocation::current()) {
    for (int warp = 0; warp < S.warps; ++warp)
      mbarrier_init(shared_address(&barriers.c[warp]), 1, where);
  }
  /// Brings the tensor maps near, by one thread.
  TEGULA_DEVICE static void prefetch_maps(Params const& p,
                                          SourceLocation where = SourceLocation::current()) {
    prefetch_tensor_map(p.d.whole, where);
    if constexpr (last_n != piece_n) prefetch_tensor_map(p.d.last, where);
    if constexpr (S.narrow_n > 0) prefetch_tensor_map(p.d.last_narrow, where);
  }

  /// The next tile leaves through that stage of the ring, which all warps of the warpgroup have
  /// read when all are here. By a warpgroup.
  TEGULA_DEVICE void borrow(int stage, SourceLocation where = SourceLocation::current()) {
    static_assert(S.ring > 0);
    lent_ = stage * S.stage_pieces;
    cta::bar_sync(1 + (thread_idx_here() - S.first_thread) / kWarpgroupSize, kWarpgroupSize, where);
  }
  /// All lanes of the warp are done with what was borrowed.
  TEGULA_DEVICE void give_back(SourceLocation where = SourceLocation::current()) const {
    warp::sync(warp::kAllLanes, where);  // what is not stored, all have written and fenced
    int const first = lent_ + S.buffers * ((thread_idx_here() - S.first_thread) / kWarpSize);
    stores_.drain(
        [&] {
          discard_shared(shared_address(&tile_) + first * piece_size, S.buffers * piece_size,
                         where);
        },
        where);
    warp::sync(warp::kAllLanes, where);  // that lane has seen the rest read
  }

  /// Stores a warpgroup's tile of D whose first element is (m0, n0): accumulators (of wgmma,
  /// MMA_M, 1) for 64 rows each, of which it leaves others. Of a narrow tile, no columns beyond
  /// its edge.
  template <class M>
  TEGULA_DEVICE void store(Fragment<float, M>& tCrC, int m0, int n0, int batch, bool narrow) {
    float const scale = epilogue_scale(p_);
    // Two copies of the code: the usual one is short, and stays in the instruction cache. (One
    // condition, not three branches: so it comes next to the main loop.)
    bool const adds = (p_.beta != 0.0f) | (p_.bias != nullptr) | (columns_by_tma(n_, unit) != n_);
    if (S.activates || adds) {
      store_pieces<true>(tCrC, m0, n0, batch, narrow, scale);
    } else {
      store_pieces<false>(tCrC, m0, n0, batch, narrow, scale);
    }
  }

  /// Before the CTA ends: its shared memory lives until TMA has read it.
  TEGULA_DEVICE void drain(SourceLocation where = SourceLocation::current()) const {
    stores_.drain(where);
  }

 private:
  template <bool Adds, class M>
  TEGULA_DEVICE void store_pieces(Fragment<float, M>& tCrC, int m0, int n0, int batch, bool narrow,
                                  float scale) {
    static_assert(2 * mode_size<mode_at<0, M>> == S.n,
                  "epilogue: the accumulators are not of n columns");
    int const thread = thread_idx_here() - S.first_thread;
    int const warp = thread / 32, lane = thread % 32;
#pragma unroll
    for (int m = 0; m < mode_size<mode_at<1, M>>; ++m) {
      Coordinate<3> at = {{m0 + 64 * m + warp % 4 * S.warp_rows, n0, batch}};
#pragma unroll
      for (int first = 0; first + piece_n <= S.n; first += piece_n) {
        bool const narrower = narrow && first + piece_n == S.n;
        store_piece<Adds, piece_n>(part<piece_n / 2>(domain_offset(tCrC(_, m, 0), first / 2)), at,
                                   narrower, warp, lane, scale);
        at.at[1] += piece_n;
      }
      if constexpr (last_n != piece_n) {
        store_piece<Adds, last_n>(
            part<last_n / 2>(domain_offset(tCrC(_, m, 0), (S.n - last_n) / 2)), at, narrow, warp,
            lane, scale);
      }
    }
  }

  /// A piece of D, `Columns` wide, from `at` (m, n, batch) on; tCrD are the lane's values of it.
  /// `narrower`: what lies beyond a narrow tile's edge is not stored.
  template <bool Adds, int Columns, Registers F>
  TEGULA_DEVICE void store_piece(F const& tCrD, Coordinate<3> const& at, bool narrower, int warp,
                                 int lane, float scale) {
    using Mma = TiledMma<warp_mma_of<Columns>>;
    int const columns = narrower ? last_narrow_n : Columns;
    int const buffer = lent_ + S.buffers * warp + stores_.acquire();
    auto const sD = part<16, Columns>(tensor(tile_)(_, _, buffer));  // (16, Columns)
#pragma unroll
    for (int i = 0; i < F::size; ++i) tCrD(i) *= scale;
    if (Adds && p_.beta != 0.0f) {
      // No column of the next tile, where D may be coming if it is C.
      auto const by = narrowed_copy<TmaStore<Columns>>(narrower ? last_narrow_n : Columns);
      auto const gC = piece_of<Columns>(p_.c, narrower, at, p_.c_batched);
      SharedAddr const loaded = shared_address(&barriers_.c[warp]);
      c_.load(loaded, narrower ? last_narrow_bytes : by.bytes, [&] { copy(by, gC, sD, loaded); });
      Fragment<Out, typename F::Map> tCrO;
      copy(Mma{lane}.partition_c(sD), tCrO);
#pragma unroll
      for (int i = 0; i < F::size; ++i)
        tCrD(i) = fma(p_.beta, to_float(static_cast<Out>(tCrO(i))), tCrD(i));
      warp::sync();  // all lanes have read: the piece may become D's
    }
    if (Adds && p_.bias != nullptr) add_bias<Columns>(tCrD, at[1], lane);
    if constexpr (S.activates) activate_all(p_.activation, tCrD);
    if constexpr (sizeof(Out) == 2) {
      copy(rounded<Out>(tCrD), MatrixStore<warp_mma_of<Columns>>{lane}.partition(sD));
    } else {
      Fragment<float, typename F::Map> values;
#pragma unroll
      for (int i = 0; i < F::size; ++i) values(i) = wgmma_value(tCrD(i));
      copy(values, Mma{lane}.partition_c(sD));
    }
    int const by_tma = Adds ? columns_by_tma(n_, unit) : n_;
    if (at[1] <= by_tma && by_tma < at[1] + columns && by_tma < n_)
      store_last_columns(buffer, at, lane);
    if (!Adds || at[1] < edge(by_tma)) {
      auto const gD = piece_of<Columns>(p_.d, narrower, at, true);
      auto const by = narrowed_copy<TmaStore<Columns>>(narrower ? last_narrow_n : Columns);
      stores_.store([&] { copy(by, sD, gD); });
    } else {
      fence_proxy_async_shared();  // the buffer is written, and C may come to it next
    }
  }

  /// r += bias, from `column` on; zero beyond the end of a row of D. A lane loads one of 32
  /// columns, and the lanes that hold that column have it from there.
  template <int Columns, Registers F>
  TEGULA_DEVICE void add_bias(F const& r, int column, int lane) const {
    using M = typename F::Map;
    Out const* const bias = static_cast<Out const*>(p_.bias) + column;
    int const own = TiledMma<warp_mma_of<Columns>>{lane}.origin_c()[1];
    float loaded = 0.0f;
#pragma unroll
    for (int i = 0; i < count_along<M, 1>; ++i) {
      int const n = step_along<1>(M{}, i);
      if (n % 32 == 0)
        loaded = column + n + lane < edge(n_) ? to_float(ld_global<Out>(bias + n + lane)) : 0.0f;
      float const b = warp::shfl(loaded, n % 32 + own);
#pragma unroll
      for (int row = 0; row < count_along<M, 0>; ++row) row_column(r, row, i) += b;
    }
  }

  /// The columns of the warp's piece that TMA does not store, out of its buffer.
  TEGULA_DEVICE void store_last_columns(int buffer, Coordinate<3> const& at, int lane) const {
    Out* const d = static_cast<Out*>(p_.d_address) + at[2] * p_.d_batch_stride;
    auto const mD = domain_offset(matrix<1>(d, p_.ldd, m_, n_), at[0], at[1]);
    auto const sD = tensor(tile_)(_, _, buffer);
    // (1, 1, 1, pairs of columns)
    auto const s = TwoColumns{lane}.partition(local_tile<16, 2>(sD, 0, _));
    auto const g = TwoColumns{lane}.partition(local_tile<16, 2>(mD, 0, _));
    warp::sync();  // all lanes have written the piece
#pragma unroll 1
    for (int n = columns_by_tma(n_, unit) - at[1]; n < n_ - at[1]; n += 2) {
      if (g.space.origin[0] >= edge(m_)) continue;
      if (g.space.origin[1] + n < edge(n_)) g(0, 0, 0, n / 2) = static_cast<Out>(s(0, 0, 0, n / 2));
    }
  }

  template <int Columns> using TmaStore = TmaCopy<Columns == piece_n ? boxes.whole : boxes.last>;

  /// The piece of C or D in global memory. Of a narrower one the tensor map's box ends with
  /// the tile.
  template <int Columns>
  TEGULA_DEVICE static auto piece_of(PerPiece<TensorMap> const& maps, bool narrower,
                                     Coordinate<3> const& at, bool batched) {
    TensorMap const& map = narrower             ? maps.last_narrow
                           : Columns == piece_n ? maps.whole
                                                : maps.last;
    auto const m = tma_tensor<1, 0, 2>(map)(_, _, batched ? at[2] : 0);
    return part<16, Columns>(domain_offset(m, at[0], at[1]));
  }

  Params const& p_;
  int m_, n_;  // extents of D
  Tile const& tile_;
  Barriers const& barriers_;
  int lent_ = 0;  // the first piece of the stage that is lent
  StorePipeline<S.buffers> stores_;
  EpilogueLoad c_;
};

}  // namespace tegula
