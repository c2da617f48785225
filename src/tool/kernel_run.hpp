#pragma once

/// What `tegula gemm` and `tegula attention` share: the machine's options, operands from files or
/// generated, timing, the verdict and its printing.

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "options.hpp"
#include "output.hpp"
#include "tegula/device/buffer.hpp"
#include "tegula/device/family.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/io/array.hpp"
#include "tegula/io/output_file.hpp"
#include "tegula/io/text.hpp"
#include "tegula/numeric/dtype.hpp"

namespace tegula::tool {

/// A line on standard error that shows how far a simulated launch is, drawn anew twice a second:
/// only where that is a terminal, and only after two seconds.
class ProgressBar {
 public:
  ~ProgressBar() { clear(); }
  /// What comes is the launch `index` of so many, which may be of several kernels.
  void begin_launch(int index, int launches);
  /// So many of the launch's CTAs are done.
  void update(std::int64_t done, std::int64_t total);
  /// Erases the line, until the next launch.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  /// While the lock is held.
  void draw(Clock::time_point now);
  void redraw_until(std::stop_token const& stop);

  std::mutex mutex_;
  std::condition_variable_any stopped_;
  Clock::time_point begin_ = Clock::now(), drawn_ = begin_;
  std::int64_t done_ = 0, total_ = 0;  ///< CTAs; 0 in all: not known yet
  int launch_ = 0, launches_ = 1;
  bool running_ = false, visible_ = false;
  std::jthread ticker_;  ///< the last member: it uses the others until it ends
};

struct MachineOptions {
  std::string device = "auto", arch = "sm90", scheduler = "last";
  std::string completion, interleaving;  ///< in place of the scheduler's; empty: none
  std::optional<std::string> choices;    ///< in place of all of these
  std::uint64_t seed = 0;
  int workers = 0, multiprocessors = 0;  ///< 0: as many as there are; as the simulated GPU has
  bool unchecked = false;
  std::string trace, svg;  ///< files for the timeline of the first trace_ctas CTAs; empty: none
  int trace_ctas = 2;
  bool trace_barriers = false;
  std::string report;  ///< file for what the checker found; empty: none
  bool report_without_counters = false;
  std::string allow;   ///< file of findings that are accepted; empty: none
  sim::Limits limits;  ///< of each access to memory

  /// The options that only a simulated machine heeds, and those that only a run does.
  std::vector<std::pair<char const*, Option>> simulated, of_run;
};
void add_machine_options(Command const& command, MachineOptions& options);
/// --repeat, which only a run heeds.
void add_repeat(Command const& command, int& repeat, MachineOptions& options);
/// Refuses options that change nothing: without another one, beside one that says it all, or with
/// --explain, which runs nothing.
/// Throws argument_error.
void check_machine_options(MachineOptions const& options, bool explains);
/// `bar` must outlive the machine. Throws argument_error where the machine is none that heeds an
/// option that was given.
Machine make_machine(MachineOptions const& options, ProgressBar& bar);

/// Refuses --lines, if given, where it would change nothing: JSON has the lines anyway, and a GPU
/// counts none.
void check_lines(bool lines, bool json, bool explains, Machine const& machine);
/// The files that the machine's options name: what is written, and what is read.
std::vector<io::NamedPath> machine_targets(MachineOptions const& options);
std::vector<io::NamedPath> machine_inputs(MachineOptions const& options);
/// Throws argument_error that names the first of these files that has a name: only a run has them,
/// and --explain runs nothing.
void refuse_files_of_a_run(std::vector<io::NamedPath> const& files);
/// A candidate in JSON: its kernel, its number and its name, and why it is refused, or else the
/// members of describe(candidate).
template <class Candidate, class Describe>
nlohmann::ordered_json described(Candidate const& candidate, Describe const& describe) {
  nlohmann::ordered_json j = {{"kernel", to_string(candidate.choice.kernel)},
                              {"index", candidate.choice.configuration},
                              {"name", candidate.name}};
  if (candidate.refused.empty())
    j.update(describe(candidate));
  else
    j["refused"] = candidate.refused;
  return j;
}
/// Prints what --explain shows of a plan: as text, with every refused candidate where o.lines; or,
/// where o.json, as the problem's fields with the candidates, described.
template <class Plan, class Options, class Describe>
void print_plan(Plan const& plan, Machine const& machine, Options const& o,
                nlohmann::ordered_json problem, Describe describe) {
  if (!o.json) {
    print("{}, {}\n{}", machine.name(), io::counted(machine.multiprocessors(), "multiprocessor"),
          to_string(plan, /*all=*/o.lines));
    return;
  }
  problem["machine"] = machine.name();
  problem["chosen"] = described(plan.candidates.front(), describe);
  problem["reason"] = plan.reason;
  problem["candidates"] = nlohmann::ordered_json::array();
  for (auto const& candidate : plan.candidates)
    problem["candidates"].push_back(described(candidate, describe));
  print("{}\n", dump(problem));
}
/// Adds `option` to `paths` where it names a file; of an array's name (FILE.safetensors:NAME)
/// the file.
void add_array_file(std::vector<io::NamedPath>& paths, char const* option, std::string const& name);
/// Likewise of an array that is to be written; refuses a file that would lose other tensors.
void add_array_target(std::vector<io::NamedPath>& paths, char const* option,
                      std::string const& name);
/// Writes the timeline of the last launch to the files that were asked for, under `title`.
void write_timeline(MachineOptions const& options, Machine const& machine,
                    std::string const& title);

/// The one of these types that has the name. Throws argument_error that begins with the option.
/// `where`: what makes it those types.
DType parse_dtype(char const* option, std::string const& name, std::vector<DType> const& accepted,
                  std::string const& where = "");
/// "f16, bf16 or f32"
std::string list_of(std::vector<std::string> const& words);
std::string list_of(std::vector<DType> const& types);

/// How many values were lost when they were rounded to a type.
struct Losses {
  std::int64_t beyond = 0;  ///< the largest that the type holds: cut to it, or made infinite
  std::int64_t zero = 0;  ///< not zero before; of blocks with scales, where nothing is left of one
  std::int64_t nan = 0;   ///< not NaN before

