#pragma once

/// What the families of attention that load by TMA have alike: tensor maps of tokens, the order of
/// their tiles, and the tensors that the checker is told of.

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "describe.hpp"
#include "problem.hpp"
#include "tegula/arch/tensor_map_description.hpp"
#include "tegula/device/arguments.hpp"
#include "tegula/device/properties.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula::device {

/// What is contiguous but for its strides: (head_dim, token, head, batch).
struct TokenTensor {
  char const* name;
  void const* address;
  TokenStrides stride;
  std::int64_t head_dim, seq, heads, batches;
};
/// q, k, v; and o. Preconditions, here and below: arguments with defaults.
std::array<TokenTensor, 3> attention_operands(AttentionArguments const& arguments);
TokenTensor attention_output(AttentionArguments const& arguments);

/// What keeps TMA from a tensor: a clause, or nothing.
std::string attention_tma_obstacle(TokenTensor const& x, DType type);

/// Whether TMA can address q with `group` heads packed.
bool can_pack(AttentionArguments const& arguments, int group);

/// The tensor map of it for these boxes. The stride of an axis of extent 1 is never taken: TMA gets
/// one that it accepts.
TensorMapDescription tensor_description(TokenTensor const& x, DType type, TmaBoxes const& boxes);

/// The tensor map of q for a consumer's rows: (head_dim, head of the group, token, packed head,
/// batch).
TensorMapDescription packed_description(TokenTensor const& q, DType type, TmaBoxes const& boxes,
                                        PackedHeads const& packed);

/// The order of tiles of packed heads' rows, of sequences of one length, and the CTAs that walk it.
RowBlockOrder attention_order(AttentionArguments const& arguments, int consumers,
                              PackedHeads const& packed, DeviceProperties const& device);
int attention_grid(RowBlockOrder const& order, DeviceProperties const& device);

/// Whether rows see ever more keys, so that they take ever longer.
inline bool grows(AttentionMask const& mask) {
  return mask.right < mask.seq_q && mask.left >= mask.seq_k - 1;
}

/// How many tiles the busiest CTA computes, and how many blocks of keys each has; with a mask that
/// grows, how many a consumer of it has.
struct AttentionRounds {
  double rounds, key_blocks;
};
AttentionRounds attention_rounds(AttentionArguments const& arguments, int consumers,
                                 PackedHeads const& packed, int block_n,
                                 DeviceProperties const& device);

/// The parameters that follow from the arguments alone: mask, scale, descales, output.
AttentionSm90Params attention_params(AttentionArguments const& arguments);

/// Q, of a tensor map as of packed_description: nothing where the simulated machine did not encode
/// it.
inline void describe_queries(std::vector<sim::GlobalTensor>& tensors, TensorMap const& map,
                             Coverage coverage) {
  auto const q = sim::decode(map);
  if (!q || q->rank != 5) return;
  auto const stride = [&](std::size_t axis) { return q->strides[axis - 1] / bytes_of(q->dtype); };
  std::int64_t const group = q->extents[1];
  tensors.push_back(tokens("Q", q->dtype, q->address, q->extents[2], q->extents[0],
                           group * q->extents[3], q->extents[4],
                           {stride(4), stride(2), stride(group > 1 ? 1 : 3)}, coverage));
}

/// The tensors of a launch whose sequences are of one length. But for those whose tensor maps the
/// simulated machine did not encode.
inline std::vector<sim::GlobalTensor> describe_heads(AttentionSm90Params const& p, int block_n) {
  AttentionMask const& mask = p.mask;
  RowBlockOrder const& order = p.order;
  if (std::min({mask.seq_q, mask.seq_k, order.heads, order.batches, p.out.head_dim_v}) < 1)
    return {};
  std::vector<GlobalTensor> tensors;
  auto const add = [&](char const* name, TensorMap const& map, Coverage coverage) {
    auto const x = sim::decode(map);
    if (!x || x->rank != 4) return;
    auto const stride = [&](std::size_t axis) { return x->strides[axis - 1] / bytes_of(x->dtype); };
    tensors.push_back(tokens(name, x->dtype, x->address, x->extents[1], x->extents[0],
                             x->extents[2], x->extents[3], {stride(3), stride(1), stride(2)},
                             coverage));
  };
  // Whether each consumer's rows see keys, so that they are loaded, and each key is seen by
  // some row.
  bool all_rows = true;
  for (int row = 0; row < mask.seq_q; row += p.packed.positions)
    all_rows &= !key_blocks(mask, row, p.packed.positions, block_n).empty();
  bool const all_keys = all_rows && mask.begin(0) == 0 && mask.end(mask.seq_q - 1) == mask.seq_k;
  describe_queries(tensors, p.q, all_rows ? Coverage::read : Coverage::any);
  add("K", p.k, all_keys ? Coverage::read : Coverage::any);
  add("V", p.v, all_keys ? Coverage::read : Coverage::any);
  tensors.push_back(tokens("O", p.out.type, p.out.o, mask.seq_q, p.out.head_dim_v, p.out.heads,
                           order.batches, p.out.stride, Coverage::written));
  if (p.out.lse != nullptr)
    tensors.push_back(log_sum_exp(p.out.lse, mask.seq_q, p.out.heads, order.batches));
  if (p.out.sink != nullptr)
    tensors.push_back(
        tensor("sink", DType::f32, p.out.sink, {{"head", p.out.heads, 1}}, Coverage::read));
  for (auto const& [name, factors] : {std::pair("q_descale", p.descales.q),
                                      {"k_descale", p.descales.k},
                                      {"v_descale", p.descales.v}}) {
    if (factors == nullptr) continue;
    int const kv_heads = order.heads / p.heads_per_kv_head;
    DescaleStrides const& s = p.descales.stride;
    tensors.push_back(tensor(name, DType::f32, factors,
                             {{"batch", s.batch == 0 ? 1 : order.batches, s.batch},
                              {"head", s.head == 0 ? 1 : kv_heads, s.head}},
                             Coverage::read));
  }
  return tensors;
}

}  // namespace tegula::device
