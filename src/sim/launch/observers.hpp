#pragma once

#include "checker/access_limits.hpp"
#include "checker/checker.hpp"
#include "explore/explorer.hpp"
#include "machine/observers.hpp"
#include "profile/counting.hpp"
#include "profile/timekeeper.hpp"

namespace tegula::sim {

/// The observers of a machine. An event goes to each of them that wants it, in this order but where
/// observers.cpp says otherwise. To add one: a member here, and a line in the events that it wants.
struct Observers::List {
  Explorer* explorer = nullptr;  ///< decides who runs; null: the machine does
  /// of the launch, for `checker`; null: races are not looked for
  GlobalOrder* global_order = nullptr;
  Checker checker;
  Timekeeper time;
  Counting counting;
  AccessLimits limits;
};

}  // namespace tegula::sim
