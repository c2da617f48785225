#include "machine/in_flight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "machine/cluster.hpp"
#include "values/place.hpp"

namespace tegula::sim {

InFlight::InFlight(Instruction instruction, Cta const& issuer, SourceLocation where)
    : instruction(instruction),
      where(where),
      cta(issuer.rank()),
      thread(issuer.thread_index()),
      of_cluster_(issuer.cluster().ctas() > 1) {}

std::string issuer_text(InFlight const& operation) {
  return fmt::format(" that warp {}{}{} issued ({})", operation.thread / 32,
                     operation.by_warp() ? "" : fmt::format(" lane {}", operation.thread % 32),
                     operation.of_cluster_ ? fmt::format(" of CTA {} of the cluster", operation.cta)
                                           : std::string(),
                     place_text(operation.where));
}

void InFlightGroups::clear() {
  operations_.clear();
  ends_.clear();
  waited_ = {};
}

bool InFlightGroups::committed(InFlight const& operation) const {
  auto const end =
      operations_.begin() + static_cast<std::ptrdiff_t>(ends_.empty() ? 0 : ends_.back());
  return std::find(operations_.begin(), end, &operation) != end;
}

void InFlightGroups::note_wait(std::size_t groups_left, SourceLocation where) {
  std::size_t const in_groups = ends_.empty() ? 0 : ends_.back();
  waited_ = {where, groups_left, in_groups == 0 ? 0 : operations_[in_groups - 1]->serial()};
}

bool InFlightGroups::left_by_wait(InFlight const& operation) const {
  return waited_.where.line != 0 && operation.serial() <= waited_.committed;
}

std::vector<InFlight*> InFlightGroups::beyond(std::size_t groups_left) const {
  if (ends_.size() <= groups_left) return {};
  return {operations_.begin(),
          operations_.begin() + static_cast<std::ptrdiff_t>(ends_[ends_.size() - groups_left - 1])};
}

void InFlightQueue::add(std::unique_ptr<InFlight> operation) {
  cluster_.wait_for_clock();
  issue(std::move(operation));
}

void InFlightQueue::add(std::unique_ptr<InFlight> operation, InFlightGroups& groups) {
  cluster_.wait_for_clock();
  operation->groups_ = &groups;
  groups.operations_.push_back(operation.get());
  issue(std::move(operation));
}

void InFlightQueue::issue(std::unique_ptr<InFlight> operation) {
  InFlight& issued = *operation;
  issued.serial_ = ++issued_;
  operations_.push_back(std::move(operation));
  cluster_.step(issued.where);
  cluster_.progressed();
  if (!admit(issued)) {
    issued.without_effect_ = true;
    issued.writes.clear();
    issued.reads.clear();
  }
  if (cluster_.observed()) cluster_.observers().issued(cluster_, issued);
  Completion const completion = cluster_.completion();
  if (completion == Completion::first ||
      (completion == Completion::random && cluster_.random() % 4 == 0))
    land(issued);
}

/// Reports ranges that lie in no CTA's shared memory, and an mbarrier that is none. False where the
/// operation cannot be performed.
bool InFlightQueue::admit(InFlight& operation) {
  Instruction const instruction = operation.instruction;
  SourceLocation const where = operation.where;
  bool possible = true;
  auto const check = [&](SharedRange const& range, bool write) {
    Cta& cta = cluster_.cta(range.cta);
    Culprit const who = cta.here();
    if (cta.exited()) {
      cta.report(
          FindingKind::exited_cta, where, who, cta.buffer_name(range.address),
          cta.shared_place(range.address),
          fmt::format(
              "{} {} {}, which has exited: a CTA must stay until its peers are done with its shared "
              "memory",
              ptx_name(instruction), write ? "writes" : "reads", cta.shared_place(range.address)),
          {{}, {cta.rank(), -1, -1}, "a cluster::sync before that CTA exits would order the two"});
      possible = false;
    } else if (!cta.shared_.contains(range.address, range.bytes)) {
      cta.out_of_shared(instruction, range.address, range.bytes, where, who);
      possible = false;
    }
  };
  for (SharedRange const& range : operation.writes) check(range, true);
  for (SharedRange const& range : operation.reads) check(range, false);
  if (cluster_.checked()) cluster_.observers().issuing(cluster_, operation);
  if (operation.mbarrier.bytes != 0) {
    Cta& cta = cluster_.cta(operation.mbarrier.cta);
    MbarrierState const* const mbarrier =
        cta.exited() ? nullptr : cta.live_mbarrier(instruction, operation.mbarrier.address, where);
    if (mbarrier == nullptr) operation.mbarrier.bytes = 0;
  }
  return possible;
}

std::string InFlightQueue::order_text(InFlight const& operation, bool read) const {
  if (operation.is_committed()) {
    InFlight const* covering = nullptr;  // best in the CTA that is to wait
    int const here = cluster_.current().cta->rank();
    for (auto const& commit : operations_) {
      auto const& covered = commit->covers;
      if (std::find(covered.begin(), covered.end(), &operation) != covered.end() &&
          (covering == nullptr || commit->mbarrier.cta == here))
        covering = commit.get();
    }
    if (covering != nullptr && covering->mbarrier.cta != here)
      return fmt::format(
          "a tcgen05_commit_multicast in the place of the tcgen05_commit after it ({}), to CTA {} of the cluster, "
          "too, and a wait for its mbarrier there, would order them",
          place_text(covering->where), here);
    MbarrierState const* const mbarrier =
        covering == nullptr ? nullptr : cluster_.cta(here).mbarrier_at(covering->mbarrier.address);
    if (mbarrier != nullptr) {
      auto const there =
          std::find_if(mbarrier->landed.begin(), mbarrier->landed.end(),
                       [&](Landed const& landed) { return landed.operation == covering; });
      std::int64_t const phase = there == mbarrier->landed.end() ? mbarrier->phase : there->phase;
      return fmt::format(
          "a wait for phase {} of {}, of parity {}, at which the tcgen05_commit after it ({}) arrives, would order them",
          phase, cluster_.cta(here).shared_place(mbarrier->address), phase % 2,
          place_text(covering->where));
    }
    return "a tcgen05_commit after it by that thread, and a wait for its mbarrier, would order them";
  }
  if (operation.by_warp()) {
    return fmt::format(
        "a tcgen05_wait_{} by the warp that issued it, and the tcgen05 fences around a barrier or an "
        "mbarrier's phase for other warps, would order them",
        operation.instruction == Instruction::tcgen05_ld ? "ld" : "st");
  }
  bool const committed = operation.groups_ == nullptr || operation.groups_->committed(operation);
  if (operation.by_warpgroup()) {
    return fmt::format(
        "{}a wgmma_wait_group that covers it, and then a barrier or an mbarrier's phase for threads of other "
        "warps, would order them",
        committed ? "" : "a wgmma_commit_group after it and ");
  }
  if (operation.groups_ != nullptr && operation.groups_->left_by_wait(operation)) {
    LatestWait const& wait = operation.groups_->waited();
    return fmt::format(
        "that thread's wait for its groups ({}) leaves the latest {} in flight, and this is of {}: a "
        "bulk_commit_group after each stage's store, or a bulk_wait_group{} that leaves fewer, and then a barrier or "
        "an mbarrier's phase for other threads, would order them",
        place_text(wait.where), wait.left, wait.left == 1 ? "it" : "them", read ? "_read" : "");
  }
  if (operation.groups_ != nullptr) {
    return fmt::format(
        "{}a bulk_wait_group{} by the thread that issued it, and then a barrier or an mbarrier's phase for other "
        "threads, would order them",
        committed ? "" : "a bulk_commit_group after it and ", read ? "_read" : "");
  }
  if (operation.mbarrier.bytes == 0) return "";
  if (operation.mbarrier.cta != cluster_.current().cta->rank())
    return fmt::format(
        "a cluster::sync after the wait for {}, on which it completes, would order them",
        cluster_.cta(operation.mbarrier.cta).shared_place(operation.mbarrier.address));
  return fmt::format("a wait for {}, on which it completes, would order them",
                     cluster_.cta(operation.mbarrier.cta).shared_place(operation.mbarrier.address));
}

void InFlightQueue::read(InFlight& operation) {
  if (operation.done_reading_) return;
  operation.done_reading_ = true;
  if (!operation.without_effect_) operation.read(cluster_);
}

void InFlightQueue::land(InFlight& operation) {
  if (operation.landed_) return;
  if (operation.groups_ != nullptr && operation.groups_->in_order_) {
    for (InFlight* const earlier : operation.groups_->operations_) {
      if (earlier == &operation) break;
      if (!earlier->landed_) land(*earlier);
    }
  }
  for (InFlight* const covered : operation.covers) land(*covered);
  read(operation);
  operation.landed_ = true;
  if (!operation.without_effect_) operation.land(cluster_);
  if (cluster_.checked()) cluster_.observers().landed(cluster_, operation);
  if (operation.groups_ != nullptr) return;
  SharedRange const& completes = operation.mbarrier;
  Cta& cta = cluster_.cta(completes.cta);
  MbarrierState* const mbarrier =
      completes.bytes != 0 && !cta.exited() ? cta.mbarrier_at(completes.address) : nullptr;
  if (mbarrier == nullptr) {
    retire(operation, true);
    return;
  }
  Culprit const who{operation.cta, operation.thread / 32, operation.thread % 32};
  if (operation.arrives) {
    cta.arrive(*mbarrier, operation, who);
  } else {
    cta.complete_tx(*mbarrier, completes.bytes, &operation, operation.where, who);
  }
}

void InFlightQueue::retire_reads(InFlight& operation) {
  if (operation.reads_retired_) return;
  operation.reads_retired_ = true;
  if (cluster_.checked()) cluster_.observers().reads_retired(cluster_, operation);
}

void InFlightQueue::retire(InFlight& operation, bool for_nobody) {
  // What a commit that somebody has waited for covers is over, too.
  while (!operation.covers.empty()) retire(*operation.covers.front());
  retire_reads(operation);
  if (cluster_.observed()) cluster_.observers().retired(cluster_, operation, for_nobody);
  if (operation.is_committed()) forget_covered(operation);
  operations_.erase(std::lower_bound(
      operations_.begin(), operations_.end(), operation.serial_,
      [](auto const& candidate, std::uint64_t serial) { return candidate->serial_ < serial; }));
}

/// A tcgen05.mma is retired: no commit waits for it any more.
void InFlightQueue::forget_covered(InFlight& operation) {
  for (auto const& other : operations_) std::erase(other->covers, &operation);
  std::erase(operation.groups_->operations_, &operation);
}

double InFlightQueue::wait(InFlightGroups& groups, std::size_t groups_left) {
  if (groups.ends_.size() <= groups_left) return 0;
  double latest = 0;
  auto const done = static_cast<std::ptrdiff_t>(groups.ends_.size() - groups_left);
  std::size_t const end = groups.ends_[static_cast<std::size_t>(done - 1)];
  cluster_.progressed();
  for (std::size_t i = 0; i < end; ++i) {
    land(*groups.operations_[i]);
    latest = std::max(latest, groups.operations_[i]->time.landed);
  }
  for (std::size_t i = 0; i < end; ++i) {
    if (cluster_.checked()) cluster_.observers().waited_for(cluster_, *groups.operations_[i]);
    retire(*groups.operations_[i]);
  }
  groups.operations_.erase(groups.operations_.begin(),
                           groups.operations_.begin() + static_cast<std::ptrdiff_t>(end));
  groups.ends_.erase(groups.ends_.begin(), groups.ends_.begin() + done);
  for (std::size_t& e : groups.ends_) e -= end;
  return latest;
}

double InFlightQueue::wait_read(InFlightGroups& groups, std::size_t groups_left) {
  if (groups.ends_.size() <= groups_left) return 0;
  double latest = 0;
  std::size_t const end = groups.ends_[groups.ends_.size() - groups_left - 1];
  cluster_.progressed();
  for (std::size_t i = 0; i < end; ++i) {
    read(*groups.operations_[i]);
    retire_reads(*groups.operations_[i]);
    latest = std::max(latest, groups.operations_[i]->time.read);
  }
  return latest;
}

void InFlightQueue::land_at_random() {
  if (cluster_.random() % 4 != 0) return;
  InFlight& operation = *operations_[cluster_.random() % operations_.size()];
  if (!operation.reads.empty() && cluster_.random() % 2 == 0) {
    read(operation);
  } else {
    land(operation);
  }
}

bool InFlightQueue::land_for_waiters() {
  // Nobody runs until a phase completes, so nobody begins to wait: those that are waited for are
  // looked up once. There may be thousands of them (st.async).
  std::vector<InFlight*> waited_for;
  for (auto const& operation : operations_) {
    if (operation->landed_ || operation->mbarrier.bytes == 0) continue;
    MbarrierState const* const mbarrier =
        cluster_.cta(operation->mbarrier.cta).mbarrier_at(operation->mbarrier.address);
    if (mbarrier != nullptr && !mbarrier->waiters.empty()) waited_for.push_back(operation.get());
  }
  if (cluster_.completion() == Completion::random) {
    while (!cluster_.anyone_ready() && !waited_for.empty()) {
      auto const chosen = waited_for.begin() +
                          static_cast<std::ptrdiff_t>(
                              waited_for.size() == 1 ? 0 : cluster_.random() % waited_for.size());
      InFlight& operation = **chosen;
      waited_for.erase(chosen);
      land(operation);
    }
  } else {
    for (InFlight* const operation : waited_for) {
      if (cluster_.anyone_ready()) break;
      land(*operation);
    }
  }
  return cluster_.anyone_ready();
}

bool InFlightQueue::land_oldest() {
  for (auto const& operation : operations_) {
    if (operation->landed_ || operation->mbarrier.bytes == 0) continue;
    land(*operation);
    return true;
  }
  return false;
}

bool InFlightQueue::completes_on(int cta, std::uint32_t mbarrier) const {
  return std::any_of(operations_.begin(), operations_.end(), [&](auto const& operation) {
    return !operation->landed_ && operation->mbarrier.bytes != 0 &&
           operation->mbarrier.cta == cta && operation->mbarrier.address == mbarrier;
  });
}

std::int64_t InFlightQueue::bytes_for(int cta, std::uint32_t mbarrier) const {
  std::int64_t bytes = 0;
  for (auto const& operation : operations_) {
    if (!operation->landed_ && !operation->arrives && operation->mbarrier.cta == cta &&
        operation->mbarrier.address == mbarrier)
      bytes += operation->mbarrier.bytes;
  }
  return bytes;
}

void InFlightQueue::check_exit(Cta& cta) {
  auto const of_cta = [&](std::vector<SharedRange> const& ranges) {
    return std::find_if(ranges.begin(), ranges.end(),
                        [&](SharedRange const& range) { return range.cta == cta.rank(); });
  };
  for (std::size_t i = 0; i < operations_.size();) {
    InFlight& operation = *operations_[i];
    auto const written = of_cta(operation.writes);
    auto const source = of_cta(operation.reads);
    bool const writes = written != operation.writes.end();
    bool const reads = source != operation.reads.end() && !operation.reads_retired_;
    if (!writes && !reads) {
      ++i;
      continue;
    }
    std::uint32_t const at = writes ? written->address : source->address;
    cta.report(
        FindingKind::exited_cta, operation.where,
        {operation.cta, operation.thread / 32, operation.thread % 32}, cta.buffer_name(at),
        cta.shared_place(at),
        fmt::format(
            "the CTA exits while a {} {} its shared memory, from {} on, has not been waited for",
            ptx_name(operation.instruction), writes ? "into" : "out of", cta.shared_place(at)),
        {{}, {cta.rank(), -1, -1}, order_text(operation, !writes)});
    // What it was to read is still there; what it was to write is not. What completes on a peer's
    // mbarrier has read, and flies on to those who wait there.
    if (!writes && operation.groups_ == nullptr) {
      read(operation);
      retire_reads(operation);
      ++i;
      continue;
    }
    if (!writes) land(operation);
    if (operation.groups_ != nullptr) operation.groups_->clear();
    for (auto const& mbarrier : cluster_.cta(operation.mbarrier.cta).mbarriers_)
      std::erase_if(mbarrier->landed,
                    [&](Landed const& landed) { return landed.operation == &operation; });
    retire(operation);
    i = 0;
  }
}

void InFlightQueue::finish(bool failed) {
  if (!failed) {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (operations_[i]->groups_ != nullptr) land(*operations_[i]);
    }
  }
  operations_.clear();
}

InFlight const* InFlightQueue::touching(std::vector<SharedRange> InFlight::*ranges, int cta,
                                        std::uint32_t address) const {
  for (auto const& operation : operations_) {
    for (SharedRange const& range : operation.get()->*ranges) {
      if (range.cta == cta && address - range.address < range.bytes) return operation.get();
    }
  }
  return nullptr;
}

InFlight const* InFlightQueue::writer_of(int cta, std::uint32_t address) const {
  return touching(&InFlight::writes, cta, address);
}

InFlight const* InFlightQueue::reader_of(int cta, std::uint32_t address) const {
  return touching(&InFlight::reads, cta, address);
}

}  // namespace tegula::sim
