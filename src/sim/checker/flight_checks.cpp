#include <algorithm>
#include <cstdint>
#include <optional>

#include "checker/checker.hpp"

/// Operations in flight: what they may touch when they are issued, and who knows of it when they
/// are over.
namespace tegula::sim {

namespace {

/// Calls f(first byte, bytes) for each piece of global memory that the operation reads or writes.
template <class F> void for_each_global(InFlight const& operation, F&& f) {
  operation.for_each_global([](void* context, unsigned char* first,
                               std::size_t bytes) { (*static_cast<F*>(context))(first, bytes); },
                            &f);
}

}  // namespace

/// Those who issue an operation: a thread, or a warpgroup.
Issuers Checker::issuers_of(Cluster const& cluster, InFlight const& operation) const {
  Thread const& issuer = cluster.current();
  if (!operation.by_warpgroup()) return Issuers(agents_.causality(), issuer.agent, 1);
  return Issuers(agents_.causality(), issuer.agent - issuer.index % 128, 128);
}

/// What the operation does to global memory is its own until somebody waits for it, or the
/// mbarrier's on which it completes. Its ranges of shared memory are held against their state, and
/// against those who accessed them before: what they did must be known to all who issue the
/// operation, and what they wrote through the generic proxy with a fence.proxy.async in between.
void Checker::issuing(Cluster& cluster, InFlight& operation) {
  Remembered& own = operation.remembered;
  if (races_) {
    // PTX ISA, red.async: .relaxed, at the scope of the cluster.
    Strength const strength =
        is_strong(operation.instruction)
            ? Strength{Scope::cluster, static_cast<int>(operation.writes[0].bytes)}
            : Strength{};
    int const rank = meets_in_shared(operation.instruction) ? cluster.current().cta->rank() : 0;
    own.site = agents_.sites().number(operation.instruction, operation.where, strength, rank);
    own.issued = agents_.causality().now();
    own.after_grids = agents_.after_grids(cluster.current().agent);
  }
  if (global_races_.on() && operation.global) {
    GlobalRaces::Pending const pending =
        global_races_.issue(operation.instruction, *operation.global, operation.where);
    own.global_site = pending.site;
    own.global_time = pending.time;
    SharedRange const& mbarrier = operation.mbarrier;
    std::uint32_t const agent =
        operation.groups() != nullptr
            ? GlobalShadow::kNobody
            : static_cast<std::uint32_t>(agents_.mbarrier_agent(mbarrier.cta, mbarrier.address));
    for_each_global(operation, [&](unsigned char* first, std::size_t bytes) {
      global_races_.touch(pending, first, bytes, agent);
    });
  }
  std::optional<Issuers> issuers;  // the same for all ranges, of which a wgmma has hundreds
  auto const check = [&](SharedRange const& range, bool write) {
    Cta& cta = cluster.cta(range.cta);
    // the machine's finding
    if (cta.exited() || !cta.shared().contains(range.address, range.bytes)) return;
    std::uint8_t mask = write ? kNoWrite : static_cast<std::uint8_t>(kNoRead | kWritten);
    std::uint8_t want = write ? 0 : kWritten;
    if (operation.combines) {  // with what is there, beside others that do
      mask = kBeingRead | kMbarrier | kWritten;
      want = kWritten;
      InFlight const* const other = cta.in_flight().writer_of(range.cta, range.address);
      if (other != nullptr && !other->combines) mask |= kInFlight;
    }
    std::uint32_t const at = of(cta).state.first_other(range.address, range.bytes, mask, want);
    if (!write) of(cta).copies.read(range.address - kSharedBase, range.bytes);
    if (at != range.bytes) {
      bool const unwritten =
          operation.combines && (*of(cta).state.at(range.address + at) & mask) == 0;
      shared_findings(cta, {operation.instruction, range.address + at, 1, write && !unwritten,
                            operation.where, cta.current_thread().lane});
      own.in_order = false;
      return;
    }
    if (!races_) return;
    if (!issuers) issuers.emplace(issuers_of(cluster, operation));
    Conflict conflict;
    if (of(cta).shadow.may_access(*issuers, range.address - kSharedBase, range.bytes, own.site,
                                  write, cluster.launch().options->strict.proxies, conflict))
      return;
    async_race(cta, operation, write, conflict);
    own.in_order = false;
  };
  for (SharedRange const& range : operation.writes) check(range, true);
  for (SharedRange const& range : operation.reads) check(range, false);
  tensor_issuing(cluster, operation);
}

void Checker::issued(Cluster& cluster, InFlight& operation) {
  if (races_ && operation.mbarrier.bytes != 0) wait_order_.issued(cluster.current(), operation);
  if (races_ && operation.mbarrier.bytes != 0 && !operation.arrives) {
    Cta& cta = cluster.cta(operation.mbarrier.cta);
    MbarrierState const& mbarrier = *cta.mbarrier_at(operation.mbarrier.address);
    check_visible(cta, mbarrier, operation);
    operation.remembered.phase = mbarrier.phase;
  }
  if (races_ && operation.instruction == Instruction::tcgen05_commit)
    agents_.causality().release_narrow(cluster.current().agent, commits_[&operation]);
  note_told(cluster, operation);
  for (SharedRange const& range : operation.writes) {
    Cta& cta = cluster.cta(range.cta);
    OfCta& own = of(cta);
    own.state.mark(range.address, range.bytes, kInFlight);
    CopyShadow::Id copy = 0;
    if (operation.brings && range.bytes != 0) {
      copy = own.copies.add({.instruction = operation.instruction,
                             .where = operation.where,
                             .cta = operation.cta,
                             .thread = operation.thread,
                             .offset = range.address - kSharedBase,
                             .swizzle = operation.brings->swizzle,
                             .fetches = operation.brings->fetches});
    }
    if (operation.combines) own.copies.read(range.address - kSharedBase, range.bytes);
    bring(cta, copy, range, operation.remembered.in_order,
          {operation.instruction, operation.where, operation.cta, operation.thread});
  }
  for (SharedRange const& range : operation.reads)
    of(cluster.cta(range.cta)).state.add_reader(range.address, range.bytes);
  for (TensorRange const& range : operation.tensor_writes) fly(cluster, range, operation);
  for (TensorRange const& range : operation.tensor_reads) fly(cluster, range, operation);
}

/// The operation is in flight on tensor memory.
void Checker::fly(Cluster& cluster, TensorRange const& range, InFlight const& operation) {
  std::vector<InFlight const*>& flying = of(cluster.cta(range.cta)).tensor.flying;
  if (flying.empty() || flying.back() != &operation) flying.push_back(&operation);
}

void Checker::landed(Cluster& cluster, InFlight const& operation) {
  // Whether somebody has waited for what completes on an mbarrier, the stamps tell.
  std::uint8_t const clear = races_ && operation.groups() == nullptr ? kInFlight : std::uint8_t{0};
  for (SharedRange const& range : operation.writes)
    of(cluster.cta(range.cta)).state.mark(range.address, range.bytes, kWritten, clear);
}

void Checker::reads_retired(Cluster& cluster, InFlight const& operation) {
  bool const group = operation.by_warpgroup();
  int const reader = cluster.cta(operation.cta).thread(operation.thread).agent;
  for (SharedRange const& range : operation.reads) {
    OfCta& own = of(cluster.cta(range.cta));
    own.state.remove_reader(range.address, range.bytes);
    // What a tcgen05.mma has read, those know who have waited for its commit.
    if (races_ && !operation.is_committed())
      own.shadow.has_read(group ? reader - operation.thread % 128 : reader, group,
                          range.address - kSharedBase, range.bytes, operation.remembered.site);
  }
}

void Checker::retired(Cluster& cluster, InFlight const& operation, bool for_nobody) {
  bool const in_group = operation.groups() != nullptr;
  if (!races_ || in_group) {
    for (SharedRange const& range : operation.writes)
      of(cluster.cta(range.cta)).state.mark(range.address, range.bytes, 0, kInFlight);
  }
  if (races_ && (in_group || for_nobody)) stamp_as_own(cluster, operation);
  if (races_ && !in_group && !for_nobody) note_copied_out(cluster, operation);
  if (operation.tensor_writes.empty() && operation.tensor_reads.empty()) return;
  for (auto const* const ranges : {&operation.tensor_writes, &operation.tensor_reads}) {
    for (TensorRange const& range : *ranges)
      std::erase(of(cluster.cta(range.cta)).tensor.flying, &operation);
  }
  std::erase(of(cluster.cta(operation.cta)).tensor.stamped, &operation);
  if (races_ && operation.by_warp())
    stamp_tensor(cluster, operation,
                 cluster.cta(operation.cta).thread(operation.thread / 32 * 32).agent,
                 agents_.causality().now());
}

/// From now on it is as if the thread that issued the operation, which has waited for it, had
/// written its ranges.
void Checker::stamp_as_own(Cluster& cluster, InFlight const& operation) {
  int const agent = cluster.cta(operation.cta).thread(operation.thread).agent;
  for (SharedRange const& range : operation.writes) {
    of(cluster.cta(range.cta))
        .shadow.written(range.address - kSharedBase, range.bytes,
                        {agents_.causality().now(), static_cast<std::uint16_t>(agent),
                         operation.remembered.site});
  }
}

void Checker::waited_for(InFlight const& operation) {
  if (!global_races_.on() || !operation.global) return;
  GlobalRaces::Pending const pending{operation.remembered.global_site,
                                     operation.remembered.global_time};
  for_each_global(operation, [&](unsigned char* first, std::size_t bytes) {
    global_races_.settle(pending, first, bytes);
  });
}

}  // namespace tegula::sim
