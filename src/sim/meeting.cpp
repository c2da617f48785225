#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "access_limits.hpp"
#include "cluster.hpp"
#include "explorer.hpp"
#include "place.hpp"
#include "tegula/sim/arithmetic.hpp"

/// Warp-wide instructions and barriers: how lanes meet, and what the last one does for all.
namespace tegula::sim {

namespace {

/// Whether the instruction must be the same one, on the same source line, for all 32 lanes (PTX: .aligned).
/// The others join lanes of one mask wherever they execute it, without the lanes that have exited.
bool aligned(Instruction instruction) {
  switch (instruction) {
    case Instruction::ldmatrix:
    case Instruction::mma_sync:
    case Instruction::bar_sync:
    case Instruction::bar_arrive:
    case Instruction::stmatrix:
    case Instruction::cluster_arrive:
    case Instruction::cluster_wait:
    case Instruction::setmaxnreg:
    case Instruction::wgmma_fence:
    case Instruction::wgmma_mma_async:
    case Instruction::wgmma_commit_group:
    case Instruction::wgmma_wait_group:
      return true;
    default:
      return false;
  }
}

}  // namespace

[[gnu::always_inline]] inline bool Cta::join(Instruction instruction, std::uint32_t variant,
                                             std::uint32_t mask, Where where) {
  Warp& own = current_warp();
  std::uint32_t const self = 1u << current_thread().lane;
  if ((mask & self) == 0) {
    fail(FindingKind::invalid_operand, where, here(),
         fmt::format("{} is executed by a lane that its mask {:#010x} leaves out", ptx_name(instruction),
                     mask));
  }
  for (int i = 0; i < own.meetings; ++i) {
    Meeting& meeting = own.meeting[static_cast<std::size_t>(i)];
    if (meeting.lanes == mask && meeting.instruction == instruction && meeting.variant == variant &&
        (!aligned(instruction) || same_place(meeting.where, where))) {
      meeting.arrived |= self;
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

bool Cta::meet(Instruction instruction, std::uint32_t variant, std::uint32_t mask, Where where) {
  if (!join(instruction, variant, mask, where)) return false;
  if (Explorer* const explorer = cluster_.explorer())
    explorer->met(*this, current_warp(), mask & ~current_warp().exited);
  if (Timeline* const time = cluster_.timeline()) {
    Warp const& own = current_warp();
    time->meet(rank_, 32 * own.index, mask & ~own.exited);
    cluster_.wait_for_clock();
  }
  return true;
}

void Cta::release(std::uint32_t mask, Where where, Instruction instruction) {
  Warp& own = current_warp();
  cluster_.progressed();
  if (count_) {
    line(where, instruction).instructions += 1;
    if (mask == kFullWarp && !own.log.empty()) flush_log(own);
  }
  set_ready(own, mask & ~own.exited);
  if (Timeline* const time = cluster_.timeline()) {
    for (std::uint32_t lanes = mask & ~own.exited; lanes != 0; lanes &= lanes - 1)
      time->execute(rank_, 32 * own.index + std::countr_zero(lanes), instruction, where);
  }
  if (cluster_.completion() == Completion::random) land_at_random(own);
  cluster_.pass_turn_between_warps();
}

bool Cta::meet_warpgroup(Instruction instruction, std::uint32_t variant, Where where) {
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
         fmt::format("{} needs all warps of the warpgroup, but threads of {} exited", ptx_name(instruction),
                     warps_text(gone)));
  }
  if (group.arrived == 0) {
    group.instruction = instruction;
    group.variant = variant;
    group.where = where;
  } else if (group.instruction != instruction || group.variant != variant ||
             !same_place(group.where, where)) {
    std::uint32_t const waiting = group.arrived << first;
    report(FindingKind::divergence, where, here(-1), "", "",
           fmt::format(
               "{} is not executed by the warps of the warpgroup together: warp {} is at it{}, but {} wait{} "
               "for it at {} ({})",
               ptx_name(instruction), own.index,
               group.instruction == instruction && same_place(group.where, where)
                   ? fmt::format(" with operand {}, where theirs is {}", variant, group.variant)
                   : "",
               warps_text(waiting), std::has_single_bit(waiting) ? "s" : "", ptx_name(group.instruction),
               place_text(group.where)),
           group.where);
    cluster_.abort();
  }
  group.arrived |= 1u << (own.index - first);
  if (group.arrived == 0xf) {
    group.arrived = 0;
    if (Explorer* const explorer = cluster_.explorer()) explorer->met_warpgroup(*this, first);
    if (Timeline* const time = cluster_.timeline()) {
      time->meet_all(rank_, 32 * first, 128);
      cluster_.wait_for_clock();
    }
    return true;
  }
  if (count_) flush_log(own);
  cluster_.block();
  return false;
}

void Cta::release_warpgroup(Where where, Instruction instruction) {
  int const first = current_warp().index / 4 * 4;
  cluster_.progressed();
  if (count_) line(where, instruction).instructions += 4;
  for (int w = first; w < first + 4; ++w) {
    if (count_) flush_log(warp(w));
    set_ready(warp(w), kFullWarp);
  }
  if (Timeline* const time = cluster_.timeline()) {
    for (int thread = 32 * first; thread < 32 * first + 128; ++thread)
      time->execute(rank_, thread, instruction, where);
  }
  if (cluster_.completion() == Completion::random) land_at_random(current_warp());
  cluster_.pass_turn_between_warps();
}

void Cta::pass_warp(TimeGate const& gate, std::int64_t phase, Warp const& warp, Where where) {
  Timeline* const time = cluster_.timeline();
  for (int lane = 0; lane < 32; ++lane) time->pass(gate, phase, rank_, 32 * warp.index + lane, where);
}

void Cta::wait_warpgroup_until(double time, char const* name, Where where) {
  int const first = thread_index() / 128 * 128;
  for (int thread = first; thread < first + 128; ++thread)
    cluster_.timeline()->wait_until(time, rank_, thread, name, where);
}

void Cta::flush_log(Warp& warp) {
  if (warp.log.empty()) return;
  warp.log.flush([&](AccessLog::Record const& r) {
    AccessUse const use = count_access(cluster_.counters(), r);
    WarpAccess const access{warp.index, r.site.instruction, r.site.where, r.lanes, r.site.shared_bytes};
    if (limits_.bank_conflicts >= 0 && use.banks.wavefronts - use.banks.minimum > limits_.bank_conflicts)
      report_conflicts(*this, access, r.shared, use.banks, limits_.bank_conflicts);
    if (limits_.excess_sectors >= 0 && use.sectors.touched - use.sectors.needed > limits_.excess_sectors) {
      WarpAccess const global{access.warp, access.instruction, access.where, r.global_lanes,
                              use.global_bytes};
      report_sectors(*this, global, r.global, use.sectors, limits_.excess_sectors);
    }
  });
}

void Cta::diverged(Meeting const& meeting, Instruction instruction, std::uint32_t variant, std::uint32_t mask,
                   Where where) {
  std::string what;
  if (meeting.instruction == instruction && same_place(meeting.where, where)) {
    what = meeting.lanes != mask
               ? fmt::format("with mask {:#010x}, where their mask is {:#010x}", mask, meeting.lanes)
               : fmt::format("with operand {}, where theirs is {}", variant, meeting.variant);
  } else {
    what = fmt::format("but {} {} for it at {} ({})", lanes_text(meeting.arrived),
                       std::has_single_bit(meeting.arrived) ? "waits" : "wait", ptx_name(meeting.instruction),
                       place_text(meeting.where));
  }
  report(FindingKind::divergence, where, here(), "", "",
         fmt::format("{} is not executed by the lanes of the warp together: {} is at it, {}",
                     ptx_name(instruction), lanes_text(1u << current_thread().lane), what),
         meeting.where);
  cluster_.abort();
}

/// A lane has returned from the kernel. Lanes that wait for it at an aligned instruction never meet it;
/// elsewhere they need it no longer, and if nobody else is missing one of them completes the instruction.
void Cta::check_exit(Warp& warp) {
  Warpgroup const& group = warpgroups_[static_cast<std::size_t>(warp.index / 4)];
  if (group.arrived != 0) {
    std::uint32_t const waiting = group.arrived << (warp.index / 4 * 4);
    fail(FindingKind::divergence, group.where, {rank_, std::countr_zero(waiting), -1},
         fmt::format(
             "{} needs all warps of the warpgroup, but a thread of warp {} exited while {} wait{} there",
             ptx_name(group.instruction), warp.index, warps_text(waiting),
             std::has_single_bit(waiting) ? "s" : ""));
  }
  for (int i = 0; i < warp.meetings; ++i) {
    Meeting const meeting = warp.meeting[static_cast<std::size_t>(i)];
    if (aligned(meeting.instruction)) {
      fail(FindingKind::divergence, meeting.where, {rank_, warp.index, std::countr_zero(meeting.arrived)},
           fmt::format("{} needs all lanes of the warp, but {} exited while {} wait{} there",
                       ptx_name(meeting.instruction), lanes_text(warp.exited), lanes_text(meeting.arrived),
                       std::has_single_bit(meeting.arrived) ? "s" : ""));
    }
    if (meeting.arrived != (meeting.lanes & ~warp.exited)) continue;
    std::uint32_t const first = meeting.arrived & ~(meeting.arrived - 1);
    warp.completes |= first;
    set_ready(warp, first);
    warp.meeting[static_cast<std::size_t>(i--)] = warp.meeting[static_cast<std::size_t>(--warp.meetings)];
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
      Where const& where = warp(w).barrier_where;
      std::uint32_t same = 0;
      for (int v = w; v < warps; ++v) {
        if ((barrier.waiting >> v & 1) != 0 && same_place(warp(v).barrier_where, where)) same |= 1u << v;
      }
      told |= same;
      clauses.push_back(fmt::format("{} wait{} at barrier {} ({}), where {} of {} threads have arrived",
                                    warps_text(same), std::has_single_bit(same) ? "s" : "", id,
                                    place_text(where), barrier.arrived, barrier.expected));
    }
  }
  mbarrier_waiters(clauses);
  std::uint32_t at_cluster = 0;
  for (int w = 0; w < warps; ++w) {
    if (warp(w).waits_at_cluster) at_cluster |= 1u << w;
  }
  if (at_cluster != 0) {
    clauses.push_back(fmt::format("{} wait{} at the cluster's barrier ({}), {}", warps_text(at_cluster),
                                  std::has_single_bit(at_cluster) ? "s" : "",
                                  place_text(warp(std::countr_zero(at_cluster)).cluster_where),
                                  cluster_.barrier_text()));
  }
  for (std::size_t g = 0; g < warpgroups_.size(); ++g) {
    Warpgroup const& group = warpgroups_[g];
    if (group.arrived == 0) continue;
    std::uint32_t const waiting = group.arrived << (4 * g);
    clauses.push_back(fmt::format("{} wait{} at {} ({}) for {}", warps_text(waiting),
                                  std::has_single_bit(waiting) ? "s" : "", ptx_name(group.instruction),
                                  place_text(group.where), warps_text((0xfu << (4 * g)) & ~waiting)));
  }
  for (std::size_t g = 0; g < warpgroups_.size(); ++g) {
    Warpgroup const& group = warpgroups_[g];
    if (group.waits_for_registers == nullptr) continue;
    clauses.push_back(fmt::format(
        "warpgroup {} waits at setmaxnreg ({}) for {} registers more, where {} of the CTA's {} are free", g,
        place_text(group.wants_registers_where), group.wanted_registers, free_registers_, registers_));
  }
  for (int w = 0; w < warps; ++w) {
    Warp const& warp = this->warp(w);
    if (warp.exited == kFullWarp) exited_warps |= 1u << w;
    for (int i = 0; i < warp.meetings; ++i) {
      Meeting const& meeting = warp.meeting[static_cast<std::size_t>(i)];
      clauses.push_back(fmt::format("{} of warp {} wait{} at {} ({}) for {}", lanes_text(meeting.arrived), w,
                                    std::has_single_bit(meeting.arrived) ? "s" : "",
                                    ptx_name(meeting.instruction), place_text(meeting.where),
                                    lanes_text(meeting.lanes & ~meeting.arrived)));
    }
  }
  for (int w = 0; w < warps; ++w) {
    std::uint32_t const ready = warp(w).ready;
    if (ready == 0) continue;
    Thread const& first = thread(warp(w), std::countr_zero(ready));
    std::string const what =
        first.last_read != nullptr ? cluster_.global_races().polled_text(first.last_read) : std::string();
    clauses.push_back(fmt::format("{} of warp {} read{} at {}{}{}", lanes_text(ready), w,
                                  std::has_single_bit(ready) ? "s" : "", place_text(first.read_where),
                                  what.empty() ? "" : ": ", what));
  }
  if (exited_warps != 0) clauses.push_back(fmt::format("{} exited", warps_text(exited_warps)));
  return clauses;
}

Where Cta::waiting_place() const {
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
  return {};
}

namespace {

std::uint32_t load32(unsigned char const* p) {
  std::uint32_t v = 0;
  std::memcpy(&v, p, 4);
  return v;
}
std::uint32_t load16(unsigned char const* p) {
  std::uint16_t v = 0;
  std::memcpy(&v, p, 2);
  return v;
}

}  // namespace

/// Counts an ldmatrix or stmatrix whose lanes have left the rows' addresses in `operand`.
void Cta::count_matrices(Instruction instruction, int count, Where where) {
  if (!count_) return;
  LineCounters& line = this->line(where, instruction);
  std::uint32_t const lanes = count == 4 ? kFullWarp : (1u << (8 * count)) - 1;
  BankUse const use = bank_use(current_warp().operand, lanes, 16);
  line.shared_bytes += 128 * count;
  line.shared_wavefronts += use.wavefronts;
  line.bank_conflicts += use.wavefronts - use.minimum;
  if (limits_.bank_conflicts >= 0 && use.wavefronts - use.minimum > limits_.bank_conflicts)
    report_conflicts(*this, {current_warp().index, instruction, where, lanes, 16}, current_warp().operand,
                     use, limits_.bank_conflicts);
}

void Cta::ldmatrix(std::uint32_t* registers, int count, bool transpose, std::uint32_t row, Where where) {
  Warp& own = current_warp();
  int const lane = current_thread().lane;
  own.operand[lane] = row;
  if (meet(Instruction::ldmatrix, static_cast<std::uint32_t>(2 * count + (transpose ? 1 : 0)), kFullWarp,
           where)) {
    count_matrices(Instruction::ldmatrix, count, where);
    for (int matrix = 0; matrix < count; ++matrix) {
      unsigned char const* rows[8];
      static constexpr unsigned char kNobody[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
      for (int r = 0; r < 8; ++r) {
        int const giver = 8 * matrix + r;
        std::uint32_t const address = own.operand[giver];
        if (!shared_matrix_row(Instruction::ldmatrix, address, false, transpose, r, where, giver)) {
          rows[r] = kNobody;
          continue;
        }
        rows[r] = shared_.at(address);
      }
      for (int l = 0; l < 32; ++l) {
        own.d[l][matrix] = transpose ? load16(rows[2 * (l % 4)] + 2 * (l / 4)) |
                                           load16(rows[2 * (l % 4) + 1] + 2 * (l / 4)) << 16
                                     : load32(rows[l / 4] + 4 * (l % 4));
      }
    }
    release(kFullWarp, where, Instruction::ldmatrix);
  }
  std::memcpy(registers, own.d[lane], sizeof(std::uint32_t) * static_cast<std::size_t>(count));
}

void Cta::mma_sync(WarpMma const& op, void* d, std::uint32_t const* a, std::uint32_t const* b, void const* c,
                   Where where) {
  Warp& own = current_warp();
  int const lane = current_thread().lane;
  std::memcpy(own.a[lane], a, op.a_bytes);
  std::memcpy(own.b[lane], b, op.b_bytes);
  std::memcpy(own.c[lane], c, op.c_bytes);
  if (meet(Instruction::mma_sync, op.variant, kFullWarp, where)) {
    mma_sync_warp(op.spec, generation_, own.a, own.b, own.c, own.d);
    int const multiply_adds = 16 * 8 * op.spec.k;
    if (Timeline* const time = cluster_.timeline())
      time->mma_sync(rank_, 32 * own.index, multiply_adds, where);
    if (count_) line(where, Instruction::mma_sync).fused_multiply_adds += multiply_adds;
    release(kFullWarp, where, Instruction::mma_sync);
  }
  std::memcpy(d, own.d[lane], op.c_bytes);
}

std::uint32_t Cta::shfl(ShuffleMode mode, std::uint32_t value, int lane_operand, std::uint32_t mask,
                        Where where) {
  Warp& own = current_warp();
  int const lane = current_thread().lane;
  own.value[lane] = value;
  own.operand[lane] = static_cast<std::uint32_t>(lane_operand);
  if (meet(Instruction::shfl_sync, static_cast<std::uint32_t>(mode), mask, where)) {
    std::uint32_t const live = mask & ~own.exited;
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1) {
      int const l = std::countr_zero(rest);
      int const operand = static_cast<int>(own.operand[l] & 31);
      int source = operand;
      switch (mode) {
        case ShuffleMode::idx:
          break;
        case ShuffleMode::bfly:
          source = l ^ operand;
          break;
        case ShuffleMode::up:
          source = l >= operand ? l - operand : l;
          break;
        case ShuffleMode::down:
          source = l + operand < 32 ? l + operand : l;
          break;
      }
      if ((live >> source & 1) == 0) {
        report(FindingKind::invalid_operand, where, here(l), "", "",
               fmt::format("shfl.sync reads lane {}, which {}", source,
                           (mask >> source & 1) == 0 ? fmt::format("its mask {:#010x} leaves out", mask)
                                                     : "has exited"));
      }
      own.result[l] = own.value[source];
    }
    release(mask, where, Instruction::shfl_sync);
  }
  return own.result[lane];
}

std::uint32_t Cta::ballot(bool predicate, std::uint32_t mask, bool exited, Where where) {
  Warp& own = current_warp();
  int const lane = current_thread().lane;
  own.value[lane] = predicate ? 1 : 0;
  if (meet(Instruction::vote_sync, exited ? 1 : 0, mask, where)) {
    std::uint32_t const live = mask & ~own.exited;
    std::uint32_t votes = exited ? mask & own.exited : 0;
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1) {
      votes |= own.value[std::countr_zero(rest)] << std::countr_zero(rest);
    }
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1) own.result[std::countr_zero(rest)] = votes;
    release(mask, where, Instruction::vote_sync);
  }
  return own.result[lane];
}

