#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "machine/fiber.hpp"
#include "machine/global_memory.hpp"
#include "machine/in_flight.hpp"
#include "machine/launch_context.hpp"
#include "machine/mbarrier.hpp"
#include "machine/observers.hpp"
#include "machine/shared_memory.hpp"
#include "machine/tensor_memory.hpp"
#include "machine/visible.hpp"
#include "machine/wgmma.hpp"
#include "tegula/sim/hooks.hpp"
#include "tegula/sim/machine.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

inline constexpr std::uint32_t kFullWarp = 0xffffffffu;
inline constexpr int kBarriers = 16;
/// Where an address of shared::cluster holds the CTA's rank plus one.
inline constexpr int kRankShift = 24;
inline constexpr std::uint32_t kLocalMask = (1u << kRankShift) - 1;

/// One copy in flight: cp.async from its issue to the wait of the thread that issued it.
struct AsyncCopy {
  SourceLocation where;
  unsigned char const* source;
  std::uint32_t destination;
  std::uint8_t bytes;
  std::uint8_t source_bytes;  ///< the rest is filled with zeros
  bool landed;                ///< the bytes are in shared memory
  bool arrives = false;       ///< a cp.async.mbarrier.arrive stands for it
  bool arrived = false;       ///< and has arrived: it is in flight no longer
  double time = 0;            ///< when they are, where time is kept
};

/// The copies of one thread, oldest first, and where its committed groups end.
struct AsyncCopies {
  std::vector<AsyncCopy> copies;
  std::vector<std::size_t> group_ends;
  std::size_t first_copy = 0;   ///< those before it were waited for
  std::size_t first_group = 0;  ///< likewise
  std::size_t forgotten = 0;    ///< that are no more in `copies`
  std::uint32_t groups = 0;     ///< that have ended so far
  LatestWait waited;            ///< by copies, in all

  bool none() const { return first_copy == copies.size(); }
  /// Whether the copy, one of them, is in a group that is committed.
  bool committed(AsyncCopy const& copy) const {
    return !group_ends.empty() &&
           static_cast<std::size_t>(&copy - copies.data()) < group_ends.back();
  }
  /// Whether it is, and the latest wait has left it in flight.
  bool left_by_wait(AsyncCopy const& copy) const {
    return waited.where.line != 0 &&
           forgotten + static_cast<std::size_t>(&copy - copies.data()) < waited.committed;
  }
  void clear();
  /// Drops what was waited for.
  void forget_retired();
};

/// One CUDA thread.
struct Thread {
  std::unique_ptr<FiberStack> stack;
  Context context;  ///< destroyed before its stack
  int index = 0;
  int lane = 0;
  Cta* cta = nullptr;
  bool started = false;
  bool finished = false;
  void const* last_read = nullptr;
  SourceLocation read_where;
  int reads = 0;            ///< of last_read, in a row
  std::uint32_t tests = 0;  ///< the mbarrier that it has tested last, and not waited for; 0: none
  std::int64_t steps = 0;   ///< instructions that it has executed
  AsyncCopies async;
  InFlightGroups bulk;                ///< what cp.async.bulk.wait_group waits for
  InFlightGroups tensor{true};        ///< tcgen05.mma that no tcgen05.commit's waiter has seen over
  MbarrierState* mbarrier = nullptr;  ///< the one whose current phase it waits for
  bool tries = false;                 ///< its latest wait is a try_wait
  bool gave_up = false;               ///< and returns though the phase is not complete
  bool relaxed = false;               ///< its wait acquires nothing
  bool acquires_cluster = false;      ///< its wait acquires what other CTAs have released, too
  /// The mbarrier, by number, and the phase for which a try_wait of its has ended too early.
  std::pair<int, std::int64_t> timed_out = {-1, 0};
  SourceLocation mbarrier_where;
  int agent = 0;  ///< its number in the cluster
};

/// An instruction that some lanes of a warp have reached and wait at for the rest.
struct Meeting {
  Instruction instruction;
  /// what else must agree: the operation, the number of matrices, the barrier
  std::uint32_t variant;
  std::uint32_t lanes;  ///< who takes part
  std::uint32_t arrived;
  SourceLocation where;
};

