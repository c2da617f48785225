#pragma once

#include <cstdint>

#include "tegula/arch/global.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/kernel/attention_mask.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/kernel/online_softmax.hpp"
#include "tegula/kernel/packed_heads.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/fragment.hpp"

/// What is done to attention's scores between the first product and the softmax.
namespace tegula {

/// The factors of a tile's scores and values.
struct Descale {
  float scores = 1.0f, values = 1.0f;
};
/// Those of operands of 8 bits for a tile; else they are 1, known at compile time.
template <bool Has, class Work>
TEGULA_DEVICE Descale
descale_of([[maybe_unused]] AttentionSm90Params const& p, [[maybe_unused]] Work const& work,
           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  if constexpr (Has) {
    AttentionDescales const& d = p.descales;
    int const kv_head = work.head() / p.heads_per_kv_head;
    std::int64_t const place = work.batch() * d.stride.batch + kv_head * d.stride.head;
    auto const of = [&](float const* factors) {
      return factors == nullptr ? 1.0f : ld_global<float>(factors + place, where);
    };
    return {of(d.q) * of(d.k), of(d.v)};
  } else {
    return {};
  }
}

/// total += addend, whose values are those of total from number `first` on.
template <class M, class N>
TEGULA_DEVICE void add_to(Fragment<float, M>& total, int first, Fragment<float, N> const& addend,
                          SourceLocation where = SourceLocation::current()) {
#pragma unroll
  for (int i = 0; i < addend.size; ++i) {
    float& sum = total(first + i, where);
    sum += addend(i, where);
  }
}

/// Where the rows stand of which a thread has accumulators. A kernel asks before it walks the keys:
/// what follows from how heads are packed is then in no register of the loop.
template <class Mma> struct RowPositions {
  using Map = typename Mma::Accumulator::Map;
  static constexpr int rows = count_along<Map, 0>;
  int of_row[rows];

  TEGULA_DEVICE explicit RowPositions(PackedRows const& packed) {
    int const first = Mma{thread_idx_here() % Mma::threads}.origin_c()[0];
#pragma unroll
    for (int r = 0; r < rows; ++r) of_row[r] = packed.position(first + step_along<0>(Map{}, r));
  }
};

/// S of block n of BlockN keys, as the softmax wants it: capped where softcap_scale is not 0, and
/// -inf where a row does not see a key. By all threads of the tiled MMA whose accumulators S are.
template <class Mma, Exponential E, int BlockN, class M>
TEGULA_DEVICE void cap_and_mask(AttentionMask const& all, KeyBlocks const& blocks,
                                RowPositions<Mma> const& positions, int n, float softcap_scale,
                                Fragment<float, M>& tSrS) {
  // One branch, and not taken for most blocks.
  bool const capped = softcap_scale != 0.0f;
  if (!capped && n < blocks.whole_last && n >= blocks.whole_first) return;
  if (capped) {
#pragma unroll
    for (int i = 0; i < tSrS.size; ++i) tSrS(i) = tanh_by_exp2<E>(tSrS(i) * softcap_scale);
  }
  AttentionMask const mask = all;
  // hidden(column, limit), both counted from the thread's first key on.
  auto const hide = [&](auto limit, auto hidden) {
    int const first = n * BlockN + Mma{thread_idx_here() % Mma::threads}.origin_c()[1];
#pragma unroll
    for (int r = 0; r < count_along<M, 0>; ++r) {
      int const of_row = limit(positions.of_row[r]) - first;
#pragma unroll
      for (int c = 0; c < count_along<M, 1>; ++c)
        if (hidden(step_along<1>(M{}, c), of_row)) row_column(tSrS, r, c) = -kInfinity;
    }
  };
  if (n >= blocks.whole_last)
    hide([&](int i) { return edge(mask.end(i)); }, [](int key, int end) { return key >= end; });
  if (n < blocks.whole_first)
    hide([&](int i) { return mask.begin(i); }, [](int key, int begin) { return key < begin; });
}

}  // namespace tegula
