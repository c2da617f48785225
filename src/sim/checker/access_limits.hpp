#pragma once

#include <cstdint>

#include "profile/counters.hpp"
#include "tegula/arch/where.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

class Cta;

/// An access of the lanes `lanes` of a warp, of `bytes` bytes each.
struct WarpAccess {
  int warp;
  Instruction instruction;
  Where where;
  std::uint32_t lanes;
  int bytes;
};

/// Reports an access to shared memory with more bank conflicts than Limits::bank_conflicts.
void report_conflicts(Cta& cta, WarpAccess const& access, std::uint32_t const* addresses, BankUse use,
                      int limit);
/// Reports an access to global memory that touches more sectors than Limits::excess_sectors beyond those
/// needed.
void report_sectors(Cta& cta, WarpAccess const& access, std::uint64_t const* addresses, SectorUse use,
                    int limit);

}  // namespace tegula::sim
