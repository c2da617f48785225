#include "tegula/sim/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <future>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "checker/launch_tensors.hpp"
#include "explore/exploring.hpp"
#include "launch/cooperative.hpp"
#include "launch/observers.hpp"
#include "machine/baton.hpp"
#include "machine/cluster.hpp"
#include "machine/global_memory.hpp"
#include "machine/pending_clusters.hpp"
#include "machine/stack_overflow.hpp"
#include "machine/turn_keeper.hpp"
#include "mutation/mutation.hpp"
#include "tegula/io/text.hpp"
#include "tegula/sim/arithmetic.hpp"
#include "values/place.hpp"

namespace tegula::sim {

struct Machine::State {
  GlobalMemory global;
  std::mutex launching;
  /// Runs clusters on one of the host's threads.
  struct Worker {
    explicit Worker(std::size_t stack_bytes) : cluster(observers, stack_bytes) {}
    Observers observers;
    Cluster cluster;
  };
  /// One for each of the host's threads; kept for their fibers' stacks.
  std::vector<std::unique_ptr<Worker>> workers;
};

Machine::Machine(Options options)
    : options_(std::move(options)), state_(std::make_unique<State>()) {}
Machine::~Machine() = default;

void* Machine::allocate(std::size_t bytes, std::string name) {
  return state_->global.allocate(bytes, std::move(name));
}
void Machine::deallocate(void* pointer) { state_->global.deallocate(pointer); }

void Machine::set_constant(void const* pointer) {
  std::lock_guard const launching(state_->launching);
  Allocation* const memory = find(*state_->global.table(), pointer);
  if (memory == nullptr || memory->base != pointer) {
    throw std::invalid_argument(
        fmt::format("set_constant: {} is not the start of an allocation of this machine", pointer));
  }
  memory->constant = true;
}

void Machine::upload(void* destination, void const* source, std::size_t bytes) {
  if (bytes == 0) return;
  auto const memory = state_->global.at("upload", destination, bytes);
  std::memcpy(destination, source, bytes);
  std::memset(memory->shadow + memory->offset_of(destination), 1, bytes);
}

void Machine::download(void* destination, void const* source, std::size_t bytes) const {
  if (bytes == 0) return;
  auto const memory = state_->global.at("download", source, bytes);
  std::memcpy(destination, source, bytes);
}

void Machine::fill(void* destination, int byte, std::size_t bytes) {
  if (bytes == 0) return;
  auto const memory = state_->global.at("fill", destination, bytes);
  std::memset(destination, byte, bytes);
  std::memset(memory->shadow + memory->offset_of(destination), 1, bytes);
}

void Machine::copy(void* destination, void const* source, std::size_t bytes) {
  if (bytes == 0) return;
  auto const from = state_->global.at("copy", source, bytes);
  auto const to = state_->global.at("copy", destination, bytes);
  std::memmove(destination, source, bytes);
  std::memmove(to->shadow + to->offset_of(destination), from->shadow + from->offset_of(source),
               bytes);
}

bool Machine::written(void const* pointer, std::size_t bytes) const {
  Allocation const* const memory = find(*state_->global.table(), pointer);
  if (memory == nullptr || !memory->contains(pointer, bytes)) return false;
  unsigned char const* const shadow = memory->shadow + memory->offset_of(pointer);
  return std::all_of(shadow, shadow + bytes, [](unsigned char w) { return w == 1; });
}

bool Machine::holds(GlobalTensor const& tensor) const {
  return allocation_of(*state_->global.table(), tensor) != nullptr;
}

namespace {

void check_launch(KernelImage const& kernel, Dim3 grid, Generation generation) {
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.y > 65535 || grid.z > 65535) {
    throw std::invalid_argument(fmt::format(
        "launch of {}: the grid ({}, {}, {}) must be at least 1 along each axis and at most 65535 along y and z",
        kernel.name, grid.x, grid.y, grid.z));
  }
  if (kernel.threads < 32 || kernel.threads > 1024 || kernel.threads % 32 != 0) {
    throw std::invalid_argument(
        fmt::format("launch of {}: {}; a CTA has a multiple of 32, from 32 to 1024", kernel.name,
                    io::counted(kernel.threads, "thread")));
  }
  Dim3 const cluster = kernel.cluster;
  if (cluster.x < 1 || cluster.y < 1 || cluster.z < 1 ||
      std::int64_t{cluster.x} * cluster.y * cluster.z > kMostCtasOfACluster) {
    throw std::invalid_argument(
        fmt::format("launch of {}: clusters of {} x {} x {} CTAs; a cluster has 1 to {}",
                    kernel.name, cluster.x, cluster.y, cluster.z, kMostCtasOfACluster));
  }
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
    throw std::invalid_argument(fmt::format(
        "launch of {}: the grid ({}, {}, {}) must be a multiple of the cluster ({}, {}, {}) along each axis",
        kernel.name, grid.x, grid.y, grid.z, cluster.x, cluster.y, cluster.z));
  }
  ArchSpec const& spec = spec_of(generation);
  if (spec.most_ctas_of_a_cluster == 1 && cluster != Dim3{}) {
    throw std::invalid_argument(fmt::format(
        "launch of {}: clusters of {} x {} x {} CTAs; the simulated GPU, an sm_{}, has none",
        kernel.name, cluster.x, cluster.y, cluster.z, spec.compute_capability));
  }
  if (kernel.shared_bytes > spec.shared_bytes) {
    throw std::invalid_argument(
        fmt::format("launch of {}: {} bytes of shared memory; a CTA has at most {}", kernel.name,
                    kernel.shared_bytes, spec.shared_bytes));
  }
}

