#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mutant_jobs.hpp"

/// What became of each mutant, over all cases that run it, beside the reviewed list of those that
/// need not be flagged (equivalent_mutants.json).
namespace tegula::mutants {

/// A mutant over all cases that execute its statement.
struct Verdict {
  std::string kernel, file, source, before, operation, mutation;  // `before`: the line before
  int line = 0;
  std::vector<nlohmann::json> runs;        // of each case
  nlohmann::json const* listed = nullptr;  // the entry of the reviewed list

  int rank_of(nlohmann::json const& run) const {
    std::string const result = run["result"];
    return result == "flagged" ? 0 : result == "wrong" ? 1 : result == "survived" ? 3 : 2;
  }
  nlohmann::json const& best() const {
    return *std::min_element(
        runs.begin(), runs.end(),
        [&](nlohmann::json const& a, nlohmann::json const& b) { return rank_of(a) < rank_of(b); });
  }
  std::string result() const { return best()["result"]; }
  /// "data_race", or what else became of it.
  std::string word() const {
    if (result() == "flagged") return best()["found"][0]["kind"];
    if (listed != nullptr) return (*listed)["verdict"];
    return result();
  }
};

/// Of the jobs that have been run, `results` being null for the others.
std::vector<Verdict> verdicts_of(std::vector<Job> const& jobs,
                                 std::vector<nlohmann::json> const& results,
                                 std::vector<MutatedKernel> const& kernels);
/// The job's: there is one where it has been run.
Verdict& verdict_of(Job const& job, std::vector<Verdict>& verdicts,
                    std::vector<MutatedKernel> const& kernels);

/// Notes what the list has of each mutant, and prints what else came of one; `all`: also the
/// entries that no mutant has. Returns how many it printed. The list must outlive the verdicts.
int hold_against(nlohmann::json const& list, bool all, std::vector<Verdict>& verdicts);
/// Prints those that are neither flagged nor listed. Returns how many.
int print_survivors(std::vector<Verdict> const& verdicts);

/// A source line without its comment.
std::string statement(std::string text);

}  // namespace tegula::mutants
