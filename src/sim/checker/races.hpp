#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "checker/causality.hpp"
#include "tegula/arch/source_location.hpp"
#include "values/instruction.hpp"

/// Who accessed shared memory last, by what instruction and when: what a data race is found by. Two
/// accesses to the same byte, one of them a write, race unless one of them happens before the other
/// (PTX ISA, "Memory Consistency Model", "Data-Races"); the earlier one in the simulated order is
/// remembered here, and the later one's thread must know it.
namespace tegula::sim {

/// An instruction on a source line.
struct Site {
  SourceLocation where;
  Instruction instruction = Instruction::none;
};

/// Sites by number, which fits into a stamp.
class SiteTable {
 public:
  SiteTable();
  std::uint16_t number(Instruction instruction, SourceLocation where) {
    std::size_t const slot =
        (static_cast<std::size_t>(where.line) * 64 + static_cast<std::size_t>(instruction)) %
        recent_.size();
    std::uint16_t const recent = recent_[slot];
    Site const& site = sites_[recent];
    if (site.where.line == where.line && site.instruction == instruction &&
        site.where.file == where.file) [[likely]]
      return recent;
    return recent_[slot] = find(instruction, where);
  }
  Site const& operator[](std::uint16_t number) const { return sites_[number]; }

 private:
  std::uint16_t find(Instruction instruction, SourceLocation where);

  std::vector<Site> sites_;
  std::unordered_multimap<std::uint64_t, std::uint16_t> numbers_;
  std::array<std::uint16_t, 256> recent_{};
};

/// Who wrote, when and by what; time 0: nobody.
struct Stamp {
  Time time = 0;
  std::uint16_t agent = 0;
  std::uint16_t site = 0;
};

/// An access that another one conflicts with, and where.
struct Conflict {
  std::uint32_t offset = 0;  ///< of the first byte, in shared memory
  int agent = 0;             ///< who accessed it before; of a warpgroup, its first thread
  bool warpgroup = false;    ///< all of its warps did
  bool wrote = false;
  bool unfenced = false;  ///< the two are ordered, but for the fence between the proxies
  std::uint16_t site = 0;
  Time time = 0;  ///< of a write, or of the read
};

/// Threads that ask together: one, or the 128 of a warpgroup, which must all know what
/// comes before.
class Issuers {
 public:
  Issuers(Causality const& causality, int first, int count);
  bool known(int agent, Time time) const;
  bool seen(int agent, Time time) const;
  bool fenced(int agent, Time time) const;

 private:
  struct Kind {
    int thread;  ///< one of those that know the same
    bool alone;  ///< there is no other
  };
  friend class RaceShadow;
  bool among(int agent) const { return agent >= first_ && agent < first_ + count_; }

  Causality const& causality_;
  int first_;
  int count_;
  std::vector<Kind> kinds_;
  mutable Stamp writer_;  ///< the latest that was found to be in order: mostly the next is the same
};

/// The last writer of every byte of a CTA's shared memory, and those who have read it since.
/// Writers are kept by words of 4 bytes, and by bytes where the bytes of a word differ; readers by
/// warps, in pieces of 16 bytes. Threads are agents of the cluster's causality; a warp is given by
/// its first thread. Offsets are from the beginning of shared memory.
class RaceShadow {
 public:
  explicit RaceShadow(Causality const& causality) : causality_(causality) {}

  /// Nobody has accessed any of `bytes` bytes.
  void reset(std::size_t bytes);

