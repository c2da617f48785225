#include <fmt/format.h>

#include "machine/cluster.hpp"
#include "values/place.hpp"

/// Races in shared memory: where accesses are held against the shadow, and what is said of those that race.
namespace tegula::sim {

namespace {

/// Whether the instruction accesses shared memory through the asynchronous proxy.
bool asynchronous(Instruction instruction) {
  switch (instruction) {
    case Instruction::st_async:
    case Instruction::cp_async_bulk:
    case Instruction::cp_async_bulk_tensor:
    case Instruction::cp_reduce_async_bulk_tensor:
    case Instruction::wgmma_mma_async:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::uint16_t Cta::site(Instruction instruction, Where where) {
  return cluster_.sites().number(instruction, where);
}

Cta::Culprit Cta::culprit(int agent) const {
  int const threads = this->threads();
  return {agent / threads, agent % threads / 32, agent % 32};
}

/// "warp 3 lane 7", with the CTA's rank where it is not the running one.
std::string Cta::agent_text(int agent) const {
  Culprit const who = culprit(agent);
  std::string text = fmt::format("warp {} lane {}", who.warp, who.lane);
  if (who.cta != current_thread().cta->rank_) text += fmt::format(" of CTA {} of the cluster", who.cta);
  return text;
}

bool Cta::shared_matrix_row(Instruction instruction, std::uint32_t address, bool write, bool transpose,
                            int row, Where where, int lane) {
  if (address % 16 != 0 || !shared_.contains(address, 16)) [[unlikely]]
    return shared_access(instruction, address, 16, write, where, lane);
  if (!check_) return true;
  bool const right = check_state(instruction, address, 16, write, where, lane);
  if (!races_) return true;
  std::uint32_t const offset = address - kSharedBase;
  std::uint16_t const by = site(instruction, where);
  Conflict conflict;
  bool ordered = true;
  if (!write) {
    // Word w of a row is for lane 4 row + w; or its halves, columns of the matrix, for two lanes.
    std::uint32_t lanes[4];
    for (int w = 0; w < 4; ++w) lanes[w] = transpose ? 0x11u << (8 * w + row / 2) : 1u << (4 * row + w);
    ordered = shadow_.read_row(agent(0), offset, lanes, by, conflict);
  } else if (!transpose) {
    int const lanes[4] = {4 * row, 4 * row + 1, 4 * row + 2, 4 * row + 3};
    ordered = shadow_.write_row(agent(0), offset, lanes, by, conflict);
  } else {
    for (int c = 0; c < 8; ++c) {
      Conflict other;
      if (!shadow_.write(agent(4 * c + row / 2), offset + 2 * static_cast<std::uint32_t>(c), 2, by, other) &&
          ordered) {
        ordered = false;
        conflict = other;
      }
    }
  }
  if (!ordered && right) [[unlikely]]
    generic_race(instruction, write, where, lane, conflict);
  return true;
}

void Cta::generic_race(Instruction instruction, bool write, Where where, int lane, Conflict const& conflict) {
  std::uint32_t const address = kSharedBase + conflict.offset;
  std::string const place = shared_place(address);
  Site const other = cluster_.sites()[conflict.site];
  char const* const verb = write ? "writes" : "reads";
  char const* const name = ptx_name(instruction);
  char const* const other_name = ptx_name(other.instruction);
  if (conflict.agent >= cluster_.causality().threads()) {
    SharedRange const mbarrier = cluster_.mbarrier_of(conflict.agent);
    Thread const* const issuer = cluster_.issuer_of(conflict.agent, conflict.site);
    report(write ? FindingKind::async_overwrite : FindingKind::async_read_early, where, here(lane),
           buffer_name(address), place,
           fmt::format("{} {} {} while a {} into it is in flight that {} issued ({})", name, verb, place,
                       other_name, agent_text(issuer->agent), place_text(other.where)),
           {other.where, culprit(issuer->agent),
            fmt::format("a wait for {}, on which it completes, would order them",
                        cluster_.cta(mbarrier.cta).shared_place(mbarrier.address))});
    return;
  }
  Culprit const who = culprit(conflict.agent);
  Culprit const self = here(lane);
  bool const by_async = asynchronous(other.instruction);
  std::string order;
  bool const of_warp = who.cta == self.cta && who.warp == self.warp && !conflict.warpgroup;
  if (conflict.wrote && other.instruction == Instruction::cp_async) {
    order =
        fmt::format("a cp.async.wait_group by {}, and then {}, would order them", agent_text(conflict.agent),
                    of_warp ? "a warp::sync" : "a cta::sync, or an arrival on an mbarrier and a wait for it");
  } else if (who.cta != self.cta) {
    order =
        "a cluster::sync between them, or an mbarrier_arrive_cluster_release and, after the wait for it, a fence_acq_rel<Scope::gpu>, would order them";
  } else if (of_warp) {
    order = "a warp::sync between them would order them";
  } else {
    order = "a cta::sync between them, or an arrival on an mbarrier and a wait for it, would order them";
  }
  if (by_async && !conflict.wrote) {
    std::string const whose =
        conflict.warpgroup ? fmt::format("warpgroup {}", who.warp / 4) : agent_text(conflict.agent);
    report(FindingKind::async_overwrite, where, here(lane), buffer_name(address), place,
           fmt::format("{} writes {} while a {} that reads it may be in flight that {} issued ({})", name,
                       place, other_name, whose, place_text(other.where)),
           {other.where,
            {who.cta, who.warp, conflict.warpgroup ? -1 : who.lane},
            conflict.warpgroup
                ? fmt::format(
                      "an arrival of its warp {} on an mbarrier after its wgmma_wait_group, and a wait for "
                      "it, would order them",
                      who.warp)
                : fmt::format(
                      "a barrier, or an arrival of {} on an mbarrier, after its bulk_wait_group_read would "
                      "order them",
                      agent_text(conflict.agent))});
    return;
  }
  // A pair of lines is told of once, whichever came first where.
  if (cluster_.raced_reversed(site(instruction, where), conflict.site)) where = other.where;
  report(FindingKind::data_race, where, here(lane), buffer_name(address), place,
         fmt::format("{} {} {}, which {} {} by {} ({}), and nothing orders the two", name, verb, place,
                     agent_text(conflict.agent), conflict.wrote ? "wrote" : "read", other_name,
                     place_text(other.where)),
         {other.where, who, order});
}

void Cta::async_race(InFlight const& operation, bool write, Conflict const& conflict) {
  std::uint32_t const address = kSharedBase + conflict.offset;
  std::string const place = shared_place(address);
  Site const other = cluster_.sites()[conflict.site];
  char const* const verb = write ? "writes" : "reads";
  char const* const name = ptx_name(operation.instruction);
  char const* const other_name = ptx_name(other.instruction);
  Culprit const self = here();
  if (conflict.agent >= cluster_.causality().threads()) {
    SharedRange const mbarrier = cluster_.mbarrier_of(conflict.agent);
    Thread const* const issuer = cluster_.issuer_of(conflict.agent, conflict.site);
    report(
        write ? FindingKind::async_overwrite : FindingKind::async_read_early, operation.where, self,
        buffer_name(address), place,
        fmt::format("{} {} {} while a {} into it is in flight that {} issued ({})", name, verb, place,
                    other_name, agent_text(issuer->agent), place_text(other.where)),
        {other.where, culprit(issuer->agent),
         fmt::format("a wait for {}, on which it completes, by {} would order them",
                     cluster_.cta(mbarrier.cta).shared_place(mbarrier.address),
                     operation.instruction == Instruction::wgmma_mma_async ? "every thread of the warpgroup"
                                                                           : "the thread that issues it")});
    return;
  }
  Culprit const who = culprit(conflict.agent);
  std::string const whose =
      conflict.warpgroup ? fmt::format("warp {}", who.warp) : agent_text(conflict.agent);
  Opposite opposite{other.where, {who.cta, who.warp, conflict.warpgroup ? -1 : who.lane}, ""};
  if (conflict.unfenced) {
    bool const group = operation.instruction == Instruction::wgmma_mma_async;
    opposite.order =
        conflict.agent == current_thread().agent && !group
            ? "a fence_proxy_async_shared between the two would order them"
            : fmt::format(
                  "a fence_proxy_async_shared by {} after that, or by {} before the {}, would order them",
                  whose, group ? "every thread of the warpgroup" : agent_text(current_thread().agent), name);
    report(FindingKind::proxy_race, operation.where, self, buffer_name(address), place,
           fmt::format("{} {} {}, which {} {} by {} ({}) without a fence.proxy.async after that", name, verb,
                       place, whose, conflict.wrote ? "wrote" : "read", other_name, place_text(other.where)),
           std::move(opposite));
    return;
  }
  if (conflict.wrote) {
    opposite.order = fmt::format(
        "{} after the write, and then a barrier or an arrival on an mbarrier and a wait for it, would order them",
        other.instruction == Instruction::cp_async ? "a cp.async.wait_group and a fence_proxy_async_shared"
                                                   : "a fence_proxy_async_shared");
    report(FindingKind::data_race, operation.where, self, buffer_name(address), place,
           fmt::format("{} {} {}, which {} wrote by {} ({}), and nothing orders the two", name, verb, place,
                       whose, other_name, place_text(other.where)),
           std::move(opposite));
    return;
  }
  opposite.order =
      conflict.warpgroup
          ? fmt::format(
                "an arrival of {} on an mbarrier after its wgmma_wait_group, and a wait for it, would order them",
                whose)
          : "an arrival on an mbarrier after the read, or a barrier, and a wait for it would order them";
  report(FindingKind::async_overwrite, operation.where, self, buffer_name(address), place,
         fmt::format("{} writes {}, which {} reads by {} ({}), and nothing orders that before", name, place,
                     whose, other_name, place_text(other.where)),
         std::move(opposite));
}

}  // namespace tegula::sim
