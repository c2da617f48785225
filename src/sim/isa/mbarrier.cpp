#include <fmt/format.h>

#include <utility>

#include "isa/perform.hpp"
#include "values/place.hpp"

/// Mbarriers: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier"; and the
/// fences that go with them. What a phase is, is the machine's (machine/mbarrier.cpp).
namespace tegula::sim {

namespace {

/// An arrival without a count cannot count more or less.
Mutation fixed_count(int count) {
  return count > 1 ? Mutation::none : Mutation::less | Mutation::more;
}

void check_count(Cta& cta, Instruction instruction, int count, SourceLocation where) {
  if (count >= 1 && count <= kMbarrierLimit) return;
  cta.fail(FindingKind::invalid_operand, where, cta.here(),
           fmt::format("{} {} times: the count must be 1 to {}", ptx_name(instruction), count,
                       kMbarrierLimit));
}

void arrive_at_peer(Cta& cta, std::uint32_t address, int count, bool relaxed, bool wide,
                    SourceLocation where) {
  constexpr Instruction instruction = Instruction::mbarrier_arrive_cluster;
  cta.note(instruction, where);
  check_count(cta, instruction, count, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_arrive, address, 0, count));
  Cta* const owner = cta.target(instruction, address, where);
  if (owner == nullptr) return;
  MbarrierState* const mbarrier = owner->live_mbarrier(instruction, address, where);
  if (mbarrier != nullptr) owner->arrive(instruction, *mbarrier, where, relaxed, wide, count);
}

void check_parity(Cta& cta, Instruction instruction, int parity, SourceLocation where) {
  if (parity == 0 || parity == 1) return;
  cta.fail(FindingKind::invalid_operand, where, cta.here(),
           fmt::format("{} for the phase of parity {}: a parity is 0 or 1", ptx_name(instruction),
                       parity));
}

int flipped(int parity, Mutation m) { return m == Mutation::flipped ? parity ^ 1 : parity; }

/// What a wait acquires, with the mutation `weakened`: at a narrower scope, or nothing.
struct Acquires {
  Acquires(MemoryOrder order, Scope scope, Mutation m)
      : relaxed(order == MemoryOrder::relaxed || (m == Mutation::weakened && scope == Scope::cta)),
        of_cluster(scope == Scope::cluster && m != Mutation::weakened) {}
  bool relaxed;
  bool of_cluster;
};

bool test_phase(Cta& cta, Instruction instruction, std::uint32_t address, int parity,
                Acquires acquires, SourceLocation where) {
  cta.note(instruction, where);
  check_parity(cta, instruction, parity, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_test, address, parity));
  MbarrierState* const mbarrier = cta.own_mbarrier(instruction, address, where);
  if (mbarrier == nullptr || cta.complete(*mbarrier, parity)) {
    if (mbarrier != nullptr) {
      cta.current_thread().acquires_cluster = acquires.of_cluster;
      cta.pass_phase(*mbarrier, where, acquires.relaxed);
    }
    return true;
  }
  cta.cluster().polled(mbarrier->address, where);
  return false;
}

/// How long try_wait suspends a thread is the machine's to choose: where operations land at the
/// last moment, the first try for a phase ends before it, and those after that when it is complete,
/// or nobody else can run; at random, each may. Where they land at once, none does.
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
bool wait_for_phase(Cta& cta, std::uint32_t address, int parity, bool tries, Acquires acquires,
                    SourceLocation where) {
  bool const relaxed = acquires.relaxed;
  cta.note(Instruction::mbarrier_try_wait, where);
  check_parity(cta, Instruction::mbarrier_try_wait, parity, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_wait, address, parity));
  Thread& self = cta.current_thread();
  self.tries = tries;
  MbarrierState* const mbarrier = cta.own_mbarrier(Instruction::mbarrier_try_wait, address, where);
  if (mbarrier == nullptr) return true;
  self.acquires_cluster = acquires.of_cluster;
  if (!cta.complete(*mbarrier, parity)) cta.land_some();
  if (cta.complete(*mbarrier, parity)) {
    cta.pass_phase(*mbarrier, where, relaxed);
    return true;
  }
  if (tries && times_out(cta, *mbarrier)) {
    cta.cluster().polled(mbarrier->address, where);
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

namespace {

void initialise(Cta& cta, std::uint32_t address, int count, SourceLocation where) {
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
        FindingKind::mbarrier_misuse, where, cta.here(), cta.buffer_name(address),
        cta.shared_place(address),
        fmt::format(
            "mbarrier.init of {}, which is an mbarrier already ({}): it must be invalidated first",
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

}  // namespace

void mbarrier_init(std::uint32_t address, int count, SourceLocation where) {
  perform(Instruction::mbarrier_init, where, count > 1 ? Mutation::none : Mutation::less,
          [=](Cta& cta, Mutation m) { initialise(cta, address, counted(count, m), where); });
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

void mbarrier_arrive(std::uint32_t address, int count, SourceLocation where) {
  constexpr Instruction instruction = Instruction::mbarrier_arrive;
  perform(instruction, where, fixed_count(count), [=](Cta& cta, Mutation m) {
    int const arrivals = counted(count, m);
    cta.note(instruction, where);
    check_count(cta, instruction, arrivals, where);
    cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_arrive, address, 0, arrivals));
    MbarrierState* const mbarrier = cta.own_mbarrier(instruction, address, where);
    if (mbarrier != nullptr)
      cta.arrive(instruction, *mbarrier, where, m == Mutation::weakened, true, arrivals);
  });
}

void mbarrier_arrive_cluster(std::uint32_t address, int count, SourceLocation where) {
  perform(Instruction::mbarrier_arrive_cluster, where, fixed_count(count),
          [=](Cta& cta, Mutation m) {
            arrive_at_peer(cta, address, counted(count, m), m == Mutation::weakened, false, where);
          });
}

void mbarrier_arrive_cluster_release(std::uint32_t address, int count, SourceLocation where) {
  perform(Instruction::mbarrier_arrive_cluster, where, fixed_count(count),
          [=](Cta& cta, Mutation m) {
            arrive_at_peer(cta, address, counted(count, m), false, m != Mutation::weakened, where);
          });
}

namespace {

void arrive_and_expect(Cta& cta, std::uint32_t address, int bytes, bool relaxed,
                       SourceLocation where) {
  constexpr Instruction instruction = Instruction::mbarrier_arrive_expect_tx;
  cta.note(instruction, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_arrive, address, bytes, 1));
  MbarrierState* const mbarrier = cta.own_mbarrier(instruction, address, where);
  if (mbarrier == nullptr) return;
  cta.expect_tx(instruction, *mbarrier, bytes, where);
  cta.arrive(instruction, *mbarrier, where, relaxed);
}

void expect(Cta& cta, std::uint32_t address, int bytes, SourceLocation where) {
  cta.note(Instruction::mbarrier_expect_tx, where);
  cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_expect, address, bytes));
  MbarrierState* const mbarrier = cta.own_mbarrier(Instruction::mbarrier_expect_tx, address, where);
  if (mbarrier != nullptr) cta.expect_tx(Instruction::mbarrier_expect_tx, *mbarrier, bytes, where);
}

