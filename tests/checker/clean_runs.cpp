// Runs correct kernels under the checker at many schedules: no finding, and the same output and
// counters of each.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "command_line.hpp"
#include "correct_kernels.hpp"
#include "options.hpp"
#include "schedules.hpp"

namespace tegula {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// What came of one kernel at all of its schedules.
struct Tally {
  std::atomic<std::int64_t> runs = 0;
  std::atomic<std::int64_t> findings = 0;  ///< runs with any
  /// runs whose output or counters differ from the first schedule's
  std::atomic<std::int64_t> unlike = 0;
  std::atomic<std::int64_t> failed = 0;  ///< runs that threw anything else
  /// what was found, each once, with the first schedule that showed it
  std::set<std::string> sentences;
  std::set<std::string> known;  ///< (kind, place) of those
};

/// Takes note of a run that is not as it should be.
void note(Tally& tally, std::mutex& mutex, std::string const& key, std::string const& sentence,
          sim::Options const& schedule) {
  std::scoped_lock const lock(mutex);
  if (tally.known.insert(key).second)
    tally.sentences.insert(sentence + "\n    at " + schedule_text(schedule));
}

/// What a run gives, which must not depend on the schedule.
struct Results {
  std::vector<std::uint8_t> output;
  std::string counters;
};

void run_once(CorrectKernel const& kernel, sim::Options const& schedule, Results const& expected,
              Tally& tally, std::mutex& mutex) {
  ++tally.runs;
  try {
    Outcome const outcome = kernel.run(schedule);
    if (!outcome.report.ok()) {
      ++tally.findings;
      for (sim::Finding const& finding : outcome.report.findings) {
        std::string const key = std::string(to_string(finding.kind)) + finding.where.file + ":" +
                                std::to_string(finding.where.line) + finding.buffer;
        note(tally, mutex, key, to_string(finding, outcome.report.kernel), schedule);
      }
    } else if (outcome.output != expected.output) {
      ++tally.unlike;
      note(tally, mutex, "output", "the output is not that of the first schedule", schedule);
    } else if (counters_text(outcome.report, kernel.polls) != expected.counters) {
      ++tally.unlike;
      note(tally, mutex, "counters", "the counters are not those of the first schedule", schedule);
    }
  } catch (std::exception const& e) {
    ++tally.failed;
    note(tally, mutex, e.what(), std::string("the launch failed: ") + e.what(), schedule);
  }
}

/// Runs a kernel at every schedule, on `jobs` threads of the host.
void run_kernel(CorrectKernel const& kernel, std::vector<sim::Options> const& schedules, int jobs,
                Tally& tally) {
  std::mutex mutex;
  Results expected;
  try {
    Outcome const first = kernel.run(schedules.front());
    expected = {first.output, counters_text(first.report, kernel.polls)};
  } catch (std::exception const&) {  // it is run again below, and noted there
  }
  std::atomic<std::size_t> next = 0;
  auto const work = [&] {
    for (std::size_t i = next++; i < schedules.size(); i = next++)
      run_once(kernel, schedules[i], expected, tally, mutex);
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
}

int run_all(std::vector<CorrectKernel> const& kernels, std::uint64_t seeds, int jobs) {
  std::vector<sim::Options> const schedules = every_schedule(seeds, {.workers = 1});
  std::printf("%zu kernels, each at %zu schedules (%llu seeds), on %d threads\n", kernels.size(),
              schedules.size(), static_cast<unsigned long long>(seeds), jobs);
  auto const begin = Clock::now();
  std::int64_t runs = 0, findings = 0, unlike = 0, failed = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    CorrectKernel const& kernel = kernels[i];
    auto const kernel_begin = Clock::now();
    Tally tally;
    run_kernel(kernel, schedules, jobs, tally);
    runs += tally.runs, findings += tally.findings, unlike += tally.unlike, failed += tally.failed;
    double const so_far = seconds_since(begin);
    std::printf(
        "[%3zu/%zu, %5.0f s, about %5.0f s left] %6.2f s  %s: %s\n", i + 1, kernels.size(), so_far,
        so_far / static_cast<double>(i + 1) * static_cast<double>(kernels.size() - i - 1),
        seconds_since(kernel_begin), std::string(kernel.family).c_str(), kernel.name.c_str());
    for (std::string const& sentence : tally.sentences) std::printf("  %s\n", sentence.c_str());
    std::fflush(stdout);
  }
  std::printf(
      "%lld runs in %.0f s: %lld with findings, %lld with another output or other counters, %lld failed\n",
      static_cast<long long>(runs), seconds_since(begin), static_cast<long long>(findings),
      static_cast<long long>(unlike), static_cast<long long>(failed));
  return findings + unlike + failed == 0 ? 0 : 1;
}

int main_of(int count, char** arguments) {
  tool::CommandLine const line(
      "Runs every correct kernel of the repository under the checker, at every completion and interleaving "
      "and many seeds. Exits 1 if anything is found, or an output or a counter depends on the schedule.");
  std::uint64_t seeds = 100;
  int jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::string only;
  line.add_option("--seeds", seeds, "seeds of each schedule that draws from one (100)")
      .check(tool::whole_number(1));
  line.add_option("--jobs", jobs, "threads of the host (all cores)").check(tool::whole_number(1));
  line.add_option("--only", only,
                  "those kernels alone whose family and name, \"FAMILY: NAME\", contain this text");
  if (auto const status = line.read(count, arguments)) return *status;

  std::vector<CorrectKernel> kernels = correct_kernels();
  std::erase_if(kernels, [&](CorrectKernel const& kernel) {
    return (std::string(kernel.family) + ": " + kernel.name).find(only) == std::string::npos;
  });
  if (kernels.empty()) {
    std::fprintf(stderr, "clean_runs: no kernel's \"FAMILY: NAME\" contains '%s'\n", only.c_str());
    return 2;
  }
  return run_all(kernels, seeds, jobs);
}

}  // namespace
}  // namespace tegula

int main(int count, char** arguments) { return tegula::main_of(count, arguments); }
