#include "attention_serving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention_tensors.hpp"
#include "problem.hpp"
#include "tegula/device/tensor_map.hpp"
#include "tegula/io/text.hpp"

namespace tegula::device {
namespace {

/// What a tile costs beyond its blocks of keys, and what it costs to add parts up, in keys: the
/// latency of a pipeline that fills, and of an arrival with loads after it. Estimates.
constexpr double kTileOverhead = 128, kSumOverhead = 128, kPartOverhead = 8;

/// Of sequences with lengths of their own: the mean as a share of the longest. An assumption.
constexpr double kMeanLength = 0.25;

/// Query heads that share keys, as many of them as a tile packs so that there are the fewest tiles.
/// A divisor of them, so that every tile packs as many.
void pack(AttentionShares& shares, AttentionArguments const& a, ServingTile const& tile) {
  std::int64_t const sharing = a.heads / *a.kv_heads;
  for (std::int64_t group = 1; group <= std::min<std::int64_t>(sharing, tile.consumer_rows);
       ++group) {
    if (sharing % group != 0 || !can_pack(a, static_cast<int>(group))) continue;
    std::int64_t const positions = tile.consumer_rows / group,
                       tiles = a.batch * (a.heads / group) *
                               ceil_div(a.seq_q, positions * tile.consumers);
    if (group > 1 && tiles >= shares.tiles) continue;
    shares.packed = PackedHeads(static_cast<int>(group), tile.consumer_rows);
    shares.tiles = tiles;
  }
}

/// Blocks of keys that the rows of a tile see at most: those of the window, or all.
int most_key_blocks(AttentionArguments const& a, ServingTile const& tile, int positions) {
  AttentionMask const mask = mask_of(a);
  std::int64_t const all = ceil_div(*a.seq_k, tile.block_n);
  if (mask.left == AttentionMask::unlimited || mask.right == AttentionMask::unlimited)
    return static_cast<int>(all);
  std::int64_t const keys = std::int64_t{mask.left} + mask.right + positions * tile.consumers;
  return static_cast<int>(std::min(all, ceil_div(keys, tile.block_n) + 1));
}

/// Rows of a consumer that there are.
int partial_rows(AttentionArguments const& a, AttentionShares const& shares) {
  return shares.packed.group *
         static_cast<int>(std::min<std::int64_t>(shares.packed.positions, a.seq_q));
}

/// Of a tile's rows in the workspace.
std::int64_t bytes_of_part(AttentionArguments const& a, ServingTile const& tile,
                           AttentionShares const& shares) {
  std::int64_t const rows = std::int64_t{partial_rows(a, shares)} * tile.warpgroups;
  return rows * tile.partial_row * static_cast<std::int64_t>(sizeof(float));
}

/// What the parts cost, in blocks of keys one after the other.
///
/// Sequences of one length are computed in rounds. Of lengths that only the device knows, most are
/// less than they may be: the multiprocessors share the work of the mean, and the last of them to
/// begin a part computes all of it.
double cost_of_parts(AttentionShares const& shares, int parts, int block_n,
                     DeviceProperties const& device) {
  auto const part =
      static_cast<double>(ceil_div(shares.key_blocks, parts)) + kTileOverhead / block_n;
  double const sums = parts > 1 ? (kSumOverhead + kPartOverhead * parts) / block_n : 0;
  auto const items = static_cast<double>(shares.tiles * parts);
  if (shares.uneven && items > device.multiprocessors)
    return (kMeanLength * items / device.multiprocessors + 1) * part + sums;
  return std::ceil(items / device.multiprocessors) * part + sums;
}

}  // namespace

bool needs_serving(AttentionArguments const& a) {
  return a.cu_seqlens_q != nullptr || a.cu_seqlens_k != nullptr || a.seqused_k != nullptr ||
         a.page_table != nullptr;
}

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

AttentionShares attention_shares(AttentionArguments const& arguments, ServingTile const& tile,
                                 DeviceProperties const& device) {
  AttentionArguments const a = with_defaults(arguments);
  AttentionShares shares;
  pack(shares, a, tile);
  shares.key_blocks = most_key_blocks(a, tile, shares.packed.positions);
  // Where there are many queries, there are many tiles, and parts of them would take much memory.
  shares.uneven = a.batch > 1 && a.seq_q <= shares.packed.positions &&
                  (a.seqused_k != nullptr || a.cu_seqlens_k != nullptr);
  // Parts that there may be: of tiles whose arrivals can be counted, with room for the rows of
  // each.
  std::int64_t const bytes = bytes_of_part(a, tile, shares);
  std::int64_t const room =
      bytes == 0 ? 1
                 : std::min<std::int64_t>(kMostArrivals / (shares.tiles * tile.warpgroups),
                                          a.workspace_bytes / (shares.tiles * bytes));
  int const most = static_cast<int>(std::clamp<std::int64_t>(room, 1, shares.key_blocks));
  int chosen = 1;
  if (a.splits) {
    chosen = static_cast<int>(std::min<std::int64_t>(*a.splits, most));
  } else {
    for (int parts = 2; parts <= most; ++parts)
      if (cost_of_parts(shares, parts, tile.block_n, device) <
          cost_of_parts(shares, chosen, tile.block_n, device))
        chosen = parts;
  }
  // Parts of whole blocks: of six blocks five parts are three of two.
  auto const blocks_of_each = [&](std::int64_t parts) {
    return static_cast<int>(ceil_div(shares.key_blocks, parts));
  };
  shares.part_blocks = blocks_of_each(chosen);
  shares.parts = blocks_of_each(shares.part_blocks);
  shares.as_asked = !a.splits || shares.part_blocks == blocks_of_each(std::min<std::int64_t>(
                                                           *a.splits, shares.key_blocks));
  shares.blocks_in_turn = cost_of_parts(shares, shares.parts, tile.block_n, device);
  return shares;
}

std::int64_t partial_bytes(AttentionArguments const& a, ServingTile const& tile,
                           AttentionShares const& shares) {
  return shares.parts == 1 ? 0 : shares.items() * bytes_of_part(a, tile, shares);
}

std::int64_t best_workspace_bytes(AttentionArguments const& arguments, ServingTile const& tile,
                                  DeviceProperties const& device) {
  AttentionArguments a = with_defaults(arguments);
  a.workspace_bytes = std::numeric_limits<std::int64_t>::max();
  return partial_bytes(a, tile, attention_shares(a, tile, device));
}

namespace {

std::string to_string(AttentionShares const& shares) {
  std::string const blocks = io::counted(shares.key_blocks, "block");
  std::string const keys = shares.parts == 1
                               ? blocks + " of keys"
                               : fmt::format("{} of keys in {} of {}", blocks,
                                             io::counted(shares.parts, "part"), shares.part_blocks);
  return fmt::format("{} of {} x {} heads and positions for each consumer, {}",
                     io::counted(shares.tiles, "tile"), shares.packed.group,
                     shares.packed.positions, keys);
}

/// The tensor map of k or v for boxes of `keys` keys.
TensorMapDescription key_description(TokenTensor const& x, DType type, TmaBoxes const& boxes,
                                     int keys) {
  TensorMapDescription d = tensor_description(x, type, boxes);
  d.box[1] = keys;
  return d;
}

/// Keys of a box of K or V: a block's, or of a page that is smaller.
int box_keys(AttentionArguments const& a, ServingTile const& tile) {
  bool const paged = a.page_table != nullptr && a.page_size < tile.block_n;
  return paged ? static_cast<int>(a.page_size) : tile.block_n;
}

/// What the kernel is told.
AttentionServing serving_of(AttentionArguments const& a, ServingTile const& tile,
                            AttentionShares const& shares) {
  bool const paged = a.page_table != nullptr;
  int const heads = static_cast<int>(a.heads / shares.packed.group);
  return {.q_begin = a.cu_seqlens_q,
          .k_begin = a.cu_seqlens_k,
          .k_length = a.seqused_k,
          .new_keys = {a.cu_seqlens_new, static_cast<int>(a.seq_new)},
          .page_table = a.page_table,
          .table_stride = *a.page_table_stride,
          .pages = static_cast<int>(a.pages),
          .page_size = paged ? static_cast<int>(a.page_size) : 1,
          .by_page_size = Divisor(paged ? static_cast<int>(a.page_size) : 1),
          .box_keys = box_keys(a, tile),
          .clears_tail = needs_serving(a),
          .batches = static_cast<int>(a.batch),
          .heads = heads,
          .by_heads = Divisor(heads),
          .part_blocks = shares.part_blocks,
          .most_blocks = shares.key_blocks,
          .partial_rows = partial_rows(a, shares),
          .partial = static_cast<float*>(a.workspace)};
}

}  // namespace

std::string serving_remark(AttentionArguments const& arguments, ServingTile const& tile,
                           DeviceProperties const& device) {
  AttentionArguments const a = with_defaults(arguments);
  std::string remark = a.k_new != nullptr ? "append_keys appends the new keys before; " : "";
  remark += to_string(attention_shares(a, tile, device));
  if (tile.partial_row == 0) return remark;
  return remark + fmt::format("; of a workspace it could use {}, and has {}",
                              io::counted(best_workspace_bytes(a, tile, device), "byte"),
                              a.workspace_bytes);
}

void lower_operands(Machine const& machine, AttentionArguments const& a, bool serving,
                    int dense_group, ServingTile const& tile, OperandBoxes const& boxes,
                    AttentionSm90Params& p) {
  DeviceProperties const device = machine.properties();
  auto const [q, k, v] = attention_operands(a);
  if (serving) {
    AttentionShares const shares = attention_shares(a, tile, device);
    p.packed = shares.packed;
    p.serving = serving_of(a, tile, shares);
    p.ctas = static_cast<int>(std::min<std::int64_t>(shares.items(), device.multiprocessors));
  } else {
    p.packed = PackedHeads(dense_group, tile.consumer_rows);
    p.order = attention_order(a, tile.consumers, p.packed, device);
    p.ctas = attention_grid(p.order, device);
  }
  p.q = encode(machine, packed_description(q, a.dtype, boxes.q, p.packed));
  p.k = encode(machine, key_description(k, a.dtype, boxes.k, box_keys(a, tile)));
  p.v = encode(machine, key_description(v, a.dtype, boxes.v, box_keys(a, tile)));
  p.heads_per_kv_head = Divisor(static_cast<int>(a.heads / *a.kv_heads / p.packed.group));
}

}  // namespace tegula::device
