#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checker/causality.hpp"
#include "checker/global_shadow.hpp"
#include "checker/sites.hpp"
#include "tegula/arch/scope.hpp"
#include "tegula/arch/source_location.hpp"

/// What orders memory between the clusters of a launch: fences and atomics. PTX ISA, memory
/// consistency model, "Release and Acquire Patterns": a fence and then a strong write of the same
/// thread release, a strong read that observes that one and then a fence acquire; both fences'
/// scopes must include both threads ("Morally strong operations"). "Observation Order": a read
/// observes the write whose value it reads, and, through atomics that read and write, those before.
/// A plain store in between ends that. The two must be morally strong, too: their scopes include
/// both threads, and they are of the same bytes.
///
/// Clusters execute atomics in the order of their indices, each after those before it are done, so
/// that a cluster learns of earlier ones alone, and all of this is touched by one of the host's
/// threads at a time.
namespace tegula::sim {

/// What is ordered before a moment of a thread, in its cluster: by agent, the time up to which its
/// accesses are.
struct CausalPast {
  std::vector<Time> known;
  std::vector<Time> fenced;  ///< likewise with a fence.proxy.async since

  bool covers(std::uint32_t agent, std::uint32_t time) const { return in(known, agent, time); }
  bool covers_fenced(std::uint32_t agent, std::uint32_t time) const {
    return in(fenced, agent, time);
  }
  /// What another one orders, too.
  void add(CausalPast const& other);
  /// Whether it orders all that another one does.
  bool includes(CausalPast const& other) const;

 private:
  static bool in(std::vector<Time> const& times, std::uint32_t agent, std::uint32_t time) {
    return agent < times.size() && static_cast<Time>(time) <= times[agent];
  }
};

/// Some releases, by number, sorted; and those of them behind which there is a fence.proxy.async.
struct Releases {
  std::vector<std::uint32_t> all;
  std::vector<std::uint32_t> fenced;

  bool operator<(Releases const& other) const {
    return std::tie(all, fenced) < std::tie(other.all, other.fenced);
  }
};

/// Whether it holds threads of other clusters.
constexpr bool reaches_clusters(Scope scope) { return scope == Scope::gpu || scope == Scope::sys; }

/// A fence after which its thread executed an atomic, or a store that releases.
struct Release {
  std::int64_t cluster = 0;
  int cta = 0;          ///< rank in the cluster
  int thread = 0;       ///< index in the CTA
  bool of_cta = false;  ///< its scope is the CTA alone, or the cluster
  Site by;
  CausalPast past;
  Releases before;  ///< that are ordered before this one
};

/// A strong access to a word of global memory.
struct WordAccess {
  std::uintptr_t address = 0;
  int bytes = 0;
  bool reads = false;  ///< its thread learns what was there
  bool writes = false;
  bool modifies = false;  ///< what it writes goes on from what was there
  bool narrow = false;    ///< its scope leaves other clusters out
  Site by;
};

/// What a strong read of a word has seen: what was written from one access on up to another, itself
/// among them where it writes, by number (GlobalOrder::next_number).
struct Seen {
  std::uintptr_t address = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  auto operator<=>(Seen const&) const = default;
};

/// The releases of a launch, and where they can be observed.
class GlobalOrder {
 public:
  /// What the value of a word tells those who read it.
  struct Word {
    int bytes = 0;                        ///< of the access that wrote it
    std::vector<std::uint32_t> releases;  ///< of its last store, and of the atomics since; sorted
    std::uint64_t store = 0;              ///< the number of its last store
    /// By cluster, and what it had learnt of others (GlobalActor::foreign): the number of its last
    /// atomic or store; kNever: it was an atomic that wrote nothing.
    std::map<std::pair<std::int64_t, std::uint32_t>, std::uint64_t> writes;
  };
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  /// The launch's strong accesses have numbers, in the order in which they are executed.
  std::uint64_t next_number() { return ++accesses_; }
  /// Whether these reads have seen all that a cluster wrote by atomics and stores of `size` bytes,
  /// when it had learnt no more than `foreign`, to the bytes from `begin` to `end`.
  bool seen(std::vector<Seen> const& reads, std::int64_t cluster, std::uint32_t foreign,
            std::uintptr_t begin, std::uintptr_t end, int size) const;

