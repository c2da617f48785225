// Mutation testing of the kernels: runs every mutant on the simulated machine and says what
// found it.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "command_line.hpp"
#include "mutated_kernels.hpp"
#include "mutation_cases.hpp"
#include "options.hpp"

namespace tegula::mutants {
namespace {

using nlohmann::json;

constexpr Mutation kMutations[] = {Mutation::removed, Mutation::weakened, Mutation::delayed,
                                   Mutation::less,    Mutation::more,     Mutation::flipped};
// Of processor time, that a mutant may run: else it hangs the machine. And at all, where the
// machine waits for itself.
constexpr rlim_t kLongestSeconds = 20;
constexpr auto kLongest = std::chrono::minutes(10);

struct Arguments {
  std::string root = ".";
  std::string list;  // the reviewed list: JSON
  std::string json_file, markdown_file, kept_file, only_case, only;
  unsigned jobs = 0;
  int every = 1;
  bool once = false, schedules = false, verbose = false;
};

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

/// One mutant of one case.
struct Job {
  std::size_t kernel;
  sim::Mutant mutant;
  std::string source, before;  // the line, and the one before
};

std::string text(sim::Mutant const& mutant) {
  return fmt::format("{}:{}:{}:{}", mutant.file, mutant.line, to_string(mutant.operation),
                     to_string(mutant.mutation));
}
std::string id(Job const& job, std::vector<MutatedKernel> const& kernels) {
  return kernels[job.kernel].name + ":" + text(job.mutant);
}
/// The mutant, whichever case runs it.
std::string mutant_id(Job const& job, std::vector<MutatedKernel> const& kernels) {
  return kernels[job.kernel].kernel + ":" + text(job.mutant);
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

/// Runs a mutant: {"result", "found", ...}.
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

/// Runs jobs in processes of their own, so many at a time: a mutant may end or hang its process.
class Pool {
 public:
  explicit Pool(unsigned processes) : processes_(processes) {}

  /// `work(job)` in a process for each of `count` jobs that `wanted(job)` wants when its turn has
  /// come; `done(job, result)` here, in any order.
  template <class Wanted, class Work, class Done>
  void run(std::size_t count, Wanted wanted, Work work, Done done) {
    std::size_t next = 0;
    while (next < count || !running_.empty()) {
      for (; next < count && running_.size() < processes_; ++next)
        if (wanted(next)) start(next, work);
      if (!running_.empty()) wait(done);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Process {
    pid_t id;
    int pipe;
    std::size_t job;
    Clock::time_point began;
    std::string text;
    bool killed = false;
  };

  template <class Work> void start(std::size_t job, Work& work) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
    pid_t const process = fork();
    if (process < 0) throw std::runtime_error("fork failed");
    if (process == 0) {
      close(ends[0]);
      rlimit const limit{kLongestSeconds, kLongestSeconds};
      setrlimit(RLIMIT_CPU, &limit);
      std::string const text = work(job).dump(-1, ' ', false, json::error_handler_t::replace);
      for (std::size_t at = 0; at < text.size();) {
        ssize_t const written = write(ends[1], text.data() + at, text.size() - at);
        if (written <= 0) _exit(1);
        at += static_cast<std::size_t>(written);
      }
      _exit(0);
    }
    close(ends[1]);
    running_.push_back({process, ends[0], job, Clock::now(), {}});
  }

  template <class Done> void wait(Done& done) {
    std::vector<pollfd> polled;
    for (Process const& p : running_) polled.push_back({p.pipe, POLLIN, 0});
    poll(polled.data(), polled.size(), 200);
    for (std::size_t i = running_.size(); i-- > 0;) {
      Process& p = running_[i];
      if (!p.killed && Clock::now() - p.began > kLongest) {
        p.killed = true;
        kill(p.id, SIGKILL);
      }
      if ((polled[i].revents & (POLLIN | POLLHUP)) == 0) continue;
      char buffer[4096];
      ssize_t const got = read(p.pipe, buffer, sizeof buffer);
      if (got > 0) {
        p.text.append(buffer, static_cast<std::size_t>(got));
        continue;
      }
      close(p.pipe);
      int status = 0;
      waitpid(p.id, &status, 0);
      json result = json::parse(p.text, nullptr, false);
      if (result.is_discarded()) {
        bool const hung =
            p.killed ||
            (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL));
        result = {{"result", hung ? "hang" : "crash"}, {"found", json::array()}, {"wrong", true}};
      }
      result["seconds"] = std::chrono::duration<double>(Clock::now() - p.began).count();
      std::size_t const job = p.job;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      done(job, std::move(result));
    }
  }

  unsigned processes_;
  std::vector<Process> running_;
};

/// A mutant over all cases that execute its statement.
struct Verdict {
  std::string kernel, file, source, before, operation, mutation;  // `before`: the line before
  int line = 0;
  std::vector<json> runs;  // of each case
  json const* listed = nullptr;

  int rank_of(json const& run) const {
    std::string const result = run["result"];
    return result == "flagged" ? 0 : result == "wrong" ? 1 : result == "survived" ? 3 : 2;
  }
  json const& best() const {
    return *std::min_element(runs.begin(), runs.end(),
                             [&](json const& a, json const& b) { return rank_of(a) < rank_of(b); });
  }
  std::string result() const { return best()["result"]; }
  /// "data_race", or what else became of it.
  std::string word() const {
    if (result() == "flagged") return best()["found"][0]["kind"];
    if (listed != nullptr) return (*listed)["verdict"];
    return result();
  }
};

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

/// A source line without its comment.
std::string statement(std::string text) {
  text = text.substr(0, text.find("//"));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\\|");
  return text;
}

/// A table of each kernel: a row for each statement, a column for each mutation.
std::string markdown(std::vector<Verdict> const& verdicts) {
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

/// How many mutants there are of each kernel, and what became of them.
std::string summary(std::vector<Verdict> const& verdicts,
                    std::map<std::string, int> const& counts) {
  std::string text = fmt::format("\n{} mutants:", verdicts.size());
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

void write_between_markers(std::string const& path, std::string const& text) {
  constexpr char kBegin[] = "<!-- mutants: begin (./run mutate writes this) -->\n";
  constexpr char kEnd[] = "<!-- mutants: end -->";
  std::ifstream in(path);
  std::string page((std::istreambuf_iterator<char>(in)), {});
  std::size_t const begin = page.find(kBegin), end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos)
    throw std::runtime_error(
        fmt::format("{} has no section between {} and {}", path, kBegin, kEnd));
  page.replace(begin + sizeof kBegin - 1, end - begin - (sizeof kBegin - 1), text + "\n");
  std::ofstream(path) << page;
}

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

int run(Arguments const& arguments) {
  std::vector<MutatedKernel> kernels =
      kernels_of_cases(std::make_integer_sequence<int, static_cast<int>(kCases.size())>());
  for (auto const family : {mutated_attention, mutated_grouped, mutated_sm100,
                            mutated_attention_sm100, mutated_pipelines})
    for (MutatedKernel& kernel : family()) kernels.push_back(std::move(kernel));
  if (!arguments.only_case.empty())
    std::erase_if(kernels, [&](MutatedKernel const& k) { return k.name != arguments.only_case; });
  if (kernels.empty()) throw std::runtime_error("no such case: " + arguments.only_case);

  // Each case unmutated, for its statements and its result.
  std::vector<Job> jobs;
  std::vector<std::vector<std::uint8_t>> expected;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    sim::Options options = default_options();
    options.list_marked = true;
    Outcome outcome = kernels[i].run(options);
    if (!outcome.report.ok())
      throw std::runtime_error(kernels[i].name + ", not mutated, is not clean:\n" +
                               outcome.report.text());
    expected.push_back(std::move(outcome.output));
    for (sim::MarkedStatement const& statement : outcome.report.marked) {
      for (Mutation const mutation : kMutations) {
        if (!admits(statement.admitted, mutation)) continue;
        Job job{
            i,
            {short_path(statement.where.file), statement.where.line, statement.operation, mutation},
            source_line(statement.where.file, statement.where.line),
            source_line(statement.where.file, statement.where.line - 1)};
        if (id(job, kernels).find(arguments.only) != std::string::npos)
          jobs.push_back(std::move(job));
      }
    }
  }
  if (arguments.every > 1) {  // each with all cases that execute its statement
    std::map<std::string, std::size_t> numbers;
    std::erase_if(jobs, [&](Job const& job) {
      std::size_t const number =
          numbers.emplace(mutant_id(job, kernels), numbers.size()).first->second;
      return number % static_cast<std::size_t>(arguments.every) != 0;
    });
  }
  fmt::print("{} mutants of {} kernels\n", jobs.size(), kernels.size());
  std::fflush(stdout);

  std::vector<json> results(jobs.size());  // null: not run
  KeptResults kept(arguments.kept_file);
  std::set<std::string> flagged;
  auto const finish = [&](std::size_t i, json result) {
    results[i] = std::move(result);
    if (results[i]["result"] == "flagged") flagged.insert(mutant_id(jobs[i], kernels));
  };
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (json const* const result = kept.find(id(jobs[i], kernels))) finish(i, *result);
  std::size_t finished = 0;
  auto const began = std::chrono::steady_clock::now();
  auto said = began;
  Pool(arguments.jobs > 0 ? arguments.jobs : std::max(1u, std::thread::hardware_concurrency()))
      .run(
          jobs.size(),
          [&](std::size_t i) {
            return results[i].is_null() &&
                   !(arguments.once && flagged.contains(mutant_id(jobs[i], kernels)));
          },
          [&](std::size_t i) {
            return run_mutant(kernels[jobs[i].kernel], jobs[i].mutant, expected[jobs[i].kernel],
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

  // Over the cases of a kernel.
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (results[i].is_null()) continue;
    Job const& job = jobs[i];
    json run = results[i];
    run["case"] = kernels[job.kernel].name;
    Verdict verdict;
    verdict.kernel = kernels[job.kernel].kernel;
    verdict.file = job.mutant.file;
    verdict.source = job.source;
    verdict.before = job.before;
    verdict.operation = to_string(job.mutant.operation);
    verdict.mutation = to_string(job.mutant.mutation);
    verdict.line = job.mutant.line;
    auto const known = std::find_if(verdicts.begin(), verdicts.end(), [&](Verdict const& v) {
      return v.kernel == verdict.kernel && v.file == verdict.file && v.line == verdict.line &&
             v.operation == verdict.operation && v.mutation == verdict.mutation;
    });
    if (known != verdicts.end()) {
      known->runs.push_back(std::move(run));
    } else {
      verdict.runs.push_back(std::move(run));
      verdicts.push_back(std::move(verdict));
    }
  }
  std::stable_sort(verdicts.begin(), verdicts.end(), [](Verdict const& a, Verdict const& b) {
    return std::tie(a.kernel, a.file, a.line, a.operation) <
           std::tie(b.kernel, b.file, b.line, b.operation);
  });

  json list = json::array();
  if (!arguments.list.empty()) list = json::parse(std::ifstream(arguments.list));
  int faults = 0;
  bool const all = arguments.every == 1 && arguments.only.empty() && arguments.only_case.empty();
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
  std::map<std::string, int> counts;
  for (Verdict const& v : verdicts) {
    ++counts[v.result() == "flagged" ? "flagged" : v.word()];
    if (v.result() == "flagged" || v.listed != nullptr) continue;
    ++faults;
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
  fmt::print("{} mutants, {:.0f} s:", verdicts.size(),
             std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  for (auto const& [word, count] : counts) fmt::print(" {} {};", count, word);
  fmt::print("\n");

  if (!arguments.json_file.empty()) {
    json out = json::array();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (results[i].is_null()) continue;
      Job const& job = jobs[i];
      auto const v = std::find_if(verdicts.begin(), verdicts.end(), [&](Verdict const& verdict) {
        return verdict.kernel == kernels[job.kernel].kernel && verdict.file == job.mutant.file &&
               verdict.line == job.mutant.line &&
               verdict.operation == to_string(job.mutant.operation) &&
               verdict.mutation == to_string(job.mutant.mutation);
      });
      json found = json::array();
      for (json const& finding : results[i]["found"]) found.push_back(finding["kind"]);
      json entry = {
          {"id", id(job, kernels)},
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
          {"equivalent", v->listed != nullptr && (*v->listed)["verdict"] == "equivalent"}};
      if (!results[i]["found"].empty()) entry["message"] = results[i]["found"][0]["message"];
      out.push_back(std::move(entry));
    }
    std::ofstream(arguments.json_file) << out.dump(1) << "\n";
  }
  if (!arguments.markdown_file.empty())
    write_between_markers(arguments.markdown_file,
                          summary(verdicts, counts) + markdown(verdicts) + reasons(verdicts));
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
  line.add_option("--every", arguments.every, "only every so manieth mutant, with all of its cases")
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
