#include <fmt/format.h>

#include <algorithm>

#include "checker/checker.hpp"
#include "values/place.hpp"

/// Peers: shared memory of a CTA is touched by others of its cluster after it has started and
/// before it exits.
namespace tegula::sim {

void note_access(std::vector<PeerAccess>& accesses, PeerAccess const& access) {
  auto const same = [&](PeerAccess const& other) {
    return other.cta == access.cta && other.warp == access.warp &&
           same_place(other.where, access.where);
  };
  auto const found = std::find_if(accesses.begin(), accesses.end(), same);
  if (found != accesses.end()) {
    *found = access;
  } else {
    accesses.push_back(access);
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

/// The CTA has exited. What others did to its shared memory must have come before: a barrier of the
/// cluster that they arrived at after it and this CTA waited for, or a phase of an mbarrier that it
/// waited for, orders it so.
void Checker::check_peers_at_exit(Cta& cta) {
  std::int64_t waited = 0;
  for (int warp = 0; warp < cta.threads() / 32; ++warp)
    waited = std::max<std::int64_t>(waited, cta.warp(warp).cluster_waits);
  auto const check = [&](PeerAccess const& access, bool arrival) {
    if (access.barrier_phase <= waited) return;
    std::string const by =
        access.cta == cta.rank() ? "" : fmt::format(" by CTA {} of the cluster", access.cta);
    cta.report(FindingKind::exited_cta, access.where, {access.cta, access.warp, access.lane},
               cta.buffer_name(access.address), cta.shared_place(access.address),
               fmt::format("the CTA{} exits, and nothing orders that after the {} {} {}{}",
                           cta.cluster().ctas() > 1 ? fmt::format(" of rank {}", cta.rank()) : "",
                           ptx_name(access.instruction),
                           arrival                                                ? "on"
                           : access.instruction == Instruction::ld_shared_cluster ? "from"
                                                                                  : "to",
                           cta.shared_place(access.address), by),
               {{},
                {cta.rank(), -1, -1},
                fmt::format("a wait of that CTA for {} before it exits would order them",
                            arrival ? "the mbarrier's phase" : "the cluster's barrier")});
  };
  for (PeerAccess const& access : of(cta).peer_accesses) check(access, false);
  for (auto const& mbarrier : cta.mbarriers()) {
    for (PeerAccess const& access : of(cta, *mbarrier).accesses) check(access, true);
  }
}

void Checker::cta_exited(Cta& cta) {
  check_peers_at_exit(cta);
  of(cta).copies.for_each_lost(
      [&](Copy const& lost, Overwrite const& by) { report_lost(cta, lost, by); });
}

}  // namespace tegula::sim
