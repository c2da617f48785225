#pragma once

namespace tegula::sim {

/// What a warp's access to memory may cost beyond what its bytes need, on any line of a kernel; an
/// access that costs more is found. Instructions are put together and counted as docs/machine.md,
/// "What it counts", says; where Options::count is false, nothing is found.
struct Limits {
  /// Passes over the banks of shared memory (LineCounters::bank_conflicts) of one access; -1:
  /// any number.
  int bank_conflicts = -1;
  /// Sectors of 32 bytes of global memory of one access; -1: any number. TMA's are not looked at.
  int excess_sectors = -1;
};

}  // namespace tegula::sim
