#include "mutant_verdicts.hpp"

#include <fmt/format.h>

#include <tuple>
#include <utility>

namespace tegula::mutants {
namespace {

using nlohmann::json;

/// The job's among them, or none.
std::vector<Verdict>::iterator find(Job const& job, std::vector<Verdict>& verdicts,
                                    std::vector<MutatedKernel> const& kernels) {
  return std::find_if(verdicts.begin(), verdicts.end(), [&](Verdict const& v) {
    return v.kernel == kernels[job.kernel].kernel && v.file == job.mutant.file &&
           v.line == job.mutant.line && v.operation == to_string(job.mutant.operation) &&
           v.mutation == to_string(job.mutant.mutation);
  });
}

/// Whether an entry of the reviewed list names the mutant: by each that it has of kernel, case (all
/// that it runs in), file, source (a part of the line, its comment included), before (of the line
/// before), operation and mutation, where a list of values admits any.
bool names(json const& entry, Verdict const& verdict) {
  auto const admits = [&](char const* key, auto agrees) {
    if (!entry.contains(key)) return true;
    json const& value = entry[key];
    if (!value.is_array()) return agrees(value.get<std::string>());
    return std::any_of(value.begin(), value.end(),
                       [&](json const& one) { return agrees(one.get<std::string>()); });
  };
  auto const part_of = [](std::string const& own) {
    return [&](std::string const& part) { return own.find(part) != std::string::npos; };
  };
  auto const is = [](std::string const& own) {
    return [&](std::string const& one) { return one == own; };
  };
  return admits("kernel", is(verdict.kernel)) && admits("file", is(verdict.file)) &&
         admits("operation", is(verdict.operation)) && admits("mutation", is(verdict.mutation)) &&
         admits("source", part_of(verdict.source)) && admits("before", part_of(verdict.before)) &&
         std::all_of(verdict.runs.begin(), verdict.runs.end(),
                     [&](json const& run) { return admits("case", is(run["case"])); });
}

/// What a mutant's best run comes to where the reviewed list has this verdict.
std::string result_of(std::string const& verdict) {
  return verdict == "wrong result" ? "wrong" : verdict == "equivalent" ? "survived" : verdict;
}

}  // namespace

std::vector<Verdict> verdicts_of(std::vector<Job> const& jobs, std::vector<json> const& results,
                                 std::vector<MutatedKernel> const& kernels) {
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (results[i].is_null()) continue;
    Job const& job = jobs[i];
    auto known = find(job, verdicts, kernels);
    if (known == verdicts.end())
      known = verdicts.insert(known, {.kernel = kernels[job.kernel].kernel,
                                      .file = job.mutant.file,
                                      .source = job.source,
                                      .before = job.before,
                                      .operation = to_string(job.mutant.operation),
                                      .mutation = to_string(job.mutant.mutation),
                                      .line = job.mutant.line,
                                      .runs = {}});
    json run = results[i];
    run["case"] = kernels[job.kernel].name;
    known->runs.push_back(std::move(run));
  }
  std::stable_sort(verdicts.begin(), verdicts.end(), [](Verdict const& a, Verdict const& b) {
    return std::tie(a.kernel, a.file, a.line, a.operation) <
           std::tie(b.kernel, b.file, b.line, b.operation);
  });
  return verdicts;
}

Verdict& verdict_of(Job const& job, std::vector<Verdict>& verdicts,
                    std::vector<MutatedKernel> const& kernels) {
  return *find(job, verdicts, kernels);
}

int hold_against(json const& list, bool all, std::vector<Verdict>& verdicts) {
  int faults = 0;
  for (json const& entry : list) {
    int named = 0;
    for (Verdict& v : verdicts) {
      if (!names(entry, v)) continue;
      ++named;
      if (v.result() != result_of(entry["verdict"])) {
        ++faults;
        fmt::print("listed as {}, but {}: {} `{}` {} {}\n", entry["verdict"].get<std::string>(),
                   v.result(), v.file, statement(v.source), v.operation, v.mutation);
      }
      v.listed = &entry;
    }
    if (named == 0 && all) {
      ++faults;
      fmt::print("listed, but no mutant: {}\n", entry.dump());
    }
  }
  return faults;
}

int print_survivors(std::vector<Verdict> const& verdicts) {
  int survivors = 0;
  for (Verdict const& v : verdicts) {
    if (v.result() == "flagged" || v.listed != nullptr) continue;
    ++survivors;
    fmt::print("{}: {}:{} `{}`: {} {}", v.result(), v.file, v.line, statement(v.source),
               v.operation, v.mutation);
    std::string in;
    for (json const& run : v.runs) {
      in += " " + run["case"].get<std::string>();
      if (run.contains("other_schedule"))
        in += " (" + run["other_schedule"].get<std::string>().substr(0, 200) + ")";
      if (run.contains("exception"))
        in += " (" + run["exception"].get<std::string>().substr(0, 200) + ")";
    }
    fmt::print(" [{}]\n", in.substr(1));
  }
  return survivors;
}

std::string statement(std::string text) {
  text = text.substr(0, text.find("//"));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace tegula::mutants
