#pragma once

/// How a serving configuration of attention_sm90 or attention_sm100 shares a problem out: which
/// heads a tile packs, and in how many parts its keys are computed. Pure functions, and values that
/// can be printed. And what such a configuration is launched with besides.

#include <cstdint>
#include <string>
#include <vector>

#include "tegula/device/arguments.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/properties.hpp"
#include "tegula/kernel/attention_sm100_config.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/sim/global_tensor.hpp"
#include "tegula/tensor/tma_box.hpp"

namespace tegula::device {

/// Whether a problem needs a serving configuration.
bool needs_serving(AttentionArguments const& arguments);

/// Which keys rows see.
AttentionMask mask_of(AttentionArguments const& arguments);

/// What is asked of a configuration here.
struct ServingTile {
  int consumers;      ///< of a tile
  int consumer_rows;  ///< of each
  int block_n;
  int warpgroups;   ///< that leave rows of a part
  int partial_row;  ///< floats of such a row; 0: keys are not computed in parts

  int rows() const { return consumers * consumer_rows; }
};
inline ServingTile serving_tile(AttentionSm90Config const& c) {
  return {c.consumers, consumer_rows(c), c.block_n, warpgroups(c), attention_partial_row(c)};
}
inline ServingTile serving_tile(AttentionSm100Config const& c) {
  return {c.consumers, consumer_rows(c), c.block_n, c.consumers, 0};
}

/// Lengths that the host does not know count as the largest.
struct AttentionShares {
  PackedHeads packed{1, 1};
  std::int64_t tiles = 1;  ///< over all sequences and heads
  int key_blocks = 1;      ///< most of a tile
  bool uneven = false;     ///< sequences of a few queries have lengths that the host does not know
  int part_blocks = 1;     ///< of a part
  int parts = 1;           ///< most of a tile
  bool as_asked = true;    ///< as many as AttentionArguments::splits says, or there are blocks for
  double blocks_in_turn = 1;  ///< the estimate that the parts are chosen by: blocks of keys that
                              ///< the CTA with the most computes, and what a tile costs besides
  std::int64_t items() const { return tiles * parts; }
};

/// Why a configuration does not compute a problem that asks for keys in several parts: it never
/// does, ...
inline constexpr char const* kKeysInParts = "keys in parts";
/// ... or not in so many, for want of a workspace or because tiles are many.
inline constexpr char const* kFewerParts = "fewer parts";

/// Whether the arguments ask for keys in several parts.
inline bool asks_for_parts(AttentionArguments const& a) { return a.splits.value_or(1) > 1; }

/// With at most as many parts as workspace_bytes has room for: one where it is 0.
AttentionShares attention_shares(AttentionArguments const& arguments, ServingTile const& tile,
                                 DeviceProperties const& device);

/// Of the workspace that these parts leave their rows in.
std::int64_t partial_bytes(AttentionArguments const& arguments, ServingTile const& tile,
                           AttentionShares const& shares);

/// What a workspace must have for the keys to be computed in as many parts as are best.
std::int64_t best_workspace_bytes(AttentionArguments const& arguments, ServingTile const& tile,
                                  DeviceProperties const& device);

/// "8 tiles of 8 x 8 heads and positions for each consumer, 64 blocks of keys in 16 parts of 4",
/// and what comes before or could be had, for the plan's reason.
std::string serving_remark(AttentionArguments const& arguments, ServingTile const& tile,
                           DeviceProperties const& device);

/// Which tiles there are, the CTAs that compute them, and the tensor maps of q, k and v for boxes
/// of these tiles, to `p`; with `serving` what such a configuration is told besides. Such a one
/// finds out how many heads a tile packs, another packs `dense_group`. Precondition: arguments with
/// defaults.
struct OperandBoxes {
  TmaBoxes q, k, v;
};
void lower_operands(Machine const& machine, AttentionArguments const& arguments, bool serving,
                    int dense_group, ServingTile const& tile, OperandBoxes const& boxes,
                    AttentionSm90Params& p);

/// The tensors of a launch. Of lengths that lie on the device: every element may be touched, or
/// not.
std::vector<sim::GlobalTensor> describe_serving(AttentionSm90Params const& p);

}  // namespace tegula::device
