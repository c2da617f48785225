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
  if (races_ && &cta != current_thread().cta) observers().peer_reached(cta, instruction, address, where);
  return &cta;
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
  ++warp.cluster_arrivals;
  --barrier_.pending;
  if (observed()) observers_.cluster_barrier_arrived(cta, warp, relaxed);
  complete_barrier_if_due();
}

void Cluster::pass_barrier(Cta& cta, Warp& warp, Where where) {
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
  return fmt::format("where {} of {} warps have arrived", barrier_.live - barrier_.pending, barrier_.live);
}

}  // namespace tegula::sim
