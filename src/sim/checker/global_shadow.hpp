#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checker/causality.hpp"
#include "checker/sites.hpp"
#include "machine/global_memory.hpp"
#include "machine/strength.hpp"
#include "tegula/arch/scope.hpp"
#include "tegula/arch/source_location.hpp"
#include "values/instruction.hpp"

/// What one cluster did to global memory, byte by byte: by whom each was last written, who has read
/// it since, and who combined something with it atomically. What a write took the place of is kept
/// where the cluster had learnt more of others in between: the write may come after what another
/// cluster did, and the earlier access not.
namespace tegula::sim {

class ClusterOrder;

/// Who accesses global memory.
struct GlobalActor {
  /// of the access: the thread's, or that of the mbarrier it completes on
  std::uint32_t agent = 0;
  std::uint32_t time = 0;
  Causality const* causality = nullptr;
  int knower = 0;             ///< the thread whose knowledge counts: an agent
  bool async = false;         ///< by the asynchronous proxy
  std::uint32_t foreign = 0;  ///< what it has learnt from other clusters: ClusterOrder::foreign
  std::uint32_t seen = 0;  ///< what strong reads of the bytes have seen before: ClusterOrder::seen
  ClusterOrder const* order = nullptr;  ///< where `seen` is not 0
  int cta = 0;                          ///< rank of its CTA, for reports,
  int thread = 0;                       ///< and index in it
  int threads = 1024;                   ///< of a CTA
};

/// An instruction on a source line, and who of the cluster executed it first. Of strong accesses of
/// its CTA's scope each CTA has sites of its own.
struct GlobalSite {
  SourceLocation where;
  Instruction instruction;
  GlobalAccess access;
  bool async;
  std::uint32_t foreign;
  int cta;
  int thread;
  Strength strength;
  std::uint32_t seen;
};

inline Site as_site(GlobalSite const& site) {
  return {site.where, site.instruction, site.strength, site.cta};
}

/// Whether two accesses of threads so far apart do not race whatever their order: two reads; two
/// strong ones that are morally strong; two atomics, one of them a reduction by the asynchronous
/// proxy.
bool may_meet(GlobalSite const& one, GlobalSite const& other, Apart apart);

/// `count` pieces of `bytes` bytes, `pitch` apart, that one warp accessed at one site.
struct GlobalRows {
  std::uintptr_t begin;
  std::uint64_t bytes;
  std::uint64_t pitch;
  std::uint64_t count;
  std::uint32_t site;
  /// which of its cluster's releases came after the access: ClusterOrder::cover
  std::uint32_t cover;
  int cta;  ///< rank in the cluster
  int warp;
  int lane;             ///< -1: several
  bool settled = true;  ///< false: an operation in flight did, and nobody has waited for it
};

/// Two accesses of a cluster to one byte, at least one of them a write, that nothing orders; or
/// `needs_fence`, a read by the asynchronous proxy of what was written through the generic one,
/// with no fence.proxy.async between; or `read_only`, a read through the read-only path of what
/// is written.
struct GlobalConflict {
  GlobalSite const* earlier;
  std::uint32_t agent;  ///< of the earlier access
  std::uintptr_t address;
  bool needs_fence;
  bool read_only;
};

/// ld.global.nc reads by a path of its own, which what orders others does not reach: PTX ISA,
/// ld.global.nc, "memory that is read-only for the duration of the kernel".
inline bool through_read_only_path(GlobalSite const& site) {
  return site.instruction == Instruction::ld_global_nc;
}

class GlobalShadow {
 public:
  /// The agent of accesses that nobody has waited for. The numbers of others are smaller.
  static constexpr std::uint32_t kNobody = (1u << 14) - 1;

  /// Forgets everything.
  void clear();
  /// Not a site: there are as many as there may be, and of accesses there nothing is kept.
  static constexpr std::uint32_t kNoSite = ~0u;
  /// The number of the site in the tables of this cluster.
  std::uint32_t site(SourceLocation where, Instruction instruction, GlobalAccess access,
                     GlobalActor const& actor, Strength strength = {});
  GlobalSite const& site(std::uint32_t number) const { return sites_[number]; }

