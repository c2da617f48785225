#include "explore/explorer.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "machine/cluster.hpp"

namespace tegula::sim {

namespace {

using Kind = Visible::Kind;

// How Choices name a process: what it is, then its number, or its issuer's and its own.
constexpr int kNameShift = 60;
constexpr std::uint64_t kThreadName = 0, kWarpName = 1, kGroupName = 2, kOperationName = 3,
                        kPlaceName = 4;

/// What stands for the clusters that have not started, beside the bytes of memory.
constexpr std::uint64_t kLaunches = std::uint64_t{0xff} << 56;
/// Whether the requests of the cluster in a place are refused, likewise.
std::uint64_t refusal_key(int place) { return kLaunches + 1 + static_cast<std::uint64_t>(place); }

/// So many times in a row, for each thread, what changes nothing may be done again where nobody can
/// go on.
constexpr int kMostForced = 4;

std::uint64_t shared_key(int cta, std::uint64_t address) {
  return static_cast<std::uint64_t>(cta + 1) << 56 | address;
}

std::uint64_t value_at(void const* memory, std::int64_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, memory, static_cast<std::size_t>(std::min<std::int64_t>(bytes, 8)));
  return value;
}

}  // namespace

ProcessId Processes::operation(ProcessId issuer, std::uint32_t n) {
  std::uint64_t const key = static_cast<std::uint64_t>(issuer) << 32 | n;
  auto const next = static_cast<ProcessId>(shape_.processes() + issue_.size());
  auto const [found, added] = by_issue_.emplace(key, next);
  if (added) issue_.push_back(key);
  return found->second;
}

std::uint64_t Processes::name(ProcessId process) const {
  auto const threads = static_cast<ProcessId>(shape_.ctas * shape_.threads);
  if (process >= shape_.processes())
    return kOperationName << kNameShift | issue_[process - shape_.processes()];
  if (process < threads) return kThreadName << kNameShift | process;
  if (process < threads + threads / 32) return kWarpName << kNameShift | (process - threads);
  if (process >= shape_.place(0)) return kPlaceName << kNameShift | (process - shape_.place(0));
  return kGroupName << kNameShift | (process - threads - threads / 32);
}

std::optional<ProcessId> Processes::process(std::uint64_t name) {
  auto const threads = static_cast<ProcessId>(shape_.ctas * shape_.threads);
  auto const number = static_cast<ProcessId>(name & 0xffffffffu);
  auto const of = [&](ProcessId first, ProcessId end) {
    return number < end - first ? std::optional(first + number) : std::nullopt;
  };
  switch (name >> kNameShift) {
    case kThreadName:
      return of(0, threads);
    case kWarpName:
      return of(threads, threads + threads / 32);
    case kGroupName:
      return of(threads + threads / 32, shape_.place(0));
    case kPlaceName:
      return of(shape_.place(0), shape_.processes());
    default:
      return operation(static_cast<ProcessId>(name >> 32 & 0xfffffff), number);
  }
}

Explorer::Explorer(Processes& processes, bool accesses, bool refusals, std::int64_t max_steps)
    : processes_(processes), max_steps_(max_steps), dependence_(processes.shape()) {
  choices_.accesses = accesses;
  choices_.refusals = refusals;
  auto const places = static_cast<std::size_t>(processes.shape().clusters);
  clusters_.resize(places);
  launched_.resize(places);
  has_launched_.resize(places);
  refused_.resize(places);
  started_.resize(places);
}

void Explorer::follow(Choices const& choices) {
  for (Choices::Choice const& choice : choices.choices) {
    std::optional<ProcessId> const process = processes_.process(choice.process);
    bool const known = process && replay_.emplace(choice.step, *process).second;
    if (!known && !unmade_) unmade_ = choice;
  }
}

std::optional<Choices::Choice> Explorer::unmade() const {
  if (unmade_ || replay_.empty()) return unmade_;
  auto const& [step, process] = *replay_.begin();
  return Choices::Choice{step, processes_.name(process)};
}

void Explorer::share(Baton& baton, PendingClusters* pending) {
  baton_ = &baton;
  pending_clusters_ = pending;
}

