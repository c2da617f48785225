#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "machine/in_flight.hpp"
#include "tegula/sim/machine.hpp"
#include "tegula/sim/trace.hpp"
#include "values/instruction.hpp"

/// The clock of the simulated machine: beside the simulation of what instructions do, a model of
/// when. Each thread has a clock, each engine of an SM a time from which it is free, each phase of
/// a barrier a time at which it was complete. An instruction moves its thread's clock; threads that
/// wait take the maximum of their clock and of what they wait for. The scheduler runs the thread
/// with the earliest clock, so that engines are given out in the order of time.
namespace tegula::sim {

/// A barrier of any kind, as time sees it: phases, each complete when the last arrival is there.
struct TimeGate {
  std::string name;
  double pending = 0;        ///< the latest arrival of the present phase
  std::vector<double> done;  ///< when each phase was complete

  std::int64_t phase() const { return static_cast<std::int64_t>(done.size()); }
  void arrive(double time) { pending = time > pending ? time : pending; }
  void open() {
    done.push_back(pending);
    pending = 0;
  }
};

/// The timeline of one cluster. CTAs are given by their rank in it, threads by their index in
/// the CTA.
class Timeline {
 public:
  /// `ctas`: the coordinates in the grid, by rank. `sharing`: CTAs of the grid, which share L2.
  /// `role`: the name of a warp's role; warps of one role share a track.
  Timeline(TraceOptions const& options, std::vector<Dim3> const& ctas, std::int64_t sharing,
           int threads, std::function<std::string(int)> const& role);

  Timing const& timing() const { return timing_; }
  double clock(int cta, int thread) const { return self(cta, thread).clock; }
  /// The thread executes an instruction: its clock moves on by what that costs. (Not that of wgmma,
  /// tcgen05.mma and mma.sync, whose time tensor() and mma_sync() give.)
  void execute(int cta, int thread, Instruction instruction, SourceLocation where);
  /// Threads that execute an instruction together go on from the latest of their clocks.
  void meet(int cta, int first_thread, std::uint32_t lanes);
  /// The same for all threads from first_thread on.
  void meet_all(int cta, int first_thread, int count);

  // Barriers.
  TimeGate& barrier(int cta, int id);
  /// The present phase of an mbarrier at that address of the CTA is complete.
  void complete_phase(int cta, std::uint32_t address, TimeGate& gate);
  TimeGate& cluster_barrier() { return cluster_barrier_; }
  /// The thread waits for a phase of the gate, which is complete by now; a negative one was
  /// complete from the beginning.
  void pass(TimeGate const& gate, std::int64_t phase, int cta, int thread, SourceLocation where);
  /// The thread waits until `time`: shown under `name`.
  void wait_until(double time, int cta, int thread, std::string const& name, SourceLocation where);

  // Engines. Each returns when the operation is done; `name` is what the picture shows.
  /// A load through L2 of `bytes` by the TMA engine of `cta`, into the CTA of rank `to`. `again`:
  /// what the engine fetched last goes to that CTA as well (multicast).
  double load(int cta, int thread, int to, double bytes, bool again, std::string const& name,
              SourceLocation where);
  /// A bulk store, or reduction, of `bytes`.
  TimeOfCopy store(int cta, int thread, double bytes, std::string const& name,
                   SourceLocation where);
  /// A cp.async.
  double copy(int cta, int thread, double bytes, SourceLocation where);
  /// A wgmma or tcgen05.mma of `operand_bytes` read from shared memory, by the warpgroup, or the
  /// thread, whose first thread is given. A warpgroup goes on when it has issued it, a thread when
  /// the tensor cores accept it.
  /// `accumulates`: it adds to what is there; one that does not begins the threads' next result.
  double tensor(int cta, int first_thread, int threads, std::string const& name,
                double multiply_adds, double operand_bytes, bool accumulates, SourceLocation where);
  /// A warp's load of `bytes` from tensor memory, or store: it handles a
  /// result, the next one where it has waited for a barrier before.
  double tensor_memory(int cta, int thread, double bytes, SourceLocation where);
  /// An mma.sync of the warp with that first thread; its threads wait for the result.
  void mma_sync(int cta, int first_thread, double multiply_adds, SourceLocation where);
  /// An instruction of the special-function units by the thread, for itself: the units of its
  /// warp's scheduler serve one lane after another. `exponential`: the picture shows it.
  void special_function(int cta, int thread, bool exponential);

  /// What was recorded, spans joined: those of one track nest or lie one after another.
  Trace finish();

 private:
  struct Thread {
    double clock = 0;
    int track = 0;
    int results = -1;          ///< accumulations begun, less one
    bool accumulated = false;  ///< the last wgmma added to its result
    bool computes = false;     ///< it has executed wgmma or mma.sync since its last epilogue
    bool waited = false;       ///< for a barrier, since it loaded from tensor memory last
    double epilogue_begin = 0;
    double epilogue_end = -1;  ///< negative: none is open
    SourceLocation epilogue_where;
    double exponentials_begin = 0;
    double exponentials_end = -1;  ///< negative: none since it last waited or issued
  };
  struct Engines {
    double tma = 0;                      ///< the TMA engine fetches
    double port = 0;                     ///< bytes arrive
    double store = 0;                    ///< bytes leave
    double tensor = 0;                   ///< the four tensor cores, for wgmma
    std::array<double, 4> quarter = {};  ///< each of them, for mma.sync
    std::array<double, 4> special = {};  ///< the special-function units of each scheduler
    int load_track, store_track, copy_track, tensor_track;
    std::array<int, 4> quarter_track;
  };

  Thread& self(int cta, int thread) {
    return threads_[static_cast<std::size_t>(cta * per_cta_ + thread)];
  }
  Thread const& self(int cta, int thread) const {
    return threads_[static_cast<std::size_t>(cta * per_cta_ + thread)];
  }
  void record(int track, SpanKind kind, std::string name, double begin, double end,
              SourceLocation where, int issuer = -1);
  void touch_result(Thread& thread, double begin, SourceLocation where);
  void close_epilogue(Thread& thread);
  void close_exponentials(Thread& thread);
  void add_phases(TraceTrack const& of_cta, Trace& trace);
  void issue_span(Thread& thread, std::string name, double begin, SourceLocation where);

  Timing timing_;
  double l2_share_;  ///< bytes a cycle that one SM exchanges with L2
  int per_cta_;
  std::vector<Thread> threads_;
  std::vector<Engines> engines_;
  bool shows_phases_;
  std::map<std::pair<int, std::uint32_t>, std::vector<TraceSpan>> phases_;  ///< by CTA and address
  std::map<std::pair<int, int>, TimeGate> barriers_;
  TimeGate cluster_barrier_;
  std::vector<TraceTrack> tracks_;
  std::vector<TraceSpan> spans_;  ///< as single threads recorded them
};

}  // namespace tegula::sim
