#include "mutant_jobs.hpp"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <stdexcept>
#include <utility>

namespace tegula::mutants {
namespace {

using nlohmann::json;

/// The last two parts of a path: what names a file in a mutant.
std::string short_path(std::string const& path) {
  std::size_t const name = path.rfind('/');
  if (name == std::string::npos || name == 0) return path;
  std::size_t const folder = path.rfind('/', name - 1);
  return folder == std::string::npos ? path : path.substr(folder + 1);
}

/// The source line of a statement, without what indents it.
std::string source_line(std::string const& path, int line) {
  static std::map<std::string, std::vector<std::string>> files;
  auto& lines = files[path];
  if (lines.empty()) {
    // A compiler cache may have made the path relative to the folder of the build.
    std::size_t inside = path.rfind("include/tegula/");
    if (inside == std::string::npos) inside = path.rfind("tests/pipeline/");
    std::ifstream in(inside == std::string::npos ? path : TEGULA_SOURCE "/" + path.substr(inside));
    for (std::string text; std::getline(in, text);) lines.push_back(text);
  }
  if (line < 1 || static_cast<std::size_t>(line) > lines.size()) return "";
  std::string text = lines[static_cast<std::size_t>(line - 1)];
  std::size_t const first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first);
}

std::string text(sim::Mutant const& mutant) {
  return fmt::format("{}:{}:{}:{}", mutant.file, mutant.line, to_string(mutant.operation),
                     to_string(mutant.mutation));
}

sim::Options default_options() {
  sim::Options options;
  options.workers = 1;
  return options;
}

/// What the checker says of a run, in order.
json findings_of(sim::Report const& report) {
  json found = json::array();
  for (sim::Finding const& finding : report.findings) {
    found.push_back({{"kind", to_string(finding.kind)},
                     {"message", finding.message},
                     {"line", finding.where.line}});
  }
  return found;
}

}  // namespace

std::string id(Job const& job, std::vector<MutatedKernel> const& kernels) {
  return kernels[job.kernel].name + ":" + text(job.mutant);
}

std::string mutant_id(Job const& job, std::vector<MutatedKernel> const& kernels) {
  return kernels[job.kernel].kernel + ":" + text(job.mutant);
}

Jobs jobs_of(std::vector<MutatedKernel> const& kernels) {
  Jobs all;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    sim::Options options = default_options();
    options.list_marked = true;
    Outcome outcome = kernels[i].run(options);
    if (!outcome.report.ok())
      throw std::runtime_error(kernels[i].name + ", not mutated, is not clean:\n" +
                               outcome.report.text());
    all.expected.push_back(std::move(outcome.output));
    for (sim::MarkedStatement const& statement : outcome.report.marked) {
      std::string const& file = statement.where.file;
      int const line = statement.where.line;
      for (Mutation const mutation : kMutations) {
        if (!admits(statement.admitted, mutation)) continue;
        all.jobs.push_back({i,
                            {short_path(file), line, statement.operation, mutation},
                            source_line(file, line),
                            source_line(file, line - 1)});
      }
    }
  }
  return all;
}

json run_mutant(MutatedKernel const& kernel, sim::Mutant const& mutant,
                std::vector<std::uint8_t> const& expected, bool schedules) {
  auto const attempt = [&](sim::Options options) -> json {
    options.mutant = mutant;
    try {
      Outcome const outcome = kernel.run(options);
      json const found = findings_of(outcome.report);
      bool const wrong = outcome.output != expected;
      return {{"result", !found.empty() ? "flagged"
                         : wrong        ? "wrong"
                                        : "survived"},
              {"found", found},
              {"wrong", wrong}};
    } catch (std::exception const& e) {
      return {{"result", "exception"},
              {"found", json::array()},
              {"wrong", true},
              {"exception", e.what()}};
    }
  };
  json result = attempt(default_options());
  if (!schedules || result["result"] == "flagged") return result;
  for (auto const completion :
       {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
    for (auto const interleaving : {sim::Interleaving::round_robin, sim::Interleaving::random}) {
      for (std::uint64_t const seed : {1, 2, 3}) {
        sim::Options options = default_options();
        options.completion = completion;
        options.interleaving = interleaving;
        options.seed = seed;
        json const other = attempt(options);
        if (other["result"] == "survived") continue;
        result["other_schedule"] =
            fmt::format("completion {}, interleaving {}, seed {}: {}", static_cast<int>(completion),
                        static_cast<int>(interleaving), seed, other.dump());
        return result;
      }
    }
  }
  return result;
}

}  // namespace tegula::mutants