  /// Takes down an access to `bytes` bytes, and says with which earlier one it races, if any.
  std::optional<GlobalConflict> note(std::uintptr_t begin, std::size_t bytes, std::uint32_t site,
                                     GlobalActor const& actor);
  /// The accesses to these bytes that the site made as kNobody at the time `issued` are the actor's
  /// from now on.
  void settle(std::uintptr_t begin, std::size_t bytes, std::uint32_t site, std::uint32_t issued,
              GlobalActor const& actor);

  /// All that was taken down, by ascending address but for what interleaves. `cover(agent,
  /// time)` gives GlobalRows::cover; agents below `ctas` times `threads` are the threads of the
  /// CTAs, in order. `allocation_of(address)` gives the Allocation, or null: a row lies in one.
  template <class Cover, class AllocationOf>
  std::vector<GlobalRows> rows(int ctas, int threads, Cover&& cover,
                               AllocationOf&& allocation_of) const;
  std::vector<GlobalSite> const& sites() const { return sites_; }
  /// Who of the cluster wrote the byte last, or changed it by an atomic since; null where
  /// nobody did.
  GlobalSite const* last_change(std::uintptr_t address) const;
  /// Bytes of host memory that the shadow takes up.
  std::size_t memory() const;

 private:
  static constexpr std::uintptr_t kPageBytes = 4096;
  static constexpr std::size_t kWords = kPageBytes / 4;
  static constexpr std::uint32_t kMostSites = 1u << 16;
  /// Later accesses count as made then: whoever comes after them is not found to race.
  static constexpr std::uint32_t kLastTime = (1u << 28) - 1;
  /// Records of a word that writes took the place of; of more, the latest are kept. A loop that
  /// overwrites the same bytes after each handover goes on for as long as it likes, and has the
  /// same race in each round.
  static constexpr std::size_t kMostReplaced = 32;

  /// An access to some bytes of one aligned word of 4 bytes: time 28, agent 14, atomic 1, site 16,
  /// more 1, bytes 4. None where it is 0. `more`: others of the same word are in the second array,
  /// or the rest.
  using Record = std::uint64_t;
  static constexpr Record kMore = 1u << 4;
  static constexpr std::uint32_t bytes_of(Record r) { return static_cast<std::uint32_t>(r & 15); }
  static constexpr std::uint32_t site_of(Record r) {
    return static_cast<std::uint32_t>(r >> 5 & (kMostSites - 1));
  }
  static constexpr bool is_atomic(Record r) { return (r >> 21 & 1) != 0; }
  static constexpr std::uint32_t agent_of(Record r) {
    return static_cast<std::uint32_t>(r >> 22 & kNobody);
  }
  static constexpr std::uint32_t time_of(Record r) { return static_cast<std::uint32_t>(r >> 36); }
  static constexpr Record without_bytes(Record r) { return r & ~Record{15 | kMore}; }

  /// The records of a page, one for most words.
  struct Plane {
    std::unique_ptr<Record[]> first;   ///< null where nothing was taken down
    std::unique_ptr<Record[]> second;  ///< of words with two records
    std::unordered_map<std::size_t, std::vector<Record>> rest;

    void clear();
    void reserve();
    /// Calls f(Record) with each of a word's, without kMore.
    template <class F> void for_each(std::size_t word, F&& f) const;
    void set(std::size_t word, std::vector<Record> const& records);
  };

  struct Page {
    std::uintptr_t number = 0;
    Plane writes;
    Plane shared;  ///< reads and atomics since: those of a kind do not disturb each other
    Plane
        replaced;  ///< what writes took the place of, and other clusters may race with; latest last
  };
  static constexpr Plane Page::*kPlanes[] = {&Page::writes, &Page::shared, &Page::replaced};

  struct Pass;  ///< one call of note

  /// Of no bytes.
  Record record(std::uint32_t site, std::uint32_t agent, std::uint32_t time) const;

