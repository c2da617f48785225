#include "launch/observers.hpp"

#include "machine/cluster.hpp"

/// Who listens to which event.
namespace tegula::sim {

Observers::Observers() : list_(std::make_unique<List>()) {}
Observers::~Observers() = default;

namespace {

void flush(Observers::List& list, Cta& cta, Warp const& warp) {
  list.counting.flush(cta, warp, [&](AccessLog::Record const& record, AccessUse const& use) {
    list.limits.hold(cta, warp, record, use);
  });
}

}  // namespace

void Observers::start(Cluster& cluster) {
  if (cluster.stepped()) list_->explorer->start(cluster);
  list_->time.start(cluster);
  if (cluster.checked()) list_->checker.start(cluster, list_->global_order);
  if (!cluster.cta(0).counting()) return;
  list_->counting.start(cluster);
  list_->limits.start(cluster);
}

void Observers::finish(Cluster& cluster) {
  if (cluster.stepped()) list_->explorer->finish(cluster);
  list_->time.finish();
  if (!cluster.cta(0).counting()) return;
  for (int rank = 0; rank < cluster.ctas(); ++rank) {
    Cta& cta = cluster.cta(rank);
    for (int warp = 0; warp < cta.threads() / 32; ++warp) flush(*list_, cta, cta.warp(warp));
  }
}

// Instructions.

void Observers::executed(Cta& cta, Instruction instruction, SourceLocation where,
                         LaneAccess const& access) {
  if (cta.counting()) list_->counting.executed(cta, instruction, where, access);
  if (list_->time.on()) [[unlikely]]
    list_->time.executed(cta, instruction, where);
}

void Observers::met(Cta& cta, Warp const& warp, std::uint32_t lanes) {
  if (cta.cluster().stepped()) list_->explorer->met(cta, warp, lanes);
  if (list_->time.on()) list_->time.met(cta, warp, lanes);
}

void Observers::warp_executed(Cta& cta, Warp& warp, std::uint32_t lanes, bool whole,
                              Instruction instruction, SourceLocation where) {
  if (cta.counting()) {
    list_->counting.worked(instruction, where, {.instructions = 1});
    if (whole) flush(*list_, cta, warp);
  }
  if (list_->time.on()) [[unlikely]]
    list_->time.warp_executed(cta, warp, lanes, instruction, where);
}

void Observers::warp_waits(Cta& cta, Warp& warp, bool counted, Instruction instruction,
                           SourceLocation where) {
  if (counted) list_->counting.worked(instruction, where, {.instructions = 1});
  flush(*list_, cta, warp);
}

void Observers::warpgroup_met(Cta& cta, int first_warp) {
  if (cta.finding_races()) list_->checker.warpgroup_met(cta);
  if (cta.cluster().stepped()) list_->explorer->met_warpgroup(cta, first_warp);
  if (list_->time.on()) list_->time.warpgroup_met(cta, first_warp);
}

void Observers::warpgroup_executed(Cta& cta, int first_warp, Instruction instruction,
                                   SourceLocation where) {
  if (cta.counting()) {
    list_->counting.worked(instruction, where, {.instructions = 4});
    for (int warp = first_warp; warp < first_warp + 4; ++warp) flush(*list_, cta, cta.warp(warp));
  }
  if (list_->time.on()) list_->time.warpgroup_executed(cta, first_warp, instruction, where);
}

void Observers::matrices_moved(Cta& cta, Warp const& warp, Instruction instruction, int count,
                               SourceLocation where) {
  BankUse const use = list_->counting.matrices_moved(instruction, where, count, warp.operand);
  list_->limits.hold(cta, warp, instruction, count, where, use);
}

void Observers::mma_executed(Cta& cta, Warp const& warp, int multiply_adds, SourceLocation where) {
  if (list_->time.on()) list_->time.mma_executed(cta, warp, multiply_adds, where);
  if (cta.counting())
    list_->counting.worked(Instruction::mma_sync, where, {.fused_multiply_adds = multiply_adds});
}

void Observers::worked(Instruction instruction, SourceLocation where, Work const& work) {
  list_->counting.worked(instruction, where, work);
}

void Observers::special_function(Cta& cta, bool exponential) {
  list_->time.special_function(cta, exponential);
}

// Accesses to memory, and what orders them.

void Observers::shared_accessed(Cta& cta, SharedAccess const& access) {
  list_->checker.shared_accessed(cta, access);
}
void Observers::shared_unpoisoned(Cta& cta, std::uint32_t address, std::uint32_t bytes) {
  list_->checker.shared_unpoisoned(cta, address, bytes);
}
void Observers::shared_discarded(Cta& cta, std::uint32_t address, std::uint32_t bytes,
                                 SourceLocation where) {
  list_->checker.shared_discarded(cta, address, bytes, where);
}
void Observers::matrix_row_accessed(Cta& cta, SharedAccess const& access, MatrixForm form,
                                    int row) {
  list_->checker.matrix_row_accessed(cta, access, form, row);
}
void Observers::global_accessed(Cta& cta, GlobalUse const& use) {
  list_->checker.global_accessed(cta, use);
}
void Observers::global_reached(Cta& cta, GlobalUse const& use) {
  list_->checker.global_reached(cta, use);
}
void Observers::strong_access_performed(Cta& cta, StrongAccess const& access) {
  list_->checker.strong_access_performed(cta, access);
}
void Observers::peer_reached(Cta& peer, Instruction instruction, std::uint32_t address,
                             SourceLocation where) {
  list_->checker.peer_reached(peer, instruction, address, where);
}
bool Observers::laid_out_by(Cta& cta, TmaSwizzle swizzle, std::uint32_t address,
                            Instruction instruction, SourceLocation where, Culprit who) {
  return list_->checker.laid_out_by(cta, swizzle, address, instruction, where, who);
}
std::string Observers::last_change(void const* address) const {
  return list_->checker.last_change(address);
}

void Observers::memory_fenced(Cta& cta, Scope scope, SourceLocation where) {
  list_->checker.memory_fenced(cta, scope, where);
}
void Observers::proxy_fenced(Cta& cta, SourceLocation where) {
  list_->checker.proxy_fenced(cta, where);
}
void Observers::shared_proxy_fenced(Cta& cta, SourceLocation where) {
  list_->checker.shared_proxy_fenced(cta, where);
}
void Observers::inits_fenced(Cta& cta) { list_->checker.inits_fenced(cta); }
void Observers::grids_waited(Cta& cta) { list_->checker.grids_waited(cta); }
void Observers::warp_synchronised(Cta& cta, std::uint32_t lanes) {
  list_->checker.warp_synchronised(cta, lanes);
}
void Observers::changing_registers(Cta& cta, int warpgroup, bool increase, SourceLocation where) {
  list_->checker.changing_registers(cta, warpgroup, increase, where);
}
void Observers::registers_changed(Cta& cta, int warpgroup) {
  list_->checker.registers_changed(cta, warpgroup);
}
void Observers::tensor_fenced(Cta& cta, bool before) { list_->checker.tensor_fenced(cta, before); }
void Observers::tensor_allocated(Cta& cta, int column, int columns) {
  list_->checker.tensor_allocated(cta, column, columns);
}
void Observers::tensor_freed(Cta& cta, int column, int columns, SourceLocation where) {
  list_->checker.tensor_freed(cta, column, columns, where);
}
void Observers::cta_exited(Cta& cta) { list_->checker.cta_exited(cta); }

// Barriers.

void Observers::barrier_arrived(Cta& cta, int id) {
  if (cta.checking()) list_->checker.barrier_arrived(cta, id);
  if (list_->time.on()) list_->time.barrier_arrived(cta, id);
}
void Observers::barrier_completed(Cta& cta, int id, std::uint32_t waiting, bool waits) {
  if (cta.checking()) list_->checker.barrier_completed(cta, id, waiting, waits);
  if (list_->time.on()) list_->time.barrier_completed(cta, id);
}
void Observers::barrier_passed(Cta& cta, int id, Warp const& warp) {
  list_->time.barrier_passed(cta, id, warp);
}
void Observers::cluster_barrier_arrived(Cta& cta, Warp const& warp, bool relaxed) {
  if (cta.checking()) list_->checker.cluster_barrier_arrived(cta, warp, relaxed);
  if (list_->time.on()) list_->time.cluster_barrier_arrived(cta);
}
void Observers::cluster_barrier_completed(Cluster& cluster) {
  if (cluster.checked()) list_->checker.cluster_barrier_completed();
  if (list_->time.on()) list_->time.cluster_barrier_completed();
}
void Observers::cluster_barrier_passed(Cta& cta, Warp const& warp, SourceLocation where) {
  if (list_->time.on()) list_->time.cluster_barrier_passed(cta, warp, where);
  if (cta.checking()) list_->checker.cluster_barrier_passed(cta, warp);
}

// Mbarriers.

void Observers::mbarrier_initialised(Cta& cta, MbarrierState& mbarrier, bool again) {
  if (cta.checking()) list_->checker.mbarrier_initialised(cta, mbarrier, again);
  if (list_->time.on()) list_->time.mbarrier_initialised(cta, mbarrier);
}
void Observers::mbarrier_invalidated(Cta& cta, MbarrierState& mbarrier, SourceLocation where) {
  list_->checker.mbarrier_invalidated(cta, mbarrier, where);
}
void Observers::mbarrier_used(Cta& cta, MbarrierState& mbarrier, Instruction instruction,
                              SourceLocation where) {
  list_->checker.mbarrier_used(cta, mbarrier, instruction, where);
}
void Observers::mbarrier_arrived(Cta& cta, MbarrierState& mbarrier, Instruction instruction,
                                 SourceLocation where, bool relaxed, bool wide) {
  if (cta.checking())
    list_->checker.mbarrier_arrived(cta, mbarrier, instruction, where, relaxed, wide);
  if (list_->time.on()) list_->time.mbarrier_arrived(cta, mbarrier);
}
void Observers::bytes_completed(Cta& cta, MbarrierState& mbarrier, InFlight* operation) {
  if (cta.checking()) list_->checker.bytes_completed(cta, mbarrier, operation);
  if (list_->time.on()) list_->time.bytes_completed(cta, mbarrier, operation);
}
void Observers::copies_arrived(Cta& cta, MbarrierState& mbarrier, InFlight& operation) {
  if (cta.checking()) list_->checker.copies_arrived(cta, mbarrier, operation);
  if (list_->time.on()) list_->time.bytes_completed(cta, mbarrier, &operation);
}
void Observers::phase_completed(Cta& cta, MbarrierState& mbarrier) {
  if (cta.checking()) list_->checker.phase_completed(cta, mbarrier);
  if (list_->time.on()) list_->time.phase_completed(cta, mbarrier);
}
void Observers::phase_passed(Cta& cta, MbarrierState& mbarrier, Thread const& thread,
                             SourceLocation where, bool relaxed) {
  if (list_->time.on()) list_->time.phase_passed(cta, mbarrier, thread, where);
  if (cta.checking()) list_->checker.phase_passed(cta, mbarrier, thread, where, relaxed);
}

// Copies and operations in flight.

void Observers::copy_issuing(Cta& cta, AsyncCopy const& copy) {
  list_->checker.copy_issuing(cta, copy);
}
void Observers::copy_issued(Cta& cta, AsyncCopy& copy) { list_->time.copy_issued(cta, copy); }
void Observers::copy_landed(Cta& cta, AsyncCopy const& copy) {
  list_->checker.copy_landed(cta, copy);
}
void Observers::copy_retired(Cta& cta, AsyncCopy const& copy, Thread const& issuer) {
  list_->checker.copy_retired(cta, copy, issuer);
}

void Observers::issuing(Cluster& cluster, InFlight& operation) {
  list_->checker.issuing(cluster, operation);
}

void Observers::issued(Cluster& cluster, InFlight& operation) {
  if (cluster.checked()) list_->checker.issued(cluster, operation);
  if (list_->time.on()) list_->time.issued(cluster, operation);
  if (cluster.stepped()) list_->explorer->issue(operation);
}

void Observers::landed(Cluster& cluster, InFlight& operation) {
  list_->checker.landed(cluster, operation);
}
void Observers::reads_retired(Cluster& cluster, InFlight& operation) {
  list_->checker.reads_retired(cluster, operation);
}

void Observers::retired(Cluster& cluster, InFlight& operation, bool for_nobody) {
  if (cluster.stepped()) list_->explorer->retire(operation);
  if (cluster.checked()) list_->checker.retired(cluster, operation, for_nobody);
}

void Observers::waited_for(Cluster&, InFlight& operation) { list_->checker.waited_for(operation); }

void Observers::waited(Cta& cta, int first_thread, int threads, double until, char const* what,
                       SourceLocation where) {
  list_->time.waited(cta, first_thread, threads, until, what, where);
}

// Who decides on the order, and who keeps time.

void Observers::before(Visible const& what) { list_->explorer->before(what); }
void Observers::before_exit() { list_->explorer->before_exit(); }
void Observers::exited(Thread const& thread) { list_->explorer->exit(thread); }
bool Observers::choose(Cluster& cluster) { return list_->explorer->choose(cluster); }
bool Observers::decides() const { return list_->explorer->decides(); }
bool Observers::refuses(Cluster const& cluster) const { return list_->explorer->refuses(cluster); }
double Observers::clock(Thread const& thread) const { return list_->time.clock(thread); }

}  // namespace tegula::sim
