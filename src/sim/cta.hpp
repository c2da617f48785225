#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "access_log.hpp"
#include "causality.hpp"
#include "copy_shadow.hpp"
#include "counters.hpp"
#include "fiber.hpp"
#include "global_memory.hpp"
#include "global_shadow.hpp"
#include "in_flight.hpp"
#include "instruction.hpp"
#include "launch_context.hpp"
#include "mbarrier.hpp"
#include "races.hpp"
#include "shared_memory.hpp"
#include "tegula/sim/hooks.hpp"
#include "tegula/sim/machine.hpp"
#include "visible.hpp"
#include "wgmma.hpp"

namespace tegula::sim {

inline constexpr std::uint32_t kFullWarp = 0xffffffffu;
inline constexpr int kBarriers = 16;
/// Where an address of shared::cluster holds the CTA's rank plus one.
inline constexpr int kRankShift = 24;
inline constexpr std::uint32_t kLocalMask = (1u << kRankShift) - 1;

/// One copy in flight: cp.async from its issue to the wait of the thread that issued it.
struct AsyncCopy {
  Where where;
  unsigned char const* source;
  std::uint32_t destination;
  std::uint8_t bytes;
  std::uint8_t source_bytes;  ///< the rest is filled with zeros
  bool landed;                ///< the bytes are in shared memory
  double time = 0;            ///< when they are, by the cluster's timeline
};

/// The copies of one thread, oldest first, and where its committed groups end.
struct AsyncCopies {
  std::vector<AsyncCopy> copies;
  std::vector<std::size_t> group_ends;
  std::size_t first_copy = 0;   ///< those before it were waited for
  std::size_t first_group = 0;  ///< likewise
  std::uint32_t groups = 0;     ///< that have ended so far

  bool none() const { return first_copy == copies.size(); }
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
  Where read_where;
  int reads = 0;  ///< of last_read, in a row
  AsyncCopies async;
  InFlightGroups bulk;                ///< what cp.async.bulk.wait_group waits for
  MbarrierState* mbarrier = nullptr;  ///< the one whose current phase it waits for
  bool tries = false;                 ///< it waits there by try_wait
  bool gave_up = false;               ///< and returns though the phase is not complete
  bool relaxed = false;               ///< its wait acquires nothing
  Where mbarrier_where;
  int agent = 0;  ///< its number in the cluster's causality
  /// The mbarriers that it has initialised, and when; the first `fenced_inits` before a fence.mbarrier_init.
  struct Init {
    int mbarrier;
    Time time;
  };
  std::vector<Init> inits;
  std::size_t fenced_inits = 0;
  std::uint32_t started_peers = 0;  ///< CTAs of the cluster that it has accessed
};

/// An instruction that some lanes of a warp have reached and wait at for the rest.
struct Meeting {
  Instruction instruction;
  std::uint32_t variant;  ///< what else must agree: the operation, the number of matrices, the barrier
  std::uint32_t lanes;    ///< who takes part
  std::uint32_t arrived;
  Where where;
};

/// One warp: its lanes' states as bits, and the operands that lanes have left for the one that comes last.
struct Warp {
  int index = 0;
  std::uint32_t ready = 0;      ///< lanes that can run
  std::uint32_t exited = 0;     ///< lanes that have returned from the kernel
  std::uint32_t completes = 0;  ///< lanes that are to complete a meeting that others' exit has ended
  int barrier = -1;             ///< the CTA barrier that the whole warp waits at
  Where barrier_where;
  int cluster_arrivals = 0;       ///< at the cluster's barrier
  int cluster_waits = 0;          ///< likewise; at most one less
  bool waits_at_cluster = false;  ///< the whole warp waits at the cluster's barrier
  Where cluster_where;            ///< of its latest arrival or wait there
  int meetings = 0;
  std::array<Meeting, 32> meeting;  ///< the first `meetings`; their lanes are disjoint

  alignas(64) std::uint32_t a[32][4];
  std::uint32_t b[32][2];
  std::uint32_t c[32][4];
  std::uint32_t d[32][4];  ///< results: of mma.sync, and of ldmatrix
  std::uint32_t operand[32];
  std::uint32_t value[32];
  std::uint32_t result[32];  ///< of shuffles, votes, reductions

