#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tegula/arch/dim3.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/sim/mutation.hpp"
#include "tegula/sim/schedule.hpp"
#include "tegula/sim/trace.hpp"

namespace tegula::sim {

/// What the checker found. docs/machine.md has an example of each.
enum class FindingKind : std::uint8_t {
  out_of_bounds,       ///< an access outside of every buffer, or beyond a fragment
  misaligned,          ///< an address that is no multiple of the access's size
  uninitialized_read,  ///< a read of memory, or of a fragment's register, that nobody wrote
  async_read_early,    ///< a read of bytes that an operation in flight is to write
  async_overwrite,     ///< a write to bytes that an operation in flight is to write, or to read
  data_race,           ///< two accesses to the same bytes, one of them a write, that nothing orders
  /// the asynchronous proxy touches what was written without a fence.proxy.async, or an mbarrier
  /// whose init no fence has made visible to it
  proxy_race,
  /// registers of a wgmma in flight are written, or written before it without wgmma.fence; or
  /// setmaxnreg twice without a barrier of the warpgroup
  register_race,
  /// the wgmma in flight hold more than the warpgroup has by its launch or by setmaxnreg
  too_few_registers,
  wrong_layout,  ///< an address, or an operand, that is not laid out as its tile or its copy says
  /// an asynchronous copy into shared memory that nobody reads before it is overwritten
  unread_copy,
  divergence,  ///< an aligned instruction that the lanes of a warp do not execute together
  /// a barrier number, a thread count, a mask or a size that the instruction does not admit
  invalid_operand,
  /// an mbarrier used before its init, initialised twice, overflowing, or read or written as memory
  mbarrier_misuse,
  /// shared memory of a CTA that has exited, or exits before operations in flight are done with it
  exited_cta,
  /// tensor memory allocated, freed or kept as it must not be, or touched by a warp that does not
  /// reach it
  tensor_memory_misuse,
  deadlock,  ///< every thread that has not exited waits
  /// more passes over the banks of shared memory than the kernel, or the caller, declares
  bank_conflicts,
  /// more sectors of global memory than the bytes need and the kernel, or the caller, declares
  uncoalesced,
  unread_input,      ///< an element that the launch is to read, and does not
  unwritten_output,  ///< an element that the launch is to write, and does not
  trap,              ///< the kernel executed trap
  exception,         ///< the kernel threw a C++ exception
};

/// The kind's name, as in JSON: "out_of_bounds", ...
std::string_view to_string(FindingKind kind);

/// One finding: reported once for each (kind, source line, buffer), for the first thread of the
/// first CTA that did it; of pairs whose advice differs, for the first that are farthest apart
/// (Finding::reach), since what orders those orders the others, too.
struct Finding {
  FindingKind kind;
  std::string message;   ///< one sentence, without the place
  SourceLocation where;  ///< the instruction
  Dim3 cta{0, 0, 0};     ///< coordinate in the grid; all -1 where it concerns the whole launch
  int warp = -1;         ///< -1 where it concerns the whole CTA
  int lane = -1;         ///< -1 where it concerns the whole warp
  std::string buffer;    ///< name of the shared or global buffer, or empty
  /// place in it: "row 17, column 40 of stage 2 of K"; empty where there is no buffer
  std::string coordinate;
  int stage = -1;        ///< of the coordinate; -1 where the buffer has none
  SourceLocation other;  ///< the other instruction of the pair (the copy in flight), or line 0
  std::optional<Dim3> other_cta;  ///< who executed that one, where it is known
  int other_warp = -1;
  int other_lane = -1;
  std::string order;           ///< a clause on what would order the two, or empty
  std::int64_t count = 1;      ///< how often it was seen, all CTAs together
  bool ended_cluster = false;  ///< its cluster ran no further

  /// Where the two threads of a pair are, the farther the greater.
  enum class Reach : std::uint8_t { thread, warp, cta, cluster, grid };
  Reach reach = Reach::thread;
};

/// A finding that Options::allow accepts, and the reason given there.
struct Silenced {
  Finding finding;
  std::string reason;
};

/// What one instruction on one source line did, summed over warps and CTAs.
struct LineCounters {
  SourceLocation where;
  std::string instruction;  ///< as in PTX: "ldmatrix", "cp.async", "mma.sync", ...

  std::int64_t instructions =
      0;  ///< executions by a warp (lanes of a warp that execute it together count once)
  std::int64_t fused_multiply_adds = 0;  ///< scalar multiply-adds of mma.sync
  std::int64_t shared_bytes = 0;         ///< bytes asked for in shared memory by all lanes
  std::int64_t shared_wavefronts = 0;    ///< passes over the 32 banks that shared memory needed
  std::int64_t bank_conflicts = 0;  ///< of those, the passes beyond what the access's width needs
  std::int64_t global_bytes = 0;    ///< bytes asked for in global memory by all lanes
  std::int64_t global_sectors = 0;  ///< 32-byte sectors touched, each counted once a warp access

  /// Adds another line's counts to this one's.
  void add(LineCounters const& other);
};

/// A statement that can be mutated (sim/mutation.hpp), as executed.
struct MarkedStatement {
  SourceLocation where;
  Operation operation{};
  Mutation admitted{};          ///< the set of what can be done to it
  std::int64_t executions = 0;  ///< by threads
};

/// Whether a report's text and JSON have what was counted, or the findings alone.
enum class Counters : std::uint8_t { shown, left_out };

/// What a launch did. The same seed, grid and parameters give the same report, whatever the number
/// of the host's threads.
struct Report {
  std::string kernel;
  Dim3 grid;
  int threads = 0;  ///< of a CTA
  Schedule schedule;

  std::vector<Finding> findings;    ///< in the order of CTAs
  std::vector<Silenced> silenced;   ///< findings that were accepted, likewise
  std::vector<LineCounters> lines;  ///< by file, line and instruction
  LineCounters total;               ///< sum of lines
  /// Exponentials, logarithms, reciprocals, roots and tanh that all threads computed by the
  /// special-function unit.
  std::int64_t special_functions = 0;

  /// The deepest stack that a simulated thread of the machine used, in whole pages; 0 where not
  /// measured. Of up to 16 KiB it may be what an earlier machine used.
  std::size_t stack_bytes = 0;

  std::optional<Trace> trace;  ///< of the first CTAs, where Options::trace asks for it

  /// Pairs of steps that nothing orders and that another schedule may run the other way round, to
  /// another effect: atomics on the same word, an mbarrier's test and what completes its phase.
  /// Each may double the number of orders, of which one was run (sim::explore runs every one). 0:
  /// not looked for, or none.
  std::int64_t open_choices = 0;

  /// By file, line and operation, where Options::list_marked asks for it.
  std::vector<MarkedStatement> marked;

  /// Whether nothing was found but what was accepted.
  bool ok() const { return findings.empty(); }
  /// The sum over lines of one instruction.
  LineCounters instruction(std::string_view name) const;
  /// For people: the findings, then a table of counters by line.
  std::string text(Counters counters = Counters::shown) const;
  /// For machines; without its members `lines` and `total` where the counters are left out.
  std::string json(Counters counters = Counters::shown) const;
};

/// One finding with its place, as text() shows it.
std::string to_string(Finding const& finding, std::string_view kernel);

/// Thrown by a launch whose kernel was found wrong; what() lists the findings.
class CheckError : public std::runtime_error {
 public:
  explicit CheckError(Report report);
  Report const& report() const { return report_; }

 private:
  Report report_;
};

}  // namespace tegula::sim
