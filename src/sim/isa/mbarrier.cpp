#include <fmt/format.h>

#include <utility>

#include "isa/current_cta.hpp"
#include "machine/cluster.hpp"
#include "tegula/sim/hooks.hpp"
#include "values/place.hpp"

/// Mbarriers: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier"; and the fences
/// that go with them. What a phase is, is the machine's (machine/mbarrier.cpp).
namespace tegula::sim {

namespace {

void arrive_at_peer(Cta& cta, std::uint32_t address, bool relaxed, bool wide, SourceLocation where) {
  cta.note(Instruction::mbarrier_arrive, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_arrive, address));
  Cta* const owner = cta.target(Instruction::mbarrier_arrive, address, where);
  if (owner == nullptr) return;
  MbarrierState* const mbarrier = owner->live_mbarrier(Instruction::mbarrier_arrive, address, where);
  if (mbarrier != nullptr) owner->arrive(Instruction::mbarrier_arrive, *mbarrier, where, relaxed, wide);
}

void check_parity(Cta& cta, Instruction instruction, int parity, SourceLocation where) {
  if (parity == 0 || parity == 1) return;
  cta.fail(FindingKind::invalid_operand, where, cta.here(),
           fmt::format("{} for the phase of parity {}: a parity is 0 or 1", ptx_name(instruction), parity));
}

bool test_phase(Cta& cta, Instruction instruction, std::uint32_t address, int parity, SourceLocation where) {
  cta.note(instruction, where);
  check_parity(cta, instruction, parity, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_test, address, parity));
  MbarrierState* const mbarrier = cta.own_mbarrier(instruction, address, where);
  if (mbarrier == nullptr || cta.complete(*mbarrier, parity)) {
    if (mbarrier != nullptr) cta.pass_phase(*mbarrier, where);
    return true;
  }
  cta.cluster().polled(where);
  return false;
}

/// How long try_wait suspends a thread is the machine's to choose: where operations land at the last moment,
/// the first try for a phase ends before it, and those after that when it is complete, or nobody else can
/// run; at random, each may. Where they land at once, none does.
bool times_out(Cta& cta, MbarrierState const& mbarrier) {
  Cluster& cluster = cta.cluster();
  if (cluster.completion() == Completion::first) return false;
  if (cluster.completion() == Completion::random) return cluster.random() % 2 == 0;
  Thread& self = cta.current_thread();
  if (self.timed_out == std::pair(mbarrier.number, mbarrier.phase)) return false;
  self.timed_out = {mbarrier.number, mbarrier.phase};
  return true;
}

/// False where the thread `tries` and gave up.
bool wait_for_phase(Cta& cta, std::uint32_t address, int parity, bool tries, bool relaxed,
                    SourceLocation where) {
  cta.note(Instruction::mbarrier_try_wait, where);
  check_parity(cta, Instruction::mbarrier_try_wait, parity, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_wait, address, parity));
  Thread& self = cta.current_thread();
  self.tries = tries;
  MbarrierState* const mbarrier = cta.own_mbarrier(Instruction::mbarrier_try_wait, address, where);
  if (mbarrier == nullptr) return true;
  if (!cta.complete(*mbarrier, parity)) cta.land_some();
  if (cta.complete(*mbarrier, parity)) {
    cta.pass_phase(*mbarrier, where, relaxed);
    return true;
  }
  if (tries && times_out(cta, *mbarrier)) {
    cta.cluster().polled(where);
    return false;
  }
  self.relaxed = relaxed;
  self.mbarrier = mbarrier;
  self.mbarrier_where = where;
  mbarrier->waiters.push_back(&self);
  cta.cluster().block();
  return !std::exchange(self.gave_up, false);
}

}  // namespace

void mbarrier_init(std::uint32_t address, int count, SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(Instruction::mbarrier_init, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_init, address, count));
  cta.own_address(Instruction::mbarrier_init, address, where);
  if (count < 1 || count > kMbarrierLimit) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("mbarrier.init of {} for {} arrivals: the count must be 1 to {}",
                         cta.shared_place(address), count, kMbarrierLimit));
  }
  if (!cta.check_mbarrier_address(Instruction::mbarrier_init, address, where)) return;
  MbarrierState* mbarrier = cta.mbarrier_at(address);
  bool const again = mbarrier != nullptr;
  if (again) {
    cta.report(
        FindingKind::mbarrier_misuse, where, cta.here(), cta.buffer_name(address), cta.shared_place(address),
        fmt::format("mbarrier.init of {}, which is an mbarrier already ({}): it must be invalidated first",
                    cta.shared_place(address), place_text(mbarrier->init)),
        mbarrier->init);
    cta.forget(*mbarrier);
  } else {
    mbarrier = &cta.add_mbarrier();
  }
  mbarrier->address = address;
  mbarrier->init = where;
  mbarrier->initialiser = cta.current_thread().agent;
  cta.number(*mbarrier);
  mbarrier->count = count;
  mbarrier->pending = count;
  mbarrier->tx = 0;
  mbarrier->phase = 0;
  if (cta.cluster().observed()) cta.observers().mbarrier_initialised(cta, *mbarrier, again);
  cta.cluster().progressed();
}

