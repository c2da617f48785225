#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tegula/arch/dim3.hpp"
#include "tegula/sim/generation.hpp"
#include "tegula/sim/report.hpp"

/// The simulated GPU: memory, options and launches. launch.hpp starts a kernel on it.
namespace tegula::sim {

/// When a copy in flight reaches shared memory.
enum class Completion : std::uint8_t {
  last,    ///< at the last moment the PTX ISA allows: when its group is waited for
  first,   ///< at once
  random,  ///< anywhere between, by seed
};

/// Which warp runs next.
enum class Interleaving : std::uint8_t {
  one_warp_ahead,  ///< a warp runs until it waits for others
  round_robin,     ///< the next warp takes over after each warp-wide instruction
  random,  ///< any warp may take over after each warp-wide instruction, and lanes run in any order, by seed
};

struct Options {
  Generation generation = Generation::sm90;
  Completion completion = Completion::last;
  Interleaving interleaving = Interleaving::one_warp_ahead;
  std::uint64_t seed = 0;
  /// Whether accesses are held against the shadow of memory (never written, copy in flight). Bounds,
  /// alignment, divergence and deadlock are always checked.
  bool check = true;
  /// Whether instructions are counted by source line.
  bool count = true;
  /// Whether a launch with findings throws CheckError; else the caller reads them off the report.
  bool throw_on_finding = true;
  /// Threads of the host that run CTAs side by side; 0: as many as the host has cores. Results and reports do
  /// not depend on it.
  int workers = 0;
  /// Stack of a simulated thread. A guard page lies below it: a deeper stack is named on the standard error
  /// and ends the process with a memory fault.
  std::size_t stack_bytes = 256 * 1024;
  /// Called with (CTAs done, CTAs in all) after each CTA, one call at a time, from any of the host's threads.
  /// An exception of its ends the launch, and the launch throws it.
  std::function<void(std::int64_t, std::int64_t)> progress;
};

/// A named part of SharedStorage.
struct SharedBuffer {
  std::string name;
  std::size_t offset = 0;  ///< from the start of SharedStorage, in bytes
  std::size_t bytes = 0;
  int element_bits = 8;
  /// The place of an element, by its offset in elements: "row 17, column 40".
  std::function<std::string(std::int64_t)> locate;
};

/// A kernel with its parameters, free of its type.
struct KernelImage {
  std::string name;
  int threads = 0;
  std::size_t shared_bytes = 0;
  std::vector<SharedBuffer> buffers;
  /// Runs one thread of the kernel.
  std::function<void(void* shared_storage)> run;
};

/// A simulated GPU: its global memory and how it runs. Its functions may be called from several threads of
/// the host; launches take turns. Pointers to its memory are pointers of the host, but every byte of them is
/// known to the machine by name, bounds and whether it was written.
class Machine {
 public:
  explicit Machine(Options options = {});
  ~Machine();
  Machine(Machine const&) = delete;
  Machine& operator=(Machine const&) = delete;

  Options const& options() const { return options_; }
  Options& options() { return options_; }

  /// Global memory of `bytes` bytes, on a boundary of 256 bytes, never written (it holds 0xff, a NaN in every
  /// floating-point type). `name` stands for it in reports. Null for 0 bytes. Throws std::bad_alloc.
  void* allocate(std::size_t bytes, std::string name);
  /// Frees what allocate returned; null is allowed. Throws std::invalid_argument for any other pointer.
  void deallocate(void* pointer);
  /// Copies from the host into global memory, and marks the bytes as written. Throws std::invalid_argument
  /// out of bounds.
  void upload(void* destination, void const* source, std::size_t bytes);
  /// Copies from global memory to the host. Bytes that nobody wrote read as 0xff. Throws
  /// std::invalid_argument out of bounds.
  void download(void* destination, void const* source, std::size_t bytes) const;
  /// Sets bytes of global memory and marks them as written. Throws std::invalid_argument out of bounds.
  void fill(void* destination, int byte, std::size_t bytes);
  /// Copies within global memory; bytes that were never written stay so. Throws std::invalid_argument out of
  /// bounds.
  void copy(void* destination, void const* source, std::size_t bytes);
  /// Whether each of the bytes was written. False out of bounds.
  bool written(void const* pointer, std::size_t bytes) const;

  /// Runs the kernel on every CTA of the grid and returns when all are done. Throws CheckError
  /// (Options::throw_on_finding), and std::invalid_argument for a launch that a GPU would refuse: an empty or
  /// too large grid, a number of threads that is no multiple of 32 or beyond 1024, more shared memory than a
  /// CTA can have.
  Report launch(KernelImage const& kernel, Dim3 grid);

 private:
  struct State;
  Options options_;
  std::unique_ptr<State> state_;
};

}  // namespace tegula::sim
