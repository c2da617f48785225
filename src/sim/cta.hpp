#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "counters.hpp"
#include "fiber.hpp"
#include "global_memory.hpp"
#include "instruction.hpp"
#include "shared_memory.hpp"
#include "tegula/sim/hooks.hpp"
#include "tegula/sim/machine.hpp"

namespace tegula::sim {

inline constexpr std::uint32_t kFullWarp = 0xffffffffu;
inline constexpr int kBarriers = 16;

/// Lets CTAs that run on several host threads pass a point in the order of their indices, so that what they
/// do there (atomics on global memory) does not depend on the host.
class TurnKeeper;

/// What the CTAs of one launch share.
struct LaunchContext {
  KernelImage const* kernel;
  Dim3 grid;
  Options const* options;
  AllocationTable const* global;
  TurnKeeper* turns;
};

/// One copy in flight: cp.async from its issue to the wait of the thread that issued it.
struct AsyncCopy {
  Where where;
  unsigned char const* source;
  std::uint32_t destination;
  std::uint8_t bytes;
  std::uint8_t source_bytes;  ///< the rest is filled with zeros
  bool landed;                ///< the bytes are in shared memory
};

/// The copies of one thread, oldest first, and where its committed groups end.
struct AsyncCopies {
  std::vector<AsyncCopy> copies;
  std::vector<std::size_t> group_ends;
  std::size_t first_copy = 0;   ///< those before it were waited for
  std::size_t first_group = 0;  ///< likewise

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
  bool started = false;
  bool finished = false;
  void const* last_read = nullptr;
  Where read_where;
  int reads = 0;  ///< of last_read, in a row
  AsyncCopies async;
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
  Where first;                ///< who set `expected`
};

/// What a CTA leaves behind.
struct CtaResult {
  std::vector<Finding> findings;
};

/// Runs CTAs, one after another, on one host thread. Each CUDA thread is a fiber that runs until it must wait
/// for others; the lanes of a warp meet at warp-wide instructions, where the last one to come does the work
/// for all.
class Cta {
 public:
  explicit Cta(std::size_t stack_bytes) : stack_bytes_(stack_bytes) {}
  ~Cta();
  Cta(Cta const&) = delete;
  Cta& operator=(Cta const&) = delete;

  /// Runs the CTA with the given index, x fastest.
  CtaResult run(LaunchContext const& launch, std::int64_t index);
  CounterTable& counters() { return counters_; }
  /// The deepest stack of any thread so far, in bytes.
  std::size_t stack_bytes_used() const;
  std::size_t stack_bytes() const { return stack_bytes_; }
  /// Writes a sentence about the current thread's stack overflow, if the address is in its guard page;
  /// returns its length, or 0.
  std::size_t describe_overflow(void const* address, char* text, std::size_t capacity) const;

  // The rest is what instructions do, called on the fiber of the thread that executes them.

  int thread_index() const { return current_->index; }
  Dim3 block_index() const { return block_; }
  Dim3 grid() const { return launch_->grid; }

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
  void mma_sync(MmaOp op, void* d, std::uint32_t const* a, std::uint32_t const* b, void const* c,
                Where where);
  std::uint32_t shfl(ShuffleMode mode, std::uint32_t value, int lane_operand, std::uint32_t mask,
                     Where where);
  std::uint32_t ballot(bool predicate, std::uint32_t mask, bool exited, Where where);
  std::uint32_t redux(ReduxOp op, std::uint32_t value, std::uint32_t mask, Where where);
  void warp_sync(std::uint32_t mask, Where where);
  void bar(Instruction instruction, int id, int threads, Where where);
  int threads() const { return launch_->kernel->threads; }
  void fence(Where where);
  [[noreturn]] void trap(Where where);

