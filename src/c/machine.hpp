#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "tegula/device/launch.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/sim/report.hpp"
#include "tegula/tegula.h"

namespace tegula::c {

/// How many calls are in progress on a machine, and in which process. A fork copies the machine and
/// the calling thread alone: what another thread's call had locked is locked for ever there.
class Calls {
 public:
  Calls();
  /// Throws device_error in a process that was forked while there was a call.
  void begin();
  void end() { --count_; }

 private:
  std::atomic<pid_t> process_;
  std::atomic<int> count_ = 0;
};

}  // namespace tegula::c

struct tegula_machine {
  tegula::Machine machine;
  std::mutex launching = {};  ///< a launch and the reading of its report belong together
  tegula::c::Calls calls = {};
};

struct tegula_report {
  tegula::sim::Report held;
};

namespace tegula::c {

/// A call on a machine, which each function makes before it does anything with it.
class Use {
 public:
  explicit Use(tegula_machine& machine) : calls_(machine.calls) { calls_.begin(); }
  ~Use() { calls_.end(); }
  Use(Use const&) = delete;
  Use& operator=(Use const&) = delete;

 private:
  Calls& calls_;
};

/// Runs `launch` on the machine; `finish` when it is over, whatever the checker found. What it
/// found is thrown, or put into *report where the caller asked for one (nullptr on a GPU).
template <class Launch, class Finish>
void launch_and_report(tegula_machine& machine, tegula_report** report, Launch&& launch,
                       Finish&& finish) {
  std::unique_lock lock(machine.launching, std::defer_lock);
  if (machine.machine.is_simulated()) lock.lock();
  std::optional<sim::Report> found;
  try {
    launch();
    if (report != nullptr) found = machine.machine.last_report();
  } catch (sim::CheckError const& error) {
    finish();
    if (report == nullptr) throw;
    found = error.report();
  }
  finish();
  if (report != nullptr) *report = found ? new tegula_report{std::move(*found)} : nullptr;
}

}  // namespace tegula::c