  AccessLog log;
};

/// One of the CTA's sixteen barriers.
struct Barrier {
  int expected = 0;  ///< threads
  int arrived = 0;
  std::uint32_t waiting = 0;  ///< warps
  Published arrived_with;     ///< what those that have arrived have published
  Where first;                ///< who set `expected`
};

/// Four warps that execute warpgroup-wide instructions together: who of them has reached one, the operands
/// that threads have left for the one that comes last, and the groups of wgmma.mma_async in flight.
struct Warpgroup {
  std::uint32_t arrived = 0;  ///< warps of the group, as bits, that wait for the others
  Instruction instruction = Instruction::none;
  std::uint32_t variant = 0;
  Where where;
  InFlightGroups wgmma{true};
  WgmmaHistory wgmma_history;
  std::array<void*, 128> d;  ///< where each thread has its accumulators
  std::array<std::uint64_t, 128> a_descriptor;
  std::array<std::uint64_t, 128> b_descriptor;
  int registers = 0;                      ///< of each thread: setmaxnreg
  Where registers_where;                  ///< of the setmaxnreg that says so; line 0: the launch does
  bool registers_raised = false;          ///< by setmaxnreg.inc
  Time registers_time = 0;                ///< when, where the CTA is finding_races()
  int wanted_registers = 0;               ///< by the whole warpgroup, beyond what it has
  Thread* waits_for_registers = nullptr;  ///< until so many are free
  Where wants_registers_where;
};

/// A CTA on the simulated machine: its threads, its shared memory and its barriers, and what its instructions
/// do. Each CUDA thread is a fiber that runs until it must wait for others; the lanes of a warp meet at
/// warp-wide instructions, where the last one to come does the work for all. Whose turn it is, among the CTAs
/// of the cluster, is the Cluster's.
class Cta {
 public:
  Cta(Cluster& cluster, int rank);
  Cta(Cta const&) = delete;
  Cta& operator=(Cta const&) = delete;

  // What instructions build on, those in files of their own too.

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
  InFlightQueue& in_flight() const;

  /// The thread that runs, whichever CTA it is of, and its warp and warpgroup.
  Thread& current_thread() const;
  Warp& current_warp() { return warp(current_thread().index / 32); }
  Warpgroup& warpgroup() { return warpgroups_[static_cast<std::size_t>(current_thread().index / 128)]; }
  int thread_index() const { return current_thread().index; }
  Warp& warp(int index) { return warps_[static_cast<std::size_t>(index)]; }
  Warp const& warp(int index) const { return warps_[static_cast<std::size_t>(index)]; }
  Thread& thread(int index) const { return *threads_[static_cast<std::size_t>(index)]; }

  /// Joins the lanes of `mask` at an instruction. True for the lane that comes last: it does the work and
  /// then calls release. False for the others, once they have been released.
  bool meet(Instruction instruction, std::uint32_t variant, std::uint32_t mask, Where where);
  void release(std::uint32_t mask, Where where, Instruction instruction);
  /// Likewise for the 128 threads of a warpgroup, which must all execute the same instruction on the same
  /// line.
  bool meet_warpgroup(Instruction instruction, std::uint32_t variant, Where where);
  void release_warpgroup(Where where, Instruction instruction);

  /// Where time is recorded: all lanes of a warp wait for a phase.
  void pass_warp(TimeGate const& gate, std::int64_t phase, Warp const& warp, Where where);
  /// Where time is recorded: the threads of the current warpgroup wait until `time`.
  void wait_warpgroup_until(double time, char const* name, Where where);

  /// Counts one lane's execution of an instruction and its accesses to memory.
  void note(Instruction instruction, Where where, int shared_bytes = 0, std::uint32_t shared = 0,
            int global_bytes = 0, void const* global = nullptr);
  /// The counters of a line, where counting().
  LineCounters& line(Where where, Instruction instruction);

