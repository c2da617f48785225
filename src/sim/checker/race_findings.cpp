#include <fmt/format.h>

#include <algorithm>

#include "checker/checker.hpp"
#include "values/place.hpp"

/// What is said of accesses to shared memory that race.
namespace tegula::sim {

/// What would order an access after a copy that counts for a phase of an mbarrier, and was issued
/// in phase `issued`. Where the thread has waited for another phase, it is told which.
std::string Checker::order_of_phase(Cta const& cta, SharedRange const& mbarrier, std::int64_t phase,
                                    std::int64_t issued, char const* waiter) {
  Cta const& owner = cta.cluster().cta(mbarrier.cta);
  std::string const place = owner.shared_place(mbarrier.address);
  int const thread = cta.current_thread().agent;
  int const rank = cta.current_thread().cta->rank();
  if (mbarrier.cta != rank)
    return fmt::format(
        "a wait for {}, on which it completes, by a thread of that CTA, an arrival of its on an mbarrier of CTA {} "
        "after that, and a wait for it there would order them",
        place, rank);
  PhaseHistory::Wait wait;
  for (OfMbarrier const& candidate : of(owner).mbarriers) {
    if (candidate.phases != nullptr && candidate.phases->place().address == mbarrier.address)
      wait = candidate.phases->wait_of(thread);
  }
  if (issued < phase && wait.phase >= issued)
    return fmt::format(
        "an expect_tx of all bytes of phase {} of {}, in which it was issued and which was complete without it, "
        "would order them",
        issued, place);
  if (wait.where.line == 0)
    return fmt::format("a wait for {}, on which it completes,{} would order them", place, waiter);
  if (wait.phase >= phase)
    return fmt::format(
        "a wait for phase {} of {}, on which it completes,{} before this would order them", phase,
        place, waiter);
  std::string const what =
      wait.phase < 0 ? std::string("for none: it passes before phase 0 is complete")
      : wait.brings
          ? fmt::format(
                "for phase {}, whose bytes nothing may overwrite but after an arrival that "
                "follows this access, and a wait for that",
                wait.phase)
          : fmt::format("for phase {}, which was complete without any bytes", wait.phase);
  return fmt::format(
      "a wait for phase {} of {}, of parity {}, on which it completes,{} would order them; that of {} ({}) is {}",
      phase, place, phase % 2, waiter, agent_text(cta, thread), place_text(wait.where), what);
}

/// The access races with a copy that has landed, and that its thread has not waited for.
void Checker::races_with_copy(Cta& cta, SharedAccess const& access, Conflict const& conflict,
                              char const* waiter) {
  std::uint32_t const address = kSharedBase + conflict.offset;
  std::string const place = cta.shared_place(address);
  Site const other = agents_.sites()[conflict.site];
  SharedRange const mbarrier = agents_.mbarrier_of(conflict.agent);
  auto const [by, issuer, issued] = agents_.landing_of(conflict.agent, conflict.site);
  std::int64_t phase = 0;
  for (OfMbarrier const& candidate : of(cta.cluster().cta(mbarrier.cta)).mbarriers) {
    if (candidate.phases != nullptr && candidate.agent == conflict.agent)
      phase = candidate.phases->phase_at(conflict.time);
  }
  cta.report(access.write ? FindingKind::async_overwrite : FindingKind::async_read_early,
             access.where, cta.here(access.lane), cta.buffer_name(address), place,
             fmt::format("{} {} {} while a {} {} it is in flight that {} issued ({})",
                         ptx_name(access.instruction), access.write ? "writes" : "reads", place,
                         ptx_name(other.instruction), conflict.wrote ? "into" : "that reads",
                         agent_text(cta, issuer), place_text(other.where)),
             {other.where, culprit(issuer),
              order_of_phase(cta, mbarrier, phase, std::min(issued, phase), waiter)});
}

/// What would order accesses of two threads, as far apart as they are. `arrives`: the other's is a
/// cp.async that a cp.async.mbarrier.arrive stands for.
std::string Checker::order_of_threads(Cta const& cta, Culprit const& self, Conflict const& conflict,
                                      bool arrives) const {
  Culprit const who = culprit(conflict.agent);
  bool const of_warp = who.cta == self.cta && who.warp == self.warp && !conflict.warpgroup;
  if (conflict.wrote && agents_.sites()[conflict.site].instruction == Instruction::cp_async) {
    if (arrives)
      return "a wait for the mbarrier of the cp.async.mbarrier.arrive that follows it, for a phase that counts "
             "that arrival, would order them";
    return fmt::format(
        "a cp.async.wait_group by {}, and then {}, would order them",
        agent_text(cta, conflict.agent),
        of_warp ? "a warp::sync" : "a cta::sync, or an arrival on an mbarrier and a wait for it");
  }
  if (who.cta != self.cta)
    return "a cluster::sync between them, or an mbarrier_arrive_cluster_release and, after the wait for it, a "
           "fence_acq_rel<Scope::gpu>, would order them";
  if (!of_warp)
    return "a cta::sync between them, or an arrival on an mbarrier and a wait for it, would order them";
  Warp const& warp = cta.cluster().cta(self.cta).warp(self.warp);
  if (warp.crossed[0].line == 0) return "a warp::sync between them would order them";
  return fmt::format(
      "a warp::sync between them, at which both meet, would order them: that at {} has met that at {}",
      place_text(warp.crossed[0]), place_text(warp.crossed[1]));
}

/// The access writes what a copy out of shared memory, or a wgmma, may still read.
void Checker::overwrites_source(Cta& cta, SharedAccess const& access, Conflict const& conflict) {
  std::uint32_t const address = kSharedBase + conflict.offset;
  std::string const place = cta.shared_place(address);
  Site const other = agents_.sites()[conflict.site];
  Culprit who = culprit(conflict.agent);
  std::string const whose = conflict.warpgroup ? fmt::format("warpgroup {}", who.warp / 4)
                                               : agent_text(cta, conflict.agent);
  std::string order =
      conflict.warpgroup
          ? fmt::format(
                "an arrival of its warp {} on an mbarrier after its wgmma_wait_group, and a wait for "
                "it, would order them",
                who.warp)
          : fmt::format(
                "a barrier, or an arrival of {} on an mbarrier, after its bulk_wait_group_read would "
                "order them",
                agent_text(cta, conflict.agent));
  if (conflict.warpgroup) who.lane = -1;
  cta.report(
      FindingKind::async_overwrite, access.where, cta.here(access.lane), cta.buffer_name(address),
      place,
      fmt::format("{} writes {} while a {} that reads it may be in flight that {} issued ({})",
                  ptx_name(access.instruction), place, ptx_name(other.instruction), whose,
                  place_text(other.where)),
      {other.where, who, std::move(order)});
}

void Checker::generic_race(Cta& cta, SharedAccess const& access, Conflict conflict) {
  bool const arrives = conflict.agent >= agents_.causality().threads();
  if (agents_.thread_of(conflict.agent) >= 0) conflict.agent = agents_.thread_of(conflict.agent);
  if (conflict.agent >= agents_.causality().threads())
    return races_with_copy(cta, access, conflict, "");
  Site const other = agents_.sites()[conflict.site];
  if (row_of(other.instruction).proxy == Proxy::async && !conflict.wrote)
    return overwrites_source(cta, access, conflict);
  std::uint32_t const address = kSharedBase + conflict.offset;
  std::string const place = cta.shared_place(address);
  Culprit const self = cta.here(access.lane);
  std::string order = order_of_threads(cta, self, conflict, arrives);
  // A pair of lines is told of once, whichever came first where.
  std::uint16_t const number = site(cta, access);
  bool const reversed = agents_.raced_reversed(number, conflict.site);
  Site const own = agents_.sites()[number];
  std::string meeting = meeting_text(own, other, "Scope::cluster");
  char const* const lacks =
      meeting.empty() ? "nothing orders the two" : "the two do not meet as strong accesses";
  if (!meeting.empty()) order = std::move(meeting);
  auto const race = [&](Site const& one, Culprit const& by, bool writes, Site const& two,
                        std::string const& whose, bool wrote, Opposite opposite) {
    cta.report(FindingKind::data_race, one.where, by, cta.buffer_name(address), place,
               fmt::format("{} {} {}, which {} {} by {} ({}), and {}", ptx_name(one.instruction),
                           writes ? "writes" : "reads", place, whose, wrote ? "wrote" : "read",
                           ptx_name(two.instruction), place_text(two.where), lacks),
               std::move(opposite));
  };
  if (reversed) {
    Culprit const by = culprit(conflict.agent);
    race(other, by, conflict.wrote, own, agents_.text(agent(cta, access.lane), by.cta),
         access.write, {own.where, self, std::move(order)});
  } else {
    race(own, self, access.write, other, agent_text(cta, conflict.agent), conflict.wrote,
         {other.where, culprit(conflict.agent), std::move(order)});
  }
}

/// Of an access that no fence.proxy.async makes visible: which one its thread has all the same.
std::string Checker::fence_beside(Conflict const& conflict) const {
  OfThread const& thread = threads_[static_cast<std::size_t>(conflict.agent)];
  if (conflict.warpgroup || thread.proxy_fence.line == 0)
    return "without a fence.proxy.async after that";
  if (!agents_.causality().fenced_shared(conflict.agent, conflict.agent, conflict.time))
    return fmt::format("after its fence.proxy.async ({}), without one after that",
                       place_text(thread.proxy_fence));
  return fmt::format("and whose fence.proxy.async after that ({}) nothing orders before this",
                     place_text(thread.proxy_fence));
}

/// What would order a copy after a read of bytes that nobody had written: its thread means to read
/// what the copy brings.
std::string Checker::order_of_reader(Cta& owner, InFlight const& operation, int thread) {
  std::string const place = owner.shared_place(operation.mbarrier.address),
                    who = agent_text(owner, thread);
  MbarrierState const* const there = owner.mbarrier_at(operation.mbarrier.address);
  if (there == nullptr)
    return fmt::format(
        "an mbarrier_init of {}, on which it completes, and then a wait for it by {} before the read would order "
        "them",
        place, who);
  MbarrierState const& mbarrier = *there;
  PhaseHistory::Wait const wait = of(owner, mbarrier).phases->wait_of(thread);
  if (wait.where.line == 0) {
    // A lane of its warp that waits there, or has waited: the two can meet.
    int const warp = (thread - owner.thread(0).agent) / 32;
    for (int lane = 0; lane < 32; ++lane) {
      Thread const& other = owner.thread(32 * warp + lane);
      PhaseHistory::Wait const theirs = of(owner, mbarrier).phases->wait_of(other.agent);
      bool const waits = other.mbarrier == &mbarrier;
      if (!waits && theirs.where.line == 0) continue;
      return fmt::format(
          "a warp::sync after the wait for {}, on which it completes, by {} ({}) would order them",
          place, agent_text(owner, other.agent),
          place_text(waits ? other.mbarrier_where : theirs.where));
    }
    return fmt::format(
        "a wait for {}, on which it completes, by {} before the read would order them", place, who);
  }
  if (wait.phase >= 0 && !wait.brings)
    return fmt::format(
        "an expect_tx of its bytes in phase {} of {}, for which {} has waited ({}) and which was complete without "
        "any bytes, would order them",
        wait.phase, place, who, place_text(wait.where));
  return fmt::format(
      "a wait for phase {} of {}, of parity {}, on which it completes, by {} before the read would order them",
      mbarrier.phase, place, mbarrier.phase % 2, who);
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
    bool const group = operation.instruction == Instruction::wgmma_mma_async;
    return races_with_copy(
        cta, {operation.instruction, address, 1, write, operation.where, cta.current_thread().lane},
        conflict, group ? " by every thread of the warpgroup" : " by the thread that issues it");
  }
  Culprit const who = culprit(conflict.agent);
  std::string const whose =
      conflict.warpgroup ? fmt::format("warp {}", who.warp) : agent_text(cta, conflict.agent);
  char const* const barrier = who.cta == self.cta ? "a barrier" : "a cluster::sync";
  Opposite opposite{other.where, {who.cta, who.warp, conflict.warpgroup ? -1 : who.lane}, ""};
  if (conflict.unfenced) {
    bool const group = operation.instruction == Instruction::wgmma_mma_async;
    opposite.order =
        conflict.agent == cta.current_thread().agent && !group
            ? "a fence_proxy_async_shared between the two would order them"
            : fmt::format(
                  "a fence_proxy_async_shared by every thread that {} it, after that, or by {} before the {}, would order them",
                  conflict.wrote ? "writes" : "reads",
                  group ? "every thread of the warpgroup"
                        : agent_text(cta, cta.current_thread().agent),
                  name);
    cta.report(FindingKind::proxy_race, operation.where, self, cta.buffer_name(address), place,
               fmt::format("{} {} {}, which {} {} by {} ({}) {}", name, verb, place, whose,
                           conflict.wrote ? "wrote" : "read", other_name, place_text(other.where),
                           fence_beside(conflict)),
               std::move(opposite));
    return;
  }
  if (conflict.wrote) {
    opposite.order = fmt::format(
        "{} after the write, and then {} or an arrival on an mbarrier and a wait for it, would order them",
        other.instruction == Instruction::cp_async
            ? "a cp.async.wait_group and a fence_proxy_async_shared"
            : "a fence_proxy_async_shared",
        barrier);
    cta.report(FindingKind::data_race, operation.where, self, cta.buffer_name(address), place,
               fmt::format("{} {} {}, which {} wrote by {} ({}), and nothing orders the two", name,
                           verb, place, whose, other_name, place_text(other.where)),
               std::move(opposite));
    return;
  }
  bool const reads_too_early = !conflict.warpgroup && operation.mbarrier.bytes != 0 &&
                               operation.mbarrier.cta == who.cta &&
                               (*of(cta).state.at(address) & kWritten) == 0;
  opposite.order =
      conflict.warpgroup
          ? fmt::format(
                "an arrival of {} on an mbarrier after its wgmma_wait_group, and a wait for it, would order them",
                whose)
      : reads_too_early
          ? order_of_reader(cta.cluster().cta(operation.mbarrier.cta), operation, conflict.agent)
          : fmt::format(
                "an arrival on an mbarrier after the read, or {}, and a wait for it would order them",
                barrier);
  cta.report(FindingKind::async_overwrite, operation.where, self, cta.buffer_name(address), place,
             fmt::format("{} writes {}, which {} reads by {} ({}), and nothing orders that before",
                         name, place, whose, other_name, place_text(other.where)),
             std::move(opposite));
}

}  // namespace tegula::sim
