#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "checker/agents.hpp"
#include "checker/causality.hpp"
#include "checker/copy_shadow.hpp"
#include "checker/global_races.hpp"
#include "checker/phases.hpp"
#include "checker/races.hpp"
#include "checker/shared_state.hpp"
#include "checker/tensor_shadow.hpp"
#include "checker/wait_order.hpp"
#include "machine/cluster.hpp"
#include "machine/observers.hpp"

namespace tegula::sim {

/// What a warp of a peer did on one line to a CTA's shared memory, or to its mbarrier; or a copy
/// out of the CTA's shared memory that completes on a peer's mbarrier. It must come before the
/// CTA's exit.
struct PeerAccess {
  Instruction instruction;
  SourceLocation where;
  std::uint32_t address;  ///< of the CTA's shared memory
  int cta;                ///< rank of who did it last,
  int warp;
  int lane;  ///< and the lane
  /// the cluster's barrier orders it once that has been completed so often
  std::int64_t barrier_phase;
  std::int64_t mbarrier_phase;  ///< the phase that it counted for; -1: it is no arrival
  bool writes;                  ///< to the CTA's shared memory
  int agent;                    ///< of the warp's first lane; of a copy, the mbarrier's
  /// When each lane did it last, or (the first) the copy landed; 0: it did not.
  std::array<Time, 32> times = {};
};

/// Notes that a lane did it at the time. One by the same warp on the same line takes the place of
/// the earlier one.
void note_access(std::vector<PeerAccess>& accesses, PeerAccess access, int lane, Time time);

/// Holds what the threads of a cluster do to memory against what they did before: bytes that nobody
/// has written, copies in flight, and, where Cta::finding_races() says so, what nothing orders.
/// Each function is an event of the machine (machine/observers.hpp), for a cluster that is checked.
class Checker {
 public:
  /// A cluster starts. `order` is the launch's; null: races are not looked for.
  void start(Cluster& cluster, GlobalOrder* order);
  GlobalRaces& global_races() { return global_races_; }

  // Accesses by threads (shared_checks.cpp, global_checks.cpp).

  void shared_accessed(Cta& cta, SharedAccess const& access);
  void shared_unpoisoned(Cta& cta, std::uint32_t address, std::uint32_t bytes);
  void shared_discarded(Cta& cta, std::uint32_t address, std::uint32_t bytes, SourceLocation where);
  void matrix_row_accessed(Cta& cta, SharedAccess const& access, MatrixForm form, int row);
  void global_accessed(Cta& cta, GlobalUse const& use);
  void global_reached(Cta& cta, GlobalUse const& use);
  void strong_access_performed(Cta& cta, StrongAccess const& access);

  // What orders them (order.cpp).

  void warp_synchronised(Cta& cta, std::uint32_t lanes);
  void warpgroup_met(Cta& cta);
  void barrier_arrived(Cta& cta, int id);
  void barrier_completed(Cta& cta, int id, std::uint32_t waiting, bool waits);
  void cluster_barrier_arrived(Cta& cta, Warp const& warp, bool relaxed);
  void cluster_barrier_completed();
  void cluster_barrier_passed(Cta& cta, Warp const& warp);
  void memory_fenced(Cta& cta, Scope scope, SourceLocation where);
  void proxy_fenced(Cta& cta, SourceLocation where);
  void shared_proxy_fenced(Cta& cta, SourceLocation where);
  void inits_fenced(Cta& cta);
  void grids_waited(Cta& cta);
  void changing_registers(Cta& cta, int warpgroup, bool increase, SourceLocation where);
  void registers_changed(Cta& cta, int warpgroup);

  // Mbarriers (mbarrier_checks.cpp) and peers (peer_checks.cpp).

  void mbarrier_initialised(Cta& cta, MbarrierState const& mbarrier, bool again);
  void mbarrier_invalidated(Cta& cta, MbarrierState const& mbarrier, SourceLocation where);
  void mbarrier_used(Cta& cta, MbarrierState const& mbarrier, Instruction instruction,
                     SourceLocation where);
  void mbarrier_arrived(Cta& cta, MbarrierState const& mbarrier, Instruction instruction,
                        SourceLocation where, bool relaxed, bool wide);
  void bytes_completed(Cta& cta, MbarrierState const& mbarrier, InFlight* operation);
  void copies_arrived(Cta& cta, MbarrierState const& mbarrier, InFlight const& operation);
  void phase_completed(Cta& cta, MbarrierState const& mbarrier);
  void phase_passed(Cta& cta, MbarrierState const& mbarrier, Thread const& thread,
                    SourceLocation where, bool relaxed);
  void peer_reached(Cta& peer, Instruction instruction, std::uint32_t address,
                    SourceLocation where);
  void cta_exited(Cta& cta);

  // Copies and operations in flight (copy_checks.cpp, flight_checks.cpp).

