#include "explore/dependence.hpp"

#include <algorithm>
#include <bit>

#include "values/mix.hpp"

namespace tegula::sim {

namespace {

constexpr std::uint32_t kNoEvent = ~0u;
constexpr std::uint64_t kPageBytes = 1024;

}  // namespace

Dependence::Dependence(ClusterShape const& shape) : shape_(shape), processes_(shape.processes()) {
  auto const ctas = static_cast<std::size_t>(shape.ctas);
  std::size_t const warps = ctas * static_cast<std::size_t>(shape.threads / 32);
  auto const start = std::make_shared<Clock>(shape.processes());
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    processes_[i].clock = start;
    processes_[i].hash = mix(i + 1);
  }
  cluster_arrivals_.resize(warps);
  live_lanes_.resize(warps);
  cluster_barriers_.resize(static_cast<std::size_t>(shape.clusters));
  first_launches_.assign(static_cast<std::size_t>(shape.clusters), kNoEvent);
  exits_.resize(ctas);
  registers_.resize(ctas);
  for (int place = 0; place < shape.clusters; ++place) begin_cluster(place);
}

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

Dependence::Process& Dependence::process(ProcessId id) {
  if (id >= processes_.size()) processes_.resize(id + 1);
  return processes_[id];
}

/// A process's clock, to be written: no longer another one's.
Clock& Dependence::own(Process& process) {
  if (process.clock.use_count() > 1) process.clock = std::make_shared<Clock>(*process.clock);
  return *process.clock;
}

void Dependence::join(std::shared_ptr<Clock>& into, Clock const& clock) {
  if (into.get() == &clock) return;
  std::size_t const common = std::min(into->size(), clock.size());
  bool more = clock.size() > common;
  for (std::size_t i = 0; i < common && !more; ++i) more = clock[i] > (*into)[i];
  if (!more) return;
  if (into.use_count() > 1) into = std::make_shared<Clock>(*into);
  if (into->size() < clock.size()) into->resize(clock.size());
  for (std::size_t i = 0; i < clock.size(); ++i) (*into)[i] = std::max((*into)[i], clock[i]);
}

/// The threads that a warp or warpgroup consists of, as the first and the one after the last; of a
/// thread and an operation in flight, none.
std::pair<ProcessId, ProcessId> Dependence::lanes_of(ProcessId id) const {
  auto const threads = static_cast<ProcessId>(shape_.threads);
  ProcessId const all = static_cast<ProcessId>(shape_.ctas) * threads;
  if (id < all || id >= shape_.place(0)) return {0, 0};
  if (id < all + all / 32) return {32 * (id - all), 32 * (id - all) + 32};
  auto const groups = static_cast<ProcessId>(shape_.groups());
  ProcessId const group = id - all - all / 32;
  ProcessId const first = group / groups * threads + group % groups * 128;
  return {first, std::min(first + 128, (group / groups + 1) * threads)};
}

/// The threads of a warp, or warpgroup, come after what it did as one.
void Dependence::share(ProcessId from) {
  auto const [first, end] = lanes_of(from);
  for (ProcessId lane = first; lane < end; ++lane) {
    processes_[lane].clock = processes_[from].clock;
    processes_[lane].hash = mix(processes_[from].hash, lane);
  }
}

bool Dependence::have_met(ProcessId first, int count, std::uint32_t mask) const {
  Clock const* shared = nullptr;
  for (int i = 0; i < count; ++i) {
    if (count == 32 && (mask >> i & 1) == 0) continue;
    Process const& lane = processes_[first + static_cast<ProcessId>(i)];
    if (lane.accessed || (shared != nullptr && lane.clock.get() != shared)) return false;
    shared = lane.clock.get();
  }
  return true;
}

