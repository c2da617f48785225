#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/activation.hpp"
#include "tegula/kernel/gemm_config.hpp"
#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/gemm.hpp"

namespace tegula {

/// Multistage GEMM on Ampere's tensor cores: D = activation(alpha scale_a scale_b A B^T + beta C +
/// bias) for each batch, f32 accumulation.
///
/// One CTA computes one tile of D. Tiles of A and B pass through a ring of `stages` shared-memory
/// buffers filled by cp.async, and from there through two sets of registers, so that the copies of
/// later tiles, the fragment loads of the next instruction and the tensor cores all run at once. D
/// leaves through shared memory, a warp at a time.
///
/// Legend: m, g, s, r for matrices in global memory, their tiles, shared and register tensors; tC..
/// partitioned for C = A B^T, tD.. for D on its way out.
template <GemmConfig C> struct GemmSm80 {
  using Params = GemmParams;
  using T = type_of<C.in>;
  using Out = type_of<C.out>;

  static constexpr GemmConfig config = C;
  static constexpr int threads = 32 * C.warps_m * C.warps_n;
  static constexpr int min_ctas_per_sm = C.min_ctas_per_sm;
  static constexpr int warp_m = C.block_m / C.warps_m;
  static constexpr int warp_n = C.block_n / C.warps_n;
  static constexpr int MMA_K = C.block_k / 16;
  static_assert(C.block_k % 32 == 0, "the two register stages alternate within a tile");
  static_assert(C.stages >= 2);

  static constexpr int a_contiguous = C.a_major == Major::k ? 1 : 0;
  static constexpr int b_contiguous = C.b_major == Major::k ? 1 : 0;
  using TileA = SharedTile<T, OperandTile{16, C.block_m, C.block_k, a_contiguous, C.stages}>;
  using TileB = SharedTile<T, OperandTile{16, C.block_n, C.block_k, b_contiguous, C.stages}>;

  static constexpr MmaSpec atom = warp_mma(C.in, DType::f32, 16);
  using Mma = TiledMma<TiledMmaSpec{atom, C.block_m, C.block_n, C.warps_m, C.warps_n}>;
  using Accumulator = typename Mma::Accumulator;

  static constexpr TiledCopySpec copy_of(int mn, int contiguous, int block) {
    return share_rows({.threads = threads,
                       .m = mn,
                       .n = C.block_k,
                       .vector = C.vector_bytes / 2,
                       .contiguous = contiguous,
                       .block = block});
  }
  static constexpr int block_a = static_cast<int>(TileA::layout.layout[a_contiguous][0].size());
  static constexpr int block_b = static_cast<int>(TileB::layout.layout[b_contiguous][0].size());
  using CopyA = TiledCopy<copy_of(C.block_m, a_contiguous, block_a), T>;
  using CopyB = TiledCopy<copy_of(C.block_n, b_contiguous, block_b), T>;

  // A warp's 16 rows of D on their way out, in f32: (16, warp_n, warps). The swizzle serves both
  // the accumulators' 8-byte stores and the 16-byte loads, in which lanes take pieces of D's rows.
  static constexpr SwizzledLayout smem_d = {
      Swizzle{3, 2, 3}, 0,
      layout(tuple(16, warp_n, C.warps_m* C.warps_n), tuple(warp_n, 1, 16 * warp_n))};
  using TileD = SharedTile<float, smem_d>;
  using WarpMma = TiledMma<TiledMmaSpec{atom, 16, warp_n}>;
  static constexpr int width = 16 / sizeof(Out);  // of a piece
  using CopyD =
      TiledCopy<share_rows({.threads = 32, .m = 16, .n = warp_n, .vector = width}), float>;

  static_assert(Mma::template conflicts_of<'a', TileA> == 0, "ldmatrix of A");
  static_assert(Mma::template conflicts_of<'b', TileB> == 0, "ldmatrix of B");
  static_assert(conflicts_of_threads<TileD, typename WarpMma::ThreadsC, 8> == 0, "stores of D");
  static_assert(conflicts_of_threads<TileD, typename CopyD::Threads, 16> == 0, "loads of D");
  // Of every access, those of the copies to shared memory too.
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  struct SharedStorage {
    TileA a;
    TileB b;
    TileD d;

    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("D", d);
    }
  };

  static_assert(sizeof(SharedStorage) == shared_bytes(C));

