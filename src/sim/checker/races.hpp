#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "checker/causality.hpp"
#include "checker/issuers.hpp"
#include "checker/readers.hpp"
#include "checker/sites.hpp"
#include "checker/strong_words.hpp"

/// Who accessed shared memory last, by what instruction and when: what a data race is found by. Two
/// accesses to the same byte, one of them a write, race unless one of them happens before the other
/// (PTX ISA, "Memory Consistency Model", "Data-Races"); the earlier one in the simulated order is
/// remembered here, and the later one's thread must know it.
namespace tegula::sim {

/// The last writer of every byte of a CTA's shared memory, and those who have read it since.
/// Writers are kept by words of 4 bytes, and by bytes where the bytes of a word differ; readers by
/// warps, in pieces of 16 bytes. Threads are agents of the cluster's causality; a warp is given by
/// its first thread. Offsets are from the beginning of shared memory.
class RaceShadow {
 public:
  RaceShadow(Causality const& causality, SiteTable const& sites)
      : causality_(causality), sites_(sites), readers_(causality), strong_(causality, sites) {}

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
  /// A thread accesses n bytes by a strong instruction: it may meet others, where their scopes and
  /// sizes let them.
  bool strong(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site,
              StrongWords::Effect effect, Conflict& conflict);
  /// As read, without holding it against the last writer: an mbarrier's use by a thread.
  void note_use(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site);
  /// Whether a thread may write n bytes through the generic proxy (cp.async: it does so later).
  bool may_write(int thread, std::uint32_t offset, std::uint32_t n, Conflict& conflict) const;
  /// Whether what `issuers` issue on the site may access n bytes through the asynchronous proxy.
  /// `strict`: it may overwrite what was read through the generic proxy only with a fence in
  /// between.
  bool may_access(Issuers const& issuers, std::uint32_t offset, std::uint32_t n, std::uint16_t site,
                  bool write, bool strict, Conflict& conflict) const;
  /// n bytes have been written, after all that was done to them before.
  void written(std::uint32_t offset, std::uint32_t n, Stamp stamp);
  /// A thread is done with n bytes: those that were written through the generic proxy, and are
  /// fenced as it knows, have no writer any more; and it has read them all, as the asynchronous
  /// proxy does.
  void discard(int thread, std::uint32_t offset, std::uint32_t n, std::uint16_t site);
  /// The asynchronous proxy has read n bytes, as a thread, or a warpgroup given by its first,
  /// knows now.
  void has_read(int thread, bool warpgroup, std::uint32_t offset, std::uint32_t n,
                std::uint16_t site);

  /// Bytes that the shadow takes up.
  std::size_t bytes() const;

 private:
  static constexpr std::uint16_t kSplit = 0xffff;  ///< agent of a word whose bytes' stamps differ
  using Split = std::array<Stamp, 4>;

  bool ordered(int thread, Stamp const& stamp) const;
  bool strong_known(int thread, StrongWords::Word const& strong, std::uint32_t word,
                    std::uint32_t bytes, Conflict& conflict) const;
  bool writer_known(int thread, std::uint32_t word, std::uint32_t bytes, Conflict& conflict) const;
  void split(std::uint32_t word, std::uint32_t bytes, Stamp stamp);
  void set_writer(std::uint32_t word, Stamp stamp);
  void set_writers(std::uint32_t offset, std::uint32_t n, Stamp stamp);
  Split stamps_of(std::uint32_t word) const;
  Split plain_stamps(std::uint32_t word) const;

  Causality const& causality_;
  SiteTable const& sites_;
  std::vector<Stamp> writers_;  ///< of each word; of one in strong_ the last, strong or not
  Readers readers_;
  std::vector<Split> splits_;
  std::vector<std::uint32_t> free_splits_;
  StrongWords strong_;
};

}  // namespace tegula::sim
