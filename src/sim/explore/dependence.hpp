#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

/// Which of the steps of an execution depend on each other: what an exploration (explorer.hpp)
/// may reverse.
///
/// An execution is a sequence of steps of processes: threads, operations in flight, and places in
/// which clusters start. Two steps
/// commute, or depend on each other; those that depend, and the steps of each process, are ordered
/// by *happens before*, the rest are not. Two executions that differ in the order of steps that
/// commute are the same *order* (Mazurkiewicz, "Trace theory", 1986), and one of them is enough.
namespace tegula::sim {

/// Dense numbers of the processes of the clusters that are there together: their threads first,
/// then their warps, then their warpgroups, then the places that they have, then operations in
/// flight as they come up.
using ProcessId = std::uint32_t;

/// For each process how many of its steps happened before; short vectors end in zeros.
using Clock = std::vector<std::uint32_t>;
using ClockRef = std::shared_ptr<Clock const>;

/// Bytes that a step reads or writes; an address has the CTA's rank plus one in bits 56 and up,
/// where it is of shared memory.
struct Bytes {
  std::uint64_t begin = 0;
  std::uint32_t count = 0;
  bool write = false;
};

/// One thing that a process did.
struct Step {
  enum class Kind : std::uint8_t {
    /// `amount` threads from `object` on, those of `mask` where they are one warp, go on together
    meet,
    issue,   ///< the operation others[0] is in flight from now on
    access,  ///< touches `bytes`
    reread,  ///< likewise, after their last change
    init,    ///< of the mbarrier `object`; amount: its count
    inval,
    arrive,    ///< amount: bytes that it expects
    expect,    ///< likewise, without an arrival
    complete,  ///< amount: bytes
    test,      ///< amount: parity
    wait,      ///< likewise
    barrier,   ///< the warp arrives at the named barrier `object`; amount: threads that it counts
    barrier_sync,  ///< and waits
    cluster_arrive,
    cluster_wait,
    registers,  ///< of the CTA `object`; amount: those taken, negative where they are given back
    wait_for,   ///< waits for the operations `others`
    exit,       ///< a thread of the CTA `object` ends
    /// the cluster in the place `object` has ended, or there was none, and the next one starts
    /// there, if `amount` is 1; in the first place first
    launch,
    /// an operation in flight takes effect, or reads; amount: bytes that it completes on the
    /// mbarrier `object`, 0 for none
    land,
  };
  Kind kind{};
  bool choice = false;  ///< the schedule could have taken another process instead
  ProcessId process = 0;
  std::uint64_t object = 0;
  std::int64_t amount = 0;
  int arrivals = 0;         ///< at the mbarrier; negative: so many more that its phase lacks
  std::uint32_t mask = 0;   ///< lanes, where it is `meet`
  std::uint32_t peers = 0;  ///< CTAs that must not have exited, as bits
  std::vector<Bytes> bytes;
  std::vector<ProcessId> others;
};

/// `second` need not have come after `first`: an order where it comes before is another one.
struct Reversal {
  std::uint32_t first = 0;  ///< numbers of steps
  std::uint32_t second = 0;
};

/// CTAs whose steps can be decided together, at most: Step::peers has a bit for each.
inline constexpr int kMostSteppedCtas = 32;

/// What clusters that are there together are made of.
struct ClusterShape {
  int ctas = 1;      ///< of all of them
  int threads = 32;  ///< of a CTA
  int clusters = 1;
  int ctas_of_each() const { return ctas / clusters; }
  ProcessId warp(int cta, int index) const {
    return static_cast<ProcessId>(ctas * threads + cta * threads / 32 + index);
  }
  ProcessId warpgroup(int cta, int index) const {
    return static_cast<ProcessId>(ctas * (threads + threads / 32) + cta * groups() + index);
  }
  int groups() const { return (threads + 127) / 128; }
  ProcessId place(int cluster) const {
    return static_cast<ProcessId>(ctas * (threads + threads / 32 + groups()) + cluster);
  }
  ProcessId processes() const { return place(clusters); }
};

/// Follows an execution step by step.
class Dependence {
 public:
  explicit Dependence(ClusterShape const& shape);

  /// The next step has happened. Appends to `reversals`, where given, the pairs that end in it.
  void perform(Step const& step, std::vector<Reversal>* reversals = nullptr);
  /// A process waits at the end of the execution for what does not come any more: the step that it
  /// did not take. Appends the reversals that would let it.
  void blocked(Step const& step, std::vector<Reversal>& reversals);
  /// What the process does next comes after all that the other one has done.
  void follow(ProcessId process, ProcessId other);
  /// Loads and stores that are no steps.
  void access(ProcessId process, std::vector<Bytes> const& bytes);
  /// Whether one of them was not ordered with another one, or a step, that it conflicts with.
  bool unordered() const { return unordered_; }
  /// Whether nothing has happened since these lanes met last, so that they need not again.
  bool have_met(ProcessId first, int count, std::uint32_t mask) const;

