#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "machine/cluster.hpp"
#include "values/place.hpp"

/// What the CTAs of a cluster do together: their barrier, and shared memory of one another.
namespace tegula::sim {

namespace {

/// A value on its way to another CTA.
class AsyncStore final : public InFlight {
 public:
  AsyncStore(Cta const& issuer, Where where, SharedRange to, void const* value)
      : InFlight(Instruction::st_async, issuer, where) {
    writes = {to};
    std::memcpy(value_, value, to.bytes);
  }
  void land(Cluster& cluster) override {
    SharedRange const& to = writes[0];
    std::memcpy(cluster.cta(to.cta).shared().at(to.address), value_, to.bytes);
  }

 private:
  unsigned char value_[16];
};

}  // namespace

Cta* Cta::target(Instruction instruction, std::uint32_t& address, Where where) {
  std::uint32_t const tag = address >> kRankShift;
  if (tag == 0) return this;
  address &= kLocalMask;
  int const rank = static_cast<int>(tag) - 1;
  if (rank >= cluster_.ctas()) {
    report(FindingKind::out_of_bounds, where, here(), "", "",
           fmt::format("{} to shared memory of CTA {} of the cluster, which has {}", ptx_name(instruction),
                       rank, cluster_.ctas()));
    return nullptr;
  }
  Cta& cta = cluster_.cta(rank);
  if (cta.exited()) {
    report(FindingKind::exited_cta, where, here(), cta.buffer_name(address), cta.shared_place(address),
           fmt::format(
               "{} to {}, which has exited: a CTA must stay until its peers are done with its shared memory",
               ptx_name(instruction), cta.shared_place(address)));
    return nullptr;
  }
  if (races_ && &cta != current_thread().cta) check_started(cta, instruction, address, where);
  return &cta;
}

/// A thread accesses shared memory of a peer, which must have started: the cluster's barrier says so, or what
/// a thread of the peer has released.
void Cta::check_started(Cta const& peer, Instruction instruction, std::uint32_t address, Where where) {
  Thread& self = current_thread();
  if ((self.started_peers >> peer.rank_ & 1) != 0) return;
  self.started_peers |= 1u << peer.rank_;
  if (self.cta->warp(self.index / 32).cluster_waits > 0) return;
  int const threads = this->threads();
  for (int i = 0; i < threads; ++i) {
    if (cluster_.causality().known(self.agent, peer.rank_ * threads + i, 1)) return;
  }
  report(
      FindingKind::exited_cta, where, here(), peer.buffer_name(address), peer.shared_place(address),
      fmt::format("{} to {}, which may not have started", ptx_name(instruction), peer.shared_place(address)),
      {{}, {peer.rank_, -1, -1}, "a cluster::sync before it would order the two"});
}

std::uint32_t Cta::mapa(std::uint32_t local, int cta_rank, Where where) {
  if (cta_rank < 0 || cta_rank >= cluster_.ctas()) {
    fail(FindingKind::invalid_operand, where, here(),
         fmt::format("mapa to CTA {} of the cluster, which has {}", cta_rank, cluster_.ctas()));
  }
  return (local & kLocalMask) | static_cast<std::uint32_t>(cta_rank + 1) << kRankShift;
}

void Cta::ld_shared_cluster(void* value, std::uint32_t address, int bytes, Where where) {
  std::size_t const n = static_cast<std::size_t>(bytes);
  cluster_.before(at_shared(Visible::Kind::peer_load, address, bytes));
  Cta* const cta = target(Instruction::ld_shared_cluster, address, where);
  note(Instruction::ld_shared_cluster, where, {bytes, address});
  if (cta != nullptr && cta->shared_access(Instruction::ld_shared_cluster, address, bytes, false, where,
                                           current_thread().lane)) {
    cta->note_peer_access(Instruction::ld_shared_cluster, address, where);
    cluster_.watch_read(cta->shared_.at(address), true, where);
    std::memcpy(value, cta->shared_.at(address), n);
  } else {
    std::memset(value, 0xff, n);
  }
}

void Cta::st_shared_cluster(std::uint32_t address, void const* value, int bytes, Where where) {
  cluster_.before(at_shared(Visible::Kind::peer_store, address, bytes));
  Cta* const cta = target(Instruction::st_shared_cluster, address, where);
  note(Instruction::st_shared_cluster, where, {bytes, address});
  if (cta != nullptr && cta->shared_access(Instruction::st_shared_cluster, address, bytes, true, where,
                                           current_thread().lane)) {
    cta->note_peer_access(Instruction::st_shared_cluster, address, where);
    cluster_.progressed();
    std::memcpy(cta->shared_.at(address), value, static_cast<std::size_t>(bytes));
  }
}

void Cta::st_async(std::uint32_t address, void const* value, int bytes, std::uint32_t mbarrier, Where where) {
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    fail(FindingKind::invalid_operand, where, here(),
         fmt::format("st.async of {} bytes: it stores 4, 8 or 16", bytes));
  }
  Cta* const cta = target(Instruction::st_async, address, where);
  Cta* const barriers = target(Instruction::st_async, mbarrier, where);
  note(Instruction::st_async, where, {bytes, address});
  if (cta == nullptr || barriers == nullptr) return;
  if (cta != barriers) {
    fail(FindingKind::invalid_operand, where, here(),
         fmt::format(
             "st.async to CTA {} of the cluster completes on an mbarrier of CTA {}: it must be the same one",
             cta->rank(), barriers->rank()));
  }
  std::uint32_t const n = static_cast<std::uint32_t>(bytes);
  if (address % n != 0) {
    report(FindingKind::misaligned, where, here(), cta->buffer_name(address), cta->shared_place(address),
           fmt::format("st.async of {} bytes at shared address {:#x}, {} bytes past a multiple of {}: {}",
                       bytes, address, address % n, bytes, cta->shared_place(address)));
  }
  auto store = std::make_unique<AsyncStore>(*this, where, SharedRange{cta->rank(), address, n}, value);
  store->completes_on(cta->rank(), mbarrier, n);
  in_flight().add(std::move(store));
}

