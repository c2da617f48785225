#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mutant_verdicts.hpp"

/// The study's results, to be read.
namespace tegula::mutants {

/// How many mutants came to what.
std::map<std::string, int> counts_of(std::vector<Verdict> const& verdicts);

/// For a page: their number, a table of each kernel, and the reasons for which some need not be
/// flagged.
std::string markdown(std::vector<Verdict> const& verdicts);

/// Every mutant of every case that has been run.
nlohmann::json json_of(std::vector<Job> const& jobs, std::vector<nlohmann::json> const& results,
                       std::vector<Verdict>& verdicts, std::vector<MutatedKernel> const& kernels);

}  // namespace tegula::mutants
