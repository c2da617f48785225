// What threads and operations in flight do, as steps.

#include <algorithm>
#include <bit>

#include "explore/explorer.hpp"
#include "explore/step_objects.hpp"
#include "machine/cluster.hpp"

namespace tegula::sim {

namespace {

using Kind = Visible::Kind;

}  // namespace

/// The number of a cluster's CTA among those of all clusters.
int Explorer::rank(Cluster const& cluster, int cta) const {
  return static_cast<int>(cluster.place()) * processes_.shape().ctas_of_each() + cta;
}
int Explorer::rank(Cta const& cta) const { return rank(cta.cluster(), cta.rank()); }

ProcessId Explorer::self(Thread const& thread) const {
  return static_cast<ProcessId>(rank(*thread.cta) * processes_.shape().threads + thread.index);
}

void Explorer::add_access(Step& step, Visible const& what) const {
  bool const write =
      what.kind == Kind::store || what.kind == Kind::peer_store || what.kind == Kind::atomic;
  std::uint64_t const begin =
      what.cta < 0 ? what.address : shared_key(rank(*cluster_, what.cta), what.address);
  step.bytes.push_back({begin, static_cast<std::uint32_t>(what.amount), write});
}

/// What the thread is about to do, as a step.
Step Explorer::step_of(Visible const& what, Pending& pending) {
  Thread const& thread = cluster_->current();
  ClusterShape const& shape = processes_.shape();
  int const own = rank(*thread.cta), of = what.cta < 0 ? -1 : rank(*cluster_, what.cta);
  ProcessId const warp = shape.warp(own, thread.index / 32);
  Step step;
  step.process = what.group >= 0 ? shape.warpgroup(own, what.group) : self(thread);
  step.choice = true;
  step.object = shared_key(of, what.address);
  step.amount = what.amount;
  step.arrivals = what.arrivals;
  bool const of_memory = what.kind <= Kind::mbarrier_wait || what.kind >= Kind::load;
  if (of_memory && of >= 0 && of != own) step.peers = 1u << of;
  switch (what.kind) {
    case Kind::mbarrier_init:
      step.kind = Step::Kind::init;
      break;
    case Kind::mbarrier_inval:
      step.kind = Step::Kind::inval;
      break;
    case Kind::mbarrier_arrive:
      step.kind = Step::Kind::arrive;
      break;
    case Kind::mbarrier_expect:
      step.kind = Step::Kind::expect;
      break;
    case Kind::mbarrier_complete:
      step.kind = Step::Kind::complete;
      break;
    case Kind::mbarrier_test: {
      step.kind = Step::Kind::test;
      auto const did = did_.find(step.process);
      pending.again = did != did_.end() && did->second.kind == what.kind &&
                      did->second.cta == what.cta && did->second.address == what.address;
      if (pending.again) step.kind = Step::Kind::wait;
      break;
    }
    case Kind::mbarrier_wait:
      step.kind = Step::Kind::wait;
      break;
    case Kind::barrier:
      step.kind = Step::Kind::barrier;
      step.process = warp;
      break;
    case Kind::barrier_sync:
      step.kind = Step::Kind::barrier_sync;
      step.process = warp;
      break;
    case Kind::cluster_arrive:
      step.kind = Step::Kind::cluster_arrive;
      step.process = warp;
      break;
    case Kind::cluster_wait:
      step.kind = Step::Kind::cluster_wait;
      step.process = warp;
      break;
    case Kind::registers:
      step.kind = Step::Kind::registers;
      step.object = static_cast<std::uint64_t>(own);
      break;
    case Kind::wait_group:
    case Kind::wait_group_read:
      step.kind = Step::Kind::wait_for;
      break;
    case Kind::load:
    case Kind::store:
    case Kind::peer_load:
    case Kind::peer_store:
    case Kind::atomic:
    case Kind::reread:
      step.kind = Step::Kind::access;
      if (what.of_warp) step.process = warp;
      pending.again = what.kind == Kind::reread;
      spun_ |= pending.again;
      add_access(step, what);
      break;
    case Kind::launch_request:
      step.kind = Step::Kind::access;  // of what is left of them, when it goes
      break;
  }
  return step;
}

void Explorer::before(Visible const& what) {
  if (!active_) return;
  Thread& thread = cluster_->current();
  bool const plain = what.kind == Kind::load || what.kind == Kind::store;
  // An access to a peer's memory has been seen before, and a rank that does not exist is
  // the machine's.
  if ((plain && what.cta >= 0 && what.cta != thread.cta->rank()) || what.cta >= cluster_->ctas())
    return;
  Pending pending{{}, what, &thread};
  pending.step = step_of(what, pending);
  Step& step = pending.step;
  ProcessId const id = step.process;
  if (!choices_.accesses &&
      (plain || what.kind == Kind::peer_load || what.kind == Kind::peer_store)) {
    if (step.peers != 0) {
      Step look = step;
      look.choice = false;
      look.bytes.clear();
      perform(std::move(look));
    }
    // The rows of one ldmatrix are one step of the warp.
    if (what.of_warp && (steps_.empty() || steps_.back().kind != Step::Kind::access ||
                         steps_.back().process != id)) {
      Step whole = step;
      whole.choice = false;
      whole.bytes.clear();
      perform(std::move(whole));
    }
    dependence_.access(id, step.bytes);
    return;
  }
  if (what.kind == Kind::load || what.kind == Kind::peer_load ||
      (what.kind == Kind::atomic && !what.blind)) {
    void const* const memory =
        what.cta < 0 ? reinterpret_cast<void const*>(static_cast<std::uintptr_t>(what.address))
                     : nullptr;
    auto const did = did_.find(id);
    bool const readable = memory != nullptr ? thread.cta->allocation(memory) != nullptr
                                            : cluster_->cta(what.cta).shared().contains(
                                                  static_cast<std::uint32_t>(what.address),
                                                  static_cast<std::uint32_t>(what.amount));
    if (readable)
      pending.seen = value_at(memory != nullptr ? memory
                                                : cluster_->cta(what.cta).shared().at(
                                                      static_cast<std::uint32_t>(what.address)),
                              what.amount);
    pending.again = readable && did != did_.end() && did->second.kind == what.kind &&
                    did->second.cta == what.cta && did->second.address == what.address &&
                    did->second.before == pending.seen;
    if (pending.again) step.kind = Step::Kind::reread;
  }
  pending_.emplace(id, std::move(pending));
  cluster_->block();
}

void Explorer::land(Flying& flying) {
  InFlight& operation = *flying.operation;
  bool const reads = flying.twice && flying.landed == 0;
  ++flying.landed;
  Step step;
  step.kind = Step::Kind::land;
  step.choice = true;
  step.process = flying.process;
  if (flying.after != flying.process) step.others.push_back(flying.after);
  auto const add = [&](std::vector<SharedRange> const& ranges, bool write) {
    for (SharedRange const& range : ranges) {
      int const of = rank(*flying.cluster, range.cta);
      step.bytes.push_back({shared_key(of, range.address), range.bytes, write});
      if (range.cta != operation.cta) step.peers |= 1u << of;
    }
  };
  auto const add_tensor = [&](std::vector<TensorRange> const& ranges, bool write) {
    for (TensorRange const& range : ranges) {
      for (int group = 0; group < kTensorLaneGroups; ++group) {
        if ((range.groups >> group & 1) != 0)
          step.bytes.push_back({shared_key(rank(*flying.cluster, range.cta),
                                           tensor_cell_address(group, range.column)),
                                4 * static_cast<std::uint32_t>(range.columns), write});
      }
    }
  };
  add_tensor(operation.tensor_reads, false);
  add_tensor(operation.tensor_writes, true);
  if (reads || !flying.twice) add(operation.reads, false);
  if (!reads) {
    add(operation.writes, true);
    if (operation.mbarrier.bytes != 0) {
      step.object =
          shared_key(rank(*flying.cluster, operation.mbarrier.cta), operation.mbarrier.address);
      step.amount = operation.arrives ? 0 : operation.mbarrier.bytes;
      step.arrivals = operation.arrives ? 1 : 0;
    }
    flying.operation = nullptr;
  }
  if (!choices_.accesses) {
    std::vector<Bytes> const bytes = std::move(step.bytes);
    step.bytes.clear();
    if (flying.after != flying.process) dependence_.follow(flying.process, flying.after);
    dependence_.access(flying.process, bytes);
  }
  InFlightQueue& in_flight = flying.cluster->in_flight();  // flying goes with its operation
  perform(std::move(step));
  if (reads) {
    in_flight.read(operation);
  } else {
    in_flight.land(operation);
  }
}

void Explorer::perform(Step step) {
  dependence_.perform(step, &reversals_);
  steps_.push_back(std::move(step));
}

void Explorer::met(Cta const& cta, Warp const& warp, std::uint32_t lanes) {
  if (!active_) return;
  auto const first =
      static_cast<ProcessId>(rank(cta) * processes_.shape().threads + 32 * warp.index);
  if (dependence_.have_met(first, 32, lanes)) return;
  Step step;
  step.kind = Step::Kind::meet;
  step.process = first + static_cast<ProcessId>(std::countr_zero(lanes));
  step.object = first;
  step.amount = 32;
  step.mask = lanes;
  perform(std::move(step));
}

void Explorer::met_warpgroup(Cta const& cta, int first_warp) {
  if (!active_) return;
  auto const first =
      static_cast<ProcessId>(rank(cta) * processes_.shape().threads + 32 * first_warp);
  if (dependence_.have_met(first, 128, 0)) return;
  Step step;
  step.kind = Step::Kind::meet;
  step.process = first;
  step.object = first;
  step.amount = 128;
  perform(std::move(step));
}

void Explorer::issue(InFlight& operation) {
  if (!active_) return;
  if (operation.by_warp()) return;  // it lands at once: an access of the warp
  bool const of_warpgroup = operation.by_warpgroup();
  bool const pipelined =
      operation.is_committed() || operation.instruction == Instruction::tcgen05_commit;
  Thread const& thread = cluster_->current();
  ProcessId const issuer = of_warpgroup
                               ? processes_.shape().warpgroup(rank(*thread.cta), thread.index / 128)
                               : self(thread);
  ProcessId const process = processes_.operation(issuer, issued_[issuer]++);
  operation.remembered.process = process;
  Step step;
  step.kind = Step::Kind::issue;
  step.process = issuer;
  step.others = {process};
  ProcessId after = process;
  if (of_warpgroup && issued_[issuer] > 1)
    after = processes_.operation(issuer, issued_[issuer] - 2);
  // A thread's tcgen05.mma and commits land in their order.
  if (pipelined) {
    auto const [last, first] = pipelines_.try_emplace(issuer, process);
    if (!first) after = std::exchange(last->second, process);
  }
  perform(std::move(step));
  flying_.push_back({cluster_, &operation, process, after,
                     !of_warpgroup && !pipelined && !operation.reads.empty()});
}

void Explorer::retire(InFlight const& operation) {
  for (Flying& flying : flying_) {
    if (flying.operation == &operation) flying.operation = nullptr;
  }
  std::erase_if(flying_, [](Flying const& flying) { return flying.operation == nullptr; });
}

/// The step of a thread that ends. Others can notice it where the CTA has peers.
Step Explorer::exit_of(Thread const& thread) const {
  Step step;
  step.kind = Step::Kind::exit;
  step.process = self(thread);
  step.object = static_cast<std::uint64_t>(rank(*thread.cta));
  step.choice = choices_.accesses && thread.cta->cluster().ctas() > 1;
  return step;
}

void Explorer::before_exit() {
  if (!active_) return;  // then no cluster is known to be the one that runs
  Thread& thread = cluster_->current();
  Step step = exit_of(thread);
  if (!step.choice) return;
  ProcessId const id = step.process;
  pending_.emplace(
      id, Pending{std::move(step), {.kind = Kind::store, .cta = thread.cta->rank()}, &thread});
  cluster_->block();
}

void Explorer::exit(Thread const& thread) {
  Step step = exit_of(thread);
  if (active_ && !step.choice) perform(std::move(step));
}

}  // namespace tegula::sim
