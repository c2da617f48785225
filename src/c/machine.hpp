#pragma once

#include <cstdint>
#include <map>
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

/// What was decided for problems that may come again, by a text that tells them apart. Thread-safe.
template <class Choice> class Memo {
 public:
  /// decide() makes the choice where there is none yet.
  template <class Decide> Choice of(std::string const& key, Decide&& decide) {
    {
      std::scoped_lock const lock(mutex_);
      if (auto const found = choices_.find(key); found != choices_.end()) return found->second;
    }
    Choice const choice = decide();
    std::scoped_lock const lock(mutex_);
    if (choices_.size() >= most) choices_.clear();
    choices_.emplace(key, choice);
    return choice;
  }

 private:
  static constexpr std::size_t most = 4096;
  std::mutex mutex_;
  std::map<std::string, Choice> choices_;
};

}  // namespace tegula::c

struct tegula_machine {
  tegula::Machine machine;
  std::mutex launching = {};  ///< a launch and the reading of its report belong together
  tegula::c::Memo<tegula::GemmChoice> gemm_choices = {};  ///< on a GPU
  tegula::c::Memo<std::int64_t> gemm_workspaces = {};     ///< bytes
};

struct tegula_report {
  tegula::sim::Report held;
};

namespace tegula::c {

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
