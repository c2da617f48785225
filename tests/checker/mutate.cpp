// Mutation testing of the kernels: runs every mutant on the simulated machine and says what
// found it.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "command_line.hpp"
#include "mutant_jobs.hpp"
#include "mutant_tables.hpp"
#include "mutant_verdicts.hpp"
#include "mutated_kernels.hpp"
#include "mutation_cases.hpp"
#include "options.hpp"
#include "page_section.hpp"
#include "process_pool.hpp"

namespace tegula::mutants {
namespace {

using nlohmann::json;

struct Arguments {
  std::string list;  // the reviewed list: JSON
  std::string json_file, markdown_file, kept_file, only_case, only;
  unsigned jobs = 0;
  int every = 1;
  bool once = false, schedules = false, verbose = false;
};

/// Results of runs in a file, a line of JSON each: those of earlier calls are not run again.
class KeptResults {
 public:
  explicit KeptResults(std::string const& path) {
    if (path.empty()) return;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      json entry = json::parse(line, nullptr, false);
      if (entry.is_object()) results_[entry["id"]] = entry["result"];
    }
    out_.open(path, std::ios::app);
    if (!out_) throw std::runtime_error(path + " cannot be written");
  }
  /// null: there is none
  json const* find(std::string const& id) const {
    auto const found = results_.find(id);
    return found == results_.end() ? nullptr : &found->second;
  }
  void add(std::string const& id, json const& result) {
    if (out_.is_open()) out_ << json{{"id", id}, {"result", result}}.dump() << std::endl;
  }

