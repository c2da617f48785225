#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/online_softmax.hpp"
#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/gemm.hpp"

namespace tegula {

/// Attention forward on Ampere's tensor cores: FlashAttention-2 (Dao, arXiv 2307.08691).
///
/// A CTA owns block_m rows of one head's Q, a warp whole rows of them; S and P never leave
/// registers. The CTA walks the keys from the last block it sees to the first, so that only the
/// first steps mask. K and V arrive through cp.async, one block ahead of their use.
///
/// Legend: m, g, s, r for matrices in global memory, their tiles, shared and register tensors; tS..
/// partitioned for S = Q K^T, tO.. for O = P V.
template <AttentionConfig C> struct AttentionSm80 {
  using Params = AttentionParams;
  using T = type_of<C.dtype>;

  static constexpr AttentionConfig config = C;
  static constexpr int threads = 32 * C.warps;
  static constexpr int min_ctas_per_sm = C.min_ctas_per_sm;

  // As MMA operands, in (mn, k): Q (block_m, head_dim) and K (block_n, head_dim) are K-major, V
  // (head_dim, block_n) is MN-major.
  using TileQ = SharedTile<T, OperandTile{16, C.block_m, C.head_dim, 1}>;
  using TileK = SharedTile<T, OperandTile{16, C.block_n, C.head_dim, 1, C.stages}>;
  using TileV = SharedTile<T, OperandTile{16, C.head_dim, C.block_n, 0, C.stages}>;
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

  static constexpr MmaSpec mma = warp_mma(C.dtype, DType::f32, 16);
  using MmaS = TiledMma<TiledMmaSpec{mma, C.block_m, C.block_n, C.warps}>;   // S = Q K^T
  using MmaO = TiledMma<TiledMmaSpec{mma, C.block_m, C.head_dim, C.warps}>;  // O = P V
  using AccumulatorS = typename MmaS::Accumulator;
  using AccumulatorO = typename MmaO::Accumulator;

  // of 128 bytes, or less
  static constexpr int block = static_cast<int>(TileQ::layout.layout[1][0].size());
  static constexpr RowShares rows(int n, int groups) {
    return {
        .threads = threads, .m = n, .n = C.head_dim, .vector = 8, .block = block, .groups = groups};
  }
  using CopyQ = TiledCopy<share_rows(rows(C.block_m, 1)), T>;
  using CopyK = TiledCopy<share_rows(rows(C.block_n, 1)), T>;
  using CopyV = TiledCopy<share_rows({threads, C.head_dim, C.block_n, 8, 0, block}), T>;
  using CopyO = TiledCopy<share_rows(rows(C.block_m, C.warps)), T>;  // each warp its own rows

  static_assert(MmaS::template conflicts_of<'a', TileQ> == 0, "ldmatrix of Q");
  static_assert(MmaS::template conflicts_of<'b', TileK> == 0, "ldmatrix of K");
  static_assert(MmaO::template conflicts_of<'b', TileV> == 0, "ldmatrix of V");
  static_assert(conflicts_of_threads<TileQ, typename MmaO::ThreadsC, 4> == 0, "stores of O");
  static_assert(conflicts_of_threads<TileQ, typename CopyO::Threads, 16> == 0, "loads of O");
  // A warp's access to global memory is 16 bytes a lane, along `block` columns of as many rows as
  // that makes. A row whose address is no multiple of 32 touches a sector more than it fills.
  static constexpr sim::Limits limits = {.bank_conflicts = 0, .excess_sectors = 32 / (block / 8)};

  TEGULA_HOST_DEVICE static constexpr int blocks_m(int seq_q) {
    return (seq_q + C.block_m - 1) / C.block_m;
  }

  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) {
    return {blocks_m(p.seq_q) * p.heads * p.batch, 1, 1};
  }

  /// Which rows of which head a CTA computes. The CTAs of `heads_per_l2_group` heads run side by
  /// side, sharing L2 between those that read the same keys; with a causal mask the rows that see
  /// the most keys go first, so that the last CTAs to finish are the short ones.
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
    Work const w = work(p, block_idx().x);
    int const m0 = w.block_m * C.block_m;
    int const kv_head = w.head / (p.heads / p.kv_heads);

    // A row has head_dim elements: no edge cuts a vector of them.
    auto const mQ = whole_vectors(matrix<1>(head<T const>(p.q, p.q_stride, w.batch, w.head),
                                            p.q_stride.seq, p.seq_q, C.head_dim));
    auto const mK = whole_vectors(matrix<1>(head<T const>(p.k, p.k_stride, w.batch, kv_head),
                                            p.k_stride.seq, p.seq_k, C.head_dim));
    auto const mV = whole_vectors(matrix<0>(head<T const>(p.v, p.v_stride, w.batch, kv_head),
                                            p.v_stride.seq, C.head_dim, p.seq_k));
    auto const gQ = local_tile<C.block_m, C.head_dim>(mQ, w.block_m, 0);  // (block_m, head_dim)
    auto const gK = local_tile<C.block_n, C.head_dim>(mK, _, 0);  // (block_n, head_dim, blocks)
    auto const gV = local_tile<C.head_dim, C.block_n>(mV, 0, _);  // (head_dim, block_n, blocks)
    auto const sQ = tensor(smem.q);
    auto const sK = tensor(smem.k);                  // (block_n, head_dim, stages)
    auto const sV = tensor(smem.v);                  // (head_dim, block_n, stages)
    auto const tSsQ = MmaS{thread}.partition_a(sQ);  // (MMA_M, MMA_K)
    auto const tSsK = MmaS{thread}.partition_b(sK);  // (MMA_N, MMA_K, stages)
    auto const tOsV = MmaO{thread}.partition_b(sV);  // (MMA_N, MMA_K, stages)
    AccumulatorS tSrS;                               // (MMA, MMA_M, MMA_N)
    AccumulatorO tOrO;
    clear(tOrO);
    OnlineSoftmax<typename AccumulatorS::Map, C.exponential> softmax{p.scale};

