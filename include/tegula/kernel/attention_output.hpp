#pragma once

#include <cstdint>

#include "tegula/arch/global.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/online_softmax.hpp"
#include "tegula/tensor/row_store.hpp"

/// The end of an attention kernel: from the sums over keys to O in global memory.
namespace tegula {

/// Where O goes, (batch, seq_q, heads, head_dim_v), and what its rows need besides.
struct AttentionOutput {
  void* o = nullptr;
  float* lse = nullptr;         ///< the log-sum-exp of each row; null: not wanted
  float const* sink = nullptr;  ///< a score for each head, without a value; null: there is none
  TokenStrides stride;          ///< of o
  std::int64_t lse_batch = 0, lse_head = 0;  ///< strides of lse, whose rows are contiguous
  int heads = 0;
  int head_dim_v = 0;
  DType type = DType::bf16;  ///< of o: f16 or bf16
};

/// The softmax of a row once all its keys, and the sink, are counted: what O is multiplied by, and
/// what the log-sum-exp follows from.
template <Exponential E> struct RowTotal {
  float offset, sum, factor;

  TEGULA_DEVICE RowTotal(float row_offset, float row_sum, float const* sink, float descale,
                         SourceLocation where)
      : offset(row_offset), sum(row_sum) {
    float scale = 1.0f;
    if (sink != nullptr) {
      float const score = ld_global<float>(sink, where) * kLog2E;
      float const next = max_f32(offset, score);
      float const subtrahend = next == -kInfinity ? 0.0f : next;
      scale = exp2<E>(offset - subtrahend);
      sum = fma(sum, scale, exp2<E>(score - subtrahend));
      offset = next;
    }
    factor = sum == 0.0f ? 0.0f : descale * scale / sum;
  }
  TEGULA_DEVICE float log_sum_exp() const {
    return sum == 0.0f ? -kInfinity : (offset + lg2_approx_ftz(sum)) * kLn2;
  }
};

namespace detail {

/// store_output for one type of O.
template <class T, class Mma, class Rows, class Softmax, class MO>
TEGULA_DEVICE void store_output_as(AttentionOutput const& out, Rows const& rows, int thread,
                                   Softmax const& softmax, Fragment<float, MO>& tOrO, float descale,
                                   SourceLocation where) {
  using Total = RowTotal<Softmax::exponential>;
  Coordinate<2> const own = Mma{thread}.origin_c();
  T* const o = static_cast<T*>(out.o);
#pragma unroll
  for (int r = 0; r < softmax.rows; ++r) {
    int const i = own[0] + step_along<0>(MO{}, r);
    float const* const sink = out.sink == nullptr ? nullptr : out.sink + rows.head(i);
    Total const total(softmax.offset[r], softmax.total(r), sink, descale, where);
#pragma unroll
    for (int c = 0; c < count_along<MO, 1>; ++c) row_column(tOrO, r, c) *= total.factor;
    bool const inside = rows.has(i, where);
    store_row(tOrO, r, o + rows.offset(out, i), out.head_dim_v, inside, where);
    if (out.lse != nullptr && own[1] == 0 && inside)
      st_global(out.lse + rows.lse_offset(out, i), total.log_sum_exp(), where);
  }
}

/// f(T{}) with the type of O: T, or where that has 8 bits `out.type`.
template <class T, class F> TEGULA_DEVICE void with_output_type(AttentionOutput const& out, F f) {
  if constexpr (sizeof(T) == 2) {
    f(T{});
  } else if (out.type == DType::f16) {
    f(half{});
  } else {
    f(bfloat16{});
  }
}

}  // namespace detail

/// O = descale O / sum, rounded to T, or where T has 8 bits to `out.type`, to global memory, 16
/// bytes a lane; the log-sum-exp beside it. By all lanes of a warp: tOrO is a thread's accumulators
/// of a TiledMma whose rows are `rows`, and `thread` the thread's number in it.
template <class T, class Mma, class Rows, class Softmax, class MO>
TEGULA_DEVICE void store_output(AttentionOutput const& out, Rows const& rows, int thread,
                                Softmax const& softmax, Fragment<float, MO>& tOrO,
                                float descale = 1.0f,
                                SourceLocation where = SourceLocation::current()) {
  detail::with_output_type<T>(out, [&](auto element) {
    detail::store_output_as<decltype(element), Mma>(out, rows, thread, softmax, tOrO, descale,
                                                    where);
  });
}

}  // namespace tegula
