#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine/global_memory.hpp"
#include "machine/tensor_memory.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tensor_map.hpp"
#include "values/instruction.hpp"

/// Operations in flight: what the asynchronous proxy does after the thread that asked for it has
/// gone on. Bulk and tensor copies, st.async and wgmma are objects in one queue of the cluster. An
/// operation is *issued* (InFlightQueue::add), may *read* its source, *lands* (its effect is
/// there), and is *retired* (somebody has waited for it, so that what it touched may be touched
/// again). Options::completion says when it lands; that it is retired is the kernel's doing: by its
/// mbarrier's phase, or by a wait for its group.
///
/// How to add one, by the example of a copy to another CTA that completes on an mbarrier there:
///
///   class PeerCopy final : public InFlight {
///    public:
///     PeerCopy(Cta const& cta, SourceLocation where, SharedRange to, SharedRange from)
///         : InFlight(Instruction::cp_async_bulk, cta, where) {
///       // Bounds are the queue's business; overlaps and fences are the checker's.
///       writes = {to};
///       reads = {from};
///       cost = {...};  // for the model of time: docs/machine.md, "Time"
///     }
///     // The effect, and nothing else.
///     void land(Cluster& cluster) override {
///       SharedRange const from = reads[0], to = writes[0];
///       std::memcpy(cluster.cta(to.cta).shared().at(to.address),
///                   cluster.cta(from.cta).shared().at(from.address), from.bytes);
///     }
///   };
///
///   // The hook, on the fiber of the thread that issues it.
///   void peer_copy(std::uint32_t to, std::uint32_t from, int bytes, std::uint32_t mbarrier,
///                  SourceLocation where) {
///     Cta& cta = current_cta();
///     cta.note(Instruction::cp_async_bulk, where, {bytes, from});
///     ... the checks of operands: cta.target(...), cta.report(...), cta.fail(...) ...
///     auto copy = std::make_unique<PeerCopy>(cta, where, ...);
///     copy->completes_on(peer->rank(), mbarrier, bytes);
///     cta.in_flight().add(std::move(copy));
///   }
///
/// One that a group waits for (bulk stores: the issuing thread's; wgmma: the warpgroup's) is added
/// with `add(std::move(operation), cta.current_thread().bulk)` or `add(..., cta.warpgroup().wgmma)`
/// instead. A multicast is one operation for each destination CTA, so that they can land at
/// different times.
namespace tegula::sim {

class Cta;
class Cluster;
struct MbarrierState;
class InFlightGroups;

/// A thread's latest wait for its groups.
struct LatestWait {
  SourceLocation where;         ///< line 0: there was none
  std::size_t left = 0;         ///< groups that it may have left in flight
  std::uint64_t committed = 0;  ///< the operations up to this one were in groups by then
};

/// Bytes of shared memory of the CTA of the given rank; the address is the CTA's own, without
/// a rank.
struct SharedRange {
  int cta = 0;
  std::uint32_t address = 0;
  std::uint32_t bytes = 0;
};

/// What a load brings into shared memory for somebody to read.
struct Brought {
  std::optional<TmaSwizzle> swizzle;  ///< of a tensor load; other copies bring bytes as they are
  bool fetches = false;  ///< some of it lies in memory; else it fills what lies outside of a tensor
};

/// What observers keep of an operation, each of them its own; the machine reads none of it.
struct Remembered {
  std::uint32_t process = 0;  ///< explore: its number
  std::uint16_t site = 0;     ///< checker: the instruction on its source line
  bool in_order = true;       ///< checker: nothing was found that forbids it to write
  bool after_grids = false;   ///< checker: it was issued after a griddepcontrol.wait
  std::int64_t phase = 0;     ///< checker: of the mbarrier that it completes on, when it was issued
  std::int64_t issued = 0;    ///< checker: when that was
  std::int32_t landed = 0;    ///< checker: when its bytes counted at the mbarrier
  std::uint32_t global_site = 0;
  /// checker: its site and its issue, for what it does to global memory
  std::uint32_t global_time = 0;
};

/// When an operation in flight has read its source, and when its effect is there.
struct TimeOfCopy {
  double read = 0;
  double landed = 0;
};

/// What an operation asks of the hardware, for whoever keeps time.
struct Cost {
  enum class Engine : std::uint8_t { peer, load, store, tensor, tensor_memory, commit };
  Engine engine = Engine::peer;
  double bytes = 0;  ///< that a load or a store moves, or that tensor cores read from shared
                     ///< memory, or that a warp moves to or from tensor memory
  double multiply_adds = 0;  ///< of tensor cores
  SharedRange place{};       ///< of a load's or a store's first byte
  bool again = false;  ///< a load of what the same engine has fetched for another CTA (multicast)
  bool accumulates = false;  ///< tensor cores add to what is there
};

class InFlight {
 public:
  /// Issued by the current thread of the CTA.
  InFlight(Instruction instruction, Cta const& issuer, SourceLocation where);
  virtual ~InFlight() = default;
  InFlight(InFlight const&) = delete;
  InFlight& operator=(InFlight const&) = delete;

