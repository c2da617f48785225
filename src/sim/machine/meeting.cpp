#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "machine/cluster.hpp"
#include "values/place.hpp"

/// How lanes meet at warp-wide instructions, warps at barriers, and who waits for what.
namespace tegula::sim {

namespace {

/// What a barrier does with its threads' predicates.
char const* reduction_text(std::optional<BarrierReduction> op) {
  if (!op) return "reduces nothing";
  constexpr char const* texts[] = {"reduces by popc", "reduces by and", "reduces by or"};
  return texts[static_cast<int>(*op)];
}

/// Instructions that are not aligned join lanes of one mask wherever they execute it, without the
/// lanes that have exited.
bool aligned(Instruction instruction) { return row_of(instruction).aligned; }

}  // namespace

[[gnu::always_inline]] inline bool Cta::join(Instruction instruction, std::uint32_t variant,
                                             std::uint32_t mask, SourceLocation where) {
  cluster_.step(where);
  Warp& own = current_warp();
  std::uint32_t const self = 1u << current_thread().lane;
  if ((mask & self) == 0) {
    fail(FindingKind::invalid_operand, where, here(),
         fmt::format("{} is executed by a lane that its mask {:#010x} leaves out",
                     ptx_name(instruction), mask));
  }
  for (int i = 0; i < own.meetings; ++i) {
    Meeting& meeting = own.meeting[static_cast<std::size_t>(i)];
    if (meeting.lanes == mask && meeting.instruction == instruction && meeting.variant == variant &&
        (!aligned(instruction) || same_place(meeting.where, where))) {
      meeting.arrived |= self;
      if (instruction == Instruction::bar_warp_sync && !same_place(meeting.where, where))
          [[unlikely]]
        own.crossed = {meeting.where, where};
      if (meeting.arrived == (mask & ~own.exited)) {
        meeting = own.meeting[static_cast<std::size_t>(--own.meetings)];
        return true;
      }
      return wait_for_release(own, self);
    }
    // Lanes that this one needs wait there for this one: neither can go on.
    if ((meeting.arrived & mask) != 0 && (meeting.lanes & self) != 0)
      diverged(meeting, instruction, variant, mask, where);
  }
  if (aligned(instruction) && own.exited != 0) {
    fail(FindingKind::divergence, where, here(),
         fmt::format("{} needs all lanes of the warp, but {} exited", ptx_name(instruction),
                     lanes_text(own.exited)));
  }
  if ((mask & ~own.exited) == self) return true;
  own.meeting[static_cast<std::size_t>(own.meetings++)] = {instruction, variant, mask, self, where};
  return wait_for_release(own, self);
}

bool Cta::meet(Instruction instruction, std::uint32_t variant, std::uint32_t mask,
               SourceLocation where) {
  if (!join(instruction, variant, mask, where)) return false;
  Warp& own = current_warp();
  if (std::uint32_t const lanes = mask & ~own.exited; (lanes & (lanes - 1)) != 0) ++own.met;
  if (cluster_.paced()) [[unlikely]] {
    cluster_.observers().met(*this, own, mask & ~own.exited);
    cluster_.wait_for_clock();
  }
  return true;
}

void Cta::release(std::uint32_t mask, SourceLocation where, Instruction instruction) {
  Warp& own = current_warp();
  cluster_.progressed();
  if (count_ || cluster_.timed())
    cluster_.observers().warp_executed(*this, own, mask & ~own.exited, mask == kFullWarp,
                                       instruction, where);
  set_ready(own, mask & ~own.exited);
  if (cluster_.completion() == Completion::random) land_at_random(own);
  cluster_.pass_turn_between_warps();
}

bool Cta::meet_warpgroup(Instruction instruction, std::uint32_t variant, SourceLocation where) {
  if (!meet(instruction, variant, kFullWarp, where)) return false;
  Warp& own = current_warp();
  Warpgroup& group = warpgroup();
  int const first = own.index / 4 * 4;
  if (first + 4 > threads() / 32) {
    fail(FindingKind::invalid_operand, where, here(-1),
         fmt::format("{} is for whole warpgroups of 4 warps: the CTA has {}, so warp {} is in none",
                     ptx_name(instruction), threads() / 32, own.index));
  }
  std::uint32_t gone = 0;
  for (int w = first; w < first + 4; ++w) {
    if (warp(w).exited != 0) gone |= 1u << w;
  }
  if (gone != 0) {
    fail(FindingKind::divergence, where, here(-1),
         fmt::format("{} needs all warps of the warpgroup, but threads of {} exited",
                     ptx_name(instruction), warps_text(gone)));
  }
  if (group.arrived == 0) {
    group.instruction = instruction;
    group.variant = variant;
    group.where = where;
  } else if (group.instruction != instruction || group.variant != variant ||
             !same_place(group.where, where)) {
    std::uint32_t const waiting = group.arrived << first;
    report(
        FindingKind::divergence, where, here(-1), "", "",
        fmt::format(
            "{} is not executed by the warps of the warpgroup together: warp {} is at it{}, but {} wait{} "
            "for it at {} ({})",
            ptx_name(instruction), own.index,
            group.instruction == instruction && same_place(group.where, where)
                ? fmt::format(" with operand {}, where theirs is {}", variant, group.variant)
                : "",
            warps_text(waiting), std::has_single_bit(waiting) ? "s" : "",
            ptx_name(group.instruction), place_text(group.where)),
        group.where);
    cluster_.abort();
  }
  group.arrived |= 1u << (own.index - first);
  if (group.arrived == 0xf) {
    group.arrived = 0;
    ++group.met;
    if (races_ || cluster_.paced()) cluster_.observers().warpgroup_met(*this, first);
    if (cluster_.paced()) [[unlikely]]
      cluster_.wait_for_clock();
    return true;
  }
  if (count_) cluster_.observers().warp_waits(*this, own, false, instruction, where);
  cluster_.block();
  return false;
}

void Cta::release_warpgroup(SourceLocation where, Instruction instruction) {
  int const first = current_warp().index / 4 * 4;
  cluster_.progressed();
  if (count_ || cluster_.timed())
    cluster_.observers().warpgroup_executed(*this, first, instruction, where);
  for (int w = first; w < first + 4; ++w) set_ready(warp(w), kFullWarp);
  if (cluster_.completion() == Completion::random) land_at_random(current_warp());
  cluster_.pass_turn_between_warps();
}

void Cta::diverged(Meeting const& meeting, Instruction instruction, std::uint32_t variant,
                   std::uint32_t mask, SourceLocation where) {
  std::string what;
  if (meeting.instruction == instruction && same_place(meeting.where, where)) {
    what =
        meeting.lanes != mask
            ? fmt::format("with mask {:#010x}, where their mask is {:#010x}", mask, meeting.lanes)
            : fmt::format("with operand {}, where theirs is {}", variant, meeting.variant);
  } else {
    what = fmt::format("but {} {} for it at {} ({})", lanes_text(meeting.arrived),
                       std::has_single_bit(meeting.arrived) ? "waits" : "wait",
                       ptx_name(meeting.instruction), place_text(meeting.where));
  }
  report(FindingKind::divergence, where, here(), "", "",
         fmt::format("{} is not executed by the lanes of the warp together: {} is at it, {}",
                     ptx_name(instruction), lanes_text(1u << current_thread().lane), what),
         meeting.where);
  cluster_.abort();
}

/// A lane has returned from the kernel. Lanes that wait for it at an aligned instruction never
/// meet it; elsewhere they need it no longer, and if nobody else is missing one of them completes
/// the instruction.
void Cta::check_exit(Warp& warp) {
  Warpgroup const& group = warpgroups_[static_cast<std::size_t>(warp.index / 4)];
  if (group.arrived != 0) {
    std::uint32_t const waiting = group.arrived << (warp.index / 4 * 4);
    fail(
        FindingKind::divergence, group.where, {rank_, std::countr_zero(waiting), -1},
        fmt::format(
            "{} needs all warps of the warpgroup, but a thread of warp {} exited while {} wait{} there",
            ptx_name(group.instruction), warp.index, warps_text(waiting),
            std::has_single_bit(waiting) ? "s" : ""));
  }
  for (int i = 0; i < warp.meetings; ++i) {
    Meeting const meeting = warp.meeting[static_cast<std::size_t>(i)];
    if (aligned(meeting.instruction)) {
      fail(FindingKind::divergence, meeting.where,
           {rank_, warp.index, std::countr_zero(meeting.arrived)},
           fmt::format("{} needs all lanes of the warp, but {} exited while {} wait{} there",
                       ptx_name(meeting.instruction), lanes_text(warp.exited),
                       lanes_text(meeting.arrived),
                       std::has_single_bit(meeting.arrived) ? "s" : ""));
    }
    if (meeting.arrived != (meeting.lanes & ~warp.exited)) continue;
    std::uint32_t const first = meeting.arrived & ~(meeting.arrived - 1);
    warp.completes |= first;
    set_ready(warp, first);
    warp.meeting[static_cast<std::size_t>(i--)] =
        warp.meeting[static_cast<std::size_t>(--warp.meetings)];
  }
}

std::vector<std::string> Cta::who_waits() const {
  std::vector<std::string> clauses;
  std::uint32_t exited_warps = 0;
  int const warps = launch_->kernel->threads / 32;
  for (int id = 0; id < kBarriers; ++id) {
    Barrier const& barrier = barriers_[static_cast<std::size_t>(id)];
    if (barrier.waiting == 0) continue;
    std::uint32_t told = 0;
    for (int w = 0; w < warps; ++w) {
      if ((barrier.waiting >> w & 1) == 0 || (told >> w & 1) != 0) continue;
      SourceLocation const& where = warp(w).barrier_where;
      std::uint32_t same = 0;
      for (int v = w; v < warps; ++v) {
        if ((barrier.waiting >> v & 1) != 0 && same_place(warp(v).barrier_where, where))
          same |= 1u << v;
      }
      told |= same;
      std::string clause =
          fmt::format("{} wait{} at barrier {} ({}), where {} of {} threads have arrived",
                      warps_text(same), std::has_single_bit(same) ? "s" : "", id, place_text(where),
                      barrier.arrived, barrier.expected);
      ArrivedTwice const& twice = arrived_twice_[static_cast<std::size_t>(id)];
      if (twice.warp >= 0)
        clause += fmt::format(", and warp {} has arrived twice for one use of it ({})", twice.warp,
                              place_text(twice.where));
      clauses.push_back(std::move(clause));
    }
  }
  mbarrier_waiters(clauses);
  tensor_waiters(clauses);
  std::uint32_t at_cluster = 0;
  for (int w = 0; w < warps; ++w) {
    if (warp(w).waits_at_cluster) at_cluster |= 1u << w;
  }
  if (at_cluster != 0) {
    clauses.push_back(fmt::format(
        "{} wait{} at the cluster's barrier ({}), {}", warps_text(at_cluster),
        std::has_single_bit(at_cluster) ? "s" : "",
        place_text(warp(std::countr_zero(at_cluster)).cluster_where), cluster_.barrier_text()));
  }
  for (std::size_t g = 0; g < warpgroups_.size(); ++g) {
    Warpgroup const& group = warpgroups_[g];
    if (group.arrived == 0) continue;
    std::uint32_t const waiting = group.arrived << (4 * g);
    clauses.push_back(fmt::format("{} wait{} at {} ({}) for {}", warps_text(waiting),
                                  std::has_single_bit(waiting) ? "s" : "",
                                  ptx_name(group.instruction), place_text(group.where),
                                  warps_text((0xfu << (4 * g)) & ~waiting)));
  }
  for (std::size_t g = 0; g < warpgroups_.size(); ++g) {
    Warpgroup const& group = warpgroups_[g];
    if (group.waits_for_registers == nullptr) continue;
    clauses.push_back(fmt::format(
        "warpgroup {} waits at setmaxnreg ({}) for {} registers more, where {} of the CTA's {} are free",
        g, place_text(group.wants_registers_where), group.wanted_registers, free_registers_,
        registers_));
  }
  for (int w = 0; w < warps; ++w) {
    Warp const& warp = this->warp(w);
    if (warp.exited == kFullWarp) exited_warps |= 1u << w;
    for (int i = 0; i < warp.meetings; ++i) {
      Meeting const& meeting = warp.meeting[static_cast<std::size_t>(i)];
      clauses.push_back(fmt::format(
          "{} of warp {} wait{} at {} ({}) for {}", lanes_text(meeting.arrived), w,
          std::has_single_bit(meeting.arrived) ? "s" : "", ptx_name(meeting.instruction),
          place_text(meeting.where), lanes_text(meeting.lanes & ~meeting.arrived)));
    }
  }
  for (int w = 0; w < warps; ++w) {
    // Those that test an mbarrier are told with those that wait at it.
    std::uint32_t ready = warp(w).ready;
    for (int lane = 0; lane < 32; ++lane) {
      Thread const& polls = thread(warp(w), lane);
      if (polls.tests != 0 || polls.read_where.line == 0) ready &= ~(1u << lane);
    }
    if (ready == 0) continue;
    Thread const& first = thread(warp(w), std::countr_zero(ready));
    std::string const what =
        first.last_read != nullptr ? polled_text(first.last_read) : std::string();
    clauses.push_back(fmt::format("{} of warp {} read{} at {}{}{}", lanes_text(ready), w,
                                  std::has_single_bit(ready) ? "s" : "",
                                  place_text(first.read_where), what.empty() ? "" : ": ", what));
  }
  if (exited_warps != 0) clauses.push_back(fmt::format("{} exited", warps_text(exited_warps)));
  return clauses;
}

/// Global memory that a thread reads again and again.
std::string Cta::polled_text(void const* address) const {
  Allocation const* const memory = find(*launch_->global, address);
  if (memory == nullptr) return {};
  return memory->place(memory->offset_of(address)) +
         (races_ ? observers().last_change(address) : "");
}

SourceLocation Cta::waiting_place() const {
  for (Warp const& warp : warps_) {
    if (warp.barrier >= 0) return warp.barrier_where;
    if (warp.waits_at_cluster) return warp.cluster_where;
    if (warp.meetings > 0) return warp.meeting[0].where;
    for (int lane = 0; lane < 32; ++lane) {
      Thread const& thread = this->thread(warp, lane);
      if (thread.mbarrier != nullptr) return thread.mbarrier_where;
    }
  }
  for (Warpgroup const& group : warpgroups_) {
    if (group.arrived != 0) return group.where;
    if (group.waits_for_registers != nullptr) return group.wants_registers_where;
  }
  if (!tensor_.waiters.empty()) return tensor_.waiters.front().where;
  return {};
}

void Cta::take_registers(Warpgroup& group, int more) {
  while (more > free_registers_) {
    group.waits_for_registers = &current_thread();
    cluster_.block();
  }
  group.waits_for_registers = nullptr;
  free_registers_ -= more;
  for (Warpgroup& other : warpgroups_) {
    if (other.waits_for_registers != nullptr && other.wanted_registers <= free_registers_)
      set_ready(*other.waits_for_registers);
  }
}

bool Cta::arrive_at_barrier(Instruction instruction, int id, int threads, bool waits,
                            BarrierVotes const& votes, SourceLocation where) {
  Barrier& barrier = barriers_[static_cast<std::size_t>(id)];
  if (barrier.arrived == 0) {
    barrier.expected = threads;
    barrier.votes.op = votes.op;
    barrier.first = where;
  } else if (barrier.votes.op != votes.op) {
    fail(FindingKind::invalid_operand, where, here(-1),
         fmt::format("{} on barrier {} {} here, but who came to it first ({}) {}: all threads of a "
                     "barrier must execute the same reduction, or none",
                     ptx_name(instruction), id, reduction_text(votes.op), place_text(barrier.first),
                     reduction_text(barrier.votes.op)));
  } else if (barrier.expected != threads) {
    fail(FindingKind::invalid_operand, where, here(-1),
         fmt::format("barrier {} counts {} threads here, but {} at {}, where {} have arrived", id,
                     threads, barrier.expected, place_text(barrier.first), barrier.arrived));
  }
  barrier.arrived += 32;
  barrier.votes.voters += votes.voters;
  barrier.votes.votes += votes.votes;
  int const own = current_thread().index / 32;
  if ((barrier.warps >> own & 1) != 0) arrived_twice_[static_cast<std::size_t>(id)] = {own, where};
  barrier.warps |= 1u << own;
  if (cluster_.observed()) observers().barrier_arrived(*this, id);
  if (barrier.arrived < barrier.expected) return false;
  std::uint32_t const waiting = barrier.waiting;
  if (votes.op) {
    auto const result = static_cast<std::uint32_t>(barrier.votes.result());
    for (std::uint32_t rest = waiting | 1u << own; rest != 0; rest &= rest - 1) {
      Warp& other = warp(std::countr_zero(rest));
      std::fill_n(other.result, 32, result);
    }
  }
  if (cluster_.observed()) observers().barrier_completed(*this, id, waiting, waits);
  barrier = {};
  for (std::uint32_t rest = waiting; rest != 0; rest &= rest - 1) {
    Warp& other = warp(std::countr_zero(rest));
    if (cluster_.timed()) observers().barrier_passed(*this, id, other);
    other.barrier = -1;
    set_ready(other, ~other.exited);
  }
  cluster_.progressed();
  return true;
}

}  // namespace tegula::sim
