#pragma once

/// How a serving configuration of attention_sm90 shares a problem out: which heads a tile packs,
/// and in how many parts its keys are computed. Pure functions, and values that can be printed.

#include <cstdint>
#include <string>

#include "tegula/device/arguments.hpp"
#include "tegula/device/properties.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"

namespace tegula::device {

/// Whether a problem needs a serving configuration.
bool needs_serving(AttentionArguments const& arguments);

/// Which keys rows see.
AttentionMask mask_of(AttentionArguments const& arguments);

/// Lengths that the host does not know count as the largest.
struct AttentionShares {
  int group = 1;           ///< query heads that a tile packs
  int positions = 1;       ///< of a consumer
  std::int64_t tiles = 1;  ///< over all sequences and heads
  int key_blocks = 1;      ///< most of a tile
  bool uneven = false;     ///< sequences of a few queries have lengths that the host does not know
  int part_blocks = 1;     ///< of a part
  int parts = 1;           ///< most of a tile
  double blocks_in_turn = 1;  ///< the estimate that the parts are chosen by: blocks of keys that
                              ///< the CTA with the most computes, and what a tile costs besides
  std::int64_t items() const { return tiles * parts; }
};

/// With at most as many parts as workspace_bytes has room for: one where it is 0.
AttentionShares attention_shares(AttentionArguments const& arguments, AttentionSm90Config const& c,
                                 DeviceProperties const& device);

/// Rows of a consumer that there are.
int partial_rows(AttentionArguments const& arguments, AttentionShares const& shares);

/// Of the workspace that these parts leave their rows in.
std::int64_t partial_bytes(AttentionArguments const& arguments, AttentionSm90Config const& c,
                           AttentionShares const& shares);

/// "8 tiles of 8 x 8 heads and positions for each consumer, 64 blocks of keys in 16 parts of 4".
std::string to_string(AttentionShares const& shares);

}  // namespace tegula::device
