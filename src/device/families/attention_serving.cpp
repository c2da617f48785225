#include "attention_serving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "problem.hpp"

namespace tegula::device {
namespace {

/// What a tile costs beyond its blocks of keys, and what it costs to add parts up, in keys: the
/// latency of a pipeline that fills, and of an arrival with loads after it. Estimates.
constexpr double kTileOverhead = 128, kSumOverhead = 128, kPartOverhead = 8;

/// Of sequences with lengths of their own: the mean as a share of the longest. An assumption.
constexpr double kMeanLength = 0.25;

/// Query heads that share keys, as many of them as a tile packs so that there are the fewest tiles.
/// A divisor of them, so that every tile packs as many.
void pack(AttentionShares& shares, AttentionArguments const& a, AttentionSm90Config const& c) {
  std::int64_t const sharing = a.heads / *a.kv_heads;
  for (std::int64_t group = 1; group <= std::min<std::int64_t>(sharing, kAttentionConsumerRows);
       ++group) {
    if (sharing % group != 0) continue;
    std::int64_t const positions = kAttentionConsumerRows / group,
                       tiles =
                           a.batch * (a.heads / group) * ceil_div(a.seq_q, positions * c.consumers);
    if (group > 1 && tiles >= shares.tiles) continue;
    shares.group = static_cast<int>(group), shares.positions = static_cast<int>(positions);
    shares.tiles = tiles;
  }
}

/// Blocks of keys that the rows of a tile see at most: those of the window, or all.
int most_key_blocks(AttentionArguments const& a, AttentionSm90Config const& c, int positions) {
  AttentionMask const mask = mask_of(a);
  std::int64_t const all = ceil_div(*a.seq_k, c.block_n);
  if (mask.left == AttentionMask::unlimited || mask.right == AttentionMask::unlimited)
    return static_cast<int>(all);
  std::int64_t const keys = std::int64_t{mask.left} + mask.right + positions * c.consumers;
  return static_cast<int>(std::min(all, ceil_div(keys, c.block_n) + 1));
}

/// Of a tile's rows in the workspace.
std::int64_t bytes_of_part(AttentionArguments const& a, AttentionSm90Config const& c,
                           AttentionShares const& shares) {
  std::int64_t const rows = std::int64_t{partial_rows(a, shares)} * warpgroups(c);
  return rows * attention_partial_row(c) * static_cast<std::int64_t>(sizeof(float));
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

AttentionShares attention_shares(AttentionArguments const& arguments, AttentionSm90Config const& c,
                                 DeviceProperties const& device) {
  AttentionArguments const a = with_defaults(arguments);
  AttentionShares shares;
  pack(shares, a, c);
  shares.key_blocks = most_key_blocks(a, c, shares.positions);
  // Where there are many queries, there are many tiles, and parts of them would take much memory.
  shares.uneven = a.batch > 1 && a.seq_q <= shares.positions &&
                  (a.seqused_k != nullptr || a.cu_seqlens_k != nullptr);
  // Parts that there may be: of tiles whose arrivals can be counted, with room for the rows of
  // each.
  std::int64_t const room =
      std::min<std::int64_t>(kMostArrivals / (shares.tiles * warpgroups(c)),
                             a.workspace_bytes / (shares.tiles * bytes_of_part(a, c, shares)));
  int const most = static_cast<int>(std::clamp<std::int64_t>(room, 1, shares.key_blocks));
  int chosen = 1;
  if (a.splits) {
    chosen = static_cast<int>(std::min<std::int64_t>(*a.splits, most));
  } else {
    for (int parts = 2; parts <= most; ++parts)
      if (cost_of_parts(shares, parts, c.block_n, device) <
          cost_of_parts(shares, chosen, c.block_n, device))
        chosen = parts;
  }
  shares.part_blocks = static_cast<int>(ceil_div(shares.key_blocks, chosen));
  shares.parts = static_cast<int>(ceil_div(shares.key_blocks, shares.part_blocks));
  shares.blocks_in_turn = cost_of_parts(shares, shares.parts, c.block_n, device);
  return shares;
}

int partial_rows(AttentionArguments const& a, AttentionShares const& shares) {
  return shares.group * static_cast<int>(std::min<std::int64_t>(shares.positions, a.seq_q));
}

std::int64_t partial_bytes(AttentionArguments const& a, AttentionSm90Config const& c,
                           AttentionShares const& shares) {
  return shares.parts == 1 ? 0 : shares.items() * bytes_of_part(a, c, shares);
}

std::string to_string(AttentionShares const& shares) {
  std::string const keys = shares.parts == 1
                               ? fmt::format("{} blocks of keys", shares.key_blocks)
                               : fmt::format("{} blocks of keys in {} parts of {}",
                                             shares.key_blocks, shares.parts, shares.part_blocks);
  return fmt::format("{} tiles of {} x {} heads and positions for each consumer, {}", shares.tiles,
                     shares.group, shares.positions, keys);
}

}  // namespace tegula::device