  void copy_issuing(Cta& cta, AsyncCopy const& copy);
  void copy_landed(Cta& cta, AsyncCopy const& copy);
  void copy_retired(Cta& cta, AsyncCopy const& copy, Thread const& issuer);
  void issuing(Cluster& cluster, InFlight& operation);
  void issued(Cluster& cluster, InFlight& operation);
  void landed(Cluster& cluster, InFlight const& operation);
  void reads_retired(Cluster& cluster, InFlight const& operation);
  void retired(Cluster& cluster, InFlight const& operation, bool for_nobody);
  void waited_for(InFlight const& operation);
  bool laid_out_by(Cta& cta, TmaSwizzle swizzle, std::uint32_t address, Instruction instruction,
                   SourceLocation where, Culprit who);

  // Tensor memory (tensor_checks.cpp).

  void tensor_fenced(Cta& cta, bool before);
  void tensor_allocated(Cta& cta, int column, int columns);
  void tensor_freed(Cta& cta, int column, int columns, SourceLocation where);

  /// Of the cluster so far: Report::open_choices.
  std::int64_t open_choices() const {
    return global_races_.open_choices() + static_cast<std::int64_t>(tests_.size());
  }

  std::string last_change(void const* address) const { return global_races_.last_change(address); }

 private:
  /// The threads that have arrived at an mbarrier in one phase, in order.
  struct Arrivals {
    std::vector<int> agents;
    SourceLocation where;  ///< of the last,
    Time time = 0;         ///< and when
    /// one of them does not come after the last arrival of the phase before
    bool unordered = false;
  };
  struct OfMbarrier {
    int agent = 0;  ///< of the copies that complete on it
    Time init_time = 0;
    Published arriving;  ///< by those that have arrived in the current phase
    /// likewise by those of other CTAs that release at the cluster's scope
    Published arriving_wide;
    Published complete;  ///< by the arrivals of the phases that are complete
    Published complete_wide;
    std::vector<PeerAccess> accesses;  ///< that no wait has ordered before the CTA's exit
    std::unique_ptr<PhaseHistory> phases;
    WaitOrder::OfMbarrier waits;
    Arrivals arrivals, arrivals_before;  ///< of the present phase, and of the one before
  };
  struct OfThread {
    /// The mbarriers that it has initialised, and when; the first `fenced_inits` before a
    /// fence.mbarrier_init.
    struct Init {
      int mbarrier;
      Time time;
    };
    std::vector<Init> inits;
    std::size_t fenced_inits = 0;
    std::uint32_t started_peers = 0;        ///< CTAs of the cluster that it has accessed
    PhaseHistory* waited = nullptr;         ///< the mbarrier that it has waited for last
    SourceLocation proxy_fence;             ///< its latest fence.proxy.async; line 0: none
    bool strong_right = true;               ///< nothing was found of its latest strong access
    std::unique_ptr<TensorHistory> tensor;  ///< null: it has none
  };
  struct OfCta {
    OfCta(Causality const& causality, SiteTable const& sites) : shadow(causality, sites) {}
    SharedState state;
    RaceShadow shadow;
    CopyShadow copies;
    TensorShadow tensor;
    std::array<Published, kBarriers> barriers;  ///< by the warps that have arrived at each
    std::array<Published, kBarriers> waits;     ///< likewise, for the order of waits
    std::vector<OfMbarrier> mbarriers;          ///< by MbarrierState::number
    std::vector<PeerAccess> peer_accesses;  ///< loads and stores of its shared memory by its peers
    std::vector<Time> register_times;       ///< of each warpgroup's latest setmaxnreg
  };
  OfCta& of(Cta const& cta) { return *ctas_[static_cast<std::size_t>(cta.rank())]; }
  OfMbarrier& of(Cta const& cta, MbarrierState const& mbarrier) {
    return of(cta).mbarriers[static_cast<std::size_t>(mbarrier.number)];
  }
  OfThread& of(Thread const& thread) { return threads_[static_cast<std::size_t>(thread.agent)]; }
  /// What orders a thread's operations on tensor memory: made when it is first asked for ...
  static TensorHistory& history(OfThread& thread) {
    if (thread.tensor == nullptr) thread.tensor = std::make_unique<TensorHistory>();
    return *thread.tensor;
  }
  /// ... but not for a look at its fences.
  TensorFences const& fences(int thread) const {
    static TensorFences const none;
    auto const& history = threads_[static_cast<std::size_t>(thread)].tensor;
    return history == nullptr ? none : history->fences;
  }
  /// The agent of a lane of the current warp.
  static int agent(Cta const& cta, int lane) {
    Thread const& self = cta.current_thread();
    return self.agent - self.lane + lane;
  }
  std::uint16_t site(Instruction instruction, SourceLocation where) {
    return agents_.sites().number(instruction, where);
  }
  /// Of an access by the current thread.
  std::uint16_t site(Cta const& cta, SharedAccess const& access) {
    if (!is_strong(access.instruction)) return site(access.instruction, access.where);
    return agents_.sites().number(access.instruction, access.where, access.strength,
                                  cta.current_thread().cta->rank());
  }
  Culprit culprit(int agent) const { return agents_.culprit(agent); }
  /// As findings of a CTA call an agent that is a thread.
  std::string agent_text(Cta const& cta, int agent) const {
    return agents_.text(agent, cta.current_thread().cta->rank());
  }

