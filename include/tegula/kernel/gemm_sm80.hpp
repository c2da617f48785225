#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cp_async.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/arch/mutant.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/activation.hpp"
#include "tegula/kernel/gemm_config.hpp"
#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/coordinates.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/tile_loader.hpp"
#include "tegula/tensor/vector.hpp"
#include "tegula/tensor/warp_mma.hpp"

namespace tegula {

/// Multistage GEMM on Ampere's tensor cores: D = activation(alpha scale_a scale_b A B^T + beta C + bias) for
/// each batch, f32 accumulation.
///
/// One CTA computes one tile of D. Tiles of A and B pass through a ring of `stages` shared-memory buffers
/// filled by cp.async, and from there through two sets of registers, so that the copies of later tiles, the
/// fragment loads of the next instruction and the tensor cores all run at once. D leaves through shared
/// memory, a warp at a time.
///
/// Legend: g, s, r for global, shared and register tensors; tC.. partitioned for C = A B^T.
template <GemmConfig C> struct GemmSm80 {
  using Params = GemmParams;
  using T = type_of<C.in>;
  using Out = type_of<C.out>;

  static constexpr GemmConfig config = C;
  static constexpr int threads = 32 * C.warps_m * C.warps_n;
  static constexpr int min_ctas_per_sm = C.min_ctas_per_sm;
  static constexpr MmaSpec mma = warp_mma(C.in, DType::f32, 16);

  static constexpr int warp_m = C.block_m / C.warps_m;
  static constexpr int warp_n = C.block_n / C.warps_n;
  static constexpr int MMA_M = warp_m / 16;
  static constexpr int MMA_N = warp_n / 8;
  static constexpr int MMA_K = C.block_k / 16;
  static_assert(warp_m % 16 == 0 && warp_n % 16 == 0 && C.block_k % 32 == 0,
                "the two register stages alternate within a tile");
  static_assert(C.stages >= 2);

  static constexpr int a_contiguous = C.a_major == Major::k ? 1 : 0;
  static constexpr int b_contiguous = C.b_major == Major::k ? 1 : 0;
  static constexpr SwizzledLayout smem_a = swizzled_operand(16, C.block_m, C.block_k, a_contiguous, C.stages);
  static constexpr SwizzledLayout smem_b = swizzled_operand(16, C.block_n, C.block_k, b_contiguous, C.stages);
  using TileA = SharedTile<T, smem_a>;
  using TileB = SharedTile<T, smem_b>;

  // A warp's 16 rows of D on their way out, in f32. The swizzle serves both the accumulators' 8-byte stores
  // and the 16-byte loads.
  static constexpr SwizzledLayout smem_d = {
      Swizzle{3, 2, 3}, 0, layout(tuple(16, warp_n, C.warps_m* C.warps_n), tuple(warp_n, 1, 16 * warp_n))};
  using TileD = SharedTile<float, smem_d>;

  // Lanes take 16-byte pieces of D's rows.
  static constexpr int width = 16 / sizeof(Out);
  static constexpr int pieces = warp_n / width;    // in a row
  static constexpr int passes = 16 * pieces / 32;  // a lane's pieces of the 16 rows
  static constexpr Layout piece_lanes = make_layout(along(1, pieces, width), along(0, 32 / pieces, 1));
  using Piece = Vector<Out, width>;

  static_assert(conflicts(smem_a, ldmatrix_rows_a(a_contiguous), a_contiguous, 16, 16) == 0, "ldmatrix of A");
  static_assert(conflicts(smem_b, ldmatrix_rows_b(b_contiguous), b_contiguous, 16, 16) == 0, "ldmatrix of B");
  static_assert(conflicts(smem_d, accumulator_lanes, 1, 32, 8) == 0, "stores of D");
  static_assert(conflicts(smem_d, piece_lanes, 1, 32, 16) == 0, "loads of D");
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

  using AccessA = TileAccess<TileA, ldmatrix_rows_a(a_contiguous)>;
  using AccessB = TileAccess<TileB, ldmatrix_rows_b(b_contiguous)>;

  TEGULA_HOST_DEVICE static constexpr int tiles_m(Params const& p) {
    return (p.m + C.block_m - 1) / C.block_m;
  }
  TEGULA_HOST_DEVICE static constexpr int tiles_n(Params const& p) {
    return (p.n + C.block_n - 1) / C.block_n;
  }
  /// x: tiles of a batch; y and z: batches, as many as a grid's y extent can be at a time.
  static constexpr int most_y = 65535;
  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) {
    return {tiles_m(p) * tiles_n(p), p.batch < most_y ? p.batch : most_y, (p.batch + most_y - 1) / most_y};
  }
  TEGULA_DEVICE static int batch() { return block_idx().z * most_y + block_idx().y; }

