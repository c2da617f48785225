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
    if (races_) {
      check_init_known(instruction, *mbarrier, where);
      use(instruction, *mbarrier, where);
    }
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
  if (mbarrier != nullptr) {
    report(FindingKind::mbarrier_misuse, where, here(), buffer_name(address), shared_place(address),
           fmt::format("mbarrier.init of {}, which is an mbarrier already ({}): it must be invalidated first",
                       shared_place(address), place_text(mbarrier->init)),
           mbarrier->init);
    forget(*mbarrier);
  } else {
    if (check_) {
      if (shared_.first_other(address, 8, kInFlight | kBeingRead, 0) != 8)
        shared_findings(Instruction::mbarrier_init, address, 8, true, where, current_thread().lane);
      shared_.mark(address, 8, kMbarrier);
    }
    mbarrier = mbarriers_.emplace_back(std::make_unique<MbarrierState>()).get();
  }
  mbarrier->address = address;
  mbarrier->init = where;
  mbarrier->initialiser = current_thread().agent;
  if (races_) {
    mbarrier->agent = cluster_.mbarrier_agent(rank_, address);
    Conflict conflict;
    if (!shadow_.write(current_thread().agent, address - kSharedBase, 8,
                       site(Instruction::mbarrier_init, where), conflict))
      generic_race(Instruction::mbarrier_init, true, where, current_thread().lane, conflict);
    mbarrier->init_time = cluster_.causality().now();
    mbarrier->arriving.clear();
    mbarrier->complete.clear();
    mbarrier->arriving_wide.clear();
    mbarrier->complete_wide.clear();
    current_thread().inits.push_back({mbarrier->agent, mbarrier->init_time});
  }
  mbarrier->count = count;
  mbarrier->pending = count;
  mbarrier->tx = 0;
  mbarrier->phase = 0;
  if (cluster_.timed()) cluster_.observers().mbarrier_initialised(*this, *mbarrier, where);
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
  Conflict conflict;
  if (races_ && !shadow_.write(current_thread().agent, address - kSharedBase, 8,
                               site(Instruction::mbarrier_inval, where), conflict))
    invalidated_early(*mbarrier, where, conflict);
  forget(*mbarrier);
  if (check_) shared_.mark(address, 8, 0, kMbarrier | kWritten);
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

/// PTX ISA, mbarrier.arrive: .release, of what the thread did before, to those within the scope. The waits of
/// arch/ acquire at the CTA's scope: what threads of other CTAs release is known after a fence that follows.
void Cta::release_into(MbarrierState& mbarrier, bool relaxed, bool wide) {
  Causality& causality = cluster_.causality();
  Thread const& thread = current_thread();
  if (relaxed) {
    causality.release_relaxed(thread.agent, mbarrier.arriving, thread.cta != this);
  } else if (thread.cta == this) {
    causality.release(thread.agent, mbarrier.arriving);
  } else {
    if (wide) causality.release(thread.agent, mbarrier.arriving_wide);
    if (!launch_->options->strict.scopes) causality.release_narrow(thread.agent, mbarrier.arriving);
  }
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
  Thread const& thread = current_thread();
  if (check_ && thread.cta != this) {
    note_access(mbarrier.accesses,
                {instruction, where, mbarrier.address, thread.cta->rank_, thread.index / 32, thread.lane,
                 thread.cta->current_warp().cluster_arrivals + 1, mbarrier.phase});
  }
  if (races_) release_into(mbarrier, relaxed, wide);
  if (cluster_.timed())
    cluster_.observers().mbarrier_arrived(*this, mbarrier, instruction, where, relaxed, wide);
  --mbarrier.pending;
  complete_phase_if_due(mbarrier);
  land_some();
}

void Cta::complete_tx(MbarrierState& mbarrier, std::int64_t bytes, InFlight* operation, Where where,
                      Culprit who) {
  cluster_.progressed();
  mbarrier.tx -= bytes;
  if (operation != nullptr) mbarrier.landed.push_back({operation, mbarrier.phase});
  if (operation != nullptr && races_) in_flight().stamp(*operation, mbarrier);
  if (cluster_.timed()) cluster_.observers().bytes_completed(*this, mbarrier, operation);
  check_tx(operation != nullptr ? operation->instruction : Instruction::mbarrier_complete_tx, mbarrier, where,
           who);
  complete_phase_if_due(mbarrier);
}

void Cta::complete_phase_if_due(MbarrierState& mbarrier) {
  if (mbarrier.pending != 0 || mbarrier.tx != 0) return;
  ++mbarrier.phase;
  mbarrier.pending = mbarrier.count;
  if (races_) {
    cluster_.causality().merge(mbarrier.complete, mbarrier.arriving);
    mbarrier.arriving.clear();
    cluster_.causality().merge(mbarrier.complete_wide, mbarrier.arriving_wide);
    mbarrier.arriving_wide.clear();
  }
  if (cluster_.timed()) cluster_.observers().phase_completed(*this, mbarrier);
  wake(mbarrier);
}

