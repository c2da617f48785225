#pragma once

#include <csignal>
#include <memory>

namespace tegula::sim {

/// While it lives, a simulated thread that runs on this host thread and runs over its stack into
/// the guard below is named on the standard error before the process ends of the memory fault. Any
/// other fault is left to whoever handled it before.
class StackOverflowReport {
 public:
  StackOverflowReport();
  ~StackOverflowReport();
  StackOverflowReport(StackOverflowReport const&) = delete;
  StackOverflowReport& operator=(StackOverflowReport const&) = delete;

 private:
  std::unique_ptr<char[]> memory_;  ///< for the handler's stack: the fiber's is at its end
  stack_t before_;
};

}  // namespace tegula::sim
