#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tegula/sim/hooks.hpp"
#include "tegula/sim/machine.hpp"

namespace tegula::sim {

struct Thread;

/// The mutation testing of one launch: makes its mutant, or lists the statements that have a mark.
/// Its functions may be called from several of the host's threads.
class MutationRun {
 public:
  explicit MutationRun(Options const& options) : mutant_(options.mutant) { ++mutating; }
  ~MutationRun() { --mutating; }
  MutationRun(MutationRun const&) = delete;
  MutationRun& operator=(MutationRun const&) = delete;

  /// A thread comes to a marked statement: what is to be done to it.
  Mutation at(SourceLocation where, Operation operation, Mutation admitted);
  /// Keeps an instruction of a thread until after the thread's next.
  void delay(Thread& thread, std::function<void()> instruction);
  /// A thread comes to an instruction: executes what was kept, if one has been executed since.
  void come_to_instruction(Thread& thread);
  /// A thread ends: executes what was kept.
  void finish(Thread& thread);

  /// The marked statements that were executed, by file, line and operation.
  std::vector<MarkedStatement> statements() const;

 private:
  struct Delayed {
    std::function<void()> instruction;
    bool due = false;
  };
  /// Takes a thread's kept instruction; empty where there is none, or none due.
  std::function<void()> take(Thread& thread, bool at_end);

  std::optional<Mutant> mutant_;
  mutable std::mutex mutex_;
  std::unordered_map<Thread const*, Delayed> delayed_;
  std::atomic<int> delays_{0};  ///< of delayed_
  std::map<std::tuple<std::string, int, Operation>, MarkedStatement> statements_;
};

/// While it lives, the clusters that run on this host thread are of that launch; null: of one
/// without mutation testing.
class RunsMutation {
 public:
  explicit RunsMutation(MutationRun* run);
  ~RunsMutation();
  RunsMutation(RunsMutation const&) = delete;
  RunsMutation& operator=(RunsMutation const&) = delete;
};

/// Executes an instruction of the current thread after its next one, or at its end.
void delay(std::function<void()> instruction);
/// The current thread comes to an instruction: come_to_instruction of its launch.
void execute_delayed();
/// The current thread ends.
void finish_delayed();

}  // namespace tegula::sim
