#include <fmt/format.h>

#include "checker/checker.hpp"
#include "values/place.hpp"

/// What is said of accesses to shared memory that race.
namespace tegula::sim {

void Checker::generic_race(Cta& cta, SharedAccess const& access, Conflict conflict) {
  bool const arrives = conflict.agent >= agents_.causality().threads();
  if (agents_.thread_of(conflict.agent) >= 0) conflict.agent = agents_.thread_of(conflict.agent);
  Instruction const instruction = access.instruction;
  bool const write = access.write;
  int const lane = access.lane;
  SourceLocation where = access.where;
  std::uint32_t const address = kSharedBase + conflict.offset;
  std::string const place = cta.shared_place(address);
  Site const other = agents_.sites()[conflict.site];
  char const* const verb = write ? "writes" : "reads";
  char const* const name = ptx_name(instruction);
  char const* const other_name = ptx_name(other.instruction);
  if (conflict.agent >= agents_.causality().threads()) {
    SharedRange const mbarrier = agents_.mbarrier_of(conflict.agent);
    int const issuer = agents_.issuer_of(conflict.agent, conflict.site);
    cta.report(write ? FindingKind::async_overwrite : FindingKind::async_read_early, where, cta.here(lane),
               cta.buffer_name(address), place,
               fmt::format("{} {} {} while a {} into it is in flight that {} issued ({})", name, verb, place,
                           other_name, agent_text(cta, issuer), place_text(other.where)),
               {other.where, culprit(issuer),
                fmt::format("a wait for {}, on which it completes, would order them",
                            cta.cluster().cta(mbarrier.cta).shared_place(mbarrier.address))});
    return;
  }
  Culprit const who = culprit(conflict.agent);
  Culprit const self = cta.here(lane);
  bool const by_async = row_of(other.instruction).proxy == Proxy::async;
  std::string order;
  bool const of_warp = who.cta == self.cta && who.warp == self.warp && !conflict.warpgroup;
  if (conflict.wrote && other.instruction == Instruction::cp_async) {
    order = arrives
                ? "a wait for the mbarrier of the cp.async.mbarrier.arrive that follows it would order them"
                : fmt::format("a cp.async.wait_group by {}, and then {}, would order them",
                              agent_text(cta, conflict.agent),
                              of_warp ? "a warp::sync"
                                      : "a cta::sync, or an arrival on an mbarrier and a wait for it");
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
        conflict.warpgroup ? fmt::format("warpgroup {}", who.warp / 4) : agent_text(cta, conflict.agent);
    cta.report(
        FindingKind::async_overwrite, where, cta.here(lane), cta.buffer_name(address), place,
        fmt::format("{} writes {} while a {} that reads it may be in flight that {} issued ({})", name, place,
                    other_name, whose, place_text(other.where)),
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
                   agent_text(cta, conflict.agent))});
    return;
  }
  // A pair of lines is told of once, whichever came first where.
  if (agents_.raced_reversed(site(instruction, where), conflict.site)) where = other.where;
  cta.report(FindingKind::data_race, where, cta.here(lane), cta.buffer_name(address), place,
             fmt::format("{} {} {}, which {} {} by {} ({}), and nothing orders the two", name, verb, place,
                         agent_text(cta, conflict.agent), conflict.wrote ? "wrote" : "read", other_name,
                         place_text(other.where)),
             {other.where, who, order});
}

void Checker::async_race(Cta& cta, InFlight const& operation, bool write, Conflict conflict) {
  if (agents_.thread_of(conflict.agent) >= 0) conflict.agent = agents_.thread_of(conflict.agent);
  std::uint32_t const address = kSharedBase + conflict.offset;
  std::string const place = cta.shared_place(address);
  Site const other = agents_.sites()[conflict.site];
  char const* const verb = write ? "writes" : "reads";
  char const* const name = ptx_name(operation.instruction);
  char const* const other_name = ptx_name(other.instruction);
  Culprit const self = cta.here();
  if (conflict.agent >= agents_.causality().threads()) {
    SharedRange const mbarrier = agents_.mbarrier_of(conflict.agent);
    int const issuer = agents_.issuer_of(conflict.agent, conflict.site);
    cta.report(
        write ? FindingKind::async_overwrite : FindingKind::async_read_early, operation.where, self,
        cta.buffer_name(address), place,
        fmt::format("{} {} {} while a {} into it is in flight that {} issued ({})", name, verb, place,
                    other_name, agent_text(cta, issuer), place_text(other.where)),
        {other.where, culprit(issuer),
         fmt::format("a wait for {}, on which it completes, by {} would order them",
                     cta.cluster().cta(mbarrier.cta).shared_place(mbarrier.address),
                     operation.instruction == Instruction::wgmma_mma_async ? "every thread of the warpgroup"
                                                                           : "the thread that issues it")});
    return;
  }
  Culprit const who = culprit(conflict.agent);
  std::string const whose =
      conflict.warpgroup ? fmt::format("warp {}", who.warp) : agent_text(cta, conflict.agent);
  Opposite opposite{other.where, {who.cta, who.warp, conflict.warpgroup ? -1 : who.lane}, ""};
  if (conflict.unfenced) {
    bool const group = operation.instruction == Instruction::wgmma_mma_async;
    opposite.order =
        conflict.agent == cta.current_thread().agent && !group
            ? "a fence_proxy_async_shared between the two would order them"
            : fmt::format(
                  "a fence_proxy_async_shared by {} after that, or by {} before the {}, would order them",
                  whose,
                  group ? "every thread of the warpgroup" : agent_text(cta, cta.current_thread().agent),
                  name);
    cta.report(
        FindingKind::proxy_race, operation.where, self, cta.buffer_name(address), place,
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
    cta.report(FindingKind::data_race, operation.where, self, cta.buffer_name(address), place,
               fmt::format("{} {} {}, which {} wrote by {} ({}), and nothing orders the two", name, verb,
                           place, whose, other_name, place_text(other.where)),
               std::move(opposite));
    return;
  }
  opposite.order =
      conflict.warpgroup
          ? fmt::format(
                "an arrival of {} on an mbarrier after its wgmma_wait_group, and a wait for it, would order them",
                whose)
          : "an arrival on an mbarrier after the read, or a barrier, and a wait for it would order them";
  cta.report(FindingKind::async_overwrite, operation.where, self, cta.buffer_name(address), place,
             fmt::format("{} writes {}, which {} reads by {} ({}), and nothing orders that before", name,
                         place, whose, other_name, place_text(other.where)),
             std::move(opposite));
}

}  // namespace tegula::sim
