#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "explore/dependence.hpp"
#include "explore/processes.hpp"
#include "machine/baton.hpp"
#include "machine/pending_clusters.hpp"
#include "machine/visible.hpp"
#include "tegula/sim/schedule.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

class Cluster;
class Cta;
class InFlight;
class InFlightGroups;
struct Thread;
struct Warp;

/// Decides step by step who goes in one execution of a cluster, or of several that are there
/// together, and records the steps.
///
/// A thread runs until it is about to do something visible, and waits there (Cluster::before) until
/// it is chosen; an operation in flight waits to be landed. When nobody runs, one of those that can
/// go on is chosen. So there is a choice at visible steps only, and the state between two steps
/// does not depend on the order in which what is invisible was done.
///
/// Several clusters have a thread of the host each, of which the one with the baton runs: it
/// decides who is next, and hands the baton to that one's cluster. Under cluster launch control
/// they have places, in each of which one cluster after the other starts: that, too, is a step, as
/// is a request for a cluster that has not started.
class Explorer {
 public:
  /// `accesses`: whether each load and store is a step that is chosen; else only what synchronises
  /// is, and loads and stores are held against the order that it gives them (unordered()).
  /// `refusals`: as ExploreOptions has it.
  Explorer(Processes& processes, bool accesses, bool refusals, std::int64_t max_steps);

  /// The processes to choose first, in order; the machine's choice thereafter.
  void follow(std::vector<ProcessId> processes) { follow_ = std::move(processes); }
  /// The choices that differ from the machine's.
  void follow(Choices const& choices);

  /// Lists alternatives().
  void list_alternatives() { list_alternatives_ = true; }

  // Called by the launch.

  /// Several clusters are there together. `pending`: those that start in their places; null: each
  /// place has one, which is there from the beginning on.
  void share(Baton& baton, PendingClusters* pending);
  /// Its place has got the baton for the first time.
  void begin() { ++begun_; }
  /// The cluster that starts in the place next, when its turn has come; nothing: there is none
  /// left.
  std::optional<std::int64_t> launch(int place);

  // Called by the machine.
  void start(Cluster& cluster);
  void before(Visible const& what);
  void met(Cta const& cta, Warp const& warp, std::uint32_t lanes);
  void met_warpgroup(Cta const& cta, int first_warp);
  /// A thread or warpgroup is about to issue the operation.
  void issue(InFlight& operation);
  void retire(InFlight const& operation);
  /// The current thread is to return from the kernel.
  void before_exit();
  /// It has.
  void exit(Thread const& thread);
  /// It has ended, or was ended.
  void finish(Cluster& cluster);
  /// Nobody of the cluster runs: lets somebody go on until somebody of it does. False where that is
  /// the machine's business.
  bool choose(Cluster& cluster);
  bool decides() const { return active_; }
  /// Whether the cluster's requests for others are refused, whoever waits.
  bool refuses(Cluster const& cluster) const;

  // The execution, afterwards.
  std::vector<Step> const& steps() const { return steps_; }
  std::vector<Reversal> const& reversals() const { return reversals_; }
  Dependence const& dependence() const { return dependence_; }
  /// The choices that differ from the machine's.
  Choices const& choices() const { return choices_; }
  std::int64_t chosen() const { return chosen_; }
  /// For each choice, who could have gone.
  std::vector<std::vector<ProcessId>> const& alternatives() const { return alternatives_; }
  /// Whether it ran to its end under the explorer.
  bool complete() const { return complete_; }
  /// The first of the choices to follow that could not be made.
  std::optional<Choices::Choice> unmade() const;
  bool accesses() const { return choices_.accesses; }
  /// Whether loads and stores were found that nothing orders, or that wait for others.
  bool unordered() const { return spun_ || dependence_.unordered(); }

 private:
  /// A thread that waits to be chosen, or a place.
  struct Pending {
    Step step;
    Visible what{};
    Thread* thread = nullptr;  ///< null: it is a place, or what refuses
    std::uint64_t seen = 0;    ///< what memory holds that it has read again and again
    bool again = false;        ///< it waits until that, or the phase, changes
    bool refuses = false;      ///< it is what refuses the requests of the cluster in a place
  };
  struct Flying {
    Cluster* cluster;
    InFlight* operation;
    ProcessId process;
    ProcessId after;  ///< lands after it; itself where there is none
    bool twice;       ///< reads first
    int landed = 0;   ///< how often it was chosen
  };

  // Who goes next: explorer.cpp.
  bool can_go(Pending const& pending) const;
  bool can_land(Flying const& flying) const;
  bool possible(ProcessId process) const;
  std::optional<ProcessId> preferred();
  std::optional<ProcessId> next();
  void choose(int place);
  bool goes_on(int place) const;
  int place_of(ProcessId process) const;
  void go(ProcessId process);
  void go(Pending& pending);
  void list();
  void stop(bool stuck);

  // What they do, as steps: explorer_steps.cpp.
  Step step_of(Visible const& what, Pending& pending);
  Step exit_of(Thread const& thread) const;
  void add_access(Step& step, Visible const& what) const;
  void land(Flying& flying);
  void perform(Step step);
  ProcessId self(Thread const& thread) const;
  int rank(Cluster const& cluster, int cta) const;
  int rank(Cta const& cta) const;

  // The places, and the clusters that start there: explorer_places.cpp.
  Bytes launches() const;
  void may_refuse(int place);
  void end_refusals(int place);

  Processes& processes_;
  std::int64_t const max_steps_;
  Cluster* cluster_ = nullptr;          ///< that has the baton
  std::vector<Cluster*> clusters_;      ///< by place
  std::vector<bool> launched_;          ///< by place: a cluster starts there, or none is left
  std::vector<bool> has_launched_;      ///< by place: once
  std::vector<bool> refused_;           ///< by place: requests are, from now on
  std::vector<std::uint32_t> started_;  ///< by place: how many clusters have
  Baton* baton_ = nullptr;              ///< null: there is one cluster
  PendingClusters* pending_clusters_ = nullptr;
  int begun_ = 0;                    ///< places that have had the baton
  std::optional<ProcessId> handed_;  ///< who goes next, when its cluster has the baton
  Dependence dependence_;
  std::vector<Step> steps_;
  std::vector<Reversal> reversals_;
  std::int64_t chosen_ = 0;  ///< steps that were
  ProcessId last_ = 0;
  std::map<ProcessId, Pending> pending_;
  std::vector<Flying> flying_;
  std::unordered_map<ProcessId, ProcessId> pipelines_;  ///< a thread's latest tcgen05.mma or commit
  std::unordered_map<ProcessId, std::uint32_t> issued_;
  /// What a thread did last, where doing it again may change nothing.
  struct Last {
    Visible::Kind kind;
    int cta;
    std::uint64_t address;
    std::uint64_t before;  ///< what memory held
  };
  std::unordered_map<ProcessId, Last> did_;
  int forced_ = 0;
  bool spun_ = false;
  std::vector<ProcessId> follow_;
  std::size_t followed_to_ = 0;
  std::map<std::int64_t, ProcessId> replay_;  ///< choices to follow that have not been made
  std::optional<Choices::Choice> unmade_;
  Choices choices_;
  std::vector<std::vector<ProcessId>> alternatives_;
  bool list_alternatives_ = false;
  bool active_ = true;
  bool complete_ = true;
};

}  // namespace tegula::sim