  /// Takes the bytes of `reads` out of shared memory, where the source may be free before the
  /// destination is written (bulk stores: cp.async.bulk.wait_group.read). Called once, before land.
  virtual void read(Cluster&) {}
  /// Performs the operation. Called once. All bytes of `writes` count as written afterwards.
  virtual void land(Cluster& cluster) = 0;

  /// Calls visit(context, first byte, bytes) for each piece of global memory that it reads
  /// or writes.
  using VisitGlobal = void (*)(void* context, unsigned char* first, std::size_t bytes);
  virtual void for_each_global(VisitGlobal, void* /*context*/) const {}

  /// Its landing completes `bytes` bytes of transactions on the mbarrier.
  void completes_on(int cta, std::uint32_t address, std::uint32_t bytes) {
    mbarrier = {cta, address, bytes};
  }
  /// Its landing is an arrival at the mbarrier.
  void arrives_at(int cta, std::uint32_t address) {
    mbarrier = {cta, address, 8};
    arrives = true;
  }

  /// A wgmma is the whole warpgroup's; what else there is, one thread's.
  bool by_warpgroup() const { return instruction == Instruction::wgmma_mma_async; }
  /// A tcgen05.ld or st is the whole warp's.
  bool by_warp() const {
    return instruction == Instruction::tcgen05_ld || instruction == Instruction::tcgen05_st;
  }
  /// A tcgen05.mma, cp or shift, which is waited for by a tcgen05.commit after it.
  bool is_committed() const { return sim::is_committed(instruction); }
  /// Whether it is performed after an earlier one of the same thread.
  bool is_pipelined_with(InFlight const& other) const {
    return cta == other.cta && thread == other.thread &&
           is_pipelined(other.instruction, other.shape, instruction, shape);
  }
  /// Its effect is there, though nobody may have waited for it.
  bool landed() const { return landed_; }

  Instruction instruction;
  SourceLocation where;
  int cta;  ///< rank of the CTA that issued it
  /// index in it of the thread that issued it (of a warpgroup: the one that came last)
  int thread;
  std::vector<SharedRange> writes;
  std::vector<SharedRange> reads;
  std::vector<TensorRange> tensor_writes;  ///< likewise of tensor memory
  std::vector<TensorRange> tensor_reads;
  std::vector<InFlight*> covers;  ///< of a tcgen05.commit: what it waits for, oldest first
  std::uint32_t shape = 0;        ///< of a tcgen05.mma: m, n and k in one number; of a tcgen05.cp
                                  ///< kCopyOfFourRows, or 0
  SharedRange mbarrier;           ///< `bytes` 0: it completes on none
  bool arrives = false;           ///< it arrives there, once, and completes no bytes
  /// with what is there, at a stroke: others that do may be in flight beside it
  bool combines = false;
  std::optional<Brought> brings;
  std::optional<GlobalAccess> global;  ///< what it does to the memory that for_each_global gives
  Cost cost;
  TimeOfCopy time;  ///< where time is recorded
  Remembered remembered;

  bool done_reading() const { return done_reading_; }
  /// How many its queue had taken up when it took up this one.
  std::uint64_t serial() const { return serial_; }
  /// The groups that it is waited for in; null where it completes on an mbarrier.
  InFlightGroups* groups() const { return groups_; }

 private:
  friend class InFlightQueue;
  friend std::string issuer_text(InFlight const& operation);
  bool done_reading_ = false;   ///< read was called
  bool reads_retired_ = false;  ///< `reads` may be overwritten
  bool landed_ = false;
  bool without_effect_ = false;  ///< it lies out of bounds: it only completes
  bool of_cluster_;              ///< its CTA has peers
  std::uint64_t serial_ = 0;
  InFlightGroups* groups_ = nullptr;
};

/// The operations of one thread, or of one warpgroup, that it waits for in groups, oldest first.
class InFlightGroups {
 public:
  /// `in_order`: an operation lands after those before it (wgmma: they may share accumulators).
  explicit InFlightGroups(bool in_order = false) : in_order_(in_order) {}