/// One warp: its lanes' states as bits, and the operands that lanes have left for the one that
/// comes last.
struct Warp {
  int index = 0;
  std::uint32_t ready = 0;   ///< lanes that can run
  std::uint32_t exited = 0;  ///< lanes that have returned from the kernel
  /// lanes that are to complete a meeting that others' exit has ended
  std::uint32_t completes = 0;
  int barrier = -1;  ///< the CTA barrier that the whole warp waits at
  SourceLocation barrier_where;
  int cluster_arrivals = 0;       ///< at the cluster's barrier
  int cluster_waits = 0;          ///< likewise; at most one less
  bool waits_at_cluster = false;  ///< the whole warp waits at the cluster's barrier
  SourceLocation cluster_where;   ///< of its latest arrival or wait there
  std::uint32_t met = 0;          ///< how often several of its lanes have met
  int meetings = 0;
  std::array<Meeting, 32> meeting;  ///< the first `meetings`; their lanes are disjoint
  /// the two lines whose bar.warp.sync have met last; line 0: none
  std::array<SourceLocation, 2> crossed;

  InFlightGroups tensor_loads;   ///< what tcgen05.wait::ld waits for, ...
  InFlightGroups tensor_stores;  ///< ... and tcgen05.wait::st

  alignas(64) std::uint32_t a[32][4];
  std::uint32_t b[32][2];
  std::uint32_t c[32][4];
  std::uint32_t d[32][4];  ///< results: of mma.sync, and of ldmatrix
  double f64_a[32][8];     ///< mma.sync of f64
  double f64_b[32][4];
  double f64_c[32][4];
  double f64_d[32][4];
  std::uint32_t operand[32];
  std::uint32_t value[32];
  std::uint32_t result[32];  ///< of shuffles, votes, reductions
  void* pointer[32];         ///< registers of tcgen05.ld and st
};

/// One of the CTA's sixteen barriers.
/// What threads bring to a barrier that reduces, and how it does; without an operation none does.
struct BarrierVotes {
  std::optional<BarrierReduction> op;
  int voters = 0;
  int votes = 0;  ///< those whose predicate is true

  /// The result, once all are there.
  int result() const {
    switch (op.value_or(BarrierReduction::popc)) {
      case BarrierReduction::popc:
        break;
      case BarrierReduction::all:
        return votes == voters ? 1 : 0;
      case BarrierReduction::any:
        return votes != 0 ? 1 : 0;
    }
    return votes;
  }
};

struct Barrier {
  int expected = 0;  ///< threads
  int arrived = 0;
  std::uint32_t waiting = 0;  ///< warps
  SourceLocation first;       ///< who set `expected`
  std::uint32_t warps = 0;    ///< that have arrived
  BarrierVotes votes;
};

/// A warp has arrived at a barrier twice for one use of it.
struct ArrivedTwice {
  int warp = -1;  ///< -1: none has
  SourceLocation where;
};

/// Four warps that execute warpgroup-wide instructions together: who of them has reached one, the
/// operands that threads have left for the one that comes last, and the groups of wgmma.mma_async
/// in flight.
struct Warpgroup {
  std::uint32_t met = 0;      ///< how often its warps have met
  std::uint32_t arrived = 0;  ///< warps of the group, as bits, that wait for the others
  Instruction instruction = Instruction::none;
  std::uint32_t variant = 0;
  SourceLocation where;
  InFlightGroups wgmma{true};
  WgmmaHistory wgmma_history;
  std::array<void*, 128> d;  ///< where each thread has its accumulators
  std::array<std::uint64_t, 128> a_descriptor;
  std::array<std::uint64_t, 128> b_descriptor;
  int registers = 0;               ///< of each thread: setmaxnreg
  SourceLocation registers_where;  ///< of the setmaxnreg that says so; line 0: the launch does
  bool registers_raised = false;   ///< by setmaxnreg.inc
  int wanted_registers = 0;        ///< by the whole warpgroup, beyond what it has
  Thread* waits_for_registers = nullptr;  ///< until so many are free
  SourceLocation wants_registers_where;
};

/// A CTA on the simulated machine: its threads, its shared memory and its barriers, on which
/// instructions (isa/) build. Each CUDA thread is a fiber that runs until it must wait for others;
/// the lanes of a warp meet at warp-wide instructions, where the last one to come does the work for
/// all. Whose turn it is, among the CTAs of the cluster, is the Cluster's.
class Cta {
 public:
  Cta(Cluster& cluster, int rank);
  Cta(Cta const&) = delete;
  Cta& operator=(Cta const&) = delete;