/// Adds a cluster's findings to the launch's, each (kind, line, buffer) once.
void add_findings(std::vector<Finding>& into, std::vector<Finding>&& findings) {
  for (Finding& finding : findings) {
    auto const known = std::find_if(into.begin(), into.end(), [&](Finding const& f) {
      return f.kind == finding.kind && same_place(f.where, finding.where) &&
             f.buffer == finding.buffer;
    });
    if (known != into.end()) {
      known->count += finding.count;
      known->ended_cluster |= finding.ended_cluster;
      if (known->order.empty() || finding.reach <= known->reach || finding.order == known->order)
        continue;
      finding.count = known->count;
      finding.ended_cluster = known->ended_cluster;
      *known = std::move(finding);
    } else {
      into.push_back(std::move(finding));
    }
  }
}

/// The races in global memory between clusters.
std::vector<Finding> between_clusters(LaunchContext const& launch, GlobalOrder const& order,
                                      std::map<std::int64_t, ClusterLog>&& logs) {
  if (logs.size() < 2) return {};
  std::vector<ClusterLog> in_order;
  for (auto& [index, log] : logs) in_order.push_back(std::move(log));
  return conflicts_between_clusters(
      in_order, order, *launch.global,
      [&](std::int64_t cluster, int rank) { return cta_index(launch, cluster, rank); });
}

/// The kernel whose threads end with the instructions that a mutant has kept for later.
KernelImage with_delayed_instructions(KernelImage kernel) {
  kernel.run = [run = std::move(kernel.run)](void* storage) {
    run(storage);
    finish_delayed();
  };
  return kernel;
}

/// Moves what is allowed from the findings to those silenced.
void silence(Report& report, std::vector<Suppression> const& allow) {
  std::vector<Finding> rest;
  for (Finding& finding : report.findings) {
    auto const suppression = std::find_if(allow.begin(), allow.end(),
                                          [&](Suppression const& a) { return covers(a, finding); });
    if (suppression != allow.end()) {
      report.silenced.push_back({std::move(finding), suppression->reason});
    } else {
      rest.push_back(std::move(finding));
    }
  }
  report.findings = std::move(rest);
}

/// How many of the clusters run together; the others wait for room.
std::int64_t resident_clusters(KernelImage const& kernel, Options const& options, bool stepped,
                               std::int64_t clusters) {
  if (kernel.concurrent && !kernel.cooperative && !kernel.cluster_launch_control && !stepped) {
    // Their stacks and switches cost the host time.
    constexpr std::int64_t most_threads = 12 * 1024;
    std::int64_t const in_cluster =
        std::int64_t{1} * kernel.cluster.x * kernel.cluster.y * kernel.cluster.z;
    return std::clamp<std::int64_t>(most_threads / (kernel.threads * in_cluster), 1, clusters);
  }
  if (!kernel.cluster_launch_control) return clusters;
  // Few, so that there is something to take over in small problems, too; and of orders, which are
  // many, the fewest that differ by who takes it over.
  constexpr std::int64_t most = 4, most_stepped = 2;
  std::int64_t const wanted = options.multiprocessors > 0 ? options.multiprocessors
                              : stepped                   ? most_stepped
                                                          : most;
  return std::min({clusters, most, wanted});
}

/// The clusters that are there together where their steps are decided. Throws std::invalid_argument
/// where they are too many.
ClusterShape shape_of(KernelImage const& kernel, Dim3 grid, std::int64_t resident) {
  std::int64_t const ctas = resident * kernel.cluster.x * kernel.cluster.y * kernel.cluster.z;
  if (ctas > kMostSteppedCtas)
    throw std::invalid_argument(fmt::format(
        "launch of {}: an exploration is of at most {} CTAs that are there together; of the grid of "
        "{} x {} x {} they are {}",
        kernel.name, kMostSteppedCtas, grid.x, grid.y, grid.z, ctas));
  return {.ctas = static_cast<int>(ctas),
          .threads = kernel.threads,
          .clusters = static_cast<int>(resident)};
}

}  // namespace

