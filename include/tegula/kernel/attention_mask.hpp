#pragma once

#include "tegula/macros.hpp"

namespace tegula {

/// Which keys a row of Q sees, as a value: a window that moves along the diagonal.
///
/// Row i of seq_q rows stands at key i + seq_k - seq_q, so that the last row stands at the last
/// key. It sees the keys from `left` before that place to `right` after it. A causal mask has right
/// = 0; no mask has `unlimited` on both sides.
struct AttentionMask {
  /// More than any distance between a row's place and a key, and small enough for sums of a few
  /// of them.
  static constexpr int unlimited = 1 << 29;

  int seq_q = 0;
  int seq_k = 0;
  int left = unlimited;
  int right = unlimited;

  /// The keys that a row sees are those in [begin(row), end(row)). Both grow with the row. Where
  /// end is not greater than begin, the row sees no key.
  TEGULA_HOST_DEVICE constexpr int begin(int row) const {
    int const key = row + seq_k - seq_q - left;
    return key > 0 ? key : 0;
  }
  TEGULA_HOST_DEVICE constexpr int end(int row) const {
    int const key = row + seq_k - seq_q + right + 1;
    return key < seq_k ? (key > 0 ? key : 0) : seq_k;
  }

  constexpr bool operator==(AttentionMask const&) const = default;
};

/// The blocks of keys that some rows need: [first, last). Of these, all rows see all keys of the
/// blocks in [whole_first, whole_last); the others have to be masked.
struct KeyBlocks {
  int first = 0, last = 0;
  int whole_first = 0, whole_last = 0;

  TEGULA_HOST_DEVICE constexpr bool empty() const { return last <= first; }
  TEGULA_HOST_DEVICE constexpr bool has(int block) const { return block >= first && block < last; }

  constexpr bool operator==(KeyBlocks const&) const = default;
};

/// The blocks of `block_n` keys that the rows [row, row + rows) need, of which those from seq_q on
/// do not count: none where that is all of them.
TEGULA_HOST_DEVICE constexpr KeyBlocks key_blocks(AttentionMask const& mask, int row, int rows,
                                                  int block_n) {
  if (row >= mask.seq_q) return {};
  int const last_row = (row + rows < mask.seq_q ? row + rows : mask.seq_q) - 1;
  return {.first = mask.begin(row) / block_n,
          .last = (mask.end(last_row) + block_n - 1) / block_n,
          .whole_first = (mask.begin(last_row) + block_n - 1) / block_n,
          .whole_last = mask.end(row) / block_n};
}

}  // namespace tegula