void Dependence::meet(Step const& step) {
  auto const first = static_cast<ProcessId>(step.object);
  std::vector<ProcessId> lanes;
  for (ProcessId i = 0; i < static_cast<ProcessId>(step.amount); ++i) {
    if (step.amount != 32 || (step.mask >> i & 1) != 0) lanes.push_back(first + i);
  }
  Process& leader = processes_[lanes.front()];
  std::uint64_t hashes = 0;
  for (ProcessId const id : lanes) {
    Process& lane = processes_[id];
    if (lane.accessed && &lane != &leader) {
      own(lane)[id] = ++lane.index;
      lane.events.push_back(kNoEvent);
    }
    lane.accessed = false;
    hashes += lane.hash;
    join(leader.clock, *lane.clock);
  }
  own(leader)[lanes.front()] = ++leader.index;
  leader.events.push_back(steps());
  std::uint64_t const hash = mix(hashes, 0x6d656574);
  events_.push_back({lanes.front(), leader.index, leader.clock, hash});
  for (ProcessId const id : lanes) {
    processes_[id].clock = leader.clock;
    processes_[id].hash = mix(hash, id);
  }
}

/// The step could not have come before these.
void Dependence::need(Current& now, Clock const& clock, std::uint64_t hash) {
  join(now.process.clock, clock);
  join(now.before, clock);
  now.depends += mix(hash);
}

/// The step comes after this one, and might have come before.
void Dependence::conflict(Current& now, std::uint32_t event) {
  join(now.process.clock, *events_[event].clock);
  now.depends += mix(events_[event].hash);
  now.conflicts.push_back(event);
}

void Dependence::conflict(Current& now, Epoch const& epoch) {
  if (epoch.index == 0 || epoch.process == now.step.process) return;
  if (epoch.plain != 0) {
    unordered_ |= !has(*now.process.clock, epoch.process, epoch.index);
    return;
  }
  std::uint32_t const event = processes_[epoch.process].events[epoch.index - 1];
  if (std::find(now.conflicts.begin(), now.conflicts.end(), event) == now.conflicts.end())
    conflict(now, event);
}

/// Of the steps that the current one conflicts with, those with nothing in between can change
/// places with it.
void Dependence::reverse(Current& now) const {
  if (now.reversals == nullptr) return;
  for (std::uint32_t const first : now.conflicts) {
    if (has(*now.before, first)) continue;
    bool const direct = std::none_of(
        now.conflicts.begin(), now.conflicts.end(),
        [&](std::uint32_t other) { return other != first && has(*events_[other].clock, first); });
    if (direct) now.reversals->push_back({first, now.event});
  }
}

void Dependence::conclude(Current& now) {
  reverse(now);
  Process& process = now.process;
  ProcessId const id = now.step.process;
  Clock& clock = own(process);
  if (clock.size() <= id) clock.resize(id + 1);
  clock[id] = ++process.index;
  process.accessed = false;
  process.events.push_back(now.event);
  process.hash =
      mix(process.hash + mix(static_cast<std::uint64_t>(now.step.kind) + 1, id), now.depends);
  events_.push_back({id, process.index, process.clock, process.hash});
}

template <class F> void Dependence::for_each_cell(Bytes const& bytes, F&& f) {
  std::uint64_t const end = bytes.begin + bytes.count;
  for (std::uint64_t at = bytes.begin; at < end;) {
    auto& page = pages_[at / kPageBytes];
    if (page == nullptr) page = std::make_unique<Page>();
    std::uint64_t const stop = std::min(end, (at / kPageBytes + 1) * kPageBytes);
    for (; at < stop; ++at) f((*page)[at % kPageBytes]);
  }
}

/// The reads since the last write of which none happened before another.
void Dependence::add_read(Cell& cell, Epoch self, Clock const& clock) {
  auto const past = [&](Epoch const& epoch) {
    return epoch.process == self.process || has(clock, epoch.process, epoch.index);
  };
  if (cell.read.index == 0 || (cell.more == 0 && past(cell.read))) {
    cell.read = self;
    return;
  }
  if (cell.more == 0) {
    if (more_reads_.empty()) more_reads_.emplace_back();
    cell.more = static_cast<std::uint32_t>(more_reads_.size());
    more_reads_.emplace_back();
  }
  std::vector<Epoch>& more = more_reads_[cell.more];
  std::erase_if(more, past);
  if (past(cell.read)) {
    cell.read = self;
  } else {
    more.push_back(self);
  }
}

