#include "checker/access_limits.hpp"

#include <fmt/format.h>

#include <bit>
#include <string>
#include <utility>

#include "machine/cluster.hpp"
#include "tegula/io/text.hpp"
#include "values/place.hpp"

namespace tegula::sim {

namespace {

/// An access of the lanes `lanes` of a warp, of `bytes` bytes each.
struct WarpAccess {
  int warp;
  Instruction instruction;
  SourceLocation where;
  std::uint32_t lanes;
  int bytes;
};

/// Two lanes of one pass that ask the same bank for different words, and their addresses there.
struct Clash {
  int lanes[2] = {-1, -1};
  std::uint32_t words[2] = {};
};
Clash clash(WarpAccess const& access, std::uint32_t const* addresses) {
  std::uint32_t const words = access.bytes < 4 ? 1 : static_cast<std::uint32_t>(access.bytes) / 4;
  int const lanes_a_pass = 32 / static_cast<int>(words);
  for (int first = 0; first < 32; first += lanes_a_pass) {
    Clash banks[32];
    for (int lane = first; lane < first + lanes_a_pass; ++lane) {
      if ((access.lanes >> lane & 1) == 0) continue;
      for (std::uint32_t word = addresses[lane] / 4; word < addresses[lane] / 4 + words; ++word) {
        Clash& bank = banks[word % 32];
        if (bank.lanes[0] < 0) {
          bank.lanes[0] = lane;
          bank.words[0] = word;
        } else if (bank.words[0] != word) {
          bank.lanes[1] = lane;
          bank.words[1] = word;
          return bank;
        }
      }
    }
  }
  return {};
}

std::string lanes_count(WarpAccess const& access) {
  int const lanes = std::popcount(access.lanes);
  return lanes == 1 ? "a lane" : fmt::format("{} lanes", lanes);
}

/// Reports an access to shared memory with more bank conflicts than Limits::bank_conflicts.
void report_conflicts(Cta& cta, WarpAccess const& access, std::uint32_t const* addresses,
                      BankUse use, int limit) {
  Clash const pair = clash(access, addresses);
  std::uint32_t const first = 4 * pair.words[0];
  std::string buffer = cta.buffer_name(first);
  if (cta.cluster().again(FindingKind::bank_conflicts, access.where, buffer)) return;
  std::string const place = cta.own_place(first);
  cta.report(
      FindingKind::bank_conflicts, access.where, {cta.rank(), access.warp, pair.lanes[0]},
      std::move(buffer), place,
      fmt::format(
          "{} of {} by {} takes {} passes over the banks of shared memory, {} more than it needs, "
          "where {} more {} declared: lanes {} and {} ask bank {} for {} and {}",
          ptx_name(access.instruction), io::counted(access.bytes, "byte"), lanes_count(access),
          use.wavefronts, use.wavefronts - use.minimum, limit, limit == 1 ? "is" : "are",
          pair.lanes[0], pair.lanes[1], pair.words[0] % 32, place,
          cta.own_place(4 * pair.words[1])));
}

/// Reports an access to global memory that touches more sectors than Limits::excess_sectors beyond
/// those needed.
void report_sectors(Cta& cta, WarpAccess const& access, std::uint64_t const* addresses,
                    SectorUse use, int limit) {
  int const first = std::countr_zero(access.lanes);
  int second = first;
  for (int lane = 31; lane > first; --lane) {
    if ((access.lanes >> lane & 1) != 0 && addresses[lane] / 32 != addresses[first] / 32)
      second = lane;
  }
  auto const place = [&](int lane) {
    void const* const address = reinterpret_cast<void const*>(addresses[lane]);
    Allocation const* const memory = cta.allocation(address);
    return memory == nullptr ? std::string("an address in no allocation")
                             : memory->place(memory->offset_of(address));
  };
  Allocation const* const memory = cta.allocation(reinterpret_cast<void const*>(addresses[first]));
  std::string buffer = memory != nullptr ? memory->name : "";
  if (cta.cluster().again(FindingKind::uncoalesced, access.where, buffer)) return;
  std::string lanes = fmt::format("lane {} is at {}", first, place(first));
  if (second != first) lanes += fmt::format(", lane {} at {}", second, place(second));
  cta.report(
      FindingKind::uncoalesced, access.where, {cta.rank(), access.warp, first}, std::move(buffer),
      place(first),
      fmt::format(
          "{} of {} by {} touches {} sectors of global memory, {} more than its bytes need, where "
          "{} more {} declared: {}",
          ptx_name(access.instruction), io::counted(access.bytes, "byte"), lanes_count(access),
          use.touched, use.touched - use.needed, limit, limit == 1 ? "is" : "are", lanes));
}

}  // namespace

void AccessLimits::start(Cluster const& cluster) {
  limits_ = cluster.launch().kernel->limits;
  Limits const& asked = cluster.launch().options->limits;
  if (asked.bank_conflicts >= 0) limits_.bank_conflicts = asked.bank_conflicts;
  if (asked.excess_sectors >= 0) limits_.excess_sectors = asked.excess_sectors;
}

void AccessLimits::hold(Cta& cta, Warp const& warp, AccessLog::Record const& record,
                        AccessUse const& use) const {
  AccessLog::Site const& site = record.site;
  if (limits_.bank_conflicts >= 0 &&
      use.banks.wavefronts - use.banks.minimum > limits_.bank_conflicts)
    report_conflicts(cta,
                     {warp.index, site.instruction, site.where, record.lanes, site.shared_bytes},
                     record.shared, use.banks, limits_.bank_conflicts);
  if (limits_.excess_sectors >= 0 &&
      use.sectors.touched - use.sectors.needed > limits_.excess_sectors)
    report_sectors(
        cta, {warp.index, site.instruction, site.where, record.global_lanes, use.global_bytes},
        record.global, use.sectors, limits_.excess_sectors);
}

void AccessLimits::hold(Cta& cta, Warp const& warp, Instruction instruction, int count,
                        SourceLocation where, BankUse use) const {
  std::uint32_t const lanes = count == 4 ? kFullWarp : (1u << (8 * count)) - 1;
  if (limits_.bank_conflicts >= 0 && use.wavefronts - use.minimum > limits_.bank_conflicts)
    report_conflicts(cta, {warp.index, instruction, where, lanes, 16}, warp.operand, use,
                     limits_.bank_conflicts);
}

}  // namespace tegula::sim
