#pragma once

#include <cstdint>

#include "tegula/arch/global.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/online_softmax.hpp"
#include "tegula/pipeline/row_blocks.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/row_store.hpp"

/// The end of an attention kernel: from the sums over keys to O in global memory.
namespace tegula {

/// Where O goes, (batch, seq_q, heads, head_dim_v), and what its rows need besides.
struct AttentionOutput {
  void* o = nullptr;
  float* lse = nullptr;         ///< (batch, heads, seq_q), contiguous; null: not wanted
  float const* sink = nullptr;  ///< a score for each head, without a value; null: there is none
  TokenStrides stride;          ///< of o
  int seq_q = 0;
  int heads = 0;
  int head_dim_v = 0;
  DType type = DType::bf16;  ///< of o: f16 or bf16
};

namespace detail {

/// store_output for one type of O.
template <class T, class Mma, class Softmax, class MO>
TEGULA_DEVICE void store_output_as(AttentionOutput const& out, RowBlock const& at, int row,
                                   int thread, Softmax const& softmax, Fragment<float, MO>& tOrO,
                                   float descale, SourceLocation where) {
  constexpr Exponential E = Softmax::exponential;
  Coordinate<2> const own = Mma{thread}.origin_c();
  T* const o = static_cast<T*>(out.o) + at.batch * out.stride.batch + at.head * out.stride.head;
#pragma unroll
  for (int r = 0; r < softmax.rows; ++r) {
    float offset = softmax.offset[r], sum = softmax.total(r), scale = 1.0f;
    if (out.sink != nullptr) {
      float const score = ld_global<float>(out.sink + at.head, where) * kLog2E;
      float const next = max_f32(offset, score);
      float const subtrahend = next == -kInfinity ? 0.0f : next;
      scale = exp2<E>(offset - subtrahend);
      sum = fma(sum, scale, exp2<E>(score - subtrahend));
      offset = next;
    }
    float const factor = sum == 0.0f ? 0.0f : descale * scale / sum;
#pragma unroll
    for (int c = 0; c < count_along<MO, 1>; ++c) row_column(tOrO, r, c) *= factor;
    int const i = row + own[0] + step_along<0>(MO{}, r);
    bool const inside = i < edge(out.seq_q, where);
    store_row(tOrO, r, o + i * out.stride.seq, out.head_dim_v, inside, where);
    if (out.lse != nullptr && own[1] == 0 && inside) {
      float const lse = sum == 0.0f ? -kInfinity : (offset + lg2_approx_ftz(sum)) * kLn2;
      std::int64_t const head = static_cast<std::int64_t>(at.batch) * out.heads + at.head;
      st_global(out.lse + head * out.seq_q + i, lse, where);
    }
  }
}

}  // namespace detail

/// O = descale O / sum, rounded to T, or where T has 8 bits to `out.type`, to global memory, 16
/// bytes a lane; the log-sum-exp beside it. By all lanes of a warp: tOrO is a thread's accumulators
/// of a TiledMma whose first row is `row` of the block's head and batch, and `thread` the thread's
/// number in it.
template <class T, class Mma, class Softmax, class MO>
TEGULA_DEVICE void store_output(AttentionOutput const& out, RowBlock const& at, int row, int thread,
                                Softmax const& softmax, Fragment<float, MO>& tOrO,
                                float descale = 1.0f,
                                SourceLocation where = SourceLocation::current()) {
  auto const store_as = [&](auto element) {
    detail::store_output_as<decltype(element), Mma>(out, at, row, thread, softmax, tOrO, descale,
                                                    where);
  };
  if constexpr (sizeof(T) == 2) {
    store_as(T{});
  } else if (out.type == DType::f16) {
    store_as(half{});
  } else {
    store_as(bfloat16{});
  }
}

}  // namespace tegula
