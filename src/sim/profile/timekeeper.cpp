#include "profile/timekeeper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "machine/cluster.hpp"

namespace tegula::sim {

Timekeeper::Charges::Charges() { timed_clusters.fetch_add(1, std::memory_order_relaxed); }
Timekeeper::Charges::~Charges() { timed_clusters.fetch_sub(1, std::memory_order_relaxed); }

void Timekeeper::start(Cluster const& cluster) {
  timeline_.reset();
  charges_.reset();
  gates_.clear();
  traced_ = cluster.timed();
  if (!traced_) return;
  LaunchContext const& launch = cluster.launch();
  std::vector<Dim3> blocks;
  for (int rank = 0; rank < cluster.ctas(); ++rank)
    blocks.push_back(cluster.cta(rank).block_index());
  auto* const role = launch.kernel->role;
  timeline_ = std::make_unique<Timeline>(
      *launch.options->trace, blocks,
      std::int64_t{1} * launch.grid.x * launch.grid.y * launch.grid.z, launch.kernel->threads,
      [&](int warp) {
        return role != nullptr ? std::string(role(warp)) : fmt::format("warp {}", warp);
      });
  charges_ = std::make_unique<Charges>();
}

void Timekeeper::finish() {
  if (timeline_ != nullptr) trace_ = timeline_->finish();
  timeline_.reset();
  charges_.reset();
}

double Timekeeper::clock(Thread const& thread) const {
  return timeline_->clock(thread.cta->rank(), thread.index);
}

void Timekeeper::executed(Cta const& cta, Instruction instruction, SourceLocation where) {
  Thread const& self = cta.current_thread();
  timeline_->execute(self.cta->rank(), self.index, instruction, where);
}

void Timekeeper::met(Cta const& cta, Warp const& warp, std::uint32_t lanes) {
  timeline_->meet(cta.rank(), 32 * warp.index, lanes);
}

void Timekeeper::warp_executed(Cta const& cta, Warp const& warp, std::uint32_t lanes,
                               Instruction instruction, SourceLocation where) {
  for (; lanes != 0; lanes &= lanes - 1)
    timeline_->execute(cta.rank(), 32 * warp.index + std::countr_zero(lanes), instruction, where);
}

void Timekeeper::warpgroup_met(Cta const& cta, int first_warp) {
  timeline_->meet_all(cta.rank(), 32 * first_warp, 128);
}

void Timekeeper::warpgroup_executed(Cta const& cta, int first_warp, Instruction instruction,
                                    SourceLocation where) {
  for (int thread = 32 * first_warp; thread < 32 * first_warp + 128; ++thread)
    timeline_->execute(cta.rank(), thread, instruction, where);
}

void Timekeeper::mma_executed(Cta const& cta, Warp const& warp, int multiply_adds,
                              SourceLocation where) {
  timeline_->mma_sync(cta.rank(), 32 * warp.index, multiply_adds, where);
}

void Timekeeper::special_function(Cta const& cta, bool exponential) {
  Thread const& self = cta.current_thread();
  timeline_->special_function(self.cta->rank(), self.index, exponential);
}

void Timekeeper::pass_warp(TimeGate const& gate, std::int64_t phase, Cta const& cta,
                           Warp const& warp, SourceLocation where) {
  for (int lane = 0; lane < 32; ++lane)
    timeline_->pass(gate, phase, cta.rank(), 32 * warp.index + lane, where);
}

void Timekeeper::barrier_arrived(Cta const& cta, int id) {
  timeline_->barrier(cta.rank(), id).arrive(clock(cta.current_thread()));
}
void Timekeeper::barrier_completed(Cta const& cta, int id) {
  timeline_->barrier(cta.rank(), id).open();
}
void Timekeeper::barrier_passed(Cta const& cta, int id, Warp const& warp) {
  TimeGate const& gate = timeline_->barrier(cta.rank(), id);
  pass_warp(gate, gate.phase() - 1, cta, warp, warp.barrier_where);
}

void Timekeeper::cluster_barrier_arrived(Cta const& cta) {
  timeline_->cluster_barrier().arrive(clock(cta.current_thread()) +
                                      timeline_->timing().cluster_latency);
}
void Timekeeper::cluster_barrier_completed() { timeline_->cluster_barrier().open(); }
void Timekeeper::cluster_barrier_passed(Cta const& cta, Warp const& warp, SourceLocation where) {
  pass_warp(timeline_->cluster_barrier(), warp.cluster_arrivals - 1, cta, warp, where);
}

TimeGate& Timekeeper::gate(Cta const& cta, MbarrierState const& mbarrier) {
  return gates_[{cta.rank(), mbarrier.address}];
}

void Timekeeper::mbarrier_initialised(Cta const& cta, MbarrierState const& mbarrier) {
  gate(cta, mbarrier) = {.name = cta.short_place(mbarrier.address)};
}

void Timekeeper::mbarrier_arrived(Cta const& cta, MbarrierState const& mbarrier) {
  Thread const& by = cta.current_thread();
  double const way = by.cta != &cta ? timeline_->timing().cluster_latency : 0;
  gate(cta, mbarrier).arrive(clock(by) + way);
}

void Timekeeper::bytes_completed(Cta const& cta, MbarrierState const& mbarrier,
                                 InFlight const* operation) {
  gate(cta, mbarrier)
      .arrive(operation != nullptr ? operation->time.landed
                                   : timeline_->clock(cta.rank(), cta.thread_index()));
}

void Timekeeper::phase_completed(Cta const& cta, MbarrierState const& mbarrier) {
  timeline_->complete_phase(cta.rank(), mbarrier.address, gate(cta, mbarrier));
}

void Timekeeper::phase_passed(Cta const& cta, MbarrierState const& mbarrier, Thread const& thread,
                              SourceLocation where) {
  timeline_->pass(gate(cta, mbarrier), mbarrier.phase - 1, cta.rank(), thread.index, where);
}

void Timekeeper::copy_issued(Cta const& cta, AsyncCopy& copy) {
  copy.time = timeline_->copy(cta.rank(), cta.thread_index(), copy.source_bytes, copy.where);
}

void Timekeeper::issued(Cluster const& cluster, InFlight& operation) {
  Cost const& cost = operation.cost;
  auto const name = [&] { return cluster.cta(cost.place.cta).short_place(cost.place.address); };
  int const cta = operation.cta;
  int const thread = operation.thread;
  switch (cost.engine) {
    case Cost::Engine::peer: {
      double const issued = timeline_->clock(cta, thread);
      operation.time = {issued, issued + timeline_->timing().cluster_latency};
      return;
    }
    case Cost::Engine::load: {
      double const landed = timeline_->load(cta, thread, cost.place.cta, cost.bytes, cost.again,
                                            name(), operation.where);
      operation.time = {landed, landed};
      return;
    }
    case Cost::Engine::store:
      operation.time = timeline_->store(cta, thread, cost.bytes, name(), operation.where);
      return;
    case Cost::Engine::tensor: {
      bool const group = operation.by_warpgroup();
      double const end = timeline_->tensor(
          cta, group ? thread / 128 * 128 : thread, group ? 128 : 1, group ? "wgmma" : "mma",
          cost.multiply_adds, cost.bytes, cost.accumulates, operation.where);
      operation.time = {end, end};
      return;
    }
    case Cost::Engine::tensor_memory: {
      double const end = timeline_->tensor_memory(cta, thread, cost.bytes, operation.where);
      operation.time = {end, end};
      return;
    }
    case Cost::Engine::commit: {
      double end = timeline_->clock(cta, thread);
      for (InFlight const* const covered : operation.covers)
        end = std::max(end, covered->time.landed);
      operation.time = {end, end};
      return;
    }
  }
}

void Timekeeper::waited(Cta const& cta, int first_thread, int threads, double until,
                        char const* what, SourceLocation where) {
  for (int thread = first_thread; thread < first_thread + threads; ++thread)
    timeline_->wait_until(until, cta.rank(), thread, what, where);
}

}  // namespace tegula::sim
