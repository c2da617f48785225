#pragma once

/// What the options of `tegula gemm` ask of the choice of a configuration, and what they print of
/// it.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "gemm_problem.hpp"
#include "tegula/device/gemm_plan.hpp"

namespace tegula::tool {

/// Two whole numbers, as the example has them.
std::pair<int, int> extents(char const* option, std::string const& text, char const* example);

/// What the options of the choice ask for. Throws argument_error where that is no choice at all.
GemmConstraints constraints(GemmOptions const& o);

/// The options of the choice, as they were given.
Asked asked_of_choice(GemmOptions const& o);

/// choose(constraints of the options), with the options in front of why none answers to them.
template <class Choose> auto chosen_by(GemmOptions const& o, Choose&& choose) {
  GemmConstraints const wanted = constraints(o);
  return chosen_as_asked(asked_of_choice(o), [&] { return choose(wanted); });
}

/// Refuses a problem that no kernel of the machine computes, whatever is asked for of the choice.
void require_computed(GemmArguments const& g, GemmOptions const& o, Machine const& machine);

/// The problem, as JSON output has it.
nlohmann::ordered_json describe(GemmArguments const& g, GemmOptions const& o, GemmProblem const& p);

/// Draws the tiles of a choice, where that is asked for.
void draw_tiles(GemmOptions const& o, GemmArguments const& g, GemmChoice const& choice);

/// --explain: prints the plan of a checked problem, with as large a workspace as anything takes.
void explain(GemmArguments g, GemmProblem const& p, GemmOptions const& o, Machine const& machine);

/// Bytes of workspace that every candidate may use: as many as cuBLAS is commonly given on Hopper.
inline constexpr std::int64_t kMeasuredWorkspace = 32 << 20;

/// --measure: times every candidate beside its prediction, and prints them, the soonest first.
void measure(GemmArguments const& arguments, GemmProblem const& p, GemmOptions const& o,
             Machine const& machine);

}  // namespace tegula::tool
