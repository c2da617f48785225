#include "machine/mbarrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "machine/cluster.hpp"
#include "tegula/io/text.hpp"
#include "values/place.hpp"

/// Mbarriers: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". A phase
/// is complete when no arrival and no byte is pending.
namespace tegula::sim {

namespace {

/// "1 of 2 arrivals and 8192 bytes": what the current phase lacks.
std::string lacking(MbarrierState const& mbarrier) {
  std::string text;
  if (mbarrier.pending != 0)
    text = fmt::format("{} of {}", mbarrier.pending, io::counted(mbarrier.count, "arrival"));
  if (mbarrier.tx > 0) text += (text.empty() ? "" : " and ") + io::counted(mbarrier.tx, "byte");
  text = text.empty() ? "" : "which lacks " + text;
  if (mbarrier.tx < 0)
    text += fmt::format("{} {} more than it expects", text.empty() ? "which has" : " and has",
                        io::counted(-mbarrier.tx, "byte"));
  if (mbarrier.pending != 0 && mbarrier.adds.line != 0)
    text += fmt::format(
        ": a cp.async.mbarrier.arrive ({}) makes an arrival that it has added to the count, and "
        "cp_async_mbarrier_arrive_noinc one of those that init has counted",
        place_text(mbarrier.adds));
  return text;
}

void note_waited(MbarrierState& mbarrier, Thread const& thread) {
  auto const agent = static_cast<std::size_t>(thread.agent);
  if (agent >= mbarrier.waited.size()) mbarrier.waited.resize(agent + 1);
  mbarrier.waited[agent] = true;
}

bool has_waited(MbarrierState const& mbarrier, Thread const& thread) {
  auto const agent = static_cast<std::size_t>(thread.agent);
  return agent < mbarrier.waited.size() && mbarrier.waited[agent];
}

}  // namespace

Visible Cta::at_shared(Visible::Kind kind, std::uint32_t address, std::int64_t amount,
                       int arrivals) const {
  std::uint32_t const tag = address >> kRankShift;
  return {.kind = kind,
          .cta = tag == 0 ? rank_ : static_cast<int>(tag) - 1,
          .address = address & kLocalMask,
          .amount = amount,
          .arrivals = arrivals};
}

MbarrierState* Cta::mbarrier_at(std::uint32_t address) {
  for (auto const& mbarrier : mbarriers_) {
    if (mbarrier->address == address) return mbarrier.get();
  }
  return nullptr;
}

bool Cta::check_mbarrier_address(Instruction instruction, std::uint32_t address,
                                 SourceLocation where) {
  if (!shared_.contains(address, 8)) {
    out_of_shared(instruction, address, 8, where, here());
    return false;
  }
  if (address % 8 != 0) {
    report(FindingKind::misaligned, where, here(), buffer_name(address), shared_place(address),
           fmt::format("{} on an mbarrier at shared address {:#x}, {} past a multiple of 8: {}",
                       ptx_name(instruction), address, io::counted(address % 8, "byte"),
                       shared_place(address)));
    return false;
  }
  return true;
}

MbarrierState* Cta::live_mbarrier(Instruction instruction, std::uint32_t address,
                                  SourceLocation where) {
  MbarrierState* const mbarrier = mbarrier_at(address);
  if (mbarrier != nullptr) [[likely]] {
    if (races_) observers().mbarrier_used(*this, *mbarrier, instruction, where);
    return mbarrier;
  }
  if (!check_mbarrier_address(instruction, address, where)) return nullptr;
  auto const gone = invalidated_.find(address);
  report(FindingKind::mbarrier_misuse, where, here(), buffer_name(address), shared_place(address),
         fmt::format(
             "{} on {}, which is no mbarrier{}", ptx_name(instruction), shared_place(address),
             gone == invalidated_.end()
                 ? std::string(": nobody has initialised it")
                 : fmt::format(
                       " any more: it was invalidated ({}), and nobody has initialised it since",
                       place_text(gone->second))));
  return nullptr;
}

MbarrierState* Cta::own_mbarrier(Instruction instruction, std::uint32_t address,
                                 SourceLocation where) {
  own_address(instruction, address, where);
  return live_mbarrier(instruction, address, where);
}

void Cta::own_address(Instruction instruction, std::uint32_t& address, SourceLocation where) {
  Cta const* const cta = target(instruction, address, where);
  if (cta == nullptr || cta == this) return;
  std::string const what = is_strong(instruction)
                               ? fmt::format("of the CTA's scope on {}", cta->shared_place(address))
                               : fmt::format("on an mbarrier of CTA {} of the cluster", cta->rank_);
  fail(
      FindingKind::invalid_operand, where, here(),
      fmt::format("{} {}: it takes only the CTA's own (shared::cta)", ptx_name(instruction), what));
}

void Cta::remove(MbarrierState const& mbarrier, SourceLocation where) {
  invalidated_[mbarrier.address] = where;
  std::erase_if(mbarriers_, [&](auto const& candidate) { return candidate.get() == &mbarrier; });
}

void Cta::expect_tx(Instruction instruction, MbarrierState& mbarrier, std::int64_t bytes,
                    SourceLocation where) {
  if (bytes < 0 || bytes > kMbarrierLimit) {
    fail(FindingKind::invalid_operand, where, here(),
         fmt::format("{} of {} bytes on {}: it takes 0 to {}", ptx_name(instruction), bytes,
                     shared_place(mbarrier.address), kMbarrierLimit));
  }
  if (check_ && instruction == Instruction::mbarrier_expect_tx && bytes > 0 &&
      mbarrier.pending == 0 && mbarrier.tx > 0 &&
      mbarrier.tx <= in_flight().bytes_for(rank_, mbarrier.address)) {
    report(
        FindingKind::mbarrier_misuse, where, here(), buffer_name(mbarrier.address),
        shared_place(mbarrier.address),
        fmt::format("{} of {} on {} when the phase has had its arrivals, and what it "
                    "expects is in flight: the phase may be over before",
                    ptx_name(instruction), io::counted(bytes, "byte"),
                    shared_place(mbarrier.address)),
        {{}, {-1, -1, -1}, "the expect_tx before the last arrival of the phase would order them"});
  }
  mbarrier.tx += bytes;
  mbarrier.brings |= bytes > 0;
  check_tx(instruction, mbarrier, where, here());
}

/// Reports an mbarrier whose count of bytes has left its range.
void Cta::check_tx(Instruction instruction, MbarrierState const& mbarrier, SourceLocation where,
                   Culprit who) {
  if (std::abs(mbarrier.tx) <= kMbarrierLimit) return;
  report(FindingKind::mbarrier_misuse, where, who, buffer_name(mbarrier.address),
         shared_place(mbarrier.address),
         fmt::format("{} brings {} to {} pending bytes: the count must stay between -{} and {}",
                     ptx_name(instruction), shared_place(mbarrier.address), mbarrier.tx,
                     kMbarrierLimit, kMbarrierLimit));
}

void Cta::arrive(Instruction instruction, MbarrierState& mbarrier, SourceLocation where,
                 bool relaxed, bool wide, int count) {
  cluster_.progressed();
  if (too_many(instruction, mbarrier, count, where, here())) return;
  if (cluster_.observed())
    observers().mbarrier_arrived(*this, mbarrier, instruction, where, relaxed, wide);
  if (instruction != Instruction::mbarrier_arrive_expect_tx &&
      has_waited(mbarrier, current_thread()))
    mbarrier.own_arrival = {here(), where};
  mbarrier.pending -= count;
  complete_phase_if_due(mbarrier);
  land_some();
}

/// Reports more arrivals than the current phase lacks: they do not count.
bool Cta::too_many(Instruction instruction, MbarrierState const& mbarrier, int count,
                   SourceLocation where, Culprit who) {
  if (count <= mbarrier.pending) return false;
  std::string const place = shared_place(mbarrier.address), init = place_text(mbarrier.init);
  std::string const message =
      mbarrier.pending == 0
          ? fmt::format(
                "{} on {}, which has had the {} of a phase that its init ({}) says (it waits for {}): "
                "its count is too small, or this arrival is one too many",
                ptx_name(instruction), place,
                mbarrier.count == 1 ? "one arrival" : fmt::format("{} arrivals", mbarrier.count),
                init, io::counted(mbarrier.tx, "byte"))
          : fmt::format(
                "{} counts {} on {}, whose phase lacks {} of the {} that its init ({}) says: "
                "it takes no more than these",
                ptx_name(instruction), io::counted(count, "arrival"), place, mbarrier.pending,
                mbarrier.count, init);
  report(FindingKind::mbarrier_misuse, where, who, buffer_name(mbarrier.address), place, message,
         mbarrier.init);
  return true;
}

void Cta::arrive(MbarrierState& mbarrier, InFlight& operation, Culprit who) {
  cluster_.progressed();
  if (too_many(operation.instruction, mbarrier, 1, operation.where, who)) {
    in_flight().retire(operation, true);
    return;
  }
  mbarrier.landed.push_back({&operation, mbarrier.phase});
  if (cluster_.observed()) observers().copies_arrived(*this, mbarrier, operation);
  --mbarrier.pending;
  complete_phase_if_due(mbarrier);
}

void Cta::expect_arrival(Instruction instruction, MbarrierState& mbarrier, SourceLocation where) {
  if (mbarrier.pending < kMbarrierLimit) {
    ++mbarrier.pending;
    mbarrier.adds = where;
    return;
  }
  report(FindingKind::mbarrier_misuse, where, here(), buffer_name(mbarrier.address),
         shared_place(mbarrier.address),
         fmt::format("{} brings {} to more than {} pending arrivals", ptx_name(instruction),
                     shared_place(mbarrier.address), kMbarrierLimit));
}

void Cta::complete_tx(MbarrierState& mbarrier, std::int64_t bytes, InFlight* operation,
                      SourceLocation where, Culprit who) {
  cluster_.progressed();
  mbarrier.tx -= bytes;
  if (operation != nullptr) mbarrier.landed.push_back({operation, mbarrier.phase});
  if (cluster_.observed()) observers().bytes_completed(*this, mbarrier, operation);
  check_tx(operation != nullptr ? operation->instruction : Instruction::mbarrier_complete_tx,
           mbarrier, where, who);
  complete_phase_if_due(mbarrier);
}

void Cta::complete_phase_if_due(MbarrierState& mbarrier) {
  if (mbarrier.pending != 0 || mbarrier.tx != 0) return;
  ++mbarrier.phase;
  mbarrier.pending = mbarrier.count;
  if (cluster_.observed()) observers().phase_completed(*this, mbarrier);
  wake(mbarrier);
}

/// The phase is over: those that wait for it go on.
void Cta::wake(MbarrierState& mbarrier) {
  if (!mbarrier.waiters.empty()) passed(mbarrier);
  for (Thread* const thread : mbarrier.waiters) {
    note_waited(mbarrier, *thread);
    if (cluster_.observed())
      observers().phase_passed(*this, mbarrier, *thread, thread->mbarrier_where, thread->relaxed);
    thread->mbarrier = nullptr;
    set_ready(*thread);
  }
  mbarrier.waiters.clear();
}

/// A thread of the CTA has waited for the last phase that is complete: it comes after all that
/// counted for it, and what landed in it may be touched.
void Cta::passed(MbarrierState& mbarrier) {
  std::erase_if(mbarrier.landed, [&](Landed const& landed) {
    if (landed.phase >= mbarrier.phase) return false;
    in_flight().retire(*landed.operation);
    return true;
  });
}

void Cta::forget(MbarrierState& mbarrier) {
  wake(mbarrier);
  for (Landed const& landed : mbarrier.landed) in_flight().retire(*landed.operation);
  mbarrier.landed.clear();
}

void Cta::land_some() {
  if (cluster_.completion() == Completion::random && !in_flight().empty())
    in_flight().land_at_random();
}

bool Cta::complete(MbarrierState& mbarrier, int parity) {
  if ((mbarrier.phase & 1) == parity) return false;
  if (!mbarrier.landed.empty()) passed(mbarrier);
  return true;
}

void Cta::pass_phase(MbarrierState& mbarrier, SourceLocation where, bool relaxed) {
  note_waited(mbarrier, current_thread());
  if (cluster_.observed())
    observers().phase_passed(*this, mbarrier, current_thread(), where, relaxed);
}

/// A thread that waits by try_wait returns with the phase incomplete. False where none does.
bool Cta::one_gives_up() {
  for (auto const& mbarrier : mbarriers_) {
    for (auto waiter = mbarrier->waiters.begin(); waiter != mbarrier->waiters.end(); ++waiter) {
      Thread& thread = **waiter;
      if (!thread.tries) continue;
      mbarrier->waiters.erase(waiter);
      thread.mbarrier = nullptr;
      thread.gave_up = true;
      set_ready(thread);
      return true;
    }
  }
  return false;
}

/// Threads that can run, and test the mbarrier again and again.
std::vector<Thread*> Cta::testers(MbarrierState const& mbarrier) const {
  std::vector<Thread*> found;
  for (Warp const& warp : warps_) {
    for (std::uint32_t lanes = warp.ready; lanes != 0; lanes &= lanes - 1) {
      Thread& thread = this->thread(warp, std::countr_zero(lanes));
      if (thread.tests == mbarrier.address) found.push_back(&thread);
    }
  }
  return found;
}

/// A clause for each line on which some of the threads wait at the mbarrier, or test it.
void Cta::add_waiters(MbarrierState const& mbarrier, std::vector<Thread*> rest, bool wait,
                      std::vector<std::string>& clauses) const {
  SourceLocation Thread::*const place = wait ? &Thread::mbarrier_where : &Thread::read_where;
  while (!rest.empty()) {
    SourceLocation const where = rest.front()->*place;
    std::array<std::uint32_t, 32> lanes = {};
    std::erase_if(rest, [&](Thread const* thread) {
      if (!same_place(thread->*place, where)) return false;
      lanes[static_cast<std::size_t>(thread->index / 32)] |= 1u << thread->lane;
      return true;
    });
    // Warps of which the same lanes wait are told together.
    for (std::size_t w = 0; w < 32; ++w) {
      if (lanes[w] == 0) continue;
      std::uint32_t const bits = lanes[w];
      std::uint32_t warps = 0;
      for (std::size_t v = w; v < 32; ++v) {
        if (lanes[v] != bits) continue;
        warps |= 1u << v;
        lanes[v] = 0;
      }
      std::string const who = bits == kFullWarp
                                  ? warps_text(warps)
                                  : fmt::format("{} of {}", lanes_text(bits), warps_text(warps));
      bool const one =
          std::has_single_bit(warps) && (bits == kFullWarp || std::has_single_bit(bits));
      std::string const does =
          fmt::format("{}{}{}", wait ? "wait" : "test", one ? "s" : "", wait ? " at" : "");
      clauses.push_back(fmt::format("{} {} mbarrier {} ({}) for the phase of parity {}, {}", who,
                                    does, own_place(mbarrier.address), place_text(where),
                                    mbarrier.phase % 2, lacking(mbarrier)));
    }
  }
}

void Cta::mbarrier_waiters(std::vector<std::string>& clauses) const {
  for (auto const& mbarrier : mbarriers_) {
    add_waiters(*mbarrier, mbarrier->waiters, true, clauses);
    add_waiters(*mbarrier, testers(*mbarrier), false, clauses);
  }
  // Whoever brings the bytes makes the one arrival: another one, of a thread that waits for them,
  // is mostly meant for the mbarrier that gives their place back.
  for (auto const& mbarrier : mbarriers_) {
    if (mbarrier->own_arrival.where.line == 0 || !mbarrier->brings || mbarrier->count != 1)
      continue;
    auto const& [who, where] = mbarrier->own_arrival;
    clauses.push_back(fmt::format(
        "warp {} lane {}{} has arrived on mbarrier {} ({}), whose bytes it waits for itself",
        who.warp, who.lane,
        who.cta == rank_ ? "" : fmt::format(" of CTA {} of the cluster", who.cta),
        own_place(mbarrier->address), place_text(where)));
  }
  // Bytes that somebody may be waiting for elsewhere.
  for (auto const& mbarrier : mbarriers_) {
    std::int64_t const more =
        cluster_.in_flight().bytes_for(rank_, mbarrier->address) - mbarrier->tx;
    if (more > 0 && mbarrier->waiters.empty())
      clauses.push_back(fmt::format("mbarrier {} gets {} more than it expects",
                                    own_place(mbarrier->address), io::counted(more, "byte")));
  }
}

}  // namespace tegula::sim
