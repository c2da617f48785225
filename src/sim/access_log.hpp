#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "counters.hpp"
#include "instruction.hpp"
#include "tegula/arch/where.hpp"

namespace tegula::sim {

/// Puts together, for each warp, what its lanes do by themselves, into instructions of the warp. Lanes run
/// one after another, in an order that is the schedule's, so that the lanes' parts of one instruction arrive
/// far apart.
///
/// The lanes' sequences of instructions since they last met are laid side by side so that as many as possible
/// fall together, each in its own order: as a GPU does where lanes that part join again as soon as they can.
/// So lanes that leave a loop early, or skip an instruction in some rounds of it, are missing from those
/// rounds. What comes out does not depend on the order of arrival.
class AccessLog {
 public:
  /// What a lane may do before the warp meets. Beyond that each instruction of a lane counts as one of its
  /// own, so that the log does not grow without end.
  static constexpr std::uint32_t kMost = 8192;

  struct Site {
    Where where;
    Instruction instruction;
    std::uint8_t shared_bytes;  ///< of a lane; 0 where it touches no shared memory

    bool operator==(Site const& other) const {
      return where.line == other.where.line && where.file == other.where.file &&
             instruction == other.instruction && shared_bytes == other.shared_bytes;
    }
  };
  /// An instruction of the warp.
  struct Record {
    Site site;
    std::uint32_t lanes;
    std::uint32_t shared[32];
    std::uint64_t global[32];
    std::uint8_t global_bytes[32];  ///< that a lane moves; 0 where it touches no global memory
  };

  /// Notes a lane's instruction; one that moves no bytes of a kind passes 0 for its size. False where it is
  /// to be counted by itself.
  bool note(int lane, Site const& site, std::uint32_t shared, int global_bytes, std::uint64_t global) {
    std::uint32_t const i = counts_[lane];
    if (i == kMost) [[unlikely]]
      return false;
    counts_[lane] = i + 1;
    if (i == used_) append(site);
    Record& record = records_[i];
    if (!(record.site == site)) [[unlikely]]
      strays_.push_back({i, lane, site});
    record.lanes |= 1u << lane;
    record.shared[lane] = shared;
    record.global[lane] = global;
    record.global_bytes[lane] = static_cast<std::uint8_t>(global_bytes);
    return true;
  }

  bool empty() const { return used_ == 0; }
  /// The instructions of the warp, of each lane in its order; until anything else is done with the log.
  std::span<Record const> instructions();
  void clear();

 private:
  /// A lane's i-th instruction where it is not at the site of records_[i], that of the first lane that came.
  struct Stray {
    std::uint32_t i;
    int lane;
    Site site;
  };
  void append(Site const& site);
  void align();

  std::vector<Record> records_;  ///< the i-th holds each lane's i-th instruction
  std::size_t used_ = 0;
  std::uint32_t counts_[32] = {};  ///< instructions of each lane
  std::vector<Stray> strays_;
  std::vector<Record> aligned_;
};

/// What an instruction of a warp does to memory.
struct AccessUse {
  BankUse banks;                   ///< of an access to shared memory
  SectorUse sectors;               ///< of an access to global memory,
  std::uint32_t global_lanes = 0;  ///< who makes it,
  int global_bytes = 0;            ///< and what all of them move

  /// Rounded up where they do not move the same.
  int bytes_of_a_lane() const {
    int const lanes = std::popcount(global_lanes);
    return (global_bytes + lanes - 1) / lanes;
  }
};
/// Adds it to the counters of its line.
AccessUse count_access(CounterTable& counters, AccessLog::Record const& record);

/// Where the elements of `added` go in `merged`, which is extended by those that find no equal: in both
/// orders as many as possible fall together. `moved`: where the elements of `merged` are then. Sequences
/// longer than `window` are aligned piece by piece.
struct Alignment {
  std::vector<std::uint32_t> merged, added, moved;
};
Alignment align(std::vector<std::uint32_t> const& merged, std::vector<std::uint32_t> const& added,
                std::size_t window = 256);

}  // namespace tegula::sim