void Explorer::start(Cluster& cluster) {
  cluster_ = &cluster;
  auto const place = static_cast<std::size_t>(cluster.place());
  clusters_[place] = &cluster;
  launched_[place] = false;
  if (active_ && choices_.refusals && pending_clusters_ != nullptr)
    may_refuse(static_cast<int>(place));
}

/// From now on the requests of the cluster in the place may be refused, by a process of its own.
void Explorer::may_refuse(int place) {
  auto const i = static_cast<std::size_t>(place);
  refused_[i] = false;
  ProcessId const of_place = processes_.shape().place(place);
  ProcessId const refuser = processes_.operation(of_place, started_[i]++);
  Step issue;
  issue.kind = Step::Kind::issue;
  issue.process = of_place;
  issue.others = {refuser};
  perform(std::move(issue));
  Step step;
  step.kind = Step::Kind::access;
  step.choice = true;
  step.process = refuser;
  step.object = static_cast<std::uint64_t>(place);
  step.bytes = {{refusal_key(place), 1, true}};
  pending_.emplace(refuser, Pending{.step = std::move(step), .refuses = true});
}

/// The cluster in the place has ended. That its requests are refused after the last of them stands
/// for that they were not: the machine's choice.
void Explorer::end_refusals(int place) {
  auto const found = std::find_if(pending_.begin(), pending_.end(), [&](auto const& entry) {
    return entry.second.refuses && entry.second.step.object == static_cast<std::uint64_t>(place);
  });
  if (found == pending_.end()) return;
  Step step = std::move(found->second.step);
  pending_.erase(found);
  if (!active_ || chosen_ >= max_steps_) return;
  if (followed_to_ < follow_.size() && follow_[followed_to_] == step.process) ++followed_to_;
  if (list_alternatives_) alternatives_.emplace_back();
  ++chosen_;
  perform(std::move(step));
}

bool Explorer::refuses(Cluster const& cluster) const {
  return active_ && refused_[static_cast<std::size_t>(cluster.place())];
}

void Explorer::finish(Cluster& cluster) {
  end_refusals(static_cast<int>(cluster.place()));
  std::erase_if(pending_, [&](auto const& entry) {
    Thread const* const thread = entry.second.thread;
    return thread != nullptr && &thread->cta->cluster() == &cluster;
  });
  std::erase_if(flying_, [&](Flying const& flying) { return flying.cluster == &cluster; });
  int const threads = cluster.ctas() * processes_.shape().threads;
  for (int i = 0; i < threads; ++i)
    did_.erase(static_cast<ProcessId>(static_cast<int>(cluster.place()) * threads + i));
}

/// The number of a cluster's CTA among those of all clusters.
int Explorer::rank(Cluster const& cluster, int cta) const {
  return static_cast<int>(cluster.place()) * processes_.shape().ctas_of_each() + cta;
}
int Explorer::rank(Cta const& cta) const { return rank(cta.cluster(), cta.rank()); }

ProcessId Explorer::self(Thread const& thread) const {
  return static_cast<ProcessId>(rank(*thread.cta) * processes_.shape().threads + thread.index);
}

/// The place of the cluster that a process belongs to.
int Explorer::place_of(ProcessId process) const {
  auto const pending = pending_.find(process);
  if (pending == pending_.end()) {
    auto const flying = std::find_if(flying_.begin(), flying_.end(), [&](Flying const& other) {
      return other.process == process && other.operation != nullptr;
    });
    return static_cast<int>(flying->cluster->place());
  }
  Thread const* const thread = pending->second.thread;
  return thread != nullptr ? static_cast<int>(thread->cta->cluster().place())
                           : static_cast<int>(pending->second.step.object);
}