void complete(Cta& cta, std::uint32_t address, int bytes, SourceLocation where) {
  constexpr Instruction const instruction = Instruction::mbarrier_complete_tx;
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

}  // namespace

void mbarrier_arrive_expect_tx(std::uint32_t address, int bytes, SourceLocation where) {
  perform(Instruction::mbarrier_arrive_expect_tx, where, [=](Cta& cta, Mutation m) {
    arrive_and_expect(cta, address, counted(bytes, m, 16), m == Mutation::weakened, where);
  });
}

void mbarrier_expect_tx(std::uint32_t address, int bytes, SourceLocation where) {
  perform(Instruction::mbarrier_expect_tx, where,
          [=](Cta& cta, Mutation m) { expect(cta, address, counted(bytes, m, 16), where); });
}

void mbarrier_complete_tx(std::uint32_t address, int bytes, SourceLocation where) {
  perform(Instruction::mbarrier_complete_tx, where,
          [=](Cta& cta, Mutation m) { complete(cta, address, counted(bytes, m, 16), where); });
}

bool mbarrier_test_wait_parity(std::uint32_t address, int parity, MemoryOrder order, Scope scope,
                               SourceLocation where) {
  constexpr Instruction instruction = Instruction::mbarrier_test_wait;
  Mutation const m = mutation_of(instruction, where);
  if (m == Mutation::removed) return true;
  return test_phase(current_cta(), instruction, address, flipped(parity, m),
                    {order, scope, Mutation::none}, where);
}

// Where every order is tried, a try that ends too early is a test.
bool mbarrier_try_wait_parity(std::uint32_t address, int parity, MemoryOrder order, Scope scope,
                              SourceLocation where) {
  constexpr Instruction instruction = Instruction::mbarrier_try_wait;
  Mutation const m = mutation_of(instruction, where, Mutation::weakened | Mutation::delayed);
  if (m == Mutation::removed) return true;
  Cta& cta = current_cta();
  Acquires const acquires(order, scope, m);
  return cta.cluster().stepped()
             ? test_phase(cta, instruction, address, flipped(parity, m), acquires, where)
             : wait_for_phase(cta, address, flipped(parity, m), true, acquires, where);
}

void mbarrier_wait_parity(std::uint32_t address, int parity, MemoryOrder order, Scope scope,
                          SourceLocation where) {
  Mutation const without = order == MemoryOrder::relaxed ? Mutation::weakened : Mutation::none;
  perform(Instruction::mbarrier_try_wait, where, without, [=](Cta& cta, Mutation m) {
    wait_for_phase(cta, address, flipped(parity, m), false, {order, scope, m}, where);
  });
}

void fence_mbarrier_init(SourceLocation where) {
  perform(Instruction::fence_mbarrier_init, where, [=](Cta& cta) {
    cta.note(Instruction::fence_mbarrier_init, where);
    if (cta.finding_races()) cta.observers().inits_fenced(cta);
  });
}

void fence_proxy_async(SourceLocation where) {
  perform(Instruction::fence_proxy_async, where, [=](Cta& cta) {
    cta.note(Instruction::fence_proxy_async, where);
    if (cta.finding_races()) cta.observers().proxy_fenced(cta, where);
  });
}

void fence_proxy_async_shared(SourceLocation where) {
  perform(Instruction::fence_proxy_async, where, [=](Cta& cta) {
    cta.note(Instruction::fence_proxy_async, where);
    if (cta.finding_races()) cta.observers().shared_proxy_fenced(cta, where);
  });
}

}  // namespace tegula::sim
