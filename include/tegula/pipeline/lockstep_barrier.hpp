#pragma once

#include <cstdint>

#include "tegula/arch/atomic.hpp"
#include "tegula/macros.hpp"

namespace tegula {

/// What the workers of one launch count in global memory; all 0 before and after it.
struct alignas(8) LockstepCounters {
  std::uint32_t arrived;  ///< at all meetings so far
  std::uint32_t done;
};

/// Keeps the workers of a persistent grid in step, so that what several of them read comes from
/// memory once.
///
/// Workers that share operands all read them at about the same time, as long as they are in step:
/// the first brings them to L2, the others find them there. Nothing else keeps them in step: loads
/// run ahead of the tensor cores, so a worker that waits for memory loses no time against one that
/// does not, and over hundreds of steps they get further apart than L2 reaches back. (Seen on an
/// H100 at 16384^3: 23 GB read from memory, 10 to 12 GB with meetings every 64 steps. What that
/// gains: docs/decisions.md.)
///
/// So they meet every `period` steps: who comes first waits for the others, which are what the
/// launch waits for in any case. Only time depends on it. The wait has an end, and who has waited
/// in vain does not wait again before it has come to a meeting where all are: a grid that is not
/// all resident at once goes on, a little later.
class LockstepBarrier {
 public:
  /// Of one worker, which computes tiles of equally many steps, `workers` apart, of `tiles`.
  /// Without counters nobody meets. Precondition: period >= 1 with counters.
  TEGULA_DEVICE LockstepBarrier(LockstepCounters* counters, int period, int tiles, int workers)
      : counters_(counters), period_(period), until_(period), left_(tiles), workers_(workers) {}

  /// By one thread of the worker, before each step.
  TEGULA_DEVICE void step(SourceLocation where = SourceLocation::current()) {
    if (counters_ == nullptr || until_-- > 0) return;
    until_ = period_ - 1;
    // All who have a tile of this round come to this meeting.
    target_ += static_cast<std::uint32_t>(left_ < workers_ ? left_ : workers_);
    std::uint32_t arrived = atom_add(&counters_->arrived, 1u, where) + 1;
    while (arrived < target_ && polls_ > 0) {
      arrived = atom_add(&counters_->arrived, 0u, where);
      --polls_;
    }
    if (arrived >= target_) polls_ = patience;
  }
  /// By that thread, after the last step of each tile.
  TEGULA_DEVICE void next_tile() { left_ -= workers_; }
  /// By that thread, after the last tile: the last of all workers leaves the counters as they were.
  TEGULA_DEVICE void leave(SourceLocation where = SourceLocation::current()) const {
    if (counters_ == nullptr) return;
    if (atom_add(&counters_->done, 1u, where) + 1 == static_cast<std::uint32_t>(workers_)) {
      atom_exch(&counters_->arrived, 0u, where);
      atom_exch(&counters_->done, 0u, where);
    }
  }

 private:
  static constexpr int patience = 100;  // polls of one meeting: some 50 us on an H100

  LockstepCounters* counters_;
  int period_;
  int until_;  ///< steps until the next meeting
  int left_;   ///< tiles of this round and later ones
  int workers_;
  std::uint32_t target_ = 0;
  int polls_ = patience;
};

}  // namespace tegula