void Dependence::touch(Current& now) {
  Epoch const self{now.step.process, now.process.index + 1, 0};
  for (Bytes const& bytes : now.step.bytes) {
    for_each_cell(bytes, [&](Cell& cell) {
      if (now.step.kind == Step::Kind::reread && cell.write.index != 0 && cell.write.plain == 0) {
        Event const& write = events_[processes_[cell.write.process].events[cell.write.index - 1]];
        need(now, *write.clock, write.hash);
      } else {
        conflict(now, cell.write);
      }
      if (bytes.write) {
        conflict(now, cell.read);
        if (cell.more != 0) {
          for (Epoch const& read : more_reads_[cell.more]) conflict(now, read);
        }
        cell = {self, {}, 0};
      } else {
        add_read(cell, self, *now.process.clock);
      }
    });
  }
}

void Dependence::follow(ProcessId id, ProcessId other) {
  static_cast<void>(process(other));
  join(process(id).clock, *processes_[other].clock);
}

void Dependence::access(ProcessId id, std::vector<Bytes> const& ranges) {
  Process& process = processes_[id];
  // What a thread accesses counts with its next step; what a warp does, with the step that it was.
  bool const of_thread = lanes_of(id).second == 0;
  process.accessed |= of_thread;
  Epoch const self{id, process.index + (of_thread ? 1 : 0), 1};
  Clock const& clock = *process.clock;
  auto const check = [&](Epoch const& epoch) {
    unordered_ |=
        epoch.index != 0 && epoch.process != id && !has(clock, epoch.process, epoch.index);
  };
  for (Bytes const& bytes : ranges) {
    for_each_cell(bytes, [&](Cell& cell) {
      check(cell.write);
      if (bytes.write) {
        check(cell.read);
        if (cell.more != 0)
          std::for_each(more_reads_[cell.more].begin(), more_reads_[cell.more].end(), check);
        cell = {self, {}, 0};
      } else {
        add_read(cell, self, clock);
      }
    });
  }
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

void Dependence::perform(Step const& step, std::vector<Reversal>* reversals) {
  using Kind = Step::Kind;
  if (step.kind == Kind::meet) return meet(step);
  for (ProcessId const other : step.others) static_cast<void>(process(other));
  Process& process = this->process(step.process);
  auto const [first, end] = lanes_of(step.process);
  if (first != end) {
    process.clock = processes_[first].clock;
    process.hash = processes_[first].hash;
  }
  Current now{step, steps(), process, process.clock, 0, {}, reversals};
  for (int cta = 0; cta < shape_.ctas; ++cta) {
    if ((step.peers >> cta & 1) != 0)
      before_look(now, exits_[static_cast<std::size_t>(cta)], false);
  }
  Kind kind = step.kind;
  bool const at_mbarrier = (kind >= Kind::init && kind <= Kind::wait) ||
                           (kind == Kind::land && (step.amount != 0 || step.arrivals != 0));
  Phases* const mbarrier = at_mbarrier ? &mbarriers_[step.object] : nullptr;
  // What comes too early, or too late, finds no mbarrier.
  bool const looks = mbarrier != nullptr && (kind == Kind::test || kind == Kind::wait ||
                                             (!mbarrier->live && kind != Kind::init));
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
      before_look(now, cluster_barrier(first), true);
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
  conclude(now);
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
      complete_phase(*mbarrier, now.event, reversals);
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
        complete_phase(*mbarrier, now.event, reversals);
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
      complete_phase(barrier, now.event, reversals);
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
        processes_[lane].clock = process.clock;
        processes_[lane].hash = mix(process.hash, lane);
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

void Dependence::blocked(Step const& step, std::vector<Reversal>& reversals) {
  Process& process = this->process(step.process);
  auto const [first, end] = lanes_of(step.process);
  Clock const& clock = first != end ? *processes_[first].clock : *process.clock;
  auto const reverse = [&](std::vector<std::uint32_t> const& events) {
    for (std::uint32_t const event : events) {
      if (!has(clock, event)) reversals.push_back({event, steps()});
    }
  };
  if (step.kind == Step::Kind::registers) reverse(registers_[step.object].taken);
  if (step.kind != Step::Kind::wait && step.kind != Step::Kind::test) return;
  // It would have passed before the last phase was complete.
  auto const mbarrier = mbarriers_.find(step.object);
  if (mbarrier != mbarriers_.end() && mbarrier->second.live && mbarrier->second.phase > 0)
    reverse(mbarrier->second.previous);
}

}  // namespace tegula::sim