void mbarrier_inval(std::uint32_t address, SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(Instruction::mbarrier_inval, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_inval, address));
  MbarrierState* const mbarrier = cta.own_mbarrier(Instruction::mbarrier_inval, address, where);
  if (mbarrier == nullptr) return;
  address = mbarrier->address;
  if (!mbarrier->waiters.empty() || cta.in_flight().completes_on(cta.rank(), address)) {
    cta.report(FindingKind::mbarrier_misuse, where, cta.here(), cta.buffer_name(address),
               cta.shared_place(address),
               fmt::format("mbarrier.inval of {} while {}", cta.shared_place(address),
                           mbarrier->waiters.empty() ? "an operation in flight is to complete on it"
                                                     : "threads wait at it"));
  }
  if (cta.checking()) cta.observers().mbarrier_invalidated(cta, *mbarrier, where);
  cta.forget(*mbarrier);
  cta.remove(*mbarrier, where);
}

void mbarrier_arrive(std::uint32_t address, bool relaxed, SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(Instruction::mbarrier_arrive, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_arrive, address));
  MbarrierState* const mbarrier = cta.own_mbarrier(Instruction::mbarrier_arrive, address, where);
  if (mbarrier != nullptr) cta.arrive(Instruction::mbarrier_arrive, *mbarrier, where, relaxed);
}

void mbarrier_arrive_cluster(std::uint32_t address, bool relaxed, SourceLocation where) {
  arrive_at_peer(current_cta(), address, relaxed, false, where);
}

void mbarrier_arrive_cluster_release(std::uint32_t address, SourceLocation where) {
  arrive_at_peer(current_cta(), address, false, true, where);
}

void mbarrier_arrive_expect_tx(std::uint32_t address, int bytes, bool relaxed, SourceLocation where) {
  Cta& cta = current_cta();
  Instruction const instruction = Instruction::mbarrier_arrive_expect_tx;
  cta.note(instruction, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_arrive, address, bytes));
  MbarrierState* const mbarrier = cta.own_mbarrier(instruction, address, where);
  if (mbarrier == nullptr) return;
  cta.expect_tx(instruction, *mbarrier, bytes, where);
  cta.arrive(instruction, *mbarrier, where, relaxed);
}

void mbarrier_expect_tx(std::uint32_t address, int bytes, SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(Instruction::mbarrier_expect_tx, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_expect, address, bytes));
  MbarrierState* const mbarrier = cta.own_mbarrier(Instruction::mbarrier_expect_tx, address, where);
  if (mbarrier != nullptr) cta.expect_tx(Instruction::mbarrier_expect_tx, *mbarrier, bytes, where);
}

void mbarrier_complete_tx(std::uint32_t address, int bytes, SourceLocation where) {
  Cta& cta = current_cta();
  Instruction const instruction = Instruction::mbarrier_complete_tx;
  cta.note(instruction, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_complete, address, bytes));
  MbarrierState* const mbarrier = cta.own_mbarrier(instruction, address, where);
  if (mbarrier == nullptr) return;
  if (bytes < 0 || bytes > kMbarrierLimit) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} of {} bytes on {}: it takes 0 to {}", ptx_name(instruction), bytes,
                         cta.shared_place(mbarrier->address), kMbarrierLimit));
  }
  cta.complete_tx(*mbarrier, bytes, nullptr, where, cta.here());
}

bool mbarrier_test_wait_parity(std::uint32_t address, int parity, SourceLocation where) {
  return test_phase(current_cta(), Instruction::mbarrier_test_wait, address, parity, where);
}

// Where every order is tried, a try that ends too early is a test.
bool mbarrier_try_wait_parity(std::uint32_t address, int parity, SourceLocation where) {
  Cta& cta = current_cta();
  return cta.cluster().stepped() ? test_phase(cta, Instruction::mbarrier_try_wait, address, parity, where)
                                 : wait_for_phase(cta, address, parity, true, false, where);
}

void mbarrier_wait_parity(std::uint32_t address, int parity, bool relaxed, SourceLocation where) {
  wait_for_phase(current_cta(), address, parity, false, relaxed, where);
}

void fence_mbarrier_init(SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(Instruction::fence_mbarrier_init, where);
  if (cta.finding_races()) cta.observers().inits_fenced(cta);
}

void fence_proxy_async(SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(Instruction::fence_proxy_async, where);
  if (cta.finding_races()) cta.observers().proxy_fenced(cta);
}

void fence_proxy_async_shared(SourceLocation where) { fence_proxy_async(where); }

}  // namespace tegula::sim
