#include "machine/cluster.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "isa/combine.hpp"
#include "isa/perform.hpp"
#include "isa/tma_reduction.hpp"
#include "tegula/io/text.hpp"
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

/// A value on its way to be combined with what is there.
class AsyncReduction final : public InFlight {
 public:
  AsyncReduction(Cta const& issuer, SourceLocation where, SharedRange to, AtomicOp op,
                 AtomicType type, std::uint64_t value)
      : InFlight(Instruction::red_async, issuer, where), op_(op), type_(type), value_(value) {
    writes = {to};
    combines = true;
  }
  void land(Cluster& cluster) override {
    SharedRange const& to = writes[0];
    void* const there = cluster.cta(to.cta).shared().at(to.address);
    store_word(there, type_, combined(op_, type_, load_word(there, type_), {value_}));
  }

 private:
  AtomicOp op_;
  AtomicType type_;
  std::uint64_t value_;
};

/// A reduction of elements of a type.
struct ElementReduction {
  TmaReduce op;
  DType type;
};

/// Bytes on their way from one CTA's shared memory to another's, to be written there or to be
/// combined with what is there.
class PeerCopy final : public InFlight {
 public:
  PeerCopy(Cta const& issuer, SourceLocation where, SharedRange to, SharedRange from,
           std::optional<ElementReduction> reduction)
      : InFlight(reduction ? Instruction::cp_reduce_async_bulk : Instruction::cp_async_bulk, issuer,
                 where),
        data_(from.bytes),
        reduction_(reduction) {
    writes = {to};
    reads = {from};
    combines = reduction.has_value();
    cost = {.engine = Cost::Engine::store, .bytes = static_cast<double>(from.bytes), .place = from};
    if (!combines) brings = Brought{.swizzle = std::nullopt, .fetches = true};
  }
  void read(Cluster& cluster) override {
    std::memcpy(data_.data(), cluster.cta(reads[0].cta).shared().at(reads[0].address),
                data_.size());
  }
  void land(Cluster& cluster) override {
    unsigned char* const into = cluster.cta(writes[0].cta).shared().at(writes[0].address);
    if (reduction_) {
      auto const [op, type] = *reduction_;
      reduce(op, type, into, data_.data(), data_.size() * 8 / static_cast<std::size_t>(bits(type)));
    } else {
      std::memcpy(into, data_.data(), data_.size());
    }
  }

 private:
  std::vector<unsigned char> data_;
  std::optional<ElementReduction> reduction_;
};

/// Where an operation of the asynchronous proxy writes, and the mbarrier there that it
/// completes on.
struct Destination {
  Cta* peer = nullptr;  ///< null, after a finding, where there is none
  std::uint32_t address = 0;
  std::uint32_t mbarrier = 0;
};

Destination destination(Cta& cta, Instruction instruction, std::uint32_t address,
                        std::uint32_t mbarrier, SourceLocation where) {
  Cta* const peer = cta.target(instruction, address, where);
  Cta* const barriers = cta.target(instruction, mbarrier, where);
  if (peer == nullptr || barriers == nullptr) return {};
  if (peer != barriers) {
    cta.fail(
        FindingKind::invalid_operand, where, cta.here(),
        fmt::format(
            "{} to CTA {} of the cluster completes on an mbarrier of CTA {}: it must be the same "
            "one",
            ptx_name(instruction), peer->rank(), barriers->rank()));
  }
  return {peer, address, mbarrier};
}

void check_aligned(Cta const& cta, Cta& of, Instruction instruction, std::uint32_t address,
                   int bytes, std::uint32_t alignment, SourceLocation where) {
  if (address % alignment == 0) return;
  of.report(
      FindingKind::misaligned, where, cta.here(), of.buffer_name(address), of.shared_place(address),
      fmt::format("{} of {} at shared address {:#x}, {} past a multiple of {}: {}",
                  ptx_name(instruction), io::counted(bytes, "byte"), address,
                  io::counted(address % alignment, "byte"), alignment, of.shared_place(address)));
}

