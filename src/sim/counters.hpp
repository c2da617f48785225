#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "instruction.hpp"
#include "tegula/arch/where.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/sim/report.hpp"

namespace tegula::sim {

/// Whether two instructions stand on the same line: file names are compared as pointers first, since one
/// kernel is compiled in one file.
bool same_place(Where const& a, Where const& b);

/// What shared memory does for one access of a warp: `wavefronts` passes over its 32 banks of 4 bytes, of
/// which `minimum` are needed by any access of that width by those lanes. A pass serves 32 lanes for accesses
/// of up to 4 bytes, 16 for 8 bytes, 8 for 16 bytes; within a pass, lanes that read the same 4-byte word
/// share it.
struct BankUse {
  int wavefronts = 0;
  int minimum = 0;
};
BankUse bank_use(std::uint32_t const* addresses, std::uint32_t lanes, int bytes);

/// The 32-byte sectors that the lanes' accesses touch, an access, being aligned, lying within one, and as
/// many as would hold their bytes, those that several lanes ask for counted once.
struct SectorUse {
  int touched = 0;
  int needed = 0;
};
SectorUse sector_use(std::uint64_t const* addresses, std::uint32_t lanes, int bytes);

/// Counters by source line and instruction.
class CounterTable {
 public:
  LineCounters& at(Where where, Instruction instruction);
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

/// Puts together, for each warp, the accesses that its lanes make to memory by themselves. Lanes run one
/// after another, so that the lanes' parts of one warp-wide access arrive far apart: the n-th execution of a
/// source line by each lane, since the warp's lanes last met, counts as one access of the warp.
class AccessLog {
 public:
  struct Record {
    Where where;
    Instruction instruction;
    std::uint8_t shared_bytes;
    std::uint32_t lanes;
    std::uint32_t global_lanes;  ///< those that move bytes of global memory
    std::int32_t global_bytes;   ///< of all lanes
    std::uint32_t shared[32];
    std::uint64_t global[32];
  };

  /// Notes a lane's access; an instruction that moves no bytes of a kind passes 0 for its size.
  void note(int lane, Instruction instruction, Where where, int shared_bytes, std::uint32_t shared,
            int global_bytes, std::uint64_t global) {
    std::size_t i = cursor_[lane];
    if (i >= used_ || !fits(records_[i], lane, instruction, where)) i = place(lane, instruction, where);
    Record& record = records_[i];
    record.lanes |= 1u << lane;
    record.shared_bytes = static_cast<std::uint8_t>(shared_bytes);
    record.shared[lane] = shared;
    if (global_bytes != 0) {
      record.global_lanes |= 1u << lane;
      record.global_bytes += global_bytes;
      record.global[lane] = global;
    }
    cursor_[lane] = static_cast<std::uint32_t>(i + 1);
  }

  bool empty() const { return used_ == 0; }
  /// Whether it is to be flushed before the lanes meet, so as not to grow without end.
  bool full() const { return used_ >= 8192; }
  /// Counts what was noted, and begins anew. Calls conflicts(record, BankUse) and sectors(record, bytes of a
  /// lane, SectorUse) with each record that goes beyond the limits.
  template <class Conflicts, class Sectors>
  void flush(CounterTable& counters, Limits const& limits, Conflicts&& conflicts, Sectors&& sectors);
  void clear();

 private:
  static bool fits(Record const& record, int lane, Instruction instruction, Where where) {
    return (record.lanes >> lane & 1) == 0 && record.instruction == instruction &&
           record.where.line == where.line && record.where.file == where.file;
  }
  /// The record that the access belongs to: the next one of the lane's that fits, or any, or a new one.
  std::size_t place(int lane, Instruction instruction, Where where);

  std::vector<Record> records_;
  std::size_t used_ = 0;
  std::uint32_t cursor_[32] = {};
};

template <class Conflicts, class Sectors>
void AccessLog::flush(CounterTable& counters, Limits const& limits, Conflicts&& conflicts,
                      Sectors&& sectors) {
  for (std::size_t i = 0; i < used_; ++i) {
    Record const& record = records_[i];
    LineCounters& line = counters.at(record.where, record.instruction);
    line.instructions += 1;
    if (record.shared_bytes != 0) {
      BankUse const use = bank_use(record.shared, record.lanes, record.shared_bytes);
      line.shared_bytes += std::popcount(record.lanes) * record.shared_bytes;
      line.shared_wavefronts += use.wavefronts;
      line.bank_conflicts += use.wavefronts - use.minimum;
      if (limits.bank_conflicts >= 0 && use.wavefronts - use.minimum > limits.bank_conflicts)
        conflicts(record, use);
    }
    if (record.global_bytes != 0) {
      int const lanes = std::popcount(record.global_lanes);
      int const bytes = (record.global_bytes + lanes - 1) / lanes;
      SectorUse const use = sector_use(record.global, record.global_lanes, bytes);
      line.global_bytes += record.global_bytes;
      line.global_sectors += use.touched;
      if (limits.excess_sectors >= 0 && use.touched - use.needed > limits.excess_sectors)
        sectors(record, bytes, use);
    }
  }
  clear();
}

}  // namespace tegula::sim
