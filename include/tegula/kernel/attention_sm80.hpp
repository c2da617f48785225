#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cp_async.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/arch/mutant.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/online_softmax.hpp"
#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/tile_loader.hpp"
#include "tegula/tensor/vector.hpp"
#include "tegula/tensor/warp_mma.hpp"

namespace tegula {

/// Attention forward on Ampere's tensor cores: FlashAttention-2 (Dao, arXiv 2307.08691).
///
/// A CTA owns block_m rows of one head's Q, a warp whole rows of them; S and P never leave registers. The CTA
/// walks the keys from the last block it sees to the first, so that only the first steps mask. K and V arrive
/// through cp.async, one block ahead of their use.
///
/// Legend: g, s, r for global, shared and register tensors; tS.. partitioned for S = Q K^T, tO.. for O = P V.
template <AttentionConfig C> struct AttentionSm80 {
  using Params = AttentionParams;
  using T = type_of<C.dtype>;

  static constexpr AttentionConfig config = C;
  static constexpr int threads = 32 * C.warps;
  static constexpr int min_ctas_per_sm = C.min_ctas_per_sm;
  static constexpr MmaSpec mma = warp_mma(C.dtype, DType::f32, 16);

  static constexpr int warp_m = C.block_m / C.warps;
  static constexpr int MMA_M = warp_m / 16;       // a warp's tiles of S and O along M,
  static constexpr int MMA_N = C.block_n / 8;     // of S along N (keys),
  static constexpr int MMA_D = C.head_dim / 8;    // of O along N (head dim);
  static constexpr int MMA_KS = C.head_dim / 16;  // instructions deep for S,
  static constexpr int MMA_KO = C.block_n / 16;   // and for O
  static_assert(C.block_m % (16 * C.warps) == 0 && C.block_n % 16 == 0 && C.head_dim % 32 == 0 &&
                C.stages >= 2);

  // As MMA operands, in (mn, k): Q (block_m, head_dim) and K (block_n, head_dim) are K-major, V (head_dim,
  // block_n) is MN-major.
  static constexpr SwizzledLayout smem_q = swizzled_operand(16, C.block_m, C.head_dim, 1);
  static constexpr SwizzledLayout smem_k = swizzled_operand(16, C.block_n, C.head_dim, 1, C.stages);
  static constexpr SwizzledLayout smem_v = swizzled_operand(16, C.head_dim, C.block_n, 0, C.stages);
  using TileQ = SharedTile<T, smem_q>;
  using TileK = SharedTile<T, smem_k>;
  using TileV = SharedTile<T, smem_v>;

  struct SharedStorage {
    TileQ q;  // later O: a warp's rows of O replace its rows of Q
    TileK k;
    TileV v;

    template <class F> void name_buffers(F&& name) {
      name("Q", q);
      name("K", k);
      name("V", v);
    }
  };

  static_assert(sizeof(SharedStorage) == shared_bytes(C));

  using AccessQ = TileAccess<TileQ, ldmatrix_rows_a(1)>;
  using AccessK = TileAccess<TileK, ldmatrix_rows_b(1)>;
  using AccessV = TileAccess<TileV, ldmatrix_rows_b(0)>;

  // O leaves through shared memory: lanes write pairs of their accumulators and read pieces of 16 bytes,
  // counted along the rows of a block of columns, then down the warp's rows, then from block to block.
  static constexpr int pieces = C.head_dim / 8;  // in a row
  static constexpr int block = static_cast<int>(smem_q.layout[1][0].size());
  static constexpr Layout piece_coordinates =
      make_layout(along(1, block / 8, 8), along(0, warp_m, 1), along(1, C.head_dim / block, block));
  using StoreO = TileAccess<TileQ, accumulator_lanes>;
  using LoadO = TileAccess<TileQ, piece_coordinates>;

  static_assert(conflicts(smem_q, ldmatrix_rows_a(1), 1, 16, 16) == 0, "ldmatrix of Q");
  static_assert(conflicts(smem_k, ldmatrix_rows_b(1), 1, 16, 16) == 0, "ldmatrix of K");
  static_assert(conflicts(smem_v, ldmatrix_rows_b(0), 0, 16, 16) == 0, "ldmatrix of V");
  static_assert(conflicts(smem_q, accumulator_lanes, 1, 16, 4) == 0, "stores of O");
  static_assert(conflicts(smem_q, piece_coordinates, 1, 16, 16) == 0, "loads of O");
  // A warp's access to global memory is 16 bytes a lane, along `block` columns of as many rows as that makes.
  // A row whose address is no multiple of 32 touches a sector more than it fills.
  static constexpr sim::Limits limits = {.bank_conflicts = 0, .excess_sectors = 32 / (block / 8)};

  TEGULA_HOST_DEVICE static constexpr int blocks_m(int seq_q) { return (seq_q + C.block_m - 1) / C.block_m; }

  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) {
    return {blocks_m(p.seq_q) * p.heads * p.batch, 1, 1};
  }