  /// Checks one lane's access to this CTA's shared memory and updates the shadow of what it writes. False
  /// where it must not be performed.
  bool shared_access(Instruction instruction, std::uint32_t address, int bytes, bool write, Where where,
                     int lane);
  /// Likewise for a row of an 8 x 8 matrix, 16 bytes whose address the lane gives and that others hold.
  bool shared_matrix_row(Instruction instruction, std::uint32_t address, bool write, bool transpose, int row,
                         Where where, int lane);
  /// As shared_access, for global memory.
  bool global_access(Instruction instruction, void const* address, int bytes, GlobalAccess access,
                     Where where, int alignment);
  /// Whether the current thread may access global memory, as far as other launches go: one that may be
  /// started before those before it have finished comes after them, and none writes what is constant.
  bool after_launches(GlobalAccess access, Allocation const& memory) const;
  /// Reports one that may not.
  void races_with_launch(Instruction instruction, GlobalAccess access, Allocation const& memory,
                         std::size_t offset, Where where);
  /// The allocation of global memory that holds the byte, or null.
  Allocation* allocation(void const* address);
  /// "row 17, column 40 of K".
  std::string own_place(std::uint32_t address) const;
  /// Likewise, with the CTA's rank where it is not the running one.
  std::string shared_place(std::uint32_t address) const;
  /// "full[2]", "A[2]": the buffer that holds the byte, and the element of a row of them, or the stage of a
  /// tile.
  std::string short_place(std::uint32_t address) const;
  /// The name of the buffer that holds the byte, or an empty string.
  std::string buffer_name(std::uint32_t address) const;
  /// Splits an address of shared::cluster, and checks its rank. Null, after a finding, where there is no such
  /// CTA or it has exited.
  Cta* target(Instruction instruction, std::uint32_t& address, Where where);

  /// A thread in the cluster; -1 where a finding concerns a whole warp, or all.
  struct Culprit {
    int cta = 0;
    int warp = -1;
    int lane = -1;
  };
  /// A lane of the current thread's warp.
  Culprit here(int lane) const { return {current_thread().cta->rank_, current_thread().index / 32, lane}; }
  Culprit here() const { return here(current_thread().lane); }
  /// The other instruction of a pair, for a finding: where it stands (line 0: there is none), who executed it
  /// (rank -1: not known), and a clause on what would order the two.
  struct Opposite {
    Opposite(Where where = {}, Culprit who = {-1, -1, -1}, std::string order = {})
        : where(where), who(who), order(std::move(order)) {}
    Where where;
    Culprit who;
    std::string order;
  };
  void report(FindingKind kind, Where where, Culprit who, std::string buffer, std::string coordinate,
              std::string message, Opposite other = {});
  /// Reports, and ends the cluster.
  [[noreturn]] void fail(FindingKind kind, Where where, Culprit who, std::string message);

  // What copies have brought (copy_findings.cpp).

  /// Holds 16 bytes that the asynchronous proxy is to read, as by a swizzle, against the tensor load that
  /// brought them. False, after a finding, where it laid them out by another.
  bool laid_out_by(TmaSwizzle swizzle, std::uint32_t address, Instruction instruction, Where where,
                   Culprit who);
  /// Reports an address that an accessor has computed for what lies elsewhere: `layout` is the tile's, `made`
  /// where the accessor was made.
  void wrong_address(std::uint32_t right, std::uint32_t computed, std::string const& layout, Where made,
                     Where where);

  // The rest is what instructions do, called on the fiber of the thread that executes them.

  std::uint32_t shared_address(void const* object, Where where);
  void ld_shared(void* value, std::uint32_t address, int bytes, Where where);
  void st_shared(std::uint32_t address, void const* value, int bytes, Where where);
  void ld_global(void* value, void const* address, int bytes, Where where);
  void st_global(void* address, void const* value, int bytes, Where where);
  std::uint32_t atomic(AtomicOp op, void* address, std::uint32_t value, std::uint32_t expected, Where where);

  void cp_async(std::uint32_t destination, void const* source, int bytes, int source_bytes, Where where);
  void cp_async_commit_group(Where where);
  void cp_async_wait_group(int groups_left, Where where);
  void cp_async_wait_all(Where where);

  void ldmatrix(std::uint32_t* registers, int count, bool transpose, std::uint32_t row, Where where);
  void mma_sync(WarpMma const& op, void* d, std::uint32_t const* a, std::uint32_t const* b, void const* c,
                Where where);
  std::uint32_t shfl(ShuffleMode mode, std::uint32_t value, int lane_operand, std::uint32_t mask,
                     Where where);
  std::uint32_t ballot(bool predicate, std::uint32_t mask, bool exited, Where where);
  std::uint32_t redux(ReduxOp op, std::uint32_t value, std::uint32_t mask, Where where);
  void warp_sync(std::uint32_t mask, Where where);
  void bar(Instruction instruction, int id, int threads, Where where);
  void fence(Instruction instruction, Where where);
  /// fence.acq_rel and fence.sc; `of_cta`: of no wider scope than the CTA.
  void memory_fence(bool of_cta, Where where);
  void fence_proxy_async(Where where);
  void fence_mbarrier_init(Where where);
  void griddepcontrol_wait(Where where);
  [[noreturn]] void trap(Where where);

