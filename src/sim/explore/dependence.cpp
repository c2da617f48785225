#include "explore/dependence.hpp"

#include <algorithm>
#include <bit>

#include "values/mix.hpp"

namespace tegula::sim {

namespace {

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

}  // namespace tegula::sim