 private:
  std::map<std::string, json> results_;
  std::ofstream out_;
};

template <int... I> std::vector<MutatedKernel> kernels_of_cases(std::integer_sequence<int, I...>) {
  return {mutated_kernel<I>()...};
}

/// The kernels of all cases, or of the one that is asked for.
std::vector<MutatedKernel> kernels_asked_for(Arguments const& arguments) {
  std::vector<MutatedKernel> kernels =
      kernels_of_cases(std::make_integer_sequence<int, static_cast<int>(kCases.size())>());
  for (auto const family : {mutated_attention, mutated_grouped, mutated_sm100,
                            mutated_attention_sm100, mutated_pipelines})
    for (MutatedKernel& kernel : family()) kernels.push_back(std::move(kernel));
  if (!arguments.only_case.empty())
    std::erase_if(kernels, [&](MutatedKernel const& k) { return k.name != arguments.only_case; });
  if (kernels.empty()) throw std::runtime_error("no such case: " + arguments.only_case);
  return kernels;
}

/// Leaves of the jobs those that are asked for.
void choose_jobs(Arguments const& arguments, std::vector<MutatedKernel> const& kernels,
                 std::vector<Job>& jobs) {
  std::erase_if(jobs, [&](Job const& job) {
    return id(job, kernels).find(arguments.only) == std::string::npos;
  });
  if (arguments.every > 1) {  // each with all cases that execute its statement
    std::map<std::string, std::size_t> numbers;
    std::erase_if(jobs, [&](Job const& job) {
      std::size_t const number =
          numbers.emplace(mutant_id(job, kernels), numbers.size()).first->second;
      return number % static_cast<std::size_t>(arguments.every) != 0;
    });
  }
}

/// The result of each job; null where it was not run.
std::vector<json> run_jobs(Arguments const& arguments, std::vector<MutatedKernel> const& kernels,
                           Jobs const& all) {
  std::vector<Job> const& jobs = all.jobs;
  std::vector<json> results(jobs.size());
  KeptResults kept(arguments.kept_file);
  std::set<std::string> flagged;
  auto const finish = [&](std::size_t i, json result) {
    results[i] = std::move(result);
    if (results[i]["result"] == "flagged") flagged.insert(mutant_id(jobs[i], kernels));
  };
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (json const* const result = kept.find(id(jobs[i], kernels))) finish(i, *result);
  std::size_t finished = 0;
  auto said = std::chrono::steady_clock::now();
  ProcessPool(arguments.jobs > 0 ? arguments.jobs
                                 : std::max(1u, std::thread::hardware_concurrency()))
      .run(
          jobs.size(),
          [&](std::size_t i) {
            return results[i].is_null() &&
                   !(arguments.once && flagged.contains(mutant_id(jobs[i], kernels)));
          },
          [&](std::size_t i) {
            return run_mutant(kernels[jobs[i].kernel], jobs[i].mutant, all.expected[jobs[i].kernel],
                              arguments.schedules);
          },
          [&](std::size_t i, json result) {
            kept.add(id(jobs[i], kernels), result);
            finish(i, std::move(result));
            ++finished;
            auto const now = std::chrono::steady_clock::now();
            if (arguments.verbose) {
              std::cout << id(jobs[i], kernels) << ": " << results[i].dump() << "\n" << std::flush;
            } else if (now - said > std::chrono::seconds(5)) {
              said = now;
              fmt::print("{} of {}\n", finished, jobs.size());
              std::fflush(stdout);
            }
          });
  return results;
}

int run(Arguments const& arguments) {
  json list = json::array();
  if (!arguments.list.empty()) list = json::parse(std::ifstream(arguments.list));
  std::vector<MutatedKernel> const kernels = kernels_asked_for(arguments);
  Jobs all = jobs_of(kernels);
  choose_jobs(arguments, kernels, all.jobs);
  fmt::print("{} mutants of {} kernels\n", all.jobs.size(), kernels.size());
  std::fflush(stdout);

  auto const began = std::chrono::steady_clock::now();
  std::vector<json> const results = run_jobs(arguments, kernels, all);
  std::vector<Verdict> verdicts = verdicts_of(all.jobs, results, kernels);

  bool const whole = arguments.every == 1 && arguments.only.empty() && arguments.only_case.empty();
  int const faults = hold_against(list, whole, verdicts) + print_survivors(verdicts);
  fmt::print("{} mutants, {:.0f} s:", verdicts.size(),
             std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  for (auto const& [word, count] : counts_of(verdicts)) fmt::print(" {} {};", count, word);
  fmt::print("\n");

  if (!arguments.json_file.empty())
    std::ofstream(arguments.json_file)
        << json_of(all.jobs, results, verdicts, kernels).dump(1) << "\n";
  if (!arguments.markdown_file.empty())
    write_page_section(arguments.markdown_file, "mutants", "./run mutate", markdown(verdicts));
  return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tegula::mutants

int main(int argc, char** argv) {
  tegula::mutants::Arguments arguments;
  tegula::tool::CommandLine const line(
      "Mutates every marked statement of the kernels, one at a time, and says what the checker finds");
  line.add_option("--list", arguments.list,
                  "the reviewed list of mutants that need not be flagged (JSON)");
  line.add_option("--json", arguments.json_file, "writes every mutant of every case there");
  line.add_option("--markdown", arguments.markdown_file,
                  "writes the table into this page, between its markers");
  line.add_option("--case", arguments.only_case, "only this case");
  line.add_option("--only", arguments.only,
                  "only mutants whose id, CASE:FILE:LINE:OPERATION:MUTATION, has this text");
  line.add_option("--every", arguments.every, "only one mutant of so many, with all of its cases")
      .check(tegula::tool::whole_number(1, std::numeric_limits<int>::max()));
  line.add_option("--jobs", arguments.jobs,
                  "processes at a time (default: as many as there are cores)");
  line.add_option("--keep", arguments.kept_file,
                  "appends each result to this file, and does not run again what it holds already");
  line.add_flag("--once", arguments.once, "does not run in other cases what one case has flagged");
  line.add_flag("--schedules", arguments.schedules,
                "runs what is not flagged at other schedules, too");
  line.add_flag("--verbose", arguments.verbose, "prints each run");
  if (auto const status = line.read(argc, argv)) return *status;
  try {
    return tegula::mutants::run(arguments);
  } catch (std::exception const& e) {
    std::cerr << "mutate: " << e.what() << "\n";
    return 2;
  }
}