  // Small instructions of sm_90 (hopper.cpp).
  void stmatrix(std::uint32_t row, std::uint32_t const* registers, int count, bool transpose, Where where);
  bool elect_one(Where where);
  void setmaxnreg(int registers, bool increase, Where where);
  void check_setmaxnreg(int registers, bool increase, Where where);

  // Clusters (cluster_instructions.cpp).
  std::uint32_t mapa(std::uint32_t local, int cta_rank, Where where);
  void ld_shared_cluster(void* value, std::uint32_t address, int bytes, Where where);
  void st_shared_cluster(std::uint32_t address, void const* value, int bytes, Where where);
  void st_async(std::uint32_t address, void const* value, int bytes, std::uint32_t mbarrier, Where where);
  void cluster_arrive(Where where, bool relaxed = false);
  void cluster_wait(Where where);

  // Mbarriers (mbarrier.cpp).
  void mbarrier_init(std::uint32_t address, int count, Where where);
  void mbarrier_inval(std::uint32_t address, Where where);
  void mbarrier_arrive(std::uint32_t address, Where where, bool relaxed = false);
  /// `wide`: it releases at the scope of the cluster.
  void mbarrier_arrive_cluster(std::uint32_t address, Where where, bool relaxed = false, bool wide = false);
  void mbarrier_arrive_expect_tx(std::uint32_t address, int bytes, Where where, bool relaxed = false);
  void mbarrier_expect_tx(std::uint32_t address, int bytes, Where where);
  void mbarrier_complete_tx(std::uint32_t address, int bytes, Where where);
  bool mbarrier_test_wait(std::uint32_t address, int parity, Where where);
  bool mbarrier_try_wait(std::uint32_t address, int parity, Where where);
  void mbarrier_wait(std::uint32_t address, int parity, Where where, bool relaxed = false);
  /// The live mbarrier of this CTA at the address, or null.
  MbarrierState* mbarrier_at(std::uint32_t address);
  /// Completes transactions; `operation` is the one in flight that has landed, or null for an instruction.
  void complete_tx(MbarrierState& mbarrier, std::int64_t bytes, InFlight* operation, Where where,
                   Culprit who);

  // Bulk groups (in_flight.cpp).
  void bulk_commit_group(Where where);
  void bulk_wait_group(int groups_left, bool read, Where where);

 private:
  friend class Cluster;

  friend class InFlightQueue;
  friend class Explorer;

  // Threads (cta.cpp).
  void start(LaunchContext const& launch, Dim3 block);
  void finish_thread(Thread& thread);
  Thread& thread(Warp const& warp, int lane) const { return thread(32 * warp.index + lane); }
  void set_ready(Warp& warp, std::uint32_t lanes);
  void set_ready(Thread& thread);

  // Meeting points (meeting.cpp).
  bool join(Instruction instruction, std::uint32_t variant, std::uint32_t mask, Where where);
  bool wait_for_release(Warp& own, std::uint32_t self);
  void flush_log(Warp& warp);
  [[noreturn]] void diverged(Meeting const& meeting, Instruction instruction, std::uint32_t variant,
                             std::uint32_t mask, Where where);
  void check_exit(Warp& warp);
  void count_matrices(Instruction instruction, int count, Where where);
  bool arrive_at_barrier(int id, int threads, bool waits, Where where);
  std::vector<std::string> who_waits() const;
  void mbarrier_waiters(std::vector<std::string>& clauses) const;
  /// Where somebody waits; line 0 where nobody does.
  Where waiting_place() const;

  // Memory (memory.cpp, async.cpp).
  void shared_findings(Instruction instruction, std::uint32_t address, int bytes, bool write, Where where,
                       int lane);
  bool in_bounds(Instruction instruction, std::uint32_t address, int bytes, Where where, int lane);
  bool check_state(Instruction instruction, std::uint32_t address, int bytes, bool write, Where where,
                   int lane);
  void out_of_shared(Instruction instruction, std::uint32_t address, std::uint32_t bytes, Where where,
                     Culprit who);
  void note_peer_access(Instruction instruction, std::uint32_t address, Where where);
  void check_peers_at_exit();
  /// What is in flight into a byte, for a finding.
  struct Pending {
    Instruction instruction;
    Where where;
    std::string issuer;
    Culprit who;
    std::string order;
  };
  Pending pending_write(std::uint32_t address) const;
  AsyncCopy const* copy_into(std::uint32_t address, Thread const** issuer) const;
  void land(AsyncCopy& copy);
  void retire(AsyncCopies& async, std::size_t end);
  void wait_for_copies(AsyncCopies& async, std::size_t end, Where where);
  void land_at_random(Warp& warp);