  Cluster& cluster() const { return cluster_; }
  int rank() const { return rank_; }  ///< in the cluster
  Dim3 block_index() const { return block_; }
  Dim3 grid() const { return launch_->grid; }
  LaunchContext const& launch() const { return *launch_; }
  int threads() const { return launch_->kernel->threads; }
  Generation generation() const { return generation_; }
  bool checking() const { return check_; }
  bool finding_races() const { return races_; }
  bool counting() const { return count_; }
  bool exited() const { return live_threads_ == 0; }  ///< all of its threads have returned
  SharedMemory& shared() { return shared_; }
  TensorMemory& tensor_memory() { return tensor_; }
  InFlightQueue& in_flight() const;

  /// The thread that runs, whichever CTA it is of, and its warp and warpgroup.
  Thread& current_thread() const;
  Warp& current_warp() { return warp(current_thread().index / 32); }
  Warpgroup& warpgroup() {
    return warpgroups_[static_cast<std::size_t>(current_thread().index / 128)];
  }
  Warpgroup const& warpgroup_of(Thread const& thread) const {
    return warpgroups_[static_cast<std::size_t>(thread.index / 128)];
  }
  int thread_index() const { return current_thread().index; }
  Warp& warp(int index) { return warps_[static_cast<std::size_t>(index)]; }
  Warp const& warp(int index) const { return warps_[static_cast<std::size_t>(index)]; }
  Thread& thread(int index) const { return *threads_[static_cast<std::size_t>(index)]; }

  /// Registers of the register file that setmaxnreg.dec has freed.
  int free_registers() const { return free_registers_; }
  /// The thread, which waits, can run.
  void set_ready(Thread& thread);

  /// Joins the lanes of `mask` at an instruction. True for the lane that comes last: it does the
  /// work and then calls release. False for the others, once they have been released.
  bool meet(Instruction instruction, std::uint32_t variant, std::uint32_t mask,
            SourceLocation where);
  void release(std::uint32_t mask, SourceLocation where, Instruction instruction);
  /// Likewise for the 128 threads of a warpgroup, which must all execute the same instruction on
  /// the same line.
  bool meet_warpgroup(Instruction instruction, std::uint32_t variant, SourceLocation where);
  void release_warpgroup(SourceLocation where, Instruction instruction);

  /// The current thread executes an instruction by itself, and moves what `access` says.
  void note(Instruction instruction, SourceLocation where, LaneAccess const& access = {});
  Observers& observers() const;

  /// One lane accesses this CTA's shared memory: holds its operands to what any launch asks, and
  /// tells the observers. False where the access must not be performed. `strength`: of one that
  /// is strong.
  bool shared_access(Instruction instruction, std::uint32_t address, int bytes, bool write,
                     SourceLocation where, int lane, Strength strength = {});
  /// Likewise for a row of an 8 x 8 matrix, 16 bytes whose address the lane gives and that
  /// others hold.
  bool shared_matrix_row(Instruction instruction, std::uint32_t address, bool write,
                         MatrixForm form, int row, SourceLocation where, int lane);
  /// As shared_access, for global memory.
  bool global_access(Instruction instruction, void const* address, int bytes, GlobalAccess access,
                     SourceLocation where, int alignment);
  /// The allocation of global memory that holds the byte, or null.
  Allocation* allocation(void const* address);
  /// " at byte 512 of in, which has 512 bytes": what is said of an access that no allocation holds.
  std::string outside_place(void const* address);
  /// "row 17, column 40 of K".
  std::string own_place(std::uint32_t address) const;
  /// Likewise, with the CTA's rank where it is not the running one.
  std::string shared_place(std::uint32_t address) const;
  /// "full[2]", "A[2]": the buffer that holds the byte, and the element of a row of them, or the
  /// stage of a tile.
  std::string short_place(std::uint32_t address) const;
  /// The name of the buffer that holds the byte, or an empty string.
  std::string buffer_name(std::uint32_t address) const;
  /// Splits an address of shared::cluster, and checks its rank. Null, after a finding, where there
  /// is no such CTA or it has exited.
  Cta* target(Instruction instruction, std::uint32_t& address, SourceLocation where);

  /// A lane of the current thread's warp.
  Culprit here(int lane) const {
    return {current_thread().cta->rank_, current_thread().index / 32, lane};
  }
  Culprit here() const { return here(current_thread().lane); }
  void report(FindingKind kind, SourceLocation where, Culprit who, std::string buffer,
              std::string coordinate, std::string message, Opposite other = {});
  /// Reports, and ends the cluster.
  [[noreturn]] void fail(FindingKind kind, SourceLocation where, Culprit who, std::string message);