/// The clusters that have not started, as what a step changes, or, where there are none, reads.
Bytes Explorer::launches() const { return {kLaunches, 1, !pending_clusters_->empty()}; }

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
  if (what.kind == Kind::load || what.kind == Kind::atomic || what.kind == Kind::peer_load) {
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

/// Whether a thread that waits to be chosen would not wait for others, once it is.
bool Explorer::can_go(Pending const& pending) const {
  if (pending.refuses) return true;
  if (pending.thread == nullptr) {
    // Places are alike: the first to start is the first.
    std::uint64_t const place = pending.step.object;
    return place == 0 || has_launched_[place - 1];
  }
  Visible const& what = pending.what;
  Cta& cta = *pending.thread->cta;
  Cluster& cluster = cta.cluster();
  switch (what.kind) {
    case Kind::mbarrier_test:
      if (!pending.again) return true;
      [[fallthrough]];
    case Kind::mbarrier_wait: {
      MbarrierState const* const mbarrier =
          cluster.cta(what.cta).mbarrier_at(static_cast<std::uint32_t>(what.address));
      return mbarrier == nullptr || (mbarrier->phase & 1) != what.amount;
    }
    case Kind::cluster_wait:
      return cluster.barrier_complete(cta.warp(pending.thread->index / 32));
    case Kind::registers:
      return what.amount <= cta.free_registers();
    case Kind::wait_group:
    case Kind::wait_group_read: {
      bool const read = what.kind == Kind::wait_group_read;
      std::vector<InFlight*> const waited =
          what.groups->beyond(static_cast<std::size_t>(what.amount));
      return std::all_of(waited.begin(), waited.end(), [&](InFlight const* operation) {
        return operation->landed() || (read && operation->done_reading());
      });
    }
    case Kind::load:
    case Kind::peer_load:
    case Kind::atomic: {
      if (!pending.again) return true;
      void const* const memory =
          what.cta < 0
              ? reinterpret_cast<void const*>(static_cast<std::uintptr_t>(what.address))
              : cluster.cta(what.cta).shared().at(static_cast<std::uint32_t>(what.address));
      return value_at(memory, what.amount) != pending.seen;
    }
    case Kind::reread:
      return false;
    default:
      return true;
  }
}

bool Explorer::can_land(Flying const& flying) const {
  if (flying.operation == nullptr) return false;
  if (flying.after == flying.process) return true;
  return std::none_of(flying_.begin(), flying_.end(), [&](Flying const& other) {
    return other.process == flying.after && other.operation != nullptr;
  });
}

bool Explorer::possible(ProcessId process) const {
  auto const pending = pending_.find(process);
  if (pending != pending_.end()) return can_go(pending->second) || pending->second.again;
  return std::any_of(flying_.begin(), flying_.end(), [&](Flying const& flying) {
    return flying.process == process && can_land(flying);
  });
}

/// The machine's choice: the process that went last, else the first thread, warp or warpgroup, else
/// the oldest operation in flight. Nobody where none can go on.
std::optional<ProcessId> Explorer::preferred() {
  auto const last = pending_.find(last_);
  if (last != pending_.end() && can_go(last->second)) return last_;
  for (auto const& [id, pending] : pending_) {
    if (can_go(pending) && !pending.refuses) return id;
  }
  for (Flying const& flying : flying_) {
    if (can_land(flying)) return flying.process;
  }
  return std::nullopt;
}

/// Somebody of the place runs, or a cluster starts there.
bool Explorer::goes_on(int place) const {
  auto const i = static_cast<std::size_t>(place);
  return launched_[i] || (clusters_[i] != nullptr && clusters_[i]->anyone_ready());
}

/// Who goes next; nobody where it has stopped.
std::optional<ProcessId> Explorer::next() {
  std::optional<ProcessId> const own = preferred();
  std::optional<ProcessId> next = own;
  auto const replayed = replay_.find(chosen_);
  if (followed_to_ < follow_.size()) {
    next = follow_[followed_to_++];
  } else if (replayed != replay_.end()) {
    next = replayed->second;
  }
  if (next && next != own && !possible(*next)) {
    if (replayed != replay_.end()) unmade_ = {chosen_, processes_.name(*next)};
    follow_.clear();
    replay_.clear();
    next = own;
  } else if (replayed != replay_.end()) {
    replay_.erase(replayed);
  }
  if (!next) {
    // Those that would find what they found last, in turn, lest one of them was about to give up.
    auto const again = std::find_if(pending_.begin(), pending_.end(),
                                    [](auto const& entry) { return entry.second.again; });
    if (again == pending_.end() || ++forced_ > kMostForced * static_cast<int>(pending_.size())) {
      stop(true);
      return std::nullopt;
    }
    next = again->first;
  } else {
    forced_ = 0;
  }
  if (chosen_ >= max_steps_) {
    stop(false);
    return std::nullopt;
  }
  if (list_alternatives_) list();
  if (next != own) choices_.choices.push_back({chosen_, processes_.name(*next)});
  return next;
}

/// Who has the baton decides; who is next goes on when its cluster has it.
void Explorer::choose(int place) {
  while (active_ && !goes_on(place)) {
    int to = place;
    if (begun_ < processes_.shape().clusters && baton_ != nullptr) {
      to = begun_;  // everybody is to be there at the first choice
    } else {
      if (!handed_) handed_ = next();
      if (!handed_) break;
      to = place_of(*handed_);
    }
    if (to == place) {
      go(*std::exchange(handed_, std::nullopt));
    } else {
      baton_->give(place, to);
      cluster_ = clusters_[static_cast<std::size_t>(place)];
    }
  }
}

bool Explorer::choose(Cluster& cluster) {
  choose(static_cast<int>(cluster.place()));
  return cluster.anyone_ready();
}

std::optional<std::int64_t> Explorer::launch(int place) {
  if (active_) {
    auto const i = static_cast<std::size_t>(place);
    Step step;
    step.kind = Step::Kind::launch;
    step.choice = true;
    step.process = processes_.shape().place(place);
    step.object = static_cast<std::uint64_t>(place);
    ProcessId const process = step.process;
    pending_.emplace(process, Pending{.step = std::move(step)});
    choose(place);
    launched_[i] = false;
  }
  return pending_clusters_->take();
}

void Explorer::go(ProcessId process) {
  ++chosen_;
  last_ = process;
  auto const found = pending_.find(process);
  if (found != pending_.end()) {
    Pending pending = std::move(found->second);
    pending_.erase(found);
    return go(pending);
  }
  land(*std::find_if(flying_.begin(), flying_.end(), [&](Flying const& flying) {
    return flying.process == process && flying.operation != nullptr;
  }));
}

void Explorer::go(Pending& pending) {
  Visible const& what = pending.what;
  Step& step = pending.step;
  if (pending.refuses) {
    refused_[step.object] = true;
    return perform(std::move(step));
  }
  if (pending.thread == nullptr) {
    step.bytes = {launches()};
    step.amount = pending_clusters_->empty() ? 0 : 1;
    launched_[step.object] = has_launched_[step.object] = true;
    return perform(std::move(step));
  }
  if (what.kind == Kind::launch_request) {
    Cluster const& cluster = pending.thread->cta->cluster();
    if (!refuses(cluster)) step.bytes = {launches()};
    if (choices_.refusals)
      step.bytes.push_back({refusal_key(static_cast<int>(cluster.place())), 1, false});
  }
  if (step.kind == Step::Kind::wait_for) {
    for (InFlight const* const operation :
         what.groups->beyond(static_cast<std::size_t>(what.amount))) {
      step.others.push_back(operation->remembered.process);
    }
  }
  if (what.kind == Kind::mbarrier_test || what.kind == Kind::load || what.kind == Kind::peer_load ||
      what.kind == Kind::atomic) {
    did_[step.process] = {what.kind, what.cta, what.address, pending.seen};
    if (what.kind == Kind::mbarrier_test &&
        can_go(Pending{
            {}, {Kind::mbarrier_wait, what.cta, what.address, what.amount}, pending.thread}))
      did_.erase(step.process);
  } else {
    did_.erase(step.process);
  }
  perform(std::move(step));
  pending.thread->cta->set_ready(*pending.thread);
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

/// Leaves the rest to the machine: where it is stuck, or has taken too many steps.
void Explorer::stop(bool stuck) {
  active_ = false;
  complete_ = stuck;
  for (auto& [id, pending] : pending_) {
    if (stuck) {
      auto const before = reversals_.size();
      dependence_.blocked(pending.step, reversals_);
      // The step that it did not take stands for itself.
      if (reversals_.size() != before) {
        for (std::size_t i = before; i < reversals_.size(); ++i)
          reversals_[i].second = static_cast<std::uint32_t>(steps_.size());
        steps_.push_back(pending.step);
      }
    }
    if (pending.thread != nullptr) pending.thread->cta->set_ready(*pending.thread);
  }
  pending_.clear();
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

void Explorer::list() {
  std::vector<ProcessId>& who = alternatives_.emplace_back();
  for (auto const& [id, pending] : pending_) {
    if (can_go(pending)) who.push_back(id);
  }
  for (Flying const& flying : flying_) {
    if (can_land(flying)) who.push_back(flying.process);
  }
}

}  // namespace tegula::sim
