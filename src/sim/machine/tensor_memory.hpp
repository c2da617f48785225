#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tensor_memory_address.hpp"

namespace tegula::sim {

struct Thread;

/// Accesses to tensor memory cover whole halves of a warp's lanes: 16 of them.
inline constexpr int kTensorLaneGroup = 16;
inline constexpr int kTensorLaneGroups = kTensorLanes / kTensorLaneGroup;

/// Columns of some lanes of a CTA's tensor memory.
struct TensorRange {
  int cta = 0;              ///< its rank
  std::uint8_t groups = 0;  ///< of 16 lanes, as bits
  int column = 0;
  int columns = 0;

  bool overlaps(TensorRange const& other) const {
    return cta == other.cta && (groups & other.groups) != 0 &&
           column < other.column + other.columns && other.column < column + columns;
  }
};

/// Where the cells of tensor memory stand among shared addresses, for who orders accesses: group of
/// lanes, then column.
constexpr std::uint32_t tensor_cell_address(int group, int column) {
  return 0x80'0000u + static_cast<std::uint32_t>(4 * (group * kTensorColumns + column));
}

/// What one tcgen05.alloc has given.
struct TensorAllocation {
  int column;
  int columns;
  SourceLocation where;
  int warp;            ///< who asked
  std::string holder;  ///< the name of the buffer that has the address, or empty
  int ctas = 1;        ///< that have it: .cta_group
};

/// A tcgen05.alloc that waits for the one of the pair's other CTA.
struct TensorPairRequest {
  TensorAllocation wanted;
  bool granted = false;  ///< both have been given `wanted`
};

/// A warp that waits in a tcgen05.alloc.
struct TensorWaiter {
  Thread* thread;
  int columns;
  SourceLocation where;
};

/// A CTA's tensor memory: 128 lanes of 512 columns of 32 bits, and who has which columns.
class TensorMemory {
 public:
  /// Makes room; `exists`: the generation has one.
  void reset(bool exists);

  std::uint32_t* at(int lane, int column) { return data_.get() + lane * kTensorColumns + column; }
  /// What holds the columns, all of them, or null.
  TensorAllocation const* holding(int column, int columns) const;
  /// The first of so many free columns; -1 where there are none.
  int room_for(int columns) const;
  /// Likewise of columns that are free in both.
  int room_for(int columns, TensorMemory const& other) const;
  void insert(TensorAllocation const& allocation);
  int free_columns() const;

  /// What the tensor core's collector buffers hold: of A, then the four of B; empty: nothing that
  /// is still to be kept.
  std::array<std::vector<std::uint8_t>, 5> collectors;
  std::vector<TensorAllocation> allocations;  ///< by column
  std::vector<TensorAllocation> freed;        ///< what was freed last where, for findings
  std::vector<TensorWaiter> waiters;
  std::optional<TensorPairRequest> of_pair;
  /// .cta_group of the CTA's instructions, and the first of them; 0: there was none
  int cta_group = 0;
  SourceLocation cta_group_where;
  bool relinquished = false;  ///< the CTA may allocate no more
  SourceLocation relinquished_where;

 private:
  std::unique_ptr<std::uint32_t[]> data_;
};

}  // namespace tegula::sim
