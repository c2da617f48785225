#include "mutant_tables.hpp"

#include <fmt/format.h>

#include <utility>

namespace tegula::mutants {
namespace {

using nlohmann::json;

/// Text as a cell of a table has it.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\\|");
  return text;
}

/// A table of each kernel: a row for each statement, a column for each mutation.
std::string tables(std::vector<Verdict> const& verdicts) {
  std::string text;
  std::string kernel, row;
  int line = 0;
  std::map<std::string, std::string> cells;
  auto const end_row = [&] {
    if (row.empty()) return;
    text += row;
    for (Mutation const mutation : kMutations) text += " " + cells[to_string(mutation)] + " |";
    text += "\n";
    row.clear();
    cells.clear();
  };
  for (Verdict const& v : verdicts) {
    if (v.kernel != kernel) {
      end_row();
      kernel = v.kernel;
      text += fmt::format("\n**{}**\n\n| statement | operation |", kernel);
      for (Mutation const mutation : kMutations) text += fmt::format(" {} |", to_string(mutation));
      text += "\n|---|---|---|---|---|---|---|---|\n";
    }
    std::string const begin = fmt::format("| {} `{}` | {} |", v.file.substr(v.file.find('/') + 1),
                                          cell(statement(v.source)), v.operation);
    if (row != begin || line != v.line) end_row();
    row = begin;
    line = v.line;
    cells[v.mutation] = v.word();
  }
  end_row();
  return text;
}

/// How many mutants there are, and what became of them.
std::string summary(std::vector<Verdict> const& verdicts) {
  std::map<std::string, int> const counts = counts_of(verdicts);
  std::string text = fmt::format("{} mutants:", verdicts.size());
  for (auto const& [word, count] : counts)
    text += fmt::format("{} {} {}", word == counts.begin()->first ? "" : ",", count, word);
  return text + ".\n";
}

/// The reasons for which mutants need not be flagged, as in the reviewed list.
std::string reasons(std::vector<Verdict> const& verdicts) {
  std::string text =
      "\n| not flagged | operation | mutation | verdict | why |\n|---|---|---|---|---|\n";
  for (Verdict const& v : verdicts) {
    if (v.listed == nullptr) continue;
    text += fmt::format("| {} `{}` | {} | {} | {} | {} |\n", v.file.substr(v.file.find('/') + 1),
                        cell(statement(v.source)), v.operation, v.mutation,
                        (*v.listed)["verdict"].get<std::string>(),
                        cell((*v.listed)["reason"].get<std::string>()));
  }
  return text;
}

}  // namespace

std::map<std::string, int> counts_of(std::vector<Verdict> const& verdicts) {
  std::map<std::string, int> counts;
  for (Verdict const& v : verdicts) ++counts[v.result() == "flagged" ? "flagged" : v.word()];
  return counts;
}

std::string markdown(std::vector<Verdict> const& verdicts) {
  return summary(verdicts) + tables(verdicts) + reasons(verdicts);
}

json json_of(std::vector<Job> const& jobs, std::vector<json> const& results,
             std::vector<Verdict>& verdicts, std::vector<MutatedKernel> const& kernels) {
  json out = json::array();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (results[i].is_null()) continue;
    Job const& job = jobs[i];
    Verdict const& v = verdict_of(job, verdicts, kernels);
    json found = json::array();
    for (json const& finding : results[i]["found"]) found.push_back(finding["kind"]);
    json entry = {{"id", id(job, kernels)},
                  {"case", kernels[job.kernel].name},
                  {"file", job.mutant.file},
                  {"line", job.mutant.line},
                  {"source", statement(job.source)},
                  {"operation", to_string(job.mutant.operation)},
                  {"kind", to_string(job.mutant.mutation)},
                  {"result", results[i]["result"]},
                  {"wrong", results[i]["wrong"]},
                  {"seconds", results[i]["seconds"]},
                  {"found", found},
                  {"equivalent", v.listed != nullptr && (*v.listed)["verdict"] == "equivalent"}};
    if (!results[i]["found"].empty()) entry["message"] = results[i]["found"][0]["message"];
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace tegula::mutants
