#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "profile/counters.hpp"
#include "tegula/arch/source_location.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

/// Two sequences laid side by side: `merged` has all elements of both in their orders, as many as
/// possible of which fall together.
struct Alignment {
  std::vector<std::uint32_t> merged;
  std::vector<std::uint32_t> first, second;  ///< where each element of the two is in `merged`
  std::vector<std::uint16_t> table;          ///< kept for its memory
};
/// Sequences longer than `window` are aligned piece by piece.
void align(std::span<std::uint32_t const> first, std::span<std::uint32_t const> second,
           Alignment& result, std::size_t window = 256);

/// Puts together, for each warp, what its lanes do by themselves, into instructions of the warp.
/// Lanes run one after another, in an order that is the schedule's, so that the lanes' parts of one
/// instruction arrive far apart.
///
/// The lanes' sequences of instructions since they last met are laid side by side so that as many
/// as possible fall together, each in its own order: as a GPU does where lanes that part join again
/// as soon as they can. So lanes that leave a loop early, or skip an instruction in some rounds of
/// it, are missing from those rounds. What comes out does not depend on the order of arrival.
class AccessLog {
 public:
  /// What a lane may do before the warp meets. Beyond that each instruction of a lane counts as one
  /// of its own, so that the log does not grow without end.
  static constexpr std::uint32_t kMost = 8192;

  struct Site {
    SourceLocation where;
    Instruction instruction;
    std::uint8_t shared_bytes;  ///< of a lane; 0 where it touches no shared memory

    bool operator==(Site const& other) const {
      return is(other.where, other.instruction, other.shared_bytes);
    }
    bool is(SourceLocation other, Instruction of, int bytes) const {
      return where.line == other.line && where.file == other.file && instruction == of &&
             shared_bytes == bytes;
    }
  };
  /// An instruction of the warp.
  struct Record {
    Site site;
    std::uint32_t lanes;
    std::uint32_t global_lanes;  ///< those that move bytes of global memory
    std::uint32_t shared[32];
    std::uint64_t global[32];
    std::uint8_t global_bytes[32];  ///< of those lanes
  };

  /// Notes a lane's instruction; one that moves no bytes of a kind passes 0 for its size. False
  /// where it is to be counted by itself.
  bool note(int lane, Instruction instruction, SourceLocation where, int shared_bytes,
            std::uint32_t shared, int global_bytes, std::uint64_t global) {
    std::uint32_t const i = counts_[lane];
    if (i == kMost) [[unlikely]]
      return false;
    counts_[lane] = i + 1;
    if (i == used_) append(instruction, where, shared_bytes);
    Record& record = records_[i];
    if (!record.site.is(where, instruction, shared_bytes)) [[unlikely]]
      stray(i, lane, instruction, where, shared_bytes);
    record.lanes |= 1u << lane;
    record.shared[lane] = shared;
    if (global_bytes != 0) {
      record.global_lanes |= 1u << lane;
      record.global[lane] = global;
      record.global_bytes[lane] = static_cast<std::uint8_t>(global_bytes);
    }
    return true;
  }

  bool empty() const { return used_ == 0; }
  /// Calls visit(record) with each instruction of the warp, those of a lane in its order, and
  /// forgets them.
  template <class Visit> void flush(Visit&& visit) {
    if (strays_.empty()) {
      // Mostly all lanes do the same, or some end earlier: what they do i-th are the
      // warp's instructions.
      for (std::size_t i = 0; i < used_; ++i) visit(std::as_const(records_[i]));
    } else {
      align();
      for (std::uint32_t i = 0; i < merged_.size(); ++i) visit(gather(i));
    }
    clear();
  }
  void clear();

 private:
  /// A lane's i-th instruction where it is not at the site of records_[i], that of the first lane
  /// that came.
  struct Stray {
    std::uint32_t i;
    int lane;
    Site site;
  };
  /// Lanes that did the same, the first of them, and what of it has been gathered.
  struct Path {
    int lane;
    std::uint32_t lanes;
    std::uint32_t gathered;
  };
  void append(Instruction instruction, SourceLocation where, int shared_bytes);
  void stray(std::uint32_t i, int lane, Instruction instruction, SourceLocation where,
             int shared_bytes);
  /// Finds merged_ and paths_.
  void align();
  /// The i-th instruction of merged_: to be called with each i in order.
  Record const& gather(std::uint32_t i);
  std::span<std::uint32_t const> sequence(int lane) const {
    return {sequences_.data() + static_cast<std::size_t>(lane) * used_, counts_[lane]};
  }
  std::span<std::uint32_t> places(Path const& path) {
    return {places_.data() + static_cast<std::size_t>(path.lane) * used_, counts_[path.lane]};
  }

  std::vector<Record> records_;  ///< the i-th holds each lane's i-th instruction
  std::size_t used_ = 0;
  std::uint32_t counts_[32] = {};  ///< instructions of each lane
  std::vector<Stray> strays_;
  // Of align(), kept for their memory.
  std::vector<Site> sites_;
  std::vector<std::uint32_t> sequences_;  ///< of each lane, used_ apart: numbers of sites
  std::vector<std::uint32_t> places_;     ///< likewise: where they are in merged_
  std::vector<std::uint32_t> merged_;
  Alignment alignment_;
  Path paths_[32];
  int path_count_ = 0;
  Record gathered_;
};

/// What an instruction of a warp does to memory.
struct AccessUse {
  BankUse banks;         ///< of an access to shared memory
  SectorUse sectors;     ///< of an access to global memory,
  int global_bytes = 0;  ///< of a lane of it, rounded up where they do not move the same
};
/// Adds it to the counters of its line.
AccessUse count_access(CounterTable& counters, AccessLog::Record const& record);

}  // namespace tegula::sim
