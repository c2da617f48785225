#include <fmt/format.h>

#include <bit>
#include <utility>

#include "checker/checker.hpp"
#include "values/place.hpp"

/// What orders accesses: barriers, fences and the synchronisation of warps, as Causality
/// knows them.
namespace tegula::sim {

void Checker::start(Cluster& cluster, GlobalOrder* order) {
  KernelImage const& kernel = *cluster.launch().kernel;
  races_ = cluster.cta(0).finding_races();
  agents_.start(cluster, races_);
  global_races_.start(cluster, order);
  cluster_arriving_.clear();
  cluster_complete_.clear();
  cluster_arriving_waits_.clear();
  cluster_complete_waits_.clear();
  if (races_) wait_order_.start(cluster.ctas(), kernel.threads);
  tests_.clear();
  commits_.clear();
  threads_.resize(static_cast<std::size_t>(cluster.ctas() * kernel.threads));
  for (OfThread& thread : threads_) {
    thread.inits.clear();
    thread.fenced_inits = 0;
    thread.started_peers = 0;
    thread.waited = nullptr;
    thread.tensor.reset();
  }
  while (static_cast<int>(ctas_.size()) < cluster.ctas())
    ctas_.push_back(std::make_unique<OfCta>(agents_.causality(), agents_.sites()));
  for (int rank = 0; rank < cluster.ctas(); ++rank) {
    OfCta& own = of(cluster.cta(rank));
    own.state.reset(kernel.shared_bytes);
    if (races_) own.shadow.reset(kernel.shared_bytes);
    own.copies.reset(kernel.shared_bytes);
    own.tensor.reset();
    own.barriers = {};
    own.waits = {};
    own.mbarriers.clear();
    own.peer_accesses.clear();
    own.register_times.assign(static_cast<std::size_t>((kernel.threads + 127) / 128), 0);
  }
}

void Checker::warp_synchronised(Cta& cta, std::uint32_t lanes) {
  // PTX ISA, bar.warp.sync: "guarantees memory ordering among participating threads".
  agents_.causality().synchronize(agent(cta, 0), lanes);
}

void Checker::warpgroup_met(Cta& cta) { wait_order_.warpgroup_met(cta.current_thread()); }

void Checker::barrier_arrived(Cta& cta, int id) {
  // PTX ISA, bar: bar.sync orders the accesses before it of all participating threads, those that
  // arrive by bar.arrive too, before those that follow; bar.arrive itself waits for nothing.
  if (!races_) return;
  auto const at = static_cast<std::size_t>(id);
  agents_.causality().release(agent(cta, 0), kFullWarp, of(cta).barriers[at]);
  wait_order_.release(cta.current_thread(), of(cta).waits[at]);
}

void Checker::barrier_completed(Cta& cta, int id, std::uint32_t waiting, bool waits) {
  if (!races_) return;
  Causality& causality = agents_.causality();
  Published& arrived = of(cta).barriers[static_cast<std::size_t>(id)];
  Published& waits_of_arrived = of(cta).waits[static_cast<std::size_t>(id)];
  if (waits) {
    causality.acquire(agent(cta, 0), kFullWarp, arrived);
    wait_order_.acquire(cta.current_thread(), waits_of_arrived);
  }
  for (; waiting != 0; waiting &= waiting - 1) {
    Thread const& first = cta.thread(32 * std::countr_zero(waiting));
    causality.acquire(first.agent, kFullWarp, arrived);
    wait_order_.acquire(first, waits_of_arrived);
  }
  arrived.clear();
  waits_of_arrived.clear();
}

void Checker::cluster_barrier_arrived(Cta& cta, Warp const& warp, bool relaxed) {
  if (!races_) return;
  Causality& causality = agents_.causality();
  wait_order_.release(cta.thread(32 * warp.index), cluster_arriving_waits_);
  if (!relaxed) causality.release(agent(cta, 0), kFullWarp, cluster_arriving_);
  // PTX ISA, fence.mbarrier_init: a release for the thread's mbarrier.init before it, and nothing
  // else, that the relaxed arrival completes.
  for (int lane = 0; relaxed && lane < 32; ++lane) {
    Thread const& thread = cta.thread(32 * warp.index + lane);
    OfThread const& own = of(thread);
    causality.release_relaxed(thread.agent, cluster_arriving_, cta.cluster().ctas() > 1);
    for (std::size_t i = 0; i < own.fenced_inits; ++i)
      causality.tell(cluster_arriving_, own.inits[i].mbarrier, own.inits[i].time);
  }
}

void Checker::cluster_barrier_completed() {
  cluster_complete_ = std::move(cluster_arriving_);
  cluster_arriving_.clear();
  cluster_complete_waits_ = std::move(cluster_arriving_waits_);
  cluster_arriving_waits_.clear();
}

void Checker::cluster_barrier_passed(Cta& cta, Warp const& warp) {
  if (!races_) return;
  Thread const& first = cta.thread(32 * warp.index);
  agents_.causality().acquire(first.agent, kFullWarp, cluster_complete_);
  wait_order_.acquire(first, cluster_complete_waits_);
}

void Checker::memory_fenced(Cta& cta, Scope scope, SourceLocation where) {
  agents_.causality().fence_threads(cta.current_thread().agent, scope == Scope::cta);
  if (global_races_.on()) global_races_.fence(scope, where);
}

void Checker::proxy_fenced(Cta& cta, SourceLocation where) {
  agents_.causality().fence_proxy(cta.current_thread().agent);
  of(cta.current_thread()).proxy_fence = where;
}

void Checker::inits_fenced(Cta& cta) {
  // PTX ISA, membar/fence, fence.mbarrier_init: for the mbarrier.init before it of the
  // thread itself.
  Thread const& thread = cta.current_thread();
  OfThread& own = of(thread);
  for (; own.fenced_inits < own.inits.size(); ++own.fenced_inits) {
    OfThread::Init const& init = own.inits[own.fenced_inits];
    agents_.causality().tell(thread.agent, init.mbarrier, init.time);
  }
}

void Checker::grids_waited(Cta& cta) { agents_.wait_for_grids(cta.current_thread().agent); }

/// PTX ISA, setmaxnreg: "all warps in the warpgroup must synchronize explicitly before executing
/// subsequent setmaxnreg instructions".
void Checker::changing_registers(Cta& cta, int warpgroup, bool increase, SourceLocation where) {
  Warpgroup const& group = cta.warpgroup();
  if (!races_ || group.registers_where.line == 0) return;
  Time const before = of(cta).register_times[static_cast<std::size_t>(warpgroup)];
  int const first = cta.current_thread().agent - cta.current_thread().index % 128;
  // One lane's knowledge of another's is enough: lanes of a warp go on from a setmaxnreg together.
  auto const comes_after = [&](int warp, int other) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int of_other = 0; of_other < 32; ++of_other) {
        if (agents_.causality().known(first + 32 * warp + lane, first + 32 * other + of_other,
                                      before))
          return true;
      }
    }
    return false;
  };
  for (int pair = 0; pair < 16; ++pair) {
    if (comes_after(pair / 4, pair % 4)) continue;
    cta.report(
        FindingKind::register_race, where, cta.here(-1), "", "",
        fmt::format("setmaxnreg.{} by a warpgroup whose warps have not synchronised since their "
                    "setmaxnreg.{} ({})",
                    increase ? "inc" : "dec", group.registers_raised ? "inc" : "dec",
                    place_text(group.registers_where)),
        {group.registers_where,
         {-1, -1, -1},
         "a cta::bar_sync of the warpgroup between them would order them"});
    return;
  }
}

void Checker::registers_changed(Cta& cta, int warpgroup) {
  of(cta).register_times[static_cast<std::size_t>(warpgroup)] = agents_.causality().now();
}

}  // namespace tegula::sim