  /// `half_step` as half_last_step gives it.
  void count(double value, double rounded, double half_step);
  Losses& operator+=(Losses const& more);
  bool any() const { return beyond + zero + nan > 0; }
};
/// Half the step between the last two numbers of a type that cuts what is beyond them; infinite
/// for one that has infinities for that.
double half_last_step(DType type);

/// An array of one of these types in host memory, dense in C order.
struct Operand {
  DType type;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
  Losses lost = {};  ///< of what its file or its values before were

  std::int64_t size() const;
};
/// From a file, rounded once to `type` where one is asked for. Throws argument_error for a file of
/// another rank or with an extent of 0, of elements that are no floating-point numbers, or, where
/// no type is asked for, of f32 or f64: `remedy` is what would ask for one. All of it before the
/// elements are read.
Operand read_operand(std::string const& option, std::string const& name, std::optional<DType> type,
                     std::size_t least_rank, std::size_t most_rank, std::string const& remedy = "");
/// Values evenly spread in [-1, 1), the same for the same seed and stream, whatever the type and
/// the host.
Operand generate(std::vector<std::int64_t> shape, DType type, std::uint64_t seed,
                 std::uint64_t stream);
/// Generates those of the operands that have a shape and no data, each from the stream of its
/// place: 1, 2, ...
void generate_missing(std::initializer_list<Operand*> operands, std::uint64_t seed);
/// An extent of the problem, which options and files may say.
struct Extent {
  char const* name;        ///< "m"
  std::string said_by;     ///< the option, then the file that said it first
  std::int64_t value = 0;  ///< 0: nobody has said it yet

  void otherwise(std::int64_t chosen) {
    if (value == 0) value = chosen;
  }
};
/// Joins what a file says to what is known. Throws argument_error where they differ.
void agree(Extent& extent, std::int64_t from_file, char const* option, std::string const& file);
/// Throws argument_error where `bytes` of `what` are more memory than this machine has free.
void require_memory(std::string const& what, double bytes);
/// What a run keeps in the host's memory, in bytes.
struct Footprint {
  double operands = 0;    ///< results among them
  double from_files = 0;  ///< of these, those that files hold
  double checking = 0;    ///< for the comparison with float64

