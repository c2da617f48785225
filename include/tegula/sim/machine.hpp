#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tegula/arch/dim3.hpp"
#include "tegula/sim/generation.hpp"
#include "tegula/sim/global_tensor.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/sim/mutation.hpp"
#include "tegula/sim/report.hpp"
#include "tegula/sim/schedule.hpp"
#include "tegula/sim/suppression.hpp"
#include "tegula/sim/trace.hpp"

/// The simulated GPU: memory, options and launches. launch.hpp starts a kernel on it.
namespace tegula::sim {

/// What a launch records of its time: docs/machine.md, "Time".
struct TraceOptions {
  int ctas = 2;  ///< the first CTAs of the grid, rounded up to whole clusters
  Timing timing;
  bool barriers = false;  ///< the phases of their mbarriers, too
};

/// What correct programs of today leave out, and the PTX ISA asks for.
struct Strict {
  /// Between a read through the generic proxy and an overwrite through the asynchronous one lies a
  /// fence.proxy.async; by default it is enough that they are ordered.
  bool proxies = false;
  /// An arrival by mbarrier_arrive_cluster, which releases at the scope of the CTA, orders
  /// nothing for another CTA; by default it is enough for what was read, and for copies that
  /// have completed.
  bool scopes = false;
  /// An atomic releases what its own thread's fence before it orders, and nothing that the
  /// CTA's other threads have fenced and a barrier has told it of since; by default it releases
  /// that, too. Likewise a fence acquires what its own thread has seen by an atomic or a relaxed
  /// load before it; by default also what others of its CTA have.
  bool fences = false;
};

/// A kernel with one statement changed, wherever it is executed: sim/mutation.hpp.
struct Mutant {
  std::string file;  ///< the last parts of its path: "kernel/gemm_sm90.hpp"
  int line = 0;      ///< of the kernel, also where a pipeline executes the statement for it
  Operation operation{};
  Mutation mutation{};
};

struct Options {
  Generation generation = Generation::sm90;
  Completion completion = Completion::last;
  Interleaving interleaving = Interleaving::one_warp_ahead;
  std::uint64_t seed = 0;
  /// Replays an order that an exploration has tried, whatever completion, interleaving and seed
  /// say.
  std::optional<Choices> choices = {};
  /// Whether accesses are held against the shadow of memory (never written, copy in flight), and
  /// what a launch is to cover is looked for. Bounds, alignment, divergence and deadlock are
  /// always checked.
  bool check = true;
  /// Whether, besides, accesses to shared memory are held against each other: data races,
  /// also between the generic and the asynchronous proxy (docs/machine.md, "Happens-before").
  /// Needs `check`.
  bool races = true;
  /// Where practice and the letter of the PTX ISA differ, accesses are held to the letter.
  Strict strict = {};
  /// Instructions that one thread may execute: those that touch memory, synchronise or ask for
  /// what others do. A thread that executes more is caught in a loop that does not end, which is
  /// found as a deadlock.
  std::int64_t most_steps = std::int64_t{1} << 24;
  /// Whether instructions are counted by source line.
  bool count = true;
  /// What a warp's access to memory may cost: where it says a number, in place of the kernel's own.
  Limits limits = {};
  /// Findings that are known and accepted: reports hold them apart, and no launch fails for them.
  std::vector<Suppression> allow = {};
  /// Whether a launch with findings throws CheckError; else the caller reads them off the report.
  bool throw_on_finding = true;
  /// Threads of the host that run clusters side by side; 0: as many as the host has cores. Results
  /// and reports do not depend on it.
  int workers = 0;
  /// Stack of a simulated thread. A guard of 1 MiB lies below it: a deeper stack is named on the
  /// standard error and ends the process with a memory fault.
  std::size_t stack_bytes = 256 * 1024;
  /// Called with (CTAs done, CTAs in all) after each cluster, one call at a time, from any of the
  /// host's threads. An exception of its ends the launch, and the launch throws it.
  std::function<void(std::int64_t, std::int64_t)> progress = {};
  /// Multiprocessors that programs are told of, by which persistent kernels choose their grid; 0:
  /// as many as an A100 or an H100 has.
  int multiprocessors = 0;
  /// Records the first CTAs' timeline: Report::trace. In those CTAs copies land at once and the
  /// thread with the earliest clock runs, whatever completion and interleaving say.
  std::optional<TraceOptions> trace = {};
  /// Runs the kernel with this statement changed.
  std::optional<Mutant> mutant = {};
  /// Lists the statements that could be: Report::marked.
  bool list_marked = false;
};

class Exploring;

/// A named part of SharedStorage.
struct SharedBuffer {
  std::string name;
  std::size_t offset = 0;  ///< from the start of SharedStorage, in bytes
  std::size_t bytes = 0;
  int element_bits = 8;
  /// The place of an element, by its offset in elements: "row 17, column 40".
  std::function<std::string(std::int64_t)> locate;
};

/// Where a launch has the parameters of its kernel: memory of the host.
struct ParameterRange {
  void const* first = nullptr;
  std::size_t bytes = 0;