void arrive_at_cluster(Cta& cta, bool relaxed, SourceLocation where) {
  if (!cta.meet(Instruction::cluster_arrive, 0, kFullWarp, where)) return;
  Warp& own = cta.current_warp();
  if (own.cluster_arrivals != own.cluster_waits) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(-1),
             fmt::format(
                 "barrier.cluster.arrive by a warp that has arrived ({}) and has not waited since",
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
    cta.fail(
        FindingKind::invalid_operand, where, cta.here(),
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
  if (peer != nullptr && peer->shared_access(Instruction::ld_shared_cluster, address, bytes, false,
                                             where, cta.current_thread().lane)) {
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
  if (peer != nullptr && peer->shared_access(Instruction::st_shared_cluster, address, bytes, true,
                                             where, cta.current_thread().lane)) {
    cta.cluster().progressed();
    std::memcpy(peer->shared().at(address), value, static_cast<std::size_t>(bytes));
  }
}

void st_async(std::uint32_t address, void const* value, int bytes, std::uint32_t mbarrier,
              SourceLocation where) {
  Cta& cta = current_cta();
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("st.async of {}: it stores 4, 8 or 16", io::counted(bytes, "byte")));
  }
  Destination const to = destination(cta, Instruction::st_async, address, mbarrier, where);
  cta.note(Instruction::st_async, where, {bytes, to.address});
  if (to.peer == nullptr) return;
  std::uint32_t const n = static_cast<std::uint32_t>(bytes);
  check_aligned(cta, *to.peer, Instruction::st_async, to.address, bytes, n, where);
  auto store =
      std::make_unique<AsyncStore>(cta, where, SharedRange{to.peer->rank(), to.address, n}, value);
  store->completes_on(to.peer->rank(), to.mbarrier, n);
  cta.in_flight().add(std::move(store));
}

void red_async(AtomicOp op, AtomicType type, std::uint32_t address, std::uint64_t value,
               std::uint32_t mbarrier, SourceLocation where) {
  Cta& cta = current_cta();
  constexpr Instruction instruction = Instruction::red_async;
  int const bytes = bytes_of(type);
  Destination const to = destination(cta, instruction, address, mbarrier, where);
  cta.note(instruction, where, {bytes, to.address});
  if (to.peer == nullptr) return;
  std::uint32_t const n = static_cast<std::uint32_t>(bytes);
  check_aligned(cta, *to.peer, instruction, to.address, bytes, n, where);
  auto reduction = std::make_unique<AsyncReduction>(
      cta, where, SharedRange{to.peer->rank(), to.address, n}, op, type, value);
  reduction->completes_on(to.peer->rank(), to.mbarrier, n);
  cta.in_flight().add(std::move(reduction));
}

namespace {

/// A copy to a peer's shared memory, or a reduction there.
void copy_to_peer(std::uint32_t dst, std::uint32_t src, int bytes, std::uint32_t mbarrier,
                  std::optional<ElementReduction> reduction, SourceLocation where) {
  constexpr std::uint32_t alignment = 16;
  Instruction const instruction =
      reduction ? Instruction::cp_reduce_async_bulk : Instruction::cp_async_bulk;
  Cta& cta = current_cta();
  auto const n = static_cast<std::uint32_t>(bytes);
  if (bytes <= 0 || n % alignment != 0) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} of {}: it moves a multiple of {}", ptx_name(instruction),
                         io::counted(bytes, "byte"), alignment));
  }
  Cta* const from = cta.target(instruction, src, where);
  Destination const to = destination(cta, instruction, dst, mbarrier, where);
  if (cta.counting())
    cta.observers().worked(instruction, where,
                           {.instructions = 1, .shared_bytes = 2 * std::int64_t{bytes}});
  if (from == nullptr || to.peer == nullptr) return;
  if (from != &cta) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} from the shared memory of CTA {} of the cluster: it reads its own",
                         ptx_name(instruction), from->rank()));
  }
  check_aligned(cta, cta, instruction, src, bytes, alignment, where);
  check_aligned(cta, *to.peer, instruction, to.address, bytes, alignment, where);
  auto copy = std::make_unique<PeerCopy>(cta, where, SharedRange{to.peer->rank(), to.address, n},
                                         SharedRange{cta.rank(), src, n}, reduction);
  copy->completes_on(to.peer->rank(), to.mbarrier, n);
  cta.in_flight().add(std::move(copy));
}

}  // namespace

void bulk_copy_cluster(std::uint32_t dst, std::uint32_t src, int bytes, std::uint32_t mbarrier,
                       SourceLocation where) {
  copy_to_peer(dst, src, bytes, mbarrier, std::nullopt, where);
}

void bulk_reduce_cluster(std::uint32_t dst, std::uint32_t src, int bytes, TmaReduce op, DType type,
                         std::uint32_t mbarrier, SourceLocation where) {
  copy_to_peer(dst, src, bytes, mbarrier, ElementReduction{op, type}, where);
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
  if (cta.counting())
    cta.cluster().observers().warp_waits(cta, own, true, Instruction::cluster_wait, where);
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
