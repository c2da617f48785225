#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "tegula/device/launch.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/sim/report.hpp"
#include "tegula/tegula.h"

struct tegula_machine {
  tegula::Machine machine;
  std::mutex launching = {};  ///< a launch and the reading of its report belong together
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
