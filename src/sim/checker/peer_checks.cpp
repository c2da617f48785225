#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "checker/checker.hpp"
#include "values/place.hpp"

/// Peers: shared memory of a CTA is touched by others of its cluster after it has started and
/// before it exits.
namespace tegula::sim {

void note_access(std::vector<PeerAccess>& accesses, PeerAccess access, int lane, Time time) {
  auto const same = [&](PeerAccess const& other) {
    return other.cta == access.cta && other.warp == access.warp && other.agent == access.agent &&
           same_place(other.where, access.where);
  };
  auto const found = std::find_if(accesses.begin(), accesses.end(), same);
  PeerAccess& kept = found != accesses.end() ? *found : accesses.emplace_back(access);
  access.times = kept.times;
  access.times[static_cast<std::size_t>(lane)] = time;
  kept = access;
}

/// The operation is to tell another CTA's mbarrier, and nothing else of that CTA: it must not exit
/// before it has waited for that.
void Checker::note_told(Cluster& cluster, InFlight const& operation) {
  SharedRange const& told = operation.mbarrier;
  if (told.bytes == 0 || told.cta == operation.cta) return;
  if (std::any_of(operation.writes.begin(), operation.writes.end(),
                  [&](SharedRange const& range) { return range.cta == told.cta; }))
    return;
  OfMbarrier& own = of(cluster.cta(told.cta), *cluster.cta(told.cta).mbarrier_at(told.address));
  std::int64_t const phase = cluster.cta(told.cta).mbarrier_at(told.address)->phase;
  note_access(
      own.accesses,
      {operation.instruction, operation.where, told.address, operation.cta, operation.thread / 32,
       operation.thread % 32, std::numeric_limits<std::int64_t>::max(), phase, false, own.agent},
      0, 0);
}

/// Threads of a peer have waited for a copy out of a CTA's shared memory: that CTA must not exit
/// before it has heard of it.
void Checker::note_copied_out(Cluster& cluster, InFlight const& operation) {
  SharedRange const& told = operation.mbarrier;
  if (told.bytes == 0) return;
  for (SharedRange const& range : operation.reads) {
    if (range.cta == told.cta) continue;
    note_access(
        of(cluster.cta(range.cta)).peer_accesses,
        {operation.instruction, operation.where, range.address, operation.cta,
         operation.thread / 32, operation.thread % 32, std::numeric_limits<std::int64_t>::max(), -1,
         false, agents_.mbarrier_agent(told.cta, told.address)},
        0, operation.remembered.landed);
  }
}

/// A thread accesses shared memory of a peer, which must have started: the cluster's barrier says
/// so, or what a thread of the peer has released.
void Checker::peer_reached(Cta& peer, Instruction instruction, std::uint32_t address,
                           SourceLocation where) {
  Thread const& self = peer.current_thread();
  OfThread& own = of(self);
  if ((own.started_peers >> peer.rank() & 1) != 0) return;
  own.started_peers |= 1u << peer.rank();
  if (self.cta->warp(self.index / 32).cluster_waits > 0) return;
  int const threads = peer.threads();
  for (int i = 0; i < threads; ++i) {
    if (agents_.causality().known(self.agent, peer.rank() * threads + i, 1)) return;
  }
  peer.report(FindingKind::exited_cta, where, peer.here(), peer.buffer_name(address),
              peer.shared_place(address),
              fmt::format("{} to {}, which may not have started", ptx_name(instruction),
                          peer.shared_place(address)),
              {{}, {peer.rank(), -1, -1}, "a cluster::sync before it would order the two"});
}

/// Whether a thread of the CTA, which has exited, comes after the access: then so does the exit. A
/// barrier of the cluster that a warp of it has waited for orders the two, whatever it acquires.
bool Checker::comes_before_exit(Cta const& cta, PeerAccess const& access) const {
  std::int64_t waited = 0;
  for (int warp = 0; warp < cta.threads() / 32; ++warp)
    waited = std::max<std::int64_t>(waited, cta.warp(warp).cluster_waits);
  if (access.barrier_phase <= waited) return true;
  if (!races_) return access.mbarrier_phase < 0;  // nobody keeps account of what else orders them
  Causality const& causality = agents_.causality();
  bool noted = false;
  for (int lane = 0; lane < 32; ++lane) {
    Time const time = access.times[static_cast<std::size_t>(lane)];
    if (time == 0) continue;
    noted = true;
    bool known = false;
    for (int i = 0; i < cta.threads() && !known; ++i) {
      int const thread = cta.thread(i).agent;
      known = access.writes ? causality.known(thread, access.agent + lane, time)
                            : causality.seen(thread, access.agent + lane, time);
    }
    if (!known) return false;
  }
  return noted;
}

/// What would order the exit of the CTA after the access.
std::string Checker::order_of_exit(Cta const& cta, PeerAccess const& access) const {
  if (access.mbarrier_phase >= 0)
    return "a wait of that CTA for the mbarrier's phase before it exits would order them";
  if (access.agent < agents_.causality().threads())
    return "a wait of that CTA for the cluster's barrier before it exits would order them";
  SharedRange const mbarrier = agents_.mbarrier_of(access.agent);
  return fmt::format(
      "a cluster::sync after the wait for {}, on which it completes, would order them",
      cta.cluster().cta(mbarrier.cta).shared_place(mbarrier.address));
}

/// The CTA has exited. What others did to its shared memory must have come before: a thread of the
/// CTA has waited for a barrier of the cluster, or for a phase of an mbarrier, that they arrived at
/// after it. So must what counts for a phase of its mbarriers.
void Checker::check_peers_at_exit(Cta& cta) {
  auto const check = [&](PeerAccess const& access) {
    if (comes_before_exit(cta, access)) return;
    bool const arrival = access.mbarrier_phase >= 0;
    bool const from = access.instruction == Instruction::ld_shared_cluster ||
                      access.instruction == Instruction::cp_async_bulk ||
                      access.instruction == Instruction::cp_reduce_async_bulk;
    std::string const by =
        access.cta == cta.rank() ? "" : fmt::format(" by CTA {} of the cluster", access.cta);
    cta.report(FindingKind::exited_cta, access.where, {access.cta, access.warp, access.lane},
               cta.buffer_name(access.address), cta.shared_place(access.address),
               fmt::format("the CTA{} exits, and nothing orders that after the {} {} {}{}",
                           cta.cluster().ctas() > 1 ? fmt::format(" of rank {}", cta.rank()) : "",
                           ptx_name(access.instruction),
                           arrival ? "on"
                           : from  ? "from"
                                   : "to",
                           cta.shared_place(access.address), by),
               {{}, {cta.rank(), -1, -1}, order_of_exit(cta, access)});
  };
  for (PeerAccess const& access : of(cta).peer_accesses) check(access);
  for (auto const& mbarrier : cta.mbarriers()) {
    for (PeerAccess const& access : of(cta, *mbarrier).accesses) check(access);
  }
}

void Checker::cta_exited(Cta& cta) {
  check_peers_at_exit(cta);
  of(cta).copies.for_each_lost(
      [&](Copy const& lost, Overwrite const& by) { report_lost(cta, lost, by); });
}

}  // namespace tegula::sim
