#pragma once

/// What `tegula gemm` and `tegula attention` share: the machine's options, operands from files or generated,
/// timing, the verdict and its printing.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "commands.hpp"
#include "tegula/device/buffer.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/io/array.hpp"
#include "tegula/numeric/dtype.hpp"

namespace tegula::tool {

/// A line on standard error that shows how far a simulated launch is: only where that is a terminal, and only
/// after two seconds.
class ProgressBar {
 public:
  ~ProgressBar() { clear(); }
  void update(std::int64_t done, std::int64_t total);
  /// Erases the line.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  Clock::time_point begin_ = Clock::now(), drawn_ = begin_;
  std::int64_t last_done_ = 0;
  bool visible_ = false;
};

/// What an option accepts, with a sentence for what it does not: a whole number from `least` to `most`, or a
/// number above 0.
CLI::Validator whole_number(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max());
CLI::Validator positive_number();
/// Any name but the empty one.
CLI::Validator file_name();

struct MachineOptions {
  std::string device = "auto", arch = "sm90", scheduler = "last";
  std::string completion, interleaving;  ///< in place of the scheduler's; empty: none
  std::optional<std::string> choices;    ///< in place of all of these
  std::uint64_t seed = 0;
  int workers = 0, multiprocessors = 0;
  bool unchecked = false;
  std::string trace, svg;  ///< files for the timeline of the first trace_ctas CTAs; empty: none
  int trace_ctas = 2;
  bool trace_barriers = false;
  std::string report;  ///< file for what the checker found; empty: none
  std::string allow;   ///< file of findings that are accepted; empty: none
  sim::Limits limits;  ///< of each access to memory
};
void add_machine_options(CLI::App& command, MachineOptions& options);
/// `bar` must outlive the machine.
Machine make_machine(MachineOptions const& options, ProgressBar& bar);
/// Writes the timeline of the last launch to the files that were asked for, under `title`.
void write_timeline(MachineOptions const& options, Machine const& machine, std::string const& title);

/// "f16", "bf16", "f32", "tf32", "e4m3" or "e5m2". Throws argument_error.
DType parse_dtype(std::string const& name);

/// An array of one of these types in host memory, dense in C order.
struct Operand {
  DType type;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;

  std::int64_t size() const;
};
/// From a file, rounded to `type` where one is asked for. Throws argument_error for a file of another rank,
/// of elements that are no floating-point numbers, or, where no type is asked for, neither f16 nor bf16.
Operand read_operand(std::string const& option, std::string const& name, std::optional<DType> type,
                     std::size_t least_rank, std::size_t most_rank);
/// Values evenly spread in [-1, 1), the same for the same seed and stream, whatever the type and the host.
Operand generate(std::vector<std::int64_t> shape, DType type, std::uint64_t seed, std::uint64_t stream);
/// Joins what a file says about an extent to what an option or another file said (0: nothing yet). Throws
/// argument_error where they differ.
void agree(std::int64_t& extent, std::int64_t from_file, std::string_view name, std::string const& file);
/// Writes results as `io::write_array` does.
void write_operand(std::string const& name, Operand const& operand);
/// On the machine, under `name` in its reports.
Buffer<std::byte> upload(Machine const& machine, Operand const& operand, std::string const& name);
/// `rows` of a (.., row) array as doubles.
std::vector<double> rows_as_doubles(Operand const& operand, std::int64_t row,
                                    std::vector<std::int64_t> const& rows);

/// Milliseconds of one launch: the mean of `repeat`, after one that warms a GPU up.
double time_launches(Machine const& machine, int repeat, std::function<void()> const& launch);
/// Likewise, with the report written where MachineOptions::report asks for it. Where the simulated machine
/// found something: prints it, as JSON where `json`, and throws reported_failure.
double checked_launches(Machine const& machine, MachineOptions const& options, ProgressBar& bar, int repeat,
                        bool json, std::function<void()> const& launch);

/// Rows whose reference takes at most a few seconds: `work` multiply-adds for one row.
std::vector<std::int64_t> rows_to_check(std::int64_t total, double work);

/// What a run found, for printing.
struct Verdict {
  nlohmann::ordered_json problem;  ///< the command's own fields
  std::string headline;            ///< the problem in one line
  std::string configuration;
  int configuration_index = 0;
  double milliseconds = 0;
  double multiply_adds = 0;
  std::int64_t rows = 0, rows_checked = 0;
  struct Part {
    std::string name;
    reference::Comparison comparison;
    std::string worst;  ///< the place of the worst element: "row 3, column 5"
  };
  std::vector<Part> parts;
  std::string output;
};
/// Prints for people or as JSON. Throws reported_failure where a part is beyond its bound.
void print_verdict(Verdict const& verdict, Machine const& machine, bool json, bool lines);

}  // namespace tegula::tool