  /// First element of the tile a CTA computes. CTAs that run at the same time cover a band of `raster_group`
  /// tiles along M, so that they share both A and B in L2.
  struct Origin {
    int m, n;
  };
  TEGULA_DEVICE static Origin origin(Params const& p, int cta) {
    int const band = cta / (p.raster_group * tiles_n(p));
    int const first = band * p.raster_group;
    int const left = tiles_m(p) - first;
    int const height = left < p.raster_group ? left : p.raster_group;
    int const within = cta - first * tiles_n(p);
    return {(first + within % height) * C.block_m, within / height * C.block_n};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    if (batch() >= p.batch) return;
    int const thread = thread_idx();
    int const lane = lane_id();
    int const warp_row = warp_id() % C.warps_m * warp_m;
    int const warp_col = warp_id() / C.warps_m * warp_n;
    Origin const tile = origin(p, block_idx().x);

    GlobalOperand<T> const gA{static_cast<T const*>(p.a) + batch() * p.a_batch, p.lda, p.m, p.k};
    GlobalOperand<T> const gB{static_cast<T const*>(p.b) + batch() * p.b_batch, p.ldb, p.n, p.k};
    TileLoader<TileA, a_contiguous, threads, C.vector_bytes> const g2sA{smem.a, gA, thread};
    TileLoader<TileB, b_contiguous, threads, C.vector_bytes> const g2sB{smem.b, gB, thread};
    AccessA const sA{smem.a, lane, warp_row};
    AccessB const sB{smem.b, lane, warp_col};

    int const k_tiles = (p.k + C.block_k - 1) / C.block_k;
    auto const load = [&](int k_tile, int stage) {
      if (k_tile < edge(k_tiles)) {
        g2sA.load(tile.m, k_tile * C.block_k, stage);
        g2sB.load(tile.n, k_tile * C.block_k, stage);
      }
      cp_async_commit_group();  // an empty group where there is no tile: the count of groups in flight stays
                                // the same
    };

    FragmentA tCrA[2][MMA_M];
    FragmentB2 tCrB[2][MMA_N / 2];
    auto const fetch = [&](int k, int stage) {
#pragma unroll
      for (int m = 0; m < MMA_M; ++m) load_fragment<a_contiguous>(tCrA[k % 2][m], sA(16 * m, 16 * k, stage));
#pragma unroll
      for (int n = 0; n < MMA_N / 2; ++n)
        load_fragment<b_contiguous>(tCrB[k % 2][n], sB(16 * n, 16 * k, stage));
    };

    float tCrC[MMA_M][MMA_N][4];
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
          // The next tile has landed, for this thread and, after the barrier, for all; and nobody reads this
          // tile's stage any more: the last fragments of it were fetched one step ago.
          cp_async_wait_group<C.stages - 2>();
          cta::sync();
          read = next_stage<C.stages>(read);
        }
        if (k < MMA_K - 1 || k_tile + 1 < k_tiles) fetch((k + 1) % MMA_K, read);
        if (k == 0) {
          load(k_tile + C.stages - 1, write);
          write = next_stage<C.stages>(write);
        }
#pragma unroll
        for (int m = 0; m < MMA_M; ++m) {
#pragma unroll
          for (int i = 0; i < MMA_N; ++i) {
            int const n =
                m % 2 == 0
                    ? i
                    : MMA_N - 1 - i;  // back and forth, so that neighbouring instructions share an operand
            std::uint32_t const(&pair)[4] = tCrB[k % 2][n / 2];
            std::uint32_t const b[2] = {pair[2 * (n % 2)], pair[2 * (n % 2) + 1]};
            mma_sync<mma>(tCrC[m][n], tCrA[k % 2][m], b, tCrC[m][n]);
          }
        }
      }
    }

    epilogue(p, smem.d, tile.m + warp_row, tile.n + warp_col, lane, tCrC);
  }

 private:
  /// The warp's tile of D, whose first element is (m0, n0): 16 rows at a time through shared memory, then
  /// whole 16-byte pieces.
  TEGULA_DEVICE static void epilogue(Params const& p, TileD& smem, int m0, int n0, int lane,
                                     float const (&tCrC)[MMA_M][MMA_N][4]) {
    TileAccess<TileD, accumulator_lanes> const r2s{smem, lane};
    TileAccess<TileD, piece_lanes> const s2r{smem, lane};
    int const row = lane / pieces;
    int const n = n0 + lane % pieces * width;
    Out* const gD = static_cast<Out*>(p.d) + batch() * p.d_batch;
    Out const* const gC = static_cast<Out const*>(p.c) + batch() * p.c_batch;
    bool const aligned = whole_pieces<Out>(gD, p.ldd) && (p.beta == 0.0f || whole_pieces<Out>(gC, p.ldc));
    bool const whole = aligned && n + width <= edge(p.n);

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
    for (int m = 0; m < MMA_M; ++m) {
      warp::sync();  // the previous 16 rows have been read
#pragma unroll
      for (int i = 0; i < MMA_N; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          st_shared(r2s(8 * h, 8 * i, warp_id()), Vector<float, 2>{tCrC[m][i][2 * h], tCrC[m][i][2 * h + 1]});
        }
      }
      warp::sync();  // these 16 rows are complete
#pragma unroll 1
      for (int pass = 0; pass < passes; ++pass) {
        Vector<float, width> x;
#pragma unroll
        for (int i = 0; i < width; i += 4) {
          auto const four = ld_shared<Vector<float, 4>>(s2r(pass * (32 / pieces), i, warp_id()));
#pragma unroll
          for (int j = 0; j < 4; ++j) x.data[i + j] = scale * four.data[j];
        }
        int const i = m0 + 16 * m + pass * (32 / pieces) + row;
        if (i >= edge(p.m)) continue;
        Out* const d = gD + i * p.ldd + n;
        Out const* const c = gC + i * p.ldc + n;
        if (whole) {
          if (p.beta != 0.0f) {
            auto const old = ld_global<Piece>(c);
#pragma unroll
            for (int j = 0; j < width; ++j) x.data[j] = fma(p.beta, to_float(old.data[j]), x.data[j]);
          }
          Piece result;
#pragma unroll
          for (int j = 0; j < width; ++j) {
            result.data[j] = from_float<Out>(activate(p.activation, x.data[j] + bias.data[j]));
          }
          st_global(d, result);
        } else {
#pragma unroll
          for (int j = 0; j < width; ++j) {
            if (n + j < edge(p.n)) {
              float const old = p.beta != 0.0f ? to_float(ld_global<Out>(c + j)) : 0.0f;
              st_global(d + j,
                        from_float<Out>(activate(p.activation, fma(p.beta, old, x.data[j]) + bias.data[j])));
            }
          }
        }
      }
    }
  }
};

}  // namespace tegula
