#include <fmt/format.h>

#include <algorithm>

#include "checker/checker.hpp"
#include "tegula/io/text.hpp"
#include "values/place.hpp"

/// Mbarriers: what their arrivals release and their waits acquire, and whether their init is known
/// to who uses them.
namespace tegula::sim {

void Checker::mbarrier_initialised(Cta& cta, MbarrierState const& mbarrier, bool again) {
  OfCta& of_cta = of(cta);
  of_cta.mbarriers.resize(static_cast<std::size_t>(mbarrier.number) + 1);
  Thread const& thread = cta.current_thread();
  std::uint32_t const address = mbarrier.address;
  SharedAccess const init{Instruction::mbarrier_init, address, 8, true, mbarrier.init, thread.lane};
  if (!again) {
    if (of_cta.state.first_other(address, 8, kInFlight | kBeingRead, 0) != 8)
      shared_findings(cta, init);
    of_cta.state.mark(address, 8, kMbarrier);
  }
  if (!races_) return;
  OfMbarrier& own = of(cta, mbarrier);
  own.agent = agents_.mbarrier_agent(cta.rank(), address);
  own.phases = std::make_unique<PhaseHistory>(SharedRange{cta.rank(), address, 8});
  Conflict conflict;
  if (!of_cta.shadow.write(thread.agent, address - kSharedBase, 8,
                           site(init.instruction, init.where), conflict))
    generic_race(cta, init, conflict);
  own.init_time = agents_.causality().now();
  of(thread).inits.push_back({own.agent, own.init_time});
}

void Checker::mbarrier_invalidated(Cta& cta, MbarrierState const& mbarrier, SourceLocation where) {
  Conflict conflict;
  if (races_ && !of(cta).shadow.write(cta.current_thread().agent, mbarrier.address - kSharedBase, 8,
                                      site(Instruction::mbarrier_inval, where), conflict))
    invalidated_early(cta, mbarrier, where, conflict);
  of(cta).state.mark(mbarrier.address, 8, 0, kMbarrier | kWritten);
  of(cta, mbarrier).accesses.clear();
}

/// The current thread uses the mbarrier: it must come after its init, and nobody may invalidate
/// it before.
void Checker::mbarrier_used(Cta& cta, MbarrierState const& mbarrier, Instruction instruction,
                            SourceLocation where) {
  check_init_known(cta, mbarrier, instruction, where);
  // A test, whose answer depends on who comes first.
  Thread const& thread = cta.current_thread();
  if (instruction == Instruction::mbarrier_test_wait ||
      (instruction == Instruction::mbarrier_try_wait && thread.tries))
    tests_.emplace(thread.agent, cta.rank(), mbarrier.number, mbarrier.phase);
  of(cta).shadow.note_use(cta.current_thread().agent, mbarrier.address - kSharedBase, 8,
                          site(instruction, where));
}

void Checker::mbarrier_arrived(Cta& cta, MbarrierState const& mbarrier, Instruction instruction,
                               SourceLocation where, bool relaxed, bool wide) {
  Thread const& thread = cta.current_thread();
  OfMbarrier& own = of(cta, mbarrier);
  if (thread.cta != &cta) {
    note_access(own.accesses,
                {instruction, where, mbarrier.address, thread.cta->rank(), thread.index / 32,
                 thread.lane, thread.cta->current_warp().cluster_arrivals + 1, mbarrier.phase,
                 false, thread.agent - thread.lane},
                thread.lane, agents_.causality().now());
  }
  if (!races_) return;
  check_given_back(cta, own, mbarrier.phase, where);
  note_arrival(own, thread.agent, where);
  release_into(cta, own, relaxed, wide);
  wait_order_.release(thread, own.waits.arriving);
}

/// Who arrives in which phase: where the count is too small for those who do, the phases are
/// complete before all have arrived, and the last arrive in the next.
void Checker::note_arrival(OfMbarrier& mbarrier, int thread, SourceLocation where) {
  constexpr std::size_t kMostNoted = 2048;
  Arrivals& now = mbarrier.arrivals;
  Arrivals const& before = mbarrier.arrivals_before;
  Causality const& causality = agents_.causality();
  if (now.agents.size() >= kMostNoted) return;
  now.unordered = now.unordered || (!before.agents.empty() && before.agents.back() != thread &&
                                    !causality.known(thread, before.agents.back(), before.time));
  now.agents.push_back(thread);
  now.where = where, now.time = causality.now();
}

/// The threads that have arrived in two phases, where they are more than the mbarrier's count and
/// nothing has those of the second wait for those of the first; else 0.
int Checker::uncounted_arrivals(OfMbarrier const& mbarrier, int count) {
  if (!mbarrier.arrivals.unordered) return 0;
  std::vector<int> all = mbarrier.arrivals_before.agents;
  all.insert(all.end(), mbarrier.arrivals.agents.begin(), mbarrier.arrivals.agents.end());
  std::sort(all.begin(), all.end());
  auto const threads = std::unique(all.begin(), all.end()) - all.begin();
  return threads > count ? static_cast<int>(threads) : 0;
}

/// The current thread arrives. What it has waited for just before that, this mbarrier's arrivals
/// show to be free: it fills a stage. And if it has waited for what others fill so, it gives a
/// stage back: not one that it has given back already.
void Checker::check_given_back(Cta& cta, OfMbarrier& mbarrier, std::int64_t phase,
                               SourceLocation where) {
  int const thread = cta.current_thread().agent;
  OfThread& own = of(cta.current_thread());
  if (own.waited != nullptr) own.waited->guards(*mbarrier.phases);
  PhaseHistory::Stale const stale = mbarrier.phases->gives_back(thread, phase, where);
  if (stale.filled == nullptr) return;
  SharedRange const& place = stale.filled->place();
  Cta const& of_filled = cta.cluster().cta(place.cta);
  std::string const text = of_filled.shared_place(place.address);
  cta.report(
      FindingKind::mbarrier_misuse, stale.wait.where, cta.here(),
      of_filled.buffer_name(place.address), text,
      fmt::format(
          "a wait for {} passes on phase {}, for which {} has waited before ({}), and which it "
          "has given back since by {} on {} ({}): what it gives back the second time it has "
          "not been given",
          text, stale.wait.phase, agent_text(cta, thread), place_text(stale.first),
          ptx_name(Instruction::mbarrier_arrive),
          cta.shared_place(mbarrier.phases->place().address), place_text(stale.gave_back)),
      {where,
       {-1, -1, -1},
       fmt::format("a wait for phase {}, of parity {}, would see what comes next",
                   stale.wait.phase + 1, (stale.wait.phase + 1) % 2)});
}

/// An operation has landed, and completes on the mbarrier: who waits for that knows its writes.
void Checker::bytes_completed(Cta& cta, MbarrierState const& mbarrier, InFlight* operation) {
  if (!races_) return;
  OfMbarrier& own = of(cta, mbarrier);
  own.phases->brought();
  if (operation == nullptr) return wait_order_.release(cta.current_thread(), own.waits.arriving);
  wait_order_.told(own.waits, *operation);
  Causality& causality = agents_.causality();
  std::uint16_t const by = operation->remembered.site;
  Time const now = causality.tick();
  operation->remembered.landed = now;
  for (SharedRange const& range : operation->writes) {
    of(cta.cluster().cta(range.cta))
        .shadow.written(range.address - kSharedBase, range.bytes,
                        {now, static_cast<std::uint16_t>(own.agent), by});
  }
  causality.tell(own.arriving, own.agent, now);
  if (operation->remembered.after_grids) agents_.wait_for_grids(own.arriving);
  agents_.note_landing(own.agent, by, *operation);
}

void Checker::phase_completed(Cta& cta, MbarrierState const& mbarrier) {
  if (!races_) return;
  OfMbarrier& own = of(cta, mbarrier);
  agents_.causality().merge(own.complete, own.arriving);
  own.arriving.clear();
  agents_.causality().merge(own.complete_wide, own.arriving_wide);
  own.arriving_wide.clear();
  own.phases->completed(agents_.causality().now());
  check_waits(cta, mbarrier);
  own.arrivals_before = std::move(own.arrivals);
  own.arrivals = {};
}

/// A phase is complete: nobody may come to a wait for the one before any more.
void Checker::check_waits(Cta& cta, MbarrierState const& mbarrier) {
  auto const late = wait_order_.completed(of(cta, mbarrier).waits);
  if (!late) return;
  std::string const text = cta.shared_place(mbarrier.address);
  std::int64_t const phase = mbarrier.phase - 2;
  Culprit const who = culprit(late->thread);
  std::string order = late->other_lane >= 0
                          ? fmt::format(
                                "a warp::sync after the wait, before what lane {} does "
                                "then, would order them",
                                late->other_lane)
                          : fmt::format(
                                "an arrival after the wait, without which phase {} is not "
                                "complete, would order them",
                                phase + 1);
  OfMbarrier const& own = of(cta, mbarrier);
  if (int const threads = uncounted_arrivals(own, mbarrier.count); threads > 0)
    order = fmt::format(
        "its init ({}) counts {}, and {} threads have arrived in phases {} and {} ({}), the later without "
        "having waited for the former: a count of all that arrive in a phase would order them",
        place_text(mbarrier.init), io::counted(mbarrier.count, "arrival"), threads, phase,
        phase + 1, place_text(own.arrivals.where));
  cta.report(
      FindingKind::mbarrier_misuse, late->where, who, cta.buffer_name(mbarrier.address), text,
      fmt::format("a wait for phase {} of {} may come when phase {} is complete, too: nothing has "
                  "that one wait for this thread, which then waits for phase {}",
                  phase, text, phase + 1, phase + 2),
      {{}, {-1, -1, -1}, std::move(order)});
}

/// PTX ISA, mbarrier.test_wait: .acquire, of what those who arrived have released, and of the
/// writes of the copies that completed there.
void Checker::phase_passed(Cta& cta, MbarrierState const& mbarrier, Thread const& thread,
                           SourceLocation where, bool relaxed) {
  OfMbarrier& own = of(cta, mbarrier);
  if (!own.accesses.empty())
    std::erase_if(own.accesses,
                  [&](PeerAccess const& access) { return access.mbarrier_phase < mbarrier.phase; });
  if (!races_) return;
  wait_order_.waited(own.waits, thread, where);
  own.phases->waited(thread.agent, mbarrier.phase - 1, where);
  of(thread).waited = own.phases.get();
  Causality& causality = agents_.causality();
  bool const wide = thread.acquires_cluster && !own.complete_wide.known.empty();
  if (relaxed) {
    causality.acquire_relaxed(thread.agent, own.complete);
    if (wide) causality.acquire_relaxed(thread.agent, own.complete_wide, true);
  } else {
    causality.acquire(thread.agent, own.complete);
    if (wide) {
      causality.acquire(thread.agent, own.complete_wide);
    } else if (!own.complete_wide.known.empty()) {
      causality.acquire_relaxed(thread.agent, own.complete_wide, true);
    }
  }
  of(cta).shadow.note_use(thread.agent, mbarrier.address - kSharedBase, 8,
                          site(Instruction::mbarrier_try_wait, where));
}

/// An operation of the asynchronous proxy is to complete on the mbarrier: its init must be
/// visible there.
void Checker::check_visible(Cta& cta, MbarrierState const& mbarrier, InFlight const& operation) {
  SourceLocation const where = operation.where;
  OfMbarrier const& own = of(cta, mbarrier);
  Causality const& causality = agents_.causality();
  int const issuer = cta.current_thread().agent;
  if (causality.fenced_shared(issuer, mbarrier.initialiser, own.init_time) ||
      causality.fenced_shared(issuer, own.agent, own.init_time))
    return;
  cta.report(
      FindingKind::proxy_race, where, cta.here(), cta.buffer_name(mbarrier.address),
      cta.shared_place(mbarrier.address),
      fmt::format(
          "{} completes on {}, whose init ({}) no fence.mbarrier_init or fence.proxy.async has made visible "
          "to the asynchronous proxy",
          ptx_name(operation.instruction), cta.shared_place(mbarrier.address),
          place_text(mbarrier.init)),
      {mbarrier.init, culprit(mbarrier.initialiser),
       causality.known(issuer, mbarrier.initialiser, own.init_time)
           ? "a fence_mbarrier_init after the init would order them"
           : "a fence_mbarrier_init after the init, and then a barrier of the CTA or the cluster, would order them"});
}

void Checker::invalidated_early(Cta& cta, MbarrierState const& mbarrier, SourceLocation where,
                                Conflict const& conflict) {
  Site const other = agents_.sites()[conflict.site];
  cta.report(FindingKind::mbarrier_misuse, where, cta.here(), cta.buffer_name(mbarrier.address),
             cta.shared_place(mbarrier.address),
             fmt::format("mbarrier.inval of {}, and nothing orders it after the {} by {} ({})",
                         cta.shared_place(mbarrier.address), ptx_name(other.instruction),
                         agent_text(cta, conflict.agent), place_text(other.where)),
             {other.where, culprit(conflict.agent),
              conflict.wrote ? "a barrier between the two would order them"
                             : "a barrier after the last wait for it would order them"});
}

/// A thread uses an mbarrier: it must come after its init.
void Checker::check_init_known(Cta& cta, MbarrierState const& mbarrier, Instruction instruction,
                               SourceLocation where) {
  OfMbarrier const& own = of(cta, mbarrier);
  Causality const& causality = agents_.causality();
  int const thread = cta.current_thread().agent;
  if (causality.known(thread, mbarrier.initialiser, own.init_time) ||
      causality.known(thread, own.agent, own.init_time))
    return;
  bool const peer = cta.current_thread().cta != &cta;
  cta.report(
      FindingKind::mbarrier_misuse, where, cta.here(), cta.buffer_name(mbarrier.address),
      cta.shared_place(mbarrier.address),
      fmt::format("{} on {}, before which nothing orders its init by {} ({})",
                  ptx_name(instruction), cta.shared_place(mbarrier.address),
                  agent_text(cta, mbarrier.initialiser), place_text(mbarrier.init)),
      {mbarrier.init, culprit(mbarrier.initialiser),
       peer ? "a fence_mbarrier_init after the init, and then a cluster::sync, would order them"
            : "a cta::sync after the init would order them"});
}

/// PTX ISA, mbarrier.arrive: .release, of what the thread did before, to those within the scope.
/// The waits of arch/ acquire at the CTA's scope: what threads of other CTAs release is known after
/// a fence that follows.
void Checker::release_into(Cta& cta, OfMbarrier& mbarrier, bool relaxed, bool wide) {
  Causality& causality = agents_.causality();
  Thread const& thread = cta.current_thread();
  if (relaxed) {
    causality.release_relaxed(thread.agent, mbarrier.arriving, thread.cta != &cta);
  } else if (thread.cta == &cta) {
    causality.release(thread.agent, mbarrier.arriving);
  } else {
    if (wide) causality.release(thread.agent, mbarrier.arriving_wide);
    if (!cta.launch().options->strict.scopes)
      causality.release_narrow(thread.agent, mbarrier.arriving);
  }
}

}  // namespace tegula::sim