  std::uint32_t add(Release release);
  Release const& release(std::uint32_t id) const { return releases_[id]; }
  Word& at(std::uintptr_t address) { return words_[address]; }
  /// Whether one of the releases `earlier` is among `later` and those ordered before these;
  /// `fenced`: with a fence.proxy.async on the way.
  bool reaches(Releases const& later, Releases const& earlier, bool fenced = false) const;
  /// By release, whether a walk back has come there: without a fence.proxy.async on its way, and
  /// with one.
  using Walked = std::vector<std::array<bool, 2>>;
  /// What the cluster's own releases order, among `later` and those before these; none that have
  /// been walked.
  CausalPast past_of(std::int64_t cluster, Releases const& later, Walked& walked) const;
  std::size_t releases() const { return releases_.size(); }

  /// A cluster executes a strong access to the word: whether the latest was another's, and one of
  /// the two writes.
  bool comes_after_another(std::uintptr_t address, std::int64_t cluster, bool writes) {
    Latest const own{cluster, writes};
    Latest const last = std::exchange(latest_.try_emplace(address, own).first->second, own);
    return last.cluster != cluster && (last.writes || writes);
  }

  /// A release and an acquire that would have ordered two CTAs, were one of them not of the scope
  /// of a CTA or a cluster.
  struct TooNarrow {
    std::int64_t released = 0;  ///< the clusters,
    std::int64_t acquired = 0;
    Site by;  ///< and the fence or access of the wrong scope
  };
  void add(TooNarrow const& pair);
  std::vector<TooNarrow> const& too_narrow() const { return too_narrow_; }

 private:
  template <class F>
  void walk_back(Releases const& later, bool fenced, Walked& walked, F&& visit) const;

  using Bits = std::vector<std::uint64_t>;
  /// Adds the releases, and those ordered before them, to the set.
  void add_past(std::vector<std::uint32_t> const& releases, Bits& set) const;

  std::deque<Release> releases_;
  std::deque<Bits> before_;  ///< of each release: those ordered before it, itself left out
  std::unordered_map<std::uintptr_t, Word> words_;
  std::vector<TooNarrow> too_narrow_;
  std::uint64_t accesses_ = 0;
  struct Latest {
    std::int64_t cluster;
    bool writes;
  };
  std::unordered_map<std::uintptr_t, Latest> latest_;
};

/// The fences and atomics of one cluster, as far as they concern others: those among its own
/// threads are Causality's.
class ClusterOrder {
 public:
  /// `strict`: an atomic releases what its own thread has fenced, a fence acquires what its own
  /// thread has observed, and no more (Options::strict.fences).
  void start(GlobalOrder& order, std::int64_t cluster, bool strict);
  GlobalOrder& launch() { return *order_; }
  /// Whether anything has been acquired or released: if not, `foreign` and `cover` are 0 for all.
  bool idle() const { return acquires_.empty() && own_.empty(); }

  /// A fence of the thread `who`, with all that is ordered before it.
  void fence(GlobalActor const& who, Scope scope, SourceLocation where, CausalPast past);
  /// Whether what the thread's fences have acquired from other clusters came after an agent's
  /// access there at the time: of one that has the same number in each cluster.
  bool acquired(GlobalActor const& who, int agent, Time time) const;
  /// What the cluster itself did before what the thread has acquired now from others: they have
  /// acquired that before, and released. Of clusters that run together.
  CausalPast own_past(GlobalActor const& who);
  /// A strong access of the thread `who`, in two halves. What it reads: it observes releases, and
  /// acquires them where it `acquires`.
  void look(GlobalActor const& who, WordAccess const& access, bool acquires);
  /// What it writes: it releases its past, where that is given, or else what a fence before it
  /// covers.
  void put(GlobalActor const& who, WordAccess const& access, std::optional<CausalPast> past);

  /// A number for what strong reads of the words in these bytes have seen that come before what the
  /// thread `who` does now: an index into seen().
  std::uint32_t seen(GlobalActor const& who, std::uintptr_t address, std::size_t bytes);
  std::vector<std::vector<Seen>> const& seen() const { return seen_; }
  /// Whether the access `who` comes after what a site of the cluster wrote to these bytes, since a
  /// strong read before it has seen that.
  bool has_seen(GlobalActor const& who, GlobalSite const& site, std::uintptr_t begin,
                std::uintptr_t end) const {
    return order_->seen(seen_[who.seen], cluster_, site.foreign, begin, end, site.strength.bytes);
  }
  /// A number for what the thread `who` knows of other clusters: an index into foreigns().
  std::uint32_t foreign(GlobalActor const& who);
  /// Releases of other clusters.
  std::vector<Releases> const& foreigns() const { return foreigns_; }
  /// A number for which of the cluster's releases came after the access: an index into covers().
  std::uint32_t cover(std::uint32_t agent, std::uint32_t time);
  /// Releases of this cluster.
  std::vector<Releases> const& covers() const { return covers_; }
  /// A fence, or a load that acquires, that has acquired releases of other clusters, with those
  /// that its thread had acquired before.
  struct Acquire {
    std::uint32_t agent;
    std::uint32_t time;
    std::vector<std::uint32_t> releases;
    int cta;     ///< rank in the cluster
    int thread;  ///< index in the CTA
    Site by;
  };
  std::vector<Acquire> const& acquires() const { return acquires_; }
  /// A release of another cluster that a thread of this one has observed by a relaxed access.
  struct Observed {
    std::uint32_t release;
    std::uint32_t time;  ///< of the first such access
    int cta;             ///< rank in the cluster
    int thread;          ///< index in the CTA
    Site by;
  };
  /// All of them.
  std::vector<Observed> observed() const;

