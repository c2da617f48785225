#include "machine/mbarrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "machine/cluster.hpp"
#include "values/place.hpp"

/// Mbarriers: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". A phase is
/// complete when no arrival and no byte is pending.
namespace tegula::sim {

namespace {

/// "1 of 2 arrivals and 8192 bytes": what the current phase lacks.
std::string lacking(MbarrierState const& mbarrier) {
  std::string text;
  if (mbarrier.pending != 0) text = fmt::format("{} of {} arrivals", mbarrier.pending, mbarrier.count);
  if (mbarrier.tx > 0) text += fmt::format("{}{} bytes", text.empty() ? "" : " and ", mbarrier.tx);
  text = text.empty() ? "" : "which lacks " + text;
  if (mbarrier.tx < 0)
    text += fmt::format("{} {} bytes more than it expects", text.empty() ? "which has" : " and has",
                        -mbarrier.tx);
  return text;
}

}  // namespace

Visible Cta::at_shared(Visible::Kind kind, std::uint32_t address, std::int64_t amount) const {
  std::uint32_t const tag = address >> kRankShift;
  return {kind, tag == 0 ? rank_ : static_cast<int>(tag) - 1, address & kLocalMask, amount};
}

MbarrierState* Cta::mbarrier_at(std::uint32_t address) {
  for (auto const& mbarrier : mbarriers_) {
    if (mbarrier->address == address) return mbarrier.get();
  }
  return nullptr;
}

/// Checks the address of an mbarrier. False, after a finding, where it can be none.
bool Cta::check_mbarrier_address(Instruction instruction, std::uint32_t address, Where where) {
  if (!shared_.contains(address, 8)) {
    out_of_shared(instruction, address, 8, where, here());
    return false;
  }
  if (address % 8 != 0) {
    report(FindingKind::misaligned, where, here(), buffer_name(address), shared_place(address),
           fmt::format("{} on an mbarrier at shared address {:#x}, {} bytes past a multiple of 8: {}",
                       ptx_name(instruction), address, address % 8, shared_place(address)));
    return false;
  }
  return true;
}

/// The mbarrier of this CTA at the address; null, after a finding, where there is none.
MbarrierState* Cta::live_mbarrier(Instruction instruction, std::uint32_t address, Where where) {
  MbarrierState* const mbarrier = mbarrier_at(address);
  if (mbarrier != nullptr) [[likely]] {
    if (races_) observers().mbarrier_used(*this, *mbarrier, instruction, where);
    return mbarrier;
  }
  if (!check_mbarrier_address(instruction, address, where)) return nullptr;
  report(FindingKind::mbarrier_misuse, where, here(), buffer_name(address), shared_place(address),
         fmt::format("{} on {}, which is no mbarrier: nobody has initialised it", ptx_name(instruction),
                     shared_place(address)));
  return nullptr;
}

/// Likewise, for instructions that take no other CTA's mbarrier.
MbarrierState* Cta::own_mbarrier(Instruction instruction, std::uint32_t address, Where where) {
  own_address(instruction, address, where);
  return live_mbarrier(instruction, address, where);
}

void Cta::own_address(Instruction instruction, std::uint32_t& address, Where where) {
  Cta const* const cta = target(instruction, address, where);
  if (cta != nullptr && cta != this) {
    fail(FindingKind::invalid_operand, where, here(),
         fmt::format("{} on an mbarrier of CTA {} of the cluster: it takes only the CTA's own (shared::cta)",
                     ptx_name(instruction), cta->rank_));
  }
}

void Cta::mbarrier_init(std::uint32_t address, int count, Where where) {
  note(Instruction::mbarrier_init, where);
  cluster_.before(at_shared(Visible::Kind::mbarrier_init, address, count));
  own_address(Instruction::mbarrier_init, address, where);
  if (count < 1 || count > kMbarrierLimit) {
    fail(FindingKind::invalid_operand, where, here(),
         fmt::format("mbarrier.init of {} for {} arrivals: the count must be 1 to {}", shared_place(address),
                     count, kMbarrierLimit));
  }
  if (!check_mbarrier_address(Instruction::mbarrier_init, address, where)) return;
  MbarrierState* mbarrier = mbarrier_at(address);
  bool const again = mbarrier != nullptr;
  if (again) {
    report(FindingKind::mbarrier_misuse, where, here(), buffer_name(address), shared_place(address),
           fmt::format("mbarrier.init of {}, which is an mbarrier already ({}): it must be invalidated first",
                       shared_place(address), place_text(mbarrier->init)),
           mbarrier->init);
    forget(*mbarrier);
  } else {
    mbarrier = mbarriers_.emplace_back(std::make_unique<MbarrierState>()).get();
  }
  mbarrier->address = address;
  mbarrier->init = where;
  mbarrier->initialiser = current_thread().agent;
  mbarrier->number = mbarriers_initialised_++;
  mbarrier->count = count;
  mbarrier->pending = count;
  mbarrier->tx = 0;
  mbarrier->phase = 0;
  if (cluster_.observed()) observers().mbarrier_initialised(*this, *mbarrier, again);
  cluster_.progressed();
}

void Cta::mbarrier_inval(std::uint32_t address, Where where) {
  note(Instruction::mbarrier_inval, where);
  cluster_.before(at_shared(Visible::Kind::mbarrier_inval, address));
  MbarrierState* const mbarrier = own_mbarrier(Instruction::mbarrier_inval, address, where);
  if (mbarrier == nullptr) return;
  address = mbarrier->address;
  if (!mbarrier->waiters.empty() || in_flight().completes_on(rank_, address)) {
    report(FindingKind::mbarrier_misuse, where, here(), buffer_name(address), shared_place(address),
           fmt::format("mbarrier.inval of {} while {}", shared_place(address),
                       mbarrier->waiters.empty() ? "an operation in flight is to complete on it"
                                                 : "threads wait at it"));
  }
  if (check_) observers().mbarrier_invalidated(*this, *mbarrier, where);
  forget(*mbarrier);
  mbarriers_.erase(std::find_if(mbarriers_.begin(), mbarriers_.end(),
                                [&](auto const& candidate) { return candidate.get() == mbarrier; }));
}

void Cta::expect_tx(Instruction instruction, MbarrierState& mbarrier, std::int64_t bytes, Where where) {
  if (bytes < 0 || bytes > kMbarrierLimit) {
    fail(FindingKind::invalid_operand, where, here(),
         fmt::format("{} of {} bytes on {}: it takes 0 to {}", ptx_name(instruction), bytes,
                     shared_place(mbarrier.address), kMbarrierLimit));
  }
  mbarrier.tx += bytes;
  check_tx(instruction, mbarrier, where, here());
}

/// Reports an mbarrier whose count of bytes has left its range.
void Cta::check_tx(Instruction instruction, MbarrierState const& mbarrier, Where where, Culprit who) {
  if (std::abs(mbarrier.tx) <= kMbarrierLimit) return;
  report(FindingKind::mbarrier_misuse, where, who, buffer_name(mbarrier.address),
         shared_place(mbarrier.address),
         fmt::format("{} brings {} to {} pending bytes: the count must stay between -{} and {}",
                     ptx_name(instruction), shared_place(mbarrier.address), mbarrier.tx, kMbarrierLimit,
                     kMbarrierLimit));
}

void Cta::arrive(Instruction instruction, MbarrierState& mbarrier, Where where, bool relaxed, bool wide) {
  cluster_.progressed();
  if (mbarrier.pending == 0) {
    report(
        FindingKind::mbarrier_misuse, where, here(), buffer_name(mbarrier.address),
        shared_place(mbarrier.address),
        fmt::format(
            "{} on {}, which has had the {} of a phase that its init ({}) says (it waits for {} bytes): its count is "
            "too small",
            ptx_name(instruction), shared_place(mbarrier.address),
            mbarrier.count == 1 ? "one arrival" : fmt::format("{} arrivals", mbarrier.count),
            place_text(mbarrier.init), mbarrier.tx),
        mbarrier.init);
    return;
  }
  if (cluster_.observed()) observers().mbarrier_arrived(*this, mbarrier, instruction, where, relaxed, wide);
  --mbarrier.pending;
  complete_phase_if_due(mbarrier);
  land_some();
}

void Cta::complete_tx(MbarrierState& mbarrier, std::int64_t bytes, InFlight* operation, Where where,
                      Culprit who) {
  cluster_.progressed();
  mbarrier.tx -= bytes;
  if (operation != nullptr) mbarrier.landed.push_back({operation, mbarrier.phase});
  if (cluster_.observed()) observers().bytes_completed(*this, mbarrier, operation);
  check_tx(operation != nullptr ? operation->instruction : Instruction::mbarrier_complete_tx, mbarrier, where,
           who);
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
    if (cluster_.observed())
      observers().phase_passed(*this, mbarrier, *thread, thread->mbarrier_where, thread->relaxed);
    thread->mbarrier = nullptr;
    set_ready(*thread);
  }
  mbarrier.waiters.clear();
}

