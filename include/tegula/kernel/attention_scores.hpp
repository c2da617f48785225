#pragma once

#include <cstdint>

#include "tegula/arch/global.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/kernel/attention_mask.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/kernel/online_softmax.hpp"
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

/// S of block n of BlockN keys, as the softmax wants it: capped where softcap_scale is not 0, and
/// -inf where a row does not see a key. By all threads of the tiled MMA whose accumulators S are;
/// rows.position(i) says where row i of them stands.
template <class Mma, Exponential E, int BlockN, class Rows, class M>
TEGULA_DEVICE void cap_and_mask(AttentionMask const& all, KeyBlocks const& blocks, Rows const& rows,
                                int n, float softcap_scale, Fragment<float, M>& tSrS) {
  // One branch, and not taken for most blocks.
  bool const capped = softcap_scale != 0.0f;
  if (!capped && n < blocks.whole_last && n >= blocks.whole_first) return;
  if (capped) {
#pragma unroll
    for (int i = 0; i < tSrS.size; ++i) tSrS(i) = tanh_by_exp2<E>(tSrS(i) * softcap_scale);
  }
  AttentionMask const mask = all;
  auto const hide = [&](auto hidden) {
    Coordinate const origin{0, n * BlockN};
    for_each(tSrS, Mma{thread_idx_here() % Mma::threads}.origin_c() + origin,
             [&](float& s, Index i, Index key) {
               if (hidden(rows.position(i), key)) s = -kInfinity;
             });
  };
  if (n >= blocks.whole_last) hide([&](int i, Index key) { return key >= edge(mask.end(i)); });
  if (n < blocks.whole_first) hide([&](int i, Index key) { return key < mask.begin(i); });
}

}  // namespace tegula