  Page& page(std::uintptr_t number);
  void note_word(Page& page, std::size_t word, std::uint32_t bytes, Pass& pass);
  void write_word(Page& page, std::size_t word, std::uint32_t bytes, Pass& pass);
  void share_word(Page& page, std::size_t word, std::uint32_t bytes, Pass& pass);
  /// Keeps the records `replaced_` of a word, and clears them.
  void keep_replaced(Page& page, std::size_t word);

  class RowList;
  std::vector<Page const*> pages_in_order() const;

  /// Gives numbers of sites free that no record has any more.
  void collect_sites();

  std::vector<GlobalSite> sites_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> numbers_;  ///< of sites_, by hash
  std::array<std::uint32_t, 256> recent_sites_{};                  ///< number + 1, by hash
  std::vector<std::uint32_t> free_sites_;
  bool full_ = false;  ///< too few records were dead when they were looked through
  std::unordered_map<std::uintptr_t, Page*> table_;
  std::array<Page*, 1024> recent_pages_{};
  std::vector<std::unique_ptr<Page>> pool_;
  std::size_t used_ = 0;  ///< pages of the pool
  std::vector<Record> scratch_;
  std::vector<Record> replaced_;
};

/// Puts runs of bytes together to rows.
class GlobalShadow::RowList {
 public:
  RowList() { latest_.fill(kNone); }
  /// The bytes of one call follow those of the call before, or end_run was called.
  void add(GlobalRows const& bytes);
  void end_run();
  /// What follows lies in another allocation: how far that is from this one is the host's to
  /// choose.
  void end_allocation();
  std::vector<GlobalRows> take();

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<GlobalRows> rows_;
  /// By site and warp: the row with the highest address. Several may share a place, which then has
  /// the latest of any of them.
  std::array<std::size_t, 1024> latest_;
  GlobalRows run_{};  ///< that may go on; no bytes: there is none
};

template <class F> void GlobalShadow::Plane::for_each(std::size_t word, F&& f) const {
  if (first == nullptr || first[word] == 0) return;
  Record const record = first[word];
  f(record & ~kMore);
  if ((record & kMore) == 0) return;
  if (second != nullptr && second[word] != 0) f(second[word]);
  auto const others = rest.find(word);
  if (others == rest.end()) return;
  for (Record const other : others->second) f(other);
}

template <class Cover, class AllocationOf>
std::vector<GlobalRows> GlobalShadow::rows(int ctas, int threads, Cover&& cover,
                                           AllocationOf&& allocation_of) const {
  RowList list;
  Allocation const* memory = nullptr;
  for (Plane Page::*const of_page : kPlanes) {
    for (Page const* const page : pages_in_order()) {
      Plane const& plane = page->*of_page;
      for (std::size_t word = 0; plane.first != nullptr && word < kWords; ++word) {
        plane.for_each(word, [&](Record const record) {
          std::uintptr_t const address = page->number * kPageBytes + 4 * word;
          auto const* const pointer = reinterpret_cast<void const*>(address);
          if (memory == nullptr || !memory->contains(pointer, 1)) {
            Allocation const* const before = std::exchange(memory, allocation_of(pointer));
            if (memory != before) list.end_allocation();
          }
          auto const agent = static_cast<int>(agent_of(record));
          GlobalSite const& site = sites_[site_of(record)];
          bool const of_thread = agent < ctas * threads;
          int const thread = of_thread ? agent % threads : site.thread;
          GlobalRows part{address,
                          4,
                          0,
                          1,
                          site_of(record),
                          cover(agent_of(record), time_of(record)),
                          of_thread ? agent / threads : site.cta,
                          thread / 32,
                          thread % 32,
                          agent_of(record) != kNobody};
          std::uint32_t const bytes = bytes_of(record);
          if (bytes == 15) return list.add(part);
          for (std::uint32_t i = 0; i < 4;) {
            std::uint32_t end = i;
            while (end < 4 && (bytes >> end & 1) != 0) ++end;
            part.begin = address + i;
            part.bytes = end - i;
            if (end != i) list.add(part);
            i = end + 1;
          }
        });
      }
    }
    list.end_run();
  }
  return list.take();
}

}  // namespace tegula::sim