std::uint32_t Cta::redux(ReduxOp op, std::uint32_t value, std::uint32_t mask, Where where) {
  Warp& own = current_warp();
  int const lane = current_thread().lane;
  own.value[lane] = value;
  if (meet(Instruction::redux_sync, static_cast<std::uint32_t>(op), mask, where)) {
    std::uint32_t const live = mask & ~own.exited;
    std::uint32_t total = own.value[std::countr_zero(live)];
    for (std::uint32_t rest = live & (live - 1); rest != 0; rest &= rest - 1) {
      std::uint32_t const v = own.value[std::countr_zero(rest)];
      auto const as_signed = [](std::uint32_t x) { return static_cast<std::int32_t>(x); };
      switch (op) {
        case ReduxOp::add:
          total += v;
          break;
        case ReduxOp::min_s32:
          total = as_signed(v) < as_signed(total) ? v : total;
          break;
        case ReduxOp::min_u32:
          total = std::min(v, total);
          break;
        case ReduxOp::max_s32:
          total = as_signed(v) > as_signed(total) ? v : total;
          break;
        case ReduxOp::max_u32:
          total = std::max(v, total);
          break;
      }
    }
    for (std::uint32_t rest = live; rest != 0; rest &= rest - 1) own.result[std::countr_zero(rest)] = total;
    release(mask, where, Instruction::redux_sync);
  }
  return own.result[lane];
}