  /// Ends the current group and starts the next.
  void commit() { ends_.push_back(operations_.size()); }
  /// An operation lands after those before it.
  bool in_order() const { return in_order_; }
  /// Committed groups that nobody has waited for.
  std::size_t committed() const { return ends_.size(); }
  /// Operations that nobody has waited for, committed or not.
  std::vector<InFlight*> const& operations() const { return operations_; }
  /// Whether the operation, one of them, is in a group that is committed.
  bool committed(InFlight const& operation) const;
  /// A wait leaves the latest `groups_left` in flight.
  void note_wait(std::size_t groups_left, SourceLocation where);
  /// Whether the operation, one of them, is in a group that the latest wait has left in flight.
  bool left_by_wait(InFlight const& operation) const;
  LatestWait const& waited() const { return waited_; }
  /// Those of all committed groups but the latest `groups_left`.
  std::vector<InFlight*> beyond(std::size_t groups_left) const;
  void clear();

 private:
  friend class InFlightQueue;
  bool in_order_;
  std::vector<InFlight*> operations_;
  std::vector<std::size_t> ends_;  ///< of the committed groups, in operations_
  LatestWait waited_;              ///< by serial numbers
};

/// The operations in flight of one cluster, in the order of their issue.
class InFlightQueue {
 public:
  explicit InFlightQueue(Cluster& cluster) : cluster_(cluster) {}

  /// Takes up an operation that completes on an mbarrier, and tells the observers before and after.
  /// An operation that lies out of bounds is reported, and completes without an effect.
  /// (What else its ranges may touch is the checker's.)
  void add(std::unique_ptr<InFlight> operation);
  /// Takes up an operation of the groups' current group.
  void add(std::unique_ptr<InFlight> operation, InFlightGroups& groups);

  /// Waits until at most the latest `groups_left` committed groups are in flight: the others land
  /// and are retired. Returns when the last of them did, where time is recorded.
  double wait(InFlightGroups& groups, std::size_t groups_left);
  /// Likewise until the others have read their sources.
  double wait_read(InFlightGroups& groups, std::size_t groups_left);

  /// The operation reads its source; it lands. Each happens once.
  void read(InFlight& operation);
  void land(InFlight& operation);

  bool empty() const { return operations_.empty(); }
  /// Lands some operation now and then, where the completion is random.
  void land_at_random();
  /// Called when no thread can run: lands operations until one whose mbarrier is waited for has
  /// completed a phase. False where none did.
  bool land_for_waiters();
  /// Called when threads read memory again and again that nobody changes: lands the oldest
  /// operation that completes on an mbarrier. False where there is none.
  bool land_oldest();
  /// Whether an operation that has not landed is to complete on the mbarrier.
  bool completes_on(int cta, std::uint32_t mbarrier) const;
  /// The bytes that such operations complete there.
  std::int64_t bytes_for(int cta, std::uint32_t mbarrier) const;
  /// Somebody has waited for it, or (`for_nobody`) nobody can: what it touched may be
  /// touched again.
  void retire(InFlight& operation, bool for_nobody = false);
  /// A CTA has exited: reports the operations that still touch its shared memory.
  void check_exit(Cta& cta);
  /// The launch of the cluster is over: what is left lands (not where it failed), and all
  /// is forgotten.
  void finish(bool failed);

  /// What would order an access after the operation; `read`: after its reads.
  std::string order_text(InFlight const& operation, bool read) const;

  /// The operation in flight that writes, or reads, the byte; null where there is none.
  InFlight const* writer_of(int cta, std::uint32_t address) const;
  InFlight const* reader_of(int cta, std::uint32_t address) const;

 private:
  void issue(std::unique_ptr<InFlight> operation);
  bool admit(InFlight& operation);
  void retire_reads(InFlight& operation);
  void forget_covered(InFlight& operation);
  InFlight const* touching(std::vector<SharedRange> InFlight::*ranges, int cta,
                           std::uint32_t address) const;

  Cluster& cluster_;
  /// Their serials ascend. The first is mostly the first to be retired.
  std::deque<std::unique_ptr<InFlight>> operations_;
  std::uint64_t issued_ = 0;
};

/// " that warp 3 lane 0 of CTA 1 of the cluster issued (kernel/gemm_sm90.hpp:88)"; no CTA where it
/// has no peers.
std::string issuer_text(InFlight const& operation);

}  // namespace tegula::sim