/// A thread of the CTA has waited for the last phase that is complete: it comes after all that counted for
/// it, and what landed in it may be touched.
void Cta::passed(MbarrierState& mbarrier) {
  std::erase_if(mbarrier.landed, [&](Landed const& landed) {
    if (landed.phase >= mbarrier.phase) return false;
    in_flight().retire(*landed.operation);
    return true;
  });
}

/// The mbarrier is no more: nothing depends on it.
void Cta::forget(MbarrierState& mbarrier) {
  wake(mbarrier);
  for (Landed const& landed : mbarrier.landed) in_flight().retire(*landed.operation);
  mbarrier.landed.clear();
}

/// Where the completion is random, an operation in flight may land now.
void Cta::land_some() {
  if (cluster_.completion() == Completion::random && !in_flight().empty()) in_flight().land_at_random();
}

/// Whether the phase of the parity is complete, for a thread that waits for it.
bool Cta::complete(MbarrierState& mbarrier, int parity) {
  if ((mbarrier.phase & 1) == parity) return false;
  if (!mbarrier.landed.empty()) passed(mbarrier);
  return true;
}

void Cta::fence_mbarrier_init(Where where) {
  note(Instruction::fence_mbarrier_init, where);
  if (races_) observers().inits_fenced(*this);
}

