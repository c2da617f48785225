#pragma once

#include "tegula/arch/special_registers.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/kernel/attention_mask.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/kernel/online_softmax.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/tiled_mma.hpp"

namespace tegula {

/// S of block n of the keys, as the softmax wants it: capped, and -inf where a row does not see a
/// key. `blocks` are those that the rows of tSrS see; `rows` says at which position one stands.
template <AttentionSm90Config C, class Mma, class Rows>
TEGULA_DEVICE void cap_and_mask(float softcap_scale, AttentionMask const& mask, Rows const& rows,
                                KeyBlocks const& blocks, int n, typename Mma::Accumulator& tSrS) {
  // One branch, and not taken for most blocks.
  bool const capped = softcap_scale != 0.0f;
  if (!capped && n < blocks.whole_last && n >= blocks.whole_first) return;
  if (capped) {
#pragma unroll
    for (int i = 0; i < tSrS.size; ++i)
      tSrS(i) = tanh_by_exp2<C.exponential>(tSrS(i) * softcap_scale);
  }
  AttentionMask const keys = mask;
  auto const hide = [&](auto hidden) {
    Coordinate const origin{rows.first, n * C.block_n};
    for_each(tSrS, Mma{thread_idx_here() % kWarpgroupSize}.origin_c() + origin,
             [&](float& s, Index i, Index key) {
               if (hidden(rows.position(i), key)) s = -kInfinity;
             });
  };
  if (n >= blocks.whole_last) hide([&](int i, Index key) { return key >= edge(keys.end(i)); });
  if (n < blocks.whole_first) hide([&](int i, Index key) { return key < keys.begin(i); });
}

}  // namespace tegula