 private:
  // Fibers and whose turn it is (cta.cpp).
  void thread_body(Thread& thread);
  void start(LaunchContext const& launch, std::int64_t index);
  void finish_thread();
  Thread* next_thread();
  Warp& warp() { return warp(current_->index / 32); }
  Warp& warp(int index) { return warps_[static_cast<std::size_t>(index)]; }
  Warp const& warp(int index) const { return warps_[static_cast<std::size_t>(index)]; }
  Thread* thread(Warp const& warp, int lane) const {
    int const index = 32 * warp.index + lane;
    return threads_[static_cast<std::size_t>(index)].get();
  }
  void set_ready(Warp& warp, std::uint32_t lanes);
  void block();
  void yield();
  void watch_read(void const* address, bool shared, Where where);
  void take_turn();
  void pass_turn_between_warps();
  std::uint32_t random();

  // Meeting points (meeting.cpp).
  /// Joins the lanes of `mask` at an instruction. True for the lane that comes last: it does the work and
  /// then calls release. False for the others, once they have been released.
  bool meet(Instruction instruction, std::uint32_t variant, std::uint32_t mask, Where where);
  void release(std::uint32_t mask, Where where, Instruction instruction);
  bool wait_for_release(Warp& own, std::uint32_t self);
  void flush_log(Warp& warp);
  [[noreturn]] void diverged(Meeting const& meeting, Instruction instruction, std::uint32_t variant,
                             std::uint32_t mask, Where where);
  void check_exit(Warp& warp);
  bool arrive_at_barrier(int id, int threads, Where where);
  [[noreturn]] void deadlock(std::string const& reason);
  std::string who_waits() const;

  // Memory (memory.cpp, async.cpp).
  bool shared_access(Instruction instruction, std::uint32_t address, int bytes, bool write, Where where,
                     int lane);
  void shared_findings(Instruction instruction, std::uint32_t address, int bytes, bool write, Where where,
                       int lane);
  bool global_access(Instruction instruction, void const* address, int bytes, bool write, Where where,
                     int alignment);
  Allocation* allocation(void const* address);
  void note(Instruction instruction, Where where, int shared_bytes = 0, std::uint32_t shared = 0,
            int global_bytes = 0, void const* global = nullptr);
  std::string shared_place(std::uint32_t address) const;
  AsyncCopy const* copy_into(std::uint32_t address, Thread const** issuer) const;
  void land(AsyncCopy& copy);
  void retire(AsyncCopies& async, std::size_t end);
  void land_at_random(Warp& warp);

  // Findings (findings.cpp).
  struct Culprit {
    int warp = -1;
    int lane = -1;
  };
  Culprit here(int lane) const { return {current_->index / 32, lane}; }
  void report(FindingKind kind, Where where, Culprit who, std::string buffer, std::string coordinate,
              std::string message, Where other = {});
  /// Reports, and ends the CTA.
  [[noreturn]] void fail(FindingKind kind, Where where, Culprit who, std::string message);

  LaunchContext const* launch_ = nullptr;
  Thread* current_ = nullptr;
  Dim3 block_;
  std::int64_t index_ = 0;
  bool check_ = true;
  bool count_ = true;
  bool aborting_ = false;
  bool closing_ = false;  ///< the fibers are to end
  bool has_turn_ = false;
  Completion completion_ = Completion::last;
  Interleaving interleaving_ = Interleaving::one_warp_ahead;
  Generation generation_ = Generation::sm90;
  std::uint32_t ready_warps_ = 0;
  int live_threads_ = 0;
  std::int64_t idle_reads_ = 0;  ///< reads in a row that found what the thread's last one did
  std::uint64_t random_state_ = 0;

  SharedMemory shared_;
  std::array<Allocation*, 4> recent_ = {};
  std::array<Barrier, kBarriers> barriers_;
  std::vector<Warp> warps_;
  std::vector<Finding> findings_;
  CounterTable counters_;

  std::size_t stack_bytes_;
  Context host_;
  Switcher switcher_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

/// Thrown on the fiber of a thread whose CTA has failed, to leave the kernel.
struct LeaveKernel {};

}  // namespace tegula::sim
