#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/gemm.hpp"

namespace tegula::examples {

/// FlashAttention-2 (Dao, arXiv 2307.08691): O = softmax(Q K^T / sqrt(64)) V for each head, bf16 Q,
/// K, V, O (heads, seq, 64); causal, row i sees keys 0 to i. A warp owns 16 rows; S and P never
/// leave registers.
struct FlashAttention {
  struct Params {
    int heads, seq;
    bfloat16 const *q, *k, *v;
    bfloat16* o;
    bool causal;
  };
  using T = bfloat16;

  static constexpr int block_m = 64, block_n = 64, head_dim = 64;
  static constexpr int threads = 128, min_ctas_per_sm = 3;
  // log2(e) / sqrt(head_dim): exponentials are base 2
  static constexpr float scale_log2 = 1.44269504f / 8;

  static constexpr MmaSpec mma = warp_mma(DType::bf16, DType::f32, 16);
  using MmaS = TiledMma<TiledMmaSpec{mma, block_m, block_n, 4}>;    // S = Q K^T
  using MmaO = TiledMma<TiledMmaSpec{mma, block_m, head_dim, 4}>;   // O = P V
  using Copy = TiledCopy<share_rows({threads, 64, 64, 8, 1}), T>;   // 16 bytes a thread along a row
  using CopyT = TiledCopy<share_rows({threads, 64, 64, 8, 0}), T>;  // of V, along mn

  // As operands (mn, k): Q (block_m, head_dim) and K (block_n, head_dim) are contiguous along k, V
  // (head_dim, block_n) is along mn.
  using TileQ = SharedTile<T, OperandTile{16, block_m, head_dim, 1}>;
  using TileK = SharedTile<T, OperandTile{16, block_n, head_dim, 1, 2}>;
  using TileV = SharedTile<T, OperandTile{16, head_dim, block_n, 0, 2}>;
  struct SharedStorage {
    TileQ q;
    TileK k;
    TileV v;
    template <class F> void name_buffers(F&& name) { name("Q", q), name("K", k), name("V", v); }
  };
  static_assert(MmaS::conflicts_of<'a', TileQ> == 0 && MmaS::conflicts_of<'b', TileK> == 0,
                "Q and K");
  static_assert(MmaO::conflicts_of<'b', TileV> == 0, "ldmatrix of V");
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  static constexpr Dim3 grid(Params const& p) { return {ceil_div(p.seq, block_m), p.heads, 1}; }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx(), block = block_idx().x;
    std::int64_t const head = std::int64_t{block_idx().y} * p.seq * head_dim;
    // d = head_dim, a multiple of the copies' vectors
    auto const mQ = whole_vectors(matrix<1>(p.q + head, head_dim, p.seq, head_dim));  // (seq, d)
    auto const mK = whole_vectors(matrix<1>(p.k + head, head_dim, p.seq, head_dim));  // (seq, d)
    auto const mV = whole_vectors(matrix<0>(p.v + head, head_dim, head_dim, p.seq));  // (d, seq)
    auto const mO = whole_vectors(matrix<1>(p.o + head, head_dim, p.seq, head_dim));  // (seq, d)
    auto const gK = local_tile<block_n, head_dim>(mK, _, 0);  // (block_n, head_dim, blocks)
    auto const gV = local_tile<head_dim, block_n>(mV, 0, _);  // (head_dim, block_n, blocks)
    auto const sQ = tensor(smem.q);                           // (block_m, head_dim)
    auto const sK = tensor(smem.k);                           // (block_n, head_dim, stages)
    auto const sV = tensor(smem.v);                           // (head_dim, block_n, stages)
    auto const tSsQ = MmaS{thread}.partition_a(sQ);           // (loads, MMA_K)
    auto const tSsK = MmaS{thread}.partition_b(sK);           // (loads, MMA_K, stages)
    auto const tOsV = MmaO{thread}.partition_b(sV);           // (loads, MMA_K, stages)
    MmaS::Accumulator tSrS;                                   // (MMA, MMA_M, MMA_N)
    MmaO::Accumulator tOrO;                                   // (MMA, MMA_M, MMA_N)
    constexpr int rows = count_along<MmaS::ValuesC, 0>, columns = count_along<MmaS::ValuesC, 1>;
    // of the rows so far: the maximum of S log2(e) / 8, the sum of 2^...
    float maximum[rows], sum[rows];
    for (int r = 0; r < rows; ++r) maximum[r] = -__builtin_huge_valf(), sum[r] = 0;
    clear(tOrO);

