#include <fmt/format.h>

#include "machine/cluster.hpp"
#include "tegula/io/text.hpp"
#include "values/place.hpp"

/// The barrier of a cluster, and addresses of shared memory of a peer.
namespace tegula::sim {

Cta* Cta::target(Instruction instruction, std::uint32_t& address, SourceLocation where) {
  std::uint32_t const tag = address >> kRankShift;
  if (tag == 0) return this;
  address &= kLocalMask;
  int const rank = static_cast<int>(tag) - 1;
  if (rank >= cluster_.ctas()) {
    report(FindingKind::out_of_bounds, where, here(), "", "",
           fmt::format("{} to shared memory of CTA {} of the cluster, which has {}",
                       ptx_name(instruction), rank, cluster_.ctas()));
    return nullptr;
  }
  Cta& cta = cluster_.cta(rank);
  if (cta.exited()) {
    report(
        FindingKind::exited_cta, where, here(), cta.buffer_name(address), cta.shared_place(address),
        fmt::format(
            "{} to {}, which has exited: a CTA must stay until its peers are done with its shared memory",
            ptx_name(instruction), cta.shared_place(address)),
        {{}, {rank, -1, -1}, "a cluster::sync before that CTA exits would order the two"});
    return nullptr;
  }
  if (races_ && &cta != current_thread().cta)
    observers().peer_reached(cta, instruction, address, where);
  return &cta;
}

void Cluster::arrive_at_barrier(Warp& warp, bool relaxed) {
  Cta& cta = *current_->cta;
  ++warp.cluster_arrivals;
  --barrier_.pending;
  if (observed()) observers_.cluster_barrier_arrived(cta, warp, relaxed);
  complete_barrier_if_due();
}

void Cluster::pass_barrier(Cta& cta, Warp& warp, SourceLocation where) {
  if (observed()) observers_.cluster_barrier_passed(cta, warp, where);
}

void Cluster::leave_barrier(Warp& warp) {
  --barrier_.live;
  if (warp.cluster_arrivals == barrier_.phase) --barrier_.pending;
  complete_barrier_if_due();
}

void Cluster::complete_barrier_if_due() {
  if (barrier_.pending != 0 || barrier_.live == 0) return;
  ++barrier_.phase;
  barrier_.pending = barrier_.live;
  if (observed()) observers_.cluster_barrier_completed(*this);
  progressed();
  for (int rank = 0; rank < count_; ++rank) {
    Cta& cta = this->cta(rank);
    for (Warp& warp : cta.warps_) {
      if (!warp.waits_at_cluster) continue;
      warp.waits_at_cluster = false;
      pass_barrier(cta, warp, warp.cluster_where);
      cta.set_ready(warp, kFullWarp);
    }
  }
}

std::string Cluster::barrier_text() const {
  return fmt::format("where {} of {} have arrived", barrier_.live - barrier_.pending,
                     io::counted(barrier_.live, "warp"));
}

}  // namespace tegula::sim