  // Races (race_findings.cpp).
  int agent(int lane) const { return current_thread().agent - current_thread().lane + lane; }
  std::uint16_t site(Instruction instruction, Where where);
  void generic_race(Instruction instruction, bool write, Where where, int lane, Conflict const& conflict);
  void async_race(InFlight const& operation, bool write, Conflict const& conflict);
  std::string agent_text(int agent) const;
  Culprit culprit(int agent) const;
  void check_init_known(Instruction instruction, MbarrierState const& mbarrier, Where where);
  void use(Instruction instruction, MbarrierState const& mbarrier, Where where);
  void invalidated_early(MbarrierState const& mbarrier, Where where, Conflict const& conflict);
  void check_started(Cta const& peer, Instruction instruction, std::uint32_t address, Where where);

  // What copies have brought (copy_findings.cpp).
  void bring(CopyShadow::Id copy, SharedRange const& range, bool in_order, Overwrite by);
  void report_lost(Copy const& lost, Overwrite const& by);
  void report_lost_parts();

  // Mbarriers (mbarrier.cpp).
  Visible at_shared(Visible::Kind kind, std::uint32_t address, std::int64_t amount = 0) const;
  bool check_mbarrier_address(Instruction instruction, std::uint32_t address, Where where);
  MbarrierState* live_mbarrier(Instruction instruction, std::uint32_t address, Where where);
  MbarrierState* own_mbarrier(Instruction instruction, std::uint32_t address, Where where);
  void own_address(Instruction instruction, std::uint32_t& address, Where where);
  void arrive(Instruction instruction, MbarrierState& mbarrier, Where where, bool relaxed, bool wide = true);
  void release_into(MbarrierState& mbarrier, bool relaxed, bool wide);
  void expect_tx(Instruction instruction, MbarrierState& mbarrier, std::int64_t bytes, Where where);
  void check_tx(Instruction instruction, MbarrierState const& mbarrier, Where where, Culprit who);
  void complete_phase_if_due(MbarrierState& mbarrier);
  bool wait_for_phase(std::uint32_t address, int parity, bool tries, Where where, bool relaxed = false);
  void wake(MbarrierState& mbarrier);
  void check_visible(Instruction instruction, MbarrierState const& mbarrier, Where where);
  bool complete(MbarrierState& mbarrier, int parity);
  void passed(MbarrierState& mbarrier);
  void forget(MbarrierState& mbarrier);
  bool one_gives_up();
  void pass_phase(MbarrierState const& mbarrier, Where where, bool relaxed = false);
  void take_phase(Thread const& thread, MbarrierState const& mbarrier, bool relaxed);
  void land_some();
  void check_parity(Instruction instruction, int parity, Where where);

  Cluster& cluster_;
  int const rank_;
  LaunchContext const* launch_ = nullptr;
  Dim3 block_;
  bool check_ = true;
  bool races_ = true;
  bool count_ = true;
  Limits limits_;
  Generation generation_ = Generation::sm90;
  std::uint32_t ready_warps_ = 0;
  int live_threads_ = 0;
  int registers_ = 0;       ///< of the register file, that the CTA was launched with
  int free_registers_ = 0;  ///< of them, those that setmaxnreg.dec has freed

  SharedMemory shared_;
  RaceShadow shadow_;
  CopyShadow copies_;
  std::array<Allocation*, 4> recent_ = {};
  std::array<Barrier, kBarriers> barriers_;
  std::vector<std::unique_ptr<MbarrierState>> mbarriers_;
  std::vector<PeerAccess> peer_accesses_;  ///< loads and stores of its shared memory by its peers
  std::vector<Warp> warps_;
  std::vector<Warpgroup> warpgroups_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

/// Thrown on the fiber of a thread whose cluster has failed, to leave the kernel.
struct LeaveKernel {};

}  // namespace tegula::sim
