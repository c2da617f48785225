#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tensor_map.hpp"
#include "values/instruction.hpp"

/// What brought the bytes that lie in a CTA's shared memory: which asynchronous copy, laid out by
/// which swizzle, and whether anybody has read any of it.
namespace tegula::sim {

/// A bulk or tensor load into shared memory, or what threads copy by cp.async on one line in their
/// groups of one number.
struct Copy {
  Instruction instruction = Instruction::none;
  SourceLocation where;
  int cta = 0;                        ///< rank of the CTA that issued it
  int thread = 0;                     ///< index in it of the thread that issued its first byte
  std::uint32_t offset = 0;           ///< of its first byte, from the beginning of shared memory
  std::optional<TmaSwizzle> swizzle;  ///< of a tensor load; other copies bring bytes as they are
  bool fetches = false;  ///< some of it lies in memory; else it fills what lies outside of a tensor
};

/// What came to the place of the last of a copy.
struct Overwrite {
  Instruction instruction = Instruction::none;  ///< none: nothing did of which there is more to say
  SourceLocation where;
  int cta = 0;
  int thread = 0;
};

/// The copy that brought each word of 4 bytes. Offsets are from the beginning of shared memory;
/// copies begin and end at words.
class CopyShadow {
 public:
  using Id = std::uint16_t;  ///< 0: no copy

  /// No copy has brought any of `bytes` bytes.
  void reset(std::size_t bytes);

  /// A new copy.
  Id add(Copy const& copy);
  /// What a thread copies by cp.async in its group of a number: a part of a copy. Threads need not
  /// run side by side: parts may come after others have been read and overwritten.
  Id add_part(Copy const& part, std::uint32_t group);

  /// The copy is to bring n bytes (0: what is no copy writes them). Calls lost(Copy const&) for
  /// each bulk or tensor load before it of which nothing is left now and nobody has read any; what
  /// is lost of cp.async, is known at the end.
  template <class F>
  void bring(Id id, std::uint32_t offset, std::uint32_t n, Overwrite const& by, F&& lost) {
    if (of_word_.empty()) return;
    for (std::uint32_t word = offset / 4; word < (offset + n) / 4; ++word) {
      Id const before = of_word_[word];
      if (before == id) continue;
      of_word_[word] = id;
      ++entries_[id].words;
      if (before == 0 || --entries_[before].words != 0) continue;
      if (is_lost(entries_[before], by)) lost(static_cast<Copy const&>(entries_[before].copy));
      release(before);
    }
  }
  /// Somebody reads n bytes.
  void read(std::uint32_t offset, std::uint32_t n) {
    if (of_word_.empty()) return;
    for (std::uint32_t word = offset / 4; word < (offset + n + 3) / 4; ++word)
      entries_[of_word_[word]].read = true;
  }
  /// A thread writes n bytes. A copy that it overwrites in part of a word counts as read: the rest
  /// may be meant.
  void write(std::uint32_t offset, std::uint32_t n);

  /// The copy that brought the byte; null where none did.
  Copy const* at(std::uint32_t offset) const {
    Id const id = of_word_.empty() ? Id{0} : of_word_[offset / 4];
    return id == 0 ? nullptr : &entries_[id].copy;
  }

  /// At the end: calls f(Copy const&, Overwrite const&) for each copy by cp.async that was
  /// overwritten and no part of which anybody has read.
  template <class F> void for_each_lost(F&& f) {
    for (Entry const& entry : entries_) {
      if (entry.group >= 0 && entry.words != 0 && entry.read)
        groups_[static_cast<std::size_t>(entry.group)].read = true;
    }
    for (Group const& group : groups_) {
      if (group.copy.fetches && !group.read && group.by.instruction != Instruction::none)
        f(group.copy, group.by);
    }
  }

 private:
  /// What lies in shared memory of a copy.
  struct Entry {
    Copy copy;
    std::int32_t group = -1;  ///< of cp.async
    std::uint32_t words = 0;
    bool read = false;
  };
  /// All parts of a copy by cp.async.
  struct Group {
    Copy copy;
    std::uint32_t number = 0;
    Overwrite by;  ///< of a part that nobody had read
    bool read = false;
  };

  std::int32_t group_of(Copy const& part, std::uint32_t number);
  bool is_lost(Entry const& entry, Overwrite const& by);
  void release(Id id);

  std::size_t words_ = 0;
  std::vector<Id> of_word_;  ///< empty as long as there was no copy
  std::vector<Entry> entries_;
  std::vector<Id> free_;
  Id last_part_ = 0;
  std::int32_t last_group_ = -1;
  std::vector<Group> groups_;
  std::map<std::tuple<std::uint32_t, int, char const*>, std::int32_t> groups_by_line_;
};

}  // namespace tegula::sim