  /// Reports an access beyond the CTA's shared memory.
  void out_of_shared(Instruction instruction, std::uint32_t address, std::uint32_t bytes,
                     SourceLocation where, Culprit who);
  /// The cp.async in flight that writes the byte, and who issued it; null where there is none.
  AsyncCopy const* copy_into(std::uint32_t address, Thread const** issuer) const;
  /// Its mbarriers.
  std::vector<std::unique_ptr<MbarrierState>> const& mbarriers() const { return mbarriers_; }

  // Barriers (meeting.cpp) and registers.

  Barrier& barrier(int id) { return barriers_[static_cast<std::size_t>(id)]; }
  /// The current warp arrives. True where it is the last one expected: the barrier is then free for
  /// its next use, and those that wait go on. `waits`: the warp waits for the others. `votes` are
  /// the warp's, where the barrier reduces: each lane finds the result in Warp::result.
  bool arrive_at_barrier(Instruction instruction, int id, int threads, bool waits,
                         BarrierVotes const& votes, SourceLocation where);
  /// The warpgroup takes so many registers more, and waits until they are free; a negative number
  /// frees them.
  void take_registers(Warpgroup& group, int more);

  // Tensor memory (tensor_memory.cpp).

  /// "lane 17, column 40 of tmem": counted from the beginning of what was allocated, and named
  /// after the buffer that has its address.
  std::string tensor_place(int lane, int column) const;
  /// The current thread's warp takes columns, and waits until they are free; of a pair, until the
  /// other CTA asks for them, too. Returns the first.
  int take_tensor_columns(TensorAllocation wanted);
  void give_back_tensor_columns(int column);
  /// The other CTA of the pair, whose rank differs in the last bit; null where there is none.
  Cta* pair_peer() const;

  /// Where a thread has seen that there is no cluster to cancel (cluster launch control); line 0:
  /// none has.
  SourceLocation launch_refused;

  // cp.async (async_copies.cpp).

  void land(AsyncCopy& copy);
  /// An operation in flight stands for the thread's copies, which have `end` before them in all:
  /// they land, and are in flight no longer.
  void land_for_arrival(Thread& thread, std::size_t end);
  /// The current thread waits for its copies up to `end`.
  void wait_for_copies(AsyncCopies& async, std::size_t end, SourceLocation where);

  // Mbarriers (mbarrier.cpp).

  /// What a thread is about to do at an address of shared::cluster.
  Visible at_shared(Visible::Kind kind, std::uint32_t address, std::int64_t amount = 0,
                    int arrivals = 0) const;
  /// Checks the address of an mbarrier. False, after a finding, where it can be none.
  bool check_mbarrier_address(Instruction instruction, std::uint32_t address, SourceLocation where);
  MbarrierState& add_mbarrier() {
    return *mbarriers_.emplace_back(std::make_unique<MbarrierState>());
  }
  /// It is initialised, once more or for the first time.
  void number(MbarrierState& mbarrier) { mbarrier.number = mbarriers_initialised_++; }
  /// It has been invalidated.
  void remove(MbarrierState const& mbarrier, SourceLocation where);
  /// The mbarrier is no more: nothing depends on it.
  void forget(MbarrierState& mbarrier);
  /// The mbarrier of this CTA at the address; null, after a finding, where there is none.
  MbarrierState* live_mbarrier(Instruction instruction, std::uint32_t address,
                               SourceLocation where);
  /// Likewise, for instructions that take no other CTA's mbarrier.
  MbarrierState* own_mbarrier(Instruction instruction, std::uint32_t address, SourceLocation where);
  void own_address(Instruction instruction, std::uint32_t& address, SourceLocation where);
  /// The current thread arrives, `count` times; `wide`: it releases at the scope of the cluster.
  void arrive(Instruction instruction, MbarrierState& mbarrier, SourceLocation where, bool relaxed,
              bool wide = true, int count = 1);
  /// An operation in flight that has landed arrives, once.
  void arrive(MbarrierState& mbarrier, InFlight& operation, Culprit who);
  /// The current phase lacks one arrival more.
  void expect_arrival(Instruction instruction, MbarrierState& mbarrier, SourceLocation where);
  void expect_tx(Instruction instruction, MbarrierState& mbarrier, std::int64_t bytes,
                 SourceLocation where);
  /// Whether the phase of the parity is complete, for a thread that waits for it.
  bool complete(MbarrierState& mbarrier, int parity);
  /// The current thread goes on after the last phase that is complete.
  void pass_phase(MbarrierState& mbarrier, SourceLocation where, bool relaxed = false);
  /// Where the completion is random, an operation in flight may land now.
  void land_some();
  /// The live mbarrier of this CTA at the address, or null.
  MbarrierState* mbarrier_at(std::uint32_t address);
  /// Completes transactions; `operation` is the one in flight that has landed, or null for
  /// an instruction.
  void complete_tx(MbarrierState& mbarrier, std::int64_t bytes, InFlight* operation,
                   SourceLocation where, Culprit who);