    // Row i sees the keys below visible(i); the CTA's last row sees the most.
    auto const visible = [&](int row) {
      int const diagonal = row + 1 + p.seq_k - p.seq_q;
      return C.causal && diagonal < p.seq_k ? diagonal : p.seq_k;
    };
    int const last_row = (m0 + C.block_m < p.seq_q ? m0 + C.block_m : p.seq_q) - 1;
    int const blocks_n =
        visible(last_row) <= 0 ? 0 : (visible(last_row) + C.block_n - 1) / C.block_n;
    int const unmasked =
        visible(m0) <= 0 ? 0 : visible(m0) / C.block_n;  // blocks that every row sees in full

    if (blocks_n > 0) {
      copy(CopyQ{thread}, gQ, sQ);
      copy(CopyK{thread}, gK(_, _, blocks_n - 1), sK(_, _, 0));
      copy(CopyV{thread}, gV(_, _, blocks_n - 1), sV(_, _, 0));
      cp_async_commit_group();
    }
    // A step is a block of keys: S = Q K^T, P = softmax, O += P V; the next block's copies
    // run underneath.
    for (int n = blocks_n - 1, stage = 0; n >= 0; --n, stage = next_stage<C.stages>(stage)) {
      // This thread's copies of K[n] and V[n] have landed; after the barrier everybody's have, and
      // nobody still reads the other stage.
      cp_async_wait_group<0>();
      cta::sync();
      if (n > 0) {
        int const next = next_stage<C.stages>(stage);
        copy(CopyK{thread}, whole(gK)(_, _, n - 1), sK(_, _, next));
        copy(CopyV{thread}, whole(gV)(_, _, n - 1), sV(_, _, next));
        cp_async_commit_group();
      }

      clear(tSrS);
      gemm<C.fragment_pairs>(MmaS{}, tSsQ, tSsK(_, _, stage), tSrS);
      if (n >= unmasked) {
        Coordinate const block_origin{m0, n * C.block_n};
        for_each(tSrS, MmaS{thread_idx_here()}.origin_c() + block_origin,
                 [&](float& s, Index row, Index key) {
                   if (key >= visible(row)) s = -kInfinity;
                 });
      }
      softmax.apply(tSrS, tOrO);
      // The accumulators of S, rounded to 16 bits, are already the registers of the A operand P.
      gemm<C.fragment_pairs>(MmaO{}, MmaO::operand_a(MmaS{}, tSrS), tOsV(_, _, stage), tOrO);
    }

    // Computed again: work and thread need no registers while the loop runs.
    store(p, smem, work(p, block_idx().x), thread_idx_here(), softmax, tOrO);
  }

 private:
  template <class U>
  TEGULA_DEVICE static U* head(void const* tensor, TokenStrides const& s, int batch, int head) {
    return static_cast<U*>(const_cast<void*>(tensor)) + batch * s.batch + head * s.head;
  }

  /// O = O / sum, through the warp's own rows of Q's buffer, to global memory in 16-byte pieces;
  /// the log-sum-exp beside it.
  template <class Softmax>
  TEGULA_DEVICE static void store(Params const& p, SharedStorage& smem, Work const& w, int thread,
                                  Softmax const& softmax, AccumulatorO& tOrO) {
    Coordinate<2> const first = MmaO{thread}.origin_c();
#pragma unroll
    for (int r = 0; r < softmax.rows; ++r) {
      float const sum = softmax.total(r);
      float const inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma unroll
      for (int c = 0; c < count_along<typename AccumulatorO::Map, 1>; ++c)
        row_column(tOrO, r, c) *= inverse;
      int const i =
          w.block_m * C.block_m + first[0] + step_along<0>(typename AccumulatorO::Map{}, r);
      if (p.lse != nullptr && first[1] == 0 && i < edge(p.seq_q)) {
        float const lse =
            sum == 0.0f ? -kInfinity : (softmax.offset[r] + lg2_approx_ftz(sum)) * kLn2;
        st_global(p.lse + (static_cast<std::int64_t>(w.batch) * p.heads + w.head) * p.seq_q + i,
                  lse);
      }
    }
    auto const mO = whole_vectors(
        matrix<1>(head<T>(p.o, p.o_stride, w.batch, w.head), p.o_stride.seq, p.seq_q, C.head_dim));
    auto const sO = tensor(smem.q);
    warp::sync();  // every lane of the warp has read its fragments of Q
    copy(convert<T>(tOrO), MmaO{thread}.partition_c(sO));
    warp::sync();  // the warp's rows of O are complete in shared memory
    copy(CopyO{thread}, sO, local_tile<C.block_m, C.head_dim>(mO, w.block_m, 0));
  }
};

}  // namespace tegula
