#include "attention_tensors.hpp"

#include <fmt/format.h>

#include <tuple>

#include "attention_serving.hpp"
#include "tegula/io/text.hpp"

namespace tegula::device {
namespace {

/// Of `heads` packed heads of a batch, those that run side by side where their blocks of rows
/// differ in length, so that L2 serves the keys of all of them: 32 MB of keys and values, at least
/// eight heads. The longest blocks of a group come first, and the short ones fill what these leave
/// of the multiprocessors: so a group has three blocks and more for each of them, and no group is
/// much smaller than the others. Tuned for speed on an H200.
int heads_side_by_side(AttentionArguments const& a, std::int64_t heads, std::int64_t blocks,
                       DeviceProperties const& device) {
  constexpr std::int64_t served = std::int64_t{32} << 20, least = 8, rounds = 3;
  std::int64_t const keys_and_values = *a.seq_k * (a.head_dim + *a.head_dim_v) * bytes_of(a.dtype),
                     sharing = heads / *a.kv_heads, all = a.batch * heads,
                     most = std::max({least, served / keys_and_values * sharing,
                                      ceil_div(rounds * device.multiprocessors, blocks)}),
                     groups = ceil_div(all, most);
  return static_cast<int>(std::min(all, ceil_div(ceil_div(all, groups), sharing) * sharing));
}

/// The sum of floor((slope i + start) / divisor) over i in [0, count): of points with whole
/// coordinates below a line, which are counted along the other axis when whole columns are gone, as
/// Euclid's algorithm goes on. Preconditions: none is negative, divisor > 0.
std::int64_t sum_of_quotients(std::int64_t count, std::int64_t slope, std::int64_t start,
                              std::int64_t divisor) {
  if (count == 0) return 0;
  std::int64_t const whole =
      count * (count - 1) / 2 * (slope / divisor) + count * (start / divisor);
  slope %= divisor, start %= divisor;
  std::int64_t const end = slope * count + start;
  return whole + sum_of_quotients(end / divisor, divisor, end % divisor, slope);
}

/// The sum over i in [0, count) of the blocks of block_n keys that lie before the key start + step
/// i, of those from 0 to `keys`: whole ones, or with `begun` those that are begun, too.
std::int64_t blocks_before(std::int64_t count, std::int64_t step, std::int64_t start,
                           std::int64_t keys, std::int64_t block_n, bool begun) {
  auto const first_from = [&](std::int64_t key) {  // the first i whose key is that or a later one
    return key <= start ? 0 : std::min(count, ceil_div(key - start, step));
  };
  std::int64_t const some = first_from(1), all = first_from(keys), up = begun ? block_n - 1 : 0;
  return sum_of_quotients(all - some, step, start + some * step + up, block_n) +
         (count - all) * ((keys + up) / block_n);
}

/// The blocks of keys of all of a head's `tiles` tiles.
std::int64_t all_key_blocks(AttentionMask const& mask, int tiles, int positions, int block_n) {
  auto const before = [&](std::int64_t count, std::int64_t start, bool begun) {
    return blocks_before(count, positions, start, mask.seq_k, block_n, begun);
  };
  std::int64_t const place = std::int64_t{mask.seq_k} - mask.seq_q;  // of the first row
  // The last tile's last row is the last there is, at the last key.
  return before(std::max(tiles - 1, 0), place + positions + mask.right, true) +
         ceil_div(mask.seq_k, block_n) - before(tiles, place - mask.left, false);
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
          "TMA cannot address {}: its {} stride is {}, which is not below 2^40 bytes", x.name, axis,
          io::counted(stride, "element"));
  }
  return {};
}

bool can_pack(AttentionArguments const& a, int group) {
  TokenTensor q = attention_operands(a)[0];
  q.heads /= group, q.stride.head *= group;
  return attention_tma_obstacle(q, a.dtype).empty();
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

TensorMapDescription packed_description(TokenTensor const& q, DType type, TmaBoxes const& boxes,
                                        PackedHeads const& packed) {
  int const group = packed.group;
  TensorMapDescription d = tensor_description(q, type, boxes);
  auto const bytes = [&](std::int64_t extent, std::int64_t stride) {
    return extent == 1 ? std::int64_t{16} : stride * bytes_of(type);
  };
  d.rank = 5;
  d.extents = {q.head_dim, group, q.seq, q.heads / group, q.batches};
  d.strides = {bytes(group, q.stride.head), bytes(q.seq, q.stride.seq),
               bytes(q.heads / group, group * q.stride.head), bytes(q.batches, q.stride.batch)};
  d.box = {boxes.box(0), group, packed.positions, 1, 1};
  return d;
}

RowBlockOrder attention_order(AttentionArguments const& a, int consumers, PackedHeads const& packed,
                              DeviceProperties const& device) {
  bool const last_first = grows(mask_of(a));
  std::int64_t const blocks = ceil_div(a.seq_q, consumers * packed.positions),
                     heads = a.heads / packed.group;
  return {.blocks = static_cast<int>(blocks),
          .heads = static_cast<int>(heads),
          .batches = static_cast<int>(a.batch),
          .group = last_first ? heads_side_by_side(a, heads, blocks, device) : 1,
          .last_first = last_first};
}

int attention_grid(RowBlockOrder const& order, DeviceProperties const& device) {
  return std::min(order.count(), device.multiprocessors);
}

AttentionRounds attention_rounds(AttentionArguments const& a, int consumers,
                                 PackedHeads const& packed, int block_n,
                                 DeviceProperties const& device) {
  AttentionMask const mask = mask_of(a);
  RowBlockOrder const order = attention_order(a, consumers, packed, device);
  int const grid = attention_grid(order, device);
  auto const mean_blocks = [&](int parts, int positions) {
    return static_cast<double>(all_key_blocks(mask, parts, positions, block_n)) / parts;
  };
  if (!grows(mask))
    return {.rounds = static_cast<double>(ceil_div(order.count(), grid)),
            .key_blocks = mean_blocks(order.blocks, consumers * packed.positions)};
  // A consumer that sees fewer keys than another begins the next tile meanwhile.
  int const parts = static_cast<int>(ceil_div(mask.seq_q, packed.positions));
  return {.rounds = static_cast<double>(order.count()) / grid,
          .key_blocks = mean_blocks(parts, packed.positions)};
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
           .lse_batch = a.cu_seqlens_q != nullptr ? 0 : a.heads * query_extents(a).seq,
           .lse_head = query_extents(a).seq,
           .heads = static_cast<int>(a.heads),
           .head_dim_v = static_cast<int>(*a.head_dim_v),
           .type = *a.out};
  return p;
}

}  // namespace tegula::device