/// The phase is over: those that wait for it go on.
void Cta::wake(MbarrierState& mbarrier) {
  if (!mbarrier.waiters.empty()) passed(mbarrier);
  for (Thread* const thread : mbarrier.waiters) {
    if (cluster_.timed())
      cluster_.observers().phase_passed(*this, mbarrier, *thread, thread->mbarrier_where, thread->relaxed);
    take_phase(*thread, mbarrier, thread->relaxed);
    if (races_)
      shadow_.note_use(thread->agent, mbarrier.address - kSharedBase, 8,
                       site(Instruction::mbarrier_try_wait, thread->mbarrier_where));
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
  std::erase_if(mbarrier.accesses,
                [&](PeerAccess const& access) { return access.mbarrier_phase < mbarrier.phase; });
}

/// The mbarrier is no more: nothing depends on it.
void Cta::forget(MbarrierState& mbarrier) {
  wake(mbarrier);
  for (Landed const& landed : mbarrier.landed) in_flight().retire(*landed.operation);
  mbarrier.landed.clear();
  mbarrier.accesses.clear();
}

/// Where the completion is random, an operation in flight may land now.
void Cta::land_some() {
  if (cluster_.completion() == Completion::random && !in_flight().empty()) in_flight().land_at_random();
}

/// Whether the phase of the parity is complete, for a thread that waits for it.
bool Cta::complete(MbarrierState& mbarrier, int parity) {
  if ((mbarrier.phase & 1) == parity) return false;
  if (!mbarrier.landed.empty() || !mbarrier.accesses.empty()) passed(mbarrier);
  return true;
}

/// An operation of the asynchronous proxy is to complete on the mbarrier: its init must be visible there.
void Cta::check_visible(Instruction instruction, MbarrierState const& mbarrier, Where where) {
  Causality const& causality = cluster_.causality();
  int const issuer = current_thread().agent;
  if (causality.fenced(issuer, mbarrier.initialiser, mbarrier.init_time) ||
      causality.fenced(issuer, mbarrier.agent, mbarrier.init_time))
    return;
  report(
      FindingKind::proxy_race, where, here(), buffer_name(mbarrier.address), shared_place(mbarrier.address),
      fmt::format(
          "{} completes on {}, whose init ({}) no fence.mbarrier_init or fence.proxy.async has made visible "
          "to the asynchronous proxy",
          ptx_name(instruction), shared_place(mbarrier.address), place_text(mbarrier.init)),
      {mbarrier.init, culprit(mbarrier.initialiser),
       causality.known(issuer, mbarrier.initialiser, mbarrier.init_time)
           ? "a fence_mbarrier_init after the init would order them"
           : "a fence_mbarrier_init after the init, and then a barrier of the CTA or the cluster, would order them"});
}

/// Notes that the current thread uses the mbarrier: nobody may invalidate it before.
void Cta::use(Instruction instruction, MbarrierState const& mbarrier, Where where) {
  shadow_.note_use(current_thread().agent, mbarrier.address - kSharedBase, 8, site(instruction, where));
}

void Cta::invalidated_early(MbarrierState const& mbarrier, Where where, Conflict const& conflict) {
  Site const other = cluster_.sites()[conflict.site];
  report(FindingKind::mbarrier_misuse, where, here(), buffer_name(mbarrier.address),
         shared_place(mbarrier.address),
         fmt::format("mbarrier.inval of {}, and nothing orders it after the {} by {} ({})",
                     shared_place(mbarrier.address), ptx_name(other.instruction), agent_text(conflict.agent),
                     place_text(other.where)),
         {other.where, culprit(conflict.agent),
          conflict.wrote ? "a barrier between the two would order them"
                         : "a barrier after the last wait for it would order them"});
}

/// A thread uses an mbarrier: it must come after its init.
void Cta::check_init_known(Instruction instruction, MbarrierState const& mbarrier, Where where) {
  Causality const& causality = cluster_.causality();
  int const thread = current_thread().agent;
  if (causality.known(thread, mbarrier.initialiser, mbarrier.init_time) ||
      causality.known(thread, mbarrier.agent, mbarrier.init_time))
    return;
  bool const peer = current_thread().cta != this;
  report(FindingKind::mbarrier_misuse, where, here(), buffer_name(mbarrier.address),
         shared_place(mbarrier.address),
         fmt::format("{} on {}, before which nothing orders its init by {} ({})", ptx_name(instruction),
                     shared_place(mbarrier.address), agent_text(mbarrier.initialiser),
                     place_text(mbarrier.init)),
         {mbarrier.init, culprit(mbarrier.initialiser),
          peer ? "a fence_mbarrier_init after the init, and then a cluster::sync, would order them"
               : "a cta::sync after the init would order them"});
}

void Cta::fence_mbarrier_init(Where where) {
  note(Instruction::fence_mbarrier_init, where);
  // PTX ISA, membar/fence, fence.mbarrier_init: for the mbarrier.init before it of the thread itself.
  if (!races_) return;
  Thread& thread = current_thread();
  for (; thread.fenced_inits < thread.inits.size(); ++thread.fenced_inits) {
    Thread::Init const& init = thread.inits[thread.fenced_inits];
    cluster_.causality().tell(thread.agent, init.mbarrier, init.time);
  }
}

void Cta::fence_proxy_async(Where where) {
  note(Instruction::fence_proxy_async, where);
  if (races_) cluster_.causality().fence_proxy(current_thread().agent);
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

/// A thread has seen that the last phase is complete. PTX ISA, mbarrier.test_wait: .acquire, of what those
/// who arrived have released, and of the writes of the copies that completed there.
void Cta::take_phase(Thread const& thread, MbarrierState const& mbarrier, bool relaxed) {
  if (!races_) return;
  if (relaxed) {
    cluster_.causality().acquire_relaxed(thread.agent, mbarrier.complete);
  } else {
    cluster_.causality().acquire(thread.agent, mbarrier.complete);
    if (!mbarrier.complete_wide.known.empty())
      cluster_.causality().acquire_relaxed(thread.agent, mbarrier.complete_wide, true);
  }
}

/// The current thread goes on after the last phase that is complete.
void Cta::pass_phase(MbarrierState& mbarrier, Where where, bool relaxed) {
  take_phase(current_thread(), mbarrier, relaxed);
  if (races_) use(Instruction::mbarrier_try_wait, mbarrier, where);
  if (cluster_.timed()) cluster_.observers().phase_passed(*this, mbarrier, current_thread(), where, relaxed);
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
