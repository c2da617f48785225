#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "checker/causality.hpp"
#include "checker/sites.hpp"

namespace tegula::sim {

/// The words of a CTA's shared memory that strong accesses have changed since a plain store did.
/// PTX ISA, memory consistency model, "Morally strong operations": two that are morally strong may
/// meet. "Observation Order": a read observes the write whose value it reads and, through atomics
/// that read and write, those before. "Causality Order": what a read has observed comes before what
/// that read comes before, whatever else nobody releases. So whoever draws the last ticket may put
/// the counter back by a plain store.
class StrongWords {
 public:
  using Stamps = std::array<Stamp, 4>;  ///< of the bytes of a word

  /// What a strong access does.
  struct Effect {
    bool reads = false;     ///< its thread learns what was there; not so a red
    bool modifies = false;  ///< what it writes goes on from what was there: an atomic, a red
    bool writes = false;    ///< not so a compare-and-swap that fails
  };
  /// What an agent did on a site to some bytes of a word: its latest write, and its latest read
  /// that observed something. The word's accesses have numbers, from 1 on.
  struct Access {
    int agent = 0;
    std::uint16_t site = 0;
    std::uint16_t bytes = 0;  ///< as bits
    Time wrote = 0;           ///< or might have; 0: never
    std::uint32_t write = 0;  ///< its number; 0: it wrote nothing, though its instruction may
    Time read = 0;
    std::uint32_t first = 0;  ///< the read observed the writes from one number on
    std::uint32_t last = 0;   ///< up to another, itself among them
  };
  /// The last write of a byte.
  struct Last {
    std::uint16_t site = 0;   ///< 0: there is none
    std::uint32_t store = 0;  ///< the number of the last write that did not go on from one before
  };
  struct Word {
    Stamps under = {};  ///< who wrote each byte last that is not strong
    std::uint32_t accesses = 0;
    std::array<Last, 4> last = {};  ///< of each byte
    std::vector<Access> by;         ///< sorted by agent, site and bytes
  };

  StrongWords(Causality const& causality, SiteTable const& sites)
      : causality_(causality), sites_(sites) {}

  /// Nobody has changed any.
  void reset() { words_.clear(); }
  bool empty() const { return words_.empty(); }
  Word const* find(std::uint32_t word) const {
    if (words_.empty()) return nullptr;
    auto const found = words_.find(word);
    return found == words_.end() ? nullptr : &found->second;
  }
  void erase(std::uint32_t word) { words_.erase(word); }

  /// Whether accesses on these sites meet.
  bool meet(std::uint16_t site, std::uint16_t other) const {
    return may_meet(sites_[site], sites_[other]);
  }
  /// Whether the thread comes after a write of the word because it comes after a read that has
  /// observed it.
  bool observed(Word const& word, int thread, Access const& access) const;
  /// A strong instruction, whose stamp is given, has been executed on some bytes of a word.
  /// `under` is what Word::under is to be.
  void note(std::uint32_t word, std::uint32_t bytes, Stamp const& stamp, Effect effect,
            Stamps const& under);

  /// Bytes that this takes up.
  std::size_t bytes() const;

 private:
  void forget_known(Word& word, int thread) const;

  Causality const& causality_;
  SiteTable const& sites_;
  std::unordered_map<std::uint32_t, Word> words_;
};

}  // namespace tegula::sim
