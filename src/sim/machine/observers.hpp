#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "machine/global_memory.hpp"
#include "machine/strength.hpp"
#include "machine/visible.hpp"
#include "report/who.hpp"
#include "tegula/arch/scope.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tensor_map.hpp"
#include "tegula/sim/matrix_form.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

class Cluster;
class Cta;
class InFlight;
struct AsyncCopy;
struct MbarrierState;
struct Thread;
struct Warp;

/// What an instruction that is counted by itself has done.
struct Work {
  std::int64_t instructions = 0;  ///< executions by a warp
  std::int64_t fused_multiply_adds = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t global_bytes = 0;
  std::int64_t global_sectors = 0;
};

/// What one lane moves by an instruction; a size is 0 where it moves nothing of the kind.
struct LaneAccess {
  int shared_bytes = 0;
  std::uint32_t shared = 0;
  int global_bytes = 0;
  void const* global = nullptr;
};

/// One lane's access to shared memory. It lies within the memory.
struct SharedAccess {
  Instruction instruction;
  std::uint32_t address;
  int bytes;
  bool write;
  SourceLocation where;
  int lane;
  Strength strength = {};  ///< of a strong one
};

/// What the current thread does to global memory, at an offset in an allocation.
struct GlobalUse {
  Instruction instruction;
  GlobalAccess access;
  Allocation const* memory;
  std::size_t offset;
  std::size_t bytes;
  SourceLocation where;
};

/// A strong access of the current thread, which has been performed: an atomic, or a strong load
/// or store.
struct StrongAccess {
  Instruction instruction = Instruction::none;
  void const* address = nullptr;  ///< of memory of the host
  int bytes = 0;
  bool shared = false;  ///< it is shared memory
  bool reads = false;   ///< its thread learns what was there; not so a red
  bool writes = false;  ///< not so a compare-and-swap that fails
  /// what it writes goes on from what was there: an atomic that reads and writes at a stroke
  bool modifies = false;
  MemoryOrder order = MemoryOrder::relaxed;
  Scope scope = Scope::gpu;
  SourceLocation where;
};

/// Those who observe one cluster at a time. The machine calls a function of this class for each
/// event; which observers there are, it does not know. They are a static list that stands above
/// the machine (launch/observers.hpp), and the functions are defined there, so that an event is a
/// plain call.
///
/// The machine emits an event only where somebody listens: Cluster::timed() and stepped(),
/// Cta::counting(), checking() and finding_races() say so. Unless stated otherwise, an event
/// happens on the fiber of the thread that causes it, and is over when the function is called.
class Observers {
 public:
  struct List;
  Observers();
  ~Observers();
  Observers(Observers const&) = delete;
  Observers& operator=(Observers const&) = delete;
  List& list() { return *list_; }

  /// A cluster is about to run.
  void start(Cluster& cluster);
  /// It is over.
  void finish(Cluster& cluster);

  // What threads, warps and warpgroups execute.

  /// The current thread executes an instruction by itself.
  void executed(Cta& cta, Instruction instruction, SourceLocation where, LaneAccess const& access);
  /// These lanes have met at an instruction.
  void met(Cta& cta, Warp const& warp, std::uint32_t lanes);
  /// Lanes that have met have executed the instruction. `whole`: all lanes that the warp was
  /// launched with.
  void warp_executed(Cta& cta, Warp& warp, std::uint32_t lanes, bool whole, Instruction instruction,
                     SourceLocation where);
  /// All lanes of the warp wait for other warps. `counted`: that is the execution of
  /// the instruction.
  void warp_waits(Cta& cta, Warp& warp, bool counted, Instruction instruction,
                  SourceLocation where);
  /// The four warps of a warpgroup have met.
  void warpgroup_met(Cta& cta, int first_warp);
  void warpgroup_executed(Cta& cta, int first_warp, Instruction instruction, SourceLocation where);
  /// An ldmatrix or stmatrix, whose rows' addresses lie in the warp's `operand`.
  void matrices_moved(Cta& cta, Warp const& warp, Instruction instruction, int count,
                      SourceLocation where);
  void mma_executed(Cta& cta, Warp const& warp, int multiply_adds, SourceLocation where);
  void worked(Instruction instruction, SourceLocation where, Work const& work);
  /// The current thread executes an instruction of the special-function units; `exponential`:
  /// an ex2.
  void special_function(Cta& cta, bool exponential);

  // Accesses to memory.

  /// A lane of the current warp accesses shared memory of `cta`, its own or a peer's.
  void shared_accessed(Cta& cta, SharedAccess const& access);
  /// Bytes of it may be read from here on, though nobody writes them.
  void shared_unpoisoned(Cta& cta, std::uint32_t address, std::uint32_t bytes);
  /// Nobody needs what bytes of it hold.
  void shared_discarded(Cta& cta, std::uint32_t address, std::uint32_t bytes, SourceLocation where);
  /// A row of an 8 x 8 matrix is moved, 16 bytes whose address the lane gives and that others hold.
  void matrix_row_accessed(Cta& cta, SharedAccess const& access, MatrixForm form, int row);
  /// The current thread accesses bytes of global memory.
  void global_accessed(Cta& cta, GlobalUse const& use);
  /// The current thread issues an operation that will, from `offset` on.
  void global_reached(Cta& cta, GlobalUse const& use);
  /// The current thread has performed a strong access.
  void strong_access_performed(Cta& cta, StrongAccess const& access);
  /// The current thread addresses shared memory of a peer.
  void peer_reached(Cta& peer, Instruction instruction, std::uint32_t address,
                    SourceLocation where);
  /// The asynchronous proxy is to read 16 bytes as by a swizzle. False, after a finding, where what
  /// brought them laid them out by another.
  bool laid_out_by(Cta& cta, TmaSwizzle swizzle, std::uint32_t address, Instruction instruction,
                   SourceLocation where, Culprit who);
  /// Who has changed global memory last that somebody reads again and again: ", which ...".
  std::string last_change(void const* address) const;