 private:
  struct ThreadState {
    std::optional<Release> fence;           ///< its last, ...
    std::optional<std::uint32_t> release;   ///< ... once an atomic has followed
    std::optional<std::uint32_t> previous;  ///< the release before that
    std::vector<std::uint32_t> observed;    ///< by atomics that no fence has followed
    GlobalActor fenced_by;                  ///< who and when, of `fence`
    /// by thread: the time of its latest fence that is in `fence`
    std::map<int, std::uint32_t> taken;
    std::uint32_t agent = 0;              ///< the thread's, of `seen`
    std::vector<Observed> seen;           ///< whether a fence has followed or not, in order of time
    std::vector<std::uint32_t> seen_ids;  ///< of `seen`, sorted
    std::map<int, std::size_t> overseen;  ///< by thread: how much of its `seen` a fence has taken
    /// By the word's address, its releases there that no later one includes: whatever it stores
    /// there releases them again.
    std::unordered_map<std::uintptr_t, std::vector<std::uint32_t>> released;
  };
  bool take_others(GlobalActor const& who, ThreadState& state);
  void observe_others(GlobalActor const& who, ThreadState& state);
  /// The thread acquires releases of other clusters; returns those that the scopes leave out.
  std::vector<std::uint32_t> take(GlobalActor const& who,
                                  std::vector<std::uint32_t> const& releases, bool of_cta,
                                  Site const& by);
  /// The releases that a read of the word observes.
  std::vector<std::uint32_t> const& observe(GlobalActor const& who, WordAccess const& access);
  /// The thread writes to the word, and releases this, if anything, with what it released there
  /// before. Releases of others stay where an atomic has seen them.
  void publish(GlobalActor const& who, WordAccess const& access,
               std::optional<std::uint32_t> release);
  ThreadState& state(GlobalActor const& who) { return threads_[who.cta * 1024 + who.thread]; }

  GlobalOrder* order_ = nullptr;
  std::int64_t cluster_ = 0;
  bool strict_ = false;
  std::map<int, ThreadState> threads_;
  std::vector<int> observers_;  ///< those of threads_ that have seen something
  std::vector<Acquire> acquires_;
  /// Those of an agent, by index, in order: each has the releases of those before.
  struct Acquirer {
    std::uint32_t agent;
    std::vector<std::uint32_t> acquires;
  };
  std::vector<Acquirer> acquirers_;
  /// By acquirer, how many of its acquires somebody knows of; and with a fence.proxy.async since.
  using OfAgents = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  /// What a thread knew when foreign() looked last.
  struct Learnt {
    Causality::Snapshot knowledge;
    std::size_t acquires = 0;  ///< of the cluster, in all
    OfAgents of_agents;
    std::uint32_t foreign = 0;
  };
  std::unordered_map<int, Learnt> learnt_;  ///< by agent
  std::map<OfAgents, std::uint32_t> foreign_of_learnt_;
  std::map<std::uint32_t, GlobalOrder::Walked> walked_;  ///< by agent
  std::vector<std::uint32_t> own_;                       ///< releases
  std::map<Releases, std::uint32_t> foreign_numbers_, cover_numbers_;
  std::vector<Releases> foreigns_, covers_;
  std::uint64_t number_ = 0;  ///< of the strong access that is executed
  /// Strong reads of a word, by its address: the last of each thread.
  struct Read {
    std::uint32_t agent;
    std::uint32_t time;
    Seen seen;
  };
  std::map<std::uintptr_t, std::vector<Read>> reads_;
  std::map<std::vector<Seen>, std::uint32_t> seen_numbers_;
  std::vector<std::vector<Seen>> seen_;
  /// Of cover(), by agent and time, when there were so many releases of this cluster.
  std::unordered_map<std::uint64_t, std::uint32_t> cover_of_access_;
  std::size_t covered_of_ = 0;
};

}  // namespace tegula::sim