 private:
  friend class Cluster;
  friend class InFlightQueue;

  // Threads (cta.cpp).
  void start(LaunchContext const& launch, Dim3 block);
  void finish_thread(Thread& thread);
  Thread& thread(Warp const& warp, int lane) const { return thread(32 * warp.index + lane); }
  void set_ready(Warp& warp, std::uint32_t lanes);

  // Meeting points (meeting.cpp).
  bool join(Instruction instruction, std::uint32_t variant, std::uint32_t mask,
            SourceLocation where);
  bool wait_for_release(Warp& own, std::uint32_t self);
  [[noreturn]] void diverged(Meeting const& meeting, Instruction instruction, std::uint32_t variant,
                             std::uint32_t mask, SourceLocation where);
  void check_exit(Warp& warp);
  std::vector<std::string> who_waits() const;
  std::string polled_text(void const* address) const;
  void mbarrier_waiters(std::vector<std::string>& clauses) const;
  void add_waiters(MbarrierState const& mbarrier, std::vector<Thread*> rest, bool wait,
                   std::vector<std::string>& clauses) const;
  std::vector<Thread*> testers(MbarrierState const& mbarrier) const;
  void tensor_waiters(std::vector<std::string>& clauses) const;
  void check_tensor_memory_freed();
  void give_tensor_columns(TensorAllocation const& allocation);
  bool grant_to_pair(Cta& peer);
  void wake_tensor_waiters();
  /// Where somebody waits; line 0 where nobody does.
  SourceLocation waiting_place() const;

  // Memory (shared_access.cpp, async_copies.cpp).
  bool in_bounds(Instruction instruction, std::uint32_t address, int bytes, SourceLocation where,
                 int lane);
  void retire(AsyncCopies& async, std::size_t end);
  void land_at_random(Warp& warp);

  // Mbarriers (mbarrier.cpp).
  bool too_many(Instruction instruction, MbarrierState const& mbarrier, int count,
                SourceLocation where, Culprit who);
  void check_tx(Instruction instruction, MbarrierState const& mbarrier, SourceLocation where,
                Culprit who);
  void complete_phase_if_due(MbarrierState& mbarrier);
  void wake(MbarrierState& mbarrier);
  void passed(MbarrierState& mbarrier);
  bool one_gives_up();

  Cluster& cluster_;
  int const rank_;
  LaunchContext const* launch_ = nullptr;
  Dim3 block_;
  bool check_ = true;
  bool races_ = true;
  bool count_ = true;
  Generation generation_ = Generation::sm90;
  std::uint32_t ready_warps_ = 0;
  int live_threads_ = 0;
  int registers_ = 0;       ///< of the register file, that the CTA was launched with
  int free_registers_ = 0;  ///< of them, those that setmaxnreg.dec has freed

  SharedMemory shared_;
  TensorMemory tensor_;
  std::array<Allocation*, 4> recent_ = {};
  std::array<Barrier, kBarriers> barriers_;
  std::array<ArrivedTwice, kBarriers> arrived_twice_;  ///< the latest of each
  std::vector<std::unique_ptr<MbarrierState>> mbarriers_;
  /// Where there was one, and the latest mbarrier.inval there.
  std::map<std::uint32_t, SourceLocation> invalidated_;
  int mbarriers_initialised_ = 0;
  std::vector<Warp> warps_;
  std::vector<Warpgroup> warpgroups_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

/// Thrown on the fiber of a thread whose cluster has failed, to leave the kernel.
struct LeaveKernel {};

}  // namespace tegula::sim
