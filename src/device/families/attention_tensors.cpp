#include "attention_tensors.hpp"

#include <fmt/format.h>

#include <tuple>

#include "attention_serving.hpp"

namespace tegula::device {
namespace {

/// Whether rows see ever more keys, so that they take ever longer.
bool grows(AttentionMask const& mask) {
  return mask.right < mask.seq_q && mask.left >= mask.seq_k - 1;
}

/// Heads that run side by side where their blocks of rows differ in length, so that L2 serves the
/// keys of all of them: 32 MB of keys and values, at least eight heads. The longest blocks of a
/// group come first, and the short ones fill what these leave of the multiprocessors: so a group
/// has three blocks and more for each of them, and no group is much smaller than the others. Tuned
/// for speed on an H200.
int heads_side_by_side(AttentionArguments const& a, std::int64_t blocks,
                       DeviceProperties const& device) {
  constexpr std::int64_t served = std::int64_t{32} << 20, least = 8, rounds = 3;
  std::int64_t const keys_and_values = *a.seq_k * (a.head_dim + *a.head_dim_v) * bytes_of(a.dtype),
                     sharing = a.heads / *a.kv_heads, all = a.batch * a.heads,
                     most = std::max({least, served / keys_and_values * sharing,
                                      ceil_div(rounds * device.multiprocessors, blocks)}),
                     groups = ceil_div(all, most);
  return static_cast<int>(std::min(all, ceil_div(ceil_div(all, groups), sharing) * sharing));
}

}  // namespace

std::array<TokenTensor, 3> attention_operands(AttentionArguments const& a) {
  TokenExtents const q = query_extents(a), k = key_extents(a);
  return {{{"q", a.q, *a.q_stride, a.head_dim, q.seq, a.heads, q.batch},
           {"k", a.k, *a.k_stride, a.head_dim, k.seq, *a.kv_heads, k.batch},
           {"v", a.v, *a.v_stride, *a.head_dim_v, k.seq, *a.kv_heads, k.batch}}};
}

TokenTensor attention_output(AttentionArguments const& a) {
  TokenExtents const q = query_extents(a);
  return {"o", a.o, *a.o_stride, *a.head_dim_v, q.seq, a.heads, q.batch};
}

std::string attention_tma_obstacle(TokenTensor const& x, DType type) {
  // bytes: cuTensorMapEncodeTiled's globalStrides
  constexpr std::int64_t limit = std::int64_t{1} << 40;
  for (auto const& [axis, extent, stride] : {std::tuple("batch", x.batches, x.stride.batch),
                                             {"seq", x.seq, x.stride.seq},
                                             {"head", x.heads, x.stride.head}}) {
    if (extent > 1 && stride == 0)
      return fmt::format("TMA cannot address {}: its {} stride is 0", x.name, axis);
    if (extent > 1 && stride >= limit / bytes_of(type))
      return fmt::format(
          "TMA cannot address {}: its {} stride is {} elements, which is not below 2^40 bytes",
          x.name, axis, stride);
  }
  return {};
}

TensorMapDescription tensor_description(TokenTensor const& x, DType type, TmaBoxes const& boxes) {
  auto const bytes = [&](std::int64_t extent, std::int64_t stride) {
    return extent == 1 ? std::int64_t{16} : stride * bytes_of(type);
  };
  return {.dtype = type,
          .rank = 4,
          .address = x.address,
          .extents = {x.head_dim, x.seq, x.heads, x.batches},
          .strides = {bytes(x.seq, x.stride.seq), bytes(x.heads, x.stride.head),
                      bytes(x.batches, x.stride.batch)},
          .box = {boxes.box(0), boxes.box(1), 1, 1},
          .swizzle = boxes.swizzle};
}

RowBlockOrder attention_order(AttentionArguments const& a, int block_m,
                              DeviceProperties const& device) {
  bool const last_first = grows(mask_of(a));
  std::int64_t const blocks = ceil_div(a.seq_q, block_m);
  return {.blocks = static_cast<int>(blocks),
          .heads = static_cast<int>(a.heads),
          .batches = static_cast<int>(a.batch),
          .group = last_first ? heads_side_by_side(a, blocks, device) : 1,
          .last_first = last_first};
}

int attention_grid(RowBlockOrder const& order, DeviceProperties const& device) {
  return std::min(order.count(), device.multiprocessors);
}

AttentionRounds attention_rounds(AttentionArguments const& a, int block_m, int block_n,
                                 DeviceProperties const& device) {
  AttentionMask const mask = mask_of(a);
  RowBlockOrder const order = attention_order(a, block_m, device);
  std::int64_t blocks = 0;  // of keys, over the blocks of rows of a head
  for (int i = 0; i < order.blocks; ++i) {
    KeyBlocks const of_rows = key_blocks(mask, i * block_m, block_m, block_n);
    if (!of_rows.empty()) blocks += of_rows.last - of_rows.first;
  }
  int const grid = attention_grid(order, device);
  return {.rounds = grows(mask) ? static_cast<double>(order.count()) / grid
                                : static_cast<double>(ceil_div(order.count(), grid)),
          .key_blocks = static_cast<double>(blocks) / order.blocks};
}

AttentionSm90Params attention_params(AttentionArguments const& a) {
  bool const capped = a.softcap != 0;
  AttentionSm90Params p;
  p.mask = mask_of(a);
  p.scale = capped ? a.softcap : *a.scale;
  p.softcap_scale = capped ? *a.scale / a.softcap : 0.0f;
  p.descales = {.q = a.q_descale, .k = a.k_descale, .v = a.v_descale, .stride = *a.descale_stride};
  p.out = {.o = a.o,
           .lse = a.lse,
           .sink = a.sink,
           .stride = *a.o_stride,
           .seq_q = p.mask.seq_q,
           .heads = static_cast<int>(a.heads),
           .head_dim_v = static_cast<int>(*a.head_dim_v),
           .type = *a.out};
  return p;
}

}  // namespace tegula::device