void Cta::warp_sync(std::uint32_t mask, Where where) {
  if (!meet(Instruction::bar_warp_sync, 0, mask, where)) return;
  // PTX ISA, bar.warp.sync: "guarantees memory ordering among participating threads".
  if (races_) cluster_.causality().synchronize(agent(0), mask & ~current_warp().exited);
  release(mask, where, Instruction::bar_warp_sync);
}

void Cta::bar(Instruction instruction, int id, int threads, Where where) {
  if (id < 0 || id >= kBarriers) {
    fail(FindingKind::invalid_operand, where, here(),
         fmt::format("barrier {} does not exist: there are 16, from 0", id));
  }
  if (threads <= 0 || threads % 32 != 0 || threads > this->threads()) {
    fail(
        FindingKind::invalid_operand, where, here(),
        fmt::format(
            "{} on barrier {} counts {} threads: the count must be a multiple of 32, at least 32 and at most the CTA's {}",
            ptx_name(instruction), id, threads, this->threads()));
  }
  if (!meet(instruction, static_cast<std::uint32_t>(id) << 16 | static_cast<std::uint32_t>(threads),
            kFullWarp, where))
    return;
  cluster_.before(
      {instruction == Instruction::bar_sync ? Visible::Kind::barrier_sync : Visible::Kind::barrier, rank_,
       static_cast<std::uint64_t>(id), threads});
  Warp& own = current_warp();
  // PTX ISA, bar: bar.sync orders the accesses before it of all participating threads, those that arrive by
  // bar.arrive too, before those that follow; bar.arrive itself waits for nothing.
  if (races_)
    cluster_.causality().release(agent(0), kFullWarp, barriers_[static_cast<std::size_t>(id)].arrived_with);
  bool const complete = arrive_at_barrier(id, threads, instruction == Instruction::bar_sync, where);
  if (complete || instruction == Instruction::bar_arrive) {
    release(kFullWarp, where, instruction);
    return;
  }
  own.barrier = id;
  own.barrier_where = where;
  barriers_[static_cast<std::size_t>(id)].waiting |= 1u << own.index;
  if (count_) {
    line(where, instruction).instructions += 1;
    flush_log(own);
  }
  cluster_.block();
}

