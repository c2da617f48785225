#pragma once

#include "tegula/arch/discard.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/kernel/activate_fragment.hpp"
#include "tegula/kernel/epilogue_scale.hpp"
#include "tegula/kernel/epilogue_sm90_config.hpp"
#include "tegula/pipeline/store_pipeline.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/register_copy.hpp"
#include "tegula/tensor/tma.hpp"

namespace tegula {

/// The end of a Hopper GEMM whose D is contiguous along its rows' index m: the transpose of a
/// row-major D. What EpilogueSm90 does, without C and a bias.
///
/// A warpgroup works at 64 rows and at most 64 columns a time: a piece, which is 128 bytes of each
/// column in memory. It waits until TMA has read what was in the piece's buffer, rounds, transposes
/// on the way to the buffer by stmatrix, and has TMA store the piece while it goes on with the
/// next.
template <EpilogueSm90Spec S> class TransposedEpilogueSm90 {
 public:
  using Params = EpilogueSm90Params;
  using Out = type_of<S.out>;
  static_assert(S.transposed && S.rows == 64);
  static_assert(sizeof(Out) == 2, "stmatrix transposes elements of 16 bits");
  /// D on its way out: (64, store_n, buffers of all warpgroups).
  using Tile = SharedTile<Out, store_tile(S)>;
  struct Barriers {};

 private:
  static constexpr int piece_n = store_n(S), last_n = last_store_n(S);
  static constexpr int last_narrow_n = last_narrow_store_n(S);
  static constexpr int piece_size = piece_bytes(S);
  static constexpr int all_buffers = store_tile(S).stages;
  static constexpr PerPiece<TmaBoxes> boxes = store_boxes(S);
  static_assert(S.narrow_n == 0 || S.n - last_n == S.narrow_n - last_narrow_n,
                "tiles of two widths differ in the last piece");
  /// Who holds what of a piece: as the accumulators of four warps' mma.sync, of which wgmma's are
  /// made.
  template <int Columns>
  static constexpr TiledMmaSpec piece_mma = {warp_mma(DType::bf16, DType::f32, 16), 64, Columns,
                                             /*groups_m=*/4};

 public:
  TEGULA_DEVICE TransposedEpilogueSm90(Params const& params, int, int, Tile const& tile,
                                       Barriers const&)
      : p_(params),
        tile_(tile),
        thread_(thread_idx_here() - S.first_thread),
        stores_(1 + thread_ / kWarpgroupSize, thread_ % kWarpgroupSize / kWarpSize) {}

  TEGULA_DEVICE static void init(Barriers const&) {}
  /// Brings the tensor maps near, by one thread.
  TEGULA_DEVICE static void prefetch_maps(Params const& p,
                                          SourceLocation where = SourceLocation::current()) {
    prefetch_tensor_map(p.d.whole, where);
    if constexpr (last_n != piece_n) prefetch_tensor_map(p.d.last, where);
    if constexpr (S.narrow_n > 0) prefetch_tensor_map(p.d.last_narrow, where);
  }

  /// The next tile leaves through that stage of the ring, which all warps of the warpgroup have
  /// read when they meet, before they write.
  TEGULA_DEVICE void borrow(int stage) {
    static_assert(S.ring > 0);
    lent_ = stage * S.stage_pieces;
  }
  /// All lanes of the warp are done with what was borrowed.
  TEGULA_DEVICE void give_back(SourceLocation where = SourceLocation::current()) const {
    int const first = lent_ + S.buffers * (thread_ / kWarpgroupSize);
    stores_.drain(
        [&] {
          discard_shared(shared_address(&tile_) + first * piece_size, S.buffers * piece_size,
                         where);
        },
        where);
    warp::sync(warp::kAllLanes, where);  // that lane has seen the stage read
  }

  /// Stores a warpgroup's tile of D whose first element is (m0, n0): accumulators (of wgmma, MMA_M,
  /// 1) for 64 rows each. Of a narrow tile, no columns beyond its edge.
  template <class M>
  TEGULA_DEVICE void store(Fragment<float, M>& tCrC, int m0, int n0, int batch, bool narrow) {
    static_assert(2 * mode_size<mode_at<0, M>> == S.n,
                  "epilogue: the accumulators are not of n columns");
    float const scale = epilogue_scale(p_);
#pragma unroll
    for (int m = 0; m < mode_size<mode_at<1, M>>; ++m) {
      Coordinate<3> at = {{m0 + 64 * m, n0, batch}};
#pragma unroll
      for (int first = 0; first + piece_n <= S.n; first += piece_n) {
        store_piece<piece_n>(part<piece_n / 2>(domain_offset(tCrC(_, m, 0), first / 2)), at,
                             narrow && first + piece_n == S.n, scale);
        at.at[1] += piece_n;
      }
      if constexpr (last_n != piece_n) {
        store_piece<last_n>(part<last_n / 2>(domain_offset(tCrC(_, m, 0), (S.n - last_n) / 2)), at,
                            narrow, scale);
      }
    }
  }

  /// Before the CTA ends: its shared memory lives until TMA has read it.
  TEGULA_DEVICE void drain(SourceLocation where = SourceLocation::current()) const {
    stores_.drain(where);
  }

 private:
  /// A piece of D, `Columns` wide, from `at` (m, n, batch) on; tCrD are the thread's values of it.
  /// `narrower`: what lies beyond a narrow tile's edge is not stored.
  template <int Columns, Registers F>
  TEGULA_DEVICE void store_piece(F const& tCrD, Coordinate<3> const& at, bool narrower,
                                 float scale) {
#pragma unroll
    for (int i = 0; i < F::size; ++i) tCrD(i) *= scale;
    if constexpr (S.activates) activate_all(p_.activation, tCrD);
    int const buffer = lent_ + S.buffers * (thread_ / kWarpgroupSize) + stores_.acquire();
    auto const sD = part<64, Columns>(buffer_at(buffer));  // (64, Columns)
    copy(rounded<Out>(tCrD),
         MatrixStore<piece_mma<Columns>, true>{thread_ % kWarpgroupSize}.partition(sD));
    stores_.store([&] {
      TensorMap const& map = narrower             ? p_.d.last_narrow
                             : Columns == piece_n ? p_.d.whole
                                                  : p_.d.last;
      auto const gD =
          part<64, Columns>(domain_offset(tma_tensor<0, 1, 2>(map)(_, _, at[2]), at[0], at[1]));
      using Store = TmaCopy<Columns == piece_n ? boxes.whole : boxes.last>;
      copy(narrowed_copy<Store>(narrower ? last_narrow_n : Columns), sD, gD);
    });
  }

  /// (64, store_n)
  TEGULA_DEVICE auto buffer_at(int buffer) const {
    if constexpr (all_buffers == 1) {
      return tensor(tile_);
    } else {
      return tensor(tile_)(_, _, buffer);
    }
  }

  Params const& p_;
  Tile const& tile_;
  int thread_;    // from 0 on
  int lent_ = 0;  // the first piece of the stage that is lent
  StorePipeline<S.buffers, kWarpgroupSize / kWarpSize> stores_;
};

}  // namespace tegula