void Cta::fence_proxy_async(Where where) {
  note(Instruction::fence_proxy_async, where);
  if (races_) observers().proxy_fenced(*this);
}

void Cta::mbarrier_arrive(std::uint32_t address, Where where, bool relaxed) {
  note(Instruction::mbarrier_arrive, where);
  cluster_.before(at_shared(Visible::Kind::mbarrier_arrive, address));
  MbarrierState* const mbarrier = own_mbarrier(Instruction::mbarrier_arrive, address, where);
  if (mbarrier != nullptr) arrive(Instruction::mbarrier_arrive, *mbarrier, where, relaxed);
}

void Cta::mbarrier_arrive_cluster(std::uint32_t address, Where where, bool relaxed, bool wide) {
  note(Instruction::mbarrier_arrive, where);
  cluster_.before(at_shared(Visible::Kind::mbarrier_arrive, address));
  Cta* const cta = target(Instruction::mbarrier_arrive, address, where);
  if (cta == nullptr) return;
  MbarrierState* const mbarrier = cta->live_mbarrier(Instruction::mbarrier_arrive, address, where);
  if (mbarrier != nullptr) cta->arrive(Instruction::mbarrier_arrive, *mbarrier, where, relaxed, wide);
}

void Cta::mbarrier_arrive_expect_tx(std::uint32_t address, int bytes, Where where, bool relaxed) {
  Instruction const instruction = Instruction::mbarrier_arrive_expect_tx;
  note(instruction, where);
  cluster_.before(at_shared(Visible::Kind::mbarrier_arrive, address, bytes));
  MbarrierState* const mbarrier = own_mbarrier(instruction, address, where);
  if (mbarrier == nullptr) return;
  expect_tx(instruction, *mbarrier, bytes, where);
  arrive(instruction, *mbarrier, where, relaxed);
}

void Cta::mbarrier_expect_tx(std::uint32_t address, int bytes, Where where) {
  note(Instruction::mbarrier_expect_tx, where);
  cluster_.before(at_shared(Visible::Kind::mbarrier_expect, address, bytes));
  MbarrierState* const mbarrier = own_mbarrier(Instruction::mbarrier_expect_tx, address, where);
  if (mbarrier != nullptr) expect_tx(Instruction::mbarrier_expect_tx, *mbarrier, bytes, where);
}

