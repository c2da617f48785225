#pragma once

#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/sim/mutable_values.hpp"

namespace tegula {

/// Lets `Groups` groups of `Warps` warps through a section of code in turn: 0, 1, ..., 0, 1, ...
///
///     turn[g]: from group g - 1 when it leaves the section, to group g, which may then enter
///
/// Group 0's first turn needs no one: it waits for the phase before the first, which counts
/// as complete.
template <int Groups, int Warps> class OrderedBarrier {
 public:
  struct Storage {
    Mbarrier turn[Groups];
  };

  TEGULA_DEVICE explicit OrderedBarrier(Storage const& storage)
      : turn_(shared_address(storage.turn)) {}

  /// By one thread; then fence_mbarrier_init and a barrier of the CTA.
  TEGULA_DEVICE void init() const {
    for (int group = 0; group < Groups; ++group) mbarrier_init(turn_ + 8 * group, Warps);
  }

  /// Whether it is the turn of `group`, the caller's, already. Asked some instructions before it
  /// enters, the answer is there by then.
  TEGULA_DEVICE bool test_wait(int group, SourceLocation where = SourceLocation::current()) const {
    return mbarrier_test_wait_parity(turn_ + 8 * group, parity(group, where), where);
  }

  /// Waits for the turn of `group`, the caller's, unless `due`: test_wait has said that it is.
  TEGULA_DEVICE void enter(int group, bool due = false,
                           SourceLocation where = SourceLocation::current()) {
    if (!due) mbarrier_wait_parity(turn_ + 8 * group, parity(group, where), where);
    turns_ = parity_after(turns_, 1, where);
  }

  /// All lanes of a warp: the warp has left the section; the turn passes once all of its
  /// group have. All of its lanes have entered by then: between the two they have met, at a wgmma
  /// or a warp::sync. Else a late lane may find its turn over.
  TEGULA_DEVICE void leave(int group, SourceLocation where = SourceLocation::current()) const {
    int const next = next_stage<Groups>(group, where);
    if (lane_id() == 0) mbarrier_arrive(turn_ + 8 * next, where);
  }

 private:
  /// Of the phase that ends with the group's next turn.
  TEGULA_DEVICE int parity(int group, SourceLocation where) const {
    return group == 0 ? turns_ ^ initial_parity(1, where) : turns_;
  }

  SharedAddr turn_;
  int turns_ = 0;  // that this group has had, modulo 2
};

}  // namespace tegula
