#include "tegula/sim/explore.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "explore/exploring.hpp"
#include "tegula/io/text.hpp"
#include "values/mix.hpp"
#include "values/place.hpp"

namespace tegula::sim {

namespace {

/// Steps of beginnings that are kept to be tried, at most.
constexpr std::size_t kMostQueuedSteps = std::size_t{1} << 26;

}  // namespace

Exploring::Exploring(Machine& machine, std::function<void()> const& execute,
                     ExploreOptions const& options)
    : machine_(machine),
      execute_(execute),
      options_(options),
      random_state_(mix(options.seed) | 1) {}

Explorer& Exploring::begin(ClusterShape const& shape) {
  if (explorer_)
    throw std::invalid_argument(
        "explore: an execution launches one kernel, and this one launched a second");
  if (processes_ == nullptr) processes_ = std::make_unique<Processes>(shape);
  explorer_.emplace(*processes_, exploration_.accesses, options_.refusals, options_.max_steps);
  explorer_->follow(follow_);
  if (!options_.reduce) explorer_->list_alternatives();
  return *explorer_;
}

Exploration Exploring::run() {
  struct Restore {
    Machine& machine;
    Options options;
    ~Restore() {
      machine.options_ = std::move(options);
      machine.exploring_ = nullptr;
    }
  } const restore{machine_, machine_.options_};
  machine_.options_.throw_on_finding = false;
  machine_.options_.trace.reset();
  machine_.options_.choices.reset();
  machine_.exploring_ = this;
  queue_.push_back({});
  while (!queue_.empty()) {
    Beginning const beginning = take();
    if (options_.reduce && begun(beginning)) continue;
    if (exploration_.executions == options_.max_executions) {
      bounded_ = true;
      break;
    }
    execute(beginning);
  }
  exploration_.complete = !bounded_;
  exploration_.orders = static_cast<std::int64_t>(orders_.size());
  return std::move(exploration_);
}

Exploring::Beginning Exploring::take() {
  if (options_.seed != 0) {
    // Knuth's MMIX
    random_state_ = random_state_ * 6364136223846793005ull + 1442695040888963407ull;
    std::swap(queue_.front(),
              queue_[static_cast<std::size_t>((random_state_ >> 33) % queue_.size())]);
  }
  Beginning beginning = std::move(queue_.front());
  queue_.pop_front();
  queued_steps_ -= beginning.follow.size();
  return beginning;
}

void Exploring::execute(Beginning const& beginning) {
  follow_ = beginning.follow;
  explorer_.reset();
  execute_();
  if (!explorer_)
    throw std::invalid_argument("explore: an execution launches a kernel, and this one did not");
  Explorer const& explorer = *explorer_;
  ++exploration_.executions;
  exploration_.kernel = report_.kernel;
  take_findings(explorer);
  if (options_.result && explorer.complete()) {
    std::vector<std::byte> result = options_.result();
    if (!first_result_) {
      first_result_ = std::move(result);
    } else if (result != *first_result_ && !exploration_.differs) {
      exploration_.differs = explorer.choices();
    }
  }
  bounded_ |= !explorer.complete();
  exploration_.steps = std::max(exploration_.steps, explorer.chosen());
  if (explorer.unordered() && !exploration_.accesses) return start_anew();
  remember(explorer);
  if (options_.reduce) {
    add_reversals(explorer);
  } else {
    add_alternatives(explorer, beginning.follow.size());
  }
}

/// Loads and stores are to be steps.
void Exploring::start_anew() {
  exploration_.accesses = true;
  exploration_.steps = 0;
  queue_.clear();
  queue_.push_back({});
  queued_steps_ = 0;
  bounded_ = false;
  seen_.clear();
  orders_.clear();
  executions_with_.clear();
}

void Exploring::take_findings(Explorer const& explorer) {
  for (Finding const& finding : report_.findings) {
    bool const known = std::any_of(exploration_.findings.begin(), exploration_.findings.end(),
                                   [&](ExploredFinding const& other) {
                                     return other.finding.kind == finding.kind &&
                                            same_place(other.finding.where, finding.where) &&
                                            other.finding.buffer == finding.buffer;
                                   });
    if (!known) exploration_.findings.push_back({finding, explorer.choices()});
  }
}

void Exploring::remember(Explorer const& explorer) {
  Dependence const& dependence = explorer.dependence();
  std::uint64_t order = 0;
  std::vector<std::uint64_t> hashes;
  for (std::uint32_t i = 0; i < dependence.steps(); ++i) {
    if (!explorer.steps()[i].choice) continue;
    hashes.push_back(dependence.hash(i));
    order += mix(dependence.hash(i));
  }
  for (std::uint64_t const completion : dependence.completions()) {
    hashes.push_back(completion);
    order += mix(completion);
  }
  if (!orders_.insert(order).second || !options_.reduce) return;
  auto const number = static_cast<std::uint32_t>(orders_.size());
  for (std::uint64_t const hash : hashes) executions_with_[hash].push_back(number);
}

/// Whether some execution has all the steps of the beginning, with the same steps before them.
bool Exploring::begun(Beginning const& beginning) const {
  if (beginning.ends.empty()) return false;
  std::vector<std::vector<std::uint32_t> const*> lists;
  for (std::uint64_t const end : beginning.ends) {
    auto const found = executions_with_.find(end);
    if (found == executions_with_.end()) return false;
    lists.push_back(&found->second);
  }
  std::sort(lists.begin(), lists.end(),
            [](auto const* a, auto const* b) { return a->size() < b->size(); });
  return std::any_of(lists.front()->begin(), lists.front()->end(), [&](std::uint32_t execution) {
    return std::all_of(lists.begin(), lists.end(), [&](auto const* list) {
      return std::binary_search(list->begin(), list->end(), execution);
    });
  });
}

void Exploring::add(Beginning beginning) {
  if (queued_steps_ + beginning.follow.size() > kMostQueuedSteps) {
    bounded_ = true;
    return;
  }
  queued_steps_ += beginning.follow.size();
  queue_.push_back(std::move(beginning));
}

/// For each two steps that need not have come in their order: what does not depend on the first of
/// them, then the second.
void Exploring::add_reversals(Explorer const& explorer) {
  std::vector<Step> const& steps = explorer.steps();
  Dependence const& dependence = explorer.dependence();
  for (Reversal const& reversal : explorer.reversals()) {
    if (!steps[reversal.first].choice || !steps[reversal.second].choice) {
      // Of a thread's exit, which is a step where loads and stores are.
      if (!exploration_.accesses) return start_anew();
      continue;
    }
    Beginning beginning;
    Dependence reversed(processes_->shape());
    std::unordered_map<ProcessId, std::uint64_t> ends;
    std::uint64_t key = 0;
    auto const take = [&](Step const& step) {
      reversed.perform(step);
      if (!step.choice) return;
      beginning.follow.push_back(step.process);
      std::uint64_t const hash = reversed.hash(reversed.steps() - 1);
      ends[step.process] = hash;
      key += mix(hash);
    };
    // What comes after the execution are the steps that threads blocked at, each for itself.
    std::uint32_t const end = std::min(reversal.second, dependence.steps());
    for (std::uint32_t i = 0; i < end; ++i) {
      if (i < reversal.first || (i > reversal.first && !dependence.before(reversal.first, i)))
        take(steps[i]);
    }
    take(steps[reversal.second]);
    beginning.ends = reversed.completions();
    for (std::uint64_t const completion : beginning.ends) key += mix(completion);
    if (!seen_.insert(key).second) continue;
    for (auto const& [process, hash] : ends) beginning.ends.push_back(hash);
    if (!begun(beginning)) add(std::move(beginning));
  }
}

/// Every other choice at every step.
void Exploring::add_alternatives(Explorer const& explorer, std::size_t from) {
  std::vector<ProcessId> follow;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < explorer.dependence().steps(); ++i) {
    Step const& step = explorer.steps()[i];
    if (!step.choice) continue;
    if (chosen >= from) {
      for (ProcessId const other : explorer.alternatives()[chosen]) {
        if (other == step.process) continue;
        follow.push_back(other);
        add({follow, {}});
        follow.pop_back();
      }
    }
    follow.push_back(step.process);
    ++chosen;
  }
}

Exploration explore(Machine& machine, std::function<void()> const& execute,
                    ExploreOptions const& options) {
  return Exploring(machine, execute, options).run();
}

std::string Exploration::text() const {
  char const* const of = accesses ? "what synchronises, loads and stores" : "what synchronises";
  char const* const which = complete ? orders == 1 ? "the only" : "all" : "the first";
  std::string text =
      fmt::format("{}: {}{} {} of {}, in {}: {}\n", kernel, which,
                  orders == 1 ? "" : fmt::format(" {}", orders), io::noun(orders, "order"), of,
                  executions == 1 ? "one execution" : fmt::format("{} executions", executions),
                  findings.empty() ? "clean" : fmt::format("{} found", findings.size()));
  for (ExploredFinding const& found : findings)
    text +=
        fmt::format("{}\n  choices: {}\n", to_string(found.finding, kernel), found.choices.text());
  if (differs)
    text += fmt::format("another result than the first\n  choices: {}\n", differs->text());
  return text;
}

}  // namespace tegula::sim
