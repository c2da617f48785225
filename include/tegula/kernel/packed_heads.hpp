#pragma once

#include <cstdint>

#include "tegula/arch/source_location.hpp"
#include "tegula/kernel/attention_output.hpp"
#include "tegula/pipeline/divisor.hpp"
#include "tegula/sim/mutable_values.hpp"

namespace tegula {

/// Query heads that share keys and lie together in the rows of a tile: row r of a consumer is
/// position r / group of the consumer's, of query head `head * group + r % group`, with `head` one
/// of the packed heads. With a group of 1 a row is a position.
///
/// A consumer has `positions` positions. Rows from positions * group on are nobody's. Q's tensor
/// map is (head_dim, head of the group, token, packed head, batch).
struct PackedHeads {
  int group;
  Divisor by_group;
  int positions;

  /// As many positions as the rows of a consumer have room for. Precondition: 1 <= heads <= rows.
  TEGULA_HOST_DEVICE constexpr PackedHeads(int heads, int rows)
      : group(heads), by_group(heads), positions(rows / heads) {}

  TEGULA_HOST_DEVICE constexpr int rows() const { return group * positions; }
};

/// The rows of a consumer, numbered from 0, as those of Q, and of an output: where row i of O and
/// of the log-sum-exp lies, in elements, and whether there is one.
struct PackedRows {
  PackedHeads const& packed;
  int packed_head;
  int first_position;
  int batch;   ///< of the output
  int begin;   ///< the token of position 0
  int length;  ///< positions of the sequence

  TEGULA_DEVICE int position(int row) const { return first_position + row / packed.by_group; }
  TEGULA_DEVICE int head(int row) const {
    return packed_head * packed.group + row - row / packed.by_group * packed.group;
  }
  TEGULA_DEVICE bool has(int row, SourceLocation where) const {
    return row < edge(packed.rows(), where) && position(row) < edge(length, where);
  }
  TEGULA_DEVICE std::int64_t offset(AttentionOutput const& out, int row) const {
    return batch * out.stride.batch + (begin + position(row)) * out.stride.seq +
           head(row) * out.stride.head;
  }
  TEGULA_DEVICE std::int64_t lse_offset(AttentionOutput const& out, int row) const {
    return batch * out.lse_batch + head(row) * out.lse_head + begin + position(row);
  }
};

}  // namespace tegula