  /// A thread reads, or writes, n bytes through the generic proxy. False where that races: with
  /// what, is in `conflict`.
  bool read(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site,
            Conflict& conflict);
  bool write(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site,
             Conflict& conflict);
  /// A warp reads, or writes, 16 bytes on their boundary: word w by the lanes of lanes[w], or
  /// by lane[w].
  bool read_row(int warp, std::uint32_t offset, std::uint32_t const (&lanes)[4], std::uint16_t site,
                Conflict& conflict);
  bool write_row(int warp, std::uint32_t offset, int const (&lane)[4], std::uint16_t site,
                 Conflict& conflict);
  /// A thread reads n bytes, or changes them, by an instruction that may meet others that
  /// are strong.
  bool strong(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site, bool write,
              SiteTable const& sites, Conflict& conflict);
  /// As read, without holding it against the last writer: an mbarrier's use by a thread.
  void note_use(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site);
  /// Whether a thread may write n bytes through the generic proxy (cp.async: it does so later).
  bool may_write(int thread, std::uint32_t offset, std::uint32_t n, Conflict& conflict) const;
  /// Whether what `issuers` issue may access n bytes through the asynchronous proxy. `strict`: it
  /// may overwrite what was read through the generic proxy only with a fence in between.
  bool may_access(Issuers const& issuers, std::uint32_t offset, std::uint32_t n, bool write,
                  bool strict, Conflict& conflict) const;
  /// n bytes have been written, after all that was done to them before.
  void written(std::uint32_t offset, std::uint32_t n, Stamp stamp);
  /// The asynchronous proxy has read n bytes, as a thread, or a warpgroup given by its first,
  /// knows now.
  void has_read(int thread, bool warpgroup, std::uint32_t offset, std::uint32_t n,
                std::uint16_t site);

  /// Bytes that the shadow takes up.
  std::size_t bytes() const;

 private:
  static constexpr std::uint32_t kPiece = 16;
  static constexpr std::uint16_t kSplit = 0xffff;  ///< agent of a word whose bytes' stamps differ

  enum class ReaderKind : std::uint8_t { lanes, bytes_of_lane, warpgroup };
  /// Lanes of one warp that read a piece at one time.
  struct Reader {
    std::uint32_t next;
    Time time;
    std::uint16_t site;
    ReaderKind kind;
    bool async;  ///< by the asynchronous proxy
    std::uint32_t warp;
    /// of each word; bytes_of_lane: the bytes, the lane; warpgroup: any
    std::array<std::uint32_t, 4> lanes;
  };
  using Split = std::array<Stamp, 4>;

  template <class Known>
  bool readers_known(std::uint32_t piece, std::uint32_t bytes, int self, Known&& known,
                     Conflict& conflict) const;
  bool ordered(int thread, Stamp const& stamp) const;
  bool writer_known(int thread, std::uint32_t word, std::uint32_t bytes, Conflict& conflict) const;
  void note_lanes(std::uint32_t piece, int warp, std::array<std::uint32_t, 4> const& lanes,
                  std::uint16_t site, bool async = false);
  void note_bytes(std::uint32_t piece, int thread, std::uint32_t bytes, std::uint16_t site);
  void prune(std::uint32_t piece, int warp, std::array<std::uint32_t, 4> const& lanes);
  std::uint32_t forget_known(Reader& reader, int warp,
                             std::array<std::uint32_t, 4> const& lanes) const;
  int join_warps(std::uint32_t piece, bool of_one_line);
  void make_room(std::uint32_t piece);
  void push(std::uint32_t piece, Reader const& reader);
  void drop(std::uint32_t& link);
  void drop_readers(std::uint32_t piece, std::uint32_t words);
  void split(std::uint32_t word, std::uint32_t bytes, Stamp stamp);
  void set_writer(std::uint32_t word, Stamp stamp);
  void set_writers(std::uint32_t offset, std::uint32_t n, Stamp stamp);
  Split stamps_of(std::uint32_t word) const;

  Causality const& causality_;
  std::vector<Stamp> writers_;        ///< of each word
  std::vector<std::uint32_t> heads_;  ///< of each piece: its latest reader, in readers_; 0: none
  std::vector<Reader> readers_;       ///< the first is not used
  std::uint32_t free_reader_ = 0;
  std::vector<Split> splits_;
  std::vector<std::uint32_t> free_splits_;
  /// Of words whose last writer is strong: who wrote each byte last that is not. Those who are
  /// strong may meet one another, and each must come after that one.
  std::unordered_map<std::uint32_t, Split> under_;
};

}  // namespace tegula::sim
