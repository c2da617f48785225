// What attention_sm90 can compute, at what cost, and what it is launched with, tensor
// maps included.

#include "attention_sm90.hpp"

#include <array>

#include "tegula/device/tensor_map.hpp"

namespace tegula::device {
namespace {

AttentionMask mask_of(AttentionArguments const& a) {
  auto const keys = [](std::optional<std::int64_t> const& window) {
    return static_cast<int>(std::min<std::int64_t>(window.value_or(AttentionMask::unlimited),
                                                   AttentionMask::unlimited));
  };
  return {.seq_q = static_cast<int>(a.seq_q),
          .seq_k = static_cast<int>(*a.seq_k),
          .left = keys(a.window_left),
          .right = a.causal ? 0 : keys(a.window_right)};
}

/// Whether rows see ever more keys, so that they take ever longer.
bool grows(AttentionMask const& mask) {
  return mask.right < mask.seq_q && mask.left >= mask.seq_k - 1;
}

/// What is contiguous but for its strides: (head_dim, token, head, batch).
struct TokenTensor {
  char const* name;
  void const* address;
  TokenStrides stride;
  std::int64_t head_dim, seq, heads, batches;
};
std::array<TokenTensor, 3> operands(AttentionArguments const& a) {
  return {{{"q", a.q, *a.q_stride, a.head_dim, a.seq_q, a.heads, a.batch},
           {"k", a.k, *a.k_stride, a.head_dim, *a.seq_k, *a.kv_heads, a.batch},
           {"v", a.v, *a.v_stride, *a.head_dim_v, *a.seq_k, *a.kv_heads, a.batch}}};
}

/// The tensor map of it for these boxes. The stride of an axis of extent 1 is never taken: TMA gets
/// one that it accepts.
TensorMapDescription description(TokenTensor const& x, DType type, TmaBoxes const& boxes) {
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

/// Heads that run side by side where their blocks of rows differ in length, so that L2 serves the
/// keys of all of them: 32 MB of keys and values, at least eight heads. Tuned for speed on an H200.
int heads_side_by_side(AttentionArguments const& a) {
  constexpr std::int64_t served = std::int64_t{32} << 20, least = 8;
  std::int64_t const keys_and_values = *a.seq_k * (a.head_dim + *a.head_dim_v) * bytes_of(a.dtype);
  std::int64_t const heads = std::max(least, served / keys_and_values * (a.heads / *a.kv_heads));
  return static_cast<int>(std::min(heads, a.batch * a.heads));
}

RowBlockOrder order_of(AttentionArguments const& a, AttentionMask const& mask, int block_m) {
  bool const last_first = grows(mask);
  return {.blocks = static_cast<int>(ceil_div(a.seq_q, block_m)),
          .heads = static_cast<int>(a.heads),
          .batches = static_cast<int>(a.batch),
          .group = last_first ? heads_side_by_side(a) : 1,
          .last_first = last_first};
}

int grid_of(RowBlockOrder const& order, DeviceProperties const& device) {
  return std::min(order.count(), device.multiprocessors);
}

}  // namespace

std::string FamilyTraits<AttentionSm90Family>::obstacle(AttentionArguments const& arguments,
                                                        DeviceProperties const& device) {
  if (device.compute_capability != 90)
    return fmt::format("the device is sm_{}", device.compute_capability);
  AttentionArguments const a = with_defaults(arguments);
  // bytes: cuTensorMapEncodeTiled's globalStrides
  constexpr std::int64_t limit = std::int64_t{1} << 40;
  for (TokenTensor const& x : operands(a)) {
    for (auto const& [axis, extent, stride] : {std::tuple("batch", x.batches, x.stride.batch),
                                               {"seq", x.seq, x.stride.seq},
                                               {"head", x.heads, x.stride.head}}) {
      if (extent > 1 && stride == 0)
        return fmt::format("TMA cannot address {}: its {} stride is 0", x.name, axis);
      if (extent > 1 && stride >= limit / bytes_of(a.dtype))
        return fmt::format(
            "TMA cannot address {}: its {} stride is {} elements, which is not below 2^40 bytes",
            x.name, axis, stride);
    }
  }
  return {};
}

double FamilyTraits<AttentionSm90Family>::cost(AttentionArguments const& arguments,
                                               AttentionSm90Config const& c,
                                               DeviceProperties const& device) {
  AttentionArguments const a = with_defaults(arguments);
  AttentionMask const mask = mask_of(a);
  RowBlockOrder const order = order_of(a, mask, block_m(c));
  std::int64_t blocks = 0;  // of keys, over the blocks of rows of a head
  for (int i = 0; i < order.blocks; ++i) {
    KeyBlocks const of_rows = key_blocks(mask, i * block_m(c), block_m(c), c.block_n);
    if (!of_rows.empty()) blocks += of_rows.last - of_rows.first;
  }
  double const mean = static_cast<double>(blocks) / order.blocks;
  double const rounds = grows(mask)
                            ? static_cast<double>(order.count()) / grid_of(order, device)
                            : static_cast<double>(ceil_div(order.count(), grid_of(order, device)));
  // What a block costs besides its products, in keys: with fewer bits these take less time.
  int const block_n = c.block_n + (bits(c.dtype) == 8 ? 32 : 0);
  return rounds * (mean * block_n + 64) * block_m(c) * (c.head_dim + c.head_dim_v);
}

AttentionSm90Params FamilyTraits<AttentionSm90Family>::lower(Machine const& machine,
                                                             AttentionArguments const& arguments,
                                                             AttentionChoice const& choice) {
  AttentionArguments const a = with_defaults(arguments);
  AttentionSm90Config const& c = configuration(attention_sm90, choice.configuration);
  AttentionMask const mask = mask_of(a);
  RowBlockOrder const order = order_of(a, mask, block_m(c));
  auto const [q, k, v] = operands(a);
  bool const capped = a.softcap != 0;
  return {.q = encode(machine, description(q, a.dtype, tma_boxes(q_tile(c)))),
          .k = encode(machine, description(k, a.dtype, tma_boxes(k_tile(c)))),
          .v = encode(machine, description(v, a.dtype, tma_boxes(loaded_v_tile(c)))),
          .mask = mask,
          .order = order,
          .ctas = grid_of(order, machine.properties()),
          .heads_per_kv_head = Divisor(static_cast<int>(a.heads / *a.kv_heads)),
          .scale = capped ? a.softcap : *a.scale,
          .softcap_scale = capped ? *a.scale / a.softcap : 0.0f,
          .descales = {.q = a.q_descale,
                       .k = a.k_descale,
                       .v = a.v_descale,
                       .stride = *a.descale_stride},
          .out = {.o = a.o,
                  .lse = a.lse,
                  .sink = a.sink,
                  .stride = *a.o_stride,
                  .seq_q = mask.seq_q,
                  .heads = order.heads,
                  .head_dim_v = static_cast<int>(*a.head_dim_v),
                  .type = *a.out}};
}

}  // namespace tegula::device