  /// Adds an operand that has a shape; one with data is from a file.
  void add(Operand const& operand);
};
/// Throws argument_error where a run needs more memory than there is free; and, on a simulated
/// machine, more than 2 GB and more than twenty times what its files hold. `problem` has the
/// options that say the extents, with their values.
void require_memory_of_run(std::string const& problem, Footprint const& footprint,
                           Machine const& machine);
/// Writes results as `io::write_array` does. Throws argument_error that begins with the option.
void write_operand(char const* option, std::string const& name, Operand const& operand);
/// An address, aligned as allocations are, of an operand that nobody reads: 1, 2, ..., 16.
inline void* somewhere(std::uintptr_t i) { return reinterpret_cast<void*>(i << 58); }
/// On the machine, under `name` in its reports.
Buffer<std::byte> upload(Machine const& machine, Operand const& operand, std::string const& name);
/// `rows` of a (.., row) array as doubles.
std::vector<double> rows_as_doubles(Operand const& operand, std::int64_t row,
                                    std::vector<std::int64_t> const& rows);

/// The options by which a part of the choice is decided by hand, and what each was given: nothing
/// where it was left out.
using Asked = std::vector<std::pair<char const*, std::string>>;
/// "--kernel sm90 --config 3"
std::string to_string(Asked const& asked);
inline std::string text_of(std::optional<int> const& number) {
  return number ? std::to_string(*number) : "";
}
/// What else an option could be, and whether the problem would then be computed: by a configuration
/// that the options of the choice leave (`as_asked`), or by any.
struct Alternative {
  char const* option;
  std::string value;
  std::function<bool(bool as_asked)> computed;
};
/// Throws argument_error where refuse() does, which says that no kernel computes the problem: with
/// the options that were `given` in front of that, and behind it those of the alternatives that
/// would be computed; where none would with the options of the choice, `asked`, those that would
/// be without them.
void require_computed(Asked const& given, Asked const& asked,
                      std::vector<Alternative> const& alternatives,
                      std::function<void()> const& refuse);

/// choose(), with the options in front of its argument_error.
template <class Choose> auto chosen_as_asked(Asked const& asked, Choose&& choose) {
  try {
    return choose();
  } catch (argument_error const& error) {
    std::string const options = to_string(asked);
    if (options.empty()) throw;
    throw argument_error(options + ": " + error.what());
  }
}

/// A field of the library's arguments, and the option and its value that said it: "in",
/// "--dtype f32"; no text where it was left out.
struct Said {
  char const* field;
  std::string text;
};
inline Said said(char const* field, char const* option, std::string const& value) {
  return {field, value.empty() ? "" : fmt::format("{} {}", option, io::printable(value))};
}
inline Said said(char const* field, char const* option, std::optional<std::string> const& value) {
  return said(field, option, value.value_or(""));
}
/// An extent that options or files have said: "--m 5", "--a x.npy".
Said said(Extent const& extent);
/// The options of the fields that a sentence speaks of ("in is f32"), each once.
std::string options_in(std::string_view sentence, std::vector<Said> const& all);
/// f(), with the options that said what its argument_error speaks of in front of it.
template <class F> auto named_as_said(std::vector<Said> const& all, F&& f) {
  try {
    return f();
  } catch (argument_error const& error) {
    std::string const options = options_in(error.what(), all);
    if (options.empty()) throw;
    throw argument_error(options + ": " + error.what());
  }
}

/// Milliseconds of one launch: the mean of `repeat`, after one that warms a GPU up.
double time_launches(Machine const& machine, int repeat, std::function<void()> const& launch);
/// Likewise, with the report written where MachineOptions::report asks for it. Where the simulated
/// machine found something: prints it, as JSON where `json`, and throws reported_failure.
double checked_launches(Machine const& machine, MachineOptions const& options, ProgressBar& bar,
                        int repeat, bool json, std::function<void()> const& launch);

/// Rows whose reference takes at most a few seconds and half a gigabyte: `work` multiply-adds and
/// `elements` results for one row.
std::vector<std::int64_t> rows_to_check(std::int64_t total, double work, std::int64_t elements);

/// Bytes of the results, the reference and its bounds of the rows that are checked.
double bytes_of_checked_rows(std::int64_t total, std::int64_t elements);

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
    std::string worst;  ///< the place of the worst element: "row 3, column 5"; of no rows none
  };
  std::vector<Part> parts;
  std::vector<std::string> notes;  ///< lines for people, of what the bounds do not show
  std::string output;

  /// Tells what was lost of an operand's values when they were rounded to `type`.
  void tell_losses(char const* operand, DType type, Losses const& lost);
};
/// Prints for people or as JSON. Throws reported_failure where a part is beyond its bound.
void print_verdict(Verdict const& verdict, Machine const& machine, bool json, bool lines);

}  // namespace tegula::tool
