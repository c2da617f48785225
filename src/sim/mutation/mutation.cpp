#include "mutation/mutation.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "machine/cluster.hpp"
#include "machine/current_cta.hpp"

namespace tegula::sim {

constinit std::atomic<int> mutating{0};

namespace {

/// Whether `end` is the last parts of a path.
bool is_end_of_path(std::string_view end, std::string_view path) {
  if (!path.ends_with(end)) return false;
  return path.size() == end.size() || path[path.size() - end.size() - 1] == '/';
}

/// The mutation testing of the launch that runs on this thread of the host; null where there
/// is none.
constinit thread_local MutationRun* running_run = nullptr;
MutationRun* current_run() { return running_cta() == nullptr ? nullptr : running_run; }

}  // namespace

RunsMutation::RunsMutation(MutationRun* run) { running_run = run; }
RunsMutation::~RunsMutation() { running_run = nullptr; }

Mutation MutationRun::at(SourceLocation where, Operation operation, Mutation admitted) {
  if (mutant_) {
    Mutant const& m = *mutant_;
    bool const is_it = where.line == m.line && operation == m.operation &&
                       admits(admitted, m.mutation) && is_end_of_path(m.file, where.file);
    return is_it ? m.mutation : Mutation::none;
  }
  std::lock_guard const lock(mutex_);
  MarkedStatement& statement = statements_[{where.file, where.line, operation}];
  statement.where = where;
  statement.operation = operation;
  statement.admitted = statement.admitted | admitted;
  ++statement.executions;
  return Mutation::none;
}

void MutationRun::delay(Thread& thread, std::function<void()> instruction) {
  finish(thread);
  std::lock_guard const lock(mutex_);
  delayed_[&thread] = {std::move(instruction)};
  ++delays_;
}

std::function<void()> MutationRun::take(Thread& thread, bool at_end) {
  if (delays_ == 0) return {};
  std::lock_guard const lock(mutex_);
  auto const kept = delayed_.find(&thread);
  if (kept == delayed_.end()) return {};
  if (!at_end && !std::exchange(kept->second.due, true)) return {};
  std::function<void()> instruction = std::move(kept->second.instruction);
  delayed_.erase(kept);
  --delays_;
  return instruction;
}

void MutationRun::come_to_instruction(Thread& thread) {
  if (auto const instruction = take(thread, false)) instruction();
}

void MutationRun::finish(Thread& thread) {
  if (auto const instruction = take(thread, true)) instruction();
}

std::vector<MarkedStatement> MutationRun::statements() const {
  std::vector<MarkedStatement> result;
  for (auto const& [key, statement] : statements_) {
    if (statement.admitted != Mutation::none) result.push_back(statement);
  }
  return result;
}

Mutation mutation(SourceLocation where, Operation operation, Mutation admitted) {
  MutationRun* const run = current_run();
  return run == nullptr ? Mutation::none : run->at(where, operation, admitted);
}

void delay(std::function<void()> instruction) {
  current_run()->delay(running_cta()->cluster().current(), std::move(instruction));
}

void execute_delayed() {
  if (MutationRun* const run = current_run())
    run->come_to_instruction(running_cta()->cluster().current());
}

void finish_delayed() {
  if (MutationRun* const run = current_run()) run->finish(running_cta()->cluster().current());
}

}  // namespace tegula::sim
