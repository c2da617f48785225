#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "checker/causality.hpp"
#include "machine/in_flight.hpp"
#include "machine/tensor_memory.hpp"

/// Who accessed tensor memory last: what its findings are made from. PTX ISA, "Memory Consistency
/// Model for 5th generation of TensorCore operations".
namespace tegula::sim {

/// An access that is over. `agent`: the first thread of the warp that has waited for it, or the
/// mbarrier at which its tcgen05.commit has arrived. `issuer`: the thread that started it.
struct TensorStamp {
  Time time = 0;  ///< 0: nobody
  int agent = 0;
  int issuer = 0;
  std::uint16_t site = 0;
  std::uint32_t shape = 0;  ///< InFlight::shape
};

/// A column of 16 lanes: no access divides them.
struct TensorCell {
  bool written = false;
  TensorStamp writer;
  std::vector<TensorStamp> readers;  ///< since; the latest of each agent
};

/// What stands between an access that is over and another one.
enum class TensorOrder : std::uint8_t {
  ordered,
  nothing,          ///< orders the two
  no_fence_before,  ///< a tcgen05.fence::before_thread_sync after the first lacks
  no_fence_after,   ///< a tcgen05.fence::after_thread_sync before the second lacks
};

/// What a thread's tcgen05.fence have ordered.
struct TensorFences {
  std::vector<Time> before;  ///< when it executed each before_thread_sync
  Times after;               ///< what it knew at its latest after_thread_sync
};

/// What a thread has done that orders its operations on tensor memory.
struct TensorHistory {
  TensorFences fences;
  /// The mbarriers at which its tcgen05.commits have arrived, and when last: each stands for all
  /// that the thread started before.
  std::map<int, Time> committed;
};

/// A CTA's tensor memory. It takes room when columns are allocated.
class TensorShadow {
 public:
  void reset() {
    cells_.clear();
    flying.clear();
    stamped.clear();
  }
  void allocate(int column, int columns) {
    if (cells_.empty()) cells_.resize(kTensorLaneGroups * kTensorColumns);
    for (int group = 0; group < kTensorLaneGroups; ++group) {
      for (int c = column; c < column + columns; ++c) at(group, c).written = false;
    }
  }
  TensorCell& at(int group, int column) {
    return cells_[static_cast<std::size_t>(group * kTensorColumns + column)];
  }
  /// Calls f(cell, group, column) for each cell of the range; f says whether to go on.
  template <class F> void for_each(TensorRange const& range, F&& f) {
    for (int group = 0; group < kTensorLaneGroups; ++group) {
      if ((range.groups >> group & 1) == 0) continue;
      for (int column = range.column; column < range.column + range.columns; ++column) {
        if (!f(at(group, column), group, column)) return;
      }
    }
  }

  std::vector<InFlight const*> flying;   ///< operations on it that nobody has waited for
  std::vector<InFlight const*> stamped;  ///< of them, those for which a tcgen05.commit has arrived

 private:
  std::vector<TensorCell> cells_;
};

}  // namespace tegula::sim
