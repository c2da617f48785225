#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tegula/arch/source_location.hpp"
#include "tegula/sim/report.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

/// What shared memory does for one access of a warp: `wavefronts` passes over its 32 banks of 4
/// bytes, of which `minimum` are needed by any access of that width by those lanes. A pass
/// serves 32 lanes for accesses of up to 4 bytes, 16 for 8 bytes, 8 for 16 bytes; within a pass,
/// lanes that read the same 4-byte word share it.
struct BankUse {
  int wavefronts = 0;
  int minimum = 0;
};
BankUse bank_use(std::uint32_t const* addresses, std::uint32_t lanes, int bytes);

/// The 32-byte sectors that the lanes' accesses touch, an access, being aligned, lying within one,
/// and as many as would hold their bytes, those that several lanes ask for counted once.
struct SectorUse {
  int touched = 0;
  int needed = 0;
};
SectorUse sector_use(std::uint64_t const* addresses, std::uint32_t lanes, int bytes);

/// Counters by source line and instruction.
class CounterTable {
 public:
  LineCounters& at(SourceLocation where, Instruction instruction);
  /// The lines that counted anything, in order of first use.
  std::vector<LineCounters> const& lines() const { return lines_; }
  void clear();

 private:
  struct Slot {
    char const* file = nullptr;
    int line = 0;
    Instruction instruction = Instruction::none;
    std::uint32_t index = 0;
  };
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(256);
  std::vector<LineCounters> lines_;
};

/// Adds lines to a list by file, line and instruction.
void merge(std::vector<LineCounters>& into, std::vector<LineCounters> const& lines);

}  // namespace tegula::sim