  /// Which rows of which head a CTA computes. The CTAs of `heads_per_l2_group` heads run side by side,
  /// sharing L2 between those that read the same keys; with a causal mask the rows that see the most keys go
  /// first, so that the last CTAs to finish are the short ones.
  struct Work {
    int block_m, head, batch;
  };
  TEGULA_DEVICE static Work work(Params const& p, int cta) {
    int const blocks = blocks_m(p.seq_q);
    int const group = cta / (blocks * p.heads_per_l2_group);
    int const first_head = group * p.heads_per_l2_group;
    int const left = p.heads * p.batch - first_head;
    int const heads = left < p.heads_per_l2_group ? left : p.heads_per_l2_group;
    int const within = cta - first_head * blocks;
    int const block = within / heads;
    int const head = first_head + within % heads;
    return {C.causal ? blocks - 1 - block : block, head % p.heads, head / p.heads};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    int const lane = lane_id();
    int const warp_row = warp_id() * warp_m;  // of the CTA's tile
    Work const w = work(p, block_idx().x);
    int const m0 = w.block_m * C.block_m;
    int const kv_head = w.head / (p.heads / p.kv_heads);

    GlobalOperand<T> const gQ{head<T const>(p.q, p.q_stride, w.batch, w.head), p.q_stride.seq, p.seq_q,
                              C.head_dim};
    GlobalOperand<T> const gK{head<T const>(p.k, p.k_stride, w.batch, kv_head), p.k_stride.seq, p.seq_k,
                              C.head_dim};
    GlobalOperand<T> const gV{head<T const>(p.v, p.v_stride, w.batch, kv_head), p.v_stride.seq, C.head_dim,
                              p.seq_k};
    TileLoader<TileQ, 1, threads> const g2sQ{smem.q, gQ, thread};
    TileLoader<TileK, 1, threads> const g2sK{smem.k, gK, thread};
    TileLoader<TileV, 0, threads> const g2sV{smem.v, gV, thread};
    AccessQ const sQ{smem.q, lane, warp_row};
    AccessK const sK{smem.k, lane};
    AccessV const sV{smem.v, lane};

    // Row i sees the keys below visible(i); the CTA's last row sees the most.
    auto const visible = [&](int row) {
      int const diagonal = row + 1 + p.seq_k - p.seq_q;
      return C.causal && diagonal < p.seq_k ? diagonal : p.seq_k;
    };
    int const last_row = (m0 + C.block_m < p.seq_q ? m0 + C.block_m : p.seq_q) - 1;
    int const blocks_n = visible(last_row) <= 0 ? 0 : (visible(last_row) + C.block_n - 1) / C.block_n;
    int const unmasked =
        visible(m0) <= 0 ? 0 : visible(m0) / C.block_n;  // blocks that every row sees in full

    float tSrS[MMA_M][MMA_N][4];
    float tOrO[MMA_M][MMA_D][4];
    clear(tOrO);
    OnlineSoftmax<MMA_M, C.exponential> softmax{p.scale};

    if (blocks_n > 0) {
      g2sQ.load(m0, 0, 0);
      g2sK.load((blocks_n - 1) * C.block_n, 0, 0);
      g2sV.load(0, (blocks_n - 1) * C.block_n, 0);
      cp_async_commit_group();
    }
    // A step is a block of keys: S = Q K^T, P = softmax, O += P V; the next block's copies run underneath.
    for (int n = blocks_n - 1, stage = 0; n >= 0; --n, stage = next_stage<C.stages>(stage)) {
      // This thread's copies of K[n] and V[n] have landed; after the barrier everybody's have, and nobody
      // still reads the other stage.
      cp_async_wait_group<0>();
      cta::sync();
      if (n > 0) {
        g2sK.template load<Clip::none>((n - 1) * C.block_n, 0, next_stage<C.stages>(stage));
        g2sV.template load<Clip::none>(0, (n - 1) * C.block_n, next_stage<C.stages>(stage));
        cp_async_commit_group();
      }

      clear(tSrS);
      warp_gemm<mma, MMA_KS, C.fragment_pairs>(
          tSrS, [&](int k, int m, FragmentA& r) { load_fragment<1>(r, sQ(16 * m, 16 * k)); },
          [&](int k, int pair, FragmentB2& r) { load_fragment<1>(r, sK(16 * pair, 16 * k, stage)); });

      if (n >= unmasked) {
        int const row = m0 + warp_row + coordinate_of<accumulator_lanes, 0>(lane);
        int const col = n * C.block_n + coordinate_of<accumulator_lanes, 1>(lane);
#pragma unroll
        for (int m = 0; m < MMA_M; ++m) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            int const limit = visible(row + 16 * m + coordinate_of<accumulator_values, 0>(i)) -
                              coordinate_of<accumulator_values, 1>(i) - col;
#pragma unroll
            for (int j = 0; j < MMA_N; ++j) {
              if (8 * j >= limit) tSrS[m][j][i] = -kInfinity;
            }
          }
        }
      }