void note_access(std::vector<PeerAccess>& accesses, PeerAccess const& access) {
  auto const same = [&](PeerAccess const& other) {
    return other.cta == access.cta && other.warp == access.warp && same_place(other.where, access.where);
  };
  auto const found = std::find_if(accesses.begin(), accesses.end(), same);
  if (found != accesses.end()) {
    *found = access;
  } else {
    accesses.push_back(access);
  }
}

/// A thread of a peer has accessed this CTA's shared memory.
void Cta::note_peer_access(Instruction instruction, std::uint32_t address, Where where) {
  Thread const& thread = current_thread();
  if (!check_ || thread.cta == this) return;
  note_access(peer_accesses_, {instruction, where, address, thread.cta->rank_, thread.index / 32, thread.lane,
                               thread.cta->current_warp().cluster_arrivals + 1, -1});
}

/// The CTA has exited. What others did to its shared memory must have come before: a barrier of the cluster
/// that they arrived at after it and this CTA waited for, or a phase of an mbarrier that it waited for,
/// orders it so.
void Cta::check_peers_at_exit() {
  std::int64_t waited = 0;
  for (Warp const& warp : warps_) waited = std::max<std::int64_t>(waited, warp.cluster_waits);
  auto const check = [&](PeerAccess const& access, bool arrival) {
    if (access.barrier_phase <= waited) return;
    std::string const by = access.cta == rank_ ? "" : fmt::format(" by CTA {} of the cluster", access.cta);
    report(FindingKind::exited_cta, access.where, {access.cta, access.warp, access.lane},
           buffer_name(access.address), shared_place(access.address),
           fmt::format("the CTA{} exits, and nothing orders that after the {} {} {}{}",
                       cluster_.ctas() > 1 ? fmt::format(" of rank {}", rank_) : "",
                       ptx_name(access.instruction),
                       arrival                                                ? "on"
                       : access.instruction == Instruction::ld_shared_cluster ? "from"
                                                                              : "to",
                       shared_place(access.address), by),
           {{},
            {rank_, -1, -1},
            fmt::format("a wait of that CTA for {} before it exits would order them",
                        arrival ? "the mbarrier's phase" : "the cluster's barrier")});
  };
  for (PeerAccess const& access : peer_accesses_) check(access, false);
  for (auto const& mbarrier : mbarriers_) {
    for (PeerAccess const& access : mbarrier->accesses) check(access, true);
  }
}