void Cta::mbarrier_complete_tx(std::uint32_t address, int bytes, Where where) {
  Instruction const instruction = Instruction::mbarrier_complete_tx;
  note(instruction, where);
  cluster_.before(at_shared(Visible::Kind::mbarrier_complete, address, bytes));
  MbarrierState* const mbarrier = own_mbarrier(instruction, address, where);
  if (mbarrier == nullptr) return;
  if (bytes < 0 || bytes > kMbarrierLimit) {
    fail(FindingKind::invalid_operand, where, here(),
         fmt::format("{} of {} bytes on {}: it takes 0 to {}", ptx_name(instruction), bytes,
                     shared_place(mbarrier->address), kMbarrierLimit));
  }
  complete_tx(*mbarrier, bytes, nullptr, where, here());
}

void Cta::check_parity(Instruction instruction, int parity, Where where) {
  if (parity == 0 || parity == 1) return;
  fail(FindingKind::invalid_operand, where, here(),
       fmt::format("{} for the phase of parity {}: a parity is 0 or 1", ptx_name(instruction), parity));
}

/// The current thread goes on after the last phase that is complete.
void Cta::pass_phase(MbarrierState& mbarrier, Where where, bool relaxed) {
  if (cluster_.observed()) observers().phase_passed(*this, mbarrier, current_thread(), where, relaxed);
}

bool Cta::mbarrier_test_wait(std::uint32_t address, int parity, Where where) {
  note(Instruction::mbarrier_test_wait, where);
  check_parity(Instruction::mbarrier_test_wait, parity, where);
  cluster_.before(at_shared(Visible::Kind::mbarrier_test, address, parity));
  MbarrierState* const mbarrier = own_mbarrier(Instruction::mbarrier_test_wait, address, where);
  if (mbarrier == nullptr || complete(*mbarrier, parity)) {
    if (mbarrier != nullptr) pass_phase(*mbarrier, where);
    return true;
  }
  cluster_.polled(where);
  return false;
}

bool Cta::mbarrier_try_wait(std::uint32_t address, int parity, Where where) {
  return wait_for_phase(address, parity, true, where);
}

void Cta::mbarrier_wait(std::uint32_t address, int parity, Where where, bool relaxed) {
  wait_for_phase(address, parity, false, where, relaxed);
}

/// False where the thread `tries` and gave up.
bool Cta::wait_for_phase(std::uint32_t address, int parity, bool tries, Where where, bool relaxed) {
  note(Instruction::mbarrier_try_wait, where);
  check_parity(Instruction::mbarrier_try_wait, parity, where);
  cluster_.before(at_shared(Visible::Kind::mbarrier_wait, address, parity));
  MbarrierState* const mbarrier = own_mbarrier(Instruction::mbarrier_try_wait, address, where);
  if (mbarrier == nullptr) return true;
  if (!complete(*mbarrier, parity)) land_some();
  if (complete(*mbarrier, parity)) {
    pass_phase(*mbarrier, where, relaxed);
    return true;
  }
  Thread& self = current_thread();
  self.relaxed = relaxed;
  self.mbarrier = mbarrier;
  self.mbarrier_where = where;
  self.tries = tries;
  mbarrier->waiters.push_back(&self);
  cluster_.block();
  return !std::exchange(self.gave_up, false);
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

void Cta::mbarrier_waiters(std::vector<std::string>& clauses) const {
  for (auto const& mbarrier : mbarriers_) {
    std::vector<Thread*> rest = mbarrier->waiters;
    while (!rest.empty()) {
      Where const where = rest.front()->mbarrier_where;
      std::array<std::uint32_t, 32> lanes = {};
      std::erase_if(rest, [&](Thread const* thread) {
        if (!same_place(thread->mbarrier_where, where)) return false;
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
        bool const one = std::has_single_bit(warps) && (bits == kFullWarp || std::has_single_bit(bits));
        clauses.push_back(fmt::format("{} wait{} at mbarrier {} ({}) for the phase of parity {}, {}", who,
                                      one ? "s" : "", own_place(mbarrier->address), place_text(where),
                                      mbarrier->phase % 2, lacking(*mbarrier)));
      }
    }
  }
}

}  // namespace tegula::sim