int KernelImage::registers() const {
  // The compiler gives a thread at most 255, and warps get them 8 a thread at a time.
  return std::min(255, kRegistersOfMultiprocessor / (threads * min_ctas_per_sm) / 8 * 8);
}

Report Machine::launch(KernelImage const& original, Dim3 grid) {
  check_launch(original, grid, options_.generation);
  if (original.cooperative) check_cooperative(original, grid, options_);
  for (Suppression const& suppression : options_.allow) check(suppression);
  std::lock_guard const launching(state_->launching);
  auto const table = state_->global.table();
  LaunchTensors const tensors(original, *table, options_.check);
  TurnKeeper turns;
  GlobalOrder order;
  std::optional<MutationRun> mutation;
  if (options_.mutant || options_.list_marked) mutation.emplace(options_);
  std::optional<Processes> processes;
  std::optional<Explorer> replay;
  bool const stepped = exploring_ != nullptr || options_.choices;
  std::int64_t const ctas = std::int64_t{1} * grid.x * grid.y * grid.z;
  int const in_cluster = original.cluster.x * original.cluster.y * original.cluster.z;
  std::int64_t const count = ctas / in_cluster;
  std::int64_t const resident = resident_clusters(original, options_, stepped, count);
  ClusterShape const shape = stepped ? shape_of(original, grid, resident) : ClusterShape{};
  Explorer* explorer = exploring_ != nullptr ? &exploring_->begin(shape) : nullptr;
  if (explorer == nullptr && options_.choices) {
    processes.emplace(shape);
    replay.emplace(*processes, options_.choices->accesses, options_.choices->refusals,
                   std::numeric_limits<std::int64_t>::max());
    replay->follow(*options_.choices);
    explorer = &*replay;
  }
  KernelImage const kernel = mutation ? with_delayed_instructions(original) : original;
  bool const by_launches = kernel.cluster_launch_control;
  // Where steps are decided, it is one when a cluster starts.
  PendingClusters pending(stepped ? 0 : resident, count);
  std::optional<Baton> baton;
  bool const follow = kernel.concurrent && !stepped;  // clusters, one another in a place
  if (kernel.cooperative || by_launches || follow || (stepped && resident > 1))
    baton.emplace(resident);
  if (explorer != nullptr && baton) explorer->share(*baton, by_launches ? &pending : nullptr);
  LaunchContext const launch{&kernel,
                             grid,
                             &options_,
                             table.get(),
                             &turns,
                             baton ? &*baton : nullptr,
                             by_launches ? &pending : nullptr,
                             explorer != nullptr};

  std::int64_t workers =
      options_.workers > 0
          ? options_.workers
          : static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  // A stack is two mappings of the process, which may have some 65000.
  workers =
      std::min({workers, count, std::max<std::int64_t>(1, 16384 / (kernel.threads * in_cluster))});
  auto& kept = state_->workers;
  if (!kept.empty() && kept[0]->cluster.stack_bytes() != options_.stack_bytes) kept.clear();
  if (baton) {
    if (resident > workers) kept.clear();  // others' stacks are in the way of so many
    workers = resident;
  }
  while (static_cast<std::int64_t>(kept.size()) < workers)
    kept.push_back(std::make_unique<State::Worker>(options_.stack_bytes));

  std::atomic<std::int64_t> next{0};
  std::mutex done_mutex;
  std::int64_t done = 0;
  std::int64_t open_choices = 0, special_functions = 0;
  std::map<std::int64_t, std::vector<Finding>> findings;  // of the clusters that have any
  std::map<std::int64_t, ClusterLog> logs;                // of what they did to global memory
  StuckClusters stuck;
  std::map<std::int64_t, Trace> traces;  // of those whose time is recorded
  std::exception_ptr failure;
  auto const work = [&](State::Worker& worker) {
    StackOverflowReport const overflow;
    RunsMutation const mutates(mutation ? &*mutation : nullptr);
    Cluster& cluster = worker.cluster;
    Observers::List& observers = worker.observers.list();
    observers.counting.clear();
    observers.explorer = explorer;
    observers.global_order = options_.check && options_.races ? &order : nullptr;
    bool moved = true;
    auto const run = [&](std::int64_t index, std::int64_t place) {
      moved = true;
      std::int64_t const computed = special_functions_computed();
      try {
        std::vector<Finding> found = cluster.run(launch, index, place);
        moved = !cluster.aborting();
        ClusterLog log = options_.check ? observers.checker.global_races().finish() : ClusterLog{};
        std::lock_guard const lock(done_mutex);
        if (cluster.stuck_at() != nullptr) stuck.emplace(index, cluster.stuck_at());
        if (!found.empty()) findings.emplace(index, std::move(found));
        if (!log.rows.empty()) logs.emplace(index, std::move(log));
        if (observers.time.traced()) traces.emplace(index, observers.time.trace());
        if (options_.check) open_choices += observers.checker.open_choices();
        special_functions += special_functions_computed() - computed;
        done += in_cluster;
        if (options_.progress && !failure) options_.progress(done, ctas);
      } catch (...) {
        std::lock_guard const lock(done_mutex);
        failure = std::current_exception();
        if (!baton) next = resident;  // else others may wait for those to come
      }
      turns.done(index);
    };
    for (std::int64_t place = next++; place < resident; place = next++) {
      if (baton) baton->begin(place);
      if (explorer != nullptr) explorer->begin();
      auto const next_there = [&] {
        return explorer != nullptr ? explorer->launch(static_cast<int>(place)) : pending.take();
      };
      if (!by_launches || explorer == nullptr) run(place, place);
      if (by_launches || follow) {
        while (std::optional<std::int64_t> const index = next_there()) run(*index, place);
      }
      if (baton) baton->done(place, moved);
    }
  };
  if (workers == 1) {
    work(*kept[0]);
  } else {
    // They begin when all are there: clusters that wait for each other need a thread each.
    std::vector<std::thread> threads;
    std::promise<bool> start;
    std::shared_future<bool> const begins = start.get_future().share();
    std::string refused;
    try {
      for (std::int64_t i = 0; i < workers; ++i)
        threads.emplace_back([&, i, begins] {
          if (begins.get()) work(*kept[static_cast<std::size_t>(i)]);
        });
    } catch (std::system_error const& error) {
      refused = error.what();
    }
    // Of other clusters those threads that there are do all the work.
    bool const enough = refused.empty() || !baton;
    start.set_value(enough);
    if (enough && threads.empty()) work(*kept[0]);
    for (std::thread& thread : threads) thread.join();
    if (!enough)
      throw std::runtime_error(fmt::format(
          "launch of {}: its {} clusters wait for each other and need a host thread each, and the "
          "system starts {} ({})",
          kernel.name, workers, threads.size(), refused));
  }
  if (failure) std::rethrow_exception(failure);
  if (replay && replay->unmade())
    throw std::invalid_argument(fmt::format(
        "launch of {}: in \"{}\" that process cannot go at that step: choices replay an order of the same kernel on "
        "the same problem",
        kernel.name,
        Choices{options_.choices->accesses, options_.choices->refusals, {*replay->unmade()}}
            .text()));

  Report report;
  report.kernel = kernel.name;
  if (mutation) report.marked = mutation->statements();
  report.grid = grid;
  report.open_choices = open_choices;
  report.special_functions = special_functions;
  report.schedule = {options_.completion, options_.interleaving, options_.seed, options_.choices};
  report.threads = kernel.threads;
  auto const cta_of = [&](std::int64_t cluster, int rank) {
    return cta_index(launch, cluster, rank);
  };
  if (!baton) name_who_had_not_started(stuck, logs, findings, cta_of);
  for (auto& [index, of_cluster] : findings) add_findings(report.findings, std::move(of_cluster));
  // Where a cluster was ended, or an exploration cut its order short, much is not covered.
  bool const whole = (explorer == nullptr || explorer->complete()) &&
                     std::none_of(report.findings.begin(), report.findings.end(),
                                  [](Finding const& finding) { return finding.ended_cluster; });
  std::vector<Finding> not_covered;
  if (whole) {
    not_covered = tensors.not_covered(logs, cta_of);
  }
  add_findings(report.findings, between_clusters(launch, order, std::move(logs)));
  for (Finding& finding : not_covered) report.findings.push_back(std::move(finding));
  for (auto& [index, of_cluster] : traces) {
    if (!report.trace) report.trace = Trace{kernel.name, {}, {}};
    report.trace->append(std::move(of_cluster));
  }
  for (std::int64_t i = 0; i < workers; ++i) {
    State::Worker& worker = *kept[static_cast<std::size_t>(i)];
    merge(report.lines, worker.observers.list().counting.lines());
    report.stack_bytes = std::max(report.stack_bytes, worker.cluster.stack_bytes_used());
  }
  for (LineCounters const& line : report.lines) report.total.add(line);
  if (!options_.allow.empty()) silence(report, options_.allow);
  if (count > 1 && baton) kept.clear();
  if (exploring_ != nullptr) exploring_->end(report);
  if (options_.throw_on_finding && !report.ok()) throw CheckError(std::move(report));
  return report;
}

}  // namespace tegula::sim