/// A warp arrives. True where it is the last one expected: the barrier is then free for its next use, and
/// those that wait go on.
bool Cta::arrive_at_barrier(int id, int threads, bool waits, Where where) {
  Barrier& barrier = barriers_[static_cast<std::size_t>(id)];
  if (barrier.arrived == 0) {
    barrier.expected = threads;
    barrier.first = where;
  } else if (barrier.expected != threads) {
    fail(FindingKind::invalid_operand, where, here(-1),
         fmt::format("barrier {} counts {} threads here, but {} at {}, where {} have arrived", id, threads,
                     barrier.expected, place_text(barrier.first), barrier.arrived));
  }
  barrier.arrived += 32;
  Timeline* const time = cluster_.timeline();
  if (time != nullptr) time->barrier(rank_, id).arrive(time->clock(rank_, thread_index()));
  if (barrier.arrived < barrier.expected) return false;
  std::uint32_t const waiting = barrier.waiting;
  if (races_) {
    Causality& causality = cluster_.causality();
    if (waits) causality.acquire(agent(0), kFullWarp, barrier.arrived_with);
    for (std::uint32_t rest = waiting; rest != 0; rest &= rest - 1)
      causality.acquire(rank_ * this->threads() + 32 * std::countr_zero(rest), kFullWarp,
                        barrier.arrived_with);
  }
  barrier = {};
  if (time != nullptr) time->barrier(rank_, id).open();
  for (std::uint32_t rest = waiting; rest != 0; rest &= rest - 1) {
    Warp& other = warp(std::countr_zero(rest));
    if (time != nullptr) {
      TimeGate const& gate = time->barrier(rank_, id);
      pass_warp(gate, gate.phase() - 1, other, other.barrier_where);
    }
    other.barrier = -1;
    set_ready(other, kFullWarp);
  }
  cluster_.progressed();
  return true;
}

}  // namespace tegula::sim
