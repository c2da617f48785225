#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "checker/causality.hpp"
#include "machine/strength.hpp"
#include "tegula/arch/source_location.hpp"
#include "values/instruction.hpp"

/// Who accessed memory, when, and by what instruction on which line.
namespace tegula::sim {

/// An instruction on a source line; of a strong one also its strength, and the rank of the CTA that
/// executes it.
struct Site {
  SourceLocation where;
  Instruction instruction = Instruction::none;
  Strength strength = {};
  int cta = 0;
};

/// Whether accesses at the two sites are atomics or otherwise strong, and do not race whatever
/// their order. Each element of a reduction in bulk is an atomic at the scope of the GPU (PTX ISA,
/// cp.reduce.async.bulk); it is taken for one of the other's size.
inline bool may_meet(Site const& one, Site const& other) {
  if (!meets_in_shared(one.instruction) || !meets_in_shared(other.instruction)) return false;
  auto const strength = [](Site const& of, Site const& beside) {
    if (is_strong(of.instruction)) return of.strength;
    return Strength{Scope::gpu, is_strong(beside.instruction) ? beside.strength.bytes : 0};
  };
  return morally_strong(strength(one, other), strength(other, one),
                        one.cta == other.cta ? Apart::in_cta : Apart::in_cluster);
}

/// What would let two strong accesses meet that do not: `wide`, a wider scope, or one size. Empty
/// where one of them is not strong.
std::string meeting_text(Site const& one, Site const& other, char const* wide);

/// Sites by number, which fits into a stamp.
class SiteTable {
 public:
  SiteTable();
  std::uint16_t number(Instruction instruction, SourceLocation where, Strength strength = {},
                       int cta = 0) {
    std::size_t const slot =
        (static_cast<std::size_t>(where.line) * 64 + static_cast<std::size_t>(instruction)) %
        recent_.size();
    std::uint16_t const recent = recent_[slot];
    Site const& site = sites_[recent];
    if (site.where.line == where.line && site.instruction == instruction &&
        site.where.file == where.file && site.strength == strength && site.cta == cta) [[likely]]
      return recent;
    return recent_[slot] = find({where, instruction, strength, cta});
  }
  Site const& operator[](std::uint16_t number) const { return sites_[number]; }

 private:
  std::uint16_t find(Site const& site);

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

}  // namespace tegula::sim
