#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "describe.hpp"
#include "family_traits.hpp"
#include "problem.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula::device {

template <> struct FamilyTraits<AttentionSm90Family> {
  using Arguments = AttentionArguments;
  using Choice = AttentionChoice;

  static std::string obstacle(AttentionArguments const& a, DeviceProperties const& device);

  static char const* check(AttentionArguments const& arguments, AttentionSm90Config const& c,
                           DeviceProperties const& device) {
    AttentionArguments const a = with_defaults(arguments);
    if (c.dtype != a.dtype) return "another type";
    if (a.head_dim > c.head_dim) return "less than the head dimension";
    if (*a.head_dim_v > c.head_dim_v) return "less than the head dimension of V";
    if (c.exponential != a.exponential) return "another exponential";
    if (static_cast<std::size_t>(shared_bytes(c)) > device.shared_bytes)
      return "more shared memory than the device has";
    return nullptr;
  }

  /// What the choice weighs: the products of the CTA that has the most, tiles padded.
  static double cost(AttentionArguments const& a, AttentionSm90Config const& c,
                     DeviceProperties const& device);

  static AttentionSm90Params lower(Machine const& machine, AttentionArguments const& a,
                                   AttentionChoice const& choice);

  /// The blocks of rows are dealt out dynamically where some take longer than others.
  static void on_stream(AttentionSm90Params& p, void* workspace) {
    if (p.order.last_first) p.counter = static_cast<TileCounter*>(workspace);
  }

  /// But for those whose tensor maps the simulated machine did not encode.
  static std::vector<sim::GlobalTensor> describe(AttentionSm90Config const& c,
                                                 AttentionSm90Params const& p);

  static std::string name(AttentionSm90Config const& c) {
    std::string const dims = c.head_dim_v == c.head_dim
                                 ? std::to_string(c.head_dim)
                                 : fmt::format("{}/{}", c.head_dim, c.head_dim_v);
    return fmt::format("attention_sm90 {} d{} {}x{} {} consumers {} stages {}", to_string(c.dtype),
                       dims, block_m(c), c.block_n, c.consumers, c.stages, text(c.exponential));
  }

  static auto reference(AttentionArguments const& host, std::vector<std::int64_t> const& rows) {
    return tegula::reference::attention(host, rows);
  }
};

inline std::vector<sim::GlobalTensor> FamilyTraits<AttentionSm90Family>::describe(
    AttentionSm90Config const& c, AttentionSm90Params const& p) {
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
  for (int row = 0; row < mask.seq_q; row += kAttentionConsumerRows)
    all_rows &= !key_blocks(mask, row, kAttentionConsumerRows, c.block_n).empty();
  bool const all_keys = all_rows && mask.begin(0) == 0 && mask.end(mask.seq_q - 1) == mask.seq_k;
  add("Q", p.q, all_rows ? Coverage::read : Coverage::any);
  add("K", p.k, all_keys ? Coverage::read : Coverage::any);
  add("V", p.v, all_keys ? Coverage::read : Coverage::any);
  tensors.push_back(tokens("O", p.out.type, p.out.o, mask.seq_q, p.out.head_dim_v, order.heads,
                           order.batches, p.out.stride, Coverage::written));
  if (p.out.lse != nullptr)
    tensors.push_back(log_sum_exp(p.out.lse, mask.seq_q, order.heads, order.batches));
  if (p.out.sink != nullptr)
    tensors.push_back(
        tensor("sink", DType::f32, p.out.sink, {{"head", order.heads, 1}}, Coverage::read));
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
