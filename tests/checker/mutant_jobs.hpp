#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mutated_kernels.hpp"

/// The mutants of the kernels' cases, and what comes of a run of one.
namespace tegula::mutants {

inline constexpr Mutation kMutations[] = {Mutation::removed, Mutation::weakened, Mutation::delayed,
                                          Mutation::less,    Mutation::more,     Mutation::flipped};

/// One mutant of one case.
struct Job {
  std::size_t kernel;
  sim::Mutant mutant;
  std::string source, before;  // the line, and the one before
};

/// "CASE:FILE:LINE:OPERATION:MUTATION".
std::string id(Job const& job, std::vector<MutatedKernel> const& kernels);
/// The mutant, whichever case runs it: "KERNEL:FILE:LINE:OPERATION:MUTATION".
std::string mutant_id(Job const& job, std::vector<MutatedKernel> const& kernels);

struct Jobs {
  std::vector<Job> jobs;                            ///< a case's behind the other's
  std::vector<std::vector<std::uint8_t>> expected;  ///< of each case, what it computes unmutated
};
/// Runs each case unmutated, for its statements and its result. Throws where one is not clean.
Jobs jobs_of(std::vector<MutatedKernel> const& kernels);

/// Runs a mutant: {"result", "found", ...}. `schedules`: what the checker does not flag, also at
/// other schedules.
nlohmann::json run_mutant(MutatedKernel const& kernel, sim::Mutant const& mutant,
                          std::vector<std::uint8_t> const& expected, bool schedules);

}  // namespace tegula::mutants