  bool contain(void const* pointer, std::size_t n) const {
    std::uintptr_t const offset =
        reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(first);
    return offset < bytes && n <= bytes - offset;
  }
};

/// A kernel with its parameters, free of its type.
struct KernelImage {
  std::string name;
  int threads = 0;
  std::size_t shared_bytes = 0;
  std::vector<SharedBuffer> buffers;
  std::vector<GlobalTensor> tensors;
  Dim3 cluster;  ///< extents of a cluster, in CTAs
  int min_ctas_per_sm = 1;
  /// It may be started before the launch before it has finished: CUDA's programmatic dependent
  /// launch. What it does to global memory must come after a griddepcontrol_wait, except to read
  /// what is constant.
  bool programmatic_dependent_launch = false;
  /// All CTAs of the grid are resident at once, so that each may wait for any other: CUDA's
  /// cooperative launch. One that the simulated GPU has no room for is refused.
  bool cooperative = false;
  /// CTAs wait, for a while, for others that may be resident at the same time, as on a GPU many
  /// are: as many clusters as the host has room for run together, and the others follow them.
  /// (Those of other kernels run for themselves, and atomics are in the order of their indices.)
  bool concurrent = false;
  /// Clusters that run may take over the work of those that have not started: cluster launch
  /// control. A few run together, and the others wait for room.
  bool cluster_launch_control = false;
  Limits limits;
  ParameterRange params;
  char const* (*role)(int warp) = nullptr;  ///< name of a warp's role, for traces; may be null
  /// Registers of a thread at launch: what the compiler may give it where min_ctas_per_sm CTAs
  /// share those of an SM.
  int registers() const;
  /// Runs one thread of the kernel.
  std::function<void(void* shared_storage)> run;
};

/// A simulated GPU. Its functions, except options(), may be called from several threads of the
/// host; launches take turns, and memory that one uses is not for others to touch meanwhile.
/// Pointers to its memory are the host's, but every byte is known to the machine by name, bounds
/// and whether it was written.
class Machine {
 public:
  explicit Machine(Options options = {});
  ~Machine();
  Machine(Machine const&) = delete;
  Machine& operator=(Machine const&) = delete;

  Options const& options() const { return options_; }
  Options& options() { return options_; }

  /// Global memory of `bytes` bytes, on a boundary of 256 bytes, never written (it holds 0xff, a
  /// NaN in every floating-point type). `name` stands for it in reports. Null for 0 bytes.
  /// Throws std::bad_alloc.
  void* allocate(std::size_t bytes, std::string name);
  /// Frees what allocate returned; null is allowed. Throws std::invalid_argument for any
  /// other pointer.
  void deallocate(void* pointer);
  /// The allocation that begins there is constant from now on: no launch writes to it, so that
  /// kernels may read it before they have waited for the grids before theirs (weights, for
  /// example). Throws std::invalid_argument for any other pointer.
  void set_constant(void const* pointer);
  /// Copies from the host into global memory, and marks the bytes as written. Throws
  /// std::invalid_argument out of bounds.
  void upload(void* destination, void const* source, std::size_t bytes);
  /// Copies from global memory to the host. Bytes that nobody wrote read as 0xff. Throws
  /// std::invalid_argument out of bounds.
  void download(void* destination, void const* source, std::size_t bytes) const;
  /// Sets bytes of global memory and marks them as written. Throws std::invalid_argument out
  /// of bounds.
  void fill(void* destination, int byte, std::size_t bytes);
  /// Copies within global memory; bytes that were never written stay so. Throws
  /// std::invalid_argument out of bounds.
  void copy(void* destination, void const* source, std::size_t bytes);
  /// Whether each of the bytes was written. False out of bounds.
  bool written(void const* pointer, std::size_t bytes) const;
  /// Whether the elements of a tensor all lie in one allocation, as those that a launch
  /// describes must.
  bool holds(GlobalTensor const& tensor) const;

  /// Runs the kernel on every CTA of the grid and returns when all are done. Throws CheckError
  /// (Options::throw_on_finding), and std::invalid_argument for a launch that a GPU would refuse:
  /// an empty or too large grid, a number of threads that is no multiple of 32 or beyond 1024, more
  /// shared memory than a CTA can have, a cluster of more than 8 CTAs or one that the grid is no
  /// multiple of, a cooperative launch of more CTAs than the GPU holds at once. Likewise for a
  /// tensor that is not described as GlobalTensor says, or does not lie in one allocation.
  Report launch(KernelImage const& kernel, Dim3 grid);

 private:
  friend class Exploring;
  struct State;
  Options options_;
  Exploring* exploring_ = nullptr;  ///< decides who runs; null: the options do
  std::unique_ptr<State> state_;
};

}  // namespace tegula::sim
