#include "machine/cluster.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <utility>

#include "isa/perform.hpp"
#include "values/place.hpp"

/// What the CTAs of a cluster do together: their barrier, and shared memory of one another.
namespace tegula::sim {

namespace {

/// A value on its way to another CTA.
class AsyncStore final : public InFlight {
 public:
  AsyncStore(Cta const& issuer, SourceLocation where, SharedRange to, void const* value)
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

void arrive_at_cluster(Cta& cta, bool relaxed, SourceLocation where) {
  if (!cta.meet(Instruction::cluster_arrive, 0, kFullWarp, where)) return;
  Warp& own = cta.current_warp();
  if (own.cluster_arrivals != own.cluster_waits) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(-1),
             fmt::format("barrier.cluster.arrive by a warp that has arrived ({}) and has not waited since",
                         place_text(own.cluster_where)));
  }
  cta.cluster().before({Visible::Kind::cluster_arrive});
  own.cluster_where = where;
  cta.cluster().arrive_at_barrier(own, relaxed);
  cta.release(kFullWarp, where, Instruction::cluster_arrive);
}

}  // namespace

int cluster_cta_rank() { return this_cta().rank(); }
int cluster_cta_count() { return this_cta().cluster().ctas(); }
Dim3 cluster_cta_id() { return this_cta().cluster().coordinate(this_cta().rank()); }
Dim3 cluster_dim() { return this_cta().cluster().extents(); }

std::uint32_t mapa(std::uint32_t local, int cta_rank, SourceLocation where) {
  Cta& cta = this_cta();
  if (cta_rank < 0 || cta_rank >= cta.cluster().ctas()) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("mapa to CTA {} of the cluster, which has {}", cta_rank, cta.cluster().ctas()));
  }
  return (local & kLocalMask) | static_cast<std::uint32_t>(cta_rank + 1) << kRankShift;
}

void ld_shared_cluster(void* value, std::uint32_t address, int bytes, SourceLocation where) {
  Cta& cta = current_cta();
  std::size_t const n = static_cast<std::size_t>(bytes);
  cta.cluster().before(cta.at_shared(Visible::Kind::peer_load, address, bytes));
  Cta* const peer = cta.target(Instruction::ld_shared_cluster, address, where);
  cta.note(Instruction::ld_shared_cluster, where, {bytes, address});
  if (peer != nullptr && peer->shared_access(Instruction::ld_shared_cluster, address, bytes, false, where,
                                             cta.current_thread().lane)) {
    cta.cluster().watch_read(peer->shared().at(address), true, where);
    std::memcpy(value, peer->shared().at(address), n);
  } else {
    std::memset(value, 0xff, n);
  }
}

void st_shared_cluster(std::uint32_t address, void const* value, int bytes, SourceLocation where) {
  Cta& cta = current_cta();
  cta.cluster().before(cta.at_shared(Visible::Kind::peer_store, address, bytes));
  Cta* const peer = cta.target(Instruction::st_shared_cluster, address, where);
  cta.note(Instruction::st_shared_cluster, where, {bytes, address});
  if (peer != nullptr && peer->shared_access(Instruction::st_shared_cluster, address, bytes, true, where,
                                             cta.current_thread().lane)) {
    cta.cluster().progressed();
    std::memcpy(peer->shared().at(address), value, static_cast<std::size_t>(bytes));
  }
}

void st_async(std::uint32_t address, void const* value, int bytes, std::uint32_t mbarrier,
              SourceLocation where) {
  Cta& cta = current_cta();
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("st.async of {} bytes: it stores 4, 8 or 16", bytes));
  }
  Cta* const peer = cta.target(Instruction::st_async, address, where);
  Cta* const barriers = cta.target(Instruction::st_async, mbarrier, where);
  cta.note(Instruction::st_async, where, {bytes, address});
  if (peer == nullptr || barriers == nullptr) return;
  if (peer != barriers) {
    cta.fail(
        FindingKind::invalid_operand, where, cta.here(),
        fmt::format(
            "st.async to CTA {} of the cluster completes on an mbarrier of CTA {}: it must be the same one",
            peer->rank(), barriers->rank()));
  }
  std::uint32_t const n = static_cast<std::uint32_t>(bytes);
  if (address % n != 0) {
    cta.report(FindingKind::misaligned, where, cta.here(), peer->buffer_name(address),
               peer->shared_place(address),
               fmt::format("st.async of {} bytes at shared address {:#x}, {} bytes past a multiple of {}: {}",
                           bytes, address, address % n, bytes, peer->shared_place(address)));
  }
  auto store = std::make_unique<AsyncStore>(cta, where, SharedRange{peer->rank(), address, n}, value);
  store->completes_on(peer->rank(), mbarrier, n);
  cta.in_flight().add(std::move(store));
}

namespace {

void wait_for_cluster(Cta& cta, SourceLocation where) {
  if (!cta.meet(Instruction::cluster_wait, 0, kFullWarp, where)) return;
  Warp& own = cta.current_warp();
  if (own.cluster_arrivals == own.cluster_waits) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(-1),
             "barrier.cluster.wait by a warp that has not arrived since it waited last");
  }
  cta.cluster().before({Visible::Kind::cluster_wait});
  ++own.cluster_waits;
  if (cta.cluster().barrier_complete(own)) {
    cta.cluster().pass_barrier(cta, own, where);
    cta.release(kFullWarp, where, Instruction::cluster_wait);
    return;
  }
  own.waits_at_cluster = true;
  own.cluster_where = where;
  if (cta.counting()) cta.cluster().observers().warp_waits(cta, own, true, Instruction::cluster_wait, where);
  cta.cluster().block();
}

}  // namespace

void cluster_arrive(SourceLocation where) {
  perform(Instruction::cluster_arrive, where,
          [=](Cta& cta, Mutation m) { arrive_at_cluster(cta, m == Mutation::weakened, where); });
}
void cluster_arrive_relaxed(SourceLocation where) {
  perform(Instruction::cluster_arrive, where, Mutation::weakened,
          [=](Cta& cta) { arrive_at_cluster(cta, true, where); });
}
void cluster_wait(SourceLocation where) {
  perform(Instruction::cluster_wait, where, [=](Cta& cta) { wait_for_cluster(cta, where); });
}

}  // namespace tegula::sim