    int const end = (block + 1) * block_m,
              keys = p.causal && end < p.seq ? end : p.seq;  // that rows here see
    copy(Copy{thread}, local_tile<block_m, head_dim>(mQ, block, 0), sQ);
    copy(Copy{thread}, gK(_, _, 0), sK(_, _, 0));
    copy(CopyT{thread}, gV(_, _, 0), sV(_, _, 0));
    for (int n = 0; n * block_n < keys; ++n) {
      cp_async_wait_all();  // this thread's copies of K[n] and V[n] have landed,
      cta::sync();          // and everybody's; nobody still reads the other stage
      if ((n + 1) * block_n < keys) {
        copy(Copy{thread}, gK(_, _, n + 1), sK(_, _, (n + 1) % 2));
        copy(CopyT{thread}, gV(_, _, n + 1), sV(_, _, (n + 1) % 2));
      }

      clear(tSrS);
      gemm<2>(MmaS{}, tSsQ, tSsK(_, _, n % 2), tSrS);
      Coordinate const origin{block * block_m, n * block_n};
      for_each(tSrS, MmaS{thread}.origin_c() + origin, [&](float& s, Index row, Index key) {
        if (key >= p.seq || (p.causal && int{key} > int{row})) s = -__builtin_huge_valf();
      });

      auto const largest = reduce<1>(tSrS, [](float a, float b) { return max_f32(a, b); });
      for (int r = 0; r < rows; ++r) {
        // four lanes share a row
        float const pair = max_f32(largest(r), warp::shfl_xor(largest(r), 1));
        float const next = max_f32(maximum[r], max_f32(pair, warp::shfl_xor(pair, 2)) * scale_log2);
        float const factor = ex2_approx_ftz(maximum[r] - next);  // 0 at first
        for (int c = 0; c < columns; ++c)
          row_column(tSrS, r, c) = ex2_approx_ftz(fma(row_column(tSrS, r, c), scale_log2, -next));
        for (int c = 0; c < count_along<MmaO::ValuesC, 1>; ++c) row_column(tOrO, r, c) *= factor;
        maximum[r] = next, sum[r] *= factor;
      }
      auto const added = reduce<1>(tSrS, [](float a, float b) { return a + b; });
      // this lane's; the quad's are added at the end
      for (int r = 0; r < rows; ++r) sum[r] += added(r);
      // S's accumulators, rounded to bf16, are already the registers of the operand P.
      gemm<2>(MmaO{}, MmaO::operand_a(MmaS{}, tSrS), tOsV(_, _, n % 2), tOrO);
    }
    for (int r = 0; r < rows; ++r) {
      float const pair = sum[r] + warp::shfl_xor(sum[r], 1);
      float const total = pair + warp::shfl_xor(pair, 2);
      for (int c = 0; c < count_along<MmaO::ValuesC, 1>; ++c)
        row_column(tOrO, r, c) *= 1.0f / total;
    }
    warp::sync();  // the warp has read its rows of Q, which O replaces
    copy(convert<T>(tOrO), MmaO{thread}.partition_c(sQ));
    cta::sync();  // all rows of O are there
    copy(Copy{thread}, sQ, local_tile<block_m, head_dim>(mO, block, 0));
  }
};

}  // namespace tegula::examples
