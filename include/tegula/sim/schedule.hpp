#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// In which order a launch does what its kernel leaves open: docs/machine.md, "Schedules".
namespace tegula::sim {

/// When an operation in flight (cp.async, bulk and tensor copies, st.async, wgmma) takes effect.
enum class Completion : std::uint8_t {
  /// at the last moment the PTX ISA allows: when its group is waited for, or no thread of the
  /// cluster can run unless an mbarrier's phase completes
  last,
  first,   ///< at once
  random,  ///< anywhere between, by seed
};

/// Which warp runs next.
enum class Interleaving : std::uint8_t {
  one_warp_ahead,  ///< a warp runs until it waits for others
  round_robin,     ///< the next warp takes over after each warp-wide instruction
  /// any thread may take over at each instruction that others can notice, and lanes run in any
  /// order, by seed
  random,
  /// the warp whose number in the cluster is the seed, modulo the number of its warps, runs only
  /// while no other warp can; the others as in one_warp_ahead
  one_warp_behind,
};

/// The names as the tool takes them: "last", "one_warp_ahead", ...
std::string_view to_string(Completion completion);
std::string_view to_string(Interleaving interleaving);

/// One schedule that an exploration (explore.hpp) has tried: where it leaves the machine's
/// own choice.
struct Choices {
  /// The process that goes at the given step, counted from 0, in place of the machine's choice.
  struct Choice {
    std::int64_t step = 0;
    std::uint64_t process = 0;
    friend bool operator==(Choice const&, Choice const&) = default;
  };
  /// Whether each load and store is a step of its own.
  bool accesses = false;
  /// Whether a request for a cluster that waits may be refused (ExploreOptions::refusals).
  bool refusals = false;
  std::vector<Choice> choices;

  /// "sync 12:t3 57:o5.0", "access refusals ...": the grain of the steps, then each choice. The
  /// processes are threads (t, by number in the cluster), warps (w), warpgroups (g), operations in
  /// flight (o: who issued it, and its number among those), and places in which clusters start one
  /// after the other (p); what refuses a cluster's requests is the operation of its place. Where
  /// several clusters are there together, those of the second are numbered on from those of the
  /// first.
  std::string text() const;
  /// Throws std::invalid_argument, with the word that it does not understand.
  static Choices parse(std::string_view text);
  friend bool operator==(Choices const&, Choices const&) = default;
};

/// What decided the order of a launch: the same kernel and data at the same schedule do the
/// same again.
struct Schedule {
  Completion completion = Completion::last;
  Interleaving interleaving = Interleaving::one_warp_ahead;
  std::uint64_t seed = 0;
  std::optional<Choices> choices;  ///< in place of the others

  /// "completion random, interleaving random, seed 7", "choices sync 12:t3".
  std::string text() const;
};

}  // namespace tegula::sim