  // Fences, and what else orders accesses.

  void memory_fenced(Cta& cta, Scope scope, SourceLocation where);
  void proxy_fenced(Cta& cta, SourceLocation where);
  /// With .shared::cta: it orders no other memory.
  void shared_proxy_fenced(Cta& cta, SourceLocation where);
  /// fence.mbarrier_init.
  void inits_fenced(Cta& cta);
  /// griddepcontrol.wait.
  void grids_waited(Cta& cta);
  /// Lanes of the current warp have met at a bar.warp.sync.
  void warp_synchronised(Cta& cta, std::uint32_t lanes);
  /// The current warpgroup is about to change its number of registers; it has.
  void changing_registers(Cta& cta, int warpgroup, bool increase, SourceLocation where);
  void registers_changed(Cta& cta, int warpgroup);
  // Tensor memory.

  /// The current thread executes a tcgen05.fence: before_thread_sync, or after_thread_sync.
  void tensor_fenced(Cta& cta, bool before);
  /// Columns have been allocated, with nothing in them; they are about to be freed.
  void tensor_allocated(Cta& cta, int column, int columns);
  void tensor_freed(Cta& cta, int column, int columns, SourceLocation where);

  /// All threads of the CTA have returned.
  void cta_exited(Cta& cta);

  // Barriers.

  /// A warp has arrived at a barrier of the CTA.
  void barrier_arrived(Cta& cta, int id);
  /// All have: the warps `waiting` go on. `waits`: so does the last to come.
  void barrier_completed(Cta& cta, int id, std::uint32_t waiting, bool waits);
  /// A warp that has waited goes on.
  void barrier_passed(Cta& cta, int id, Warp const& warp);
  void cluster_barrier_arrived(Cta& cta, Warp const& warp, bool relaxed);
  void cluster_barrier_completed(Cluster& cluster);
  void cluster_barrier_passed(Cta& cta, Warp const& warp, SourceLocation where);

  // Mbarriers, by the CTA that they lie in.

  /// `again`: it was one already.
  void mbarrier_initialised(Cta& cta, MbarrierState& mbarrier, bool again);
  void mbarrier_invalidated(Cta& cta, MbarrierState& mbarrier, SourceLocation where);
  /// The current thread names it in an instruction.
  void mbarrier_used(Cta& cta, MbarrierState& mbarrier, Instruction instruction,
                     SourceLocation where);
  void mbarrier_arrived(Cta& cta, MbarrierState& mbarrier, Instruction instruction,
                        SourceLocation where, bool relaxed, bool wide);
  /// Bytes were completed by an operation in flight that has landed, or by the current
  /// thread: null.
  void bytes_completed(Cta& cta, MbarrierState& mbarrier, InFlight* operation);
  /// A cp.async.mbarrier.arrive has arrived.
  void copies_arrived(Cta& cta, MbarrierState& mbarrier, InFlight& operation);
  void phase_completed(Cta& cta, MbarrierState& mbarrier);
  /// A thread goes on after the latest phase that is complete.
  void phase_passed(Cta& cta, MbarrierState& mbarrier, Thread const& thread, SourceLocation where,
                    bool relaxed);

  // Copies and operations in flight.

  /// The current thread is about to issue a cp.async; it has; its bytes are in shared memory; its
  /// issuer has waited for it, or a cp.async.mbarrier.arrive stands for it and arrives.
  void copy_issuing(Cta& cta, AsyncCopy const& copy);
  void copy_issued(Cta& cta, AsyncCopy& copy);
  void copy_landed(Cta& cta, AsyncCopy const& copy);
  void copy_retired(Cta& cta, AsyncCopy const& copy, Thread const& issuer);
  /// The current thread is about to issue an operation, whose ranges may lie anywhere.
  void issuing(Cluster& cluster, InFlight& operation);
  /// An operation is in flight from now on.
  void issued(Cluster& cluster, InFlight& operation);
  /// Its effect is there.
  void landed(Cluster& cluster, InFlight& operation);
  /// Somebody has waited until it has read its source.
  void reads_retired(Cluster& cluster, InFlight& operation);
  /// Somebody has waited for it, or nobody can (`for_nobody`).
  void retired(Cluster& cluster, InFlight& operation, bool for_nobody);
  /// The current thread has, by its group.
  void waited_for(Cluster& cluster, InFlight& operation);
  /// Threads have waited, until the given time, for what they issued.
  void waited(Cta& cta, int first_thread, int threads, double until, char const* what,
              SourceLocation where);

  // Who decides on the order, and who keeps time.

  /// The current thread is about to do what others can notice.
  void before(Visible const& what);
  /// The current thread is to return from the kernel; it has.
  void before_exit();
  void exited(Thread const& thread);
  /// Nobody of the cluster runs. Lets somebody go on, of this or of another cluster, and returns
  /// when somebody of this one does; false where that is the machine's business.
  bool choose(Cluster& cluster);
  /// Whether the order of the clusters that are there together is decided so, too.
  bool decides() const;
  /// Whether requests of the cluster for others are refused, whoever waits.
  bool refuses(Cluster const& cluster) const;
  /// A thread's clock.
  double clock(Thread const& thread) const;

 private:
  std::unique_ptr<List> list_;
};

}  // namespace tegula::sim