  bool check_state(Cta& cta, OfCta& own, SharedAccess const& access);
  void plain_shared_access(Cta& cta, SharedAccess const& access);
  bool check_strong(Cta& cta, SharedAccess const& access);
  void strong_shared_access(Cta& cta, StrongAccess const& access);
  void shared_findings(Cta& cta, SharedAccess const& access);
  /// What is in flight into a byte, for a finding.
  struct Pending {
    Instruction instruction;
    SourceLocation where;
    std::string issuer;
    Culprit who;
    std::string order;
  };
  Pending pending_write(Cta const& cta, std::uint32_t address);
  std::string order_after_read(Cta const& cta, InFlight const& reader);
  void generic_race(Cta& cta, SharedAccess const& access, Conflict conflict);
  void races_with_copy(Cta& cta, SharedAccess const& access, Conflict const& conflict,
                       char const* waiter);
  void overwrites_source(Cta& cta, SharedAccess const& access, Conflict const& conflict);
  std::string order_of_threads(Cta const& cta, Culprit const& self, Conflict const& conflict,
                               bool arrives) const;
  std::string order_of_phase(Cta const& cta, SharedRange const& mbarrier, std::int64_t phase,
                             std::int64_t issued, char const* waiter);
  std::string fence_beside(Conflict const& conflict) const;
  std::string order_of_reader(Cta& owner, InFlight const& operation, int thread);
  void async_race(Cta& cta, InFlight const& operation, bool write, Conflict conflict);
  void races_with_launch(Cta& cta, GlobalUse const& use);
  bool after_launches(Cta const& cta, GlobalUse const& use) const;

  void check_init_known(Cta& cta, MbarrierState const& mbarrier, Instruction instruction,
                        SourceLocation where);
  void check_visible(Cta& cta, MbarrierState const& mbarrier, InFlight const& operation);
  void invalidated_early(Cta& cta, MbarrierState const& mbarrier, SourceLocation where,
                         Conflict const& conflict);
  void check_waits(Cta& cta, MbarrierState const& mbarrier);
  void note_arrival(OfMbarrier& mbarrier, int thread, SourceLocation where);
  static int uncounted_arrivals(OfMbarrier const& mbarrier, int count);
  void check_given_back(Cta& cta, OfMbarrier& mbarrier, std::int64_t phase, SourceLocation where);
  void release_into(Cta& cta, OfMbarrier& mbarrier, bool relaxed, bool wide);
  void note_told(Cluster& cluster, InFlight const& operation);
  void note_copied_out(Cluster& cluster, InFlight const& operation);
  bool comes_before_exit(Cta const& cta, PeerAccess const& access) const;
  std::string order_of_exit(Cta const& cta, PeerAccess const& access) const;
  void check_peers_at_exit(Cta& cta);

  void tensor_issuing(Cluster& cluster, InFlight const& operation);
  void fly(Cluster& cluster, TensorRange const& range, InFlight const& operation);
  void check_tensor_range(Cta& cta, InFlight const& operation, TensorRange const& range,
                          bool write);
  TensorOrder tensor_order(Thread const& issuer, bool of_warp, TensorStamp const& stamp) const;
  bool is_pipelined(Thread const& issuer, InFlight const& operation,
                    TensorStamp const& stamp) const;
  std::string tensor_issuer_text(Cta const& cta, TensorStamp const& stamp) const;
  void stamp_tensor(Cluster& cluster, InFlight const& operation, int agent, Time time);
  void commit_arrived(Cta& cta, MbarrierState const& mbarrier, InFlight const& operation);

  Issuers issuers_of(Cluster const& cluster, InFlight const& operation) const;
  void stamp_as_own(Cluster& cluster, InFlight const& operation);
  void bring(Cta& cta, CopyShadow::Id copy, SharedRange const& range, bool in_order, Overwrite by);
  void report_lost(Cta& cta, Copy const& lost, Overwrite const& by);

  bool races_ = false;
  // These two own the vectors that the members after them share, and so must outlive them.
  Agents agents_;
  WaitOrder wait_order_;
  GlobalRaces global_races_{agents_};
  std::vector<std::unique_ptr<OfCta>> ctas_;
  std::vector<OfThread> threads_;  ///< by agent
  /// thread, CTA, mbarrier, phase: that it tested
  std::set<std::tuple<int, int, int, std::int64_t>> tests_;
  Published cluster_arriving_;  ///< by the warps that have arrived at the cluster's barrier since
  Published cluster_complete_;  ///< by those of its latest phase
  Published cluster_arriving_waits_, cluster_complete_waits_;  ///< likewise, for the order of waits
  /// What the issuer of each tcgen05.commit in flight knew: it is over when the commit arrives.
  std::map<InFlight const*, Published> commits_;
};

}  // namespace tegula::sim
