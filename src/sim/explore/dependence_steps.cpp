// What each kind of step comes after, and what it leaves to those after it.

#include <algorithm>

#include "explore/dependence.hpp"
#include "values/mix.hpp"

namespace tegula::sim {

/// A cluster starts in a place: its CTAs' barriers, registers and exits are as new.
void Dependence::begin_cluster(int place) {
  int const of_each = shape_.ctas_of_each(), warps = shape_.threads / 32;
  for (int cta = place * of_each; cta < (place + 1) * of_each; ++cta) {
    auto const i = static_cast<std::size_t>(cta);
    exits_[i] = {};
    exits_[i].pending = shape_.threads;
    registers_[i] = {};
    for (int warp = cta * warps; warp < (cta + 1) * warps; ++warp) {
      cluster_arrivals_[static_cast<std::size_t>(warp)] = 0;
      live_lanes_[static_cast<std::size_t>(warp)] = 32;
    }
  }
  Phases& barrier = cluster_barriers_[static_cast<std::size_t>(place)];
  barrier = {};
  barrier.count = barrier.pending = of_each * warps;
  auto const in_place = [&](auto const& object) {
    auto const cta = static_cast<int>(object.first >> 56) - 1;
    return cta >= 0 && cta / of_each == place;
  };
  std::erase_if(mbarriers_, in_place);
  std::erase_if(barriers_, in_place);
}

/// What starts in a place comes after all that was there.
void Dependence::after_cluster(Current& now, int place) {
  auto const threads = static_cast<ProcessId>(shape_.ctas_of_each() * shape_.threads);
  ProcessId const first = static_cast<ProcessId>(place) * threads;
  for (ProcessId lane = first; lane < first + threads; ++lane)
    need(now, *processes_[lane].clock, processes_[lane].hash);
}

/// The barrier of a thread's cluster.
Dependence::Phases& Dependence::cluster_barrier(ProcessId lane) {
  return cluster_barriers_[lane / static_cast<ProcessId>(shape_.threads * shape_.ctas_of_each())];
}

/// What counts for one phase and what counts for the next do not commute; nor do an expectation of
/// bytes and an arrival or a completion, since the phase may end before it.
void Dependence::before_update(Current& now, Phases const& phases, bool expects) {
  for (std::uint32_t const event : expects ? phases.updates : phases.expects) conflict(now, event);
  before_look(now, phases, false);
}

/// Whatever looks at the phase comes after all that completed the one before; it might have come
/// before one of them, unless it is `needed`.
void Dependence::before_look(Current& now, Phases const& phases, bool needed) {
  if (phases.completed == nullptr) return;
  if (needed) {
    need(now, *phases.completed, phases.completed_hash);
    return;
  }
  join(now.process.clock, *phases.completed);
  now.depends += mix(phases.completed_hash);
  for (std::uint32_t const event : phases.previous) {
    if (!has(*now.before, event)) now.conflicts.push_back(event);
  }
}

/// All that counts has been counted, by the given step last. What looked at the phase might have
/// come after that, where nothing that counted needed it.
void Dependence::complete_phase(Phases& phases, std::uint32_t event,
                                std::vector<Reversal>* reversals) {
  auto completed =
      std::make_shared<Clock>(phases.completed != nullptr ? *phases.completed : Clock{});
  std::uint64_t hashes = phases.completed_hash;
  for (auto const* const events : {&phases.updates, &phases.looks}) {
    for (std::uint32_t const e : *events) {
      join(completed, *events_[e].clock);
      hashes += mix(events_[e].hash);
    }
  }
  auto const came_before = [&](std::vector<std::uint32_t> const& events, std::uint32_t look) {
    return std::any_of(events.begin(), events.end(),
                       [&](std::uint32_t e) { return e != look && has(*events_[e].clock, look); });
  };
  if (reversals != nullptr) {
    for (std::uint32_t const look : phases.looks) {
      if (!came_before(phases.updates, look) && !came_before(phases.looks, look))
        reversals->push_back({look, event});
    }
  }
  phases.completed = completed;
  phases.completed_hash = mix(hashes, static_cast<std::uint64_t>(phases.phase));
  completions_.push_back(phases.completed_hash);
  phases.previous = std::move(phases.updates);
  phases.updates.clear();
  phases.expects.clear();
  phases.looks.clear();
  phases.pending = phases.count;
  ++phases.phase;
}

/// A thread has ended: its CTA may have, and nobody waits for its warp at the cluster's barrier.
void Dependence::leave(Current& now, ProcessId lane) {
  Phases& exits = exits_[now.step.object];
  exits.updates.push_back(now.event);
  if (--exits.pending == 0) complete_phase(exits, now.event, now.reversals);
  std::size_t const warp = lane / 32;
  Phases& barrier = cluster_barrier(lane);
  barrier.updates.push_back(now.event);
  if (--live_lanes_[warp] != 0) return;
  --barrier.count;
  if (cluster_arrivals_[warp] == barrier.phase) --barrier.pending;
  if (barrier.pending == 0 && barrier.count != 0) complete_phase(barrier, now.event, nullptr);
}

/// The mbarrier that the step is at, and whether it looks at its phase only.
void Dependence::find_mbarrier(Current& now) {
  Step const& step = now.step;
  Kind const kind = step.kind;
  bool const at_mbarrier = (kind >= Kind::init && kind <= Kind::wait) ||
                           (kind == Kind::land && (step.amount != 0 || step.arrivals != 0));
  if (!at_mbarrier) return;
  now.mbarrier = &mbarriers_[step.object];
  // What comes too early, or too late, finds no mbarrier.
  now.looks =
      kind == Kind::test || kind == Kind::wait || (!now.mbarrier->live && kind != Kind::init);
}

/// Puts before the step what it comes after.
void Dependence::order(Current& now) {
  Step const& step = now.step;
  Kind const kind = step.kind;
  Phases* const mbarrier = now.mbarrier;
  bool const looks = now.looks;
  for (int cta = 0; cta < shape_.ctas; ++cta) {
    if ((step.peers >> cta & 1) != 0)
      before_look(now, exits_[static_cast<std::size_t>(cta)], false);
  }
  switch (kind) {
    case Kind::land:
      for (ProcessId const earlier : step.others)
        need(now, *processes_[earlier].clock, processes_[earlier].hash);
      touch(now);
      if (mbarrier == nullptr) break;
      [[fallthrough]];
    case Kind::arrive:
    case Kind::complete:
    case Kind::test:
    case Kind::wait:
    case Kind::expect:
      if (looks) {
        before_look(now, *mbarrier, kind == Kind::wait && mbarrier->live && mbarrier->phase > 0);
      } else {
        before_update(now, *mbarrier, kind == Kind::expect);
      }
      break;
    case Kind::init:
    case Kind::inval:
      if (looks) {
        before_look(now, *mbarrier, false);
      } else {
        before_update(now, *mbarrier, true);
      }
      break;
    case Kind::barrier:
    case Kind::barrier_sync:
      before_update(now, barriers_[step.object], false);
      break;
    case Kind::cluster_arrive:
    case Kind::cluster_wait:
      before_look(now, cluster_barrier(lanes_of(step.process).first), true);
      break;
    case Kind::registers: {
      Registers const& pool = registers_[step.object];
      for (auto const& [event, given] : pool.given) {
        if (step.amount > 0 && pool.free - given < step.amount)
          need(now, *events_[event].clock, events_[event].hash);
      }
      break;
    }
    case Kind::wait_for:
      for (ProcessId const other : step.others)
        need(now, *processes_[other].clock, processes_[other].hash);
      break;
    case Kind::issue:
    case Kind::access:
    case Kind::reread:
      touch(now);
      break;
    case Kind::launch:
      if (std::uint32_t& own = first_launches_[step.object]; own == kNoEvent) {
        own = now.event;
        if (step.object > 0) {
          Event const& before = events_[first_launches_[step.object - 1]];
          need(now, *before.clock, before.hash);
        }
      }
      after_cluster(now, static_cast<int>(step.object));
      touch(now);
      break;
    case Kind::exit:
    case Kind::meet:
      break;
  }
}

/// What the step leaves to those after it: counts, phases, and the clocks of the threads it was of.
void Dependence::take_effect(Current& now) {
  Step const& step = now.step;
  Kind const kind = step.kind;
  Phases* const mbarrier = now.mbarrier;
  bool const looks = now.looks;
  for (int cta = 0; cta < shape_.ctas; ++cta) {
    if ((step.peers >> cta & 1) != 0)
      exits_[static_cast<std::size_t>(cta)].looks.push_back(now.event);
  }
  switch (kind) {
    case Kind::init:
    case Kind::inval:
      if (looks) {
        mbarrier->looks.push_back(now.event);
        break;
      }
      mbarrier->updates.push_back(now.event);
      mbarrier->live = kind == Kind::init;
      mbarrier->count = step.amount;
      complete_phase(*mbarrier, now.event, now.reversals);
      mbarrier->tx = 0;
      mbarrier->phase = 0;
      break;
    case Kind::arrive:
    case Kind::expect:
    case Kind::complete:
    case Kind::land:
      if (mbarrier == nullptr) break;
      if (looks) {
        mbarrier->looks.push_back(now.event);
        break;
      }
      mbarrier->updates.push_back(now.event);
      if (kind == Kind::expect) mbarrier->expects.push_back(now.event);
      mbarrier->tx += kind == Kind::complete || kind == Kind::land ? -step.amount : step.amount;
      // too many: they do not count
      if (kind == Kind::arrive && mbarrier->pending < step.arrivals) break;
      mbarrier->pending -= step.arrivals;
      if (kind != Kind::expect && mbarrier->pending == 0 && mbarrier->tx == 0)
        complete_phase(*mbarrier, now.event, now.reversals);
      break;
    case Kind::test:
    case Kind::wait:
      mbarrier->looks.push_back(now.event);
      break;
    case Kind::barrier:
    case Kind::barrier_sync: {
      Phases& barrier = barriers_[step.object];
      share(step.process);
      barrier.updates.push_back(now.event);
      if (kind == Kind::barrier_sync) barrier.waiting.push_back(step.process);
      barrier.tx += 32;
      if (barrier.tx < step.amount) break;
      barrier.tx = 0;
      complete_phase(barrier, now.event, now.reversals);
      for (ProcessId const warp : barrier.waiting) {
        join(processes_[warp].clock, *barrier.completed);
        processes_[warp].hash = mix(processes_[warp].hash, barrier.completed_hash);
        share(warp);
      }
      barrier.waiting.clear();
      break;
    }
    case Kind::cluster_arrive: {
      share(step.process);
      ProcessId const first = lanes_of(step.process).first;
      Phases& barrier = cluster_barrier(first);
      barrier.updates.push_back(now.event);
      ++cluster_arrivals_[first / 32];
      if (--barrier.pending == 0) complete_phase(barrier, now.event, nullptr);
      break;
    }
    case Kind::registers: {
      share(step.process);
      Registers& pool = registers_[step.object];
      pool.free -= step.amount;
      if (step.amount > 0) pool.taken.push_back(now.event);
      if (step.amount < 0) pool.given.emplace_back(now.event, -step.amount);
      break;
    }
    case Kind::issue:
      for (ProcessId const id : step.others) {
        processes_[id].clock = this->process(step.process).clock;
        processes_[id].hash = mix(this->process(step.process).hash, id);
      }
      share(step.process);
      break;
    case Kind::cluster_wait:
    case Kind::wait_for:
      share(step.process);
      break;
    case Kind::exit:
      leave(now, step.process);
      break;
    case Kind::launch:
      if (step.amount == 0) break;
      begin_cluster(static_cast<int>(step.object));
      for (int i = 0; i < shape_.ctas_of_each() * shape_.threads; ++i) {
        auto const lane = static_cast<ProcessId>(
            static_cast<int>(step.object) * shape_.ctas_of_each() * shape_.threads + i);
        processes_[lane].clock = now.process.clock;
        processes_[lane].hash = mix(now.process.hash, lane);
        processes_[lane].accessed = false;
      }
      break;
    case Kind::access:
    case Kind::reread:
      share(step.process);
      break;
    case Kind::meet:
      break;
  }
}

void Dependence::perform(Step const& step, std::vector<Reversal>* reversals) {
  if (step.kind == Kind::meet) return meet(step);
  for (ProcessId const other : step.others) static_cast<void>(process(other));
  Process& process = this->process(step.process);
  auto const [first, end] = lanes_of(step.process);
  if (first != end) {
    process.clock = processes_[first].clock;
    process.hash = processes_[first].hash;
  }
  Current now{step, steps(), process, process.clock, 0, {}, reversals};
  find_mbarrier(now);
  order(now);
  conclude(now);
  take_effect(now);
}

void Dependence::blocked(Step const& step, std::vector<Reversal>& reversals) {
  Process& process = this->process(step.process);
  auto const [first, end] = lanes_of(step.process);
  Clock const& clock = first != end ? *processes_[first].clock : *process.clock;
  auto const reverse = [&](std::vector<std::uint32_t> const& events) {
    for (std::uint32_t const event : events) {
      if (!has(clock, event)) reversals.push_back({event, steps()});
    }
  };
  if (step.kind == Kind::registers) reverse(registers_[step.object].taken);
  if (step.kind != Kind::wait && step.kind != Kind::test) return;
  // It would have passed before the last phase was complete.
  auto const mbarrier = mbarriers_.find(step.object);
  if (mbarrier != mbarriers_.end() && mbarrier->second.live && mbarrier->second.phase > 0)
    reverse(mbarrier->second.previous);
}

}  // namespace tegula::sim