void Cta::cluster_arrive(Where where, bool relaxed) {
  if (!meet(Instruction::cluster_arrive, 0, kFullWarp, where)) return;
  Warp& own = current_warp();
  if (own.cluster_arrivals != own.cluster_waits) {
    fail(FindingKind::invalid_operand, where, here(-1),
         fmt::format("barrier.cluster.arrive by a warp that has arrived ({}) and has not waited since",
                     place_text(own.cluster_where)));
  }
  cluster_.before({Visible::Kind::cluster_arrive});
  own.cluster_where = where;
  cluster_.arrive_at_barrier(own, relaxed);
  release(kFullWarp, where, Instruction::cluster_arrive);
}

void Cta::cluster_wait(Where where) {
  if (!meet(Instruction::cluster_wait, 0, kFullWarp, where)) return;
  Warp& own = current_warp();
  if (own.cluster_arrivals == own.cluster_waits) {
    fail(FindingKind::invalid_operand, where, here(-1),
         "barrier.cluster.wait by a warp that has not arrived since it waited last");
  }
  cluster_.before({Visible::Kind::cluster_wait});
  ++own.cluster_waits;
  if (cluster_.barrier_complete(own)) {
    cluster_.pass_barrier(*this, own, where);
    release(kFullWarp, where, Instruction::cluster_wait);
    return;
  }
  own.waits_at_cluster = true;
  own.cluster_where = where;
  if (count_) cluster_.observers().warp_waits(*this, own, true, Instruction::cluster_wait, where);
  cluster_.block();
}

void Cluster::arrive_at_barrier(Warp& warp, bool relaxed) {
  Cta& cta = *current_->cta;
  if (cta.finding_races()) {
    int const first = current_->agent - current_->lane;
    if (!relaxed) causality_.release(first, kFullWarp, barrier_.arriving);
    // PTX ISA, fence.mbarrier_init: a release for the thread's mbarrier.init before it, and nothing else,
    // that the relaxed arrival completes.
    for (int lane = 0; relaxed && lane < 32; ++lane) {
      Thread const& thread = cta.thread(32 * warp.index + lane);
      causality_.release_relaxed(thread.agent, barrier_.arriving, count_ > 1);
      for (std::size_t i = 0; i < thread.fenced_inits; ++i)
        causality_.tell(barrier_.arriving, thread.inits[i].mbarrier, thread.inits[i].time);
    }
  }
  ++warp.cluster_arrivals;
  --barrier_.pending;
  if (timed_) observers_.cluster_barrier_arrived(cta, warp, relaxed);
  complete_barrier_if_due();
}

void Cluster::pass_barrier(Cta& cta, Warp& warp, Where where) {
  if (timed_) observers_.cluster_barrier_passed(cta, warp, where);
  if (!cta.finding_races()) return;
  causality_.acquire(cta.thread(32 * warp.index).agent, kFullWarp, barrier_.complete);
}

void Cluster::leave_barrier(Warp& warp) {
  --barrier_.live;
  if (warp.cluster_arrivals == barrier_.phase) --barrier_.pending;
  complete_barrier_if_due();
}

void Cluster::complete_barrier_if_due() {
  if (barrier_.pending != 0 || barrier_.live == 0) return;
  ++barrier_.phase;
  barrier_.complete = std::move(barrier_.arriving);
  barrier_.arriving.clear();
  barrier_.pending = barrier_.live;
  if (timed_) observers_.cluster_barrier_completed();
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
  return fmt::format("where {} of {} warps have arrived", barrier_.live - barrier_.pending, barrier_.live);
}

}  // namespace tegula::sim