      softmax.apply(tSrS, tOrO);

      // The accumulators of S, rounded to 16 bits, are already the registers of the A operand P (MMA_M,
      // MMA_KO).
      warp_gemm<mma, MMA_KO, C.fragment_pairs>(
          tOrO,
          [&](int k, int m, FragmentA& r) {
            auto const& left = tSrS[m][2 * k];
            auto const& right = tSrS[m][2 * k + 1];
            r[0] = pack(left[0], left[1]);
            r[1] = pack(left[2], left[3]);
            r[2] = pack(right[0], right[1]);
            r[3] = pack(right[2], right[3]);
          },
          [&](int k, int pair, FragmentB2& r) { load_fragment<0>(r, sV(16 * pair, 16 * k, stage)); });
    }

    store(p, smem, w, m0, warp_row, lane, softmax, tOrO);
  }

 private:
  template <class U>
  TEGULA_DEVICE static U* head(void const* tensor, TokenStrides const& s, int batch, int head) {
    return static_cast<U*>(const_cast<void*>(tensor)) + batch * s.batch + head * s.head;
  }

  TEGULA_DEVICE static std::uint32_t pack(float low, float high) {
    if constexpr (C.dtype == DType::bf16) {
      return cvt_rn_bf16x2(high, low);
    } else {
      return cvt_rn_f16x2(high, low);
    }
  }

  /// O = O / sum, through the warp's own rows of Q's buffer, to global memory in 16-byte pieces; the
  /// log-sum-exp beside it.
  template <class Softmax>
  TEGULA_DEVICE static void store(Params const& p, SharedStorage& smem, Work const& w, int m0, int warp_row,
                                  int lane, Softmax& softmax, float (&tOrO)[MMA_M][MMA_D][4]) {
    StoreO const r2sO{smem.q, lane, warp_row};
    int const row = coordinate_of<accumulator_lanes, 0>(lane);
    warp::sync();  // every lane of the warp has read its fragments of Q
#pragma unroll
    for (int m = 0; m < MMA_M; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float const sum = softmax.total(m, h);
        float const inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll
        for (int d = 0; d < MMA_D; ++d) {
          st_shared(r2sO(16 * m + 8 * h, 8 * d),
                    pack(tOrO[m][d][2 * h] * inverse, tOrO[m][d][2 * h + 1] * inverse));
        }
        int const i = m0 + warp_row + 16 * m + 8 * h + row;
        if (p.lse != nullptr && lane % 4 == 0 && i < edge(p.seq_q)) {
          float const lse = sum == 0.0f ? -kInfinity : (softmax.offset[m][h] + lg2_approx_ftz(sum)) * kLn2;
          st_global(p.lse + (static_cast<std::int64_t>(w.batch) * p.heads + w.head) * p.seq_q + i, lse);
        }
      }
    }
    warp::sync();  // the warp's rows of O are complete in shared memory
    T* const gO = head<T>(p.o, p.o_stride, w.batch, w.head);
#pragma unroll
    for (int i = 0; i < warp_m * pieces / 32; ++i) {
      int const piece = 32 * i + lane;
      int const r = warp_row + coordinate_of<piece_coordinates, 0>(piece);
      int const c = coordinate_of<piece_coordinates, 1>(piece);
      auto const values = ld_shared<Vector<T, 8>>(LoadO{smem.q, piece, warp_row}(0, 0));
      if (m0 + r < edge(p.seq_q)) st_global(gO + (m0 + r) * p.o_stride.seq + c, values);
    }
  }
};

}  // namespace tegula