  std::uint32_t steps() const { return static_cast<std::uint32_t>(events_.size()); }
  /// Whether step a happened before step b.
  bool before(std::uint32_t a, std::uint32_t b) const { return has(*events_[b].clock, a); }
  /// The same for the same step with the same steps before it, whatever order they came in.
  std::uint64_t hash(std::uint32_t step) const { return events_[step].hash; }
  /// Likewise of phases that are complete, with what looked at them before: no step's hash
  /// tells that.
  std::vector<std::uint64_t> const& completions() const { return completions_; }

 private:
  using Kind = Step::Kind;
  static constexpr std::uint32_t kNoEvent = ~0u;

  struct Event {
    ProcessId process = 0;
    std::uint32_t index = 0;  ///< among the steps of its process, from 1
    ClockRef clock;           ///< of what happened before it, and itself
    std::uint64_t hash = 0;
  };
  struct Process {
    std::shared_ptr<Clock> clock;
    std::uint64_t hash = 0;
    std::uint32_t index = 0;
    bool accessed = false;              ///< it has touched memory since its last step
    std::vector<std::uint32_t> events;  ///< by index; ~0: of accesses only
  };
  /// A step that has been counted, by its process and its number there.
  struct Epoch {
    ProcessId process = 0;
    std::uint32_t index : 31 = 0;  ///< 0: none
    /// an access that is no step, before the process's step of that number
    std::uint32_t plain : 1 = 0;
    friend bool operator==(Epoch const&, Epoch const&) = default;
  };
  /// Steps that count for phases which are completed by them, and those that look at the phase.
  struct Phases {
    bool live = false;
    std::int64_t count = 0;
    std::int64_t pending = 0;
    std::int64_t tx = 0;
    std::int64_t phase = 0;
    std::vector<std::uint32_t> updates;   ///< that counted for the current phase
    std::vector<std::uint32_t> expects;   ///< of them, those that only expect bytes
    std::vector<std::uint32_t> previous;  ///< that counted for the phase before
    std::vector<std::uint32_t> looks;     ///< at the current phase
    ClockRef completed;                   ///< all that happened before the current phase began
    std::uint64_t completed_hash = 0;
    std::vector<ProcessId> waiting;  ///< warps at a named barrier
  };
  struct Cell {
    Epoch write;
    Epoch read;
    std::uint32_t more = 0;  ///< of more_reads_; 0: none
  };
  using Page = std::array<Cell, 1024>;
  struct Registers {
    std::int64_t free = 0;
    std::vector<std::pair<std::uint32_t, std::int64_t>> given;
    std::vector<std::uint32_t> taken;
  };

  static bool has(Clock const& clock, ProcessId process, std::uint32_t index) {
    return process < clock.size() && clock[process] >= index;
  }
  bool has(Clock const& clock, std::uint32_t event) const {
    return has(clock, events_[event].process, events_[event].index);
  }
  Process& process(ProcessId id);
  Clock& own(Process& process);
  static void join(std::shared_ptr<Clock>& into, Clock const& clock);
  void meet(Step const& step);
  std::pair<ProcessId, ProcessId> lanes_of(ProcessId id) const;
  void share(ProcessId from);

  /// The step at hand.
  struct Current {
    Step const& step;
    std::uint32_t event;
    Process& process;
    std::shared_ptr<Clock> before;              ///< what had to come before it
    std::uint64_t depends = 0;                  ///< hashes of what did
    std::vector<std::uint32_t> conflicts = {};  ///< that might have come after it
    std::vector<Reversal>* reversals = nullptr;
    Phases* mbarrier = nullptr;  ///< that it is at
    bool looks = false;          ///< at the mbarrier's phase, and does not count for it
  };
  void find_mbarrier(Current& now);
  void order(Current& now);
  void take_effect(Current& now);
  void need(Current& now, Clock const& clock, std::uint64_t hash);
  void conflict(Current& now, std::uint32_t event);
  void conflict(Current& now, Epoch const& epoch);
  void reverse(Current& now) const;
  void conclude(Current& now);
  template <class F> void for_each_cell(Bytes const& bytes, F&& f);
  void add_read(Cell& cell, Epoch self, Clock const& clock);
  void touch(Current& now);
  void before_update(Current& now, Phases const& phases, bool expects);
  void before_look(Current& now, Phases const& phases, bool needed);
  void complete_phase(Phases& phases, std::uint32_t event, std::vector<Reversal>* reversals);
  void leave(Current& now, ProcessId lane);
  void begin_cluster(int place);
  void after_cluster(Current& now, int place);
  Phases& cluster_barrier(ProcessId lane);

  ClusterShape shape_;
  std::vector<Event> events_;
  std::vector<Process> processes_;
  std::vector<std::uint64_t> completions_;
  std::unordered_map<std::uint64_t, Phases> mbarriers_;
  std::unordered_map<std::uint64_t, Phases> barriers_;
  std::vector<std::uint32_t> first_launches_;   ///< by place
  std::vector<Phases> cluster_barriers_;        ///< by place
  std::vector<std::int64_t> cluster_arrivals_;  ///< by warp
  bool unordered_ = false;                      ///< some access was
  std::vector<int> live_lanes_;                 ///< by warp
  std::vector<Phases> exits_;                   ///< by CTA
  std::vector<Registers> registers_;            ///< by CTA
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::vector<std::vector<Epoch>> more_reads_;
};

}  // namespace tegula::sim