  TEGULA_HOST_DEVICE static constexpr int tiles_m(Params const& p) {
    return (p.m + C.block_m - 1) / C.block_m;
  }
  TEGULA_HOST_DEVICE static constexpr int tiles_n(Params const& p) {
    return (p.n + C.block_n - 1) / C.block_n;
  }
  /// x: tiles of a batch; y and z: batches, as many as a grid's y extent can be at a time.
  static constexpr int most_y = 65535;
  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) {
    return {tiles_m(p) * tiles_n(p), p.batch < most_y ? p.batch : most_y,
            (p.batch + most_y - 1) / most_y};
  }
  TEGULA_DEVICE static int batch() { return block_idx().z * most_y + block_idx().y; }

  /// Which tile a CTA computes. CTAs that run at the same time cover a band of `raster_group`
  /// tiles along M, so that they share both A and B in L2.
  struct TileIndex {
    int m, n;
  };
  TEGULA_DEVICE static TileIndex tile_index(Params const& p, int cta) {
    int const band = cta / (p.raster_group * tiles_n(p));
    int const first = band * p.raster_group;
    int const left = tiles_m(p) - first;
    int const height = left < p.raster_group ? left : p.raster_group;
    int const within = cta - first * tiles_n(p);
    return {first + within % height, within / height};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    if (batch() >= p.batch) return;
    int const thread = thread_idx();
    TileIndex const tile = tile_index(p, block_idx().x);

    // Vectors of more than an element are for operands of which no edge cuts one.
    auto const mA = whole_vectors(
        matrix<a_contiguous>(static_cast<T const*>(p.a) + batch() * p.a_batch, p.lda, p.m, p.k));
    auto const mB = whole_vectors(
        matrix<b_contiguous>(static_cast<T const*>(p.b) + batch() * p.b_batch, p.ldb, p.n, p.k));
    auto const gA = local_tile<C.block_m, C.block_k>(mA, tile.m, _);  // (block_m, block_k, k_tiles)
    auto const gB = local_tile<C.block_n, C.block_k>(mB, tile.n, _);  // (block_n, block_k, k_tiles)
    auto const sA = tensor(smem.a);                                   // (block_m, block_k, stages)
    auto const sB = tensor(smem.b);                                   // (block_n, block_k, stages)
    auto const tCsA = Mma{thread}.partition_a(sA);                    // (MMA_M, MMA_K, stages)
    auto const tCsB = Mma{thread}.partition_b(sB);                    // (MMA_N, MMA_K, stages)
    typename Mma::template FragmentA<> tCrA[2];                       // two steps of K
    typename Mma::template FragmentB<> tCrB[2];
    Accumulator tCrC;  // (MMA, MMA_M, MMA_N)

    int const k_tiles = (p.k + C.block_k - 1) / C.block_k;
    auto const load = [&](int k_tile, int stage) {
      if (k_tile < edge(k_tiles)) {
        copy(CopyA{thread}, gA(_, _, k_tile), sA(_, _, stage));
        copy(CopyB{thread}, gB(_, _, k_tile), sB(_, _, stage));
      }
      // an empty group where there is no tile: the count of groups in flight stays the same
      cp_async_commit_group();
    };
    auto const fetch = [&](int k, int stage) {
      copy(tCsA(_, k, stage), tCrA[k % 2]);
      copy(tCsB(_, k, stage), tCrB[k % 2]);
    };

    clear(tCrC);
    for (int stage = 0; stage < C.stages - 1; ++stage) load(stage, stage);
    cp_async_wait_group<C.stages - 2>();
    cta::sync();  // tile 0 is in stage 0, visible to all
    if (k_tiles > 0) fetch(0, 0);

    int read = 0;              // the stage of the tile being multiplied
    int write = C.stages - 1;  // the stage that the next copy goes to: the one read last
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
#pragma unroll
      for (int k = 0; k < MMA_K; ++k) {
        if (k == MMA_K - 1) {
          // The next tile has landed, for this thread and, after the barrier, for all; and nobody
          // reads this tile's stage any more: the last fragments of it were fetched one step ago.
          cp_async_wait_group<C.stages - 2>();
          cta::sync();
          read = next_stage<C.stages>(read);
        }
        if (k < MMA_K - 1 || k_tile + 1 < k_tiles) fetch((k + 1) % MMA_K, read);
        if (k == 0) {
          load(k_tile + C.stages - 1, write);
          write = next_stage<C.stages>(write);
        }
        gemm(Mma{}, tCrA[k % 2], tCrB[k % 2], tCrC);
      }
    }

    int const m0 = tile.m * C.block_m + warp_id() % C.warps_m * warp_m;
    int const n0 = tile.n * C.block_n + warp_id() / C.warps_m * warp_n;
    epilogue(p, smem.d, m0, n0, tCrC);
  }

 private:
  /// The warp's tile of D, whose first element is (m0, n0): 16 rows at a time through shared
  /// memory, then whole 16-byte pieces.
  TEGULA_DEVICE static void epilogue(Params const& p, TileD& smem, int m0, int n0,
                                     Accumulator const& tCrC) {
    Out* const d = static_cast<Out*>(p.d) + batch() * p.d_batch;
    Out const* const c = detail::advanced(static_cast<Out const*>(p.c), batch() * p.c_batch);
    auto const mD = domain_offset(matrix<1>(d, p.ldd, p.m, p.n), m0, n0);
    auto const mC = domain_offset(matrix<1>(c, p.ldc, p.m, p.n), m0, n0);
    auto const sD = tensor(smem)(_, _, warp_id());         // (16, warp_n)
    auto const tCsD = WarpMma{lane_id()}.partition_c(sD);  // (MMA, 1, MMA_N)
    auto const tDsD = CopyD{lane_id()}.partition(sD);      // (width, passes, 1)
    // (width, passes, 1, m)
    auto const tDmD = CopyD{lane_id()}.partition(local_tile<16, warp_n>(mD, _, 0));
    auto const tDmC = CopyD{lane_id()}.partition(local_tile<16, warp_n>(mC, _, 0));
    auto const tDgD = anchored(tDmD);
    auto const tDgC = anchored(tDmC);

    int const n = tDmD.space.origin[1];  // the lane's first column of D
    bool const aligned =
        whole_pieces<Out>(d, p.ldd) && (p.beta == 0.0f || whole_pieces<Out>(c, p.ldc));
    bool const whole_piece = aligned && n + width <= edge(p.n);

    float scale = p.alpha;
    if (p.scale_a != nullptr) scale *= ld_global<float>(p.scale_a);
    if (p.scale_b != nullptr) scale *= ld_global<float>(p.scale_b);
    Vector<float, width> bias{};
    if (p.bias != nullptr) {
      for (int i = 0; i < width; ++i) {
        if (n + i < edge(p.n))
          bias.data[i] = to_float(ld_global<Out>(static_cast<Out const*>(p.bias) + n + i));
      }
    }

#pragma unroll
    for (int m = 0; m < Accumulator::template extent<1>; ++m) {
      warp::sync();  // the previous 16 rows have been read
      copy(tCrC(_, m, _), tCsD(_, 0, _));
      warp::sync();  // these 16 rows are complete
#pragma unroll 1
      for (int pass = 0; pass < tDsD.template extent<1>; ++pass) {
        Fragment<float, Map<mode_at<0, typename CopyD::Values>>> x;
        copy(tDsD(_, pass, 0), x);
#pragma unroll
        for (int j = 0; j < width; ++j) x(j) *= scale;
        if (tDmD(_, pass, 0, m).space.origin[0] >= edge(p.m)) continue;
        if (whole_piece) {
          if (p.beta != 0.0f) {
            auto const old =
                ld_global<Vector<Out, width>>(tDgC.at(SourceLocation::current(), 0, pass, 0, m));
#pragma unroll
            for (int j = 0; j < width; ++j) x(j) = fma(p.beta, to_float(old.data[j]), x(j));
          }
          Vector<Out, width> result;
#pragma unroll
          for (int j = 0; j < width; ++j) {
            result.data[j] = from_float<Out>(activate(p.activation, x(j) + bias.data[j]));
          }
          st_global(tDgD.at(SourceLocation::current(), 0, pass, 0, m), result);
        } else {
#pragma unroll
          for (int j = 0; j < width; ++j) {
            if (n + j < edge(p.n)) {
              float const old =
                  p.beta != 0.0f ? to_float(static_cast<Out>(tDgC(j, pass, 0, m))) : 0.0f;
              tDgD(j, pass, 0, m) =
                  from_float<Out>(activate(p.activation, fma(p.beta, old, x(j)) + bias.data[j]));
            }
          }
        }
      }
    }
  }
};

}  // namespace tegula
